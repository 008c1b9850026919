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
use super::store::Store;
use super::tune;
use crate::rank::Rank;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// Builds, and keeps up to date, a table of merged classes.
#[derive(Clone, Debug)]
pub struct Quilt<T: Tuple> {
    store: Store<T>,
}

const NAME: &str = "quilt";

impl<T: Tuple> Engine<T> for Quilt<T> {
    const NAME: &'static str = NAME;
    const STANDING: Standing = Standing::Recommended;
    type Table = QuiltTable<T>;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, QuiltTable<T>), BuildError> {
        let random = || std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let highest = rules.iter().map(|(_, rule)| rule.priority()).max().unwrap_or(0);
        let seed = options.seed.unwrap_or_else(random);
        let cells = cells(rules)?;
        let mut store = tune::store(&cells, seed, u32::BITS - highest.leading_zeros())
            .map_err(|full| too_many(full, cells.len() as u64))?;
        let sizes = sizes(&store, options);
        let image = allocate::<T>(sizes, options.memory_cap)?;
        let scan = in_memory(sizes.scan);
        store.set_limits(in_memory(sizes.layers), to_u32(sizes.slots), to_u32(sizes.groups), scan);
        let image = compile(&store, rules, image)?;
        Ok((Self { store }, QuiltTable::new(image)))
    }

    fn take(&mut self, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
        if self.store.known.len() as u64 > most_cells(rules) {
            return Err(Outgrown("cells"));
        }
        self.store.take_in(rules, changed).map_err(|Full(what)| Outgrown(what))
    }

    fn patch(&mut self, _: &Self::Table, rules: &RuleSet<T>, _: &[Changed<T>]) -> Result<Patch, Outgrown> {
        Ok(self.store.patch(rules))
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
    put(image.section_mut::<u64>(RANKS)?, store.buckets.ranks());
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
