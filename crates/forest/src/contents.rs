//! [`Contents`]: the contents of all nodes, one after the other.
//!
//! ```text
//! bytes  units of two bytes; a content takes as many as it needs. A free piece starts with the unit of the
//!        next free piece of its length, u32
//! at     u32 × nodes, the unit where the content of each node starts; 0 for an empty content
//! ```
//!
//! A content says its own length, so a node takes 4 bytes and its content. Contents of 24 bytes each, longer
//! ones on the heap, took 27 MiB for twelve full tables that are alike, with 4 bytes of links for each node;
//! these take 14.

use wirespeed_image::{HugeVec, prefetch};

use crate::content::{Content, LEAST};

/// Bytes of a cache line. Few contents take more than two.
const LINE: usize = 64;
/// Bytes of a unit.
const UNIT: usize = 2;

/// The contents of nodes, by number.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    bytes: HugeVec<u8>,
    at: HugeVec<u32>,
    /// The first free piece of each length in units, 0 for none.
    free: Vec<u32>,
    /// Units of all free pieces.
    free_units: usize,
}

impl Contents {
    /// Makes the contents of node 0 alone, which is empty.
    pub(crate) fn new() -> Self {
        let (bytes, at) = (HugeVec::filled(0, UNIT), HugeVec::filled(0, 1));
        Self { bytes, at, free: Vec::new(), free_units: 0 }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.at.len()
    }

    /// Adds a node of empty content.
    pub(crate) fn push(&mut self) {
        self.at.make_room(1);
        self.at.push(0);
    }

    /// The content of a node.
    #[inline]
    pub(crate) fn get(&self, node: u32) -> Content<'_> {
        match self.at[node as usize] as usize {
            0 => Content::default(),
            at => Content::at_start_of(&self.bytes[at * UNIT..]),
        }
    }

    /// Prefetches where the content of a node is.
    #[inline]
    pub(crate) fn fetch_place(&self, node: u32) {
        prefetch(&self.at, node as usize);
    }

    /// Prefetches the content of a node.
    #[inline]
    pub(crate) fn fetch(&self, node: u32) {
        let from = self.at[node as usize] as usize * UNIT;
        prefetch(&self.bytes, from);
        prefetch(&self.bytes, from + LINE);
    }

    /// Gives a node a content, which is not empty.
    pub(crate) fn set(&mut self, node: u32, content: Content<'_>) {
        let (old, bytes) = (self.get(node).bytes().len().div_ceil(UNIT), content.bytes());
        let units = bytes.len().div_ceil(UNIT);
        if old != units {
            self.clear(node);
            self.at[node as usize] = self.take(units);
        }
        let from = self.at[node as usize] as usize * UNIT;
        self.bytes[from..from + bytes.len()].copy_from_slice(bytes);
    }

    /// Gives a node an empty content.
    pub(crate) fn clear(&mut self, node: u32) {
        let units = self.get(node).bytes().len().div_ceil(UNIT);
        let at = std::mem::take(&mut self.at[node as usize]);
        if units == 0 {
            return;
        }
        if self.free.len() <= units {
            self.free.resize(units + 1, 0);
        }
        let next = std::mem::replace(&mut self.free[units], at);
        self.bytes[at as usize * UNIT..][..size_of::<u32>()].copy_from_slice(&next.to_le_bytes());
        self.free_units += units;
    }

    /// A piece of so many units.
    fn take(&mut self, units: usize) -> u32 {
        const { assert!(LEAST >= size_of::<u32>()) };
        if let Some(first) = self.free.get_mut(units).filter(|first| **first != 0) {
            let at = *first;
            let next = self.bytes[at as usize * UNIT..].first_chunk().expect("a free piece has its next one");
            *first = u32::from_le_bytes(*next);
            self.free_units -= units;
            return at;
        }
        if self.bytes.capacity() - self.bytes.len() < units * UNIT {
            if self.free_units * UNIT > self.bytes.len() / 4 {
                self.move_together();
            }
            self.bytes.make_room(units * UNIT);
        }
        let at = self.bytes.len() / UNIT;
        self.bytes.resize((at + units) * UNIT, 0);
        u32::try_from(at)
            .expect("contents take under 8 GiB: 2^26 chunks and as many leaves are all that there are")
    }

    /// Moves all contents to the front, so that no piece is free.
    fn move_together(&mut self) {
        let mut bytes = HugeVec::with_capacity(self.bytes.len() - self.free_units * UNIT);
        bytes.resize(UNIT, 0);
        for node in 0..self.at.len() {
            let at = self.at[node] as usize * UNIT;
            if at != 0 {
                // No higher than before.
                self.at[node] = u32::try_from(bytes.len() / UNIT).unwrap_or(u32::MAX);
                bytes.extend_from_slice(Content::at_start_of(&self.bytes[at..]).bytes());
                bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
            }
        }
        (self.bytes, self.free_units) = (bytes, 0);
        self.free.clear();
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        (self.bytes.capacity() + (self.at.capacity() + self.free.capacity()) * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::Draft;

    proptest! {
        /// Nodes keep their contents while others change, and free pieces are used again.
        #[test]
        fn each_node_has_its_content(
            steps in prop::collection::vec((0..40usize, 1..60u32, 0..3u8), 1..600),
        ) {
            let (mut contents, mut model) = (Contents::new(), vec![Vec::new()]);
            for (node, routes, what) in steps {
                if node >= model.len() {
                    contents.push();
                    model.push(Vec::new());
                }
                let node = node.min(model.len() - 1);
                let number = u32::try_from(node).expect("few nodes");
                if what == 0 || node == 0 {
                    contents.clear(number);
                    model[node].clear();
                } else {
                    let mut draft = Draft::default();
                    (2..2 + routes).for_each(|key| draft.set_route(key, Some(key * routes)));
                    model[node] = draft.finish();
                    contents.set(number, Content::at_start_of(&model[node]));
                }
                for (node, content) in (0..).zip(&model) {
                    prop_assert_eq!(contents.get(node).bytes(), &content[..]);
                }
            }
            let taken: usize = model.iter().map(|content| content.len().div_ceil(UNIT)).sum();
            prop_assert_eq!(contents.bytes.len(), (1 + taken + contents.free_units) * UNIT);
        }
    }

    /// Contents that become longer one after the other leave free pieces of lengths that nobody needs.
    #[test]
    fn free_pieces_are_at_most_a_third() {
        let (mut contents, content) = (Contents::new(), |routes: u32| {
            let mut draft = Draft::default();
            (2..2 + routes).for_each(|key| draft.set_route(key, Some(1)));
            draft.finish()
        });
        (0..2_000).for_each(|_| contents.push());
        for routes in 1..20 {
            let content = content(routes);
            (1..2_000).for_each(|node| contents.set(node, Content::at_start_of(&content)));
            let needed = 2_000 * (content.len() + 1 + size_of::<u32>());
            let held = usize::try_from(contents.memory_usage()).expect("little");
            assert!(held < needed * 2, "{held} bytes, {needed} are needed");
        }
    }
}
