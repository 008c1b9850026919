//! What the suite can't see: every way of a CPU, and cells against their rules.

use wirespeed_rng::Rng;

use super::cell::{Cell, Form};
use super::lookup::portable;
use super::{Quilt, simd};
use crate::conformance::{probes, sets};
use crate::generate::{Kind, classbench};
use crate::{BuildOptions, Engine, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, RuleSet, Tuple};

fn ways_agree<T: Tuple>() {
    let mut rng = Rng::new(4);
    for rules in [sets::classes::<T>(&mut rng, 60, 2_000), sets::World::new(&mut rng).rules(&mut rng, 300)] {
        let options = BuildOptions { seed: Some(3), ..BuildOptions::default() };
        let (_, table) = Quilt::<T>::build(&rules, &options).expect("a small table");
        let tuples = probes::around(&rules, 400);
        let mut right = vec![u32::MAX; tuples.len()];
        portable(table.view(), &tuples, &mut right);
        assert!(right.iter().any(|&number| number != 0));
        let mut found = vec![u32::MAX; tuples.len()];
        match simd::batch(table.view(), &tuples, &mut found) {
            true => assert_eq!(found, right),
            false => eprintln!("skipped: no AVX-512"),
        }
    }
}

#[test]
fn every_way_of_a_cpu_agrees() {
    ways_agree::<Ipv4Tuple>();
    ways_agree::<Ipv6Tuple>();
    ways_agree::<OpenFlowTuple>();
}

fn cells_are_their_rules<T: Tuple>() -> [usize; 2] {
    let mut rng = Rng::new(6);
    let mut forms = [0; 2];
    for _ in 0..40 {
        let world = sets::World::<T>::new(&mut rng);
        let rules = world.rules(&mut rng, 20);
        let tuples = probes::around(&rules, 40);
        for (_, rule) in rules.iter() {
            let cells = Cell::of(rule).map_or_else(|| Cell::several(rule), |cell| vec![cell]);
            cells.iter().for_each(|cell| forms[usize::from(cell.form == Form::MASKS)] += 1);
            for tuple in &tuples {
                let of = cells.iter().filter(|cell| cell.matches(tuple));
                assert_eq!(of.clone().count() > 0, rule.matches(tuple), "{tuple}");
                assert!(of.clone().all(|cell| {
                    let fixed = cell.fixed();
                    cell.a.and(&fixed) == tuple.and(&fixed)
                }));
            }
        }
    }
    forms
}

#[test]
fn cells_match_what_their_rules_do() {
    for forms in [cells_are_their_rules::<Ipv4Tuple>(), cells_are_their_rules::<OpenFlowTuple>()] {
        assert!(forms[0] > 0 && forms[1] > 0, "both forms: {forms:?}");
    }
}

#[test]
fn the_control_plane_holds_no_room_that_nobody_took() {
    let rules: RuleSet<Ipv4Tuple> = classbench(Kind::Acl, 2_000, 1);
    let options = BuildOptions { seed: Some(1), head_room: 100, ..BuildOptions::default() };
    let (engine, table) = <Quilt<Ipv4Tuple> as Engine<_>>::build(&rules, &options).expect("a table");
    let held = Engine::<Ipv4Tuple>::memory_usage(&engine);
    let image = wirespeed_image::Table::image(&table).bytes();
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
            Ok(patch) => wirespeed_image::Table::apply(&mut table, &patch).expect("a patch of its table"),
            Err(_) => {
                table =
                    engine.grow(&table, &rules, &options).expect("not so many more that masks are chosen");
                grown += 1;
            }
        }
        let (_, anew) = Quilt::<Ipv4Tuple>::build(&rules, &options).expect("a table");
        let tuples = probes::around(&rules, 400);
        let answers = |table: &super::QuiltTable<Ipv4Tuple>| {
            let mut found = vec![u32::MAX; tuples.len()];
            portable(table.view(), &tuples, &mut found);
            found
        };
        assert_eq!(answers(&table), answers(&anew));
    }
    assert!(grown > 1, "it grew {grown} times");
}
