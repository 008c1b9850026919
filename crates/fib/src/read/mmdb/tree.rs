//! [`Tree`]: the search tree of a MaxMind DB file.
//!
//! ```text
//! node 0 │ node 1 │ …      each two records of 24, 28 or 32 bits, for the next bit 0 and 1
//! record < nodes: a node │ = nodes: nothing │ > nodes: the record at (record - nodes - 16) of the data section
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use maxminddb::Metadata;

/// The tree. `maxminddb` has checked that the file holds all nodes, and the size of records.
pub(super) struct Tree<'b> {
    nodes: &'b [u8],
    /// Bytes of a node.
    width: usize,
    count: u32,
    is_v6: bool,
}

/// What a walk comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A network with a record.
    Network {
        /// Its address, in the low bits for a tree of IPv4.
        address: u128,
        /// Its length, in bits of the tree.
        depth: u8,
        /// The record of its node.
        value: u32,
    },
    /// Another way to the networks of IPv4.
    Alias,
    /// A node that is no part of a tree.
    Wrong {
        /// The node.
        node: u32,
        what: &'static str,
    },
}

impl<'b> Tree<'b> {
    pub(super) fn new(bytes: &'b [u8], metadata: &Metadata) -> Self {
        let width = usize::from(metadata.record_size) / 4;
        let count = metadata.node_count;
        Self { nodes: bytes, width, count, is_v6: metadata.ip_version == 6 }
    }

    pub(super) fn is_v6(&self) -> bool {
        self.is_v6
    }

    /// The offset of a node in the file.
    pub(super) fn place(&self, node: u32) -> u64 {
        u64::from(node) * self.width as u64
    }

    /// The offset in the file of the data that a node's record leads to: the 16 bytes before the data section
    /// are in the record, too.
    pub(super) fn place_of_record(&self, value: u32) -> u64 {
        self.place(self.count) + u64::from(value.saturating_sub(self.count))
    }

    /// The address and length of a network, in its family.
    pub(super) fn network(&self, address: u128, depth: u8) -> (IpAddr, u32) {
        ip_network(address, depth, self.is_v6)
    }

    /// Goes to all networks once, in order of their addresses.
    pub(super) fn walk(&self) -> Walk<'_> {
        let seen = vec![0; (self.count as usize).div_ceil(64)];
        Walk { tree: self, left: vec![(0, 0, 0)], seen, v4: self.v4() }
    }

    /// The node of `::/96`.
    fn v4(&self) -> Option<u32> {
        let end = (0..96).try_fold(0, |node, _| (node < self.count).then(|| self.child(node, 0)))?;
        (self.is_v6 && end < self.count).then_some(end)
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        let at = node as usize * self.width;
        let of_24 =
            |at: usize| self.nodes[at..at + 3].iter().fold(0, |value, &byte| value << 8 | u32::from(byte));
        match self.width {
            6 => of_24(at + 3 * side),
            7 => {
                let high = u32::from(self.nodes[at + 3]);
                let high = if side == 0 { high >> 4 } else { high & 15 };
                high << 24 | of_24(at + 4 * side)
            }
            _ => of_24(at + 4 * side) << 8 | u32::from(self.nodes[at + 4 * side + 3]),
        }
    }
}

/// A walk through a tree.
pub(super) struct Walk<'t> {
    tree: &'t Tree<'t>,
    /// Records to go to: the record, the bits that lead there, and their number.
    left: Vec<(u32, u128, u8)>,
    /// A bit for each node that was gone through.
    seen: Vec<u64>,
    v4: Option<u32>,
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let Self { tree, .. } = *self;
        let bits = if tree.is_v6 { 128 } else { 32 };
        while let Some((value, address, depth)) = self.left.pop() {
            if value == tree.count {
                continue;
            }
            if value > tree.count {
                return Some(Step::Network { address, depth, value });
            }
            if self.v4 == Some(value) && address != 0 {
                return Some(Step::Alias);
            }
            if depth == bits {
                return Some(Step::Wrong { node: value, what: "a node below the last bit" });
            }
            let (word, bit) = (value as usize / 64, 1 << (value % 64));
            if self.seen[word] & bit != 0 {
                return Some(Step::Wrong { node: value, what: "a node that two others lead to" });
            }
            self.seen[word] |= bit;
            self.left.push((tree.child(value, 1), address | 1 << (bits - 1 - depth), depth + 1));
            self.left.push((tree.child(value, 0), address, depth + 1));
        }
        None
    }
}

/// The address and length of a place in a tree: one of IPv4 beneath `::/96`.
fn ip_network(address: u128, depth: u8, is_v6: bool) -> (IpAddr, u32) {
    let low = || Ipv4Addr::from_bits(u32::try_from(address & u128::from(u32::MAX)).unwrap_or(u32::MAX));
    match is_v6 {
        false => (low().into(), depth.into()),
        true if depth >= 96 && address >> 32 == 0 => (low().into(), u32::from(depth) - 96),
        true => (Ipv6Addr::from_bits(address).into(), depth.into()),
    }
}
