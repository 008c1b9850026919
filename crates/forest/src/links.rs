//! [`Links`]: the number of links to each node. Most nodes have few.

use std::collections::HashMap;

use wirespeed_image::HugeVec;

/// The links to each node, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// [`MANY`] for the nodes in `many`.
    few: HugeVec<u8>,
    many: HashMap<u32, u32>,
}

const MANY: u8 = u8::MAX;

impl Links {
    /// Adds a node without links.
    pub(crate) fn push(&mut self) {
        self.few.make_room(1);
        self.few.push(0);
    }

    /// The number of links to a node.
    #[inline]
    pub(crate) fn of(&self, node: u32) -> u32 {
        match self.few[node as usize] {
            MANY => self.many.get(&node).copied().unwrap_or(MANY.into()),
            few => few.into(),
        }
    }

    /// Sets the number of links to a node.
    #[inline]
    pub(crate) fn set(&mut self, node: u32, links: u32) {
        let few = &mut self.few[node as usize];
        let was_many = *few == MANY;
        *few = u8::try_from(links).unwrap_or(MANY);
        if *few == MANY {
            self.many.insert(node, links);
        } else if was_many {
            self.many.remove(&node);
        }
    }

    /// Adds a link to a node.
    #[inline]
    pub(crate) fn add(&mut self, node: u32) {
        self.set(node, self.of(node) + 1);
    }

    /// Removes a link to a node, and returns the number of those left.
    #[inline]
    pub(crate) fn remove(&mut self, node: u32) -> u32 {
        let left = self.of(node) - 1;
        self.set(node, left);
        left
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        (self.few.capacity() + self.many.capacity() * (size_of::<(u32, u32)>() + 1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted_past_a_byte_and_back() {
        let mut links = Links::default();
        (0..2).for_each(|_| links.push());
        for count in 1..=600 {
            links.add(1);
            assert_eq!((links.of(0), links.of(1)), (0, count));
        }
        for count in (0..600).rev() {
            assert_eq!((links.remove(1), links.of(1)), (count, count));
        }
        assert!(links.many.is_empty());
    }
}
