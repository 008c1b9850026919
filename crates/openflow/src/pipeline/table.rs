//! [`Table`]: a flow table as classes of flows by mask, the class with the highest priority first (tuple
//! space search: Srinivasan, Suri and Varghese, SIGCOMM 1999).

use std::sync::Arc;

use rustc_hash::FxHashMap;
use wirespeed::image::prefetch_all;

use super::class::Class;
use super::flow::{Flow, Shape};
use crate::wire::{Key, Match};

/// A flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    classes: Vec<Class>,
    /// The class of each mask.
    of_mask: FxHashMap<Key, usize>,
    /// The classes by their highest priority, the highest first.
    order: Vec<(u16, usize)>,
    len: usize,
}

impl Table {
    /// The number of flows.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The classes with flows, by their highest priority.
    pub(crate) fn classes(&self) -> impl Iterator<Item = &Class> {
        self.order.iter().map(|&(_, at)| &self.classes[at])
    }

    /// The best flow of a key.
    #[inline]
    pub(crate) fn lookup(&self, key: &Key) -> Option<&Arc<Flow>> {
        let mut best: Option<&Arc<Flow>> = None;
        for &(priority, at) in &self.order {
            if best.is_some_and(|best| best.priority >= priority) {
                break;
            }
            if let Some(found) = self.classes[at].lookup(key)
                && best.is_none_or(|best| found.priority > best.priority)
            {
                best = Some(found);
            }
        }
        best
    }

    /// The best flow of each key, where `found` has one that is known already. Classes for which
    /// `is_left_out` are not asked.
    #[inline]
    pub(crate) fn lookup_batch<'t>(
        &'t self,
        keys: &[Key],
        found: &mut [Option<&'t Arc<Flow>>],
        spare: &mut Vec<Probe>,
        is_left_out: impl Fn(&Key) -> bool,
    ) {
        // Keys that a class to come may have a better flow for. Priorities fall, so a key that left stays
        // away.
        let open = spare;
        open.clear();
        open.extend((0_u32..).zip(keys).map(|(at, _)| Probe { at, hash: 0, slot: 0 }));
        for &(priority, at) in &self.order {
            let class = &self.classes[at];
            if is_left_out(&class.shape().mask) {
                continue;
            }
            open.retain(|probe| found[probe.at as usize].is_none_or(|found| found.priority < priority));
            if open.is_empty() {
                return;
            }
            // Each loop brings near what the next one reads.
            for probe in &mut *open {
                probe.hash = class.hash(&keys[probe.at as usize]);
                class.prefetch_slot(probe.hash);
            }
            for probe in &mut *open {
                probe.slot = class.first_slot(probe.hash);
            }
            for probe in &*open {
                let n = probe.at as usize;
                if let Some(flow) = class.lookup_from(&keys[n], probe.hash, probe.slot) {
                    match found[n] {
                        Some(known) if known.priority >= flow.priority => {}
                        _ => {
                            prefetch_all(&**flow);
                            found[n] = Some(flow);
                        }
                    }
                }
            }
        }
    }

    /// The flow of a match and a priority.
    pub(crate) fn get(&self, matched: &Match, priority: u16) -> Option<&Arc<Flow>> {
        self.classes[*self.of_mask.get(&matched.mask)?].get(&matched.value, priority)
    }

    /// The shape of a mask, if there is a class of it.
    pub(crate) fn shape(&self, mask: &Key) -> Option<&Arc<Shape>> {
        self.of_mask.get(mask).map(|&at| self.classes[at].shape())
    }

    /// The number of flows of a mask.
    pub(crate) fn class_len(&self, mask: &Key) -> usize {
        self.of_mask.get(mask).map_or(0, |&at| self.classes[at].len())
    }

    /// All flows.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.classes().flat_map(Class::iter)
    }

    /// The flows whose match is within another one.
    pub(crate) fn within(&self, wanted: &Match) -> Vec<Arc<Flow>> {
        let mut found = Vec::new();
        for class in self.classes() {
            if class.shape().mask == wanted.mask {
                found.extend(class.of_value(&wanted.value).cloned());
            } else if class.shape().mask.covers(&wanted.mask) {
                found.extend(class.iter().filter(|flow| flow.matched().is_within(wanted)).cloned());
            }
        }
        found
    }

    /// Whether a flow of a priority matches some packet that this match matches, too.
    pub(crate) fn overlaps(&self, matched: &Match, priority: u16) -> bool {
        self.iter().any(|flow| flow.priority == priority && flow.matched().overlaps(matched))
    }

    /// Adds a flow, in the place of one with its match and priority.
    pub(crate) fn insert(&mut self, flow: Arc<Flow>) {
        let at = match self.of_mask.get(&flow.shape().mask) {
            Some(&at) => at,
            None => {
                self.classes.push(Class::new(Arc::clone(flow.shape())));
                self.of_mask.insert(flow.shape().mask, self.classes.len() - 1);
                self.classes.len() - 1
            }
        };
        self.change(at, |class| class.insert(flow));
    }

    /// Removes the flow of the match and the priority of this one.
    pub(crate) fn remove(&mut self, flow: &Flow) {
        let Some(&at) = self.of_mask.get(&flow.shape().mask) else { return };
        self.change(at, |class| class.remove(flow));
        if self.classes[at].len() == 0 {
            // The last class takes the place.
            self.of_mask.remove(&flow.shape().mask);
            let last = self.classes.len() - 1;
            self.classes.swap_remove(at);
            if at != last {
                self.of_mask.insert(self.classes[at].shape().mask, at);
                self.order.iter_mut().filter(|(_, place)| *place == last).for_each(|(_, place)| *place = at);
            }
        }
    }

    /// Changes a class, and keeps the order of classes.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Class)) {
        let class = &mut self.classes[at];
        let (best, len) = (class.best(), class.len());
        change(class);
        self.len = self.len + class.len() - len;
        let now = class.best();
        if best != now {
            self.order.retain(|&(_, place)| place != at);
            if let Some(now) = now {
                let place = self.order.partition_point(|&(priority, _)| priority >= now);
                self.order.insert(place, (now, at));
            }
        }
    }
}

/// A key on its way through a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    at: u32,
    hash: u64,
    slot: u64,
}
