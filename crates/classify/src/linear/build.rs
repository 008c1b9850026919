//! [`Linear`]: the control plane of linear search.

use std::marker::PhantomData;

use wirespeed_image::{Image, ImageError, Patch};
use wirespeed_table::{BuildError, BuildOptions, Engine, Outgrown, Standing};

use super::layout::{
    ENTRIES, GROUPS_AT, HEAD, LANES, LinearTable, NEVER, NUMBERS, PRIORITIES, WORDS_AT, allocate, value_at,
};
use super::order::{Held, Key, Order};
use crate::limits::check_entries;
use crate::rules::{Changed, Entry, RuleSet};
use crate::tuple::Tuple;

/// Builds, and keeps up to date, a table for linear search.
#[derive(Clone, Debug)]
pub struct Linear<T> {
    pub(super) order: Order<T>,
    pub(super) used: usize,
    pub(super) tuple: PhantomData<fn() -> T>,
}

/// The most lanes, so that an index of one has 32 bits.
const MOST_LANES: u64 = 1 << 32;

impl<T: Tuple> Engine<T> for Linear<T> {
    const NAME: &'static str = "linear";
    const STANDING: Standing = Standing::Niche("a dozen rules");
    type Table = LinearTable<T>;

    fn build(rules: &RuleSet<T>, options: &BuildOptions) -> Result<(Self, LinearTable<T>), BuildError> {
        check_entries(Self::NAME, rules)?;
        let used = rules.entries_len().div_ceil(full(options.head_room));
        // An eighth of the groups is for what comes after all others.
        let groups = used + if options.tight { 0 } else { used / 8 } + 2;
        if groups * LANES as u64 > MOST_LANES {
            let (limit, found) = (MOST_LANES * 7 / 8, rules.entries_len());
            return Err(BuildError::Limit { engine: Self::NAME, what: "entries", limit, found });
        }
        let in_memory = |groups: u64| usize::try_from(groups).expect("fewer than lanes");
        let (used, groups) = (in_memory(used), in_memory(groups));
        let image = allocate::<T>(groups, options.memory_cap)?;
        let mut order = Order::new(&held(rules), used, groups);
        order.take_dirty();
        let image = compile(&order, used, rules, image)?;
        Ok((Self { order, used, tuple: PhantomData }, LinearTable::new(image)))
    }

    fn take(&mut self, _: &Self::Table, rules: &RuleSet<T>, changed: &[Changed<T>]) -> Result<(), Outgrown> {
        self.take_in(rules, changed)
    }

    fn patch(&mut self, _: &Self::Table, rules: &RuleSet<T>, _: &[Changed<T>]) -> Result<Patch, Outgrown> {
        Ok(self.patch_of(rules))
    }

    fn memory_usage(&self) -> u64 {
        self.order.memory_usage()
    }
}

/// Entries that a group is given, so that all have the room that is wanted.
fn full(head_room: u32) -> u64 {
    let lanes = LANES as u64;
    (lanes * 100 / (100 + u64::from(head_room))).clamp(lanes / 2, lanes)
}

/// The entries in order.
fn held<T: Tuple>(rules: &RuleSet<T>) -> Vec<Held<T>> {
    let (mut last, mut place) = (None, 0);
    rules
        .ranked()
        .into_iter()
        .map(|Entry { pattern, rank }| {
            place = if last == Some(rank) { place + 1 } else { 0 };
            last = Some(rank);
            Held { key: Key::new(rank, place), pattern }
        })
        .collect()
}

fn compile<T: Tuple>(
    order: &Order<T>,
    used: usize,
    rules: &RuleSet<T>,
    mut image: Image,
) -> Result<Image, ImageError> {
    image.set_counts(rules.len() as u64, rules.last_number().into());
    let head = image.section_mut::<u64>(HEAD)?;
    head[WORDS_AT] = T::WORDS as u64;
    head[GROUPS_AT] = used as u64;
    let entries = image.section_mut::<u32>(ENTRIES)?;
    for (group, held) in order.groups().iter().enumerate() {
        for lane in 0..LANES {
            for word in 0..T::WORDS {
                let at = value_at(T::WORDS, group, word, lane);
                (entries[at], entries[at + LANES]) = words_of(held.get(lane), word);
            }
        }
    }
    let lanes = || {
        let groups = order.groups().iter().enumerate();
        groups.flat_map(|(group, held)| {
            held.iter().enumerate().map(move |(lane, held)| (group * LANES + lane, held))
        })
    };
    let numbers = image.section_mut::<u32>(NUMBERS)?;
    lanes().for_each(|(lane, held)| numbers[lane] = held.key.rank().result());
    let priorities = image.section_mut::<u32>(PRIORITIES)?;
    lanes().for_each(|(lane, held)| priorities[lane] = held.key.rank().priority());
    Ok(image)
}

/// The value and the mask of a lane's word.
pub(super) fn words_of<T: Tuple>(held: Option<&Held<T>>, word: usize) -> (u32, u32) {
    held.map_or((NEVER, 0), |held| (held.pattern.value().words()[word], held.pattern.mask().words()[word]))
}
