//! [`NextHops`]: the next-hop objects, and the paths that they stand for.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::paths::Paths;
use crate::model::{Hop, Path, PathKind};
use crate::netlink::{NextHopObject, Target};

/// Objects that are held at most. A table of a million routes has some thousands.
const CAP: usize = 1 << 20;
/// Members of groups that are groups themselves are followed to this depth.
const DEPTH: u32 = 4;
/// Objects that are looked at for one path at most. A group has 65,536 bytes of members at most.
const VISITS: u32 = 16_384;

/// The next-hop objects, and the paths that they stand for.
#[derive(Debug, Default)]
pub(super) struct NextHops {
    objects: HashMap<u32, Held>,
    /// The paths that were asked for.
    paths: HashMap<u32, Arc<Path>>,
    /// The objects whose path may differ from what was answered.
    changed: HashSet<u32>,
    /// The objects that were asked for in vain.
    awaited: HashSet<u32>,
    generation: u8,
}

#[derive(Debug)]
struct Held {
    target: Target,
    generation: u8,
}

impl NextHops {
    /// Sets an object; false if there are too many.
    pub(super) fn set(&mut self, NextHopObject { id, target }: NextHopObject) -> bool {
        let generation = self.generation;
        if let Some(held) = self.objects.get_mut(&id) {
            held.generation = generation;
            if held.target != target {
                held.target = target;
                self.changed.insert(id);
            }
            return true;
        }
        if self.objects.len() >= CAP {
            return false;
        }
        self.objects.insert(id, Held { target, generation });
        if self.awaited.remove(&id) {
            self.changed.insert(id);
        }
        true
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, id: u32) {
        if self.objects.remove(&id).is_some() {
            self.changed.insert(id);
        }
    }

    pub(super) fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// Removes the objects that were not set since [`begin`](Self::begin).
    pub(super) fn sweep(&mut self) {
        let generation = self.generation;
        let gone = self.objects.extract_if(|_, held| held.generation != generation);
        self.changed.extend(gone.map(|(id, _)| id));
    }

    /// The objects whose path may have changed since the last call, with the groups that they are in.
    pub(super) fn take_changed(&mut self) -> Option<HashSet<u32>> {
        if self.changed.is_empty() {
            return None;
        }
        let mut changed = std::mem::take(&mut self.changed);
        for _ in 0..DEPTH {
            let mut groups = Vec::new();
            for (&id, held) in &self.objects {
                if let Target::Group(members) = &held.target
                    && !changed.contains(&id)
                    && members.iter().any(|member| changed.contains(&member.id))
                {
                    groups.push(id);
                }
            }
            if groups.is_empty() {
                break;
            }
            changed.extend(groups);
        }
        self.paths.retain(|id, _| !changed.contains(id));
        Some(changed)
    }

    /// The path that an object stands for, as of the last [`take_changed`](Self::take_changed). `None` if the
    /// object is not there.
    pub(super) fn path(&mut self, id: u32, paths: &mut Paths) -> Option<Arc<Path>> {
        if let Some(path) = self.paths.get(&id) {
            return Some(Arc::clone(path));
        }
        if !self.objects.contains_key(&id) {
            self.wait_for(id);
            return None;
        }
        let mut hops = Vec::new();
        let is_blackhole = self.collect(id, 1, DEPTH, &mut { VISITS }, &mut hops);
        let kind = if is_blackhole && hops.is_empty() { PathKind::Blackhole } else { PathKind::Unicast };
        let path = paths.intern(kind, &hops, None);
        self.paths.insert(id, Arc::clone(&path));
        Some(path)
    }

    /// Appends the hops of an object; whether it drops packets.
    fn collect(&mut self, id: u32, weight: u16, depth: u32, visits: &mut u32, hops: &mut Vec<Hop>) -> bool {
        let Some(left) = visits.checked_sub(1) else { return false };
        *visits = left;
        let Some(held) = self.objects.get(&id) else {
            self.wait_for(id);
            return false;
        };
        match &held.target {
            Target::Blackhole => true,
            Target::Hop(hop) => {
                hops.push(Hop { weight, ..*hop });
                false
            }
            Target::Group(_) if depth == 0 => false,
            Target::Group(members) => members.clone().iter().fold(false, |drops, member| {
                self.collect(member.id, member.weight, depth - 1, visits, hops) | drops
            }),
        }
    }

    fn wait_for(&mut self, id: u32) {
        // A route of an object that never comes waits as well without being in the set: a later comparison
        // with the source tells it again.
        if self.awaited.len() < CAP {
            self.awaited.insert(id);
        }
    }
}
