//! [`TwoStageHash`]: starts at a number of components that most entries are decided by, and goes down or up
//! from there.
//!
//! Every entry that is deeper than the start has its first components in the start's table, as an entry of
//! its own or a virtual one. That one knows how deep the entries below it go. A name that is found there
//! without deeper ones has its answer. A name that isn't found there has no deeper entries at all.

use anyhow::Result;
use rustc_hash::FxHashMap;
use wirespeed_namelookup::{Name, NameTable, Node, NodeId};

use super::by_depth::{ByDepth, MOST, Prefixes};
use crate::names::OfNames;
use crate::table::{Contestant, one_by_one};

/// Hash tables by number of components, with a start.
pub struct TwoStageHash {
    by_depth: ByDepth,
    start: usize,
}

/// Numbers of components that are considered as the start.
const STARTS: std::ops::RangeInclusive<usize> = 1..=5;

impl TwoStageHash {
    /// Inserts all names; the start is where names with an entry, each as likely as any, take the fewest
    /// probes.
    pub fn build(names: &NameTable) -> Result<Self> {
        let start = STARTS.min_by_key(|&start| probes(names, start)).unwrap_or(1);
        let mut by_depth = ByDepth::build(names)?;
        for (node, deepest) in deepest(names, start) {
            let deepest = u16::try_from(deepest)?;
            by_depth.with(&names.node(node).name(), |entry| entry.deepest = deepest)?;
        }
        Ok(Self { by_depth, start })
    }

    /// Components of the prefix that is probed first.
    pub const fn start(&self) -> usize {
        self.start
    }

    fn from(&self, name: &Name, prefixes: &Prefixes, longest: usize, least: usize) -> Option<u32> {
        let probed = (least..=longest).rev().filter_map(|count| self.by_depth.find(name, prefixes, count));
        probed.map(|entry| entry.result).find(|&result| result != 0)
    }
}

/// The nodes of so many components with entries below them, and how deep these go.
fn deepest(names: &NameTable, start: usize) -> FxHashMap<NodeId, usize> {
    let mut deepest = FxHashMap::default();
    for node in names.nodes().filter(|node| node.result() != 0) {
        let depth = node.depth();
        if depth > start {
            let most = deepest.entry(above(node, depth - start)).or_insert(0);
            *most = depth.max(*most);
        }
    }
    deepest
}

fn above(node: Node<'_>, levels: usize) -> NodeId {
    let parents = std::iter::successors(Some(node), Node::parent);
    parents.take(levels + 1).last().map_or(NodeId::ROOT, |node| node.id())
}

/// Probes for all entries with longer names.
fn probes(names: &NameTable, start: usize) -> usize {
    let deepest = deepest(names, start);
    let of = |node: Node<'_>| {
        let depth = node.depth();
        if depth < start {
            return 1 + start - depth;
        }
        let most = deepest.get(&above(node, depth - start)).copied().unwrap_or(start);
        // From the deepest below to this one; the start's own entry is known by then.
        1 + most - depth + usize::from(depth > start)
    };
    names.nodes().filter(|node| node.result() != 0).map(of).sum()
}

impl Contestant<OfNames> for TwoStageHash {
    one_by_one!(OfNames);

    #[inline]
    fn one(&self, name: &Name) -> u32 {
        let Self { by_depth, start } = self;
        let prefixes = Prefixes::new(name, by_depth.depth().min(MOST));
        let mut down = prefixes.count().min(*start);
        if prefixes.count() >= *start {
            let first = by_depth.find(name, &prefixes, *start);
            down -= 1;
            if let Some(first) = first {
                let longest = prefixes.count().min(usize::from(first.deepest));
                if let Some(result) = self.from(name, &prefixes, longest, start + 1) {
                    return result;
                }
                if first.result != 0 {
                    return first.result;
                }
            }
        }
        self.from(name, &prefixes, down, 1).unwrap_or(by_depth.root)
    }
}
