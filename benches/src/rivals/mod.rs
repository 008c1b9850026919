//! Tables from the Rust registry: each file wraps one crate and says how its users would call it. And three
//! that no crate has, written here from their papers: [`Lulea`] and [`Pbf`], which the SAIL paper is measured
//! against, and [`PlanB`], which is newer than the others.

mod bart;
mod iptrie;
mod lulea;
mod pbf;
mod planb;
mod poptrie;
mod prefix_trie;
mod treebitmap;

pub use bart::Bart;
pub use iptrie::{IptrieLc, IptrieRadix};
pub use lulea::{Lulea, Pointer, lulea};
pub use pbf::Pbf;
pub use planb::{PlanB, planb};
pub use poptrie::Poptrie;
pub use prefix_trie::PrefixTrie;
pub use treebitmap::Treebitmap;

use std::net::{Ipv4Addr, Ipv6Addr};

use wirespeed_fib::{Address, NextHop, V4, V6};

/// An address in the types that other crates use.
pub trait Native: Address {
    /// The primitive integer.
    type Int: Copy;
    /// The standard library's type.
    type Std: Copy;

    /// The address as an integer.
    fn int(self) -> Self::Int;
    /// The address in the standard library's type.
    fn std(self) -> Self::Std;
}

impl Native for V4 {
    type Int = u32;
    type Std = Ipv4Addr;

    #[inline]
    fn int(self) -> u32 {
        self.0
    }

    #[inline]
    fn std(self) -> Ipv4Addr {
        self.into()
    }
}

impl Native for V6 {
    type Int = u128;
    type Std = Ipv6Addr;

    #[inline]
    fn int(self) -> u128 {
        self.0
    }

    #[inline]
    fn std(self) -> Ipv6Addr {
        self.into()
    }
}

/// The next hop of an optional value.
#[inline]
fn or_none(value: Option<&u32>) -> NextHop {
    value.map_or(NextHop::NONE, |&index| NextHop(index))
}

/// The value to store for an announcement; those of a contest all have a next hop.
#[inline]
fn index(next_hop: Option<NextHop>) -> u32 {
    next_hop.unwrap_or(NextHop(1)).0
}

#[cfg(test)]
mod tests {
    use anyhow::Result;
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::oracle::{boundaries, ranges};
    use wirespeed_fib::synth::rng::Rng;
    use wirespeed_fib::{Address, NextHop, Rib, V4};

    use crate::table::Contestant;

    /// Holds a table against the oracle at the ends of each prefix, at their neighbours and at random
    /// addresses.
    pub(super) fn agrees(table: &impl Contestant<V4>, rib: &Rib<V4>) {
        let ranges = ranges(rib);
        let mut rng = Rng::new(1);
        let mut keys = boundaries(rib.iter().map(|(prefix, _)| prefix));
        keys.extend((0..2000).map(|_| V4::from_u128_low(rng.bits128())));
        for key in keys {
            let (_, expected) = ranges[ranges.partition_point(|range| range.0 <= key) - 1];
            assert_eq!(table.one(key), expected, "{key}");
        }
    }

    /// Every hand-picked table of the conformance suite, and a hole at the very top.
    pub(super) fn hand_picked<C: Contestant<V4>>(build: impl Fn(&Rib<V4>) -> Result<C>) {
        for (name, rib) in tables::hand_picked::<V4>() {
            println!("{name}");
            let table = build(&rib).unwrap_or_else(|error| panic!("{name}: {error}"));
            agrees(&table, &rib);
        }
        let hole: Rib<V4> = [("0.0.0.0/0", 0), ("128.0.0.0/1", 9)]
            .map(|(prefix, next_hop)| (prefix.parse().unwrap(), NextHop(next_hop)))
            .into_iter()
            .collect();
        agrees(&build(&hole).unwrap(), &hole);
    }
}
