//! [`Buckets`]: the groups of cells that slots lead to, and the ranks of these.

use std::ops::Range;

use wirespeed_image::{HugeVec, PatchBuilder, prefetch};
use wirespeed_table::sort_by_number;

use super::base::Base;
use super::cell::{Cell, Form};
use super::full::Full;
use super::layout::{
    B_AFTER, BLOCK, CELLS, GROUPS, LANES, MOST_GROUPS, RANKS, Slot, blocks, cell_at, group_len, words,
};
use super::pending::{Pending, release};
use super::space::{Space, with_room};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// Which groups are taken, and what the update at hand changes of them. Cells and ranks themselves lie in the
/// table alone, once there is one.
#[derive(Clone, Debug)]
pub(super) struct Buckets<T> {
    /// While the table is built all groups, as far as they were ever taken.
    built: Option<Built<T>>,
    pending: Pending<Group>,
    /// The cells of the pending groups that are others than in the table.
    cells: Vec<Cell<T>>,
    space: Space,
    /// Groups that there may be.
    limit: u32,
    /// How many were ever taken.
    taken: usize,
}

/// Cells by lane and ranks by group.
#[derive(Clone, Debug)]
struct Built<T> {
    cells: HugeVec<Cell<T>>,
    ranks: HugeVec<Ranks>,
}

/// Ranks of a group.
type Ranks = [u64; LANES];

/// A group that changes.
#[derive(Clone, Copy, Debug)]
struct Group {
    ranks: Ranks,
    /// Which of the changed cells a lane has, from 1 on; 0: that of the table.
    cells: [u32; LANES],
}

/// A bucket, in full.
pub(super) type Contents<T> = Vec<(Cell<T>, Rank)>;

/// The number of groups between a prefetch and its use.
const AHEAD: usize = 32;
/// Cells that a bucket may have.
pub(super) const MOST_CELLS: usize = MOST_GROUPS * LANES;

/// The groups of a bucket.
const fn groups(slot: Slot) -> Range<usize> {
    slot.group()..slot.group() + slot.groups()
}

/// The lanes of a bucket.
const fn lanes(slot: Slot) -> Range<usize> {
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
            built: Some(Built { cells: HugeVec::new(), ranks: HugeVec::new() }),
            pending: Pending::new(),
            cells: Vec::new(),
            space: Space::new(GROUPS),
            limit: GROUPS,
            taken: 0,
        }
    }

    /// Limits groups to so many.
    pub(super) fn set_limit(&mut self, groups: u32) {
        self.space.set_limit(groups);
        self.limit = groups;
    }

    /// The table has all groups from now on.
    pub(super) fn settle(&mut self) {
        self.built = None;
    }

    /// While a table is built, writes all cells as an image has them; it has zeros where there are none.
    pub(super) fn write_cells(&self, to: &mut [u64]) {
        for (lane, cell) in self.built.iter().flat_map(|built| built.cells.iter()).enumerate() {
            for block in 0..blocks::<T>() {
                let at = cell_at::<T>(lane / LANES, block, lane % LANES);
                to[at..][..2].copy_from_slice(&words(&cell.a, block));
                to[at + B_AFTER..][..2].copy_from_slice(&words(&cell.b, block));
            }
        }
    }

    /// While a table is built, the ranks of all groups that were ever taken.
    pub(super) fn all_ranks(&self) -> &[u64] {
        self.built.as_ref().map_or(&[], |built| built.ranks.as_flattened())
    }

    /// Groups that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.space.end()
    }

    /// The ranks of a group.
    #[inline(always)]
    fn ranks(&self, group: usize, base: Base<'_>) -> Ranks {
        match &self.built {
            Some(built) => built.ranks[group],
            None => self.pending.get(group).map_or_else(|| base.ranks(group), |group| group.ranks),
        }
    }

    #[inline(always)]
    fn rank_mut(&mut self, lane: usize, base: Base<'_>) -> &mut u64 {
        let group = lane / LANES;
        let ranks = match &mut self.built {
            Some(built) => &mut built.ranks[group],
            None => &mut change(&mut self.pending, group, base).ranks,
        };
        &mut ranks[lane % LANES]
    }

    /// The rank of a lane.
    #[inline]
    pub(super) fn rank(&self, lane: usize, base: Base<'_>) -> Rank {
        Rank::from_bits(self.ranks(lane / LANES, base)[lane % LANES])
    }

    /// The best rank of a bucket.
    #[inline]
    pub(super) fn best(&self, slot: Slot, base: Base<'_>) -> Rank {
        let best = groups(slot).flat_map(|group| self.ranks(group, base)).max();
        Rank::from_bits(best.unwrap_or(0))
    }

    /// Cells of a bucket.
    pub(super) fn contents(&self, slot: Slot, base: Base<'_>) -> Contents<T> {
        let taken = lanes(slot).map(|lane| (lane, self.rank(lane, base)));
        let taken = taken.filter(|&(_, rank)| rank != Rank::NONE);
        taken.map(|(lane, rank)| (self.cell(lane, slot.form(), base), rank)).collect()
    }

    /// Where a bucket has a cell, if its cells are of the same form.
    #[inline]
    pub(super) fn find(&self, slot: Slot, cell: &Cell<T>, base: Base<'_>) -> Option<usize> {
        groups(slot).find_map(|group| {
            let pending = self.pending.get(group);
            let ranks = self.ranks(group, base);
            let is = |lane: usize| match (&self.built, pending.map_or(0, |group| group.cells[lane])) {
                (Some(built), _) => built.cells[group * LANES + lane] == *cell,
                (None, 0) => is_in_base(group, lane, cell, base),
                (None, nth) => self.cells[nth as usize - 1] == *cell,
            };
            let lane = (0..LANES).find(|&lane| ranks[lane] != 0 && is(lane))?;
            Some(group * LANES + lane)
        })
    }

    /// Where a bucket has a rank first.
    #[inline]
    pub(super) fn find_rank(&self, slot: Slot, rank: Rank, base: Base<'_>) -> Option<usize> {
        let lanes = self.lanes_of(slot, rank, base);
        (lanes != 0).then(|| slot.group() * LANES + lanes.trailing_zeros() as usize)
    }

    /// How many cells a bucket has, and the first lane that has none.
    #[inline]
    pub(super) fn taken(&self, slot: Slot, base: Base<'_>) -> (usize, Option<usize>) {
        let free = self.lanes_of(slot, Rank::NONE, base);
        let first = (free != 0).then(|| slot.group() * LANES + free.trailing_zeros() as usize);
        (slot.groups() * LANES - free.count_ones() as usize, first)
    }

    /// How many cells a bucket had before the update at hand.
    #[inline]
    pub(super) fn taken_before(slot: Slot, base: Base<'_>) -> usize {
        groups(slot).flat_map(|group| base.ranks(group)).filter(|&rank| rank != 0).count()
    }

    /// A bit for each lane of a bucket that has a rank.
    #[inline(always)]
    fn lanes_of(&self, slot: Slot, rank: Rank, base: Base<'_>) -> u32 {
        groups(slot).rev().fold(0, |lanes, group| {
            let ranks = self.ranks(group, base);
            let of_group =
                (0..LANES).fold(0, |bits, lane| bits | u32::from(ranks[lane] == rank.bits()) << lane);
            lanes << LANES | of_group
        })
    }

    /// The cell of a lane.
    pub(super) fn cell(&self, lane: usize, form: Form, base: Base<'_>) -> Cell<T> {
        match &self.built {
            Some(built) => built.cells[lane],
            None => {
                let nth =
                    self.pending.get(lane / LANES).map_or(0, |group| group.cells[lane % LANES] as usize);
                let changed = self.cells.get(nth.wrapping_sub(1)).copied();
                changed.map_or_else(|| cell_of(lane, form, base), |cell| Cell { form, ..cell })
            }
        }
    }

    /// Puts a cell into a lane.
    #[inline]
    pub(super) fn put(&mut self, lane: usize, cell: &Cell<T>, rank: Rank, base: Base<'_>) {
        let (group, of_group) = (lane / LANES, lane % LANES);
        if let Some(built) = &mut self.built {
            built.cells[lane] = *cell;
            built.ranks[group][of_group] = rank.bits();
            return;
        }
        let group = change(&mut self.pending, group, base);
        group.ranks[of_group] = rank.bits();
        match &mut group.cells[of_group] {
            none @ 0 => {
                self.cells.push(*cell);
                *none = to_u32(self.cells.len());
            }
            nth => self.cells[*nth as usize - 1] = *cell,
        }
    }

    /// Gives a lane another rank; none where its cell goes.
    pub(super) fn set_rank(&mut self, lane: usize, rank: Rank, base: Base<'_>) {
        *self.rank_mut(lane, base) = rank.bits();
    }

    /// A group has no cells.
    pub(super) fn clear(&mut self, group: usize, base: Base<'_>) {
        if self.ranks(group, base) != [0; LANES] {
            (group * LANES..(group + 1) * LANES).for_each(|lane| self.set_rank(lane, Rank::NONE, base));
        }
    }

    /// A bucket of groups without cells.
    pub(super) fn take(&mut self, groups: usize, base: Base<'_>) -> Result<u32, Full> {
        let group = self.space.take(order_of(groups)).ok_or(Full("groups of cells"))?;
        self.taken += 1;
        let (end, limit) = (self.space.end(), self.limit);
        if let Some(built) = self.built.as_mut().filter(|built| built.ranks.len() < end as usize) {
            built.resize(end, limit);
        }
        (0..groups).for_each(|more| self.clear(group as usize + more, base));
        Ok(group)
    }

    /// Takes a bucket back.
    pub(super) fn give(&mut self, slot: Slot) {
        self.space.give(to_u32(slot.group()), order_of(slot.groups()));
    }

    /// While a table is built, moves buckets together, the longest first, so that there is nothing free
    /// between them.
    pub(super) fn pack(&mut self, slots: &mut [&mut u64]) {
        let Some(before) = self.built.take() else { return };
        sort_by_number(slots, |slot| !(order_of(Slot(**slot).groups()) as u64));
        let mut space = Space::new(self.limit);
        let mut built = Built { cells: HugeVec::new(), ranks: HugeVec::new() };
        for element in slots {
            let slot = Slot(**element);
            // Each takes as many groups as the next or more, so they lie one behind the other.
            let Some(group) = space.take(order_of(slot.groups())) else { continue };
            built.resize(space.end(), self.limit);
            let to = group as usize;
            built.ranks[to..][..slot.groups()].copy_from_slice(&before.ranks[groups(slot)]);
            built.cells[to * LANES..][..slot.groups() * LANES].copy_from_slice(&before.cells[lanes(slot)]);
            **element = Slot::new(slot.top(), slot.filter(), slot.form(), slot.groups(), group).0;
        }
        (self.built, self.space) = (Some(built), space);
    }

    /// Asks for the ranks of a bucket, and for its cells where these are wanted.
    #[inline]
    pub(super) fn fetch(slot: Slot, with_cells: bool, base: Base<'_>) {
        for group in groups(slot) {
            prefetch(base.ranks, group * LANES);
            if with_cells {
                let at = cell_at::<T>(group, 0, 0);
                (at..at + group_len::<T>()).step_by(8).for_each(|at| prefetch(base.cells, at));
            }
        }
    }

    /// How many buckets were ever taken.
    pub(super) const fn ever_taken(&self) -> usize {
        self.taken
    }

    /// Asks for the ranks of the group that the bucket of one gets that will be taken as this one, most
    /// probably.
    #[inline]
    pub(super) fn fetch_free(&self, nth: usize, base: Base<'_>) {
        let after = nth.saturating_sub(self.taken);
        prefetch(base.ranks, self.space.next(order_of(1), after) as usize * LANES);
    }

    /// Writes that there are at most.
    pub(super) const fn writes(&self) -> usize {
        self.pending.len() * LANES + self.cells.len() * 4 * blocks::<T>()
    }

    /// Adds to a patch what the table hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder, base: Base<'_>) {
        self.pending.sort();
        self.put_cells(patch);
        self.put_ranks(patch, base);
        self.pending.clear();
        release(&mut self.cells);
    }

    fn put_cells(&self, patch: &mut PatchBuilder) {
        for (group, &Group { cells, .. }) in
            self.pending.iter().filter(|(_, group)| group.cells != [0; LANES])
        {
            for block in 0..blocks::<T>() {
                for part in [0, B_AFTER] {
                    for (lane, &nth) in cells.iter().enumerate().filter(|&(_, &nth)| nth != 0) {
                        let cell = &self.cells[nth as usize - 1];
                        let at = (cell_at::<T>(group, block, lane) + part) as u64;
                        let [first, second] = words(if part == 0 { &cell.a } else { &cell.b }, block);
                        patch.set(CELLS, at, first);
                        patch.set(CELLS, at + 1, second);
                    }
                }
            }
        }
    }

    fn put_ranks(&self, patch: &mut PatchBuilder, base: Base<'_>) {
        let mut ahead = self.pending.iter().skip(AHEAD);
        for (group, Group { ranks, .. }) in self.pending.iter() {
            ahead.next().into_iter().for_each(|(group, _)| prefetch(base.ranks, group * LANES));
            let before = base.ranks(group);
            for lane in (0..LANES).filter(|&lane| ranks[lane] != before[lane]) {
                patch.set(RANKS, (group * LANES + lane) as u64, ranks[lane]);
            }
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let cells = (self.cells.capacity() * size_of::<Cell<T>>()) as u64;
        let of_group = size_of::<Ranks>() + LANES * size_of::<Cell<T>>();
        let built = self.built.as_ref().map_or(0, |built| built.ranks.len() * of_group);
        built as u64 + self.space.memory_usage() + self.pending.memory_usage() + cells
    }
}

/// A group for a change.
#[inline(always)]
fn change<'p>(pending: &'p mut Pending<Group>, group: usize, base: Base<'_>) -> &'p mut Group {
    pending.change(group, || Group { ranks: base.ranks(group), cells: [0; LANES] })
}

impl<T: Tuple> Built<T> {
    fn resize(&mut self, groups: u32, limit: u32) {
        let more = with_room(groups, limit) as usize - self.ranks.len();
        if self.ranks.capacity() < groups as usize {
            self.cells.reserve_exact(more * LANES);
            self.ranks.reserve_exact(more);
        }
        let none = Cell { a: T::default(), b: T::default(), form: Form::RANGES };
        self.cells.resize(groups as usize * LANES, none);
        self.ranks.resize(groups as usize, [0; LANES]);
    }
}

/// Whether a table has a cell in a lane, if that is of the same form.
#[inline]
fn is_in_base<T: Tuple>(group: usize, lane: usize, cell: &Cell<T>, base: Base<'_>) -> bool {
    (0..blocks::<T>()).all(|block| {
        let at = cell_at::<T>(group, block, lane);
        let is = |at: usize, of: &T| base.cells.get(at..at + 2) == Some(&words(of, block));
        is(at, &cell.a) && is(at + B_AFTER, &cell.b)
    })
}

/// The cell of a lane of a table.
fn cell_of<T: Tuple>(lane: usize, form: Form, base: Base<'_>) -> Cell<T> {
    let (mut a, mut b) = (T::default(), T::default());
    for word in 0..T::WORDS {
        let at = cell_at::<T>(lane / LANES, word / BLOCK, lane % LANES) + word % BLOCK / 2;
        #[allow(clippy::cast_possible_truncation)] // the half is what is wanted
        let of = |at: usize| (base.cells.get(at).copied().unwrap_or(0) >> (word % 2 * 32)) as u32;
        a.words_mut()[word] = of(at);
        b.words_mut()[word] = of(at + B_AFTER);
    }
    Cell { a, b, form }
}

fn to_u32(number: usize) -> u32 {
    u32::try_from(number).expect("a lane's index has 23 bits")
}
