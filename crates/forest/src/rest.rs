//! The state of lookups under way, and the rest of a lookup from any state on.

use wirespeed_fib::Address;
use wirespeed_image::{Table, number};

use crate::layout::{Cell, ForestTable};

/// Keys of a block. Their results and chunks stay in the first-level cache.
pub(crate) const BLOCK: usize = 256;

/// The state of the lookups of a block: the longest route so far, as its next hop + 1 (0: none), and the
/// chunk or leaf to go on in.
pub(crate) struct UnderWay {
    pub(crate) routes: [u32; BLOCK],
    pub(crate) links: [u32; BLOCK],
}

impl<A: Address> ForestTable<A> {
    /// The longest route of a lookup, whose state after `from` bits is this.
    #[inline]
    pub(crate) fn rest<C: Cell>(&self, address: A, mut from: u8, mut route: u32, mut link: u32) -> u32 {
        while link != 0 && from < A::BITS {
            let bits = address.bits(from, self.stride) as usize;
            if link & C::LEAF != 0 {
                let last = self.leaf(((link & !C::LEAF) as usize) << self.stride | bits);
                return if last == 0 { route } else { last };
            }
            let cell: C = self.image().at(self.cells, (link as usize) << self.stride | bits);
            route = if cell.route() == 0 { route } else { cell.route() };
            link = cell.link();
            from += self.stride;
        }
        route
    }

    /// The route of an element of a leaf.
    #[inline]
    pub(crate) fn leaf(&self, index: usize) -> u32 {
        match self.leaf_width {
            1 => number(self.image().at::<u8>(self.leaves, index)),
            2 => number(self.image().at::<u16>(self.leaves, index)),
            _ => self.image().at::<u32>(self.leaves, index),
        }
    }
}
