//! A hundred rules of three wide ranges, of five million patterns: built, looked up in and updated in little
//! time and memory, or refused.

use std::time::{Duration, Instant};

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::conformance::{check, live_readers_of, options, probes, wide};
use wirespeed_classify::generate::tuples;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::oracle::Oracle;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{
    BuildError, EditRules, Engine, Ipv4Tuple, Ipv6Tuple, LiveRules, Lookup, MOST_ENTRIES, OpenFlowTuple,
    Rule, RuleSet, Tuple,
};
use wirespeed_image::rounds;

/// Where all patterns are made it takes minutes.
const SOON: Duration = Duration::from_secs(10);
/// Bytes of a live table, its rules and both copies of its image.
const MOST_BYTES: u64 = 64 << 20;

fn takes_little<T: Tuple>() {
    let start = Instant::now();
    let rules = wide::wide::<T>(100);
    let (entries, bytes) = (rules.entries_len(), rules.memory_usage());
    assert!(entries > 1_000_000, "{entries} patterns");
    assert!(bytes < 1 << 20, "the rules take {bytes} bytes");
    let mut live = LiveRules::<T, Quilt<T>>::new(rules, options()).expect("it is built");
    assert!(start.elapsed() < SOON, "built in {:?}", start.elapsed());
    assert!(live.memory_usage() <= MOST_BYTES, "{} bytes", live.memory_usage());
    holds(&live);
    let start = Instant::now();
    for number in (1..=100).step_by(3) {
        live.remove(number).expect("the table takes it").expect("there is a rule");
        live.insert(wide::wide_rule(number + 27)).expect("the table takes it");
    }
    assert!(start.elapsed() < SOON, "68 updates in {:?}", start.elapsed());
    assert!(live.rebuilds() <= 2, "{} rebuilds", live.rebuilds());
    assert!(live.memory_usage() <= MOST_BYTES, "{} bytes", live.memory_usage());
    holds(&live);
}

fn holds<T: Tuple>(live: &LiveRules<T, Quilt<T>>) {
    let mut all = probes::around(live.model(), 100);
    all.extend(tuples(live.model(), 500, 1.0, 2));
    check(&*live.reader().enter(), &Oracle::of(live.model()), &all, "wide ranges");
}

#[test]
fn wide_ranges_take_little() {
    takes_little::<Ipv4Tuple>();
    takes_little::<Ipv6Tuple>();
    takes_little::<OpenFlowTuple>();
}

/// Other engines make patterns of ranges. They say how many there are and how many they take, before they
/// make any.
fn is_refused<E: Engine<Ipv4Tuple>>() {
    let rules = wide::wide::<Ipv4Tuple>(100);
    let start = Instant::now();
    match E::build(&rules, &options()) {
        Err(BuildError::Limit { engine, what: "entries", limit, found }) => {
            assert_eq!((engine, found), (E::NAME, rules.entries_len()));
            assert!(limit < found && limit >= MOST_ENTRIES);
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} entries are taken", rules.entries_len()),
    }
    assert!(start.elapsed() < Duration::from_secs(1), "refused after {:?}", start.elapsed());
}

#[test]
fn engines_of_patterns_refuse_millions_of_them() {
    is_refused::<Linear<_>>();
    is_refused::<TupleSearch<_>>();
    is_refused::<BloomSearch<_>>();
}

/// A live table of such an engine that would grow past what it takes says so, too.
#[test]
fn engines_of_patterns_stop_growing_at_millions() {
    if rounds::leaves_to_ci() {
        return;
    }
    let mut live =
        LiveRules::<Ipv4Tuple, TupleSearch<_>>::new(RuleSet::new(), options()).expect("it is built");
    let outcome = (0..100).try_for_each(|n| live.insert(wide::wide_rule(n)).map(|_| ()));
    let error = outcome.expect_err("not all are taken").to_string();
    assert!(error.contains("entries, the table has 1") && live.model().len() < 30, "{error}");
}

/// A set of ordinary rules gets wide ones, one at a time, and loses the ordinary ones.
#[test]
fn a_table_goes_from_ordinary_rules_to_wide_ones() {
    let mut rules: RuleSet<Ipv4Tuple> = (0..3_000u32)
        .map(|n| {
            let text = format!("src=10.{}.{}.0/24 dport={} proto=tcp priority=9", n % 7, n % 200, n % 50);
            text.parse::<Rule<_>>().expect("a rule")
        })
        .collect();
    rules.insert(Rule::new(wirespeed_classify::Pattern::all(), 0, 0)).expect("a number");
    let mut live = LiveRules::<Ipv4Tuple, Quilt<_>>::new(rules, options()).expect("it is built");
    let start = Instant::now();
    (0..100).for_each(|n| _ = live.insert(wide::wide_rule(n)).expect("the table takes it"));
    assert!(live.rebuilds() <= 3, "{} rebuilds", live.rebuilds());
    holds(&live);
    (1..=3_000).for_each(|n| _ = live.remove(n).expect("the table takes it"));
    assert!(start.elapsed() < 2 * SOON, "3,100 updates in {:?}", start.elapsed());
    holds(&live);
    assert!(live.memory_usage() <= MOST_BYTES);
}

/// Readers see a set of updates of wide rules whole or not at all.
#[test]
fn readers_of_wide_rules_see_whole_states() {
    let rules = wide::wide::<Ipv4Tuple>(63);
    live_readers_of::<Ipv4Tuple, Quilt<_>>(&rules);
    if rounds::leaves_to_ci() {
        return;
    }
    let mixed: RuleSet<OpenFlowTuple> = wide::beside_holes(30)
        .sorted()
        .into_iter()
        .chain(wide::random_ranges(33, 2).sorted())
        .map(|(_, rule)| rule.clone())
        .collect();
    live_readers_of::<OpenFlowTuple, Quilt<_>>(&mixed);
}

/// What lookups read stays in proportion: cells that no layer takes are scanned, and layers are few.
#[test]
fn tables_of_hostile_rules_have_few_layers() {
    for (what, rules) in wide::hostile::<Ipv4Tuple>(1_000) {
        let start = Instant::now();
        let (_, table) = Quilt::<Ipv4Tuple>::build(&rules, &options()).expect("it is built");
        assert!(table.layers() <= 64, "{what}: {}", table.shape().expect("a quilt has a shape"));
        assert!(start.elapsed() < SOON, "{what}: built in {:?}", start.elapsed());
    }
}
