//! [`Stats`]: statistics of a routing table.
//!
//! One walk in table order, with the covering prefixes on a stack: the depth of the stack is the nesting of a
//! prefix, and a prefix on an empty stack adds its addresses to the covered share. This walk yields all
//! structure that matters to engines: lengths, nesting and amounts.

use std::fmt;

use serde::Serialize;
use wirespeed_input::plural;

use crate::address::{Address, Family};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::rib::Rib;

/// The number of next hops in [`Stats::top_next_hops`].
const TOP: usize = 10;

/// Statistics of a routing table of one family.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// `4` or `6`.
    pub family: u8,
    /// Number of prefixes.
    pub prefixes: usize,
    /// Number of prefixes of each length, from 0 to the family's longest.
    pub by_length: Vec<usize>,
    /// Prefixes longer than 24 bits.
    pub longer_than_24: usize,
    /// Prefixes longer than 48 bits; 0 for IPv4.
    pub longer_than_48: usize,
    /// Prefixes longer than 64 bits; 0 for IPv4.
    pub longer_than_64: usize,
    /// Number of distinct next hops in use, [`NextHop::NONE`] not counted.
    pub next_hops: usize,
    /// The next hops with most prefixes and how many each has, most first, at most 10.
    pub top_next_hops: Vec<(u32, usize)>,
    /// Prefixes that another prefix covers.
    pub covered_prefixes: usize,
    /// Number of prefixes by the number of other prefixes that cover each, from 0.
    pub by_nesting: Vec<usize>,
    /// Addresses that some prefix contains.
    pub covered_addresses: AddressCount,
    /// The share of the address space that some prefix contains, 0 to 1.
    pub covered_share: f64,
    /// The share of 2000::/3, the global unicast space, that some prefix contains, 0 to 1; `None` for IPv4.
    pub covered_share_of_global_unicast: Option<f64>,
}

/// A number of addresses, exact: up to 2^128, one more than a `u128` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AddressCount {
    /// The number modulo 2^128.
    low: u128,
    /// Whether it is 2^128.
    all: bool,
}

impl AddressCount {
    /// The number, or `None` for all 2^128 addresses of IPv6.
    pub fn get(self) -> Option<u128> {
        (!self.all).then_some(self.low)
    }

    /// The number as a share of 2^`bits`, to the precision of `f64`.
    #[allow(clippy::cast_precision_loss)] // a share is for reading
    pub fn share_of(self, bits: u8) -> f64 {
        let count = if self.all { 2f64.powi(128) } else { self.low as f64 };
        count / 2f64.powi(i32::from(bits))
    }

    /// Adds the addresses of a prefix with this number of host bits.
    fn add(&mut self, host_bits: u8) {
        match 1u128.checked_shl(u32::from(host_bits)).and_then(|n| self.low.checked_add(n)) {
            Some(sum) => self.low = sum,
            None => *self = Self { low: 0, all: true },
        }
    }
}

impl fmt::Display for AddressCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(count) => count.fmt(f),
            None => f.write_str("340282366920938463463374607431768211456"),
        }
    }
}

impl Serialize for AddressCount {
    /// Writes a string, because numbers of JSON are exact only up to 2^53 for most readers.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Stats {
    /// Measures a table. O(prefixes + largest next hop).
    pub fn of<A: Address>(rib: &Rib<A>) -> Self {
        let global_unicast = Prefix::<A>::around(A::from_u128_low(1 << 125), 3);
        let (mut covered, mut covered_global) = (AddressCount::default(), AddressCount::default());
        let mut by_nesting = Vec::new();
        let mut users: Vec<usize> = vec![0; rib.max_next_hop().0 as usize + 1];
        let mut stack: Vec<Prefix<A>> = Vec::new();
        for (prefix, next_hop) in rib {
            users[next_hop.0 as usize] += 1;
            while stack.last().is_some_and(|top| !top.covers(prefix)) {
                stack.pop();
            }
            if stack.is_empty() {
                covered.add(A::BITS - prefix.len());
                if prefix.covers(global_unicast) {
                    covered_global.add(A::BITS - 3);
                } else if global_unicast.covers(prefix) {
                    covered_global.add(A::BITS - prefix.len());
                }
            }
            if by_nesting.len() <= stack.len() {
                by_nesting.resize(stack.len() + 1, 0);
            }
            by_nesting[stack.len()] += 1;
            stack.push(prefix);
        }
        users[NextHop::NONE.0 as usize] = 0;
        let mut top: Vec<(u32, usize)> = (0..).zip(users).filter(|&(_, count)| count > 0).collect();
        let next_hops = top.len();
        top.sort_by_key(|&(index, count)| (std::cmp::Reverse(count), index));
        top.truncate(TOP);
        let longer_than = |len: usize| rib.by_length().iter().skip(len + 1).sum();
        Self {
            family: if A::FAMILY == Family::V4 { 4 } else { 6 },
            prefixes: rib.len(),
            by_length: rib.by_length().to_vec(),
            longer_than_24: longer_than(24),
            longer_than_48: longer_than(48),
            longer_than_64: longer_than(64),
            next_hops,
            top_next_hops: top,
            covered_prefixes: by_nesting.iter().skip(1).sum(),
            by_nesting,
            covered_addresses: covered,
            covered_share: covered.share_of(A::BITS),
            covered_share_of_global_unicast: (A::FAMILY == Family::V6)
                .then(|| covered_global.share_of(A::BITS - 3)),
        }
    }
}

impl fmt::Display for Stats {
    /// Writes a few lines of text, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "IPv{}: {} {}, {} {}",
            self.family,
            self.prefixes,
            plural(self.prefixes as u64, "prefix"),
            self.next_hops,
            plural(self.next_hops as u64, "next hop")
        )?;
        write!(
            f,
            "covered: {} addresses, {} of the space",
            self.covered_addresses,
            Percent(self.covered_share)
        )?;
        if let Some(share) = self.covered_share_of_global_unicast {
            write!(f, ", {} of 2000::/3", Percent(share))?;
        }
        write!(f, "\nlonger than /24: {}", self.longer_than_24)?;
        if self.family == 6 {
            write!(f, ", /48: {}, /64: {}", self.longer_than_48, self.longer_than_64)?;
        }
        let share = Percent(ratio(self.covered_prefixes, self.prefixes));
        write!(f, "\nnested in another: {} ({share})", self.covered_prefixes)?;
        for (depth, &count) in self.by_nesting.iter().enumerate() {
            write!(f, "\n  under {depth:>3} {count:>9}  {}", Percent(ratio(count, self.prefixes)))?;
        }
        write!(f, "\nby length:")?;
        for (len, &count) in self.by_length.iter().enumerate().filter(|&(_, &count)| count > 0) {
            write!(f, "\n  /{len:<3} {count:>9}  {}", Percent(ratio(count, self.prefixes)))?;
        }
        write!(f, "\nmost used next hops:")?;
        for &(index, count) in &self.top_next_hops {
            write!(f, "\n  {index:>6} {count:>9}  {}", Percent(ratio(count, self.prefixes)))?;
        }
        Ok(())
    }
}

/// A share as a percentage with two digits, or with up to six if it is small.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        match percent {
            _ if percent == 0.0 || percent >= 0.1 => write!(f, "{percent:.2} %"),
            _ if percent >= 0.001 => write!(f, "{percent:.4} %"),
            _ if percent >= 0.000_001 => write!(f, "{percent:.6} %"),
            _ => f.write_str("under 0.000001 %"),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // for reading
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{V4, V6};

    fn rib<A: Address>(routes: &[(&str, u32)]) -> Rib<A> {
        routes.iter().map(|&(p, n)| (p.parse().unwrap(), NextHop(n))).collect()
    }

    #[test]
    fn small_shares_are_written_out() {
        for (share, text) in [
            (0.0, "0.00 %"),
            (1.0, "100.00 %"),
            (0.5, "50.00 %"),
            (0.00003, "0.0030 %"),
            (3e-8, "0.000003 %"),
            (1e-30, "under 0.000001 %"),
        ] {
            assert_eq!(Percent(share).to_string(), text);
        }
    }

    #[test]
    fn counts_what_is_there() {
        let table: Rib<V4> = rib(&[
            ("10.0.0.0/8", 1),
            ("10.1.0.0/16", 2),
            ("10.1.1.0/24", 2),
            ("10.1.1.128/25", 2),
            ("11.0.0.0/9", 7),
            ("12.0.0.0/32", 0),
        ]);
        let stats = Stats::of(&table);
        assert_eq!((stats.prefixes, stats.next_hops, stats.covered_prefixes), (6, 3, 3));
        assert_eq!(stats.by_nesting, [3, 1, 1, 1]);
        assert_eq!(stats.longer_than_24, 2);
        assert_eq!(stats.top_next_hops, [(2, 3), (1, 1), (7, 1)]);
        assert_eq!(stats.covered_addresses.get(), Some((1 << 24) + (1 << 23) + 1));
        assert_eq!(stats.covered_share_of_global_unicast, None);
        assert!(stats.to_string().contains("/25 "), "{stats}");
    }

    #[test]
    fn the_whole_of_ipv6_is_a_number_too() {
        let stats = Stats::of(&rib::<V6>(&[("::/0", 1), ("2001:db8::/32", 1)]));
        assert_eq!(stats.covered_addresses.get(), None);
        assert_eq!((stats.covered_share, stats.covered_share_of_global_unicast), (1.0, Some(1.0)));
        let halves = Stats::of(&rib::<V6>(&[("::/1", 1), ("8000::/1", 1)]));
        assert_eq!(halves.covered_addresses, stats.covered_addresses);
        assert_eq!(halves.covered_addresses.to_string(), "340282366920938463463374607431768211456");
        let quarter = Stats::of(&rib::<V6>(&[("2000::/5", 1), ("fc00::/7", 1)]));
        assert_eq!(quarter.covered_share_of_global_unicast, Some(0.25));
    }

    #[test]
    fn an_empty_table_divides_by_nothing() {
        let stats = Stats::of(&Rib::<V4>::new());
        assert_eq!((stats.prefixes, stats.covered_share), (0, 0.0));
        assert!(stats.by_nesting.is_empty());
        assert!(stats.to_string().contains("0 prefixes"));
    }

    #[test]
    fn json_keeps_large_counts_exact() {
        let json = serde_json::to_value(Stats::of(&rib::<V6>(&[("::/0", 1)]))).unwrap();
        assert_eq!(json["covered_addresses"], "340282366920938463463374607431768211456");
        assert_eq!(json["family"], 6);
    }
}
