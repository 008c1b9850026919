//! PlanB: "Efficient Software IPv6 Lookup with Linearized B+-Tree" (Zhang et al.), written here from its
//! description.
//!
//! Prefixes become disjoint ranges of 64-bit keys, the upper halves of addresses, each with a next hop. The
//! first keys of the ranges are the keys of a B+-tree whose nodes are one cache line each and are compared by
//! one instruction of AVX-512, two of AVX2. Nodes lie level by level and hold no pointers: the children of
//! node n are the nodes 9 n to 9 n + 8 of the level below.
//!
//! ```text
//! node n of a level   │ k0 │ k1 │ … │ k7 │   child 9 n + (number of keys below the key looked up)
//! next hops           u16 or u32, one a range: the children of the last level
//! ```
//!
//! Key i of a node is one less than the first key of the ranges beneath child i + 1. A batch goes down the
//! levels together, 32 keys at a time, so that their reads overlap.
//!
//! Departures from the paper: neighbouring ranges of one next hop are one range; prefixes longer than /64,
//! which the paper leaves out, are kept apart in a sorted list of ranges of whole addresses, so that every
//! answer is right. A key pays for that list only in a range that has some. Updates build the tree anew, as
//! in the paper, so it takes no part in the measurements of updates.

mod vector;

use anyhow::{Context as _, Result};
use bytemuck::Pod;
use wirespeed_fib::oracle::ranges;
use wirespeed_fib::{NextHop, Rib, V6, VectorLevel};

use crate::pages::Huge;
use crate::table::{Contestant, Lane, answers_are_results, lane};
use crate::trace::Keys;

/// Keys of a node: a cache line.
pub(crate) const KEYS: usize = 8;
/// Children of a node.
const CHILDREN: usize = KEYS + 1;

/// A node's keys. They are signed, and the smallest key is `i64::MIN`, because AVX2 has no other comparison.
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Node([i64; KEYS]);

/// Builds the lane `planb`, with next hops of two bytes where they fit.
pub fn planb(rib: &Rib<V6>) -> Result<Box<dyn Lane<V6>>> {
    if rib.max_next_hop().0 < u32::from(u16::MAX) {
        lane("planb", rib, PlanB::<u16>::build)
    } else {
        lane("planb", rib, PlanB::<u32>::build)
    }
}

/// A next hop as it is stored. The largest value says that longer prefixes decide.
pub trait Stored: Pod + Into<u32> + TryFrom<u32> {
    /// The value for a range whose next hops are in the list of longer prefixes.
    const APART: Self;
}

impl Stored for u16 {
    const APART: Self = Self::MAX;
}

impl Stored for u32 {
    const APART: Self = Self::MAX;
}

/// The tree, with next hops of type `N`.
pub struct PlanB<N> {
    level: VectorLevel,
    nodes: Huge<Node>,
    /// The first node of each level, the root first.
    levels: Vec<usize>,
    next_hops: Huge<N>,
    /// Ranges of whole addresses beneath the keys that have prefixes longer than /64, in order.
    apart: Vec<(V6, NextHop)>,
}

impl<N: Stored> PlanB<N> {
    /// Makes the ranges and their tree.
    pub fn build(rib: &Rib<V6>) -> Result<Self> {
        Self::for_level(rib, VectorLevel::best())
    }

    fn for_level(rib: &Rib<V6>, level: VectorLevel) -> Result<Self> {
        let Halves { ranges, apart } = Halves::of(&ranges(rib));
        let next_hops = ranges.iter().map(|&(_, found)| match found {
            Some(NextHop(index)) => {
                N::try_from(index).ok().context("a next hop is too large for the entries")
            }
            None => Ok(N::APART),
        });
        let next_hops = next_hops.collect::<Result<Vec<N>>>()?;
        let firsts: Vec<i64> = ranges.iter().map(|&(first, _)| signed(first)).collect();
        let (nodes, levels) = tree(&firsts);
        Ok(Self { level, nodes: Huge::copy(&nodes)?, levels, next_hops: Huge::copy(&next_hops)?, apart })
    }

    /// The next hop of an address from the range that its upper half is in.
    #[inline]
    fn answer(&self, range: usize, key: V6) -> NextHop {
        let found: u32 = self.next_hops[range].into();
        if found == N::APART.into() { self.answer_apart(key) } else { NextHop(found) }
    }

    #[cold]
    fn answer_apart(&self, key: V6) -> NextHop {
        self.apart[self.apart.partition_point(|&(first, _)| first <= key) - 1].1
    }

    /// The range that a key is in.
    #[inline]
    fn range(&self, key: i64) -> usize {
        self.levels.iter().fold(0, |node, &level| {
            node * CHILDREN + self.nodes[level + node].0.iter().filter(|&&before| before < key).count()
        })
    }
}

/// The upper half of an address, in the order of signed numbers.
#[inline]
fn signed(upper: u64) -> i64 {
    (upper ^ 1 << 63).cast_signed()
}

/// The upper half of an address.
#[inline]
fn upper(address: V6) -> u64 {
    u64::try_from(address.0 >> 64).expect("64 bits are left")
}

/// The ranges of upper halves, and the ranges of addresses within those that several next hops share.
#[derive(Debug, Default, PartialEq, Eq)]
struct Halves {
    /// The first half of each range with its next hop, `None` where the list `apart` has it.
    ranges: Vec<(u64, Option<NextHop>)>,
    apart: Vec<(V6, NextHop)>,
}

impl Halves {
    /// Splits ranges of addresses, which begin with the smallest address.
    fn of(ranges: &[(V6, NextHop)]) -> Self {
        let mut halves = Self::default();
        let mut current = NextHop::NONE;
        // The half after one that is apart.
        let mut resumed = None;
        for same in ranges.chunk_by(|a, b| upper(a.0) == upper(b.0)) {
            let half = upper(same[0].0);
            let whole = V6(u128::from(half) << 64);
            if let Some(next) = resumed.take().filter(|&next| next < half) {
                halves.push(next, Some(current));
            }
            match *same {
                [(first, next_hop)] if first == whole => halves.push(half, Some(next_hop)),
                [(first, _), ..] => {
                    if first != whole {
                        halves.apart.push((whole, current));
                    }
                    halves.apart.extend_from_slice(same);
                    halves.push(half, None);
                    resumed = half.checked_add(1);
                }
                [] => {}
            }
            current = same.last().map_or(current, |&(_, next_hop)| next_hop);
        }
        if let Some(next) = resumed {
            halves.push(next, Some(current));
        }
        halves
    }

    fn push(&mut self, first: u64, next_hop: Option<NextHop>) {
        if self.ranges.last().is_none_or(|last| last.1 != next_hop) {
            self.ranges.push((first, next_hop));
        }
    }
}

/// The nodes over the first keys of ranges, and the first node of each level, the root first.
fn tree(firsts: &[i64]) -> (Vec<Node>, Vec<usize>) {
    // Nodes of each level, the last level first.
    let mut counts = vec![firsts.len().div_ceil(CHILDREN)];
    while counts[counts.len() - 1] > 1 {
        counts.push(counts[counts.len() - 1].div_ceil(CHILDREN));
    }
    counts.reverse();
    let mut nodes = Vec::with_capacity(counts.iter().sum());
    let mut levels = Vec::with_capacity(counts.len());
    // Ranges beneath a child of a level.
    let mut beneath = CHILDREN.pow(u32::try_from(counts.len()).expect("a logarithm of what fits memory"));
    for count in counts {
        levels.push(nodes.len());
        beneath /= CHILDREN;
        for node in 0..count {
            // No key is above the largest key, so nothing leads to children that are not there.
            let key = |at: usize| {
                firsts.get((node * CHILDREN + at + 1) * beneath).map_or(i64::MAX, |&first| first - 1)
            };
            nodes.push(Node(std::array::from_fn(key)));
        }
    }
    (nodes, levels)
}

impl<N: Stored> Contestant<V6> for PlanB<N> {
    answers_are_results!(NextHop);

    fn many(&self, keys: Keys<'_, V6>, answers: &mut [NextHop]) {
        let done = vector::many(self, keys.host, answers);
        for (answer, &key) in answers[done..].iter_mut().zip(&keys.host[done..]) {
            *answer = self.one(key);
        }
    }

    #[inline]
    fn one(&self, key: V6) -> NextHop {
        self.answer(self.range(signed(upper(key))), key)
    }

    fn memory(&self) -> Option<u64> {
        let bytes = size_of_val(&*self.nodes) + size_of_val(&*self.next_hops) + size_of_val(&*self.apart);
        Some(bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::conformance::{Expected, scattered, tables};
    use wirespeed_fib::oracle;

    use super::*;

    /// Holds every vector level against the oracle at the ends of each prefix and at random addresses.
    fn agrees<N: Stored>(name: &str, rib: &Rib<V6>) {
        let expected = Expected::of(rib);
        let mut keys = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix));
        keys.extend(scattered::<V6>(500));
        for level in VectorLevel::ALL.into_iter().filter(|level| level.is_here()) {
            let table = PlanB::<N>::for_level(rib, level).expect("the next hops fit");
            let mut answers = vec![NextHop(u32::MAX); keys.len()];
            table.many(Keys { host: &keys, network: &[] }, &mut answers);
            for (&key, &answer) in keys.iter().zip(&answers) {
                let right = expected.lookup(key);
                assert_eq!((answer, table.one(key)), (right, right), "{name}: {key} by {level:?}");
            }
        }
    }

    #[test]
    fn answers_as_the_oracle_does() {
        for (name, rib) in tables::hand_picked::<V6>() {
            if rib.max_next_hop().0 < u16::MAX.into() {
                agrees::<u16>(name, &rib);
            }
            agrees::<u32>(name, &rib);
        }
        agrees::<u16>("empty", &Rib::new());
        for count in [8, 9, 10, 80, 81, 82, 729, 730, 5_000] {
            let rib = scattered::<V6>(count).into_iter().zip((0..).map(|i| NextHop(1 + i % 7)));
            let rib = rib.enumerate().map(|(i, (address, next_hop))| {
                (wirespeed_fib::Prefix::around(address, [48, 64, 63, 96, 128][i % 5]), next_hop)
            });
            agrees::<u16>("scattered", &rib.collect());
        }
    }

    /// Neighbours that are apart, at both ends of the address space.
    #[test]
    fn prefixes_longer_than_64_are_kept_apart() {
        let routes = [
            ("::/0", 1),
            ("::1/128", 2),
            ("2001:db8:0:1::/65", 3),
            ("2001:db8:0:2:8000::/65", 4),
            ("2001:db8:0:3::/64", 5),
            ("ffff:ffff:ffff:ffff::/64", 6),
            ("ffff:ffff:ffff:ffff:ffff::/80", 7),
        ];
        let rib: Rib<V6> =
            routes.into_iter().map(|(prefix, index)| (prefix.parse().unwrap(), NextHop(index))).collect();
        agrees::<u16>("apart", &rib);
        let halves = Halves::of(&ranges(&rib));
        let found: Vec<_> = halves.ranges.iter().map(|&(_, found)| found.map(|found| found.0)).collect();
        assert_eq!(found, [None, Some(1), None, Some(5), Some(1), None]);
    }
}
