//! The right answers, and tables compared with them.
//!
//! The truth is [`oracle::ranges`]: the address space as ranges of one next hop, made from the sorted
//! prefixes without a trie or a lookup. Addresses are checked in ascending order, in parts that all cores
//! share. Ranges and addresses are walked in step, and a whole range is compared at a time.

use std::fmt;

use serde::Serialize;
use wirespeed::engine::{AddressKeys, Addresses};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::{Address, NextHop, Prefix, Rib, Update, oracle};

use crate::check::subject::{Asks, Lookups, OfAddresses, Subject};
use crate::check::{self, verdict};
use crate::family::number_of;

/// The number of probes in a part.
const PROBES: usize = 1 << 16;
/// The fewest random addresses. Builds that look up slowly, for tests, check fewer.
const LEAST_RANDOM: usize = if cfg!(debug_assertions) { 10_000 } else { 100_000 };
/// The number of addresses in a part of an exhaustive walk, and of keys in a batch if a GPU looks them up.
const PART: usize = 1 << 22;

/// One state of a table: the right answers, and the addresses to check.
#[derive(Debug)]
pub(super) struct State<A> {
    prefixes: usize,
    /// First addresses of ranges with one next hop.
    ranges: Vec<(A, NextHop)>,
    /// Addresses in ascending order. `None` for all addresses.
    probes: Option<Vec<A>>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Mismatch {
    #[serde(skip)]
    order: u128,
    pub(super) address: String,
    pub(super) right: u32,
    pub(super) found: u32,
    /// The kind of lookup: in a batch, a small batch, or single.
    pub(super) lookup: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, right, found, lookup, .. } = self;
        write!(f, "{address}: next hop {found}, right is {right} ({lookup})")
    }
}

/// The family of a table.
#[derive(Debug, Serialize)]
pub(super) struct OfFamily {
    family: u8,
}

impl fmt::Display for OfFamily {
    /// Writes nothing: the family is in the noun for entries.
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Keys and their results.
type Scratch<A> = (Vec<A>, Vec<NextHop>);

/// The result of a check.
type Verdict = verdict::Verdict<Mismatch>;

impl<A: Addresses> check::Truth<A> for State<A> {
    type Lookups = OfAddresses;
    type Mismatch = Mismatch;
    type Scratch = Scratch<A>;
    type Aside = OfFamily;

    const ENTRIES: [&'static str; 2] = ["prefix", if A::BITS == 32 { "IPv4 prefix" } else { "IPv6 prefix" }];
    const KEYS: &'static str = "address";

    fn entries(&self) -> usize {
        self.prefixes
    }

    fn parts(&self) -> usize {
        match &self.probes {
            Some(probes) => probes.len().div_ceil(PROBES),
            None => 1 << (32 - PART.ilog2()),
        }
    }

    fn check(&self, part: usize, table: &Subject<'_, A>, scratch: &mut Scratch<A>, verdict: &mut Verdict) {
        match &self.probes {
            Some(probes) => {
                let to = probes.len().min((part + 1) * PROBES);
                self.check_at(&probes[part * PROBES..to], table, &mut scratch.1, verdict);
            }
            None => self.check_all(part, table, scratch, verdict),
        }
    }

    fn sample(&self) -> AddressKeys<A> {
        AddressKeys::default()
    }

    fn aside(&self) -> OfFamily {
        OfFamily { family: number_of(A::FAMILY) }
    }
}

impl<A: Addresses> State<A> {
    /// Makes the truth about a table: at every address, or at the addresses that are most likely wrong, also
    /// those that updates changed.
    pub(super) fn of(rib: &Rib<A>, everywhere: bool, changed: &[Update<A>]) -> Self {
        let prefixes = || rib.iter().map(|(prefix, _)| prefix).chain(changed.iter().map(Update::prefix));
        let probes = (!everywhere).then(|| probes(prefixes()));
        Self { prefixes: rib.len(), ranges: oracle::ranges(rib), probes }
    }

    /// Checks a table at addresses in ascending order, by each kind of lookup.
    fn check_at(
        &self,
        addresses: &[A],
        table: &Subject<'_, A>,
        found: &mut Vec<NextHop>,
        verdict: &mut Verdict,
    ) {
        found.resize(addresses.len(), NextHop::NONE);
        for pass in table.passes::<OfAddresses>() {
            table.look_up::<OfAddresses>(pass, addresses, found);
            self.compare(addresses, found, pass.name, verdict);
        }
        verdict.checked += addresses.len() as u64;
    }

    /// Checks a table at every address of a part, in batches. For families of at most 32 bits.
    fn check_all(
        &self,
        part: usize,
        table: &Subject<'_, A>,
        (keys, found): &mut Scratch<A>,
        verdict: &mut Verdict,
    ) {
        assert!(A::BITS <= 32, "nobody can walk 2^{} addresses", A::BITS);
        let batch = if table.is_on_gpu() { PART } else { table.passes::<OfAddresses>()[0].keys };
        keys.resize(batch, A::MIN);
        for from in (part * PART..(part + 1) * PART).step_by(batch) {
            for (key, address) in keys.iter_mut().zip(from as u64..) {
                *key = A::from_u128_low(address.into());
            }
            // The results are cleared, so that no old result passes for an answer.
            found.clear();
            found.resize(batch, <OfAddresses as Lookups<A>>::NOTHING);
            table.look_up_batch::<OfAddresses>(Asks::Results, keys, found);
            self.compare(keys, found, "batch", verdict);
            verdict.checked += batch as u64;
        }
    }

    /// Compares the results for ascending keys with the ranges.
    fn compare(&self, mut keys: &[A], mut found: &[NextHop], lookup: &'static str, verdict: &mut Verdict) {
        let Some(&first) = keys.first() else { return };
        let mut range = self.ranges.partition_point(|range| range.0 <= first) - 1;
        while let Some(&key) = keys.first() {
            // Most keys are few ranges after the previous key.
            while self.ranges.get(range + 1).is_some_and(|next| next.0 <= key) {
                range += 1;
            }
            let right = self.ranges[range].1;
            let inside = match self.ranges.get(range + 1) {
                Some(next) => keys.partition_point(|&key| key < next.0),
                None => keys.len(),
            };
            // There is no early exit: this runs at the speed of memory, and almost always to the end.
            let differs = found[..inside].iter().fold(0, |differs, next_hop| differs | next_hop.0 ^ right.0);
            if differs != 0 {
                note(verdict, &keys[..inside], &found[..inside], right, lookup);
            }
            (keys, found) = (&keys[inside..], &found[inside..]);
        }
    }
}

/// Notes the keys with a wrong next hop.
fn note<A: Address>(
    verdict: &mut Verdict,
    keys: &[A],
    found: &[NextHop],
    right: NextHop,
    lookup: &'static str,
) {
    for (&key, &found) in keys.iter().zip(found).filter(|&(_, &found)| found != right) {
        let (order, right, found) = (key.to_u128(), right.0, found.0);
        verdict.wrong(|| Mismatch { order, address: key.to_string(), right, found, lookup });
    }
}

/// The addresses at which a table is most likely wrong: the ends of every prefix and their neighbours, and as
/// many random addresses; ascending, each once.
fn probes<A: Address>(prefixes: impl IntoIterator<Item = Prefix<A>>) -> Vec<A> {
    let mut addresses = oracle::boundaries(prefixes);
    let scattered = addresses.len().max(LEAST_RANDOM);
    let mut rng = Rng::new(1);
    addresses.extend((0..scattered).map(|_| A::from_u128_low(rng.bits128())));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::{Lookup, Step, V4};

    use super::*;

    /// A table that is right but for one address.
    struct Wrong<'a>(&'a Rib<V4>, V4);

    impl Lookup<V4> for Wrong<'_> {
        fn lookup(&self, address: V4) -> NextHop {
            let right = self.0.longest_match(address).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            if address == self.1 { NextHop(99) } else { right }
        }

        fn lookup_batch(&self, addresses: &[V4], next_hops: &mut [NextHop]) {
            addresses.iter().zip(next_hops).for_each(|(&a, n)| *n = self.lookup(a));
        }

        fn explain(&self, _: V4) -> Vec<Step> {
            Vec::new()
        }
    }

    #[test]
    fn one_wrong_answer_is_found() {
        let routes = [("10.0.0.0/8", 1), ("10.1.0.0/16", 2), ("10.1.2.3/32", 3), ("255.0.0.0/8", 4)];
        let rib: Rib<V4> = routes.iter().map(|&(p, n)| (p.parse().unwrap(), NextHop(n))).collect();
        let truth = State::of(&rib, false, &[]);
        let check = |wrong: &str| {
            let table = Wrong(&rib, wrong.parse().unwrap());
            check::check(&truth, Subject::Cpu(&table), 2, "wrong").unwrap()
        };
        for wrong in ["10.1.2.3", "10.1.2.4", "0.0.0.0", "255.255.255.255", "10.255.255.255"] {
            let verdict = check(wrong);
            assert_eq!(verdict.mismatches, 2, "in a batch and alone: {wrong}");
            assert_eq!(Some(verdict.checked), truth.probes.as_ref().map(|probes| probes.len() as u64));
            assert!(verdict.first.iter().all(|m| m.address == wrong && m.found == 99), "{verdict:?}");
        }
        // None of the probes.
        assert_eq!(check("10.77.77.77").mismatches, 0);
    }

    #[test]
    fn probes_are_in_order() {
        let probes = probes(["10.0.0.0/8", "0.0.0.0/0"].map(|p| p.parse::<Prefix<V4>>().unwrap()));
        assert!(probes.is_sorted_by(|a, b| a < b) && probes.len() > LEAST_RANDOM * 99 / 100);
        for near in ["9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"] {
            assert!(probes.binary_search(&near.parse().unwrap()).is_ok());
        }
    }
}
