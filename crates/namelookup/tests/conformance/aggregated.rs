//! Live names that are looked up in their reduced table.

use wirespeed_fib::synth::rng::Rng;
use wirespeed_namelookup::conformance::{probes, read_domains, tables};
use wirespeed_namelookup::{
    Aggregated, BuildOptions, LiveNames, Lookup, NameBuf, NameModel, NameTable, NameUpdate,
};

use crate::sorted::Sorted;

/// After every update a live reduced table gives the results of the full one.
#[test]
fn live_names_give_the_same_results() {
    let pool = tables::scattered_names(600);
    let probes = probes::around(&pool);
    let names = NameModel::new(NameTable::new(), true);
    let mut live = LiveNames::<Sorted>::new(names, BuildOptions::default()).unwrap();
    let mut full = NameTable::new();
    let mut rng = Rng::new(4);
    let mut saved = 0;
    for _ in 0..60 {
        let update = |_| {
            let name = pool[rng.index(pool.len())].clone();
            match rng.index(4) {
                0 => NameUpdate::Remove(name),
                result => NameUpdate::Insert(name, u32::try_from(result).unwrap()),
            }
        };
        let updates: Vec<_> = (0..30).map(update).collect();
        let changes = updates.iter().filter(|update| full.apply(update)).count();
        assert_eq!(live.apply(&updates).unwrap().changes, changes);
        assert_eq!(live.model().names().len(), full.len());
        saved += full.len() - live.model().compiled().len();
        let table = live.reader();
        let table = table.enter();
        for name in probes.names().iter() {
            assert_eq!(table.lookup(name).result, full.lookup(name).result, "{name}");
        }
    }
    assert!(saved > 1_000, "nothing is left out");
    let removes: Vec<_> = pool.iter().cloned().map(NameUpdate::Remove).collect();
    live.apply(&removes).unwrap();
    assert!(live.model().compiled().is_empty() && live.model().names().is_empty());
}

/// Real domains with 62 results by stand-ins for resolving them: each name's own by chance, and one for all
/// names of a site.
#[test]
fn real_domains() {
    let Some(by_chance) = read_domains(0) else { return };
    let site = |name: &NameBuf| name.components().take(2).collect::<Vec<_>>().concat();
    let of_site = |name: &NameBuf| {
        let mut hash = site(name).iter().fold(7u64, |hash, &byte| hash.wrapping_mul(31) + u64::from(byte));
        hash = Rng::new(hash).bits();
        1 + u32::try_from(hash % 62).unwrap()
    };
    let by_site: NameTable = by_chance
        .iter()
        .map(|(name, _)| {
            let result = of_site(&name);
            (name, result)
        })
        .collect();
    for (what, names) in [("by chance", by_chance), ("by site", by_site)] {
        let start = std::time::Instant::now();
        let mut both = Aggregated::new(names);
        let (full, reduced) = (both.full().len(), both.reduced().len());
        eprintln!(
            "{what}: {full} entries, {reduced} reduced ({:.1} % fewer), {} and {} nodes, in {:?}",
            100.0
                - 100.0 * f64::from(u32::try_from(reduced).unwrap())
                    / f64::from(u32::try_from(full).unwrap()),
            both.full().node_count(),
            both.reduced().node_count(),
            start.elapsed()
        );
        for (name, result) in both.full().iter() {
            assert_eq!(both.reduced().lookup(&name).result, result, "{what}: {name}");
        }
        let some: Vec<_> = both.full().iter().step_by(18).collect();
        let start = std::time::Instant::now();
        for (name, result) in &some {
            both.apply(&NameUpdate::Insert(name.clone(), 1 + result % 62));
        }
        let changed = start.elapsed();
        for (name, _) in &some {
            both.apply(&NameUpdate::Remove(name.clone()));
        }
        let removed = start.elapsed() - changed;
        for (name, result) in &some {
            both.apply(&NameUpdate::Insert(name.clone(), *result));
        }
        let inserted = start.elapsed() - changed - removed;
        let count = some.len();
        eprintln!(
            "{what}: {count} replaced in {changed:?}, removed in {removed:?}, inserted in {inserted:?}"
        );
        assert_eq!((both.full().len(), both.reduced().len()), (full, reduced), "{what}: there and back");
    }
}
