//! [`Tss`]: the control plane of tuple search and Bloom search, and its compilation.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;

use wirespeed_image::{Image, Patch};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::class::{Held, Stale};
use super::engine::Tss;
use super::filter::Filters;
use super::form::Form;
use super::hash::Keys;
use super::layout::{
    CLASS_WORDS, CLASSES, FILTERS, HEAD, MOST_BITS, MOST_SLOTS, ORDER, Room, SLOTS, TssTable, allocate,
    head_of, slot_elements,
};
use super::order::Order;
use super::place::{Entry, Slots, value_of};
use super::runs::Runs;
use crate::limits::check_entries;
use crate::rules::{Changed, RuleSet};
use crate::seeded::Seeded;
use crate::tuple::Tuple;

/// Keys to try. One is enough but for a chance of one in billions.
const ATTEMPTS: u64 = 4;
/// Head room in any table, in hundredths.
const LEAST: u32 = 25;
/// Head room in a table that would be over its cap otherwise.
const LEAST_TIGHT: u32 = 2;

impl<T: Tuple, F: Form> Engine<T> for Tss<T, F> {
    const NAME: &'static str = F::NAME;
    const STANDING: Standing = Standing::Paper("GSwitch, CoNEXT 2014");
    type Table = TssTable<T, F>;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, Self::Table), BuildError> {
        let seed = options.seed.unwrap_or_else(|| RandomState::new().hash_one(0));
        check_entries(F::NAME, rules)?;
        // Fewer slots than entries never do.
        let (found, limit) = (rules.entries_len(), MOST_SLOTS / 2);
        if found > limit {
            return Err(BuildError::Limit { engine: F::NAME, what: "entries", limit, found });
        }
        let more = options.head_room.min(1_000);
        for attempt in 0..ATTEMPTS {
            let keys = Keys::of(seed, attempt);
            if let Ok(mut engine) = Self::of(rules, keys, seed, more) {
                let least = if options.tight { LEAST_TIGHT } else { LEAST };
                let image = engine.image(rules, &keys, least + more, options.memory_cap)?;
                return Ok((engine, TssTable::new(image)));
            }
        }
        let (what, limit) = ("attempts to place the entries of a class", ATTEMPTS);
        Err(BuildError::Limit { engine: F::NAME, what, limit, found: limit + 1 })
    }

    fn take(&mut self, _: &Self::Table, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
        self.take_in(rules, changed)
    }

    fn patch(&mut self, _: &Self::Table, rules: &RuleSet<T>, _: &[Changed<T>]) -> Result<Patch, Outgrown> {
        Ok(self.patch_of(rules))
    }

    fn memory_usage(&self) -> u64 {
        let classes = self.classes.capacity() * size_of::<Option<Held<T>>>()
            + self.masks.capacity() * size_of::<(T, u32)>()
            + self.scratch.capacity() * size_of::<Entry>();
        classes as u64
            + self.order.memory_usage()
            + self.slots.memory_usage()
            + self.slot_runs.memory_usage()
            + self.filters.memory_usage()
            + self.bit_runs.memory_usage()
    }
}

impl<T: Tuple, F: Form> Tss<T, F> {
    /// All rules placed, in sections as long as it takes.
    fn of(rules: &RuleSet<T>, keys: Keys, seed: u64, more: u32) -> Result<Self, Outgrown> {
        let in_u32 = |most: u64| u32::try_from(most).expect("sections are indexed by 32 bits");
        let mut engine = Self {
            classes: Vec::new(),
            masks: HashMap::with_hasher(Seeded(seed)),
            free: Vec::new(),
            classes_room: usize::MAX,
            order: Order::default(),
            in_use: 0,
            dirty: Vec::new(),
            slots: Slots::new(keys, T::WORDS),
            slot_runs: Runs::new(in_u32(MOST_SLOTS)),
            filters: Filters::default(),
            bit_runs: Runs::new(in_u32(MOST_BITS)),
            scratch: Vec::new(),
            is_building: true,
            form: PhantomData,
        };
        for class in rules.classes().0 {
            // Several rules may have one value.
            let entries = u32::try_from(class.entries.len()).expect("checked against the limit");
            let number = engine.appear(class.mask, entries, more)?;
            for (value, rank) in class.entries {
                engine.insert_value(number, value_of(&value), rank)?;
            }
        }
        engine.is_building = false;
        Ok(engine)
    }

    /// Its sections, with room for what comes.
    fn image(
        &mut self,
        rules: &RuleSet<T>,
        keys: &Keys,
        more: u32,
        cap: Option<u64>,
    ) -> Result<Image, BuildError> {
        let room = self.room(more);
        let mut image = allocate::<T, F>(room, cap)?;
        self.shorten(room);
        image.set_counts(rules.len() as u64, rules.last_number().into());
        let order: Vec<_> = self.order.writes().map(|(_, class)| class).collect();
        self.in_use = order.len();
        let head = head_of::<T>(keys, order.len() as u64);
        image.section_mut::<u64>(HEAD)?.copy_from_slice(&head);
        image.section_mut::<u32>(ORDER)?[..order.len()].copy_from_slice(&order);
        let records = image.section_mut::<u32>(CLASSES)?.as_chunks_mut::<CLASS_WORDS>().0;
        let held = self.classes.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        records.iter_mut().zip(held).for_each(|(record, held)| *record = super::update::record::<T, F>(held));
        image.section_mut::<u64>(SLOTS)?.copy_from_slice(self.slots.elements());
        image.section_mut::<u32>(FILTERS)?.copy_from_slice(self.filters.words());
        self.forget_writes();
        Ok(image)
    }

    /// Room for so many hundredths more of all, and some for the smallest tables.
    fn room(&self, more: u32) -> Room {
        let with_more = |used: u64, some: u64| used + used * u64::from(more) / 100 + some;
        let filters = if F::FILTERED { with_more(self.bit_runs.end().into(), 64) } else { 1 };
        Room {
            classes: with_more(self.classes.len() as u64, 16),
            slots: with_more(self.slot_runs.end().into(), 96).min(MOST_SLOTS - 1),
            filters: filters.min(MOST_BITS - 1),
        }
    }

    /// Sections are as long as those of the image.
    fn shorten(&mut self, room: Room) {
        let in_memory = |len: u64| usize::try_from(len).expect("they were allocated");
        let in_u32 = |len: u64| u32::try_from(len).expect("fewer than the most");
        self.classes_room = in_memory(room.classes);
        self.slot_runs.shorten(in_u32(room.slots));
        self.bit_runs.shorten(in_u32(room.filters));
        self.slots.resize(in_memory(room.slots));
        self.filters.resize(in_memory(room.filters));
        debug_assert_eq!(self.slots.elements().len(), in_memory(room.slots) * slot_elements(T::WORDS));
    }

    /// All is as in the image.
    pub(super) fn forget_writes(&mut self) {
        self.slots.dirty.clear();
        self.filters.dirty.clear();
        for number in self.dirty.drain(..) {
            if let Some(held) = &mut self.classes[number as usize] {
                held.stale = Stale::Nothing;
            }
        }
    }
}
