//! [`Plans`]: classes as many tuples at a time are looked up in them, made when a batch first comes to each.

use super::form::Form;
use super::hash::{K, KEYS};
use super::layout::{Class, View};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// Tuples under way at once.
pub(super) const GROUP: usize = 256;
/// Tuples of a vector.
pub(super) const LANES: usize = 16;
/// Pairs of words.
pub(super) const PAIRS: usize = KEYS / 2;

/// Words of a group's tuples, a row each; the last is zero where a tuple has an odd number.
pub(super) type Rows = [[u32; GROUP]; KEYS];

/// A class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What its number and the pairs that the mask has nothing of add.
    pub(super) start: u64,
    /// Pairs that the mask has something of.
    pairs: [Pair; PAIRS],
    len: usize,
    pub(super) first_bits: u32,
    pub(super) log: u32,
    pub(super) first_slot: u32,
    pub(super) d: u32,
    pub(super) number: u32,
    /// No class from this one on is better.
    pub(super) bound: Rank,
    /// The word of which the mask has the most, and that.
    pub(super) telling: (usize, u32),
}

/// Two words of a mask, with their keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pair {
    /// The first word.
    pub(super) at: usize,
    pub(super) mask: [u32; 2],
    pub(super) keys: [u32; 2],
}

impl Plan {
    /// Pairs that the mask has something of.
    #[inline(always)]
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs[..self.len]
    }
}

/// The plans of a table's classes, in order.
#[derive(Debug)]
pub(super) struct Plans<'v> {
    view: &'v View<'v>,
    made: Vec<Plan>,
}

impl<'v> Plans<'v> {
    /// Empty.
    pub(super) fn new(view: &'v View<'v>) -> Self {
        Self { view, made: Vec::new() }
    }

    /// The plan of the class that is this one in order, of which those before it were asked for.
    #[inline(always)]
    pub(super) fn plan<T: Tuple, F: Form>(&mut self, place: usize) -> &Plan {
        if place == self.made.len() {
            self.make::<T, F>(self.view.order[place]);
        }
        &self.made[place]
    }

    #[inline(never)]
    fn make<T: Tuple, F: Form>(&mut self, number: u32) {
        let class: Class<'_> = self.view.class(number);
        let before = self.made.last().map_or(Rank::from_bits(u64::MAX), |plan| plan.bound);
        let mut plan = Plan {
            start: u64::from(number).wrapping_mul(K),
            pairs: [Pair::default(); PAIRS],
            len: 0,
            first_bits: class.first_bits(),
            log: class.log(),
            first_slot: class.first_slot(),
            d: class.d(),
            number,
            bound: before.min(class.bound()),
            telling: (0, 0),
        };
        let mask = class.mask(T::WORDS);
        for (word, &mask) in mask.iter().enumerate() {
            if !F::FILTERED && mask.count_ones() > plan.telling.1.count_ones() {
                plan.telling = (word, mask);
            }
        }
        for pair in 0..T::WORDS.div_ceil(2) {
            let at = 2 * pair;
            let mask = [mask[at], mask.get(at + 1).copied().unwrap_or(0)];
            if mask == [0, 0] {
                plan.start = plan.start.wrapping_add(self.view.keys.of_nothing(pair));
                continue;
            }
            let words = &self.view.keys.words;
            plan.pairs[plan.len] = Pair { at, mask, keys: [words[at], words[at + 1]] };
            plan.len += 1;
        }
        self.made.push(plan);
    }
}
