//! [`Report`]: what workers did, with the counters of their applications and ports.

use std::time::Instant;

use crate::Stats;
use crate::io::PortCounts;

/// The work of a router, or of one of its workers.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The work of all workers together.
    pub stats: Stats,
    /// The counters of the applications, summed by name.
    pub counters: Vec<(&'static str, u64)>,
    /// The counters of ports by name, summed over workers.
    pub ports: Vec<(String, PortCounts)>,
    /// The faults of sources that ended early.
    pub damage: Vec<String>,
    /// The time when the last worker had let all its frames out. Applications free their memory and their
    /// devices later. `None` while workers run.
    pub ended: Option<Instant>,
}

impl Report {
    /// Adds what another worker did.
    pub(crate) fn merge(&mut self, other: Self) {
        self.stats.add(&other.stats);
        for (name, count) in other.counters {
            match self.counters.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += count,
                None => self.counters.push((name, count)),
            }
        }
        for (name, counts) in other.ports {
            match self.ports.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => sum.add(&counts),
                None => self.ports.push((name, counts)),
            }
        }
        self.damage.extend(other.damage);
        self.ended = self.ended.max(other.ended);
    }
}
