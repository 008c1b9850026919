//! The table that readers fill.

#[cfg(feature = "mrt")]
use std::net::IpAddr;

use rustc_hash::FxHashMap;

use super::any_prefix::AnyPrefix;
use super::error::{Fault, SkipReason};
use super::report::Ledger;
use super::text;
use crate::address::{Address, V4, V6};
use crate::fib::Fib;
use crate::next_hop::{NextHop, NextHops};
use crate::prefix::Prefix;
use crate::range::prefixes_of_range;

/// Addresses whose ranges are read.
pub(super) trait Ranged: Address {
    /// The addresses less one from the first to the last.
    fn span(first: Self, last: Self) -> u128;
    fn any(prefix: Prefix<Self>) -> AnyPrefix;
}

impl Ranged for V4 {
    fn span(first: Self, last: Self) -> u128 {
        (last.0 - first.0).into()
    }

    fn any(prefix: Prefix<Self>) -> AnyPrefix {
        AnyPrefix::V4(prefix)
    }
}

impl Ranged for V6 {
    fn span(first: Self, last: Self) -> u128 {
        last.0 - first.0
    }

    fn any(prefix: Prefix<Self>) -> AnyPrefix {
        AnyPrefix::V6(prefix)
    }
}

/// Finds the index of a next hop, fast for next hops that were seen before.
#[derive(Debug, Default)]
pub(super) struct HopFinder {
    /// The last word and its index: neighbouring routes often share a next hop.
    last: Vec<u8>,
    last_index: NextHop,
    #[cfg(feature = "mrt")]
    addresses: FxHashMap<IpAddr, NextHop>,
}

impl HopFinder {
    /// The index of a word.
    #[inline]
    pub(super) fn word(&mut self, hops: &mut NextHops, word: &[u8]) -> Result<NextHop, Fault> {
        if word != self.last || word.is_empty() {
            self.last_index = hops.intern(text::next_hop(word)?)?;
            self.last.clear();
            self.last.extend_from_slice(word);
        }
        Ok(self.last_index)
    }

    /// The index of an address, or of `local` for the unspecified one.
    #[cfg(feature = "mrt")]
    pub(super) fn address(&mut self, hops: &mut NextHops, address: IpAddr) -> Result<NextHop, Fault> {
        if let Some(&index) = self.addresses.get(&address) {
            return Ok(index);
        }
        let index = match address.is_unspecified() {
            true => hops.intern("local")?,
            false => hops.intern(&address.to_string())?,
        };
        self.addresses.insert(address, index);
        Ok(index)
    }
}

/// A table during a reading.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) fib: Fib,
    /// Whether routes get their origin as next hop.
    pub(super) origins: bool,
    /// Whether a route with several origins gets all of them.
    pub(super) all_origins: bool,
    finder: HopFinder,
    /// The addresses less one of the range that a prefix is a part of, where that is not the prefix alone.
    parts: FxHashMap<AnyPrefix, u128>,
}

impl Table {
    /// An empty table, whose routes get their origins or their next hops.
    pub(super) fn new(origins: bool, all_origins: bool) -> Self {
        Self { origins, all_origins, ..Self::default() }
    }

    /// Inserts a route, and replaces the route of an equal prefix.
    #[inline]
    pub(super) fn insert(&mut self, prefix: AnyPrefix, next_hop: NextHop, ledger: &mut Ledger) {
        let before = match prefix {
            AnyPrefix::V4(prefix) => self.fib.v4.insert(prefix, next_hop),
            AnyPrefix::V6(prefix) => self.fib.v6.insert(prefix, next_hop),
        };
        ledger.report.routes += 1;
        ledger.report.repeated += u64::from(before.is_some());
    }

    /// Inserts the prefixes of a range, but where a smaller range has the same prefix. Of equal ones the
    /// later stays.
    pub(super) fn insert_range<A: Ranged>(
        &mut self,
        first: A,
        last: A,
        next_hop: NextHop,
        ledger: &mut Ledger,
    ) {
        let own = A::span(first, last);
        for prefix in prefixes_of_range(first, last) {
            let alone = A::span(prefix.address(), prefix.last());
            let prefix = A::any(prefix);
            let is_smaller_there =
                self.has(prefix) && self.parts.get(&prefix).map_or(alone, |&span| span) < own;
            if is_smaller_there {
                ledger.report.routes += 1;
                ledger.report.repeated += 1;
                continue;
            }
            self.insert(prefix, next_hop, ledger);
            if alone < own {
                self.parts.insert(prefix, own);
            } else if !self.parts.is_empty() {
                self.parts.remove(&prefix);
            }
        }
    }

    /// Whether the prefix has a route.
    pub(super) fn has(&self, prefix: AnyPrefix) -> bool {
        match prefix {
            AnyPrefix::V4(prefix) => self.fib.v4.get(prefix).is_some(),
            AnyPrefix::V6(prefix) => self.fib.v6.get(prefix).is_some(),
        }
    }

    /// The index of a next hop given as a word.
    #[inline]
    pub(super) fn hop(&mut self, word: &[u8]) -> Result<NextHop, Fault> {
        self.finder.word(&mut self.fib.next_hops, word)
    }

    /// The index of a next hop given as an address.
    #[cfg(feature = "mrt")]
    pub(super) fn hop_address(&mut self, address: IpAddr) -> Result<NextHop, Fault> {
        self.finder.address(&mut self.fib.next_hops, address)
    }
}

/// Checks that nothing follows on a line.
pub(super) fn no_more(rest: &[u8]) -> Result<(), SkipReason> {
    if rest.trim_ascii().is_empty() { Ok(()) } else { Err(SkipReason::TooManyColumns) }
}
