//! The routes of all tables as bytes, for a file. A node that tables share is there once.
//!
//! ```text
//! stride  u8
//! nodes   u32 × 1, then the content of each node; children come before their parents, and the first is node 1
//! tables  u32 × 1, then for each table, ascending: its number, its default route as the next hop + 1 (0: none),
//!         and the node of its root (0: none), u32 each
//! ```
//!
//! Numbers are little-endian. Bytes from a file are taken only if they describe a forest that changes of
//! routes could have made, so nothing that reads it later has to check again.

use wirespeed_fib::{Address, NextHop};

use crate::content::{Content, NONE, key_range};
use crate::fibs::{Fib, FibId, Fibs};
use crate::layout::{STRIDES, Width};
use crate::nodes::Nodes;

impl<A: Address> Fibs<A> {
    /// The routes of all tables as bytes. O(nodes).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut written = Written { nodes: &self.nodes, numbers: Vec::new(), count: 0, bytes: Vec::new() };
        written.numbers.resize(self.nodes.end() as usize, NONE);
        let tables: Vec<_> = self
            .ids()
            .filter_map(|id| self.fib(id).map(|fib| [id.0, fib.default, written.write(fib.root)]))
            .collect();
        let Written { count, bytes: contents, .. } = written;
        let mut bytes = vec![self.nodes.stride()];
        bytes.extend(count.to_le_bytes());
        bytes.extend(contents);
        // At most 20 bits.
        bytes.extend(u32::try_from(tables.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(tables.iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// Takes the bytes of [`to_bytes`](Self::to_bytes). `None` if they are damaged, or if `is_route` refuses
    /// a next hop of a prefix of some length. It is called once for each route of a node and each length that
    /// the route has in some table. O(nodes).
    pub fn from_bytes(bytes: &[u8], mut is_route: impl FnMut(NextHop, u8) -> bool) -> Option<Self> {
        let (&stride, mut rest) = bytes.split_first()?;
        let mut fibs = STRIDES.contains(&stride).then(|| Self::with_stride(stride))?;
        let count = number(&mut rest)?;
        // The number of routes of each node's trie.
        let mut routes = vec![0u64];
        for node in 1..=count {
            let content = Content::split_off(&mut rest, stride, node)?;
            let mut beneath = content.children().map(|(_, child)| routes[child as usize]);
            let own = content.routes().count() as u64;
            routes.push(beneath.try_fold(own, u64::checked_add)?);
            fibs.nodes.push(content)?;
        }
        let mut depths = Depths::new(count, A::BITS / stride);
        let tables = number(&mut rest)?;
        let (mut all, mut next, mut results) = (0u64, 0, 0);
        let mut is_valid = |next_hop: NextHop, len| {
            results = results.max(next_hop.0);
            next_hop.0 <= Width::Wide.most() && is_route(next_hop, len)
        };
        for _ in 0..tables {
            let (id, default, root) = (number(&mut rest)?, number(&mut rest)?, number(&mut rest)?);
            let is_default = default.checked_sub(1).is_none_or(|next_hop| is_valid(NextHop(next_hop), 0));
            if id < next || id > FibId::MAX.0 || root > count || !is_default {
                return None;
            }
            next = id + 1;
            let own = routes[root as usize].checked_add(u64::from(default > 0))?;
            all = all.checked_add(own)?;
            fibs.adopt(FibId(id), Fib { default, root, routes: usize::try_from(own).ok()? });
            depths.add(root, 0);
        }
        let is_whole = rest.is_empty() && usize::try_from(all).is_ok() && fibs.nodes.finish_pushes();
        if !is_whole || !depths.are_valid(&fibs.nodes, is_valid) {
            return None;
        }
        fibs.results = results;
        Some(fibs)
    }
}

/// Nodes that were written, with their numbers in the bytes.
struct Written<'n> {
    nodes: &'n Nodes,
    /// The number of each node, [`NONE`] for one that was not written yet.
    numbers: Vec<u32>,
    count: u32,
    bytes: Vec<u8>,
}

impl Written<'_> {
    /// Writes a trie, if it was not written yet, and returns the number of its root.
    fn write(&mut self, node: u32) -> u32 {
        if node == NONE || self.numbers[node as usize] != NONE {
            return self.numbers[node as usize];
        }
        let Some(content) = self.nodes.content(node) else { return NONE };
        let mut draft = content.draft();
        for (slot, child) in content.children() {
            draft.set_child(slot, self.write(child));
        }
        self.bytes.extend(draft.finish());
        self.count += 1;
        self.numbers[node as usize] = self.count;
        self.count
    }
}

/// The depths at which nodes are in tries, in strides: a bit for each.
struct Depths {
    of: Vec<u32>,
    most: u8,
}

impl Depths {
    fn new(nodes: u32, most: u8) -> Self {
        Self { of: vec![0; nodes as usize + 1], most }
    }

    fn add(&mut self, node: u32, depth: u8) {
        self.of[node as usize] |= 1 << depth;
    }

    /// Whether no trie is deeper than an address, and every route is valid.
    fn are_valid(mut self, nodes: &Nodes, mut is_route: impl FnMut(NextHop, u8) -> bool) -> bool {
        let stride = nodes.stride();
        for node in (1..self.of.len()).rev() {
            let depths = self.of[node];
            let Some(content) = u32::try_from(node).ok().and_then(|node| nodes.content(node)) else {
                return false;
            };
            if depths >> (self.most - 1) != 0 && !content.is_leaf() {
                return false;
            }
            content.children().for_each(|(_, child)| self.of[child as usize] |= depths << 1);
            for depth in (0..self.most).filter(|depth| depths >> depth & 1 != 0) {
                let mut routes = content.routes().map(|(key, next_hop)| (key_range(key, stride).1, next_hop));
                if !routes.all(|(len, next_hop)| is_route(NextHop(next_hop), depth * stride + len)) {
                    return false;
                }
            }
        }
        true
    }
}

/// Splits a number off.
fn number(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
