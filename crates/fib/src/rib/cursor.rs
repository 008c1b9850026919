//! [`Cursor`]: the trie as the engines' builders see it, one octet a step with no compressed edges.

use super::Rib;
use super::node::{Node, NodeId};
use super::preorder::{AT, PLACES};
use crate::address::Address;
use crate::next_hop::NextHop;

/// A position in a table: a path of whole octets under which there are routes. It answers for the octet after it.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a, A> {
    rib: &'a Rib<A>,
    /// The node at this depth or, within a compressed edge, the one at its end.
    node: NodeId,
    depth: u8,
}

impl<'a, A: Address> Cursor<'a, A> {
    pub(super) fn root(rib: &'a Rib<A>) -> Self {
        Self { rib, node: NodeId::ROOT, depth: 0 }
    }

    /// Octets on the path.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// The path one octet further, if any route is longer than that.
    #[inline]
    pub fn child(&self, octet: u8) -> Option<Self> {
        let node = if let Some(node) = self.here() {
            node.child(octet)?
        } else if self.below().base.octet(usize::from(self.depth)) == octet {
            self.node
        } else {
            return None;
        };
        Some(Self { node, depth: self.depth + 1, ..*self })
    }

    /// The octets that have a [`child`](Self::child), ascending.
    pub fn octets(&self) -> impl Iterator<Item = u8> + use<'a, A> {
        let cursor = *self;
        let mut from = 0;
        std::iter::from_fn(move || {
            let octet = match cursor.here() {
                Some(node) => node.child_from(from)?.0,
                None if from == 0 => cursor.below().base.octet(usize::from(cursor.depth)),
                None => return None,
            };
            // Within an edge there is one octet, which may be 0: past it is anything but 0.
            from = if cursor.here().is_some() { u16::from(octet) + 1 } else { 256 };
            Some(octet)
        })
    }

    /// The longest route that ends in this octet and covers `octet`: its length and next hop.
    #[inline]
    pub fn best(&self, octet: u8) -> Option<(u8, NextHop)> {
        let (at, next_hop) = self.here()?.best(octet)?;
        Some((8 * self.depth + AT[usize::from(at)].1, next_hop))
    }

    /// The longest route that ends in this octet within its first `bits` bits and covers those of `octet`: its length
    /// and next hop. For strides that don't end where octets do.
    #[inline]
    pub fn best_within(&self, octet: u8, bits: u8) -> Option<(u8, NextHop)> {
        let (at, next_hop) = self.here()?.best_within(octet, bits)?;
        Some((8 * self.depth + AT[usize::from(at)].1, next_hop))
    }

    /// Whether any route that starts with the first `bits` bits of `octet` is longer than these.
    #[inline]
    pub fn is_longer(&self, octet: u8, bits: u8) -> bool {
        match self.here() {
            Some(node) => node.is_longer(octet, bits),
            None => {
                let only = self.below().base.octet(usize::from(self.depth));
                bits == 0 || (only ^ octet) >> (8 - bits) == 0
            }
        }
    }

    /// The next hop of each of the 256 octets by the routes that end in this octet; `inherited` where there is
    /// none. (Leaf pushing of one stride.)
    #[inline]
    pub fn expand(&self, inherited: NextHop, into: &mut [NextHop; 256]) {
        into.fill(inherited);
        let Some(node) = self.here() else { return };
        for (at, next_hop) in node.places(0, PLACES) {
            // In preorder a longer prefix comes later and paints over.
            let (octet, bits) = AT[usize::from(at)];
            let first = usize::from(octet);
            into[first..first + (1 << (8 - bits))].fill(next_hop);
        }
    }

    fn below(&self) -> &'a Node<A> {
        self.rib.node(self.node)
    }

    fn here(&self) -> Option<&'a Node<A>> {
        let node = self.below();
        (node.depth == self.depth).then_some(node)
    }
}
