//! [`Neighbours`]: hosts that links reach directly.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use wirespeed_feeds::{Neighbour, NeighbourState};

use super::kept::{AGAIN, KEEP};
use crate::Mac;

/// What is known of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// The neighbour is at this address.
    At(Mac),
    /// The neighbour does not answer.
    Failed,
    /// Nobody has asked for it, or no answer came yet.
    Unknown,
}

/// A neighbour, as the kernel told it last.
#[derive(Clone, Copy, Debug)]
struct Told {
    seen: Seen,
    /// Whether the kernel has not heard of it for a while, and would check it with the next packet that it
    /// sent itself.
    is_stale: bool,
    /// Whether an administrator set it, or the link needs no addresses.
    is_fixed: bool,
}

/// The neighbours of all links.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Neighbours by address first, so that those of a prefix lie together.
    told: BTreeMap<(IpAddr, u32), Told>,
    /// The addresses of each interface.
    of_interfaces: HashMap<u32, BTreeSet<IpAddr>>,
    is_touched: bool,
}

impl Neighbours {
    pub(super) fn set(&mut self, neighbour: Neighbour) {
        let key = (neighbour.address, neighbour.interface);
        let was = self.told.get(&key).map(|told| told.seen);
        let seen = match (neighbour.usable(), neighbour.state) {
            (Some(mac), _) => Seen::At(Mac(mac.0)),
            (None, NeighbourState::Failed) => Seen::Failed,
            // It is asked again, and until it answers it is what it was.
            (None, NeighbourState::Incomplete) if was == Some(Seen::Failed) => Seen::Failed,
            (None, _) => Seen::Unknown,
        };
        let is_stale = neighbour.state == NeighbourState::Stale;
        let is_fixed = matches!(neighbour.state, NeighbourState::Permanent | NeighbourState::NoArp);
        self.told.insert(key, Told { seen, is_stale, is_fixed });
        self.of_interfaces.entry(neighbour.interface).or_default().insert(neighbour.address);
        self.is_touched |= was != Some(seen);
    }

    pub(super) fn remove(&mut self, interface: u32, address: IpAddr) {
        self.is_touched |= self.told.remove(&(address, interface)).is_some();
        if let Entry::Occupied(mut addresses) = self.of_interfaces.entry(interface) {
            addresses.get_mut().remove(&address);
            if addresses.get().is_empty() {
                addresses.remove();
            }
        }
    }

    /// Whether a neighbour changed since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// What is known of a neighbour.
    pub(super) fn of(&self, interface: u32, address: IpAddr) -> Seen {
        self.told.get(&(address, interface)).map_or(Seen::Unknown, |told| told.seen)
    }

    /// The pause between two questions to the kernel about a neighbour; `None` for one that it is not asked
    /// for. `is_given` is a next hop that the kernel's own routes don't have.
    ///
    /// A neighbour that an administrator set is never asked for: since Linux 5.16 a question makes it one
    /// that has to answer.
    pub(super) fn pause(&self, interface: u32, address: IpAddr, is_given: bool) -> Option<Duration> {
        let told = self.told.get(&(address, interface));
        match told.map_or(Seen::Unknown, |told| told.seen) {
            _ if told.is_some_and(|told| told.is_fixed) => None,
            Seen::At(_) if told.is_some_and(|told| told.is_stale) => Some(AGAIN),
            Seen::At(_) => Some(KEEP),
            _ if is_given => Some(AGAIN),
            // It may be back.
            Seen::Failed => Some(KEEP),
            // The kernel resolves it with the packets that it gets.
            Seen::Unknown => None,
        }
    }

    /// Whether a neighbour's address is in a prefix.
    pub(super) fn has_within(&self, prefix: &IpNet) -> bool {
        let first = (prefix.network(), 0);
        self.told.range(first..).next().is_some_and(|((address, _), _)| prefix.contains(address))
    }

    /// The neighbours at an interface whose link-layer addresses are known. Link-local ones are no
    /// destinations.
    pub(super) fn resolved(&self, interface: u32) -> impl Iterator<Item = IpAddr> + '_ {
        self.of_interfaces.get(&interface).into_iter().flatten().copied().filter(move |&address| {
            let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            matches!(self.of(interface, address), Seen::At(mac) if !mac.is_group()) && !is_link_local
        })
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_feeds::Mac as Hardware;

    use super::*;

    #[test]
    fn neighbours_are_asked_for_unless_an_administrator_set_them() {
        use NeighbourState::{Failed, Incomplete, NoArp, Permanent, Reachable, Stale};
        let mut neighbours = Neighbours::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(neighbours.pause(1, address, false), None);
        assert_eq!(neighbours.pause(1, address, true), Some(AGAIN));
        for (state, of_kernel, given) in [
            (Reachable, Some(KEEP), Some(KEEP)),
            (Stale, Some(AGAIN), Some(AGAIN)),
            (Permanent, None, None),
            (Failed, Some(KEEP), Some(AGAIN)),
            (NoArp, None, None),
        ] {
            let mac = (state != Failed).then_some(Hardware([2, 0, 0, 0, 0, 1]));
            neighbours.set(Neighbour { interface: 1, address, mac, state });
            let pauses = [false, true].map(|is_given| neighbours.pause(1, address, is_given));
            assert_eq!(pauses, [of_kernel, given], "{state:?}");
        }
        neighbours.set(Neighbour { interface: 1, address, mac: None, state: Incomplete });
        assert_eq!(neighbours.pause(1, address, false), None);
    }
}
