//! [`Buckets`]: the groups of cells that slots lead to, and the ranks of these.

use std::marker::PhantomData;
use std::ops::Range;

use wirespeed_image::{HugeVec, PatchBuilder, prefetch};

use super::cell::{Cell, Form};
use super::dirty::Dirty;
use super::layout::{
    B_AFTER, BLOCK, CELLS, GROUPS, LANES, MOST_GROUPS, RANKS, Slot, blocks, cell_at, group_len, words,
};
use super::space::Space;
use super::store::Full;
use crate::rank::Rank;
use crate::tuple::Tuple;

/// The control plane's copy of cells and ranks.
#[derive(Clone, Debug)]
pub(super) struct Buckets<T> {
    cells: HugeVec<u64>,
    ranks: HugeVec<u64>,
    space: Space,
    /// Lanes by two: the lowest bit is set where the cell is another one too.
    dirty: Dirty,
    tuple: PhantomData<fn() -> T>,
}

/// A bucket, in full.
pub(super) type Contents<T> = Vec<(Cell<T>, Rank)>;

/// Groups are asked for so many before.
const AHEAD: usize = 16;
/// Cells that a bucket may have.
pub(super) const MOST_CELLS: usize = MOST_GROUPS * LANES;

/// The lanes of a bucket.
pub(super) const fn lanes(slot: Slot) -> Range<usize> {
    slot.group() * LANES..(slot.group() + slot.groups()) * LANES
}

/// The logarithm of what is taken for so many groups.
const fn order_of(groups: usize) -> usize {
    groups.next_power_of_two().trailing_zeros() as usize
}

/// Whether a bucket of so many groups can have one more where it is.
pub(super) const fn has_more(groups: usize) -> bool {
    order_of(groups + 1) == order_of(groups)
}

impl<T: Tuple> Buckets<T> {
    /// None yet, with room for as much as an image can hold.
    pub(super) fn new() -> Self {
        Self {
            cells: HugeVec::new(),
            ranks: HugeVec::new(),
            space: Space::new(GROUPS),
            dirty: Dirty::default(),
            tuple: PhantomData,
        }
    }

    /// From now on there are no more than these, and what changes is noted.
    pub(super) fn set_limit(&mut self, groups: u32) {
        self.space.set_limit(groups);
        self.cells.resize(groups as usize * group_len::<T>(), 0);
        self.ranks.resize(groups as usize * LANES, 0);
        self.dirty.start();
    }

    /// All cells.
    pub(super) fn cells(&self) -> &[u64] {
        &self.cells
    }

    /// All ranks.
    pub(super) fn ranks(&self) -> &[u64] {
        &self.ranks
    }

    /// Groups that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.space.end()
    }

    /// The rank of a lane.
    #[inline]
    pub(super) fn rank(&self, lane: usize) -> Rank {
        Rank::from_bits(self.ranks[lane])
    }

    /// The ranks of a bucket; 0 where there is no cell.
    #[inline]
    pub(super) fn ranks_of(&self, slot: Slot) -> &[u64] {
        &self.ranks[lanes(slot)]
    }

    /// Cells of a bucket.
    pub(super) fn contents(&self, slot: Slot) -> Contents<T> {
        let taken = lanes(slot).filter(|&lane| self.ranks[lane] != 0);
        taken.map(|lane| (self.cell(lane, slot.form()), self.rank(lane))).collect()
    }

    /// Where a bucket has a cell.
    #[inline]
    pub(super) fn find(&self, slot: Slot, cell: &Cell<T>) -> Option<usize> {
        lanes(slot).find(|&lane| self.ranks[lane] != 0 && self.is(lane, cell))
    }

    /// Whether a lane's cell is this one, if it is of the same form.
    #[inline]
    fn is(&self, lane: usize, cell: &Cell<T>) -> bool {
        (0..blocks::<T>()).all(|block| {
            let at = cell_at::<T>(lane / LANES, block, lane % LANES);
            self.cells[at..][..2] == words(&cell.a, block)
                && self.cells[at + B_AFTER..][..2] == words(&cell.b, block)
        })
    }

    /// The cell of a lane.
    pub(super) fn cell(&self, lane: usize, form: Form) -> Cell<T> {
        let (mut a, mut b) = (T::default(), T::default());
        for word in 0..T::WORDS {
            let at = cell_at::<T>(lane / LANES, word / BLOCK, lane % LANES) + word % BLOCK / 2;
            #[allow(clippy::cast_possible_truncation)] // the half is what is wanted
            let of = |element: u64| (element >> (word % 2 * 32)) as u32;
            a.words_mut()[word] = of(self.cells[at]);
            b.words_mut()[word] = of(self.cells[at + B_AFTER]);
        }
        Cell { a, b, form }
    }

    /// Puts a cell into a lane.
    pub(super) fn put(&mut self, lane: usize, cell: &Cell<T>, rank: Rank) {
        let mut differs = false;
        for block in 0..blocks::<T>() {
            let at = cell_at::<T>(lane / LANES, block, lane % LANES);
            for (at, tuple) in [(at, &cell.a), (at + B_AFTER, &cell.b)] {
                let (there, words) = (&mut self.cells[at..][..2], words(tuple, block));
                differs |= there != words;
                there.copy_from_slice(&words);
            }
        }
        self.ranks[lane] = rank.bits();
        self.note(lane, differs);
    }

    /// Gives a lane another rank; none where its cell goes.
    pub(super) fn set_rank(&mut self, lane: usize, rank: Rank) {
        if self.ranks[lane] != rank.bits() {
            self.ranks[lane] = rank.bits();
            self.note(lane, false);
        }
    }

    #[inline]
    fn note(&mut self, lane: usize, is_cell: bool) {
        let lane = u32::try_from(lane).expect("a lane's index has 23 bits");
        self.dirty.note(lane << 1 | u32::from(is_cell));
    }

    /// A group has no cells.
    pub(super) fn clear(&mut self, group: usize) {
        (group * LANES..(group + 1) * LANES).for_each(|lane| self.set_rank(lane, Rank::NONE));
    }

    /// A bucket of groups without cells.
    pub(super) fn take(&mut self, groups: usize) -> Result<u32, Full> {
        let group = self.space.take(order_of(groups)).ok_or(Full("groups of cells"))?;
        let end = self.space.end() as usize;
        if self.ranks.len() < end * LANES {
            self.cells.resize(end * group_len::<T>(), 0);
            self.ranks.resize(end * LANES, 0);
        }
        (0..groups).for_each(|more| self.clear(group as usize + more));
        Ok(group)
    }

    /// Takes a bucket back.
    pub(super) fn give(&mut self, slot: Slot) {
        self.space.give(to_u32(slot.group()), order_of(slot.groups()));
    }

    /// Asks for the first group of a bucket.
    #[inline]
    pub(super) fn fetch(&self, group: usize) {
        fetch::<T>(&self.cells, &self.ranks, group);
    }

    /// Asks for the group that a bucket of one gets after so many others, most probably.
    pub(super) fn fetch_free(&self, after: usize) {
        self.fetch(self.space.next(order_of(1), after) as usize);
    }

    /// Writes that there are at most.
    pub(super) const fn writes(&self) -> usize {
        self.dirty.len() * (1 + 4 * blocks::<T>())
    }

    /// Adds to a patch what the image hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder) {
        let dirty = self.dirty.take();
        let lane = |place: u32| (place >> 1) as usize;
        let is_cell = |place: &&u32| **place & 1 == 1;
        let groups = || dirty.chunk_by(|&a, &b| lane(a) / LANES == lane(b) / LANES);
        let mut ahead = groups().skip(AHEAD);
        for group in groups() {
            ahead
                .next()
                .into_iter()
                .for_each(|group| fetch::<T>(&self.cells, &self.ranks, lane(group[0]) / LANES));
            for block in 0..blocks::<T>() {
                for part in [0, B_AFTER] {
                    for &place in group.iter().filter(is_cell) {
                        let lane = lane(place);
                        let at = cell_at::<T>(lane / LANES, block, lane % LANES) + part;
                        patch.set(CELLS, at as u64, self.cells[at]);
                        patch.set(CELLS, at as u64 + 1, self.cells[at + 1]);
                    }
                }
            }
        }
        for lanes in dirty.chunk_by(|&a, &b| lane(a) == lane(b)) {
            let lane = lane(lanes[0]);
            patch.set(RANKS, lane as u64, self.ranks[lane]);
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let arrays = (self.cells.capacity() + self.ranks.capacity()) * 8;
        arrays as u64 + self.space.memory_usage() + self.dirty.memory_usage()
    }
}

/// Asks for a group.
#[inline]
fn fetch<T: Tuple>(cells: &[u64], ranks: &[u64], group: usize) {
    prefetch(ranks, group * LANES);
    (0..group_len::<T>()).step_by(8).for_each(|at| prefetch(cells, group * group_len::<T>() + at));
}

fn to_u32(group: usize) -> u32 {
    u32::try_from(group).expect("a group's index has 21 bits")
}
