//! [`Cursor`]: the view of the trie for engines' builders, one octet for each step, without compressed edges.

use super::Rib;
use super::leaf::{LeafId, Listed};
use super::node::{Child, ChildId, Node, NodeId};
use super::preorder::{AT, PLACES};
use crate::address::Address;
use crate::next_hop::NextHop;

/// A position in a table: a path of whole octets with routes beneath it. It answers questions about the next
/// octet.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a, A: Address> {
    rib: &'a Rib<A>,
    /// The node at this depth; or, within a compressed edge, the node at its end; or the first leaf of a list
    /// beneath the path.
    at: Child,
    depth: u8,
}

impl<'a, A: Address> Cursor<'a, A> {
    pub(super) fn root(rib: &'a Rib<A>) -> Self {
        Self { rib, at: Child::Node(NodeId::ROOT), depth: 0 }
    }

    /// Octets on the path.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// The path with one more octet, if any route is longer than that path.
    #[inline]
    pub fn child(&self, octet: u8) -> Option<Self> {
        let at = match self.stand() {
            Stand::Node(node) => node.child(octet).map(ChildId::is)?,
            Stand::Edge(only) if only == octet => self.at,
            Stand::Edge(_) => return None,
            Stand::List(head) => Child::List(self.longer_in(head).find(|found| found.0 == octet)?.1),
        };
        Some(Self { at, depth: self.depth + 1, ..*self })
    }

    /// The octets that have a [`child`](Self::child), ascending.
    pub fn octets(&self) -> impl Iterator<Item = u8> + use<'a, A> {
        let cursor = *self;
        let mut from = 0u16;
        std::iter::from_fn(move || {
            let octet = match cursor.stand() {
                Stand::Node(node) => node.child_from(from)?.0,
                Stand::Edge(only) => Some(only).filter(|_| from == 0)?,
                Stand::List(head) => {
                    cursor.longer_in(head).map(|(octet, _)| octet).find(|&octet| u16::from(octet) >= from)?
                }
            };
            // Within an edge there is one octet, which may be 0; after it there is none.
            from = u16::from(octet) + 1;
            Some(octet)
        })
    }

    /// The longest route that ends in this octet and covers `octet`, as its length and next hop.
    #[inline]
    pub fn best(&self, octet: u8) -> Option<(u8, NextHop)> {
        match self.stand() {
            Stand::Node(node) => {
                let (at, next_hop) = node.best(octet)?;
                Some((8 * self.depth + AT[usize::from(at)].1, next_hop))
            }
            Stand::Edge(_) => None,
            Stand::List(head) => self.best_in(head, octet, 8),
        }
    }

    /// The longest route that ends within the first `bits` bits of this octet and covers these bits of
    /// `octet`, as its length and next hop. For strides that don't end at octets.
    #[inline]
    pub fn best_within(&self, octet: u8, bits: u8) -> Option<(u8, NextHop)> {
        match self.stand() {
            Stand::Node(node) => {
                let (at, next_hop) = node.best_within(octet, bits)?;
                Some((8 * self.depth + AT[usize::from(at)].1, next_hop))
            }
            Stand::Edge(_) => None,
            Stand::List(head) => self.best_in(head, octet, bits),
        }
    }

    /// Whether a route that starts with the first `bits` bits of `octet` is longer than these bits.
    #[inline]
    pub fn is_longer(&self, octet: u8, bits: u8) -> bool {
        let starts = |other: u8| bits == 0 || (other ^ octet) >> (8 - bits) == 0;
        match self.stand() {
            Stand::Node(node) => node.is_longer(octet, bits),
            Stand::Edge(only) => starts(only),
            Stand::List(head) => self
                .listed(head)
                .any(|(other, found)| found.prefix.len() > 8 * self.depth + bits && starts(other)),
        }
    }

    /// Writes the next hop of each of the 256 octets, by the routes that end in this octet, or `inherited` if
    /// there is none. (Leaf pushing of one stride.)
    #[inline]
    pub fn expand(&self, inherited: NextHop, into: &mut [NextHop; 256]) {
        into.fill(inherited);
        // In preorder and in lists a longer prefix comes later and overwrites.
        let mut paint = |octet: u8, bits: u8, next_hop| {
            let first = usize::from(octet);
            into[first..first + (1 << (8 - bits))].fill(next_hop);
        };
        match self.stand() {
            Stand::Node(node) => {
                for (at, next_hop) in node.places(0, PLACES) {
                    let (octet, bits) = AT[usize::from(at)];
                    paint(octet, bits, next_hop);
                }
            }
            Stand::Edge(_) => {}
            Stand::List(head) => {
                for (octet, found) in self.listed(head) {
                    if found.prefix.len() <= 8 * self.depth + 8 {
                        paint(octet, found.prefix.len() - 8 * self.depth, found.next_hop);
                    }
                }
            }
        }
    }

    #[inline]
    fn stand(&self) -> Stand<'a, A> {
        match self.at {
            Child::Node(id) => {
                let node = self.rib.node(id);
                match node.depth == self.depth {
                    true => Stand::Node(node),
                    false => Stand::Edge(node.base.octet(usize::from(self.depth))),
                }
            }
            Child::List(head) => Stand::List(head),
        }
    }

    /// The leaves beneath the path, starting at `head`, with their octets here. All are longer than the path.
    #[inline]
    fn listed(&self, head: LeafId) -> impl Iterator<Item = (u8, Listed<A>)> + use<'a, A> {
        let (path, depth) = (self.rib.leaves.address(head), self.depth);
        self.rib
            .leaves
            .list(head)
            .take_while(move |found| found.prefix.address().common_bits(path) >= 8 * depth)
            .map(move |found| (found.prefix.address().octet(usize::from(depth)), found))
    }

    /// The listed routes that are also longer than this octet.
    fn longer_in(&self, head: LeafId) -> impl Iterator<Item = (u8, LeafId)> + use<'a, A> {
        let end = 8 * (self.depth + 1);
        self.listed(head)
            .filter(move |(_, found)| found.prefix.len() > end)
            .map(|(octet, found)| (octet, found.id))
    }

    /// The longest listed route that ends within the first `bits` bits here and covers these bits of `octet`.
    fn best_in(&self, head: LeafId, octet: u8, bits: u8) -> Option<(u8, NextHop)> {
        let covers = |(other, found): &(u8, Listed<A>)| {
            let own = found.prefix.len() - 8 * self.depth;
            own <= bits && (other ^ octet) >> (8 - own) == 0
        };
        self.listed(head).filter(covers).last().map(|(_, found)| (found.prefix.len(), found.next_hop))
    }
}

/// The position of a cursor.
enum Stand<'a, A> {
    /// A node.
    Node(&'a Node<A>),
    /// A compressed edge, which continues with this octet.
    Edge(u8),
    /// A list of leaves below.
    List(LeafId),
}
