//! [`Quiet`]: when a table without an end marker is whole.
//!
//! A sender's first pass through its table brings prefixes that were not there, or not since the sender
//! connected. Its later changes are mostly of prefixes that came already. So the table is taken for whole
//! when nearly no new prefix has come for a while, even if a full table never stops changing. A fixed time
//! after the connect would delete routes that only came late.

use std::time::{Duration, Instant};

/// A part of one in so many prefixes may be new within the time.
const FEW: u64 = 1_000;

/// An empty table is believed after this many times the time.
const DOUBT: u32 = 12;

/// When a table without an end marker is whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quiet {
    time: Duration,
    since: Instant,
    /// The prefixes that had come when the time began.
    at_start: u64,
    /// The prefixes that had come when the sender connected.
    at_connect: u64,
}

impl Quiet {
    /// Starts to watch a sender that connected when so many new prefixes had come.
    pub(crate) fn new(time: Duration, now: Instant, came: u64) -> Self {
        Self { time, since: now, at_start: came, at_connect: came }
    }

    /// Whether the table is whole, of so many prefixes, when so many new ones have come.
    pub(crate) fn is_whole(&mut self, now: Instant, came: u64, prefixes: u64) -> bool {
        if came - self.at_start > prefixes / FEW {
            (self.since, self.at_start) = (now, came);
        }
        let time = if came == self.at_connect { self.time * DOUBT } else { self.time };
        now.saturating_duration_since(self.since) >= time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_whole_when_few_new_prefixes_come() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut quiet = Quiet::new(2 * second, start, 70);
        assert!(!quiet.is_whole(start + second, 5_070, 5_000));
        assert!(!quiet.is_whole(start + 2 * second, 10_070, 10_000));
        assert!(!quiet.is_whole(start + 3 * second, 10_075, 10_005));
        assert!(quiet.is_whole(start + 4 * second, 10_080, 10_010));
    }

    #[test]
    fn an_empty_table_is_believed_late() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut quiet = Quiet::new(second, start, 0);
        assert!(!quiet.is_whole(start + 11 * second, 0, 0));
        assert!(quiet.is_whole(start + 12 * second, 0, 0));
    }
}
