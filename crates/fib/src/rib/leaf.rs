//! [`Leaves`]: the few routes beneath a child that are not worth a node, as lists.
//!
//! ```text
//! node ── octet ──► 2001:db8:77::/48 ──► 2001:db8:77:5::/64 ──► 2001:db8:80::/48      at most MOST, in table order
//! ```
//!
//! A node takes some 190 bytes, a leaf 25 (IPv4: 13). In a table of scattered routes nearly every route is
//! alone beneath its octet, and lists take the place of the nodes that would hold one route each. Where a
//! list gets longer than [`MOST`] a node takes its place, and a node that is left with [`FEW`] routes beneath
//! it becomes a list again.

use super::node::{FIRST_LIST, split};
use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;

/// Most routes of a list. With 8 scattered tables take less memory at worst, but a look at a list takes
/// longer.
pub(super) const MOST: usize = 4;
/// Most routes of a list that takes the place of a node: fewer than [`MOST`], so that a route that flaps
/// doesn't make both in turn.
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

/// The leaves of all lists, in columns: an address in a row with the rest would be aligned to 16 bytes.
#[derive(Clone, Debug)]
pub(super) struct Leaves<A> {
    addresses: Vec<A>,
    lens: Vec<u8>,
    links: Vec<Link>,
    /// The list of those that are free. Their next hop is zero.
    free: LeafId,
}

/// What a route leads to, and the next leaf of its list.
#[derive(Clone, Copy, Debug)]
struct Link {
    next_hop: NextHop,
    next: LeafId,
}

/// A route of a list: where it is, and what it says.
#[derive(Clone, Copy)]
pub(super) struct Listed<A> {
    pub(super) id: LeafId,
    pub(super) prefix: Prefix<A>,
    pub(super) next_hop: NextHop,
}

/// What putting a route into a list came to.
pub(super) enum Put {
    /// The prefix was there: its next hop before.
    Replaced(NextHop),
    /// The prefix wasn't there: the head of the list now, and how many routes there are.
    Added(LeafId, usize),
}

impl<A: Address> Leaves<A> {
    /// None.
    pub(super) const fn new() -> Self {
        Self { addresses: Vec::new(), lens: Vec::new(), links: Vec::new(), free: LeafId::NONE }
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> usize {
        self.addresses.capacity() * size_of::<A>()
            + self.lens.capacity()
            + self.links.capacity() * size_of::<Link>()
    }

    /// The list from a leaf on.
    #[inline]
    pub(super) fn list(&self, head: LeafId) -> impl Iterator<Item = Listed<A>> + use<'_, A> {
        let mut at = head;
        std::iter::from_fn(move || {
            let (listed, next) = self.at(at)?;
            at = next;
            Some(listed)
        })
    }

    /// The route of a leaf, and the one after it.
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

    /// A list of one route.
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

    /// Takes a route out of a list: the next hop that it had, and the head of the list now.
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

    /// Takes a list apart: its routes, in order.
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

/// Adds an element. Doubling, as `Vec` does, would leave up to half of what is held unused; large pieces of
/// memory grow in place mostly.
fn push<T>(column: &mut Vec<T>, element: T) {
    if column.len() == column.capacity() {
        column.reserve_exact((column.len() / 8).max(64));
    }
    column.push(element);
}

/// How many octets all routes of a list share, and none of them ends in: the depth of the node that can take
/// its place.
pub(super) fn shared_depth<A: Address>(routes: &[(Prefix<A>, NextHop)]) -> u8 {
    let (first, last) = (routes[0].0.address(), routes[routes.len() - 1].0.address());
    let ends = routes.iter().map(|(prefix, _)| split(prefix.len()).0).min().unwrap_or(0);
    (first.common_bits(last) / 8).min(ends)
}
