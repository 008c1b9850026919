//! [`Hosts`]: links, addresses, neighbours and rules.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::model::{Batch, Change, InterfaceAddress, Link, Neighbour, Rule};

/// Links, addresses, neighbours and rules, and the changes of them that were not told yet.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    links: BTreeMap<u32, (Link, u8)>,
    addresses: BTreeMap<InterfaceAddress, u8>,
    neighbours: BTreeMap<(u32, IpAddr), (Neighbour, u8)>,
    rules: BTreeMap<Rule, u8>,
    generation: u8,
    changes: Batch,
}

impl Hosts {
    /// Sets a link; whether it went down or came up.
    pub(super) fn link(&mut self, link: Link) -> bool {
        let before = self.links.insert(link.index, (link.clone(), self.generation)).map(|(before, _)| before);
        let is_other =
            before.as_ref().is_some_and(|before| (before.up, before.running) != (link.up, link.running));
        if before.as_ref() != Some(&link) {
            self.changes.push(Change::Link(Box::new(link)));
        }
        is_other
    }

    /// Removes a link with its addresses and neighbours.
    pub(super) fn link_gone(&mut self, index: u32) {
        if self.links.remove(&index).is_none() {
            return;
        }
        let changes = &mut self.changes;
        retain(
            &mut self.addresses,
            |address, _| address.interface != index,
            |&address| {
                changes.push(Change::AddressGone(address));
            },
        );
        retain(&mut self.neighbours, |key, _| key.0 != index, |&key| changes.push(neighbour_gone(key)));
        changes.push(Change::LinkGone(index));
    }

    pub(super) fn address(&mut self, address: InterfaceAddress) {
        if self.addresses.insert(address, self.generation).is_none() {
            self.changes.push(Change::Address(address));
        }
    }

    pub(super) fn address_gone(&mut self, address: &InterfaceAddress) {
        if self.addresses.remove(address).is_some() {
            self.changes.push(Change::AddressGone(*address));
        }
    }

    pub(super) fn neighbour(&mut self, neighbour: Neighbour) {
        let key = (neighbour.interface, neighbour.address);
        let before = self.neighbours.insert(key, (neighbour, self.generation));
        if before.is_none_or(|(before, _)| before != neighbour) {
            self.changes.push(Change::Neighbour(neighbour));
        }
    }

    pub(super) fn neighbour_gone(&mut self, neighbour: &Neighbour) {
        let key = (neighbour.interface, neighbour.address);
        if self.neighbours.remove(&key).is_some() {
            self.changes.push(neighbour_gone(key));
        }
    }

    pub(super) fn rule(&mut self, rule: Rule) {
        if self.rules.insert(rule.clone(), self.generation).is_none() {
            self.changes.push(Change::Rule(Box::new(rule)));
        }
    }

    pub(super) fn rule_gone(&mut self, rule: &Rule) {
        if self.rules.remove(rule).is_some() {
            self.changes.push(Change::RuleGone(Box::new(rule.clone())));
        }
    }

    pub(super) fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Removes what was not set since [`begin`](Self::begin).
    pub(super) fn sweep(&mut self) {
        let now = self.generation;
        let changes = &mut self.changes;
        retain(&mut self.neighbours, |_, value| value.1 == now, |&key| changes.push(neighbour_gone(key)));
        retain(
            &mut self.addresses,
            |_, &generation| generation == now,
            |&address| {
                changes.push(Change::AddressGone(address));
            },
        );
        retain(
            &mut self.rules,
            |_, &generation| generation == now,
            |rule| changes.push(Change::RuleGone(Box::new(rule.clone()))),
        );
        retain(&mut self.links, |_, value| value.1 == now, |&index| changes.push(Change::LinkGone(index)));
    }

    /// Appends the changes since the last call.
    pub(super) fn drain(&mut self, to: &mut Batch) {
        to.append(&mut self.changes);
    }
}

/// Keeps the elements that `stays` wants, and calls `gone` with the keys of the others.
fn retain<K: Ord, V>(map: &mut BTreeMap<K, V>, stays: impl Fn(&K, &V) -> bool, mut gone: impl FnMut(&K)) {
    map.retain(|key, value| {
        let stays = stays(key, value);
        if !stays {
            gone(key);
        }
        stays
    });
}

fn neighbour_gone((interface, address): (u32, IpAddr)) -> Change {
    Change::NeighbourGone { interface, address }
}
