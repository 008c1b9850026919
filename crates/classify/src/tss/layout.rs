//! The sections of tuple search and Bloom search, and what their elements say.
//!
//! ```text
//! head      12 × u64   W, the words of a tuple; C, the classes in use; S, the u32 of a slot; M0, M1, M2; 12 keys, two in each,
//!                      the first in the low half
//! order     u32        numbers of classes, of the C in use, the one with the best entry first
//! classes   u32        by class number, 32 each:
//!                      0..W      mask
//!                      16        its first slot, counted in slots
//!                      17        d: slots of each of its three subtables; subtable s starts at first + s · d
//!                      18        first element of its filter            0 in tuple search
//!                      19        log2 of its filter's bits, 5 to 31     0 in tuple search
//!                      20, 21    bound: no entry has a better rank      two halves, the low one first
//!                      others    0
//! slots     u64        S / 2 each:
//!                      0..⌈W/2⌉  value, two words in each, the first in the low half; an odd one's other half is 0
//!                      ⌈W/2⌉..   0
//!                      last      rank: priority above, the number inverted below; 0: vacant, and its value says nothing
//! filters   u32        bit b of a filter is bit b % 32 of element first + b / 32; tuple search: one element
//! ```
//!
//! A slot is 32 bytes for tuples of up to 6 words and 48 for others: S is 8 or 12. A record that no class
//! uses is zeros, but that in Bloom search its log is 5: whatever `order` says leads to slots and filters
//! that are there. Where an entry lies and which bits its filter has is said by [`hash`](super::hash).
//!
//! A lookup takes classes in order, and stops before one whose bound is no better than what it found. Bounds
//! descend along the order. (Of an image that was tampered with, the lowest so far counts, so that answers
//! don't depend on how many are looked up at once.) Of rules with one pattern only the best has an entry.
//!
//! All that a lookup relies on is checked class by class: its slots and its filter end within their sections.
//! That needs several elements of a record at a time, so [`TssTable`] has a `check` of its own.

use std::marker::PhantomData;

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, Patch, PatchError, SectionId, Table, Write};

use super::form::Form;
use super::hash::{KEYS, Keys};
use crate::rank::{Rank, RuleNumber};
use crate::tuple::Tuple;

/// The head: values for the whole table.
pub const HEAD: SectionId = SectionId(0);
/// Classes, the best first.
pub const ORDER: SectionId = SectionId(1);
/// Records of classes.
pub const CLASSES: SectionId = SectionId(2);
/// Entries.
pub const SLOTS: SectionId = SectionId(3);
/// Bloom filters.
pub const FILTERS: SectionId = SectionId(4);

/// The element of the head that holds the number of words of a tuple.
pub const WORDS_AT: usize = 0;
/// The element of the head that holds the number of classes in use.
pub const CLASSES_AT: usize = 1;
/// The element of the head that holds the number of u32 of a slot.
pub const STRIDE_AT: usize = 2;
/// The element of the head that holds the multipliers of the three rounds.
pub const ROUNDS_AT: usize = 3;
/// The element of the head that holds the keys, two in each element.
pub const KEYS_AT: usize = 6;
/// Elements of the head.
pub const HEAD_LEN: usize = KEYS_AT + KEYS / 2;

/// Elements of a class's record.
pub const CLASS_WORDS: usize = 32;
/// The element of a record that holds the first slot.
pub const FIRST_SLOT_AT: usize = 16;
/// The element of a record that holds d, the slots of a subtable.
pub const SUBTABLE_AT: usize = 17;
/// The element of a record that holds the first element of the filter.
pub const FIRST_BITS_AT: usize = 18;
/// The element of a record that holds log2 of the filter's bits.
pub const LOG_BITS_AT: usize = 19;
/// The element of a record that holds the low half of the bound, and after it the high half.
pub const BOUND_AT: usize = 20;

/// The shortest filter: an element.
pub const LEAST_LOG: u32 = 5;
/// The longest.
pub const MOST_LOG: u32 = 31;
/// The most words that a tuple may have.
pub const MOST_WORDS: usize = 10;
/// The most elements of a slot.
pub const MOST_SLOT: usize = 6;
/// The most slots, so that the index of one has 32 bits.
pub const MOST_SLOTS: u64 = 1 << 31;
/// The most elements of filters, so that vectors of 32 bits can index them.
pub const MOST_BITS: u64 = 1 << 31;

/// Slots of a table of three subtables of d each.
pub const fn table_slots(d: u32) -> u32 {
    3 * d
}

/// Elements (u64) of a slot for tuples of so many words.
pub const fn slot_elements(words: usize) -> usize {
    if words <= 6 { 4 } else { MOST_SLOT }
}

/// Elements (u64) of a slot that its value is in.
pub const fn value_elements(words: usize) -> usize {
    words.div_ceil(2)
}

/// The record of a class.
#[derive(Clone, Copy, Debug)]
pub struct Class<'t>(pub &'t [u32; CLASS_WORDS]);

impl<'t> Class<'t> {
    /// The mask of tuples of so many words.
    #[inline(always)]
    pub fn mask(self, words: usize) -> &'t [u32] {
        &self.0[..words]
    }

    /// The first slot.
    #[inline(always)]
    pub const fn first_slot(self) -> u32 {
        self.0[FIRST_SLOT_AT]
    }

    /// Slots of a subtable.
    #[inline(always)]
    pub const fn d(self) -> u32 {
        self.0[SUBTABLE_AT]
    }

    /// The first element of the filter.
    #[inline(always)]
    pub const fn first_bits(self) -> u32 {
        self.0[FIRST_BITS_AT]
    }

    /// log2 of the filter's bits.
    #[inline(always)]
    pub const fn log(self) -> u32 {
        self.0[LOG_BITS_AT]
    }

    /// A rank at least as good as that of any entry.
    #[inline(always)]
    pub const fn bound(self) -> Rank {
        Rank::from_bits((self.0[BOUND_AT + 1] as u64) << 32 | self.0[BOUND_AT] as u64)
    }

    /// Whether its slots and its filter end within so many.
    fn is_within<F: Form>(self, slots: u64, filters: u64) -> bool {
        let table = (3 * u64::from(self.d())).max(1);
        let is_filter = if F::FILTERED {
            (LEAST_LOG..=MOST_LOG).contains(&self.log())
                && u64::from(self.first_bits()) + (1 << (self.log() - LEAST_LOG)) <= filters
        } else {
            (self.log(), self.first_bits()) == (0, 0)
        };
        is_filter && u64::from(self.first_slot()) + table <= slots
    }
}

/// The data plane of tuple search and Bloom search.
#[derive(Clone, Debug)]
pub struct TssTable<T, F> {
    image: Image,
    tuple: PhantomData<fn() -> (T, F)>,
}

/// What lookups read. Every class's slots and filter are within `slots` and `filters`, and every number in
/// `order` is of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'t> {
    pub(super) keys: Keys,
    /// Numbers of the classes in use, in order.
    pub(super) order: &'t [u32],
    pub(super) classes: &'t [[u32; CLASS_WORDS]],
    pub(super) slots: &'t [u64],
    pub(super) filters: &'t [u32],
}

impl<'t> View<'t> {
    /// The record of a class.
    #[inline(always)]
    pub(super) fn class(&self, number: u32) -> Class<'t> {
        Class(&self.classes[number as usize])
    }

    /// A slot of so many elements.
    #[inline(always)]
    pub(super) fn slot(&self, slot: u32, elements: usize) -> &'t [u64] {
        &self.slots[slot as usize * elements..][..elements]
    }
}

/// The capacities of the sections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) classes: u64,
    pub(super) slots: u64,
    pub(super) filters: u64,
}

impl<T: Tuple, F: Form> TssTable<T, F> {
    /// Elements of a slot.
    pub(super) const SLOT: usize = slot_elements(T::WORDS);

    /// The table of an image that is one of its own.
    pub(super) fn new(image: Image) -> Self {
        const { assert!(T::WORDS <= MOST_WORDS) };
        Self { image, tuple: PhantomData }
    }

    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        View {
            keys: self.keys(),
            order: &self.image.section::<u32>(ORDER)[..self.classes()],
            classes: self.image.section::<u32>(CLASSES).as_chunks().0,
            slots: self.image.section::<u64>(SLOTS),
            filters: self.image.section::<u32>(FILTERS),
        }
    }

    /// Classes in use.
    #[inline]
    pub fn classes(&self) -> usize {
        usize::try_from(self.image.section::<u64>(HEAD)[CLASSES_AT]).expect("as many as there are in memory")
    }

    /// The keys of its hash.
    #[inline]
    pub fn keys(&self) -> Keys {
        keys_of(self.image.section::<u64>(HEAD))
    }

    /// Slots that there is room for.
    fn slots_len(&self) -> u64 {
        (self.image.section::<u64>(SLOTS).len() / Self::SLOT) as u64
    }

    fn filters_len(&self) -> u64 {
        self.image.section::<u32>(FILTERS).len() as u64
    }

    /// Whether an element of a slot may be that. There is nothing beside an odd last word: who compares words
    /// and who compares elements would find different things.
    #[inline]
    fn admits_in_slot(at: usize, value: u64, results: u64) -> bool {
        let is_rest = T::WORDS % 2 == 1 && at == value_elements(T::WORDS) - 1;
        (at != Self::SLOT - 1 || is_rank(value, results)) && (!is_rest || value >> 32 == 0)
    }

    /// Whether every record that a patch writes to is one of a class afterwards. The writes to a record are
    /// beside one another.
    fn admits_records(&self, patch: &Patch) -> bool {
        let (slots, filters) = (self.slots_len(), self.filters_len());
        let records = self.image.section::<u32>(CLASSES).as_chunks::<CLASS_WORDS>().0;
        let record_of = |write: &Write| write.index() / CLASS_WORDS as u64;
        let start = patch.writes().partition_point(|write| write.section() < CLASSES);
        let end = patch.writes().partition_point(|write| write.section() <= CLASSES);
        patch.writes()[start..end].chunk_by(|a, b| record_of(a) == record_of(b)).all(|writes| {
            let at = usize::try_from(record_of(&writes[0])).expect("checked to be there");
            let mut record = records[at];
            for write in writes {
                let element = usize::try_from(write.index()).expect("checked to be there") % CLASS_WORDS;
                record[element] = u32::try_from(write.value).expect("checked to be of 32 bits");
            }
            Class(&record).is_within::<F>(slots, filters)
        })
    }
}

#[inline]
fn keys_of(head: &[u64]) -> Keys {
    let mut keys = Keys { words: [0; KEYS], rounds: [0; 3] };
    keys.rounds.copy_from_slice(&head[ROUNDS_AT..ROUNDS_AT + 3]);
    for (pair, &element) in keys.words.as_chunks_mut().0.iter_mut().zip(&head[KEYS_AT..HEAD_LEN]) {
        *pair = halves(element);
    }
    keys
}

/// The low and the high half.
#[allow(clippy::cast_possible_truncation)] // halves
pub(super) const fn halves(element: u64) -> [u32; 2] {
    [element as u32, (element >> 32) as u32]
}

/// Two words in an element.
#[inline(always)]
pub(super) const fn joined([low, high]: [u32; 2]) -> u64 {
    (high as u64) << 32 | low as u64
}

/// The head of a table of so many classes in use.
pub(super) fn head_of<T: Tuple>(keys: &Keys, classes: u64) -> [u64; HEAD_LEN] {
    let mut head = [0; HEAD_LEN];
    head[WORDS_AT] = T::WORDS as u64;
    head[CLASSES_AT] = classes;
    head[STRIDE_AT] = 2 * slot_elements(T::WORDS) as u64;
    head[ROUNDS_AT..ROUNDS_AT + 3].copy_from_slice(&keys.rounds);
    for (element, pair) in head[KEYS_AT..].iter_mut().zip(keys.words.as_chunks().0) {
        *element = joined(*pair);
    }
    head
}

/// An image with room for so many, zeroed.
pub(super) fn allocate<T: Tuple, F: Form>(room: Room, cap: Option<u64>) -> Result<Image, ImageError> {
    ImageBuilder::new(F::KIND, TssTable::<T, F>::LAYOUT)
        .section::<u64>("head", HEAD_LEN as u64)
        .section::<u32>("order", room.classes)
        .section::<u32>("classes", room.classes * CLASS_WORDS as u64)
        .section::<u64>("slots", room.slots * slot_elements(T::WORDS) as u64)
        .section::<u32>("filters", room.filters)
        .build(cap)
}

impl<T: Tuple, F: Form> Table for TssTable<T, F> {
    const KIND: &'static str = F::KIND;
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        Self::expect_kind(&image)?;
        let usage = image.memory_usage();
        let [head, order, classes, slots, filters, ..] = &usage[..] else {
            return malformed("a section is missing");
        };
        if [head.width, order.width, classes.width, slots.width, filters.width] != [8, 4, 4, 8, 4] {
            return malformed("a section's elements are of another width");
        }
        let (record, slot) = (CLASS_WORDS as u64, Self::SLOT as u64);
        if head.len != HEAD_LEN as u64 || order.len == 0 || order.len.checked_mul(record) != Some(classes.len)
        {
            return malformed("the head or the records are cut");
        }
        if slots.len % slot != 0 || !(1..=MOST_SLOTS).contains(&(slots.len / slot)) {
            return malformed("a slot is cut, or there are too many or none");
        }
        if !(1..=MOST_BITS).contains(&filters.len) {
            return malformed("there are no filters, or too many");
        }
        let words = image.section::<u64>(HEAD)[WORDS_AT];
        if words != T::WORDS as u64 {
            let wanted = T::WORDS;
            return malformed(&format!(
                "it is of tuples of {words} words, those of {} have {wanted}",
                T::NAME
            ));
        }
        let table = Self::new(image);
        let results = table.image.results();
        let is_head = |(at, &value): (usize, &u64)| table.admits_at(HEAD, at as u64, value, results);
        if !table.image.section::<u64>(HEAD).iter().enumerate().all(is_head) {
            return malformed("more classes are in use than there are, or slots are of another length");
        }
        if !table.image.section::<u32>(ORDER).iter().all(|&class| table.admits(ORDER, class.into(), results))
        {
            return malformed("a class that isn't there is in order");
        }
        let (slots, filters) = (table.slots_len(), table.filters_len());
        let records = table.image.section::<u32>(CLASSES).as_chunks().0;
        if !records.iter().all(|record| Class(record).is_within::<F>(slots, filters)) {
            return malformed("a class's table or filter leads past the end");
        }
        let of_slots = table.image.section::<u64>(SLOTS).chunks_exact(Self::SLOT);
        if !of_slots
            .flat_map(|slot| slot.iter().enumerate())
            .all(|(at, &value)| Self::admits_in_slot(at, value, results))
        {
            return malformed("a number is over the largest, or there is more of a value than a tuple has");
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, _: u64) -> bool {
        match section {
            ORDER => value < self.image.section::<u32>(ORDER).len() as u64,
            FILTERS => true,
            _ => false,
        }
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        match (section, usize::try_from(index)) {
            (HEAD, Ok(WORDS_AT)) => value == T::WORDS as u64,
            (HEAD, Ok(STRIDE_AT)) => value == 2 * Self::SLOT as u64,
            (HEAD, Ok(CLASSES_AT)) => value <= self.image.section::<u32>(ORDER).len() as u64,
            // Whatever is hashed with leads to somewhere.
            (HEAD, _) => index < HEAD_LEN as u64,
            // All of a record at once: `admits_records`.
            (CLASSES, _) => true,
            (SLOTS, Ok(at)) => Self::admits_in_slot(at % Self::SLOT, value, results),
            _ => self.admits(section, value, results),
        }
    }

    fn check(&self, patch: &Patch) -> Result<(), PatchError> {
        self.image.check(patch)?;
        let results = patch.counts().map_or(self.image.results(), |(_, results)| results);
        let is_bad = |write: &&Write| !self.admits_at(write.section(), write.index(), write.value, results);
        if let Some(bad) = patch.writes().iter().find(is_bad) {
            return Err(PatchError::Value { section: bad.section(), value: bad.value });
        }
        if !self.admits_records(patch) {
            return Err(PatchError::Value { section: CLASSES, value: 0 });
        }
        Ok(())
    }
}

/// Whether it is vacant, or of a number that there may be.
#[inline]
fn is_rank(rank: u64, results: u64) -> bool {
    let number = u64::from(Rank::from_bits(rank).result());
    rank == 0 || 1 <= number && number <= results.min(RuleNumber::MOST.into())
}
