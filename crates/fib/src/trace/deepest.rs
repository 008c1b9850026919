//! The worst case: addresses whose lookups take the most steps.

use crate::address::Address;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// Addresses with the longest lookups, one or two for each of the worst prefixes, in table order. Empty for
/// an empty table. O(prefixes).
///
/// The worst prefixes are those whose longest match needs most octets of the address, so that a multi-bit
/// trie goes down all its levels; and among them those that most other prefixes cover, so that an engine that
/// tries several lengths has most to try. Taken are all prefixes of the deepest octet, most nested first. If
/// these are fewer than 4,096, prefixes of one octet less follow up to that number. There are at most a
/// million.
pub fn deepest<A: Address>(table: &Rib<A>) -> Vec<A> {
    let mut by_depth: Vec<Worst<A>> = Vec::with_capacity(table.len());
    let mut stack: Vec<Prefix<A>> = Vec::new();
    for (prefix, _) in table {
        while stack.last().is_some_and(|top| !top.covers(prefix)) {
            stack.pop();
        }
        by_depth.push(Worst { octets: prefix.len().div_ceil(8), nesting: stack.len(), prefix });
        stack.push(prefix);
    }
    by_depth.sort_by_key(|worst| std::cmp::Reverse((worst.octets, worst.nesting)));
    let deepest = by_depth.first().map_or(0, |worst| worst.octets);
    let all = by_depth.iter().take_while(|worst| worst.octets == deepest).count();
    by_depth.truncate(all.clamp(FEWEST, MOST));
    let mut addresses: Vec<A> = by_depth
        .iter()
        .flat_map(|worst| {
            [worst.prefix.address(), worst.prefix.last()].map(|address| (worst.prefix, address))
        })
        .filter(|&(prefix, address)| table.longest_match(address).is_some_and(|(best, _)| best == prefix))
        .map(|(_, address)| address)
        .collect();
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() {
        // Every end lies under a longer prefix that was left out, whose lookup is even longer.
        addresses.extend(by_depth.first().map(|worst| worst.prefix.address()));
    }
    addresses
}

const FEWEST: usize = 4096;
const MOST: usize = 1_000_000;

struct Worst<A> {
    octets: u8,
    nesting: usize,
    prefix: Prefix<A>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};
    use crate::next_hop::NextHop;

    fn rib<A: Address>(prefixes: impl IntoIterator<Item = Prefix<A>>) -> Rib<A> {
        prefixes.into_iter().map(|p| (p, NextHop(1))).collect()
    }

    #[test]
    fn the_longest_of_a_chain() {
        let chain = (0..=128).map(|len| Prefix::<V6>::around(V6::MAX, len));
        let addresses = deepest(&rib(chain));
        assert!(addresses.contains(&V6::MAX));
        assert_eq!(deepest(&Rib::<V6>::new()), []);
    }

    #[test]
    fn as_many_as_there_are_of_the_deepest_octet() {
        let shallow = (0..10_000u32).map(|i| Prefix::around(V4(i << 16), 16));
        let deep = (0..5_000u32).map(|i| Prefix::around(V4(i << 12 | 1 << 31), 28));
        let table = rib(shallow.chain(deep));
        let addresses = deepest(&table);
        assert_eq!(addresses.len(), 10_000);
        let lens = addresses.iter().map(|&a| table.longest_match(a).map_or(0, |(p, _)| p.len()));
        assert!(lens.into_iter().all(|len| len == 28));
    }
}
