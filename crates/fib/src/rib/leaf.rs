//! [`Leaves`]: lists of the few routes beneath a child that are not worth a node.
//!
//! ```text
//! node ── octet ──► 2001:db8:77::/48 ──► 2001:db8:77:5::/64 ──► 2001:db8:80::/48      at most MOST, in table order
//! ```
//!
//! A node takes about 190 bytes, a leaf 25 (IPv4: 13). In a table of scattered routes nearly every route is
//! alone beneath its octet, and lists replace the nodes that would hold one route each. A list that grows
//! over [`MOST`] becomes a node. A node with only [`FEW`] routes left beneath it becomes a list again.

use super::node::{FIRST_LIST, split};
use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// The most routes of a list. With 8, scattered tables would take less memory at worst, but reading a list
/// would take longer.
pub(super) const MOST: usize = 4;
/// The most routes of a list that replaces a node. It is less than [`MOST`], so that a route that flaps
/// does not convert back and forth.
pub(super) const FEW: usize = 2;

/// Index of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafId(pub(super) u32);

impl LeafId {
    /// No leaf: the end of a list.
    pub(super) const NONE: Self = Self(u32::MAX);

    fn index(self) -> usize {
        self.0 as usize
    }

    fn there(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// The leaves of all lists, in columns: in rows an address would need an alignment of 16 bytes.
#[derive(Clone, Debug)]
pub(super) struct Leaves<A> {
    addresses: Vec<A>,
    lens: Vec<u8>,
    links: Vec<Link>,
    /// The list of free leaves. Their next hop is zero.
    free: LeafId,
}

/// The next hop of a route, and the next leaf of its list.
#[derive(Clone, Copy, Debug)]
struct Link {
    next_hop: NextHop,
    next: LeafId,
}

/// A route of a list: its leaf, prefix and next hop.
#[derive(Clone, Copy)]
pub(super) struct Listed<A> {
    pub(super) id: LeafId,
    pub(super) prefix: Prefix<A>,
    pub(super) next_hop: NextHop,
}

/// The result of putting a route into a list.
pub(super) enum Put {
    /// The prefix was there, with this next hop.
    Replaced(NextHop),
    /// The prefix is new: the new head of the list, and its number of routes.
    Added(LeafId, usize),
}

impl<A: Address> Leaves<A> {
    /// Makes it empty.
    pub(super) const fn new() -> Self {
        Self { addresses: Vec::new(), lens: Vec::new(), links: Vec::new(), free: LeafId::NONE }
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> usize {
        self.addresses.capacity() * size_of::<A>()
            + self.lens.capacity()
            + self.links.capacity() * size_of::<Link>()
    }

    /// Gives back memory in reserve.
    pub(super) fn shrink_to_fit(&mut self) {
        self.addresses.shrink_to_fit();
        self.lens.shrink_to_fit();
        self.links.shrink_to_fit();
    }

    /// The list that starts at a leaf.
    #[inline]
    pub(super) fn list(&self, head: LeafId) -> impl Iterator<Item = Listed<A>> + use<'_, A> {
        let mut at = head;
        std::iter::from_fn(move || {
            let (listed, next) = self.at(at)?;
            at = next;
            Some(listed)
        })
    }

    /// The route of a leaf, and the next leaf.
    #[inline]
    pub(super) fn at(&self, id: LeafId) -> Option<(Listed<A>, LeafId)> {
        let at = id.there()?.index();
        let Link { next_hop, next } = self.links[at];
        Some((Listed { id, prefix: Prefix::around(self.addresses[at], self.lens[at]), next_hop }, next))
    }

    /// The address of a leaf.
    #[inline]
    pub(super) fn address(&self, id: LeafId) -> A {
        self.addresses[id.index()]
    }

    /// The next hop of exactly this prefix in a list.
    #[inline]
    pub(super) fn get(&self, head: LeafId, prefix: Prefix<A>) -> Option<NextHop> {
        self.list(head).find(|listed| listed.prefix == prefix).map(|listed| listed.next_hop)
    }

    /// Makes a list of one route.
    pub(super) fn alone(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> LeafId {
        self.make(prefix, next_hop, LeafId::NONE)
    }

    /// Puts a route into a list.
    pub(super) fn put(&mut self, head: LeafId, prefix: Prefix<A>, next_hop: NextHop) -> Put {
        let (mut before, mut after, mut count) = (LeafId::NONE, LeafId::NONE, 1);
        let mut at = head;
        while let Some((listed, next)) = self.at(at) {
            if listed.prefix == prefix {
                self.links[at.index()].next_hop = next_hop;
                return Put::Replaced(listed.next_hop);
            }
            count += 1;
            if listed.prefix < prefix {
                before = at;
            } else if after == LeafId::NONE {
                after = at;
            }
            at = next;
        }
        let new = self.make(prefix, next_hop, after);
        match before.there() {
            Some(before) => {
                self.links[before.index()].next = new;
                Put::Added(head, count)
            }
            None => Put::Added(new, count),
        }
    }

    /// Removes a route from a list. Returns its next hop, and the new head of the list.
    pub(super) fn take(&mut self, head: LeafId, prefix: Prefix<A>) -> Option<(NextHop, LeafId)> {
        let mut before = LeafId::NONE;
        let mut found = None;
        for listed in self.list(head) {
            if listed.prefix == prefix {
                found = Some(listed);
                break;
            }
            before = listed.id;
        }
        let Listed { id, next_hop, .. } = found?;
        let next = self.links[id.index()].next;
        self.release(id);
        match before.there() {
            Some(before) => {
                self.links[before.index()].next = next;
                Some((next_hop, head))
            }
            None => Some((next_hop, next)),
        }
    }

    /// Frees a list and returns its routes, in order.
    pub(super) fn dissolve(&mut self, head: LeafId) -> Vec<(Prefix<A>, NextHop)> {
        let listed: Vec<_> = self.list(head).collect();
        listed.iter().for_each(|listed| self.release(listed.id));
        listed.iter().map(|listed| (listed.prefix, listed.next_hop)).collect()
    }

    /// Makes a list of routes in order.
    pub(super) fn of(&mut self, routes: &[(Prefix<A>, NextHop)]) -> LeafId {
        routes.iter().rev().fold(LeafId::NONE, |next, &(prefix, next_hop)| self.make(prefix, next_hop, next))
    }

    /// The largest next hop of all.
    pub(super) fn max_next_hop(&self) -> NextHop {
        self.links.iter().map(|link| link.next_hop).max().unwrap_or_default()
    }

    fn make(&mut self, prefix: Prefix<A>, next_hop: NextHop, next: LeafId) -> LeafId {
        let (address, len, link) = (prefix.address(), prefix.len(), Link { next_hop, next });
        if let Some(id) = self.free.there() {
            let at = id.index();
            self.free = self.links[at].next;
            (self.addresses[at], self.lens[at], self.links[at]) = (address, len, link);
            return id;
        }
        push(&mut self.addresses, address);
        push(&mut self.lens, len);
        push(&mut self.links, link);
        u32::try_from(self.links.len() - 1)
            .ok()
            .filter(|&id| id < FIRST_LIST)
            .map(LeafId)
            .expect("a table has under 2^31 routes, which would take over 50 GB")
    }

    fn release(&mut self, id: LeafId) {
        self.links[id.index()] = Link { next_hop: NextHop::NONE, next: self.free };
        self.free = id;
    }
}

/// Adds an element. Doubling, as `Vec` does, could leave half of the memory unused; large blocks mostly grow
/// in place.
fn push<T>(column: &mut Vec<T>, element: T) {
    if column.len() == column.capacity() {
        column.reserve_exact((column.len() / 8).max(64));
    }
    column.push(element);
}

/// The number of octets that all routes of a list share and in which none ends: the depth of the node that
/// can replace the list.
pub(super) fn shared_depth<A: Address>(routes: &[(Prefix<A>, NextHop)]) -> u8 {
    let (first, last) = (routes[0].0.address(), routes[routes.len() - 1].0.address());
    let ends = routes.iter().map(|(prefix, _)| split(prefix.len()).0).min().unwrap_or(0);
    (first.common_bits(last) / 8).min(ends)
}
