//! [`Profile`]: what a choice of strides depends on, from one pass over a table.
//!
//! In table order, of the nodes on the way to a prefix exactly those are new that lie below where it parts
//! from its predecessor; and the prefixes that cover it are a stack. No trie is built.

use wirespeed_fib::{Address, Prefix, Rib};

/// The binary trie of a table by depth: how many nodes go on, and how likely a lookup is to.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    bits: u8,
    prefixes: u64,
    /// Nodes by depth, from 0 to `deepest`, where there are none.
    nodes: Vec<u64>,
    random: Vec<f64>,
    prefix: Vec<f64>,
}

impl Profile {
    /// The profile of a table. O(nodes of its binary trie), which is at most prefixes times bits and about
    /// twice the prefixes of a real table.
    ///
    /// A table without a prefix longer than 0 has a profile of one bit with its root alone, as a lookup reads
    /// at least once.
    #[inline(never)] // one copy for all crates
    pub fn of<A: Address>(rib: &Rib<A>) -> Self {
        let longest = rib.by_length().iter().rposition(|&count| count > 0).unwrap_or(0).max(1);
        let mut nodes = vec![0u64; longest + 1];
        // Over all prefixes, the part of each that lies in nodes of a depth; those of at least its length.
        let mut inside = vec![0.0f64; longest + 1];
        // The prefixes that cover the last one, itself included, each with the sum of 2^length up to it.
        let mut covering: Vec<(Prefix<A>, f64)> = Vec::new();
        let mut last: Option<Prefix<A>> = None;
        for (prefix, _) in rib {
            while covering.pop_if(|(outer, _)| !outer.covers(prefix)).is_some() {}
            let above = covering.last().map_or(0.0, |&(_, sum)| sum);
            let first_new = last.map_or(0, |last| first_new(last, prefix));
            // A node of depth k holds 2^(length - k) of each prefix that covers it.
            let mut part = above * power(-i32::from(first_new));
            for depth in usize::from(first_new)..usize::from(prefix.len()) {
                nodes[depth] += 1;
                inside[depth] += part;
                part /= 2.0;
            }
            covering.push((prefix, above + power(prefix.len().into())));
            last = Some(prefix);
        }
        nodes[0] = 1;
        let random = (0..).zip(&nodes).map(|(depth, &nodes)| nodes as f64 * power(-depth)).collect();
        let prefix = from_prefixes(rib.by_length(), &inside);
        Self { bits: A::BITS, prefixes: rib.len() as u64, nodes, random, prefix }
    }

    /// Any profile, to choose strides for. All three from depth 0 on and of one length, less the last depth.
    #[cfg(test)]
    pub(super) fn from_parts(
        prefixes: u64,
        mut nodes: Vec<u64>,
        mut random: Vec<f64>,
        mut prefix: Vec<f64>,
    ) -> Self {
        assert!(nodes.len() == random.len() && nodes.len() == prefix.len() && !nodes.is_empty());
        nodes.push(0);
        random.push(0.0);
        prefix.push(0.0);
        Self { bits: 32, prefixes, nodes, random, prefix }
    }

    /// Bits of an address.
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// Number of prefixes.
    pub fn prefixes(&self) -> u64 {
        self.prefixes
    }

    /// The longest prefix length, at least 1: what strides add up to.
    pub fn deepest(&self) -> u8 {
        u8::try_from(self.nodes.len() - 1).unwrap_or(u8::MAX)
    }

    /// Paths of so many bits with a longer prefix beneath (the paper's NodesInLevel); none from
    /// [`deepest`](Self::deepest) on. The root counts always.
    pub fn nodes(&self, depth: u8) -> u64 {
        self.nodes.get(usize::from(depth)).copied().unwrap_or(0)
    }

    /// The probability that a lookup of a uniformly random address goes on past a depth.
    pub fn reach_random(&self, depth: u8) -> f64 {
        self.random.get(usize::from(depth)).copied().unwrap_or(0.0)
    }

    /// The probability that a lookup goes on past a depth when a prefix is drawn uniformly, then an address
    /// in it.
    pub fn reach_prefix(&self, depth: u8) -> f64 {
        self.prefix.get(usize::from(depth)).copied().unwrap_or(0.0)
    }

    /// The probability that a lookup goes on past a depth in a mixture: `prefix_traffic` (0 to 1) of it is by
    /// prefix, the rest is random.
    pub fn reach(&self, depth: u8, prefix_traffic: f64) -> f64 {
        (1.0 - prefix_traffic) * self.reach_random(depth) + prefix_traffic * self.reach_prefix(depth)
    }

    /// Units of a level; `u64::MAX` where they are more.
    pub fn units(&self, start: u8, stride: u8) -> u64 {
        let table = 1u64.checked_shl(stride.into()).unwrap_or(u64::MAX);
        self.nodes(start).saturating_mul(table)
    }
}

/// The first depth at which the way to a prefix has a node that the way to none before it has. A prefix is no
/// node of its own way, so that below a predecessor that covers it nothing is shared.
fn first_new<A: Address>(last: Prefix<A>, prefix: Prefix<A>) -> u8 {
    if last.covers(prefix) { last.len() } else { last.address().common_bits(prefix.address()) + 1 }
}

/// The probability of going on past each depth: always within the prefix that was drawn, then in the part of
/// it that lies in nodes.
fn from_prefixes(by_length: &[usize], inside: &[f64]) -> Vec<f64> {
    let prefixes = by_length.iter().sum::<usize>();
    let (mut longer, prefixes) = (prefixes as f64, prefixes.max(1) as f64);
    let mut reach: Vec<f64> = by_length
        .iter()
        .zip(inside)
        .map(|(&count, &inside)| {
            longer -= count as f64;
            (longer + inside) / prefixes
        })
        .collect();
    reach[0] = 1.0;
    reach
}

/// 2^exponent.
fn power(exponent: i32) -> f64 {
    2.0f64.powi(exponent)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use wirespeed_fib::{NextHop, V4, V6};

    use super::*;

    fn table<A: Address>(prefixes: &[&str]) -> Rib<A> {
        prefixes.iter().map(|text| (text.parse().unwrap_or_else(|_| panic!("{text}")), NextHop(1))).collect()
    }

    /// The paths of each depth that are on the way to a longer prefix.
    fn paths<A: Address>(rib: &Rib<A>) -> Vec<BTreeSet<Prefix<A>>> {
        let mut paths = vec![BTreeSet::new(); usize::from(A::BITS) + 1];
        for (prefix, _) in rib {
            for depth in 0..prefix.len() {
                paths[usize::from(depth)].insert(Prefix::around(prefix.address(), depth));
            }
        }
        paths[0].insert(Prefix::DEFAULT);
        paths
    }

    /// The part of a prefix that lies in paths of a depth.
    fn part<A: Address>(prefix: Prefix<A>, depth: u8, paths: &BTreeSet<Prefix<A>>) -> f64 {
        if paths.iter().any(|path| path.covers(prefix)) {
            return 1.0;
        }
        let inside = paths.iter().filter(|path| prefix.covers(**path)).count() as f64;
        inside / power(i32::from(depth) - i32::from(prefix.len()))
    }

    fn agrees<A: Address>(rib: &Rib<A>) {
        let (profile, paths) = (Profile::of(rib), paths(rib));
        let longest = rib.iter().map(|(prefix, _)| prefix.len()).max().unwrap_or(0).max(1);
        assert_eq!(profile.deepest(), longest);
        assert_eq!(profile.prefixes(), rib.len() as u64);
        for (depth, paths) in (0..=A::BITS).zip(&paths) {
            assert_eq!(profile.nodes(depth), paths.len() as u64, "nodes of depth {depth}");
            let random = paths.len() as f64 / power(depth.into());
            assert!((profile.reach_random(depth) - random).abs() < 1e-12);
            let prefix = match depth {
                0 => 1.0,
                _ => rib.iter().map(|(p, _)| part(p, depth, paths)).sum::<f64>() / rib.len().max(1) as f64,
            };
            let found = profile.reach_prefix(depth);
            assert!((found - prefix).abs() < 1e-9, "depth {depth}: {found}, not {prefix}");
        }
    }

    #[test]
    fn a_small_table_by_hand() {
        // 0/1 covers 00/2 and 010/3; beside them a lone /3.
        let rib = table::<V4>(&["0.0.0.0/1", "0.0.0.0/2", "64.0.0.0/3", "160.0.0.0/3"]);
        let profile = Profile::of(&rib);
        assert_eq!((0..=4).map(|depth| profile.nodes(depth)).collect::<Vec<_>>(), [1, 2, 2, 0, 0]);
        assert_eq!((profile.reach_random(1), profile.reach_random(2)), (1.0, 0.5));
        // Of 0/1 half lies in 01, 00/2 ends, both /3 are on the way.
        assert_eq!(profile.reach_prefix(2), (0.5 + 0.0 + 1.0 + 1.0) / 4.0);
        assert_eq!(profile.reach(2, 0.5), 0.5625);
        assert_eq!(profile.units(2, 1), 4);
    }

    #[test]
    fn a_table_without_length_reads_once() {
        for rib in [Rib::<V6>::new(), table(&["::/0"])] {
            let profile = Profile::of(&rib);
            assert_eq!((profile.deepest(), profile.nodes(0), profile.nodes(1)), (1, 1, 0));
            assert_eq!((profile.reach(0, 0.5), profile.reach(1, 0.5)), (1.0, 0.0));
            agrees(&rib);
        }
    }

    #[test]
    fn the_deepest_and_the_fullest() {
        let hosts = table::<V6>(&["::/0", "::/1", "::1/128", "::/128", "8000::/1", "ffff::2/127"]);
        agrees(&hosts);
        assert_eq!(Profile::of(&hosts).units(100, 24), 2 << 24);
        let full: Rib<V4> = (0..=255u32).map(|i| (Prefix::around(V4(i << 24), 8), NextHop(1))).collect();
        agrees(&full);
        assert_eq!(Profile::of(&full).reach_prefix(7), 1.0);
    }

    #[test]
    fn units_saturate() {
        let profile = Profile::from_parts(1, vec![u64::MAX / 2], vec![1.0], vec![1.0]);
        assert_eq!(profile.units(0, 1), u64::MAX - 1);
        assert_eq!(profile.units(0, 2), u64::MAX);
    }

    fn prefixes<A: Address>() -> impl Strategy<Value = Rib<A>> {
        let octet = prop_oneof![4 => Just(0u8), 2 => Just(128), 1 => Just(255), 2 => any::<u8>()];
        let prefix = (proptest::collection::vec(octet, A::OCTETS), 0..=A::BITS).prop_map(|(octets, len)| {
            let address = octets.iter().enumerate().fold(A::MIN, |a, (i, &o)| a.with_octet(i, o));
            (Prefix::around(address, len), NextHop(1))
        });
        proptest::collection::vec(prefix, 0..40).prop_map(|routes| routes.into_iter().collect())
    }

    proptest! {
        #[test]
        fn any_table_v4(rib in prefixes::<V4>()) {
            agrees(&rib);
        }

        #[test]
        fn any_table_v6(rib in prefixes::<V6>()) {
            agrees(&rib);
        }
    }
}
