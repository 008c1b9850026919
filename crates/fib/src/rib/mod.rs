//! [`Rib`]: the table that the user owns, from which every engine is built.
//!
//! A path-compressed trie of one octet a step. A node holds the prefixes that end in its octet as a bit set in
//! preorder with packed values (`preorder.rs` has the picture), so that a table of a million IPv4 prefixes takes
//! three steps at most, exact and longest matches are a few words of bit arithmetic each, a walk comes in table
//! order, and what a prefix covers is one run. Octet steps are also the steps of the engines' levels, which build
//! from a [`Cursor`] without searching.
//!
//! The real IPv4 table (1,042,325 prefixes) has 27 thousand nodes of 152 bytes plus 4 bytes a prefix; a table of
//! scattered host routes has about one node a prefix.

mod cursor;
mod iter;
mod node;
mod preorder;

pub use cursor::Cursor;
pub use iter::Routes;

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::update::{Undo, Update};
use node::{Node, NodeId, split};

/// A routing table: prefixes of one family with their next hops, one each. All operations take time by the number
/// of octets of a prefix, whatever the size of the table, and the size of their result.
#[derive(Clone, Debug)]
pub struct Rib<A> {
    nodes: Vec<Node<A>>,
    free: Vec<NodeId>,
    by_length: Vec<usize>,
    len: usize,
}

impl<A: Address> Default for Rib<A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A: Address> Rib<A> {
    /// An empty table.
    pub fn new() -> Self {
        Self {
            nodes: vec![Node::new(A::MIN, 0)],
            free: Vec::new(),
            by_length: vec![0; usize::from(A::BITS) + 1],
            len: 0,
        }
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no prefix.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of prefixes of each length, from 0 to [`Address::BITS`].
    pub fn by_length(&self) -> &[usize] {
        &self.by_length
    }

    /// Bytes of memory held.
    pub fn memory_usage(&self) -> usize {
        self.nodes.capacity() * size_of::<Node<A>>() + self.nodes.iter().map(Node::heap_bytes).sum::<usize>()
    }

    /// Puts a route in; the next hop that the prefix had before, if it was there.
    pub fn insert(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Option<NextHop> {
        let id = self.node_for(prefix);
        let node = &mut self.nodes[id.index()];
        let before = node.insert(node.place_of(prefix), next_hop);
        if before.is_none() {
            self.len += 1;
            self.by_length[usize::from(prefix.len())] += 1;
        }
        before
    }

    /// Takes a route out; the next hop that it had, if it was there.
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<NextHop> {
        let (depth, _) = split(prefix.len());
        // The root and at most one node an octet.
        let mut path = [NodeId::ROOT; 17];
        let mut last = 0;
        loop {
            let node = &self.nodes[path[last].index()];
            if node.depth == depth {
                break;
            }
            let child = node.child(node.octet_of(prefix.address()))?;
            if !self.is_on_path(child, prefix.address(), depth) {
                return None;
            }
            last += 1;
            path[last] = child;
        }
        let node = &mut self.nodes[path[last].index()];
        let removed = node.remove(node.place_of(prefix))?;
        self.len -= 1;
        self.by_length[usize::from(prefix.len())] -= 1;
        self.prune(&path[..=last]);
        Some(removed)
    }

    /// Applies an update; whether the table is another one after it.
    pub fn apply(&mut self, update: &Update<A>) -> bool {
        self.exchange(update).is_some()
    }

    /// Applies an update; what takes it back, `None` where it changed nothing.
    #[inline]
    pub fn exchange(&mut self, update: &Update<A>) -> Option<Undo<A>> {
        let prefix = update.prefix();
        let before = match *update {
            Update::Announce { next_hop: Some(next_hop), .. } => {
                let before = self.insert(prefix, next_hop);
                (before != Some(next_hop)).then_some(before)?
            }
            Update::Announce { next_hop: None, .. } => match self.get(prefix) {
                Some(_) => return None,
                None => self.insert(prefix, NextHop(1)),
            },
            Update::Withdraw { .. } => Some(self.remove(prefix)?),
        };
        Some(Undo { prefix, before })
    }

    /// Takes a change back. Of several changes the last one goes first.
    pub fn undo(&mut self, Undo { prefix, before }: Undo<A>) {
        match before {
            Some(next_hop) => self.insert(prefix, next_hop),
            None => self.remove(prefix),
        };
    }

    /// The next hop of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        let (depth, _) = split(prefix.len());
        let mut node = &self.nodes[0];
        while node.depth != depth {
            let child = node.child(node.octet_of(prefix.address()))?;
            if !self.is_on_path(child, prefix.address(), depth) {
                return None;
            }
            node = &self.nodes[child.index()];
        }
        node.get(node.place_of(prefix))
    }

    /// The longest prefix that contains the address, with its next hop.
    pub fn longest_match(&self, address: A) -> Option<(Prefix<A>, NextHop)> {
        let mut best = None;
        let mut node = &self.nodes[0];
        loop {
            let octet = node.octet_of(address);
            if let Some((at, next_hop)) = node.best(octet) {
                best = Some((node, at, next_hop));
            }
            match node.child(octet) {
                Some(child) if self.is_on_path(child, address, A::BITS / 8) => {
                    node = &self.nodes[child.index()];
                }
                _ => break,
            }
        }
        best.map(|(node, at, next_hop)| (node.prefix_at(at), next_hop))
    }

    /// The longest prefix that covers `prefix` and is not itself, with its next hop: what decides about its addresses
    /// when it is gone.
    pub fn cover(&self, prefix: Prefix<A>) -> Option<(Prefix<A>, NextHop)> {
        let (depth, bits) = split(prefix.parent()?.len());
        let mut best = None;
        let mut node = &self.nodes[0];
        loop {
            let octet = node.octet_of(prefix.address());
            let found = match node.depth == depth {
                true => node.best_within(octet, bits),
                false => node.best(octet),
            };
            if let Some((at, next_hop)) = found {
                best = Some((node, at, next_hop));
            }
            match node.child(octet) {
                Some(child) if node.depth < depth && self.is_on_path(child, prefix.address(), depth) => {
                    node = &self.nodes[child.index()];
                }
                _ => break,
            }
        }
        best.map(|(node, at, next_hop)| (node.prefix_at(at), next_hop))
    }

    /// All routes in order: by address, a shorter prefix before those that it covers.
    pub fn iter(&self) -> Routes<'_, A> {
        Routes::all(self)
    }

    /// The routes that `prefix` covers, itself included where it is there, in order.
    pub fn covered(&self, prefix: Prefix<A>) -> Routes<'_, A> {
        Routes::covered(self, prefix)
    }

    /// The routes that cover `prefix`, shortest first, itself included where it is there.
    pub fn covering(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, NextHop)> + '_ {
        (0..=prefix.len()).filter_map(move |len| {
            let covering = Prefix::around(prefix.address(), len);
            self.get(covering).map(|next_hop| (covering, next_hop))
        })
    }

    /// The largest next-hop index in use, 0 in an empty table. O(prefixes).
    pub fn max_next_hop(&self) -> NextHop {
        self.nodes
            .iter()
            .flat_map(|node| node.places(0, preorder::PLACES))
            .map(|(_, next_hop)| next_hop)
            .max()
            .unwrap_or_default()
    }

    /// A cursor at the first octet, from which engines build.
    pub fn cursor(&self) -> Cursor<'_, A> {
        Cursor::root(self)
    }

    fn node(&self, id: NodeId) -> &Node<A> {
        &self.nodes[id.index()]
    }

    /// Whether `child` leads to the node of `address` at `depth`: it is not deeper, and they share all its octets.
    #[inline]
    fn is_on_path(&self, child: NodeId, address: A, depth: u8) -> bool {
        let child = &self.nodes[child.index()];
        child.depth <= depth && address.keep(8 * child.depth) == child.base
    }

    /// The node where a prefix belongs, made where it is missing.
    fn node_for(&mut self, prefix: Prefix<A>) -> NodeId {
        let (depth, _) = split(prefix.len());
        let address = prefix.address();
        let mut id = NodeId::ROOT;
        loop {
            let node = &self.nodes[id.index()];
            if node.depth == depth {
                return id;
            }
            let octet = node.octet_of(address);
            let Some(child) = node.child(octet) else {
                let new = self.add(Node::new(address, depth));
                self.nodes[id.index()].set_child(octet, Some(new));
                return new;
            };
            let (child_base, child_depth) = (self.node(child).base, self.node(child).depth);
            let shared = (address.common_bits(child_base) / 8).min(child_depth).min(depth);
            if shared == child_depth {
                id = child;
                continue;
            }
            // The path leaves the compressed edge: a node where it does, above the child.
            let mut fork = Node::new(address, shared);
            fork.set_child(fork.octet_of(child_base), Some(child));
            let fork = self.add(fork);
            self.nodes[id.index()].set_child(octet, Some(fork));
            id = fork;
        }
    }

    fn add(&mut self, node: Node<A>) -> NodeId {
        match self.free.pop() {
            Some(id) => {
                self.nodes[id.index()] = node;
                id
            }
            None => {
                self.nodes.push(node);
                NodeId::new(self.nodes.len() - 1)
            }
        }
    }

    /// Takes out the nodes at the end of `path` that are no longer needed: an empty one, and one that only leads
    /// on to a single child.
    fn prune(&mut self, path: &[NodeId]) {
        for pair in path.windows(2).rev() {
            let (parent, id) = (pair[0], pair[1]);
            let node = self.node(id);
            let octet = self.node(parent).octet_of(node.base);
            let heir = match (node.has_prefixes(), node.children()) {
                (false, []) => None,
                (false, &[only]) => Some(only),
                _ => break,
            };
            self.nodes[parent.index()].set_child(octet, heir);
            self.nodes[id.index()] = Node::new(A::MIN, 0);
            self.free.push(id);
            if heir.is_some() {
                break;
            }
        }
    }
}

impl<A: Address> FromIterator<(Prefix<A>, NextHop)> for Rib<A> {
    /// Of several routes for a prefix the last one stays.
    fn from_iter<I: IntoIterator<Item = (Prefix<A>, NextHop)>>(routes: I) -> Self {
        let mut rib = Self::new();
        rib.extend(routes);
        rib
    }
}

impl<A: Address> Extend<(Prefix<A>, NextHop)> for Rib<A> {
    fn extend<I: IntoIterator<Item = (Prefix<A>, NextHop)>>(&mut self, routes: I) {
        for (prefix, next_hop) in routes {
            self.insert(prefix, next_hop);
        }
    }
}

impl<'a, A: Address> IntoIterator for &'a Rib<A> {
    type Item = (Prefix<A>, NextHop);
    type IntoIter = Routes<'a, A>;

    fn into_iter(self) -> Routes<'a, A> {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
