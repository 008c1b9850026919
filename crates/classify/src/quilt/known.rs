//! [`Known`]: of each cell that rules have the layer that it is in, and the worse ones of these where they are several.
//!
//! ```text
//! index   hash 32 | others 1 | layer 31        of each cell; what it is lies in its bucket alone
//! others  by cell, where several rules are the same one
//! ```

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, Hasher};

use wirespeed_image::Index;

use super::cell::{Cell, Form};
use crate::rank::Rank;
use crate::seeded::Seeded;
use crate::tuple::Tuple;

/// Where cells are.
#[derive(Clone, Debug)]
pub(super) struct Known<T> {
    index: Index,
    others: HashMap<Cell<T>, BTreeSet<Rank>, Seeded>,
    seeded: Seeded,
}

/// What the index has of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whereabouts(u32);

const OTHERS: u32 = 1 << 31;

impl Whereabouts {
    /// The layer.
    #[inline]
    pub(super) const fn layer(self) -> u32 {
        self.0 & !OTHERS
    }

    /// Whether several rules are this cell.
    #[inline]
    pub(super) const fn has_others(self) -> bool {
        self.0 & OTHERS != 0
    }
}

impl<T: Tuple> Known<T> {
    /// None yet.
    pub(super) fn new(seeded: Seeded) -> Self {
        Self { index: Index::new(), others: HashMap::with_hasher(seeded), seeded }
    }

    /// How many cells.
    pub(super) const fn len(&self) -> usize {
        self.index.len()
    }

    /// The hash that a cell is known by.
    #[inline]
    pub(super) fn hash(&self, cell: &Cell<T>) -> u32 {
        let mut hasher = self.seeded.build_hasher();
        hasher.write(bytemuck::cast_slice(cell.a.words()));
        hasher.write(bytemuck::cast_slice(cell.b.words()));
        hasher.write_u64((cell.form == Form::Masks).into());
        #[allow(clippy::cast_possible_truncation)] // 32 bits are left
        let hash = (hasher.finish() >> 32) as u32;
        hash
    }

    /// Asks for what there is of a hash.
    #[inline]
    pub(super) fn fetch(&self, hash: u32) {
        self.index.fetch(hash);
    }

    /// Where the first cell of a hash is, which need not be the one that is wanted.
    #[inline]
    pub(super) fn seems(&self, hash: u32) -> Option<Whereabouts> {
        self.index.find(hash, |_| true).map(Whereabouts)
    }

    /// The place of a cell of this hash: what the first gives of its layer.
    #[inline]
    pub(super) fn find<X>(
        &self,
        hash: u32,
        mut place_in: impl FnMut(u32) -> Option<X>,
    ) -> Option<(Whereabouts, X)> {
        let mut place = None;
        let found = self.index.find(hash, |id| {
            place = place_in(Whereabouts(id).layer());
            place.is_some()
        });
        found.map(Whereabouts).zip(place)
    }

    /// A cell came, into a layer.
    pub(super) fn insert(&mut self, hash: u32, layer: u32) {
        self.index.insert(hash, layer);
    }

    /// A cell with one rule goes.
    pub(super) fn remove(&mut self, hash: u32, whereabouts: Whereabouts) {
        self.index.remove(hash, whereabouts.0);
    }

    /// A cell has one more rule, worse than its best.
    pub(super) fn add_other(&mut self, hash: u32, whereabouts: Whereabouts, cell: &Cell<T>, rank: Rank) {
        self.others.entry(*cell).or_default().insert(rank);
        if !whereabouts.has_others() {
            self.index.replace(hash, whereabouts.0, whereabouts.0 | OTHERS);
        }
    }

    /// A cell with several rules, the best of which has the rank `best`, has one less. The best of the others.
    pub(super) fn remove_one(
        &mut self,
        hash: u32,
        whereabouts: Whereabouts,
        cell: &Cell<T>,
        rank: Rank,
        best: Rank,
    ) -> Rank {
        let Some(others) = self.others.get_mut(cell) else { return best };
        let left = if rank == best {
            others.pop_last().unwrap_or(best)
        } else {
            let is_there = others.remove(&rank);
            debug_assert!(is_there, "what a rule had is there");
            best
        };
        if others.is_empty() {
            self.others.remove(cell);
            self.index.replace(hash, whereabouts.0, whereabouts.layer());
        }
        left
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let others: usize = self.others.values().map(|others| 40 + others.len() * 16).sum();
        let map = self.others.capacity() * (size_of::<(Cell<T>, BTreeSet<Rank>)>() + 1);
        (self.index.memory_usage() + others + map) as u64
    }
}
