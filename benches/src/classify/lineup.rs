//! Who takes part: the project's engines and their rivals.

use anyhow::Result;
use wirespeed::classify::Facts;
use wirespeed::engine::EngineName;
use wirespeed_classify::{Ipv4Tuple, RuleSet, RuleUpdate};

use super::lane::{Contestant, Lane};
use super::rivals::Scan;
use super::trace::Tuples;
use crate::engines::{Compiled, Live};

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
    name == SCAN || name.starts_with(EngineName::Linear.as_str())
}

/// Engines and rivals that look up.
pub fn lookups() -> Vec<Entry> {
    let mut entries = vec![
        compiled(EngineName::Quilt),
        compiled(EngineName::Bloom),
        compiled(EngineName::Tuple),
        compiled(EngineName::Linear),
    ];
    #[cfg(feature = "dpdk")]
    entries.extend(crate::dpdk::acl::lookups());
    entries.push(scan());
    entries
}

/// Entries that take updates: live engines, and the scan. `rte_acl` takes none.
pub fn updates() -> Vec<Entry> {
    vec![
        live(EngineName::Quilt),
        live(EngineName::Bloom),
        live(EngineName::Tuple),
        live(EngineName::Linear),
        scan(),
    ]
}

fn scan() -> Entry {
    Entry::new(SCAN, |name, rules| Lane::build(name, rules, |rules| Ok(Scan::build(rules))))
}

fn compiled(engine: EngineName) -> Entry {
    Entry::new(engine.as_str(), move |name, rules| {
        Lane::build(name, rules, |rules| Compiled::<Ipv4Tuple>::build(engine, rules))
    })
}

fn live(engine: EngineName) -> Entry {
    Entry::new(format!("{engine}-live"), move |name, rules| {
        Lane::build(name, rules, |rules| Live::<Ipv4Tuple>::build(engine, rules.clone(), Facts::None))
    })
}

impl Contestant for Compiled<Ipv4Tuple> {
    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        self.0.lookup_batch(tuples.tuples, numbers);
    }

    #[inline]
    fn one(&self, tuple: Tuples<'_>) -> u32 {
        self.0.lookup(&tuple.tuples[0])
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

impl Contestant for Live<Ipv4Tuple> {
    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        self.lookup_batch(tuples.tuples, numbers);
    }

    fn update(&mut self, updates: &[RuleUpdate<Ipv4Tuple>]) -> bool {
        self.apply(updates)
    }

    fn memory(&self) -> Option<u64> {
        Some(self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::contest::{is_right, keep_right};
    use super::super::trace::Trace;
    use super::super::update::Turn;
    use super::super::{data, data::Set};
    use super::*;
    use crate::table::Mode;

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
