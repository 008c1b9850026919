//! [`Known`]: of each cell that rules have the layer that it is in, and the worse ones of these where they
//! are several.
//!
//! ```text
//! index    hash 32 | 0 | layer 31      of a cell that one rule is; what it is lies in its bucket alone
//!          hash 32 | 1 | place 31      of one that several rules are
//! shared   cell, layer, ranks but the best      by place
//! ```
//!
//! Cells of one hash and one layer have equal entries, and any of these will do for any of them, until one is
//! shared. So an entry that is shared is of one cell alone, and is looked for before the others.

use std::collections::BTreeSet;

use wirespeed_image::{At, Index};

use super::cell::Cell;
use super::layout::{blocks, words};
use crate::free::pop;
use crate::rank::Rank;
use crate::seeded::{Pairs, Seeded};
use crate::tuple::Tuple;

/// Where cells are.
#[derive(Clone, Debug)]
pub(super) struct Known<T> {
    index: Index,
    shared: Vec<Shared<T>>,
    /// Places that are free.
    free: Vec<u32>,
    pairs: Pairs,
}

/// A cell that several rules are.
#[derive(Clone, Debug)]
struct Shared<T> {
    cell: Cell<T>,
    layer: u32,
    /// The second best.
    next: Rank,
    others: BTreeSet<Rank>,
}

/// What the index has of a cell, and where: until another cell comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    id: u32,
    at: At,
}

const SHARED: u32 = 1 << 31;

impl Entry {
    /// Whether several rules are this cell.
    #[inline]
    pub(super) const fn is_shared(self) -> bool {
        self.id & SHARED != 0
    }

    #[inline]
    const fn place(self) -> usize {
        (self.id & !SHARED) as usize
    }
}

impl<T> Shared<T> {
    fn insert(&mut self, rank: Rank) {
        self.others.insert(self.next.min(rank));
        self.next = self.next.max(rank);
    }

    /// Takes the second best.
    fn pop(&mut self) -> Rank {
        std::mem::replace(&mut self.next, self.others.pop_last().unwrap_or(Rank::NONE))
    }
}

impl<T: Tuple> Known<T> {
    /// Empty.
    pub(super) fn new(seeded: Seeded) -> Self {
        Self { index: Index::new(), shared: Vec::new(), free: Vec::new(), pairs: Pairs::new(seeded) }
    }

    /// How many cells.
    pub(super) const fn len(&self) -> usize {
        self.index.len()
    }

    /// The hash that a cell is known by.
    #[inline(always)]
    pub(super) fn hash(&self, cell: &Cell<T>) -> u32 {
        let pairs = (0..blocks::<T>()).flat_map(|block| {
            let ([a, other_a], [b, other_b]) = (words(&cell.a, block), words(&cell.b, block));
            [[a, b], [other_a, other_b]]
        });
        #[allow(clippy::cast_possible_truncation)] // 32 bits are left
        let hash = (self.pairs.hash(pairs) >> 32) as u32;
        hash ^ cell.form.bits()
    }

    /// Asks for what there is of a hash.
    #[inline]
    pub(super) fn fetch(&self, hash: u32) {
        self.index.fetch(hash);
    }

    /// The layer of the first cell of a hash, which need not be the one that is wanted.
    #[inline]
    pub(super) fn seems(&self, hash: u32) -> Option<u32> {
        self.first(hash).ok().map(|entry| self.layer(entry))
    }

    /// What there is first of a hash, or where an entry of it could go.
    #[inline(always)]
    pub(super) fn first(&self, hash: u32) -> Result<Entry, At> {
        self.index.look(hash, |_, _| true).map(|(at, id)| Entry { id, at })
    }

    /// Whether there is more of a hash than what was first.
    #[inline(always)]
    pub(super) fn is_more(&self, hash: u32, first: Entry) -> bool {
        self.index.look_after(first.at, hash, |_, _| true).is_ok()
    }

    /// The entry of a cell and its place, or the place for its entry. The layer that has the cell says its
    /// place, when it is told whether several rules are that cell.
    pub(super) fn find<X>(
        &self,
        hash: u32,
        cell: &Cell<T>,
        place_in: impl Fn(u32, bool) -> Option<X>,
    ) -> Result<(Entry, X), At> {
        let is_any_shared = self.shared.len() > self.free.len();
        let mut alone = None;
        let found = self.index.look(hash, |at, id| {
            let entry = Entry { id, at };
            if entry.is_shared() {
                return self.shared[entry.place()].cell == *cell;
            }
            if alone.is_none() {
                alone = place_in(id, false).map(|place| (entry, place));
            }
            alone.is_some() && !is_any_shared
        });
        match found {
            Ok((at, id)) if id & SHARED != 0 => {
                let entry = Entry { id, at };
                place_in(self.layer(entry), true).map(|place| (entry, place)).ok_or(at)
            }
            Ok((at, _)) | Err(at) => alone.ok_or(at),
        }
    }

    /// The layer that has it.
    #[inline]
    pub(super) fn layer(&self, entry: Entry) -> u32 {
        if entry.is_shared() { self.shared[entry.place()].layer } else { entry.id }
    }

    /// A cell came, into a layer.
    #[inline]
    pub(super) fn insert(&mut self, at: At, hash: u32, layer: u32) {
        self.index.insert_at(at, hash, layer);
    }

    /// A cell with one rule goes.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry) {
        self.index.remove_at(entry.at);
    }

    /// A cell has one more rule, worse than its best.
    pub(super) fn add_other(&mut self, entry: Entry, cell: &Cell<T>, rank: Rank) {
        if entry.is_shared() {
            return self.shared[entry.place()].insert(rank);
        }
        let shared = Shared { cell: *cell, layer: entry.id, next: rank, others: BTreeSet::new() };
        let place = match pop(&mut self.free) {
            Some(place) => {
                self.shared[place as usize] = shared;
                place
            }
            None => {
                self.shared.push(shared);
                u32::try_from(self.shared.len() - 1).expect("fewer than lanes")
            }
        };
        self.index.replace_at(entry.at, place | SHARED);
    }

    /// A cell with several rules, the best of which has the rank `best`, has one less. The best of those that
    /// are left.
    pub(super) fn remove_one(&mut self, entry: Entry, rank: Rank, best: Rank) -> Rank {
        let shared = &mut self.shared[entry.place()];
        let left = if rank == best {
            shared.pop()
        } else {
            let is_there =
                if rank == shared.next { shared.pop() == rank } else { shared.others.remove(&rank) };
            debug_assert!(is_there, "what a rule had is there");
            best
        };
        if shared.next == Rank::NONE {
            let layer = shared.layer;
            self.free.push(entry.id & !SHARED);
            self.index.replace_at(entry.at, layer);
        }
        left
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let others: usize = self.shared.iter().map(|shared| shared.others.len() * 16).sum();
        let places = self.shared.capacity() * size_of::<Shared<T>>() + self.free.capacity() * 4;
        (self.index.memory_usage() + others + places) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quilt::cell::Form;
    use crate::{Ipv4Tuple, RuleNumber, Tuple};

    /// Gives two cells of a layer one hash: the rank is that of the right one.
    #[test]
    fn cells_of_one_hash_are_told_apart() {
        let of = |word: u32| Ipv4Tuple::from_words(&[word, 0, 0, 0]);
        let cells = [1, 2].map(|word| Cell { a: of(word), b: of(word), form: Form::MASKS });
        let rank = |number| Rank::new(1, RuleNumber::new(number).expect("a number"));
        let (hash, layer) = (7, 5);
        for [one, other] in [[0, 1], [1, 0]] {
            let mut known = Known::<Ipv4Tuple>::new(Seeded(1));
            let find = |known: &Known<_>, at: usize| {
                let place_in = |found: u32, _| (found == layer).then_some(at);
                known.find(hash, &cells[at], place_in).expect("it is there")
            };
            for _ in 0..2 {
                let at = known.find(hash, &cells[0], |_, _| None::<()>).expect_err("it is nowhere");
                known.insert(at, hash, layer);
            }
            let (entry, place) = find(&known, one);
            assert_eq!((entry.is_shared(), place), (false, one));
            known.add_other(entry, &cells[one], rank(9));
            assert!(find(&known, one).0.is_shared() && !find(&known, other).0.is_shared());
            assert_eq!((find(&known, one).1, find(&known, other).1, known.len()), (one, other, 2));
            known.add_other(find(&known, other).0, &cells[other], rank(4));
            known.add_other(find(&known, one).0, &cells[one], rank(6));
            let left = |known: &mut Known<_>, at: usize, gone, best| {
                let entry = find(known, at).0;
                known.remove_one(entry, gone, best)
            };
            assert_eq!(left(&mut known, one, rank(2), rank(2)), rank(6));
            assert_eq!(left(&mut known, one, rank(9), rank(6)), rank(6));
            assert_eq!(left(&mut known, other, rank(4), rank(3)), rank(3));
            assert!(!find(&known, one).0.is_shared() && !find(&known, other).0.is_shared());
            known.remove(find(&known, one).0);
            assert_eq!((known.len(), find(&known, other).1), (1, other));
        }
    }
}
