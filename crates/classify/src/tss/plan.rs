//! [`Plans`]: classes as many tuples at a time are looked up in them, made when a batch first comes to each.
//!
//! The hash is a sum with a term for each pair of words ([`hash`](super::hash)), and what a term is depends on the pair's mask alone: classes
//! that mask a pair alike share it. [`Terms`] holds such terms for all tuples of a group, so that they are computed once and not for
//! each class. A pair's mask gets one when a second class has it; others, and those past the most, are computed in their turn.

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
/// Terms that are held at most.
const MOST_TERMS: usize = 32;

/// Words of a group's tuples, a row each; the last is zero where a tuple has an odd number.
pub(super) type Rows = [[u32; GROUP]; KEYS];

/// A class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What its number and the pairs that the mask has nothing of add.
    pub(super) start: u64,
    /// Pairs that the mask has something of, and whose terms aren't held.
    pairs: [Pair; PAIRS],
    pairs_len: u8,
    /// Terms that are.
    terms: [u8; PAIRS],
    terms_len: u8,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    /// The first word.
    pub(super) at: usize,
    pub(super) mask: [u32; 2],
    pub(super) keys: [u32; 2],
}

impl Plan {
    /// Pairs whose terms are to be computed.
    #[inline(always)]
    pub(super) fn pairs(&self) -> &[Pair] {
        &self.pairs[..usize::from(self.pairs_len)]
    }

    /// Which of the [`Terms`] are to be added.
    #[inline(always)]
    pub(super) fn terms(&self) -> &[u8] {
        &self.terms[..usize::from(self.terms_len)]
    }
}

/// The plans of a table's classes, in order.
#[derive(Debug)]
pub(super) struct Plans<'v> {
    view: &'v View<'v>,
    made: Vec<Plan>,
    /// By pair the masks that classes had, and their terms where there are any.
    masks: [Vec<([u32; 2], Option<u8>)>; PAIRS],
    /// By number of the term.
    held: Vec<Pair>,
}

impl<'v> Plans<'v> {
    /// None yet.
    pub(super) fn new(view: &'v View<'v>) -> Self {
        Self { view, made: Vec::new(), masks: [const { Vec::new() }; PAIRS], held: Vec::new() }
    }

    /// The plan of the class that is this one in order, of which those before it were asked for.
    #[inline(always)]
    pub(super) fn plan<T: Tuple, F: Form>(&mut self, place: usize) -> &Plan {
        if place == self.made.len() {
            self.make::<T, F>(self.view.order[place]);
        }
        &self.made[place]
    }

    /// The pair of a term.
    #[inline(always)]
    pub(super) fn pair(&self, term: u8) -> &Pair {
        &self.held[usize::from(term)]
    }

    #[inline(never)]
    fn make<T: Tuple, F: Form>(&mut self, number: u32) {
        let class: Class<'_> = self.view.class(number);
        let before = self.made.last().map_or(Rank::from_bits(u64::MAX), |plan| plan.bound);
        let mut plan = Plan {
            start: u64::from(number).wrapping_mul(K),
            pairs: [Pair::default(); PAIRS],
            pairs_len: 0,
            terms: [0; PAIRS],
            terms_len: 0,
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
            let pair = Pair { at, mask, keys: [words[at], words[at + 1]] };
            match self.term(pair) {
                Some(term) => {
                    plan.terms[usize::from(plan.terms_len)] = term;
                    plan.terms_len += 1;
                }
                None => {
                    plan.pairs[usize::from(plan.pairs_len)] = pair;
                    plan.pairs_len += 1;
                }
            }
        }
        self.made.push(plan);
    }

    /// The term of a pair that a class had before.
    fn term(&mut self, pair: Pair) -> Option<u8> {
        let masks = &mut self.masks[pair.at / 2];
        let Some((_, term)) = masks.iter_mut().find(|(mask, _)| *mask == pair.mask) else {
            if masks.len() < MOST_TERMS {
                masks.push((pair.mask, None));
            }
            return None;
        };
        if term.is_none() && self.held.len() < MOST_TERMS {
            *term = u8::try_from(self.held.len()).ok();
            self.held.push(pair);
        }
        *term
    }
}

/// The terms of a group's tuples, as far as some class asked for them.
#[derive(Debug)]
pub(super) struct Terms {
    /// Of sixteen lanes the even ones first, then the odd ones.
    rows: Vec<[u64; GROUP]>,
    /// A bit for each that there is.
    there: u32,
}

impl Terms {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { rows: Vec::new(), there: 0 }
    }

    /// They are of other tuples from now on.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.there = 0;
    }

    /// One that is there.
    #[inline(always)]
    pub(super) fn row(&self, term: u8) -> &[u64; GROUP] {
        &self.rows[usize::from(term)]
    }

    /// Computes those of a plan that aren't there.
    #[inline(always)]
    pub(super) fn see_to(&mut self, plan: &[u8], mut compute: impl FnMut(u8, &mut [u64; GROUP])) {
        for &term in plan {
            if self.there >> term & 1 == 0 {
                let at = usize::from(term);
                if self.rows.len() <= at {
                    self.rows.resize(at + 1, [0; GROUP]);
                }
                compute(term, &mut self.rows[at]);
                self.there |= 1 << term;
            }
        }
    }

    /// A lane gets the tuple of another.
    #[inline(always)]
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        let mut there = self.there;
        while there != 0 {
            let row = &mut self.rows[there.trailing_zeros() as usize];
            row[place_of(to)] = row[place_of(from)];
            there &= there - 1;
        }
    }
}

/// Where a row of terms has a lane.
#[inline(always)]
pub(super) const fn place_of(lane: usize) -> usize {
    lane / LANES * LANES + lane % 2 * (LANES / 2) + lane % LANES / 2
}
