//! Who takes part: the project's engines and their rivals.

use super::OfRules;
use super::rivals::Scan;
use crate::engines::{compiled, live};
use crate::lineup;
use wirespeed::classify::Facts;
use wirespeed::engine::EngineName;

/// A contestant that is yet to be built.
pub type Entry = lineup::Entry<OfRules>;

/// The engines that ratios are to: DPDK's fastest, where it is built in; without it the plain scan.
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
    let live = |engine| live(format!("{engine}-live"), engine, Facts::None);
    let engines = [EngineName::Quilt, EngineName::Bloom, EngineName::Tuple, EngineName::Linear];
    engines.into_iter().map(live).chain([scan()]).collect()
}

fn scan() -> Entry {
    Entry::of(SCAN, |rules| Ok(Scan::build(rules)))
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::{Ipv4Tuple, RuleSet};

    use super::super::contest::{Lane, is_right, keep_right};
    use super::super::trace::Trace;
    use super::super::update::Turn;
    use super::super::{data, data::Set};
    use super::*;
    use crate::table::{Mode, lane};

    fn set() -> (Set, Trace) {
        let set = data::made("ipc1_1k", 1_000).unwrap();
        let trace = Trace::new("in-order", 0, set.trace.clone(), set.right.clone());
        (set, trace)
    }

    /// All but DPDK's, which takes a process of its own.
    fn lanes(entries: Vec<Entry>, rules: &RuleSet<Ipv4Tuple>) -> Vec<Lane> {
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
        all.push(lane("less", &less, |rules| Ok(Scan::build(rules))).unwrap());
        keep_right(&mut all, 100, &trace);
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|lane| lane.costs().name != "less"));
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
                    lane.update(&turn.ways[0]) && is_right(&**lane, Mode::Batch(64), &after),
                    "{}",
                    lane.costs().name
                );
                assert!(
                    lane.update(&turn.ways[1]) && is_right(&**lane, Mode::Batch(64), &trace),
                    "{}",
                    lane.costs().name
                );
                let rates = turn.rates(lane, 16, std::time::Duration::ZERO).unwrap();
                assert!(rates.iter().all(|&rate| rate > 0.0));
                assert!(is_right(&**lane, Mode::Single, &trace), "{}", lane.costs().name);
            }
        }
    }
}
