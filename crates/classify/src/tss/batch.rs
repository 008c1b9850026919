//! A batch: many tuples at once through one class after the other.
//!
//! A batch goes in groups of [`GROUP`] tuples, word by word (structure of arrays). So a class's mask and keys
//! are read once for all, and sixteen tuples are masked, hashed and asked of the filter in a few vectors. A
//! tuple that has the first of its two bits in a filter is noted, and asked for the second one without a
//! branch. The slots of those that the filter lets pass are fetched ahead, and are looked at when enough
//! wait. A tuple that has found what no class left can better leaves its lane to the last of the group, so
//! that lanes stay full.
//!
//! 131,072 rules in 512 classes under tuples of 9 words are instructions, not misses: some 75 cycles for
//! sixteen tuples and a class. What was tried there, on one core of a Zen 4
//! (`ENGINES=bloom cargo bench -p wirespeed-classify --features conformance --bench classify_speed -- of:131072:512 fw1_10k`,
//! ratios of runs beside one another):
//! - A gather for the words of filters, and hashes that pass compressed into rows: 1.05 M/s, and 5.0 on fw1
//!   of 10 K. With words loaded one by one, as a gather is microcode there, and whole vectors of hashes
//!   stored: 1.25 and 5.6. With plans of classes made once for a batch and keys loaded once for two vectors:
//!   1.35 times the first on the one, 1.2 times on the other.
//! - Filters of up to 256 words held in vectors and looked into by permutations instead of a gather: no
//!   difference (0.96 to 1.10 M/s).
//! - What a pair of words adds to the hash computed once for all classes that mask it alike (27 such pairs
//!   here): 2 to 5 % more, and 10 to 20 % less on 5-tuples, which have two pairs. Adding it takes two loads
//!   where computing takes few more instructions.

use std::marker::PhantomData;

use wirespeed_image::prefetch;

use super::form::Form;
use super::hash::{Hash, KEYS, SUBTABLES};
use super::layout::{View, halves, joined, slot_elements, value_elements};
use super::place::{Value, value_of};
use super::plan::{GROUP, LANES, Pair, Plan, Plans, Rows};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// Classes from one look for tuples that are done to the next.
const STRETCH: usize = 8;
/// Slots are looked at when so many tuples wait for theirs.
const WAITING: usize = 48;
/// Shorter batches are looked up one by one.
const FEW: usize = 4;

impl View<'_> {
    /// The rank in a slot of so many elements.
    #[inline(always)]
    pub(super) fn rank(&self, slot: u32, elements: usize) -> Rank {
        Rank::from_bits(self.slot(slot, elements)[elements - 1])
    }

    /// Whether a filter has both bits of a hash.
    #[inline(always)]
    pub(super) fn passes(&self, first_bits: u32, log: u32, hash: Hash) -> bool {
        let [one, other] = hash.bits(log);
        self.has_bit(first_bits, one) && self.has_bit(first_bits, other)
    }

    #[inline(always)]
    pub(super) fn has_bit(&self, first_bits: u32, bit: u32) -> bool {
        self.filters[(first_bits + bit / 32) as usize] >> (bit % 32) & 1 == 1
    }

    /// The best rank among three slots that have a value; that of a vacant one is none.
    #[inline(always)]
    pub(super) fn probe<T: Tuple>(&self, slots: [u32; SUBTABLES], value: &Value) -> Rank {
        let (elements, len) = (slot_elements(T::WORDS), value_elements(T::WORDS));
        let mut best = 0;
        for slot in slots {
            let slot = self.slot(slot, elements);
            let mut differ = 0;
            for at in 0..len {
                differ |= slot[at] ^ value[at];
            }
            best = if differ == 0 { slot[elements - 1].max(best) } else { best };
        }
        Rank::from_bits(best)
    }

    /// Where a class has the three slots of a hash.
    #[inline(always)]
    pub(super) fn slots_of(&self, first: u32, d: u32, hash: Hash) -> [u32; SUBTABLES] {
        let [a, b, c] = self.keys.places(hash, d);
        [first + a, first + d + b, first + 2 * d + c]
    }
}

/// One tuple through the classes.
pub(super) fn one<T: Tuple, F: Form>(view: &View<'_>, tuple: &T) -> Rank {
    let (mut best, mut bound) = (Rank::NONE, Rank::from_bits(u64::MAX));
    for &number in view.order {
        let class = view.class(number);
        bound = bound.min(class.bound());
        if best >= bound {
            break;
        }
        let masked = under(tuple, class.mask(T::WORDS));
        let hash = view.keys.hash(number, masked.words());
        if F::FILTERED && !view.passes(class.first_bits(), class.log(), hash) {
            continue;
        }
        let slots = view.slots_of(class.first_slot(), class.d(), hash);
        best = best.max(view.probe::<T>(slots, &value_of(&masked)));
    }
    best
}

/// A tuple under a mask.
#[inline(always)]
pub(super) fn under<T: Tuple>(tuple: &T, mask: &[u32]) -> T {
    let mut tuple = *tuple;
    tuple.words_mut().iter_mut().zip(mask).for_each(|(word, mask)| *word &= mask);
    tuple
}

/// The hashes of all lanes under a class's mask, and those lanes that it may match.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Passed {
    pub(super) high: [u32; GROUP],
    pub(super) low: [u32; GROUP],
    pub(super) lanes: [u32; GROUP + LANES],
    pub(super) len: usize,
}

impl Passed {
    #[inline(always)]
    pub(super) fn hash(&self, lane: usize) -> Hash {
        Hash(joined([self.low[lane], self.high[lane]]))
    }

    /// Drops those lanes for which a filter has not the second bit. Without a branch, as few are dropped in a
    /// row.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn drop_others(&mut self, filter: &[u32], log: u32) {
        let mut len = 0;
        for at in 0..self.len {
            let lane = self.lanes[at];
            let bit = self.low[lane as usize] >> (32 - log);
            self.lanes[len] = lane;
            len += (filter[(bit / 32) as usize] >> (bit % 32) & 1) as usize;
        }
        self.len = len;
    }
}

/// What tuples are hashed and asked of a filter with, a vector at a time.
pub(super) trait Lanes: Copy {
    /// The tuples of the first so many lanes that a class may match: those that get past its filter, or in
    /// tuple search all, or fewer where the slots say so at a glance.
    fn pass<T: Tuple, F: Form>(
        self,
        view: &View<'_>,
        plan: &Plan,
        rows: &Rows,
        open: usize,
        passed: &mut Passed,
    );
}

/// Looks up without vectors, or with those that compilers find.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Lanes for Portable {
    #[inline(always)]
    fn pass<T: Tuple, F: Form>(
        self,
        view: &View<'_>,
        plan: &Plan,
        rows: &Rows,
        open: usize,
        passed: &mut Passed,
    ) {
        passed.len = 0;
        for from in (0..open).step_by(LANES) {
            let mut hashes = [plan.start; LANES];
            for Pair { at, mask, keys } in plan.pairs() {
                let (one, other) = (&rows[*at][from..][..LANES], &rows[at + 1][from..][..LANES]);
                for lane in 0..LANES {
                    let a = (one[lane] & mask[0]).wrapping_add(keys[0]);
                    let b = (other[lane] & mask[1]).wrapping_add(keys[1]);
                    hashes[lane] = hashes[lane].wrapping_add(u64::from(a) * u64::from(b));
                }
            }
            for hash in &mut hashes {
                *hash = view.keys.finish(*hash).0;
            }
            for lane in from..open.min(from + LANES) {
                let hash = Hash(hashes[lane - from]);
                if !F::FILTERED || view.passes(plan.first_bits, plan.log, hash) {
                    [passed.low[lane], passed.high[lane]] = halves(hash.0);
                    #[allow(clippy::cast_possible_truncation)] // below GROUP
                    let number = lane as u32;
                    passed.lanes[passed.len] = number;
                    passed.len += 1;
                }
            }
        }
    }
}

/// A tuple that waits for its slots.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    lane: usize,
    class: u32,
    /// No class from this one on is better.
    bound: Rank,
    slots: [u32; SUBTABLES],
}

/// Tuples under way.
struct Group<T> {
    rows: Rows,
    best: [Rank; GROUP],
    /// The tuple of a lane.
    tuple: [usize; GROUP],
    /// Lanes in use.
    open: usize,
    passed: Passed,
    waiting: [Waiting; WAITING],
    waits: usize,
    of: PhantomData<fn() -> T>,
}

/// A batch, group after group.
#[inline(always)]
pub(super) fn batch<T: Tuple, F: Form>(
    lanes: impl Lanes,
    view: &View<'_>,
    tuples: &[T],
    results: &mut [u32],
) {
    if tuples.len() < FEW {
        for (tuple, result) in tuples.iter().zip(results) {
            *result = one::<T, F>(view, tuple).result();
        }
        return;
    }
    let (mut group, mut plans) = (Group::<T>::new(), Plans::new(view));
    for (tuples, results) in tuples.chunks(GROUP).zip(results.chunks_mut(GROUP)) {
        group.fill(tuples);
        group.run::<F>(lanes, &mut plans, view, tuples, results);
    }
}

impl<T: Tuple> Group<T> {
    fn new() -> Self {
        Self {
            rows: [[0; GROUP]; KEYS],
            best: [Rank::NONE; GROUP],
            tuple: [0; GROUP],
            open: 0,
            passed: Passed { high: [0; GROUP], low: [0; GROUP], lanes: [0; GROUP + LANES], len: 0 },
            waiting: [Waiting::default(); WAITING],
            waits: 0,
            of: PhantomData,
        }
    }

    #[inline(always)]
    fn fill(&mut self, tuples: &[T]) {
        for (lane, tuple) in tuples.iter().enumerate() {
            for (word, row) in tuple.words().iter().zip(&mut self.rows) {
                row[lane] = *word;
            }
            (self.tuple[lane], self.best[lane]) = (lane, Rank::NONE);
        }
        self.open = tuples.len();
    }

    /// All classes, or until all tuples have found what no class left can better.
    #[inline(always)]
    fn run<F: Form>(
        &mut self,
        lanes: impl Lanes,
        plans: &mut Plans<'_>,
        view: &View<'_>,
        tuples: &[T],
        results: &mut [u32],
    ) {
        let classes = view.order.len();
        for first in (0..classes).step_by(STRETCH) {
            let bound = plans.plan::<T, F>(first).bound;
            self.close(bound, results);
            if self.open == 0 {
                return;
            }
            for place in first..classes.min(first + STRETCH) {
                let plan = plans.plan::<T, F>(place);
                self.ask::<F>(lanes, view, plan, tuples);
            }
            self.look(view, tuples);
        }
        self.close(Rank::NONE, results);
    }

    /// Notes the tuples that get past a class's filter.
    #[inline(always)]
    fn ask<F: Form>(&mut self, lanes: impl Lanes, view: &View<'_>, plan: &Plan, tuples: &[T]) {
        lanes.pass::<T, F>(view, plan, &self.rows, self.open, &mut self.passed);
        for at in 0..self.passed.len {
            let lane = self.passed.lanes[at] as usize;
            let slots = view.slots_of(plan.first_slot, plan.d, self.passed.hash(lane));
            for slot in slots {
                prefetch(view.slots, slot as usize * slot_elements(T::WORDS));
                prefetch(view.slots, (slot as usize + 1) * slot_elements(T::WORDS) - 1);
            }
            self.waiting[self.waits] = Waiting { lane, class: plan.number, bound: plan.bound, slots };
            self.waits += 1;
            if self.waits == WAITING {
                self.look(view, tuples);
            }
        }
    }

    /// Looks at the slots that tuples wait for.
    #[inline(always)]
    fn look(&mut self, view: &View<'_>, tuples: &[T]) {
        for &Waiting { lane, class, bound, slots } in &self.waiting[..self.waits] {
            if self.best[lane] < bound {
                let masked = under(&tuples[self.tuple[lane]], view.class(class).mask(T::WORDS));
                let found = view.probe::<T>(slots, &value_of(&masked));
                self.best[lane] = self.best[lane].max(found);
            }
        }
        self.waits = 0;
    }

    /// Tuples that have found what is no worse than a bound are done, and the last ones take their lanes.
    #[inline(always)]
    fn close(&mut self, bound: Rank, results: &mut [u32]) {
        let mut lane = 0;
        while lane < self.open {
            if self.best[lane] < bound {
                lane += 1;
                continue;
            }
            results[self.tuple[lane]] = self.best[lane].result();
            self.open -= 1;
            let last = self.open;
            for row in &mut self.rows[..T::WORDS] {
                row[lane] = row[last];
            }
            (self.tuple[lane], self.best[lane]) = (self.tuple[last], self.best[last]);
        }
    }
}
