use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use wirespeed_fib::synth;
use wirespeed_fib::{NextHop, Rib, V4};

use super::*;
use crate::name::{Name, NameBuf};
use crate::names::NameBatch;
use crate::read::NameFib;
use crate::table::NameTable;
use crate::update::NameUpdate;

fn made(names: usize) -> NameFib {
    table(&TableSpec { names, results: 8, seed: 1 }).unwrap()
}

fn text(batch: &NameBatch) -> Vec<String> {
    batch.names().iter().map(ToString::to_string).collect()
}

fn sorted(names: &NameTable) -> Vec<(NameBuf, u32)> {
    let mut all: Vec<_> = names.iter().collect();
    all.sort_unstable();
    all
}

#[test]
fn a_seed_is_a_table() {
    let spec = TableSpec { names: 3000, results: 8, seed: 5 };
    let one = table(&spec).unwrap();
    assert_eq!(one.names.len(), 3000);
    assert_eq!(sorted(&one.names), sorted(&table(&spec).unwrap().names));
    assert_ne!(sorted(&one.names), sorted(&table(&TableSpec { seed: 6, ..spec }).unwrap().names));
    // Held to the name: the same on every platform and in every release.
    let mut domains = Domains::new(1);
    let first: Vec<String> = (0..3).map(|_| domains.draw().to_string()).collect();
    assert_eq!(first, FIRST_OF_SEED_1);
}

const FIRST_OF_SEED_1: [&str; 3] = ["/com/tyhaipasowox57p", "/cc/odowavanx2577u", "/org/unbl"];

#[test]
fn made_names_have_the_shape_of_real_ones() {
    const COUNT: u32 = 200_000;
    let fib = table(&TableSpec { names: COUNT as usize, results: 8, seed: 1 }).unwrap();
    let (mut bytes, mut by_labels, mut com, mut hosts) =
        (0, [0u32; 10], 0u32, FxHashMap::<Vec<u8>, u32>::default());
    entries::each_entry(&fib.names, |name, _| {
        let labels: Vec<_> = name.components().collect();
        bytes += name.len();
        by_labels[labels.len()] += 1;
        com += u32::from(labels[0] == b"com");
        if labels.len() > 2 {
            *hosts.entry([labels[0], b"/", labels[1]].concat()).or_default() += 1;
        }
        assert!(labels.iter().all(|label| label.len() < 64 && !label.ends_with(b"-")), "{name}");
        assert_eq!(Name::new(name.as_bytes()), Ok(name));
    });
    let share = |n: u32| f64::from(n) / f64::from(COUNT);
    let near = |found: f64, real: f64, by: f64| assert!((found - real).abs() < by, "{found} {real}");
    near(share(by_labels[2]), 0.711, 0.01);
    near(share(by_labels[3]), 0.239, 0.01);
    near(share(com), 0.35, 0.05);
    near(bytes as f64 / f64::from(COUNT), 19.86, 0.6);
    // Domains with hosts beneath them: real ones have 4.1 each, and 83 % of them have one.
    let single = u32::try_from(hosts.values().filter(|&&n| n == 1).count()).unwrap();
    let parents = u32::try_from(hosts.len()).unwrap();
    near(f64::from(single) / f64::from(parents), 0.83, 0.06);
    near(f64::from(hosts.values().sum::<u32>()) / f64::from(parents), 4.1, 1.0);
    assert!(*hosts.values().max().unwrap() < COUNT / 20);
}

#[test]
fn made_names_are_added_to_real_ones_without_duplicates() {
    let list = "parc.com\nwww.parc.com\n# note\nexample.org\n";
    let read =
        |text: &str| crate::read::read_table_from(text.as_bytes(), "t", &Default::default()).unwrap().0;
    let mut fib = read(list);
    let real = sorted(&fib.names);
    extend(&mut fib, &TableSpec { names: 1000, results: 0, seed: 1 }).unwrap();
    assert!(real.iter().all(|(name, result)| fib.names.result(name) == *result));
    // Each has a result of its own; the comment's line is no name's.
    let results: std::collections::BTreeSet<u32> = fib.names.iter().map(|(_, result)| result).collect();
    assert_eq!((results.len(), fib.labels.len(), fib.labels.lines()), (1000, 1001, 1001));

    let mut fib = read("parc.com east\nexample.org west\n");
    extend(&mut fib, &TableSpec { names: 1000, results: 0, seed: 1 }).unwrap();
    assert_eq!((fib.names.len(), fib.labels.len(), fib.names.results()), (1000, 2, 2));
    extend(&mut fib, &TableSpec { names: 10, results: 0, seed: 1 }).unwrap();
    assert_eq!(fib.names.len(), 1000);

    let mut fib = read(list);
    extend(&mut fib, &TableSpec { names: 1000, results: 3, seed: 1 }).unwrap();
    assert_eq!((fib.labels.lines(), fib.labels.len()), (4, 7));
    assert_eq!(fib.labels.label(5).unwrap().to_string(), "192.0.2.1");
}

#[test]
fn loads_are_read_as_written() {
    for load in ["average", "heavy", "zipf:1.1", "zipf:0"] {
        assert_eq!(load.parse::<Load>().unwrap().to_string(), load);
    }
    for load in ["", "zipf", "zipf:", "zipf:-1", "zipf:nan", "Average"] {
        assert!(load.parse::<Load>().is_err(), "{load}");
    }
}

#[test]
fn heavy_is_the_longest_tenth() {
    let fib = made(1234);
    let mut lengths: Vec<usize> = fib.names.iter().map(|(name, _)| name.len()).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let spec = TraceSpec { load: Load::Heavy, misses: 0.0, seed: 1 };
    let trace = trace(&fib.names, Paths::None, &spec, 20_000).unwrap();
    let distinct: BTreeMap<&Name, ()> = trace.names().iter().map(|name| (name, ())).collect();
    assert_eq!(distinct.len(), 124);
    let mut drawn: Vec<usize> = distinct.keys().map(|name| name.len()).collect();
    drawn.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(drawn, lengths[..124]);
    assert!(trace.names().iter().all(|name| fib.names.result(name) != 0));
}

#[test]
fn traces_end_in_paths_and_match_what_they_are_made_of() {
    let fib = made(5000);
    let path: NameBatch = [Name::new("/index.html").unwrap()].into_iter().collect();
    for load in [Load::Average, Load::Heavy, Load::Zipf(1.1)] {
        let spec = TraceSpec { load, misses: 0.0, seed: 3 };
        let average = trace(&fib.names, Paths::from(path.clone()), &spec, 3000).unwrap();
        for name in average.names().iter() {
            let entry = name.parent().expect("the path is a component");
            assert!(fib.names.result(entry) != 0 && name.as_bytes().ends_with(b"/index.html"));
        }
        let with_paths = trace(&fib.names, Paths::made(), &spec, 3000).unwrap();
        assert_eq!(text(&with_paths), text(&trace(&fib.names, Paths::made(), &spec, 3000).unwrap()));
        for name in with_paths.names().iter() {
            assert_eq!(Name::new(name.as_bytes()), Ok(name));
            assert!(fib.names.lookup(name).is_some());
        }
    }
}

#[test]
fn a_share_of_a_trace_misses() {
    let mut fib = made(5000);
    let misses = |names: &NameTable, misses| {
        let spec = TraceSpec { load: Load::Average, misses, seed: 1 };
        let trace = trace(names, Paths::made(), &spec, 10_000).unwrap();
        trace.names().iter().filter(|name| !names.lookup(name).is_some()).count()
    };
    assert!(misses(&fib.names, 0.3).abs_diff(3000) < 250);
    assert_eq!(misses(&fib.names, 1.0), 10_000);
    // Where every top-level domain is an entry there are others.
    for top in ["com", "net", "org", "info", "ru", "xyz", "top", "cn", "shop", "io", "click"] {
        fib.names.insert(&NameBuf::new(&format!("/{top}")).unwrap(), 1);
    }
    assert_eq!(misses(&fib.names, 1.0), 10_000);
    assert_eq!(misses(&NameTable::new(), 1.0), 10_000);
    fib.names.insert(Name::ROOT, 1);
    assert_eq!(misses(&fib.names, 1.0), 0);
    let spec = TraceSpec { load: Load::Average, misses: 0.0, seed: 1 };
    assert!(matches!(Tracer::new(&NameTable::new(), Paths::None, &spec), Err(GenerateError::NoNames)));
}

#[test]
fn popularity_is_skewed() {
    let fib = made(1000);
    let most = |load| {
        let spec = TraceSpec { load, misses: 0.0, seed: 1 };
        let mut counts = FxHashMap::<&Name, usize>::default();
        let trace = trace(&fib.names, Paths::None, &spec, 50_000).unwrap();
        trace.names().iter().for_each(|name| *counts.entry(name).or_default() += 1);
        counts.into_values().max().unwrap()
    };
    assert!(most(Load::Average) < 100);
    // 1 / H(1000) = 0.1336
    assert!(most(Load::Zipf(1.0)).abs_diff(6680) < 400);
}

#[test]
fn results_come_through_a_fib() {
    let rib: Rib<V4> = synth::table(&synth::TableSpec { prefixes: 2000, next_hops: 8, seed: 1 }).unwrap();
    let ip = wirespeed_fib::Fib { v4: rib, v6: Rib::new(), next_hops: synth::next_hop_texts(8).unwrap() };
    let domains = made(3000);
    let resolver = Resolver::stand_in(&ip, 7).unwrap();
    assert!(resolver.to_string().contains("in place of DNS"), "{resolver}");
    let (table, resolved) = via_fib(&domains.names, &resolver, &ip).unwrap();
    assert_eq!((resolved.routed, table.names.len(), table.labels.len()), (3000, 3000, 8));
    for (name, result) in table.names.iter() {
        let Some(std::net::IpAddr::V4(address)) = resolver.resolve(&name) else { panic!("IPv4 is there") };
        assert_eq!(ip.v4.longest_match(address.into()).unwrap().1, NextHop(result));
    }
    let empty = wirespeed_fib::Fib::default();
    assert!(matches!(Resolver::stand_in(&empty, 7), Err(GenerateError::NoPrefixes)));
    let (_, resolved) = via_fib(&domains.names, &resolver, &empty).unwrap();
    assert_eq!((resolved.routed, resolved.without_route), (0, 3000));
    assert!(matches!(
        Resolver::of_table(NameFib { labels: lists(1), ..domains }),
        Err(GenerateError::NoAddress { .. })
    ));
}

fn lists(lines: u32) -> crate::read::Labels {
    crate::read::Labels::of_lines(lines)
}

#[test]
fn churn_is_valid_and_keeps_its_mix() {
    let mut fib = made(5000);
    let spec = ChurnSpec { results: 8, rate: Some(1000.0), ..ChurnSpec::default() };
    let mut seen: FxHashMap<NameBuf, ()> = fib.names.iter().map(|(name, _)| (name, ())).collect();
    let mut kinds = [0u32; 4];
    let before = fib.names.len();
    for timed in Churn::new(&fib.names, &spec).unwrap().take(60_000) {
        let had = fib.names.result(timed.update.name());
        let kind = match &timed.update {
            NameUpdate::Remove(_) => {
                assert_ne!(had, 0);
                1
            }
            NameUpdate::Insert(..) if had != 0 => 2,
            NameUpdate::Insert(name, _) => {
                if seen.insert(name.clone(), ()).is_none() {
                    0
                } else {
                    3
                }
            }
        };
        kinds[kind] += 1;
        assert!(fib.names.apply(&timed.update), "{:?} changes nothing", timed.update);
    }
    for (found, expected) in kinds.into_iter().zip([10_000, 20_000, 20_000, 10_000]) {
        assert!(found.abs_diff(expected) < 600, "{kinds:?}");
    }
    assert!(fib.names.len().abs_diff(before) < 1000);
    let last = Churn::new(&fib.names, &spec).unwrap().nth(2000).unwrap();
    assert_eq!(last.time, Some(std::time::Duration::from_secs(2)));
}

#[test]
fn churn_ends_where_nothing_is_left_to_do() {
    let fib = made(100);
    let removals = ChurnSpec { insertions: 0.0, changes: 0.0, returns: 0.0, ..ChurnSpec::default() };
    assert_eq!(Churn::new(&fib.names, &removals).unwrap().count(), 100);
    let mut turned = Churn::new(&fib.names, &ChurnSpec { rate: Some(2.0), ..ChurnSpec::default() }).unwrap();
    turned.by_ref().take(10).for_each(drop);
    turned.turn_to(&removals);
    let last = turned.inspect(|timed| assert!(matches!(timed.update, NameUpdate::Remove(_)))).last();
    assert!(last.unwrap().time.unwrap().as_secs() >= 45);
    let nothing = ChurnSpec { removals: 0.0, ..removals };
    assert_eq!(Churn::new(&fib.names, &nothing).unwrap().count(), 0);
    let all = ChurnSpec::default();
    assert_eq!(Churn::new(&NameTable::new(), &all).unwrap().take(1000).count(), 1000);
}
