//! Patches: entries that come, go, and change their rank.
//!
//! A change touches the three slots of its value, and in Bloom search two counts and two elements of a
//! filter. More only where a value makes others move, a class comes, grows or goes, or its best entry does.

use wirespeed_image::{Patch, PatchBuilder};
use wirespeed_table::Outgrown;

use super::class::{Held, Stale};
use super::engine::Tss;
use super::form::Form;
use super::layout::{
    BOUND_AT, CLASS_WORDS, CLASSES, CLASSES_AT, FILTERS, FIRST_BITS_AT, FIRST_SLOT_AT, HEAD, LEAST_LOG,
    LOG_BITS_AT, ORDER, SLOTS, SUBTABLE_AT, halves, slot_elements, value_elements,
};
use super::place::{Entry, Value, value_of};
use crate::limits::take_entries;
use crate::pattern::Pattern;
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

impl<T: Tuple, F: Form> Tss<T, F> {
    pub(super) fn take_in(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
        take_entries(rules)?;
        for changed in changed {
            self.change(changed.number, changed.before.as_ref(), rules.now(changed))?;
        }
        Ok(())
    }

    pub(super) fn patch_of(&mut self, rules: &RuleSet<T>) -> Patch {
        self.writes().finish(Some((rules.len() as u64, rules.last_number().into())))
    }

    /// Makes a rule's entries those that it has now.
    fn change(
        &mut self,
        number: RuleNumber,
        before: Option<&Rule<T>>,
        now: Option<&Rule<T>>,
    ) -> Result<(), Outgrown> {
        let rank = |rule: &Rule<T>| Rank::new(rule.priority(), number);
        if let (Some(before), Some(now)) = (before, now)
            && before.has_patterns_of(now)
        {
            if rank(before) != rank(now) {
                for pattern in now.patterns() {
                    self.rerank(&pattern, rank(before), rank(now));
                }
            }
            return Ok(());
        }
        if let Some(before) = before {
            before.patterns().for_each(|pattern| self.remove(&pattern, rank(before)));
        }
        if let Some(now) = now {
            now.patterns().try_for_each(|pattern| self.insert(&pattern, rank(now)))?;
        }
        Ok(())
    }

    /// A pattern has one more rule.
    fn insert(&mut self, pattern: &Pattern<T>, rank: Rank) -> Result<(), Outgrown> {
        let number = match self.masks.get(pattern.mask()) {
            Some(&number) => number,
            None => self.appear(*pattern.mask(), 1, 0)?,
        };
        self.insert_value(number, value_of(pattern.value()), rank)
    }

    /// A value of a class has one more rule.
    pub(super) fn insert_value(&mut self, number: u32, value: Value, rank: Rank) -> Result<(), Outgrown> {
        if rank > self.held(number).bound {
            self.rebound(number, rank);
        }
        match self.find(number, &value) {
            Some(slot) => {
                let there = self.slots.rank(slot);
                self.slots.others(slot).insert(there.min(rank));
                if rank > there {
                    self.slots.set_rank(slot, rank);
                }
                Ok(())
            }
            None => self.place(number, Entry { value, rank, others: None }),
        }
    }

    /// A pattern has one rule less.
    fn remove(&mut self, pattern: &Pattern<T>, rank: Rank) {
        let Some((number, slot)) = self.slot_of(pattern) else { return };
        if self.slots.rank(slot) != rank {
            let found = self.slots.forget(slot, rank);
            debug_assert!(found, "what a rule had is there");
            return;
        }
        match self.slots.next_best(slot) {
            Some(next) => self.slots.set_rank(slot, next),
            None => self.vacate(number, slot),
        }
        if self.classes[number as usize].is_some() {
            self.lost(number, rank);
        }
    }

    /// A rule of a pattern has another rank.
    fn rerank(&mut self, pattern: &Pattern<T>, before: Rank, now: Rank) {
        let Some((number, slot)) = self.slot_of(pattern) else { return };
        if self.slots.rank(slot) == before {
            let others = self.slots.next_best(slot);
            let best = others.map_or(now, |others| others.max(now));
            if let Some(other) = others {
                self.slots.others(slot).insert(other.min(now));
            }
            self.slots.set_rank(slot, best);
        } else {
            let (found, there) = (self.slots.forget(slot, before), self.slots.rank(slot));
            debug_assert!(found, "what a rule had is there");
            self.slots.others(slot).insert(there.min(now));
            self.slots.set_rank(slot, there.max(now));
        }
        if now > self.held(number).bound {
            self.rebound(number, now);
        } else if now < before {
            self.lost(number, before);
        }
    }

    /// The last rule of a value went.
    fn vacate(&mut self, number: u32, slot: u32) {
        let entry = self.slots.take(slot);
        let held = self.held(number);
        held.entries -= 1;
        if held.entries == 0 {
            self.vanish(number);
        } else if F::FILTERED {
            let (first, log) = (held.first_bits, held.log);
            let bits = self.slots.hash(number, &entry.value).bits(log);
            bits.into_iter().for_each(|bit| self.filters.remove(first, bit));
        }
    }

    /// The class and the slot of a pattern.
    fn slot_of(&mut self, pattern: &Pattern<T>) -> Option<(u32, u32)> {
        let number = self.masks.get(pattern.mask()).copied();
        let found = number.and_then(|number| Some((number, self.find(number, &value_of(pattern.value()))?)));
        debug_assert!(found.is_some(), "what a rule had is there");
        found
    }

    /// The slot of a value.
    fn find(&mut self, number: u32, value: &Value) -> Option<u32> {
        let part = self.held(number).part(number);
        let hash = self.slots.hash(number, value);
        self.slots.find(self.slots.places(part, hash), value)
    }

    /// The writes of the patch: section by section, ascending.
    fn writes(&mut self) -> PatchBuilder {
        let mut patch = PatchBuilder::new();
        let order: Vec<_> = self.order.writes().collect();
        if self.order.len() != self.in_use {
            self.in_use = self.order.len();
            patch.set(HEAD, CLASSES_AT as u64, self.in_use as u64);
        }
        order.into_iter().for_each(|(at, class)| patch.set(ORDER, at as u64, class.into()));
        self.dirty.sort_unstable();
        self.dirty.dedup();
        for &number in &self.dirty {
            let held = self.classes[number as usize].as_ref();
            let record = record::<T, F>(held);
            let from = if held.is_some_and(|held| held.stale == Stale::Bound) { BOUND_AT } else { 0 };
            for at in (from..BOUND_AT + 2).filter(|at| !(T::WORDS..FIRST_SLOT_AT).contains(at)) {
                patch.set(CLASSES, u64::from(number) * CLASS_WORDS as u64 + at as u64, record[at].into());
            }
        }
        self.slots.dirty.sort_unstable();
        self.slots.dirty.dedup();
        for &slot in &self.slots.dirty {
            write_slot::<T>(&mut patch, slot, self.slots.slot(slot));
        }
        self.filters.dirty.sort_unstable();
        self.filters.dirty.dedup();
        for &element in &self.filters.dirty {
            patch.set(FILTERS, element.into(), self.filters.words()[element as usize].into());
        }
        self.forget_writes();
        patch
    }
}

/// Writes a slot: of a vacant one that it is.
fn write_slot<T: Tuple>(patch: &mut PatchBuilder, slot: u32, elements: &[u64]) {
    let last = slot_elements(T::WORDS) - 1;
    let first = u64::from(slot) * (last as u64 + 1);
    if elements[last] != Rank::NONE.bits() {
        let value = (first..).zip(&elements[..value_elements(T::WORDS)]);
        value.for_each(|(at, &element)| patch.set(SLOTS, at, element));
    }
    patch.set(SLOTS, first + last as u64, elements[last]);
}

/// The record of a class, or of none.
pub(super) fn record<T: Tuple, F: Form>(held: Option<&Held<T>>) -> [u32; CLASS_WORDS] {
    let mut record = [0; CLASS_WORDS];
    let Some(held) = held else {
        record[LOG_BITS_AT] = if F::FILTERED { LEAST_LOG } else { 0 };
        return record;
    };
    record[..T::WORDS].copy_from_slice(held.mask.words());
    record[FIRST_SLOT_AT] = held.first;
    record[SUBTABLE_AT] = held.d;
    record[FIRST_BITS_AT] = held.first_bits;
    record[LOG_BITS_AT] = held.log;
    record[BOUND_AT..BOUND_AT + 2].copy_from_slice(&halves(held.bound.bits()));
    record
}
