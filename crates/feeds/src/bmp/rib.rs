//! [`Rib`]: the routes of all peers by prefix, and the one that counts.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::model::{Batch, Path, TableId};
use crate::state::Touched;

/// The number of a source: a view of a peer of a router.
pub(crate) type SourceId = u32;

/// The routes of all peers by prefix.
///
/// The path of a prefix is that of the shortest AS path among the active sources, then of the lowest peer
/// address, then of the source that came first, then of the lowest path identifier.
#[derive(Debug)]
pub(crate) struct Rib {
    prefixes: HashMap<IpNet, Vec<Held>>,
    sources: BTreeMap<SourceId, Source>,
    touched: Touched,
    next_source: SourceId,
    /// The number of routes, and how many there may be.
    routes: usize,
    cap: usize,
    came: u64,
}

#[derive(Debug)]
struct Held {
    path: Arc<Path>,
    source: SourceId,
    identifier: u32,
    as_path_length: u16,
    generation: u8,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    address: IpAddr,
    is_active: bool,
    generation: u8,
    routes: u64,
}

/// What becomes of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Removed,
    /// The routes that were not told again are removed.
    Swept,
    Active(bool),
}

impl Rib {
    pub(crate) fn new(cap: usize) -> Self {
        Self {
            prefixes: HashMap::new(),
            sources: BTreeMap::new(),
            touched: Touched::default(),
            next_source: 0,
            routes: 0,
            cap,
            came: 0,
        }
    }

    pub(crate) fn prefixes(&self) -> usize {
        self.prefixes.len()
    }

    /// The number of routes of a source.
    pub(crate) fn routes_of(&self, source: SourceId) -> u64 {
        self.sources.get(&source).map_or(0, |source| source.routes)
    }

    /// The number of routes that came, or came again since [`begin`](Self::begin), ever.
    pub(crate) fn came(&self) -> u64 {
        self.came
    }

    /// Adds a source, which is not active.
    pub(crate) fn add_source(&mut self, address: IpAddr) -> SourceId {
        let id = self.next_source;
        self.next_source += 1;
        self.sources.insert(id, Source { address, is_active: false, generation: 0, routes: 0 });
        id
    }

    /// Sets the route of a source; false if there are too many.
    pub(crate) fn announce(
        &mut self,
        source: SourceId,
        (identifier, prefix): (u32, IpNet),
        as_path_length: u16,
        path: Arc<Path>,
    ) -> bool {
        let Some(&Source { generation, .. }) = self.sources.get(&source) else { return true };
        let is_full = self.routes >= self.cap;
        let mut entry = match self.prefixes.entry(prefix) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(_) if is_full => return false,
            Entry::Vacant(entry) => entry.insert_entry(Vec::with_capacity(1)),
        };
        let held = entry.get_mut();
        let before = best(held, &self.sources).cloned();
        let new = Held { path, source, identifier, as_path_length, generation };
        match held.iter_mut().find(|held| held.is(source, identifier)) {
            Some(old) => {
                self.came += u64::from(old.generation != generation);
                *old = new;
            }
            None if is_full => return false,
            None => {
                held.push(new);
                self.came += 1;
                self.routes += 1;
                if let Some(source) = self.sources.get_mut(&source) {
                    source.routes += 1;
                }
            }
        }
        self.touched.note(TableId::MAIN, prefix, before, best(held, &self.sources));
        true
    }

    /// Removes the route of a source; false if it was not there.
    pub(crate) fn withdraw(&mut self, source: SourceId, (identifier, prefix): (u32, IpNet)) -> bool {
        let Entry::Occupied(mut entry) = self.prefixes.entry(prefix) else { return false };
        let held = entry.get_mut();
        let before = best(held, &self.sources).cloned();
        let Some(at) = held.iter().position(|held| held.is(source, identifier)) else { return false };
        held.swap_remove(at);
        self.routes -= 1;
        if let Some(source) = self.sources.get_mut(&source) {
            source.routes -= 1;
        }
        self.touched.note(TableId::MAIN, prefix, before, best(held, &self.sources));
        if held.is_empty() {
            entry.remove();
        }
        true
    }

    /// Starts a comparison of a source: routes that it does not tell again go when it is swept.
    pub(crate) fn begin(&mut self, source: SourceId) {
        if let Some(source) = self.sources.get_mut(&source) {
            source.generation = source.generation.wrapping_add(1);
        }
    }

    /// Lets sources meet their fates, in one pass over the routes.
    pub(crate) fn decide(&mut self, fates: &BTreeMap<SourceId, Fate>) {
        if fates.is_empty() {
            return;
        }
        let before_all = self.sources.clone();
        self.sources.retain(|id, source| match fates.get(id) {
            Some(Fate::Removed) => false,
            Some(&Fate::Active(is_active)) => {
                source.is_active = is_active;
                true
            }
            Some(Fate::Swept) | None => true,
        });
        // A peer that is new has no routes to look for.
        if fates.keys().all(|id| before_all.get(id).is_none_or(|source| source.routes == 0)) {
            return;
        }
        let (sources, touched) = (&mut self.sources, &mut self.touched);
        let mut removed = 0;
        self.prefixes.retain(|&prefix, held| {
            if !held.iter().any(|held| fates.contains_key(&held.source)) {
                return true;
            }
            let before = best(held, &before_all).cloned();
            held.retain(|held| {
                let stays = match fates.get(&held.source) {
                    Some(Fate::Removed) => false,
                    Some(Fate::Swept) => {
                        sources.get(&held.source).is_some_and(|source| source.generation == held.generation)
                    }
                    Some(Fate::Active(_)) | None => true,
                };
                if !stays {
                    removed += 1;
                    if let Some(source) = sources.get_mut(&held.source) {
                        source.routes -= 1;
                    }
                }
                stays
            });
            touched.note(TableId::MAIN, prefix, before, best(held, sources));
            !held.is_empty()
        });
        self.routes -= removed;
    }

    /// Appends the changes since the last call.
    pub(crate) fn drain(&mut self, to: &mut Batch) {
        self.touched.drain(to);
    }
}

impl Held {
    fn is(&self, source: SourceId, identifier: u32) -> bool {
        (self.source, self.identifier) == (source, identifier)
    }
}

/// The path that counts.
fn best<'a>(held: &'a [Held], sources: &BTreeMap<SourceId, Source>) -> Option<&'a Arc<Path>> {
    let rank = |held: &'a Held| {
        let source = sources.get(&held.source).filter(|source| source.is_active)?;
        Some(((held.as_path_length, source.address, held.source, held.identifier), &held.path))
    };
    held.iter().filter_map(rank).min_by_key(|&(rank, _)| rank).map(|(_, path)| path)
}
