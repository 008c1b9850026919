//! What the suite can't see of `quilt`: its memory, and tables that grow in place.

use wirespeed_classify::conformance::probes;
use wirespeed_classify::generate::{Kind, classbench};
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::{Quilt, QuiltTable};
use wirespeed_classify::{BuildOptions, Engine, Ipv4Tuple, Lookup, Rule, RuleSet};
use wirespeed_image::Table;

#[test]
fn the_control_plane_holds_no_room_that_nobody_took() {
    let rules: RuleSet<Ipv4Tuple> = classbench(Kind::Acl, 2_000, 1);
    let options = BuildOptions { seed: Some(1), head_room: 100, ..BuildOptions::default() };
    let (engine, table) = <Quilt<Ipv4Tuple> as Engine<_>>::build(&rules, &options).expect("a table");
    let held = Engine::<Ipv4Tuple>::memory_usage(&engine);
    let image = table.image().bytes();
    assert!(held < image * 3 / 4, "{held} bytes beside an image of {image}");
}

#[test]
fn a_table_grows_and_answers_like_one_built_anew() {
    let all: RuleSet<Ipv4Tuple> = classbench(Kind::Acl, 2_000, 1);
    let sorted = all.sorted();
    let mut rules: RuleSet<Ipv4Tuple> = sorted[..1_500].iter().map(|&(_, rule)| rule.clone()).collect();
    let options = BuildOptions { seed: Some(1), grows: true, ..BuildOptions::default() };
    let (mut engine, mut table) = Quilt::<Ipv4Tuple>::build(&rules, &options).expect("a table");
    rules.track();
    let mut grown = 0;
    for some in sorted[1_500..].chunks(50) {
        for &(_, rule) in some {
            rules.insert(rule.clone()).expect("a number");
        }
        let changed = rules.take_changed();
        match engine.update(&table, &rules, &changed) {
            Ok(patch) => table.apply(&patch).expect("a patch of its table"),
            Err(_) => {
                table =
                    engine.grow(&table, &rules, &options).expect("not so many more that masks are chosen");
                grown += 1;
            }
        }
        let (_, anew) = Quilt::<Ipv4Tuple>::build(&rules, &options).expect("a table");
        let tuples = probes::around(&rules, 400);
        let answers = |table: &QuiltTable<Ipv4Tuple>| {
            let mut found = vec![u32::MAX; tuples.len()];
            table.lookup_batch(&tuples, &mut found);
            found
        };
        assert_eq!(answers(&table), answers(&anew));
    }
    assert!(grown > 1, "it grew {grown} times");
}

/// Rules of a source and a destination each, and some of few fields, which most tuples are held against.
#[test]
fn rules_that_most_tuples_ask_for_are_scanned_in_batches_of_any_length() {
    let rule = |text: String| text.parse::<Rule<Ipv4Tuple>>().expect("a rule");
    let narrow = (0..5_000).map(|n| {
        let (high, low) = (n / 200, n % 200);
        rule(format!("src=10.{high}.{low}.1 dst=172.16.{low}.{high} dport=80 proto=tcp"))
    });
    let wide = (1..13).map(|n| rule(format!("sport={n}000-{n}999 proto=tcp")));
    let all = || narrow.clone().chain(wide.clone()).chain([rule(String::from("proto=tcp"))]);
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let is_scanned = |rules: &RuleSet<Ipv4Tuple>| {
        let (_, table) = Quilt::<Ipv4Tuple>::build(rules, &options).expect("a table");
        table.shape().expect("it has one").contains(" scanned")
    };
    assert!(!is_scanned(&narrow.clone().collect()), "one layer has them all");
    let rules: RuleSet<Ipv4Tuple> = all().collect();
    assert!(is_scanned(&rules));
    let (_, table) = Quilt::<Ipv4Tuple>::build(&rules, &options).expect("a table");
    let (_, truth) = Linear::<Ipv4Tuple>::build(&rules, &options).expect("a table");
    let tuples = probes::around(&rules, 400);
    for len in 1..=130 {
        let tuples = &tuples[len..2 * len];
        let (mut found, mut right) = (vec![u32::MAX; len], vec![u32::MAX; len]);
        table.lookup_batch(tuples, &mut found);
        truth.lookup_batch(tuples, &mut right);
        assert_eq!(found, right, "a batch of {len}");
    }
}
