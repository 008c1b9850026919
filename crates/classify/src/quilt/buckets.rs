//! [`Buckets`]: the groups of cells that slots lead to, and the ranks of these.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use wirespeed_image::{HugeVec, PatchBuilder, prefetch};

use super::cell::{Cell, Form};
use super::dirty::Dirty;
use super::full::Full;
use super::layout::{B_AFTER, BLOCK, CELLS, GROUPS, LANES, MOST_GROUPS, RANKS, Slot, blocks, cell_at, words};
use super::space::{Space, with_room};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// The control plane's copy of cells and ranks, as far as groups were ever taken: an image has room for more.
#[derive(Clone, Debug)]
pub(super) struct Buckets<T> {
    /// Cells by lane, the blocks of each one after the other: those of a 5-tuple are in one line, where the
    /// image has two.
    cells: HugeVec<Block>,
    ranks: HugeVec<Ranks>,
    space: Space,
    /// Groups that there may be.
    limit: u32,
    /// How many were ever taken.
    taken: usize,
    /// Lanes by two: the lowest bit is set where the cell is another one too.
    dirty: Dirty,
    tuple: PhantomData<fn() -> T>,
}

/// A block of a cell's words.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct Block {
    a: [u64; 2],
    b: [u64; 2],
}

/// Ranks of a group.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C, align(32))]
struct Ranks([u64; LANES]);

/// A bucket, in full.
pub(super) type Contents<T> = Vec<(Cell<T>, Rank)>;

/// The number of groups between a prefetch and its use.
const AHEAD: usize = 32;
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
    /// Empty, with the largest capacity of an image.
    pub(super) fn new() -> Self {
        Self {
            cells: HugeVec::new(),
            ranks: HugeVec::new(),
            space: Space::new(GROUPS),
            limit: GROUPS,
            taken: 0,
            dirty: Dirty::default(),
            tuple: PhantomData,
        }
    }

    /// Limits groups to so many, and notes changes from now on.
    pub(super) fn set_limit(&mut self, groups: u32) {
        self.space.set_limit(groups);
        self.limit = groups;
        self.cells.fit(0);
        self.ranks.fit(0);
        self.dirty.start();
    }

    fn resize(&mut self, groups: u32) {
        let more = with_room(groups, self.limit) as usize - self.ranks.len();
        if self.ranks.capacity() < groups as usize {
            self.cells.reserve_exact(more * LANES * blocks::<T>());
            self.ranks.reserve_exact(more);
        }
        self.cells.resize(groups as usize * LANES * blocks::<T>(), Block::default());
        self.ranks.resize(groups as usize, Ranks::default());
    }

    /// Writes all cells as an image has them; it has zeros where there are none.
    pub(super) fn write_cells(&self, to: &mut [u64]) {
        for (lane, cell) in self.cells.chunks_exact(blocks::<T>()).enumerate() {
            for (block, Block { a, b }) in cell.iter().enumerate() {
                let at = cell_at::<T>(lane / LANES, block, lane % LANES);
                to[at..][..2].copy_from_slice(a);
                to[at + B_AFTER..][..2].copy_from_slice(b);
            }
        }
    }

    /// The ranks of all groups that were ever taken.
    pub(super) fn ranks(&self) -> &[u64] {
        bytemuck::cast_slice(&self.ranks)
    }

    #[inline]
    fn rank_mut(&mut self, lane: usize) -> &mut u64 {
        &mut self.ranks[lane / LANES].0[lane % LANES]
    }

    /// Groups that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.space.end()
    }

    /// The rank of a lane.
    #[inline]
    pub(super) fn rank(&self, lane: usize) -> Rank {
        Rank::from_bits(self.ranks[lane / LANES].0[lane % LANES])
    }

    /// The ranks of a bucket; 0 where there is no cell.
    #[inline]
    pub(super) fn ranks_of(&self, slot: Slot) -> &[u64] {
        &self.ranks()[lanes(slot)]
    }

    /// Cells of a bucket.
    pub(super) fn contents(&self, slot: Slot) -> Contents<T> {
        let taken = lanes(slot).filter(|&lane| self.rank(lane) != Rank::NONE);
        taken.map(|lane| (self.cell(lane, slot.form()), self.rank(lane))).collect()
    }

    /// Where a bucket has a cell.
    #[inline]
    pub(super) fn find(&self, slot: Slot, cell: &Cell<T>) -> Option<usize> {
        lanes(slot).find(|&lane| self.rank(lane) != Rank::NONE && self.is(lane, cell))
    }

    /// Where a bucket has a rank first.
    #[inline]
    pub(super) fn find_rank(&self, slot: Slot, rank: Rank) -> Option<usize> {
        let lanes = self.lanes_of(slot, rank);
        (lanes != 0).then(|| slot.group() * LANES + lanes.trailing_zeros() as usize)
    }

    /// The first lane of a bucket that has no cell.
    #[inline]
    pub(super) fn find_free(&self, slot: Slot) -> Option<usize> {
        self.find_rank(slot, Rank::NONE)
    }

    /// How many cells a bucket has.
    #[inline]
    pub(super) fn taken(&self, slot: Slot) -> usize {
        slot.groups() * LANES - self.lanes_of(slot, Rank::NONE).count_ones() as usize
    }

    /// A bit for each lane of a bucket that has a rank.
    #[inline(always)]
    fn lanes_of(&self, slot: Slot, rank: Rank) -> u32 {
        let groups = &self.ranks[slot.group()..slot.group() + slot.groups()];
        groups.iter().rev().fold(0, |lanes, Ranks(ranks)| {
            let of_group =
                (0..LANES).fold(0, |bits, lane| bits | u32::from(ranks[lane] == rank.bits()) << lane);
            lanes << LANES | of_group
        })
    }

    #[inline]
    fn blocks_of(&self, lane: usize) -> &[Block] {
        &self.cells[lane * blocks::<T>()..][..blocks::<T>()]
    }

    /// Whether a lane's cell is this one, if it is of the same form.
    #[inline]
    fn is(&self, lane: usize, cell: &Cell<T>) -> bool {
        let mut blocks = self.blocks_of(lane).iter().enumerate();
        blocks.all(|(block, there)| there.a == words(&cell.a, block) && there.b == words(&cell.b, block))
    }

    /// The cell of a lane.
    pub(super) fn cell(&self, lane: usize, form: Form) -> Cell<T> {
        let (mut a, mut b) = (T::default(), T::default());
        let blocks = self.blocks_of(lane);
        for word in 0..T::WORDS {
            let (of_a, of_b) = (blocks[word / BLOCK].a, blocks[word / BLOCK].b);
            #[allow(clippy::cast_possible_truncation)] // the half is what is wanted
            let of = |elements: [u64; 2]| (elements[word % BLOCK / 2] >> (word % 2 * 32)) as u32;
            a.words_mut()[word] = of(of_a);
            b.words_mut()[word] = of(of_b);
        }
        Cell { a, b, form }
    }

    /// Puts a cell into a lane.
    #[inline]
    pub(super) fn put(&mut self, lane: usize, cell: &Cell<T>, rank: Rank) {
        for (block, there) in self.cells[lane * blocks::<T>()..][..blocks::<T>()].iter_mut().enumerate() {
            *there = Block { a: words(&cell.a, block), b: words(&cell.b, block) };
        }
        *self.rank_mut(lane) = rank.bits();
        self.note(lane, true);
    }

    /// Gives a lane another rank; none where its cell goes.
    pub(super) fn set_rank(&mut self, lane: usize, rank: Rank) {
        if self.rank(lane) != rank {
            *self.rank_mut(lane) = rank.bits();
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
        self.taken += 1;
        if self.ranks.len() < self.space.end() as usize {
            self.resize(self.space.end());
        }
        (0..groups).for_each(|more| self.clear(group as usize + more));
        Ok(group)
    }

    /// Takes a bucket back.
    pub(super) fn give(&mut self, slot: Slot) {
        self.space.give(to_u32(slot.group()), order_of(slot.groups()));
    }

    /// Asks for the ranks of a bucket, and for its cells where these are wanted.
    #[inline]
    pub(super) fn fetch(&self, slot: Slot, with_cells: bool) {
        for group in slot.group()..slot.group() + slot.groups() {
            prefetch(&self.ranks, group);
            if with_cells {
                self.fetch_cells(group);
            }
        }
    }

    /// Prefetches a cell.
    #[inline]
    pub(super) fn fetch_cell(&self, lane: usize) {
        // Two blocks are in a line.
        let at = lane * blocks::<T>();
        (at..at + blocks::<T>()).step_by(2).for_each(|at| prefetch(&self.cells, at));
    }

    #[inline]
    fn fetch_cells(&self, group: usize) {
        // Two blocks are in a line.
        let at = group * LANES * blocks::<T>();
        (at..at + LANES * blocks::<T>()).step_by(2).for_each(|at| prefetch(&self.cells, at));
    }

    /// How many buckets were ever taken.
    pub(super) const fn ever_taken(&self) -> usize {
        self.taken
    }

    /// Asks for the group that the bucket of one gets that will be taken as this one, most probably.
    #[inline]
    pub(super) fn fetch_free(&self, nth: usize) {
        let after = nth.saturating_sub(self.taken);
        let group = self.space.next(order_of(1), after) as usize;
        prefetch(&self.ranks, group);
        self.fetch_cells(group);
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
        let mut at = 0;
        while let Some(&first) = dirty.get(at) {
            let len =
                dirty[at..].iter().take_while(|&&place| lane(place) / LANES == lane(first) / LANES).count();
            for &place in dirty[at..].iter().skip(AHEAD).take(len) {
                prefetch(&self.ranks, lane(place) / LANES);
                prefetch(&self.cells, lane(place) * blocks::<T>());
            }
            for block in 0..blocks::<T>() {
                for part in [0, B_AFTER] {
                    for &place in dirty[at..at + len].iter().filter(is_cell) {
                        let lane = lane(place);
                        let at = cell_at::<T>(lane / LANES, block, lane % LANES) + part;
                        let Block { a, b } = self.cells[lane * blocks::<T>() + block];
                        let [first, second] = if part == 0 { a } else { b };
                        patch.set(CELLS, at as u64, first);
                        patch.set(CELLS, at as u64 + 1, second);
                    }
                }
            }
            at += len;
        }
        let mut before = usize::MAX;
        for lane in dirty.iter().map(|&place| lane(place)) {
            if lane != before {
                patch.set(RANKS, lane as u64, self.ranks[lane / LANES].0[lane % LANES]);
            }
            before = lane;
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let arrays = (self.cells.capacity() + self.ranks.capacity()) * 32;
        arrays as u64 + self.space.memory_usage() + self.dirty.memory_usage()
    }
}

fn to_u32(group: usize) -> u32 {
    u32::try_from(group).expect("a group's index has 21 bits")
}
