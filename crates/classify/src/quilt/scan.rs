//! [`Scan`]: cells that hashes can't tell apart, which lookups compare one after the other.
//!
//! A hash needs bits that a cell's tuples have in common. Wide ranges leave none, and where many cells want
//! the same of the bits that they do fix, one bucket would have to hold them all. Comparing sixteen cells at
//! once costs about as much as a layer does; so such cells lie here, and so do those of masks that few cells
//! share, where there would be a layer for each.
//!
//! A cell has a lane, which it keeps until it goes. Free lanes are given again, the lowest first, so that
//! what is compared stays short.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use wirespeed_image::{Image, ImageError, Index, PatchBuilder};
use wirespeed_table::sort_by_number;

use super::cell::Cell;
use super::dirty::Dirty;
use super::full::Full;
use super::layout::{
    HEAD, SCAN, SCAN_AT, SCAN_LANES, SCAN_RANKS, SCAN_TOPS, SPANS_AFTER, TOPS, VALUES_AFTER, scan_at,
};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// The control plane's copy of what is scanned.
#[derive(Clone, Debug)]
pub(super) struct Scan<T> {
    /// Cells by lane. A free lane has what it had.
    all: Vec<Scanned<T>>,
    /// The best rank of each group's lanes.
    tops: Vec<Rank>,
    /// The best rank of the lanes of each group and of those after it, as in the image.
    rests: Vec<Rank>,
    free: BinaryHeap<Reverse<u32>>,
    /// Lanes by the hashes of their cells.
    index: Index,
    /// Groups that there may be.
    limit: usize,
    /// Lanes that may be others than in the image.
    dirty: Dirty,
    /// Groups in use, as in the image.
    written: usize,
}

#[derive(Clone, Copy, Debug)]
struct Scanned<T> {
    cell: Cell<T>,
    hash: u32,
    rank: Rank,
}

/// The most groups.
const MOST_GROUPS: usize = 1 << 16;
/// The most cells.
pub(super) const MOST_CELLS: u64 = (MOST_GROUPS * SCAN_LANES) as u64;
/// What runs out where there are more.
pub(super) const FULL: &str = "cells to scan";

impl<T: Tuple> Scan<T> {
    /// None yet, with room for as much as there can be.
    pub(super) fn new() -> Self {
        Self {
            all: Vec::new(),
            tops: Vec::new(),
            rests: Vec::new(),
            free: BinaryHeap::new(),
            index: Index::sparse(),
            limit: MOST_GROUPS,
            dirty: Dirty::default(),
            written: 0,
        }
    }

    /// Limits groups to so many, and notes changes from now on.
    pub(super) fn set_limit(&mut self, groups: usize) {
        self.limit = groups;
        self.rests = self.rests();
        self.written = self.groups();
        self.dirty.start();
    }

    /// How many cells.
    pub(super) const fn len(&self) -> usize {
        self.index.len()
    }

    /// Groups up to the last that has a cell. O(groups that are empty at the end).
    pub(super) fn groups(&self) -> usize {
        self.tops.iter().rposition(|&top| top != Rank::NONE).map_or(0, |last| last + 1)
    }

    /// The best rank of each group's lanes.
    pub(super) fn tops(&self) -> &[Rank] {
        &self.tops
    }

    fn rests(&self) -> Vec<Rank> {
        let mut rests = self.tops.clone();
        let mut rest = Rank::NONE;
        for top in rests.iter_mut().rev() {
            rest = rest.max(*top);
            *top = rest;
        }
        rests
    }

    /// The cells of a group with their ranks.
    pub(super) fn group(&self, group: usize) -> impl Iterator<Item = (&Cell<T>, Rank)> {
        let lanes = self.all.iter().skip(group * SCAN_LANES).take(SCAN_LANES);
        lanes.map(|scanned| (&scanned.cell, scanned.rank)).filter(|&(_, rank)| rank != Rank::NONE)
    }

    /// The lane of a cell.
    #[inline]
    pub(super) fn find(&self, hash: u32, cell: &Cell<T>) -> Option<usize> {
        self.index.find(hash, |lane| self.all[lane as usize].cell == *cell).map(|lane| lane as usize)
    }

    /// The rank of a lane.
    pub(super) fn rank(&self, lane: usize) -> Rank {
        self.all[lane].rank
    }

    /// Adds a cell that isn't there.
    pub(super) fn insert(&mut self, hash: u32, cell: &Cell<T>, rank: Rank) -> Result<(), Full> {
        let scanned = Scanned { cell: *cell, hash, rank };
        let lane = match self.free.pop() {
            Some(Reverse(lane)) => {
                self.all[lane as usize] = scanned;
                lane
            }
            None if self.all.len() == self.limit * SCAN_LANES => return Err(Full(FULL)),
            None => {
                self.all.push(scanned);
                u32::try_from(self.all.len() - 1).expect("fewer than lanes of all groups")
            }
        };
        self.index.insert(hash, lane);
        self.touch(lane);
        Ok(())
    }

    /// Takes a cell out.
    pub(super) fn remove(&mut self, lane: usize) {
        let id = u32::try_from(lane).expect("a lane");
        self.index.remove(self.all[lane].hash, id);
        self.free.push(Reverse(id));
        self.set_rank(lane, Rank::NONE);
    }

    /// Gives a cell another rank.
    pub(super) fn set_rank(&mut self, lane: usize, rank: Rank) {
        self.all[lane].rank = rank;
        self.touch(u32::try_from(lane).expect("a lane"));
    }

    /// A lane is another than it was.
    fn touch(&mut self, lane: u32) {
        self.dirty.note(lane);
        let group = lane as usize / SCAN_LANES;
        if group == self.tops.len() {
            self.tops.push(Rank::NONE);
        }
        self.tops[group] = self.group(group).map(|(_, rank)| rank).max().unwrap_or(Rank::NONE);
    }

    /// Puts the best cells first. Before there is an image.
    pub(super) fn sort(&mut self) {
        let mut all: Vec<_> = self.all.drain(..).filter(|scanned| scanned.rank != Rank::NONE).collect();
        sort_by_number(&mut all, |scanned| !scanned.rank.bits());
        *self = Self { limit: self.limit, ..Self::new() };
        for Scanned { cell, hash, rank } in all {
            self.insert(hash, &cell, rank).expect("as many as before");
        }
    }

    /// Writes all into an image.
    pub(super) fn compile(&self, image: &mut Image) -> Result<(), ImageError> {
        image.section_mut::<u64>(HEAD)?[SCAN_AT] = self.groups() as u64;
        let tops = image.section_mut::<u64>(SCAN_TOPS)?;
        for (to, (top, rest)) in tops.chunks_exact_mut(TOPS).zip(self.tops.iter().zip(self.rests())) {
            to.copy_from_slice(&[top.bits(), rest.bits()]);
        }
        let cells = image.section_mut::<u32>(SCAN)?;
        for (lane, scanned) in self.all.iter().enumerate() {
            for word in 0..T::WORDS {
                let at = scan_at(T::WORDS, lane, word);
                [cells[at], cells[at + VALUES_AFTER], cells[at + SPANS_AFTER]] = scanned.cell.masked(word);
            }
        }
        let ranks = image.section_mut::<u64>(SCAN_RANKS)?;
        ranks.iter_mut().zip(&self.all).for_each(|(to, scanned)| *to = scanned.rank.bits());
        Ok(())
    }

    /// Writes that [`write`](Self::write) makes at most.
    pub(super) const fn writes(&self) -> usize {
        self.dirty.len() * (3 * T::WORDS + 2) + self.tops.len() + 1
    }

    /// Adds to a patch what the image hasn't.
    pub(super) fn write(&mut self, patch: &mut PatchBuilder) {
        let groups = self.groups();
        if groups != self.written {
            self.written = groups;
            patch.set(HEAD, SCAN_AT as u64, groups as u64);
        }
        if self.dirty.len() == 0 {
            return;
        }
        let mut dirty = std::mem::take(&mut self.dirty);
        let lanes: Vec<usize> = dirty.take().iter().map(|&lane| lane as usize).collect();
        self.dirty = dirty;
        let rests = self.rests();
        let mut changed: Vec<usize> = lanes.iter().map(|lane| lane / SCAN_LANES).collect();
        changed.dedup();
        for &group in &changed {
            patch.set(SCAN_TOPS, (group * TOPS) as u64, self.tops[group].bits());
        }
        for (group, rest) in rests.iter().enumerate() {
            if self.rests.get(group) != Some(rest) {
                patch.set(SCAN_TOPS, (group * TOPS + 1) as u64, rest.bits());
            }
        }
        self.rests = rests;
        for &lane in &lanes {
            // Of one that went the rank says so.
            if self.all[lane].rank == Rank::NONE {
                continue;
            }
            for word in 0..T::WORDS {
                let at = scan_at(T::WORDS, lane, word) as u64;
                let places = [at, at + VALUES_AFTER as u64, at + SPANS_AFTER as u64];
                let elements = places.into_iter().zip(self.all[lane].cell.masked(word));
                elements.for_each(|(at, element)| patch.set(SCAN, at, element.into()));
            }
        }
        lanes.iter().for_each(|&lane| patch.set(SCAN_RANKS, lane as u64, self.all[lane].rank.bits()));
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let all = self.all.capacity() * size_of::<Scanned<T>>() + self.free.capacity() * 4;
        (all + self.tops.capacity() * 16 + self.index.memory_usage()) as u64 + self.dirty.memory_usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quilt::cell::Form;
    use crate::{Ipv4Tuple, RuleNumber};

    #[test]
    fn lanes_are_given_again_and_tops_are_the_best() {
        let of = |word: u32| Ipv4Tuple::from_words(&[word, 0, 0, 0]);
        let cell = |word| Cell { a: of(word), b: of(word), form: Form::MASKS };
        let rank = |number| Rank::new(1, RuleNumber::new(number).expect("a number"));
        let mut scan = Scan::new();
        // All of one hash.
        (1..=40).rev().for_each(|n| scan.insert(7, &cell(n), rank(n)).expect("there is room"));
        scan.sort();
        assert_eq!(scan.tops(), [rank(1), rank(17), rank(33)]);
        scan.set_limit(3);
        let lane = |scan: &Scan<_>, n| scan.find(7, &cell(n));
        assert_eq!((lane(&scan, 1), lane(&scan, 40), lane(&scan, 41)), (Some(0), Some(39), None));
        (33..=40).for_each(|n| scan.remove(lane(&scan, n).expect("it is there")));
        assert_eq!((scan.groups(), lane(&scan, 33)), (2, None));
        scan.remove(0);
        scan.insert(7, &cell(99), rank(99)).expect("there is room");
        assert_eq!((lane(&scan, 99), scan.tops()[0], scan.group(0).count()), (Some(0), rank(2), 16));
        (100..116).for_each(|n| scan.insert(8, &cell(n), rank(n)).expect("there is room"));
        assert_eq!(scan.insert(8, &cell(116), rank(116)), Err(Full(FULL)));
        let mut patch = PatchBuilder::new();
        scan.write(&mut patch);
        let patch = patch.finish(None);
        assert_eq!(patch.of(HEAD).len(), 0, "as many groups as before");
        let tops: Vec<_> = patch.of(SCAN_TOPS).iter().map(|write| (write.index(), write.value)).collect();
        let [top, last] = [rank(2), rank(100)].map(Rank::bits);
        // The second group is as it was.
        assert_eq!(tops, [(0, top), (1, top), (4, last), (5, last)]);
        assert_eq!(patch.of(SCAN_RANKS).len(), 17);
    }
}
