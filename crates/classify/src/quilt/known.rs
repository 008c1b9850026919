//! [`Known`]: of each cell that rules have the layer that it is in, and the worse ones of these where they are several.
//!
//! ```text
//! index    hash 32 | 0 | layer 31      of a cell that one rule is; what it is lies in its bucket alone
//!          hash 32 | 1 | place 31      of one that several rules are
//! shared   layer, ranks but the best   by place
//! ```

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;

use wirespeed_image::Index;

use super::cell::{Cell, Form};
use crate::rank::Rank;
use crate::seeded::Seeded;
use crate::tuple::Tuple;

/// Where cells are.
#[derive(Clone, Debug)]
pub(super) struct Known<T> {
    index: Index,
    shared: Vec<Shared>,
    /// Places that are free.
    free: Vec<u32>,
    seeded: Seeded,
    tuple: PhantomData<fn() -> T>,
}

/// A cell that several rules are.
#[derive(Clone, Debug)]
struct Shared {
    layer: u32,
    /// The second best.
    next: Rank,
    others: BTreeSet<Rank>,
}

/// What the index has of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry(u32);

const SHARED: u32 = 1 << 31;

impl Entry {
    /// Whether several rules are this cell.
    #[inline]
    pub(super) const fn is_shared(self) -> bool {
        self.0 & SHARED != 0
    }

    #[inline]
    const fn place(self) -> usize {
        (self.0 & !SHARED) as usize
    }
}

impl Shared {
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
    /// None yet.
    pub(super) fn new(seeded: Seeded) -> Self {
        Self { index: Index::new(), shared: Vec::new(), free: Vec::new(), seeded, tuple: PhantomData }
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

    /// The layer of the first cell of a hash, which need not be the one that is wanted.
    #[inline]
    pub(super) fn seems(&self, hash: u32) -> Option<u32> {
        self.index.find(hash, |_| true).map(|id| self.layer(Entry(id)))
    }

    /// The place of a cell of this hash: what the first gives of its layer.
    #[inline]
    pub(super) fn find<X>(
        &self,
        hash: u32,
        mut place_in: impl FnMut(u32) -> Option<X>,
    ) -> Option<(Entry, X)> {
        let mut place = None;
        let found = self.index.find(hash, |id| {
            place = place_in(self.layer(Entry(id)));
            place.is_some()
        });
        found.map(Entry).zip(place)
    }

    #[inline]
    fn layer(&self, entry: Entry) -> u32 {
        if entry.is_shared() { self.shared[entry.place()].layer } else { entry.0 }
    }

    /// A cell came, into a layer.
    pub(super) fn insert(&mut self, hash: u32, layer: u32) {
        self.index.insert(hash, layer);
    }

    /// A cell with one rule goes.
    pub(super) fn remove(&mut self, hash: u32, entry: Entry) {
        self.index.remove(hash, entry.0);
    }

    /// A cell has one more rule, worse than its best.
    pub(super) fn add_other(&mut self, hash: u32, entry: Entry, rank: Rank) {
        if entry.is_shared() {
            return self.shared[entry.place()].insert(rank);
        }
        let shared = Shared { layer: entry.0, next: rank, others: BTreeSet::new() };
        let place = match self.free.pop() {
            Some(place) => {
                self.shared[place as usize] = shared;
                place
            }
            None => {
                self.shared.push(shared);
                u32::try_from(self.shared.len() - 1).expect("fewer than lanes")
            }
        };
        self.index.replace(hash, entry.0, place | SHARED);
    }

    /// A cell with several rules, the best of which has the rank `best`, has one less. The best of those that are left.
    pub(super) fn remove_one(&mut self, hash: u32, entry: Entry, rank: Rank, best: Rank) -> Rank {
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
            self.free.push(entry.0 & !SHARED);
            self.index.replace(hash, entry.0, layer);
        }
        left
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let others: usize = self.shared.iter().map(|shared| shared.others.len() * 16).sum();
        let places = self.shared.capacity() * size_of::<Shared>() + self.free.capacity() * 4;
        (self.index.memory_usage() + others + places) as u64
    }
}
