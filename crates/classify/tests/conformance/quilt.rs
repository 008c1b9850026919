//! What the suite can't see of `quilt`: its memory, and tables that grow in place.

use wirespeed_classify::conformance::probes;
use wirespeed_classify::generate::{Kind, classbench};
use wirespeed_classify::quilt::{Quilt, QuiltTable};
use wirespeed_classify::{BuildOptions, Engine, Ipv4Tuple, Lookup, RuleSet};
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
