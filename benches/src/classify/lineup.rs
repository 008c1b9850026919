//! Who takes part: the project's engines and their rivals.

use anyhow::Result;
use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{BuildOptions, Engine, Ipv4Tuple, LiveRules, Lookup, RuleSet, RuleUpdate};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;

use super::lane::{Contestant, Lane};
use super::rivals::Scan;
use super::trace::Tuples;

type Rules = RuleSet<Ipv4Tuple>;

/// A name and what builds it.
pub struct Entry {
    /// The name in tables and records.
    pub name: String,
    #[allow(clippy::type_complexity)] // a constructor
    build: Box<dyn Fn(&str, &Rules) -> Result<Lane>>,
}

impl Entry {
    /// A name and how to build what bears it.
    pub fn new(name: impl Into<String>, build: impl Fn(&str, &Rules) -> Result<Lane> + 'static) -> Self {
        Self { name: name.into(), build: Box::new(build) }
    }

    /// Builds the lane.
    pub fn build(&self, rules: &Rules) -> Result<Lane> {
        (self.build)(&self.name, rules)
    }

    /// Whether a lookup goes through all rules, which leaves time for fewer of them.
    pub fn is_scan(&self) -> bool {
        is_scan(&self.name)
    }
}

/// What ratios are to: DPDK's fastest, where it is built in; without it the plain scan.
pub const REFERENCES: [&str; 2] = ["rte_acl-avx512x32", SCAN];
/// A vector of rules that is gone through.
pub const SCAN: &str = "scan";

/// Whether who bears a name goes through all rules.
pub fn is_scan(name: &str) -> bool {
    name == SCAN || name.starts_with(Linear::<Ipv4Tuple>::NAME)
}

/// Engines and rivals that look up.
pub fn lookups() -> Vec<Entry> {
    let mut entries = vec![
        compiled::<Quilt<Ipv4Tuple>>(),
        compiled::<BloomSearch<Ipv4Tuple>>(),
        compiled::<TupleSearch<Ipv4Tuple>>(),
        compiled::<Linear<Ipv4Tuple>>(),
    ];
    #[cfg(feature = "dpdk")]
    entries.extend(crate::dpdk::acl::lookups());
    entries.push(scan());
    entries
}

/// Entries that take updates: live engines, and the scan. `rte_acl` takes none.
pub fn updates() -> Vec<Entry> {
    vec![
        live::<Quilt<Ipv4Tuple>>(),
        live::<BloomSearch<Ipv4Tuple>>(),
        live::<TupleSearch<Ipv4Tuple>>(),
        live::<Linear<Ipv4Tuple>>(),
        scan(),
    ]
}

fn scan() -> Entry {
    Entry::new(SCAN, |name, rules| Lane::build(name, rules, |rules| Ok(Scan::build(rules))))
}

fn compiled<E: Engine<Ipv4Tuple>>() -> Entry {
    Entry::new(E::NAME, |name, rules| Lane::build(name, rules, Compiled::<E>::build))
}

fn live<E: Engine<Ipv4Tuple>>() -> Entry {
    Entry::new(format!("{}-live", E::NAME), |name, rules| Lane::build(name, rules, Live::<E>::build))
}

/// An engine's table.
struct Compiled<E: Engine<Ipv4Tuple>>(E::Table);

impl<E: Engine<Ipv4Tuple>> Compiled<E> {
    fn build(rules: &Rules) -> Result<Self> {
        Ok(Self(E::build(rules, &BuildOptions::default())?.1))
    }
}

impl<E: Engine<Ipv4Tuple>> Contestant for Compiled<E> {
    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        self.0.lookup_batch(tuples.tuples, numbers);
    }

    #[inline]
    fn one(&self, tuple: Tuples<'_>) -> u32 {
        self.0.lookup(&tuple.tuples[0])
    }

    fn memory(&self) -> Option<u64> {
        Some(self.0.image().bytes())
    }
}

/// An engine with its rules and live copies.
struct Live<E: Engine<Ipv4Tuple>> {
    live: LiveRules<Ipv4Tuple, E>,
    reader: Reader<E::Table>,
}

impl<E: Engine<Ipv4Tuple>> Live<E> {
    fn build(rules: &Rules) -> Result<Self> {
        let live = LiveRules::new(rules.clone(), BuildOptions::default())?;
        let reader = live.reader();
        Ok(Self { live, reader })
    }
}

impl<E: Engine<Ipv4Tuple>> Contestant for Live<E> {
    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        self.reader.enter().lookup_batch(tuples.tuples, numbers);
    }

    fn update(&mut self, updates: &[RuleUpdate<Ipv4Tuple>]) -> bool {
        self.live.apply(updates).is_ok()
    }

    fn memory(&self) -> Option<u64> {
        Some(self.live.memory_usage())
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::{is_right, keep_right};
    use super::super::lane::Mode;
    use super::super::trace::Trace;
    use super::super::update::Turn;
    use super::super::{data, data::Set};
    use super::*;

    fn set() -> (Set, Trace) {
        let set = data::made("ipc1_1k", 1_000).unwrap();
        let trace = Trace::new("in-order", 0, set.trace.clone(), set.right.clone());
        (set, trace)
    }

    /// All but DPDK's, which takes a process of its own.
    fn lanes(entries: Vec<Entry>, rules: &Rules) -> Vec<Lane> {
        let entries = entries.into_iter().filter(|entry| !entry.name.starts_with("rte_"));
        entries.map(|entry| entry.build(rules).unwrap()).collect()
    }

    #[test]
    fn all_lanes_are_right_and_a_wrong_one_is_dropped() {
        let (set, trace) = set();
        let mut all = lanes(lookups(), &set.rules);
        keep_right(&mut all, 100, &trace);
        assert_eq!(all.len(), 5);
        let mut less = set.rules.clone();
        less.remove(trace.right[0]);
        all.push(Lane::build("less", &less, |rules| Ok(Scan::build(rules))).unwrap());
        keep_right(&mut all, 100, &trace);
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|lane| lane.name != "less"));
    }

    #[test]
    fn updates_go_forth_and_back() {
        let (set, trace) = set();
        let mut all = lanes(updates(), &set.rules);
        for turn in [Turn::returns(&set.rules, 200, 1), Turn::changes(&set.rules, 200, 1)] {
            let right = data::right(&turn.applied(&set.rules), trace.tuples().tuples);
            assert_ne!(right, trace.right);
            let after = Trace::new("in-order", 0, trace.tuples().tuples.to_vec(), right);
            for lane in &mut all {
                assert!(
                    lane.update(&turn.ways[0]) && is_right(lane, Mode::Batch(64), &after),
                    "{}",
                    lane.name
                );
                assert!(
                    lane.update(&turn.ways[1]) && is_right(lane, Mode::Batch(64), &trace),
                    "{}",
                    lane.name
                );
                let rates = turn.rates(lane, 16, std::time::Duration::ZERO).unwrap();
                assert!(rates.iter().all(|&rate| rate > 0.0));
                assert!(is_right(lane, Mode::Single, &trace), "{}", lane.name);
            }
        }
    }
}
