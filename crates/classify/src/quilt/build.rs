//! [`Quilt`]: the control plane.

use wirespeed_image::{Image, ImageError, Patch};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::cell::Cell;
use super::full::Full;
use super::layout::{
    CELLS, COUNT_AT, FACTOR_AT, GROUPS, HEAD, KEYS_AT, LAYERS, QuiltTable, RANKS, SHIFT_AT, SLOTS, Sizes,
    WORDS_AT, allocate, record_len,
};
use super::scan;
use super::space::MOST_SLOTS;
use super::store::Store;
use super::tune;
use crate::rank::Rank;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Builds, and keeps up to date, a table of merged classes.
#[derive(Clone, Debug)]
pub struct Quilt<T: Tuple> {
    store: Store<T>,
    /// Cells that there were when the layers were chosen.
    planned: usize,
}

const NAME: &str = "quilt";

/// The head room of a table that grows, in hundredths.
const GROWN: u32 = 3;

/// Cells that any table may have more before its layers are chosen anew.
const FEW: usize = 64;

/// How many times its slots and groups a table may need after one call and still grow.
const MOST_GROWTH: u64 = 4;

/// Layers and what is scanned are as many as the table has room for: where more are needed, other layers are.
fn set_limits<T: Tuple>(store: &mut Store<T>, Sizes { layers, slots, groups, scan }: Sizes) {
    let slots = (MOST_GROWTH * slots).min(MOST_SLOTS.into());
    let groups = (MOST_GROWTH * groups).min(GROUPS.into());
    store.set_limits(in_memory(layers), to_u32(slots), to_u32(groups), in_memory(scan));
}

impl<T: Tuple> Engine<T> for Quilt<T> {
    const NAME: &'static str = NAME;
    const STANDING: Standing = Standing::Recommended;
    /// A table that grows costs copies of its sections, which is little beside as many updates.
    const HEAD_ROOM: u32 = GROWN;
    const LATER_HEAD_ROOM: u32 = GROWN;
    type Table = QuiltTable<T>;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, QuiltTable<T>), BuildError> {
        let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let highest = rules.iter().map(|(_, rule)| rule.priority()).max().unwrap_or(0);
        let seed = options.seed.unwrap_or_else(random);
        let cells = cells(rules)?;
        let mut store = tune::store(&cells, seed, u32::BITS - highest.leading_zeros())
            .map_err(|full| too_many(full, cells.len() as u64))?;
        store.pack();
        let sizes = sizes(&store, options);
        let image = allocate::<T>(sizes, options.memory_cap)?;
        let image = compile(&store, rules, image)?;
        store.settle();
        set_limits(&mut store, sizes);
        let planned = store.known.len();
        Ok((Self { store, planned }, QuiltTable::new(image)))
    }

    fn take(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        changed: &[Changed<T>],
    ) -> Result<(), Outgrown> {
        if self.store.known.len() as u64 > most_cells(rules) {
            return Err(Outgrown("cells"));
        }
        self.store.take_in(table.view().into(), rules, changed).map_err(|Full(what)| Outgrown(what))
    }

    fn patch(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        _: &[Changed<T>],
    ) -> Result<Patch, Outgrown> {
        let Sizes { slots, groups, .. } = table.sizes();
        if u64::from(self.store.directories.end()) > slots {
            return Err(Outgrown("slots"));
        }
        if u64::from(self.store.buckets.end()) > groups {
            return Err(Outgrown("groups of cells"));
        }
        Ok(self.store.patch(table.view().into(), rules))
    }

    fn grow(
        &mut self,
        table: &Self::Table,
        rules: &RuleSet<T>,
        options: &BuildOptions,
    ) -> Option<Self::Table> {
        // Layers that were chosen for fewer rules are not the best ones for many more.
        if self.store.known.len() > 2 * self.planned + FEW {
            return None;
        }
        let (before, wanted) = (table.sizes(), sizes(&self.store, options));
        let sizes = Sizes { layers: before.layers, scan: before.scan, ..wanted };
        let mut image = table.resized(sizes, options.memory_cap).ok()?;
        image.apply(&self.store.patch(table.view().into(), rules)).ok()?;
        set_limits(&mut self.store, sizes);
        Some(QuiltTable::new(image))
    }

    fn memory_usage(&self) -> u64 {
        self.store.memory_usage()
    }
}

/// Cells that the rules of a set may make, so many and some for each rule. Ranges of long addresses make a
/// few hundred each.
const MOST_CELLS: u64 = 1 << 18;
/// Cells that each rule adds to that: as many as one is taken apart into at most, where that is the choice.
const CELLS_A_RULE: u64 = 32;

fn most_cells<T: Tuple>(rules: &RuleSet<T>) -> u64 {
    MOST_CELLS + CELLS_A_RULE * rules.len() as u64
}

/// What ran out, for so many cells.
fn too_many(Full(what): Full, cells: u64) -> BuildError {
    let limit = if what == scan::FULL { scan::MOST_CELLS } else { GROUPS.into() };
    BuildError::Limit { engine: NAME, what, limit, found: cells.max(limit + 1) }
}

/// The cells of all rules, in the order of their numbers; refused before there are too many.
fn cells<T: Tuple>(rules: &RuleSet<T>) -> Result<Vec<(Cell<T>, Rank)>, BuildError> {
    let (mut cells, limit) = (Vec::new(), most_cells(rules));
    for (number, rule) in rules.sorted() {
        let rank = Rank::new(rule.priority(), number);
        match Cell::of(rule) {
            Some(cell) => cells.push((cell, rank)),
            None => cells.extend(Cell::several(rule).into_iter().map(|cell| (cell, rank))),
        }
        let found = cells.len() as u64;
        if found > limit {
            return Err(BuildError::Limit { engine: NAME, what: "cells", limit, found });
        }
    }
    Ok(cells)
}

/// Groups of cells to be scanned that there is room for in any case. Where there are some, there is room for
/// as many again.
const SCAN_ROOM: u64 = 4;

/// Groups that are free in a table without head room.
const GROUPS_AT_LEAST: u64 = 8;

/// What a store takes, with room for what comes.
fn sizes<T: Tuple>(store: &Store<T>, options: &BuildOptions) -> Sizes {
    if options.grows && !options.tight {
        return growing(store, options);
    }
    let least = |used: u64| if options.tight { 0 } else { used / 8 };
    let with_room = |used: u64| used + used * u64::from(options.head_room) / 100 + least(used);
    // Rules that come one by one lie less dense than those that masks were chosen for.
    let groups = with_room(store.buckets.end().into()).max(with_room(store.known.len() as u64)) + 256;
    // What is scanned now may come to lie in layers when it goes and comes again.
    let slots = u64::from(store.directories.end()) + 2 * store.scan.len() as u64;
    let (groups, slots) = match options.tight {
        true => (u64::from(store.buckets.end()) + GROUPS_AT_LEAST, store.directories.end().into()),
        false => (groups, with_room(slots) + 2048),
    };
    Sizes {
        layers: with_room(store.layers.len() as u64) * 2 + 64,
        slots,
        groups: groups.min(GROUPS.into()),
        scan: with_room(2 * store.scan.groups() as u64) + SCAN_ROOM,
    }
}

/// What a store takes, with a little room, for a table that gets more when it needs it.
fn growing<T: Tuple>(store: &Store<T>, options: &BuildOptions) -> Sizes {
    let with_room = |used: u64| used + used * u64::from(options.head_room) / 100;
    Sizes {
        layers: store.layers.len() as u64 * 2 + 64,
        slots: with_room(store.directories.end().into()) + 256,
        groups: (with_room(store.buckets.end().into()) + 32).min(GROUPS.into()),
        scan: with_room(2 * store.scan.groups() as u64) + SCAN_ROOM,
    }
}

fn compile<T: Tuple>(store: &Store<T>, rules: &RuleSet<T>, mut image: Image) -> Result<Image, ImageError> {
    image.set_counts(rules.len() as u64, rules.last_number().into());
    let head = image.section_mut::<u64>(HEAD)?;
    head[WORDS_AT] = T::WORDS as u64;
    head[COUNT_AT] = store.layers.len() as u64;
    head[SHIFT_AT] = store.shift.into();
    head[FACTOR_AT] = store.seeds.factor.into();
    for (element, keys) in head[KEYS_AT..].iter_mut().zip(store.seeds.keys.chunks_exact(2)) {
        *element = u64::from(keys[0]) | u64::from(keys[1]) << 32;
    }
    let layers = image.section_mut::<u64>(LAYERS)?;
    for (place, record) in layers.chunks_exact_mut(record_len::<T>()).enumerate().take(store.layers.len()) {
        record.iter_mut().zip(store.layers.record(place)).for_each(|(to, element)| *to = element);
    }
    put(image.section_mut::<u64>(SLOTS)?, store.directories.slots());
    store.buckets.write_cells(image.section_mut::<u64>(CELLS)?);
    put(image.section_mut::<u64>(RANKS)?, store.buckets.all_ranks());
    store.scan.compile(&mut image)?;
    Ok(image)
}

/// Writes the elements that there are, at the start of a section that has room for more.
fn put(section: &mut [u64], elements: &[u64]) {
    section[..elements.len()].copy_from_slice(elements);
}

fn in_memory(number: u64) -> usize {
    usize::try_from(number).expect("it is in memory")
}

fn to_u32(number: u64) -> u32 {
    u32::try_from(number).expect("slots have indices of 31 bits, groups of 21")
}
