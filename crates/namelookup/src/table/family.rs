//! [`Families`]: what a table knows of nodes with children, beside their records.

use wirespeed_image::HugeVec;

use super::node::NONE;

/// A node with children, or one that had some before the last changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    /// The hash of the node's name.
    pub(super) hash: u32,
    pub(super) children: u32,
    /// The node's result.
    pub(super) result: u32,
    /// The node; of a free family the next free one.
    pub(super) node: u32,
}

/// Families by number. A number is used again.
#[derive(Clone, Debug)]
pub(super) struct Families {
    all: HugeVec<Family>,
    /// The first free one, or [`NONE`].
    free: u32,
}

impl Families {
    pub(super) const fn new() -> Self {
        Self { all: HugeVec::new(), free: NONE }
    }

    /// The bound of numbers: all are below it.
    pub(super) fn bound(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn of(&self, family: u32) -> &Family {
        &self.all[family as usize]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, family: u32) -> &mut Family {
        &mut self.all[family as usize]
    }

    /// Adds a family, and returns its number.
    pub(super) fn add(&mut self, family: Family) -> u32 {
        if self.free == NONE {
            self.all.make_room(1);
            self.all.push(family);
            return u32::try_from(self.all.len() - 1).expect("fewer than nodes");
        }
        let number = self.free;
        self.free = std::mem::replace(self.of_mut(number), family).node;
        number
    }

    /// Frees a family.
    pub(super) fn remove(&mut self, family: u32) {
        let next = std::mem::replace(&mut self.free, family);
        self.of_mut(family).node = next;
    }

    /// Sets the memory to what is there.
    pub(super) fn fit(&mut self) {
        self.all.fit(0);
    }

    pub(super) const fn memory_usage(&self) -> usize {
        self.all.capacity() * size_of::<Family>()
    }
}
