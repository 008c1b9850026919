//! The state of lookups under way, and the rest of a lookup from any state on.

use wirespeed_fib::Address;
use wirespeed_image::number;

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
        let (cells, width, leaf_bit) = (self.cells::<C>(), self.width, self.width.leaf_bit());
        while link != 0 && from < A::BITS {
            let bits = address.bits(from, self.stride) as usize;
            if link & leaf_bit != 0 {
                let last = self.leaf(((link & !leaf_bit) as usize) << self.stride | bits);
                return if last == 0 { route } else { last };
            }
            let cell = cells.at((link as usize) << self.stride | bits);
            route = if cell.route(width) == 0 { route } else { cell.route(width) };
            link = cell.link(width);
            from += self.stride;
        }
        route
    }

    /// The route of an element of a leaf.
    #[inline]
    pub(crate) fn leaf(&self, index: usize) -> u32 {
        match self.leaf_width {
            1 => number(self.leaves::<u8>().at(index)),
            2 => number(self.leaves::<u16>().at(index)),
            _ => self.leaves::<u32>().at(index),
        }
    }
}
