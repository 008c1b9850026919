//! Classes that change: entries placed, tables and filters that grow.

use wirespeed_table::Outgrown;

use super::class::{GROWTH, Held, NO_PLACES, SHORT, SLOTS_FULL, Stale, d_for, elements, is_short, log_for};
use super::engine::Tss;
use super::form::Form;
use super::layout::{MOST_LOG, MOST_SLOT, table_slots, value_elements};
use super::place::Entry;
use crate::rank::Rank;
use crate::tuple::Tuple;

impl<T: Tuple, F: Form> Tss<T, F> {
    /// A class for a mask that has none, with room for so many entries and some hundredths more.
    pub(super) fn appear(&mut self, mask: T, entries: u32, more: u32) -> Result<u32, Outgrown> {
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.classes.len() < self.classes_room => {
                self.classes.push(None);
                u32::try_from(self.classes.len() - 1).expect("fewer classes than slots")
            }
            None => return Err(Outgrown("room for classes")),
        };
        let mut held = Held {
            mask,
            first: 0,
            d: d_for(entries, more),
            first_bits: 0,
            log: 0,
            bound: Rank::NONE,
            entries: 0,
            gone: 0,
            stale: Stale::Nothing,
        };
        held.first = self.take_slots(held.d)?;
        if F::FILTERED {
            held.log = log_for(entries, more);
            held.first_bits = self.take_bits(held.log)?;
        }
        self.classes[number as usize] = Some(held);
        self.masks.insert(mask, number);
        self.order.moves(number, None, Some(Rank::NONE));
        self.touch(number, Stale::All);
        Ok(number)
    }

    /// A class whose last entry went goes.
    pub(super) fn vanish(&mut self, number: u32) {
        let Some(held) = self.classes[number as usize].take() else { return };
        self.slot_runs.give_back(held.first, table_slots(held.d));
        if F::FILTERED {
            self.filters.clear(held.first_bits, elements(held.log));
            self.bit_runs.give_back(held.first_bits, elements(held.log));
        }
        self.masks.remove(&held.mask);
        self.order.moves(number, Some(held.bound), None);
        self.free.push(number);
        self.dirty.push(number);
    }

    /// The class of a number that is in use.
    #[inline(always)]
    pub(super) fn held(&mut self, number: u32) -> &mut Held<T> {
        self.classes[number as usize].as_mut().expect("a class in use")
    }

    /// Some of a class's record is other than before.
    pub(super) fn touch(&mut self, number: u32, what: Stale) {
        let held = self.held(number);
        if held.stale == Stale::Nothing {
            held.stale = what;
            self.dirty.push(number);
        } else {
            held.stale = held.stale.max(what);
        }
    }

    /// A class has another bound.
    pub(super) fn rebound(&mut self, number: u32, bound: Rank) {
        let held = self.held(number);
        held.gone = 0;
        let before = std::mem::replace(&mut held.bound, bound);
        if before != bound {
            self.order.moves(number, Some(before), Some(bound));
            self.touch(number, Stale::Bound);
        }
    }

    /// An entry of some rank went, or got a worse one. The bound stays, where a table is long, until a share
    /// of its entries went after it; so that looking for the best costs a few slots for each.
    pub(super) fn lost(&mut self, number: u32, rank: Rank) {
        let held = self.held(number);
        if held.gone == 0 && rank != held.bound {
            return;
        }
        held.gone += 1;
        let part = held.part(number);
        if part.slots() <= SHORT || held.gone >= part.slots() / 8 {
            let slots = part.first..part.first + part.slots();
            let best = slots.map(|slot| self.slots.rank(slot)).max().unwrap_or(Rank::NONE);
            self.rebound(number, best);
        }
    }

    /// Places an entry in a class that hasn't its value; the class grows where it must.
    pub(super) fn place(&mut self, number: u32, entry: Entry) -> Result<(), Outgrown> {
        let held = *self.held(number);
        self.held(number).entries += 1;
        let entries = held.entries + 1;
        if F::FILTERED {
            if 32 * u64::from(entries) > 1 << held.log && held.log < MOST_LOG {
                self.regrow_filter(number, entries)?;
            }
            self.add_bits(number, &entry);
        }
        if is_short(entries, held.d) {
            return self.regrow(number, entry);
        }
        match self.slots.place(held.part(number), entry) {
            Ok(()) => Ok(()),
            Err(homeless) => self.regrow(number, homeless),
        }
    }

    /// An entry more has its bits in the filter of its class.
    fn add_bits(&mut self, number: u32, entry: &Entry) {
        let hash = self.slots.hash(number, &entry.value);
        let Held { first_bits, log, .. } = *self.held(number);
        hash.bits(log).into_iter().for_each(|bit| self.filters.add(first_bits, bit));
    }

    /// An entry is placed in a larger table with all others of its class. What is free after its old one can
    /// be a part of the new.
    fn regrow(&mut self, number: u32, homeless: Entry) -> Result<(), Outgrown> {
        /// Sizes to try.
        const TRIES: u32 = 12;
        let mut entries = std::mem::take(&mut self.scratch);
        entries.push(homeless);
        let (count, mut d) = {
            let held = self.held(number);
            (held.entries, held.d)
        };
        for _ in 0..TRIES {
            let part = self.held(number).part(number);
            for slot in part.first..part.first + part.slots() {
                if self.slots.rank(slot) != Rank::NONE {
                    entries.push(self.slots.take(slot));
                }
            }
            self.slot_runs.give_back(part.first, part.slots());
            // What is wanted, or where there is no room for that a little more than there was.
            let wanted = d_for(count, GROWTH).max(d + d / 8 + 1);
            let least = d_for(count, 0).max(d + d / 32 + 1);
            let first = self.take_slots(wanted).map(|first| (wanted, first));
            let (larger, first) = first.or_else(|_| self.take_slots(least).map(|first| (least, first)))?;
            d = larger;
            let held = self.held(number);
            (held.first, held.d) = (first, d);
            let part = held.part(number);
            self.touch(number, Stale::All);
            while let Some(entry) = entries.pop() {
                if let Err(homeless) = self.slots.place(part, entry) {
                    entries.push(homeless);
                    break;
                }
            }
            if entries.is_empty() {
                self.scratch = entries;
                return Ok(());
            }
        }
        Err(NO_PLACES)
    }

    /// A filter twice as long, or more, of the entries that the class has.
    fn regrow_filter(&mut self, number: u32, entries: u32) -> Result<(), Outgrown> {
        let held = *self.held(number);
        self.filters.clear(held.first_bits, elements(held.log));
        self.bit_runs.give_back(held.first_bits, elements(held.log));
        let log = log_for(entries, 0).max(held.log + 1);
        let first_bits = self.take_bits(log)?;
        let held = self.held(number);
        (held.first_bits, held.log) = (first_bits, log);
        let part = held.part(number);
        self.touch(number, Stale::All);
        for slot in part.first..part.first + part.slots() {
            if self.slots.rank(slot) != Rank::NONE {
                let mut value = [0; MOST_SLOT];
                let len = value_elements(T::WORDS);
                value[..len].copy_from_slice(&self.slots.slot(slot)[..len]);
                let hash = self.slots.hash(number, &value);
                hash.bits(log).into_iter().for_each(|bit| self.filters.add(first_bits, bit));
            }
        }
        Ok(())
    }

    /// Slots for a table, vacant.
    fn take_slots(&mut self, d: u32) -> Result<u32, Outgrown> {
        if d > u32::MAX / 3 {
            return Err(SLOTS_FULL);
        }
        let first = self.slot_runs.take(table_slots(d)).ok_or(SLOTS_FULL)?;
        if self.is_building {
            self.slots.resize(self.slot_runs.end() as usize);
        }
        Ok(first)
    }

    /// Elements for a filter, zero.
    fn take_bits(&mut self, log: u32) -> Result<u32, Outgrown> {
        let first = self.bit_runs.take(elements(log)).ok_or(Outgrown("room for filters"))?;
        if self.is_building {
            self.filters.resize(self.bit_runs.end() as usize);
        }
        Ok(first)
    }
}
