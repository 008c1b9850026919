//! What the suite can't see: that order and room are kept, and a lane that no engine writes.

use wirespeed_image::{PatchBuilder, Table};
use wirespeed_rng::Rng;
use wirespeed_table::VectorLevel;

use super::layout::NUMBERS;
use super::order::{Full, Held, Key, Order};
use super::{Linear, LinearTable};
use crate::pattern::Pattern;
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::{BuildOptions, Engine, Ipv4Tuple, Lookup, RuleSet};

#[test]
fn order_is_kept_until_it_is_full() {
    let key = |n: u32| Key::new(Rank::new(n / 7, RuleNumber::new(n % 7 + 1).expect("a number")), n % 3);
    let held = |n| Held { key: key(n), pattern: Pattern::<Ipv4Tuple>::all() };
    let groups = 50;
    let mut order = Order::new(&[], 0, groups);
    let mut rng = Rng::new(5);
    let mut there = std::collections::BTreeSet::new();
    let mut full = 0;
    for _ in 0..20_000 {
        let n = u32::try_from(rng.below(2_000)).expect("small");
        // More come than go until it is full.
        if rng.chance(0.3) {
            assert_eq!(order.remove(key(n)), there.remove(&key(n)));
        } else {
            match order.put(held(n)) {
                Ok(()) => _ = there.insert(key(n)),
                Err(Full) => full += 1,
            }
        }
        if there.len() > 700 {
            there.retain(|&key| rng.chance(0.2) || !order.remove(key));
        }
    }
    let keys: Vec<_> = order.groups().iter().flatten().map(|held| held.key).collect();
    assert!(keys.iter().eq(&there), "in order, each once");
    assert_eq!(full, 0, "it holds nine tenths");
    let mut more = 0;
    while order.put(held(2_000 + more)).is_ok() {
        more += 1;
    }
    let len = order.groups().iter().map(Vec::len).sum::<usize>();
    assert!(len >= groups * 15 - 15, "full with {len}");
}

/// No engine writes such a lane. Kernels that go over groups in parts take 0 for no answer yet, so all do.
#[test]
fn a_lane_of_number_0_is_passed_by_whatever_it_matches() {
    let rules: RuleSet<Ipv4Tuple> = ["tcp priority=9", "tcp priority=5", "udp priority=7"]
        .iter()
        .map(|text| text.parse::<Rule<Ipv4Tuple>>().expect("a rule"))
        .collect();
    let (_, table) = Linear::<Ipv4Tuple>::build(&rules, &BuildOptions::default()).expect("a small table");
    let tuples = ["tcp", "udp", "gre"].map(|text| text.parse::<Ipv4Tuple>().expect("a tuple"));
    let first = table.image().section::<u32>(NUMBERS).iter().position(|&number| number == 1);
    let mut patch = PatchBuilder::new();
    patch.set(NUMBERS, first.expect("rule 1 is there") as u64, 0);
    let mut damaged = table.clone();
    damaged.apply(&patch.finish(None)).expect("it is a number");
    let answers = |table: &LinearTable<Ipv4Tuple>| {
        let alone = tuples.map(|tuple| table.lookup(&tuple));
        for level in VectorLevel::ALL {
            let mut batch = [9; 3];
            level.as_fastest(|| table.lookup_batch(&tuples, &mut batch));
            assert_eq!(batch, alone, "{level:?}");
        }
        alone
    };
    assert_eq!((answers(&table), answers(&damaged)), ([1, 3, 0], [2, 3, 0]));
    assert!(table.explain(&tuples[0]).last().expect("steps").meaning.starts_with("result 1"));
    assert!(damaged.explain(&tuples[0]).last().expect("steps").meaning.starts_with("result 2"));
}
