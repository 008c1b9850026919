//! [`Neighbours`]: hosts that links reach directly.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use wirespeed_feeds::{Neighbour, NeighbourState};

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
}

/// The neighbours of all links.
#[derive(Default)]
pub(super) struct Neighbours {
    /// Neighbours by address first, so that those of a prefix lie together.
    told: BTreeMap<(IpAddr, u32), Told>,
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
        self.told.insert(key, Told { seen, is_stale: neighbour.state == NeighbourState::Stale });
        self.is_touched |= was != Some(seen);
    }

    pub(super) fn remove(&mut self, interface: u32, address: IpAddr) {
        self.is_touched |= self.told.remove(&(address, interface)).is_some();
    }

    /// Whether a neighbour changed since the last call.
    pub(super) fn take_touched(&mut self) -> bool {
        std::mem::take(&mut self.is_touched)
    }

    /// What is known of a neighbour.
    pub(super) fn of(&self, interface: u32, address: IpAddr) -> Seen {
        self.told.get(&(address, interface)).map_or(Seen::Unknown, |told| told.seen)
    }

    /// Whether the kernel has not heard of a neighbour for a while.
    pub(super) fn is_stale(&self, interface: u32, address: IpAddr) -> bool {
        self.told.get(&(address, interface)).is_some_and(|told| told.is_stale)
    }

    /// Whether a neighbour's address is in a prefix.
    pub(super) fn has_within(&self, prefix: &IpNet) -> bool {
        let first = (prefix.network(), 0);
        self.told.range(first..).next().is_some_and(|((address, _), _)| prefix.contains(address))
    }

    /// The neighbours whose addresses are known. Link-local ones are no destinations.
    pub(super) fn resolved(&self) -> impl Iterator<Item = (u32, IpAddr)> + '_ {
        self.told.iter().filter_map(|(&(address, interface), Told { seen, .. })| {
            let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            let is_host = matches!(seen, Seen::At(mac) if !mac.is_group()) && !is_link_local;
            is_host.then_some((interface, address))
        })
    }
}
