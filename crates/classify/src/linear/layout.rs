//! The sections of linear search and what their elements say.
//!
//! ```text
//! head        2 × u64   W, the words of a tuple; G, the groups in use
//! entries     u32       by group, of 16 lanes:
//!                       word 0: 16 values, 16 masks | word 1: 16 values, 16 masks | … W words     128 · W bytes a group
//! numbers     u32       by lane: the number of its rule
//! priorities  u32       by lane: the priority of its rule
//! ```
//!
//! Over all lanes of all groups entries are best first: the first lane with `tuple & mask == value` in every
//! word is the answer. A search of several parts of a table at once takes the lowest lane that any part
//! found. A lane without an entry has number and priority 0, and matches nothing: its mask is 0 and its
//! values are all ones. A lookup ignores a match with number 0. Lookups do not read priorities.

use std::marker::PhantomData;

use wirespeed_image::{Checked, Image, ImageBuilder, ImageError, SectionId, Table};

use crate::rank::RuleNumber;
use crate::tuple::Tuple;

/// The head: values for the whole table.
pub const HEAD: SectionId = SectionId(0);
/// Values and masks.
pub const ENTRIES: SectionId = SectionId(1);
/// Numbers of rules.
pub const NUMBERS: SectionId = SectionId(2);
/// Priorities of rules.
pub const PRIORITIES: SectionId = SectionId(3);

/// The element of the head that holds the number of words of a tuple.
pub const WORDS_AT: usize = 0;
/// The element of the head that holds the number of groups in use.
pub const GROUPS_AT: usize = 1;
const HEAD_LEN: u64 = 2;

/// Entries of a group.
pub const LANES: usize = 16;
/// The values of a lane without an entry, whose mask is 0.
pub const NEVER: u32 = u32::MAX;
/// The most words that a tuple may have.
pub const MOST_WORDS: usize = 16;

/// Elements of a group of tuples of so many words.
pub const fn group_elements(words: usize) -> usize {
    words * 2 * LANES
}

/// The place in `entries` where a lane has the value of a word; its mask is [`LANES`] elements on.
pub const fn value_at(words: usize, group: usize, word: usize, lane: usize) -> usize {
    group * group_elements(words) + word * 2 * LANES + lane
}

/// The data plane of linear search.
#[derive(Clone, Debug)]
pub struct LinearTable<T> {
    image: Image,
    tuple: PhantomData<fn() -> T>,
}

impl<T: Tuple> LinearTable<T> {
    pub(super) const fn new(image: Image) -> Self {
        const { assert!(T::WORDS <= MOST_WORDS) };
        Self { image, tuple: PhantomData }
    }

    /// The part of the table that lookups read.
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        let entries = self.image.section::<u32>(ENTRIES);
        Self::cut(entries, self.image.section::<u32>(NUMBERS), self.groups())
    }

    fn cut<'t>(entries: &'t [u32], numbers: &'t [u32], groups: usize) -> View<'t> {
        View { entries: &entries[..groups * group_elements(T::WORDS)], numbers: &numbers[..groups * LANES] }
    }

    /// Groups in use.
    #[inline]
    pub fn groups(&self) -> usize {
        usize::try_from(self.image.section::<u64>(HEAD)[GROUPS_AT]).expect("as many as there are in memory")
    }

    /// Groups that there is room for.
    pub fn room(&self) -> usize {
        self.image.section::<u32>(NUMBERS).len() / LANES
    }

    /// Lanes that have an entry. O(table).
    pub fn entries(&self) -> usize {
        self.image.section::<u32>(NUMBERS).iter().filter(|&&number| number != 0).count()
    }

    /// The priorities by lane.
    pub fn priorities(&self) -> &[u32] {
        self.image.section::<u32>(PRIORITIES)
    }
}

/// The groups in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'t> {
    pub(super) entries: &'t [u32],
    pub(super) numbers: &'t [u32],
}

/// An image of so many groups, zeroed.
pub(super) fn allocate<T: Tuple>(groups: usize, cap: Option<u64>) -> Result<Image, ImageError> {
    let groups = groups as u64;
    ImageBuilder::new(LinearTable::<T>::KIND, LinearTable::<T>::LAYOUT)
        .section::<u64>("head", HEAD_LEN)
        .section::<u32>("entries", groups * group_elements(T::WORDS) as u64)
        .section::<u32>("numbers", groups * LANES as u64)
        .section::<u32>("priorities", groups * LANES as u64)
        .build(cap)
}

impl<T: Tuple> Table for LinearTable<T> {
    const KIND: &'static str = "linear";
    const LAYOUT: u32 = 1;

    fn from_image(image: Image) -> Result<Self, ImageError> {
        let malformed = |what: &str| Err(ImageError::Malformed(what.to_owned()));
        Self::expect_kind(&image)?;
        let usage = image.memory_usage();
        let [head, entries, numbers, priorities, ..] = &usage[..] else {
            return malformed("a section is missing");
        };
        if (head.width, entries.width, numbers.width, priorities.width) != (8, 4, 4, 4) {
            return malformed("a section's elements are of another width");
        }
        let groups = numbers.len / LANES as u64;
        if head.len != HEAD_LEN || numbers.len % LANES as u64 != 0 || priorities.len != numbers.len {
            return malformed("the head or a group is cut");
        }
        let words = image.section::<u64>(HEAD)[WORDS_AT];
        if words != T::WORDS as u64 {
            let wanted = T::WORDS;
            return malformed(&format!(
                "it is of tuples of {words} words, those of {} have {wanted}",
                T::NAME
            ));
        }
        if groups.checked_mul(group_elements(T::WORDS) as u64) != Some(entries.len) {
            return malformed("there are not as many entries as numbers");
        }
        let table = Self::new(image);
        let results = table.image.results();
        let head = table.image.section::<u64>(HEAD);
        if !table.admits_at(HEAD, GROUPS_AT as u64, head[GROUPS_AT], results) {
            return malformed("more groups are in use than there are");
        }
        let most = table.image.section::<u32>(NUMBERS).iter().max().copied().unwrap_or(0);
        if !table.admits(NUMBERS, most.into(), results) {
            return malformed("a number is over the largest");
        }
        Ok(table)
    }

    fn image(&self) -> &Image {
        &self.image
    }

    fn image_mut(&mut self, _: Checked) -> &mut Image {
        &mut self.image
    }

    fn admits(&self, section: SectionId, value: u64, results: u64) -> bool {
        match section {
            NUMBERS => value <= results.min(RuleNumber::MOST.into()),
            ENTRIES | PRIORITIES => true,
            _ => false,
        }
    }

    fn admits_at(&self, section: SectionId, index: u64, value: u64, results: u64) -> bool {
        match (section, usize::try_from(index)) {
            (HEAD, Ok(GROUPS_AT)) => value <= self.room() as u64,
            (HEAD, _) => index == WORDS_AT as u64 && value == T::WORDS as u64,
            _ => self.admits(section, value, results),
        }
    }
}
