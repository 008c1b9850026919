//! [`Table`]: a flow table as classes of flows by mask, the class with the highest priority first (tuple
//! space search: Srinivasan, Suri and Varghese, SIGCOMM 1999).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::class::{Class, Probe};
use super::flow::{Flow, Shape};
use super::front::{Front, Since, Used};
use super::hit::Hit;
use super::row::Row;
use crate::wire::{Key, Match};

/// A flow table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    classes: Vec<Class>,
    /// The class of each mask.
    of_mask: FxHashMap<Key, usize>,
    /// The class that changed last: mostly that of the next change.
    last: usize,
    /// The classes by their highest priority, the highest first.
    order: Vec<(u16, usize)>,
    /// The classifier for wildcards, where it is built.
    front: Option<Used>,
    /// Whether the classifier answers for each class.
    is_covered: Vec<bool>,
    /// The classes of `order` that it does not answer for.
    uncovered: Vec<(u16, usize)>,
    /// The number of classes that look at words that no short row has.
    wide: usize,
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

    /// Whether short rows have all that its flows look at.
    pub(crate) const fn is_short(&self) -> bool {
        self.wide == 0
    }

    /// The classifier for wildcards.
    pub(crate) const fn front(&self) -> Option<&Used> {
        self.front.as_ref()
    }

    /// Takes a classifier into use, with what changed since its flows were gathered; or none.
    pub(crate) fn set_front(&mut self, front: Option<(Arc<Front>, Since)>) {
        self.front = front.map(|(front, since)| Used::new(front, since));
        let is_covered =
            |class: &Class| self.front.as_ref().is_some_and(|used| used.covers(&class.shape().mask));
        self.is_covered = self.classes.iter().map(is_covered).collect();
        self.find_uncovered();
    }

    /// Finds the classes that the classifier does not answer for.
    fn find_uncovered(&mut self) {
        self.uncovered.clear();
        if self.front.is_some() {
            self.uncovered.extend(self.order.iter().filter(|&&(_, at)| !self.is_covered[at]));
        }
    }

    /// The best flow of a key of a frame that came in, by the classifier where there is one.
    pub(crate) fn find(&self, key: &Key) -> Option<Hit<'_>> {
        let Some(used) = &self.front else { return self.lookup(key) };
        let found = self.best(key, &self.uncovered);
        let least = |hit: Option<Hit<'_>>| hit.map(|hit| hit.hot.priority);
        if least(found) >= Some(used.front.best()) {
            return found;
        }
        match used.front.lookup(key) {
            Some(hit) if found.is_some_and(|found| found.hot.priority >= hit.hot.priority) => found,
            Some(hit) if used.has_lost() && hit.is_gone() => self.lookup(key),
            Some(hit) => Some(hit),
            None => found,
        }
    }

    /// The best flow of a key.
    pub(crate) fn lookup(&self, key: &Key) -> Option<Hit<'_>> {
        self.best(key, &self.order)
    }

    /// The best flow of a key in some classes, which have the highest priority first.
    #[inline]
    fn best(&self, key: &Key, classes: &[(u16, usize)]) -> Option<Hit<'_>> {
        let mut best: Option<Hit<'_>> = None;
        for &(priority, at) in classes {
            if best.is_some_and(|best| best.hot.priority >= priority) {
                break;
            }
            if let Some(found) = self.classes[at].lookup(key)
                && best.is_none_or(|best| found.hot.priority > best.hot.priority)
            {
                best = Some(found);
            }
        }
        best
    }

    /// The best flow of each row, where `found` is empty. With a classifier beside them, classes that it
    /// answers for are not asked. Short rows are for a table that [`is_short`](Self::is_short).
    #[inline]
    pub(crate) fn lookup_batch<'t, R: Row>(
        &'t self,
        rows: &[R],
        found: &mut [Option<Hit<'t>>],
        spare: &mut Vec<Probe>,
        worker: usize,
        is_beside_front: bool,
    ) {
        // Keys that a class to come may have a better flow for. Priorities fall, so a key that left stays
        // away.
        let open = spare;
        open.clear();
        open.extend((0_u32..).zip(rows).map(|(at, _)| Probe::new(at)));
        let mut has_found = false;
        for &(priority, at) in if is_beside_front { &self.uncovered } else { &self.order } {
            if has_found {
                let is_open = |found: &Hit<'_>| found.hot.priority < priority;
                open.retain(|probe| found[probe.at as usize].as_ref().is_none_or(is_open));
            }
            if open.is_empty() {
                return;
            }
            self.classes[at].lookup_batch(rows, open, |at, hit| {
                if found[at].is_none_or(|known| known.hot.priority < hit.hot.priority) {
                    hit.hot.prefetch_counts(worker);
                    found[at] = Some(hit);
                    has_found = true;
                }
            });
        }
    }

    /// The place of a mask's class.
    #[inline]
    fn class(&self, mask: &Key) -> Option<usize> {
        match self.classes.get(self.last) {
            Some(last) if last.shape().mask == *mask => Some(self.last),
            _ => self.of_mask.get(mask).copied(),
        }
    }

    /// The flow of a match and a priority.
    pub(crate) fn get(&self, matched: &Match, priority: u16) -> Option<&Arc<Flow>> {
        self.classes[self.class(&matched.mask)?].get(&matched.value, priority)
    }

    /// The shape of a mask, if there is a class of it.
    pub(crate) fn shape(&self, mask: &Key) -> Option<&Arc<Shape>> {
        self.class(mask).map(|at| self.classes[at].shape())
    }

    /// The number of flows of a mask.
    pub(crate) fn class_len(&self, mask: &Key) -> usize {
        self.class(mask).map_or(0, |at| self.classes[at].len())
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

    /// Brings near what a change of a flow looks at first.
    pub(crate) fn prefetch(&self, flow: &Flow) {
        if let Some(at) = self.class(&flow.shape().mask) {
            self.classes[at].prefetch(flow);
        }
    }

    /// Brings near what a change of the flow of a match looks at first.
    pub(crate) fn prefetch_match(&self, matched: &Match) {
        if let Some(at) = self.class(&matched.mask) {
            self.classes[at].prefetch_key(&matched.value);
        }
    }

    /// Adds a flow, in the place of one with its match and priority.
    pub(crate) fn insert(&mut self, flow: Arc<Flow>) {
        let is_of_front = self.front.as_mut().is_some_and(|front| front.note(&flow.shape().mask, false));
        let at = match self.class(&flow.shape().mask) {
            Some(at) => {
                if is_of_front && std::mem::take(&mut self.is_covered[at]) {
                    self.find_uncovered();
                }
                at
            }
            None => {
                self.is_covered.push(false);
                self.wide += usize::from(!flow.shape().extract.is_short());
                self.classes.push(Class::new(Arc::clone(flow.shape())));
                self.of_mask.insert(flow.shape().mask, self.classes.len() - 1);
                self.classes.len() - 1
            }
        };
        self.change(at, |class| class.insert(flow));
    }

    /// Removes the flow of the match and the priority of this one.
    pub(crate) fn remove(&mut self, flow: &Flow) {
        let Some(at) = self.class(&flow.shape().mask) else { return };
        self.front.iter_mut().for_each(|front| _ = front.note(&flow.shape().mask, true));
        self.change(at, |class| class.remove(flow));
        if self.classes[at].len() == 0 {
            self.wide -= usize::from(!flow.shape().extract.is_short());
            // The last class takes the place.
            self.of_mask.remove(&flow.shape().mask);
            let last = self.classes.len() - 1;
            self.classes.swap_remove(at);
            self.is_covered.swap_remove(at);
            if at != last {
                self.of_mask.insert(self.classes[at].shape().mask, at);
                self.order.iter_mut().filter(|(_, place)| *place == last).for_each(|(_, place)| *place = at);
            }
            self.find_uncovered();
        }
    }

    /// Changes a class, and keeps the order of classes.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Class)) {
        self.last = at;
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
            self.find_uncovered();
        }
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // random numbers that are small
mod tests {
    use wirespeed_rng::Rng;

    use super::*;
    use crate::pipeline::counts::Pool;
    use crate::pipeline::flow::Life;
    use crate::pipeline::row::{SHORT, Short};
    use crate::wire::{FlowMod, Instructions};

    fn flow(matched: Match, priority: u16) -> Arc<Flow> {
        let instructions = Instructions::default();
        let counts = Arc::new(Pool::new(1)).counts();
        let life = Life::new(&FlowMod::add(0, priority, matched, instructions.clone()), 0, counts);
        let shape = Arc::new(Shape::new(matched.mask));
        Arc::new(Flow::new(0, priority, &matched, shape, Arc::new(instructions), Arc::new(life)))
    }

    /// Lookups of all keys, alone and in batches, against a look at every flow.
    fn compare(table: &Table, keys: &[Key]) {
        let best = |key: &Key| {
            table.iter().filter(|flow| flow.matched().matches(key)).map(|flow| flow.priority).max()
        };
        let wanted: Vec<Option<u16>> = keys.iter().map(best).collect();
        let alone = keys.iter().map(|key| table.lookup(key).map(|hit| hit.hot.priority));
        assert_eq!(alone.collect::<Vec<_>>(), wanted);
        let priorities = |found: Vec<Option<Hit<'_>>>| {
            let whole = found.into_iter().map(|hit| {
                let (hot, flow) = (hit?.hot.priority, hit?.flow()?.priority);
                assert_eq!(hot, flow);
                Some(flow)
            });
            whole.collect::<Vec<_>>()
        };
        let mut found = vec![None; keys.len()];
        table.lookup_batch(keys, &mut found, &mut Vec::new(), 0, false);
        assert_eq!(priorities(found), wanted);
        if table.is_short() {
            let rows: Vec<Short> =
                keys.iter().map(|key| Short(std::array::from_fn(|at| key.0[at]))).collect();
            let mut found = vec![None; keys.len()];
            table.lookup_batch(&rows, &mut found, &mut Vec::new(), 0, false);
            assert_eq!(priorities(found), wanted);
        }
    }

    #[test]
    fn batches_find_the_best_flow_in_large_and_small_classes() {
        for words in [SHORT, crate::wire::WORDS] {
            let mut rng = Rng::new(words as u64);
            let keys: Vec<Key> = (0..250)
                .map(|_| Key(std::array::from_fn(|at| if at < words { rng.below(16) } else { 0 })))
                .collect();
            let mut masks: Vec<Key> = vec![Key::default()];
            masks.push(Key(std::array::from_fn(|at| if at < words { 15 } else { 0 })));
            masks.push(Key(std::array::from_fn(|at| if at < 3 { u64::MAX } else { 0 })));
            masks.extend((0..6).map(|_| {
                Key(std::array::from_fn(|at| if at < words { rng.below(16) & rng.below(16) } else { 0 }))
            }));
            let (mut table, mut flows) = (Table::default(), Vec::new());
            for number in 0..6000 {
                let mask = masks[if number % 2 == 0 { 1 + number / 2 % 2 } else { rng.below(9) as usize }];
                let of_key = keys[rng.below(250) as usize];
                let value =
                    if rng.chance(0.2) { of_key } else { Key(std::array::from_fn(|_| rng.below(16))) };
                let flow = flow(Match { fields: 0, mask, value: value.and(&mask) }, rng.below(40) as u16);
                table.insert(Arc::clone(&flow));
                flows.push(flow);
            }
            compare(&table, &keys);
            assert!(table.classes().any(|class| class.len() > 1500) && table.is_short() == (words == SHORT));
            rng.shuffle(&mut flows);
            flows.drain(..5500).for_each(|flow| table.remove(&flow));
            compare(&table, &keys);
            flows.iter().for_each(|flow| table.remove(flow));
            assert_eq!((table.len(), table.iter().count(), table.is_short()), (0, 0, true));
        }
    }
}
