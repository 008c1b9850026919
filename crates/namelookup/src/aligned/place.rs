//! [`Space`]: the used slots and bases, and the placement of states (sections 2.2 and 2.4).
//!
//! The paper takes the lowest vacant slot minus the state's smallest input as its base, and then tries the
//! next vacant slots until all its transitions find vacant slots. This implementation does the same, but the
//! search starts at the end of the last one, and tries a bounded number of slots in each array. Slots that it
//! passes over are left to states with fewer transitions, which come later. Most states have a single
//! transition, and fit anywhere.
//!
//! The space takes one bit for each slot and one for each base.

use std::marker::PhantomData;

use super::form::Form;
use super::layout::Shape;
use super::prime::Residues;

/// Vacant slots to try in an array.
const TRIES: u32 = 256;
/// Words of 64 slots to look for vacant ones in.
const WORDS: usize = 1 << 10;

/// What an array is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Nothing.
    No,
    /// A large state that finds no other place; the array is empty.
    Empty,
    /// Such a state, which it has; it takes others too, small ones only when nothing else does.
    ForLarge,
}

/// The slots and bases of all arrays.
#[derive(Clone, Debug)]
pub(super) struct Space<F> {
    pub(super) shapes: Vec<Shape>,
    /// What each array is kept for.
    kept: Vec<Kept>,
    /// Vacant slots of each array.
    vacant: Vec<u32>,
    /// Where the search in each array goes on.
    cursor: Vec<u32>,
    /// The array where the last state found its place.
    last: usize,
    /// A bit for each vacant slot.
    free: Vec<u64>,
    /// A bit for each base of a state, by first slot + base.
    used: Vec<u64>,
    /// Where bases were tried last.
    spread: u32,
    /// The arrays that are not halved, and those that are: the one with the most vacant slots, and how many
    /// states more it is taken for that.
    roomiest: [(usize, u32); 2],
    /// Residues of the state being placed.
    residues: Vec<u32>,
    apart: Residues,
    form: PhantomData<F>,
}

impl<F: Form> Space<F> {
    /// No array.
    pub(super) fn new() -> Self {
        Self {
            shapes: Vec::new(),
            kept: Vec::new(),
            vacant: Vec::new(),
            cursor: Vec::new(),
            last: 0,
            free: Vec::new(),
            used: Vec::new(),
            spread: 0,
            roomiest: [(0, 0); 2],
            residues: Vec::new(),
            apart: Residues::default(),
            form: PhantomData,
        }
    }

    /// Slots of all arrays.
    pub(super) fn slots(&self) -> u32 {
        self.shapes.last().map_or(0, |array| array.first + array.length)
    }

    /// Adds an array.
    pub(super) fn add(&mut self, length: u32, halved: bool) {
        self.kept.push(Kept::No);
        let first = self.slots();
        self.shapes.push(Shape::new(first, length, halved));
        self.vacant.push(length);
        self.cursor.push(first);
        let words = (first + length).div_ceil(64) as usize;
        self.free.resize(words, 0);
        self.used.resize(words, 0);
        (first..first + length).for_each(|slot| set(&mut self.free, slot));
        // State 0 says that there is none.
        set(&mut self.used, 0);
        self.last = self.shapes.len() - 1;
    }

    /// Keeps the array that was added last for [`place_kept`](Self::place_kept).
    pub(super) fn keep(&mut self) {
        self.kept[self.last] = Kept::Empty;
        self.last = 0;
    }

    /// Places a state in an array that was kept for large ones: beside others, where that is to be expected,
    /// otherwise in an empty one.
    pub(super) fn place_kept(&mut self, inputs: &[u32], halved: bool) -> Option<u32> {
        /// An array is left where of so many bases none is to be expected that does.
        const BASES: u32 = 1 << 13;
        for array in 0..self.shapes.len() {
            let bases = self.shapes[array].length.min(BASES);
            if self.is(array, Kept::ForLarge, halved)
                && let Some(state) = self.place_among(array, inputs, bases, bases)
            {
                return Some(state);
            }
        }
        let empty: Vec<_> =
            (0..self.shapes.len()).filter(|&array| self.is(array, Kept::Empty, halved)).collect();
        let (array, state) =
            empty.into_iter().find_map(|array| Some((array, self.place_in(array, inputs)?)))?;
        self.kept[array] = Kept::ForLarge;
        Some(state)
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        8 * (self.free.capacity() + self.used.capacity()) as u64
    }

    /// The array of a state.
    #[inline]
    pub(super) fn shape_of(&self, state: u32) -> Shape {
        self.shapes[(state >> F::BASE_BITS) as usize]
    }

    /// The base of a state.
    #[inline]
    pub(super) const fn base(state: u32) -> u32 {
        state & ((1 << F::BASE_BITS) - 1)
    }

    /// The place of a state in arrays by state.
    #[inline]
    pub(super) fn place_of(&self, state: u32) -> usize {
        (self.shape_of(state).first + Self::base(state)) as usize
    }

    /// The slot of a state's transition.
    #[inline]
    pub(super) fn slot(&self, state: u32, input: u32) -> u32 {
        let shape = self.shape_of(state);
        shape.slot(Self::base(state), shape.residue(input))
    }

    /// The state whose transition by an input is in a slot.
    pub(super) fn owner(&self, slot: u32, input: u32) -> u32 {
        let array = self.array_of(slot);
        let shape = self.shapes[array];
        state::<F>(array, base_for(shape, slot, shape.residue(input)))
    }

    /// Whether a slot is vacant.
    pub(super) fn is_vacant(&self, slot: u32) -> bool {
        is_set(&self.free, slot)
    }

    /// A slot is taken.
    pub(super) fn take(&mut self, slot: u32) {
        debug_assert!(self.is_vacant(slot));
        clear(&mut self.free, slot);
        let array = self.array_of(slot);
        self.vacant[array] -= 1;
    }

    /// A slot is vacant again.
    pub(super) fn give_back(&mut self, slot: u32) {
        debug_assert!(!self.is_vacant(slot));
        set(&mut self.free, slot);
        let array = self.array_of(slot);
        self.vacant[array] += 1;
    }

    /// A state is no more; its slots are given back one by one.
    pub(super) fn forget(&mut self, state: u32) {
        let place = self.shape_of(state).first + Self::base(state);
        clear(&mut self.used, place);
    }

    /// A state for some inputs, its slots taken, in one of the arrays that are halved or of those that are
    /// not. The array of the last one is tried first.
    pub(super) fn place(&mut self, inputs: &[u32], halved: bool) -> Option<u32> {
        let fits = |space: &Self, array: usize| space.vacant[array] as usize >= inputs.len();
        let found = self.place_where(self.last, halved, inputs, fits).map(|(array, state)| {
            if self.kept[array] == Kept::No {
                self.last = array;
            }
            state
        });
        found.or_else(|| if F::MANY_ARRAYS { None } else { self.place_further(inputs, halved) })
    }

    /// A state for some inputs that updates bring: first where there is most room. A state of one transition
    /// goes to the next vacant slot; one of several to a base somewhere, as the slots next to those taken
    /// last are vacant where none of several found its place.
    pub(super) fn place_likely(&mut self, inputs: &[u32], halved: bool) -> Option<u32> {
        if !F::MANY_ARRAYS {
            return self.place(inputs, halved);
        }
        let first = self.roomiest(halved);
        if inputs.len() > 1 {
            return self.place_anywhere(first, inputs, halved);
        }
        let has_room = |space: &Self, array: usize| space.vacant[array] > 0;
        self.place_where(first, halved, inputs, has_room).map(|(_, state)| state)
    }

    /// A state for some inputs, its slots taken, at a base that is as good as any other, in an array where
    /// one that does is to be expected.
    fn place_anywhere(&mut self, first: usize, inputs: &[u32], halved: bool) -> Option<u32> {
        /// Where so many bases would have to be tried it is left.
        const MANY: u32 = 16;
        for kept in [Kept::No, Kept::ForLarge] {
            for array in in_turn(self.shapes.len(), first) {
                if self.is(array, kept, halved)
                    && let Some(state) = self.place_among(array, inputs, MANY, TRIES)
                {
                    return Some(state);
                }
            }
        }
        None
    }

    /// A state for some inputs in one array, at any of so many bases that are tried. One that does is to be
    /// expected among the first `many`.
    fn place_among(&mut self, array: usize, inputs: &[u32], many: u32, tries: u32) -> Option<u32> {
        let count = i32::try_from(inputs.len()).unwrap_or(i32::MAX);
        let share = f64::from(self.vacant[array]) / f64::from(self.shapes[array].length);
        if share.powi(count) * f64::from(many) < 1.0 {
            return None;
        }
        let base = self.base_for_slots(array, inputs, tries, |_, _| false, |_, _| true)?;
        self.take_all(array, base);
        Some(state::<F>(array, base))
    }

    /// Whether an array is kept for this, and halved or not.
    fn is(&self, array: usize, kept: Kept, halved: bool) -> bool {
        self.kept[array] == kept && self.shapes[array].halved == halved
    }

    /// An array that had the most vacant slots not long ago.
    fn roomiest(&mut self, halved: bool) -> usize {
        /// How many states are placed before it is looked for again.
        const LONG: u32 = 1 << 10;
        let (array, states) = self.roomiest[usize::from(halved)];
        if states > 0 {
            self.roomiest[usize::from(halved)].1 -= 1;
            return array;
        }
        let arrays = (0..self.shapes.len()).filter(|&array| self.shapes[array].halved == halved);
        let array =
            arrays.filter(|&array| self.kept[array] == Kept::No).max_by_key(|&array| self.vacant[array]);
        self.roomiest[usize::from(halved)] = (array.unwrap_or(0), LONG);
        array.unwrap_or(0)
    }

    /// A state for some inputs, and its array: one that is said to be worth a search, from one on in turn.
    fn place_where(
        &mut self,
        first: usize,
        halved: bool,
        inputs: &[u32],
        is_worth: impl Fn(&Self, usize) -> bool,
    ) -> Option<(usize, u32)> {
        for kept in [Kept::No, Kept::ForLarge] {
            for array in in_turn(self.shapes.len(), first) {
                if self.is(array, kept, halved)
                    && is_worth(self, array)
                    && let Some(state) = self.place_in(array, inputs)
                {
                    return Some((array, state));
                }
            }
        }
        None
    }

    /// A state for some inputs in the only array, from places further on in it, the last ones first: what was
    /// passed over must not keep a state out.
    fn place_further(&mut self, inputs: &[u32], halved: bool) -> Option<u32> {
        let shape = self.shapes.first().copied().filter(|shape| shape.halved == halved)?;
        let cursor = self.cursor[0];
        let found = (1..8).rev().find_map(|eighth| {
            self.cursor[0] = shape.length / 8 * eighth;
            self.place_in(0, inputs)
        });
        self.cursor[0] = cursor;
        found
    }

    /// A state for some inputs in one array.
    fn place_in(&mut self, array: usize, inputs: &[u32]) -> Option<u32> {
        let shape = self.shapes[array];
        if !self.keeps_apart(shape, inputs) {
            return None;
        }
        let least = inputs.iter().enumerate().min_by_key(|&(_, input)| input).map_or(0, |(at, _)| at);
        let least = self.residues[least];
        let (mut from, mut words, mut left) = (self.cursor[array], WORDS, shape.length);
        for tried in 0..TRIES {
            let slot = self.next_vacant(shape, from, &mut words, &mut left)?;
            if tried == 0 {
                self.cursor[array] = slot;
            }
            let base = base_for(shape, slot, least);
            let is_used = is_set(&self.used, shape.first + base);
            if !is_used && self.residues.iter().all(|&rest| is_set(&self.free, shape.slot(base, rest))) {
                self.take_all(array, base);
                return Some(state::<F>(array, base));
            }
            from = if slot + 1 == shape.first + shape.length { shape.first } else { slot + 1 };
        }
        self.cursor[array] = from;
        None
    }

    /// Whether a length keeps the inputs of a state apart; their residues are kept.
    pub(super) fn keeps_apart(&mut self, shape: Shape, inputs: &[u32]) -> bool {
        self.residues.clear();
        self.residues.extend(inputs.iter().map(|&input| shape.residue(input)));
        self.apart.are_distinct(&self.residues, shape.length)
    }

    /// A base in an array by which each slot of a state's inputs is vacant or as `fits` wants it, and as
    /// `is_sure` does, which is asked only once all fit. At most so many bases are tried, spread over the
    /// array, and fewer where the first ones say that it is in vain.
    pub(super) fn base_for_slots(
        &mut self,
        array: usize,
        inputs: &[u32],
        tries: u32,
        fits: impl Fn(&Self, u32) -> bool,
        is_sure: impl Fn(&Self, u32) -> bool,
    ) -> Option<u32> {
        let shape = self.shapes[array];
        if !self.keeps_apart(shape, inputs) {
            return None;
        }
        let mut seen = Seen::default();
        for tried in 0..tries {
            if tried >= Seen::FEWEST && seen.expected(inputs.len(), tries - tried) < Seen::HOPE {
                return None;
            }
            self.spread = self.spread.wrapping_add(0x9e37_79b9);
            let base = shape.residue(self.spread);
            if is_set(&self.used, shape.first + base) {
                continue;
            }
            let slots = || self.residues.iter().map(|&residue| shape.slot(base, residue));
            let is_fine = |&slot: &u32| self.is_vacant(slot) || fits(self, slot);
            match slots().position(|slot| !is_fine(&slot)) {
                None if slots().all(|slot| self.is_vacant(slot) || is_sure(self, slot)) => return Some(base),
                None => {}
                Some(fine) => seen.add(fine),
            }
        }
        None
    }

    /// A state has a base from now on; its slots are taken one by one. The state.
    pub(super) fn use_base(&mut self, array: usize, base: u32) -> u32 {
        set(&mut self.used, self.shapes[array].first + base);
        state::<F>(array, base)
    }

    /// The arrays with the most vacant slots, so many of those in use that are halved or not, the first of
    /// them first.
    pub(super) fn roomiest_in_use(&self, halved: bool, most: usize) -> Vec<usize> {
        let is_it = |array: &usize| self.kept[*array] != Kept::Empty && self.shapes[*array].halved == halved;
        let mut arrays: Vec<_> = (0..self.shapes.len()).filter(is_it).collect();
        arrays.sort_unstable_by_key(|&array| std::cmp::Reverse(self.vacant[array]));
        arrays.truncate(most);
        arrays
    }

    fn take_all(&mut self, array: usize, base: u32) {
        let shape = self.shapes[array];
        set(&mut self.used, shape.first + base);
        for &residue in &self.residues {
            clear(&mut self.free, shape.slot(base, residue));
        }
        self.vacant[array] -= u32::try_from(self.residues.len()).expect("at most the vacant slots");
    }

    /// The next vacant slot of an array from one on, around its end. The cursor moves past what was full all
    /// the way.
    fn next_vacant(&mut self, shape: Shape, from: u32, words: &mut usize, left: &mut u32) -> Option<u32> {
        let end = shape.first + shape.length;
        let mut at = from;
        while *words > 0 && *left > 0 {
            let word = self.free[at as usize / 64] >> (at % 64);
            let step = if word == 0 { 64 - at % 64 } else { word.trailing_zeros() };
            let reached = (at + step).min(end);
            *left = left.saturating_sub((reached - at).max(1));
            if word != 0 && at + step < end {
                return Some(at + step);
            }
            *words -= 1;
            at = if reached == end { shape.first } else { reached };
        }
        let array = self.array_of(shape.first);
        self.cursor[array] = at;
        None
    }

    /// The array of a slot.
    pub(super) fn array_of(&self, slot: u32) -> usize {
        self.shapes.partition_point(|array| array.first <= slot) - 1
    }
}

/// So many arrays, from one on and around.
fn in_turn(arrays: usize, first: usize) -> impl Iterator<Item = usize> {
    (first..arrays).chain(0..first)
}

/// What was seen of the slots of an array.
#[derive(Default)]
struct Seen {
    fine: f64,
    bases: f64,
}

impl Seen {
    /// Bases to see before anything is said.
    const FEWEST: u32 = 8;
    /// Fewer bases that fit are not worth looking for.
    const HOPE: f64 = 0.2;

    /// A base, of whose slots so many were fine before the first that wasn't.
    fn add(&mut self, fine: usize) {
        self.fine += f64::from(u32::try_from(fine).unwrap_or(u32::MAX));
        self.bases += 1.0;
    }

    /// How many bases of so many are to be expected to fit a state of so many inputs.
    fn expected(&self, inputs: usize, bases: u32) -> f64 {
        let fine = (self.fine + 1.0) / (self.fine + self.bases + 1.0);
        f64::from(bases) * fine.powi(i32::try_from(inputs).unwrap_or(i32::MAX))
    }
}

fn state<F: Form>(array: usize, base: u32) -> u32 {
    let array = u32::try_from(array).expect("fewer arrays than slots");
    // An ATA has one array, and no bits for its number.
    if array == 0 { base } else { array << F::BASE_BITS | base }
}

/// The base with which a residue is in a slot.
#[inline]
const fn base_for(shape: Shape, slot: u32, residue: u32) -> u32 {
    let offset = slot - shape.first;
    if offset >= residue { offset - residue } else { offset + shape.length - residue }
}

#[inline]
fn is_set(bits: &[u64], at: u32) -> bool {
    bits[at as usize / 64] >> (at % 64) & 1 == 1
}

#[inline]
fn set(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] |= 1 << (at % 64);
}

#[inline]
fn clear(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] &= !(1 << (at % 64));
}
