//! A node of the trie: the prefixes that end in one octet, and the nodes after it.

use super::leaf::LeafId;
use super::packed::Packed;
use super::preorder::{AT, PATH, Ranked, first_from, has, last_common, last_common_below, place, run};
use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// Index of a node in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// The child of an octet: from [`FIRST_LIST`] on a list of leaves, below that a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChildId(u32);

/// Children from this number on are lists.
pub(super) const FIRST_LIST: u32 = 1 << 31;

/// The kind of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    Node(NodeId),
    /// A list, from its head on.
    List(LeafId),
}

impl ChildId {
    #[inline]
    pub(super) fn is(self) -> Child {
        match self.0.checked_sub(FIRST_LIST) {
            Some(leaf) => Child::List(LeafId(leaf)),
            None => Child::Node(NodeId(self.0)),
        }
    }
}

impl From<NodeId> for ChildId {
    fn from(NodeId(node): NodeId) -> Self {
        Self(node)
    }
}

impl From<LeafId> for ChildId {
    fn from(LeafId(leaf): LeafId) -> Self {
        Self(FIRST_LIST + leaf)
    }
}

impl NodeId {
    /// The node of the first octet, which is always there.
    pub(super) const ROOT: Self = Self(0);

    /// Makes an id. Panics from 2^31 nodes on, which would take over 300 GB.
    pub(super) fn new(index: usize) -> Self {
        let id = u32::try_from(index).ok().filter(|&id| id < FIRST_LIST);
        Self(id.expect("a table has under 2^31 nodes"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The prefixes of `8 * depth + 1` to `8 * depth + 8` bits under `base` (the root also holds the default
/// route), in preorder, and children by octet. Values and children are packed: the n-th set bit belongs to
/// the n-th entry.
#[derive(Clone, Debug)]
pub(super) struct Node<A> {
    /// The first `depth` octets, the others zero.
    pub(super) base: A,
    /// The number of octets above the node's octet.
    pub(super) depth: u8,
    prefixes: Ranked<8>,
    children: Ranked<4>,
    next_hops: Packed,
    child_ids: Vec<ChildId>,
}

/// The place of a prefix: the depth of its node, and its bits there.
#[inline]
pub(super) fn split(len: u8) -> (u8, u8) {
    match len {
        0 => (0, 0),
        _ => ((len - 1) / 8, (len - 1) % 8 + 1),
    }
}

impl<A: Address> Node<A> {
    pub(super) fn new(base: A, depth: u8) -> Self {
        Self {
            base: base.keep(8 * depth),
            depth,
            prefixes: Ranked::EMPTY,
            children: Ranked::EMPTY,
            next_hops: Packed::EMPTY,
            child_ids: Vec::new(),
        }
    }

    /// The node's octet of `address`.
    #[inline]
    pub(super) fn octet_of(&self, address: A) -> u8 {
        address.octet(usize::from(self.depth))
    }

    /// The place in this node of a prefix that belongs to it.
    #[inline]
    pub(super) fn place_of(&self, prefix: Prefix<A>) -> u16 {
        place(self.octet_of(prefix.address()), split(prefix.len()).1)
    }

    /// The prefix at a place.
    #[inline]
    pub(super) fn prefix_at(&self, at: u16) -> Prefix<A> {
        let (octet, bits) = AT[usize::from(at)];
        Prefix::around(self.base.with_octet(usize::from(self.depth), octet), 8 * self.depth + bits)
    }

    #[inline]
    pub(super) fn get(&self, at: u16) -> Option<NextHop> {
        has(&self.prefixes, at).then(|| self.next_hops.get(self.prefixes.rank(at)))
    }

    /// Sets a place. Returns its old value.
    pub(super) fn insert(&mut self, at: u16, next_hop: NextHop) -> Option<NextHop> {
        let index = self.prefixes.rank(at);
        if has(&self.prefixes, at) {
            return Some(self.next_hops.replace(index, next_hop));
        }
        self.prefixes.put(at, true);
        self.next_hops.insert(index, next_hop);
        None
    }

    /// Empties a place. Returns its old value.
    pub(super) fn remove(&mut self, at: u16) -> Option<NextHop> {
        if !has(&self.prefixes, at) {
            return None;
        }
        self.prefixes.put(at, false);
        Some(self.next_hops.remove(self.prefixes.rank(at)))
    }

    /// The longest prefix here that covers the octet.
    #[inline]
    pub(super) fn best(&self, octet: u8) -> Option<(u16, NextHop)> {
        let at = last_common(&self.prefixes, &PATH[usize::from(octet)])?;
        Some((at, self.next_hops.get(self.prefixes.rank(at))))
    }

    /// The longest prefix here of at most `bits` bits that covers the first `bits` bits of the octet.
    #[inline]
    pub(super) fn best_within(&self, octet: u8, bits: u8) -> Option<(u16, NextHop)> {
        // On the path of the octet with zeros after these bits, every longer place comes after this one.
        let to = place(octet, bits) + 1;
        let at = last_common_below(&self.prefixes, &PATH[usize::from(octet)], to)?;
        Some((at, self.next_hops.get(self.prefixes.rank(at))))
    }

    /// Whether anything here or below starts with the first `bits` bits of the octet and is longer.
    #[inline]
    pub(super) fn is_longer(&self, octet: u8, bits: u8) -> bool {
        let at = place(octet, bits);
        let from = u16::from(octet) & !(0xff >> bits);
        first_from(&self.prefixes, at + 1).is_some_and(|found| found < at + run(bits))
            || self.child_from(from).is_some_and(|(child, _)| u16::from(child) < from + (1 << (8 - bits)))
    }

    /// The taken places in `from..to`, ascending, with their next hops.
    pub(super) fn places(&self, from: u16, to: u16) -> impl Iterator<Item = (u16, NextHop)> + '_ {
        let mut index = self.prefixes.rank(from);
        let mut at = from;
        std::iter::from_fn(move || {
            let found = first_from(&self.prefixes, at).filter(|&found| found < to)?;
            at = found + 1;
            index += 1;
            Some((found, self.next_hops.get(index - 1)))
        })
    }

    /// The first taken place at or after `from`.
    #[inline]
    pub(super) fn place_from(&self, from: u16) -> Option<u16> {
        first_from(&self.prefixes, from)
    }

    #[inline]
    pub(super) fn child(&self, octet: u8) -> Option<ChildId> {
        has(&self.children, u16::from(octet)).then(|| self.child_ids[self.children.rank(u16::from(octet))])
    }

    /// The first octet at or after `from` that has a child. `from` may be 256.
    #[inline]
    pub(super) fn child_from(&self, from: u16) -> Option<(u8, ChildId)> {
        let octet = if from < 256 { first_from(&self.children, from)? } else { return None };
        Some((octet.to_le_bytes()[0], self.child_ids[self.children.rank(octet)]))
    }

    /// Sets, replaces or (with `None`) removes the child of an octet.
    pub(super) fn set_child(&mut self, octet: u8, child: Option<ChildId>) {
        let at = u16::from(octet);
        let index = self.children.rank(at);
        match (has(&self.children, at), child) {
            (true, Some(id)) => self.child_ids[index] = id,
            (true, None) => {
                self.child_ids.remove(index);
            }
            (false, Some(id)) => self.child_ids.insert(index, id),
            (false, None) => {}
        }
        self.children.put(at, child.is_some());
    }

    pub(super) fn children(&self) -> &[ChildId] {
        &self.child_ids
    }

    /// Number of prefixes that end here.
    pub(super) fn prefixes(&self) -> usize {
        self.next_hops.len()
    }

    /// Bytes of the packed arrays, reserve included.
    pub(super) fn heap_bytes(&self) -> usize {
        self.next_hops.heap_bytes() + self.child_ids.capacity() * size_of::<ChildId>()
    }

    /// Gives back memory in reserve.
    pub(super) fn shrink(&mut self) {
        self.next_hops.shrink();
        self.child_ids.shrink_to_fit();
    }
}
