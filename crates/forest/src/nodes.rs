//! [`Nodes`]: the nodes of all tries, equal ones stored once.
//!
//! A node has the routes that end in its stride and its children. Two nodes with equal routes and equal
//! children are one node, so tries that are alike share all parts in which they are equal.

use hashbrown::HashTable;
use wirespeed_fib::{Address, NextHop, Prefix};
use wirespeed_image::Pool;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::content::{Content, Draft, NONE, key_range};
use crate::contents::Contents;
use crate::links::Links;

/// The nodes, by number. Each counts the links to it: from parents, and from whoever holds a trie.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    stride: u8,
    pool: Pool,
    contents: Contents,
    links: Links,
    by_content: HashTable<u32>,
    /// The nodes that got another content or became free since [`take_touched`](Self::take_touched).
    touched: Vec<u32>,
    /// A secret seed: someone who chooses the routes must not be able to choose the hashes.
    seed: u64,
}

impl Nodes {
    /// Makes nodes that take `stride` bits of an address each.
    pub(crate) fn new(stride: u8) -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let mut links = Links::default();
        links.push();
        Self {
            stride,
            pool: Pool::new(u32::MAX),
            contents: Contents::new(),
            links,
            by_content: HashTable::new(),
            touched: Vec::new(),
            seed,
        }
    }

    /// Bits of an address that a node takes.
    pub(crate) fn stride(&self) -> u8 {
        self.stride
    }

    /// One past the highest number that was ever in use.
    pub(crate) fn end(&self) -> u32 {
        u32::try_from(self.contents.len()).unwrap_or(u32::MAX)
    }

    /// The content of a node. `None` if no node has the number.
    pub(crate) fn content(&self, node: u32) -> Option<Content<'_>> {
        (self.links.of(node) > 0).then(|| self.contents.get(node))
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> u32 {
        self.pool.in_use()
    }

    /// Appends the nodes that got another content or became free since the last call, each once.
    pub(crate) fn take_touched(&mut self, touched: &mut Vec<u32>) {
        self.touched.sort_unstable();
        self.touched.dedup();
        touched.append(&mut self.touched);
    }

    /// Makes the trie of sorted routes that are longer than `from` bits and equal in these. Returns its root
    /// with one link.
    pub(crate) fn grow<A: Address>(&mut self, routes: &[(Prefix<A>, NextHop)], from: u8) -> u32 {
        let (mut draft, mut rest) = (Draft::default(), routes);
        while let Some(&(prefix, next_hop)) = rest.first() {
            if prefix.len() <= from + self.stride {
                draft.set_route(self.key(prefix, from), Some(next_hop.0));
                rest = &rest[1..];
                continue;
            }
            let slot = prefix.address().bits(from, self.stride);
            let is_beneath = |route: &&(Prefix<A>, NextHop)| {
                route.0.len() > from + self.stride && route.0.address().bits(from, self.stride) == slot
            };
            let (beneath, others) = rest.split_at(rest.iter().take_while(is_beneath).count());
            let child = self.grow(beneath, from + self.stride);
            draft.set_child(slot, child);
            rest = others;
        }
        self.put(draft, None)
    }

    /// Sets the next hop of a prefix of more than `from` bits in the trie beneath a node, or removes the
    /// prefix. Takes the caller's link to the node, and returns the new root with one link.
    pub(crate) fn set<A: Address>(
        &mut self,
        node: u32,
        prefix: Prefix<A>,
        from: u8,
        next_hop: Option<u32>,
    ) -> u32 {
        let (mut draft, own) = self.take(node);
        if prefix.len() <= from + self.stride {
            draft.set_route(self.key(prefix, from), next_hop);
        } else {
            let slot = prefix.address().bits(from, self.stride);
            let child = self.set(draft.child(slot), prefix, from + self.stride, next_hop);
            draft.set_child(slot, child);
        }
        self.put(draft, own)
    }

    /// The next hop of exactly this prefix of more than 0 bits.
    pub(crate) fn get<A: Address>(&self, mut node: u32, prefix: Prefix<A>) -> Option<NextHop> {
        let mut from = 0;
        while prefix.len() > from + self.stride {
            node = self.contents.get(node).child(prefix.address().bits(from, self.stride));
            from += self.stride;
        }
        self.contents.get(node).route(self.key(prefix, from)).map(NextHop)
    }

    /// Prefetches the nodes on the ways to some prefixes, each with the root of its trie. The ways are
    /// followed together, so that the memory of all is fetched at once.
    pub(crate) fn fetch<A: Address>(&self, ways: &mut [(u32, Prefix<A>)]) {
        for from in (0..A::BITS).step_by(self.stride.into()) {
            ways.iter().for_each(|&(node, _)| self.contents.fetch_place(node));
            ways.iter().for_each(|&(node, _)| self.contents.fetch(node));
            for (node, prefix) in &mut *ways {
                let goes_on = *node != NONE && prefix.len() > from + self.stride;
                let slot = prefix.address().bits(from, self.stride);
                *node = if goes_on { self.contents.get(*node).child(slot) } else { NONE };
            }
            if ways.iter().all(|&(node, _)| node == NONE) {
                break;
            }
        }
    }

    /// Calls `route` with each route of a trie, in order of the prefixes. `above` are the first `from` bits
    /// of all of them.
    pub(crate) fn visit<A: Address>(
        &self,
        node: u32,
        above: A,
        from: u8,
        route: &mut impl FnMut(Prefix<A>, NextHop),
    ) {
        let (content, stride) = (self.contents.get(node), self.stride);
        let address = |slot: u32| {
            let bits = u128::from(slot) << (A::BITS - from - stride);
            A::from_u128_low(above.to_u128() | bits)
        };
        let mut children = content.children().peekable();
        let mut routes: Vec<_> =
            content.routes().map(|(key, next_hop)| (key_range(key, stride), next_hop)).collect();
        routes.sort_unstable_by_key(|&((first, len), _)| (first, len));
        for ((first, len), next_hop) in routes {
            while let Some((slot, child)) = children.next_if(|&(slot, _)| slot < first) {
                self.visit(child, address(slot), from + stride, route);
            }
            route(Prefix::around(address(first), from + len), NextHop(next_hop));
        }
        for (slot, child) in children {
            self.visit(child, address(slot), from + stride, route);
        }
    }

    /// Adds a content as the next node, with one link that [`finish_pushes`](Self::finish_pushes) takes back.
    /// `None` if no node can have the content: an empty one, one that is there, or one in wider numbers than
    /// it needs. Its children are there.
    pub(crate) fn push(&mut self, content: Content<'_>) -> Option<()> {
        let draft = content.draft();
        draft.children().for_each(|child| self.link(child));
        let next = self.end();
        (self.put(draft, None) == next && self.contents.get(next) == content).then_some(())
    }

    /// Takes back the links of [`push`](Self::push). Returns whether all nodes have other links.
    pub(crate) fn finish_pushes(&mut self) -> bool {
        // Every node counts, also after one that has no others.
        (1..self.end()).map(|node| self.links.remove(node) > 0).fold(true, |all, is_linked| all & is_linked)
    }

    /// Adds a link to a node.
    pub(crate) fn link(&mut self, node: u32) {
        if node != NONE {
            self.links.add(node);
        }
    }

    /// Gives up a link to a node. The last link frees it.
    pub(crate) fn release(&mut self, node: u32) {
        if node == NONE {
            return;
        }
        if self.links.remove(node) == 0 {
            self.forget(node);
            let children: Vec<u32> = self.contents.get(node).children().map(|(_, child)| child).collect();
            self.free(node);
            children.into_iter().for_each(|child| self.release(child));
        }
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let index = self.by_content.allocation_size() as u64;
        self.contents.memory_usage() + self.links.memory_usage() + index + self.pool.memory_usage()
    }

    /// The key of a route in its node.
    fn key<A: Address>(&self, prefix: Prefix<A>, from: u8) -> u32 {
        let len = prefix.len() - from;
        debug_assert!(0 < len && len <= self.stride);
        1 << len | prefix.address().bits(from, len)
    }

    /// Takes a node's content for a change, and the caller's link. A node that nobody else links to keeps its
    /// number. The draft has a link to each child.
    fn take(&mut self, node: u32) -> (Draft, Option<u32>) {
        if node == NONE {
            return (Draft::default(), None);
        }
        let draft = self.contents.get(node).draft();
        if self.links.of(node) == 1 {
            self.forget(node);
            return (draft, Some(node));
        }
        self.links.remove(node);
        draft.children().for_each(|child| self.link(child));
        (draft, None)
    }

    /// The node of a content, with one link more. Takes the draft's links to children, and the number that
    /// was kept for it.
    fn put(&mut self, draft: Draft, own: Option<u32>) -> u32 {
        if draft.is_empty() {
            if let Some(own) = own {
                self.free(own);
            }
            return NONE;
        }
        let bytes = draft.finish();
        let content = Content::at_start_of(&bytes);
        let hash = hash(content, self.seed);
        let same = |&node: &u32| self.contents.get(node) == content;
        if let Some(&found) = self.by_content.find(hash, same) {
            self.links.add(found);
            // The node that was found links to the same children.
            content.children().for_each(|(_, child)| self.release(child));
            if let Some(own) = own {
                self.free(own);
            }
            return found;
        }
        let node = own.unwrap_or_else(|| self.unused());
        self.contents.set(node, content);
        self.links.set(node, 1);
        let (contents, seed) = (&self.contents, self.seed);
        self.by_content.insert_unique(hash, node, |&node| self::hash(contents.get(node), seed));
        self.touched.push(node);
        node
    }

    /// An unused number.
    fn unused(&mut self) -> u32 {
        let node = self.pool.take().expect("memory ends before 32 bits do");
        if node as usize == self.contents.len() {
            self.contents.push();
            self.links.push();
        }
        node
    }

    /// Frees a number that the index does not have.
    fn free(&mut self, node: u32) {
        self.links.set(node, 0);
        self.pool.give_back(node);
        self.touched.push(node);
        self.contents.clear(node);
    }

    /// Removes a node from the index by content.
    fn forget(&mut self, node: u32) {
        let hash = hash(self.contents.get(node), self.seed);
        if let Ok(entry) = self.by_content.find_entry(hash, |&known| known == node) {
            entry.remove();
        }
    }
}

fn hash(content: Content<'_>, seed: u64) -> u64 {
    xxh3_64_with_seed(content.bytes(), seed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use wirespeed_fib::V4;

    use super::*;

    fn routes(nodes: &Nodes, root: u32) -> Vec<(Prefix<V4>, NextHop)> {
        let mut routes = Vec::new();
        nodes.visit(root, V4(0), 0, &mut |prefix, next_hop| routes.push((prefix, next_hop)));
        routes
    }

    proptest! {
        /// Random changes of three tries: each has its routes, equal tries are one node, and nothing is left
        /// at the end.
        #[test]
        fn tries_hold_their_routes_and_equal_ones_are_one(
            stride in prop_oneof![Just(4u8), Just(8)],
            steps in prop::collection::vec((0..3usize, any::<u32>(), 1..=32u8, 0..4u32), 0..150),
        ) {
            let mut nodes = Nodes::new(stride);
            let mut roots = [NONE; 3];
            let mut models: [BTreeMap<Prefix<V4>, NextHop>; 3] = Default::default();
            for (which, address, len, next_hop) in steps {
                // Few addresses, so that prefixes meet.
                let prefix = Prefix::around(V4(address & 0xc003_0301), len);
                let next_hop = (next_hop > 0).then_some(next_hop);
                roots[which] = nodes.set(roots[which], prefix, 0, next_hop);
                match next_hop {
                    Some(next_hop) => models[which].insert(prefix, NextHop(next_hop)),
                    None => models[which].remove(&prefix),
                };
                for (&root, model) in roots.iter().zip(&models) {
                    let right: Vec<_> = model.iter().map(|(&prefix, &next_hop)| (prefix, next_hop)).collect();
                    prop_assert_eq!(routes(&nodes, root), right.clone());
                    prop_assert_eq!(nodes.get(root, prefix), model.get(&prefix).copied());
                    let again = nodes.grow(&right, 0);
                    prop_assert_eq!(again, root);
                    nodes.release(again);
                }
            }
            roots.iter().for_each(|&root| nodes.release(root));
            prop_assert_eq!((nodes.pool.in_use(), nodes.by_content.len()), (0, 0));
        }
    }
}
