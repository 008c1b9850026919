//! [`Routes`]: the candidates of every prefix of every table.
//!
//! A prefix with one candidate, as nearly all are, takes 32 bytes of a hash map for IPv4 and 48 for IPv6.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashMap;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::candidates::{
    Candidate, Generation, Order, Withdrawn, announce_v4, announce_v6, best, withdraw_v4, withdraw_v6,
};
use super::paths::Paths;
use super::policy::Policy;
use super::touched::Touched;
use crate::model::{Batch, Hop, Path, TableId};
use crate::netlink::RouteMessage;

/// The candidates of every prefix of every table.
#[derive(Debug)]
pub(super) struct Routes {
    policy: Policy,
    /// The number of prefixes, and how many there may be.
    prefixes: usize,
    cap: usize,
    tables: BTreeMap<TableId, Tables>,
    generation_v4: Generation,
    generation_v6: Generation,
    touched: Touched,
    /// The prefixes that came, or came again since a comparison began, ever.
    came: u64,
    /// The candidates of the prefix that is edited; kept for its memory.
    edited: Vec<Candidate>,
}

/// The prefixes of one table.
#[derive(Debug, Default)]
struct Tables {
    v4: HashMap<Ipv4Net, Slot>,
    v6: HashMap<Ipv6Net, Slot>,
}

/// The candidates of a prefix, best first.
#[derive(Debug)]
enum Slot {
    One(Candidate),
    Several(Box<[Candidate]>),
}

impl Routes {
    pub(super) fn new(policy: Policy, cap: usize) -> Self {
        Self {
            policy,
            prefixes: 0,
            cap,
            tables: BTreeMap::new(),
            generation_v4: Generation::MIN,
            generation_v6: Generation::MIN,
            touched: Touched::default(),
            came: 0,
            edited: Vec::new(),
        }
    }

    pub(super) fn prefixes(&self) -> usize {
        self.prefixes
    }

    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// The number of prefixes that came, or came again since a comparison began, ever.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Adds a candidate; false if there are too many prefixes.
    pub(super) fn announce(
        &mut self,
        table: TableId,
        prefix: IpNet,
        mut candidate: Candidate,
        order: Order,
    ) -> bool {
        candidate.generation = match prefix {
            IpNet::V4(_) => self.generation_v4,
            IpNet::V6(_) => self.generation_v6,
        };
        let policy = self.policy;
        let comes = self.edit(table, prefix, |candidates| {
            let comes = candidates.iter().all(|other| other.generation != candidate.generation);
            match (policy, prefix) {
                (Policy::Single, _) => {
                    candidates.clear();
                    candidates.push(candidate);
                }
                (Policy::Kernel, IpNet::V4(_)) => announce_v4(candidates, candidate, order),
                (Policy::Kernel, IpNet::V6(_)) => announce_v6(candidates, candidate, order),
            }
            comes
        });
        self.came += u64::from(comes == Some(true));
        comes.is_some()
    }

    /// Removes a candidate, or a part of one; false if it was not there.
    pub(super) fn withdraw(&mut self, route: &RouteMessage<'_>, hops: &[Hop], paths: &mut Paths) -> bool {
        let gone = Withdrawn {
            metric: route.metric,
            object: route.object,
            protocol: route.protocol,
            kind: route.kind,
            hops,
        };
        let policy = self.policy;
        self.edit(route.table, route.prefix, |candidates| match (policy, route.prefix) {
            (Policy::Single, _) => {
                let was_there = !candidates.is_empty();
                candidates.clear();
                was_there
            }
            (Policy::Kernel, IpNet::V4(_)) => withdraw_v4(candidates, &gone),
            (Policy::Kernel, IpNet::V6(_)) => withdraw_v6(candidates, &gone, paths),
        })
        .unwrap_or(false)
    }

    /// Edits the candidates of a prefix, and notes it if its path changes. `None` if the prefix is one too
    /// many.
    fn edit<R>(
        &mut self,
        table: TableId,
        prefix: IpNet,
        edit: impl FnOnce(&mut Vec<Candidate>) -> R,
    ) -> Option<R> {
        let has_room = self.prefixes < self.cap;
        let tables = self.tables.entry(table).or_default();
        let (edited, touched) = (&mut self.edited, &mut self.touched);
        let edit = |candidates: &mut Vec<Candidate>| {
            let before = best(candidates).cloned();
            let result = edit(candidates);
            touched.note(table, prefix, before, best(candidates));
            result
        };
        let done = match prefix {
            IpNet::V4(prefix) => edit_in(&mut tables.v4, prefix, has_room, edited, edit),
            IpNet::V6(prefix) => edit_in(&mut tables.v6, prefix, has_room, edited, edit),
        };
        if tables.v4.is_empty() && tables.v6.is_empty() {
            self.tables.remove(&table);
        }
        let (result, grown) = done?;
        self.prefixes = self.prefixes.saturating_add_signed(grown);
        Some(result)
    }

    pub(super) fn begin_v4(&mut self) {
        self.generation_v4 = after(self.generation_v4);
    }

    pub(super) fn begin_v6(&mut self) {
        self.generation_v6 = after(self.generation_v6);
    }

    /// Removes the IPv4 candidates that are not of this generation.
    pub(super) fn sweep_v4(&mut self) {
        let generation = self.generation_v4;
        self.retain_v4(|candidates| candidates.retain(|candidate| candidate.generation == generation));
    }

    /// Removes the IPv6 candidates that are not of this generation.
    pub(super) fn sweep_v6(&mut self) {
        let generation = self.generation_v6;
        self.retain_v6(|candidates| candidates.retain(|candidate| candidate.generation == generation));
    }

    /// Gives the candidates of changed next-hop objects their new path. One whose object is gone goes as
    /// well, or waits for it without a path if `keep_orphans`.
    pub(super) fn resolve_again(
        &mut self,
        changed: &HashSet<u32>,
        keep_orphans: bool,
        mut path: impl FnMut(u32) -> Option<Arc<Path>>,
    ) {
        let nowhere = Arc::new(Path::unicast([]));
        let mut resolve = |candidates: &mut Vec<Candidate>| {
            candidates.retain_mut(|candidate| {
                if candidate.object == 0 || !changed.contains(&candidate.object) {
                    return true;
                }
                let path = path(candidate.object);
                let stays = path.is_some() || keep_orphans;
                candidate.path = path.unwrap_or_else(|| Arc::clone(&nowhere));
                stays
            });
        };
        self.retain_v4(&mut resolve);
        self.retain_v6(&mut resolve);
    }

    fn retain_v4(&mut self, mut edit: impl FnMut(&mut Vec<Candidate>)) {
        for (&table, tables) in &mut self.tables {
            let note = |prefix: Ipv4Net, before, now: Option<&_>| {
                self.touched.note(table, prefix.into(), before, now);
            };
            self.prefixes -= edit_all(&mut tables.v4, &mut self.edited, &mut edit, note);
        }
    }

    fn retain_v6(&mut self, mut edit: impl FnMut(&mut Vec<Candidate>)) {
        for (&table, tables) in &mut self.tables {
            let note = |prefix: Ipv6Net, before, now: Option<&_>| {
                self.touched.note(table, prefix.into(), before, now);
            };
            self.prefixes -= edit_all(&mut tables.v6, &mut self.edited, &mut edit, note);
        }
    }

    /// Appends the changes since the last call.
    pub(super) fn drain(&mut self, to: &mut Batch) {
        self.touched.drain(to);
    }
}

const fn after(generation: Generation) -> Generation {
    match generation.checked_add(1) {
        Some(generation) => generation,
        None => Generation::MIN,
    }
}

/// Edits the candidates under a key, and says by how many keys the map grew. `None` if there is no room for a
/// new key.
fn edit_in<K: Eq + Hash, R>(
    map: &mut HashMap<K, Slot>,
    key: K,
    has_room: bool,
    edited: &mut Vec<Candidate>,
    edit: impl FnOnce(&mut Vec<Candidate>) -> R,
) -> Option<(R, isize)> {
    edited.clear();
    match map.entry(key) {
        Entry::Occupied(mut entry) => {
            take(entry.get_mut(), edited);
            let result = edit(edited);
            match put(edited) {
                Some(slot) => {
                    entry.insert(slot);
                    Some((result, 0))
                }
                None => {
                    entry.remove();
                    Some((result, -1))
                }
            }
        }
        Entry::Vacant(entry) => {
            if !has_room {
                return None;
            }
            let result = edit(edited);
            let slot = put(edited);
            let grown = isize::from(slot.is_some());
            if let Some(slot) = slot {
                entry.insert(slot);
            }
            Some((result, grown))
        }
    }
}

/// Edits the candidates of all keys, and says how many keys lost their last one.
fn edit_all<K: Copy + Eq + Hash>(
    map: &mut HashMap<K, Slot>,
    edited: &mut Vec<Candidate>,
    edit: &mut dyn FnMut(&mut Vec<Candidate>),
    mut note: impl FnMut(K, Option<Arc<Path>>, Option<&Arc<Path>>),
) -> usize {
    let size = map.len();
    map.retain(|&key, slot| {
        edited.clear();
        take(slot, edited);
        let before = best(edited).cloned();
        edit(edited);
        note(key, before, best(edited));
        put(edited).map(|rest| *slot = rest).is_some()
    });
    size - map.len()
}

/// Moves the candidates out of a slot.
fn take(slot: &mut Slot, to: &mut Vec<Candidate>) {
    match std::mem::replace(slot, Slot::Several(Box::default())) {
        Slot::One(candidate) => to.push(candidate),
        Slot::Several(candidates) => to.extend(candidates),
    }
}

/// Moves the candidates into a slot; `None` if there are none.
fn put(candidates: &mut Vec<Candidate>) -> Option<Slot> {
    match candidates.len() {
        0 => None,
        1 => candidates.pop().map(Slot::One),
        _ => Some(Slot::Several(candidates.drain(..).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_as_small_as_the_documentation_says() {
        assert_eq!(
            (size_of::<Slot>(), size_of::<(Ipv4Net, Slot)>(), size_of::<(Ipv6Net, Slot)>()),
            (24, 32, 48)
        );
    }
}
