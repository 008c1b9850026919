//! [`Rib`]: the routing table that the user owns. Every engine builds from it.
//!
//! The Rib is a path-compressed trie with one octet for each step. A node holds the prefixes that end in its
//! octet as a bit set in preorder, with packed values (`preorder.rs` has the picture). So a table of a
//! million IPv4 prefixes takes three steps at most, exact and longest matches are a few words of bit
//! arithmetic, iteration is in table order, and the prefixes that a prefix covers are one run. Octet steps
//! are also the steps of the engines' levels, which build from a [`Cursor`] without searching.
//!
//! A prefix with few others near it is a leaf of a list instead of a node (`leaf.rs`), so a table of
//! scattered routes takes only about 35 bytes a prefix, too.

mod cursor;
mod iter;
mod leaf;
mod node;
mod packed;
mod preorder;

pub use cursor::Cursor;
pub use iter::Routes;

use crate::address::Address;
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::update::{Undo, Update};
use leaf::{FEW, LeafId, Leaves, MOST, Put, shared_depth};
use node::{Child, ChildId, Node, NodeId, split};

/// A routing table: prefixes of one family with one next hop each. The time of an operation depends on the
/// octets of a prefix and the size of the result, not on the size of the table.
#[derive(Clone, Debug)]
pub struct Rib<A: Address> {
    nodes: Vec<Node<A>>,
    free: Vec<NodeId>,
    leaves: Leaves<A>,
    by_length: Vec<usize>,
    len: usize,
    /// The log that takes back the updates of a live table's current call, the last update at the end.
    noted: Vec<Undo<A>>,
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
            leaves: Leaves::new(),
            by_length: vec![0; usize::from(A::BITS) + 1],
            len: 0,
            noted: Vec::new(),
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
        let nodes = self.nodes.capacity() * size_of::<Node<A>>() + self.free.capacity() * size_of::<NodeId>();
        nodes + self.nodes.iter().map(Node::heap_bytes).sum::<usize>() + self.leaves.memory_usage()
    }

    /// Gives back memory in reserve: about a third of the memory of a table that was just read.
    pub fn shrink_to_fit(&mut self) {
        self.nodes.iter_mut().for_each(Node::shrink);
        self.nodes.shrink_to_fit();
        self.free.shrink_to_fit();
        self.leaves.shrink_to_fit();
    }

    /// Inserts a route. Returns the prefix's old next hop, if there was one.
    #[inline(never)] // one copy for all crates
    pub fn insert(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Option<NextHop> {
        let before = self.put(prefix, next_hop);
        if before.is_none() {
            self.len += 1;
            self.by_length[usize::from(prefix.len())] += 1;
        }
        before
    }

    /// Removes a route. Returns its next hop, if it was there.
    #[inline(never)] // one copy for all crates
    pub fn remove(&mut self, prefix: Prefix<A>) -> Option<NextHop> {
        let (depth, _) = split(prefix.len());
        // The path holds the root and at most one node for each octet.
        let mut path = [NodeId::ROOT; 17];
        let mut last = 0;
        let removed = loop {
            let node = &mut self.nodes[path[last].index()];
            if node.depth == depth {
                break node.remove(node.place_of(prefix))?;
            }
            let octet = node.octet_of(prefix.address());
            match node.child(octet)?.is() {
                Child::List(head) => {
                    let (removed, left) = self.leaves.take(head, prefix)?;
                    if left != head {
                        node.set_child(octet, (left != LeafId::NONE).then(|| left.into()));
                    }
                    break removed;
                }
                Child::Node(child) => {
                    if !self.is_on_path(child, prefix.address(), depth) {
                        return None;
                    }
                    last += 1;
                    path[last] = child;
                }
            }
        };
        self.len -= 1;
        self.by_length[usize::from(prefix.len())] -= 1;
        self.prune(&path[..=last]);
        Some(removed)
    }

    /// Applies an update. Returns whether the table changed.
    pub fn apply(&mut self, update: &Update<A>) -> bool {
        self.exchange(update).is_some()
    }

    /// Applies an update. Returns a value that takes it back, or `None` if nothing changed.
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

    /// Takes a change back. Take the last of several changes back first.
    pub fn undo(&mut self, Undo { prefix, before }: Undo<A>) {
        match before {
            Some(next_hop) => self.insert(prefix, next_hop),
            None => self.remove(prefix),
        };
    }

    /// Applies updates in order, and logs how to take them back. Returns how many changed the table.
    pub(crate) fn apply_noted(&mut self, updates: &[&Update<A>]) -> usize {
        let before = self.noted.len();
        let mut noted = std::mem::take(&mut self.noted);
        noted.extend(updates.iter().filter_map(|update| self.exchange(update)));
        self.noted = noted;
        self.noted.len() - before
    }

    /// The prefixes in the log, in the order of their changes.
    pub(crate) fn noted(&self) -> impl Iterator<Item = Prefix<A>> {
        self.noted.iter().map(|undo| undo.prefix)
    }

    /// Empties the log: the changes stay.
    pub(crate) fn forget(&mut self) {
        self.noted.clear();
    }

    /// Takes back all changes in the log.
    pub(crate) fn undo_noted(&mut self) {
        while let Some(undo) = self.noted.pop() {
            self.undo(undo);
        }
    }

    /// The next hop of exactly this prefix.
    pub fn get(&self, prefix: Prefix<A>) -> Option<NextHop> {
        let (depth, _) = split(prefix.len());
        let mut node = &self.nodes[0];
        while node.depth != depth {
            match node.child(node.octet_of(prefix.address()))?.is() {
                Child::List(head) => return self.leaves.get(head, prefix),
                Child::Node(child) if !self.is_on_path(child, prefix.address(), depth) => return None,
                Child::Node(child) => node = &self.nodes[child.index()],
            }
        }
        node.get(node.place_of(prefix))
    }

    /// The longest prefix that contains the address, with its next hop.
    #[inline(never)] // one copy for all crates
    pub fn longest_match(&self, address: A) -> Option<(Prefix<A>, NextHop)> {
        let mut best = None;
        let mut node = &self.nodes[0];
        loop {
            let octet = node.octet_of(address);
            if let Some((at, next_hop)) = node.best(octet) {
                best = Some((node, at, next_hop));
            }
            match node.child(octet).map(ChildId::is) {
                Some(Child::List(head)) => {
                    let listed =
                        self.leaves.list(head).filter(|listed| listed.prefix.contains(address)).last();
                    if let Some(listed) = listed {
                        return Some((listed.prefix, listed.next_hop));
                    }
                    break;
                }
                Some(Child::Node(child)) if self.is_on_path(child, address, A::BITS / 8) => {
                    node = &self.nodes[child.index()];
                }
                _ => break,
            }
        }
        best.map(|(node, at, next_hop)| (node.prefix_at(at), next_hop))
    }

    /// The longest other prefix that covers `prefix`, with its next hop: the route of the prefix's addresses
    /// without the prefix.
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
            if node.depth == depth {
                break;
            }
            match node.child(octet).map(ChildId::is) {
                Some(Child::List(head)) => {
                    let covers = |other: Prefix<A>| other.covers(prefix) && other != prefix;
                    if let Some(listed) = self.leaves.list(head).filter(|listed| covers(listed.prefix)).last()
                    {
                        return Some((listed.prefix, listed.next_hop));
                    }
                    break;
                }
                Some(Child::Node(child)) if self.is_on_path(child, prefix.address(), depth) => {
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

    /// The routes that `prefix` covers, in order, its own route included.
    pub fn covered(&self, prefix: Prefix<A>) -> Routes<'_, A> {
        Routes::covered(self, prefix)
    }

    /// The routes that cover `prefix`, shortest first, its own route included.
    pub fn covering(&self, prefix: Prefix<A>) -> impl Iterator<Item = (Prefix<A>, NextHop)> + '_ {
        (0..=prefix.len()).filter_map(move |len| {
            let covering = Prefix::around(prefix.address(), len);
            self.get(covering).map(|next_hop| (covering, next_hop))
        })
    }

    /// The largest next-hop index in use, 0 in an empty table. O(prefixes).
    #[inline(never)] // one copy for all crates
    pub fn max_next_hop(&self) -> NextHop {
        let nodes = self.nodes.iter().flat_map(|node| node.places(0, preorder::PLACES));
        let most = nodes.map(|(_, next_hop)| next_hop).max().unwrap_or_default();
        most.max(self.leaves.max_next_hop())
    }

    /// A cursor at the first octet, for engines that build.
    pub fn cursor(&self) -> Cursor<'_, A> {
        Cursor::root(self)
    }

    fn node(&self, id: NodeId) -> &Node<A> {
        &self.nodes[id.index()]
    }

    /// Whether `child` leads to the node of `address` at `depth`: it is not deeper, and its octets are equal.
    #[inline]
    fn is_on_path(&self, child: NodeId, address: A, depth: u8) -> bool {
        let child = &self.nodes[child.index()];
        child.depth <= depth && address.keep(8 * child.depth) == child.base
    }

    /// Inserts a route. Returns the prefix's old next hop, if there was one.
    fn put(&mut self, prefix: Prefix<A>, next_hop: NextHop) -> Option<NextHop> {
        let (depth, _) = split(prefix.len());
        let address = prefix.address();
        let mut id = NodeId::ROOT;
        loop {
            let node = &mut self.nodes[id.index()];
            if node.depth == depth {
                return node.insert(node.place_of(prefix), next_hop);
            }
            let octet = node.octet_of(address);
            let child = match node.child(octet).map(ChildId::is) {
                None => {
                    node.set_child(octet, Some(self.leaves.alone(prefix, next_hop).into()));
                    return None;
                }
                Some(Child::List(head)) => {
                    match self.leaves.put(head, prefix, next_hop) {
                        Put::Replaced(before) => return Some(before),
                        Put::Added(head, count) if count > MOST => {
                            let full = self.unfold(head);
                            self.nodes[id.index()].set_child(octet, Some(full.into()));
                        }
                        Put::Added(head, _) => node.set_child(octet, Some(head.into())),
                    }
                    return None;
                }
                Some(Child::Node(child)) => child,
            };
            let (child_base, child_depth) = (self.node(child).base, self.node(child).depth);
            let shared = (address.common_bits(child_base) / 8).min(child_depth).min(depth);
            if shared == child_depth {
                id = child;
                continue;
            }
            // The path leaves the compressed edge, so a new node is put there, above the child.
            let mut fork = Node::new(address, shared);
            fork.set_child(fork.octet_of(child_base), Some(child.into()));
            let fork = self.add(fork);
            self.nodes[id.index()].set_child(octet, Some(fork.into()));
            id = fork;
        }
    }

    /// Makes a node of a list of two routes or more.
    fn unfold(&mut self, head: LeafId) -> NodeId {
        let routes = self.leaves.dissolve(head);
        let depth = shared_depth(&routes);
        let mut node = Node::new(routes[0].0.address(), depth);
        let (own, longer): (Vec<_>, Vec<_>) =
            routes.into_iter().partition(|(prefix, _)| split(prefix.len()).0 == depth);
        for (prefix, next_hop) in own {
            node.insert(node.place_of(prefix), next_hop);
        }
        // In order, routes of one octet are next to each other.
        let octet = |prefix: Prefix<A>| prefix.address().octet(usize::from(depth));
        for routes in longer.chunk_by(|a, b| octet(a.0) == octet(b.0)) {
            node.set_child(octet(routes[0].0), Some(self.leaves.of(routes).into()));
        }
        self.add(node)
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

    /// Removes the nodes at the end of `path` that are not needed any more: a node with few routes beneath
    /// it, and a node that only leads to a single child.
    fn prune(&mut self, path: &[NodeId]) {
        for pair in path.windows(2).rev() {
            let (parent, id) = (pair[0], pair[1]);
            let octet = self.node(parent).octet_of(self.node(id).base);
            let heir = match (self.few_routes(id), self.node(id).prefixes(), self.node(id).children()) {
                (Some(routes), ..) => {
                    for child in self.node(id).children().to_vec() {
                        if let Child::List(head) = child.is() {
                            self.leaves.dissolve(head);
                        }
                    }
                    (!routes.is_empty()).then(|| self.leaves.of(&routes).into())
                }
                (None, 0, &[only]) => Some(only),
                _ => return,
            };
            self.nodes[parent.index()].set_child(octet, heir);
            self.nodes[id.index()] = Node::new(A::MIN, 0);
            self.free.push(id);
        }
    }

    /// The routes beneath a node, in order, if they are few enough for a list.
    fn few_routes(&self, id: NodeId) -> Option<Vec<(Prefix<A>, NextHop)>> {
        let node = self.node(id);
        if node.prefixes() + node.children().len() > FEW {
            return None;
        }
        let mut routes: Vec<_> =
            node.places(0, preorder::PLACES).map(|(at, next_hop)| (node.prefix_at(at), next_hop)).collect();
        for child in node.children() {
            let Child::List(head) = child.is() else { return None };
            routes.extend(self.leaves.list(head).map(|listed| (listed.prefix, listed.next_hop)));
        }
        routes.sort_unstable_by_key(|&(prefix, _)| prefix);
        (routes.len() <= FEW).then_some(routes)
    }
}

impl<A: Address> FromIterator<(Prefix<A>, NextHop)> for Rib<A> {
    /// Keeps the last of several routes for a prefix.
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
