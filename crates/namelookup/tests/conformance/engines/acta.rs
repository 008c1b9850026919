//! [`Acta`]: components of the lengths that its layout treats differently, patches of single words, and names
//! that were chosen to collide.

use proptest::prelude::*;
use wirespeed_image::{Image, PatchBuilder, Table};
use wirespeed_namelookup::acta::hash::Seeds;
use wirespeed_namelookup::acta::layout::{BUCKETS, HEAD, LONG, WIDTH_AT};
use wirespeed_namelookup::generate::{self, Churn, ChurnSpec, TableSpec};
use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::{
    Acta, ActaTable, BuildOptions, Engine, LiveNames, Lookup, Match, NameBatch, NameBuf, NameTable,
    NameUpdate,
};
use wirespeed_table::VectorLevel;

fn options(seed: u64) -> BuildOptions {
    BuildOptions { seed: Some(seed), ..BuildOptions::default() }
}

/// Components of all lengths around what matters, few of each, so that names share them.
fn component() -> impl Strategy<Value = Vec<u8>> {
    let lengths = vec![1, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 40, 41, 48, 63, 64, 65, 130, 8000];
    (prop::sample::select(lengths), prop::sample::select(vec![0u8, b'a', b'b', 0xff]))
        .prop_map(|(len, byte)| vec![byte; len])
}

fn name() -> impl Strategy<Value = NameBuf> {
    proptest::collection::vec(component(), 0..5)
        .prop_map(|parts| NameBuf::from_components(parts.iter().map(Vec::as_slice)).expect("components"))
}

fn check(table: &ActaTable, oracle: &Oracle, names: &[NameBuf]) {
    let batch: NameBatch = names.iter().map(|name| &**name).collect();
    let right: Vec<Match> = names.iter().map(|name| oracle.lookup(name)).collect();
    let (mut results, mut matches) = (vec![u32::MAX; names.len()], vec![Match::NONE; names.len()]);
    table.lookup_batch(batch.names(), &mut results);
    table.match_batch(batch.names(), &mut matches);
    assert_eq!(matches, right);
    assert!(results.iter().zip(&right).all(|(result, right)| *result == right.result));
    matches.fill(Match { result: 9, length: 9 });
    VectorLevel::Portable.as_fastest(|| table.match_batch(batch.names(), &mut matches));
    assert_eq!(matches, right, "without vectors");
    for (name, right) in names.iter().zip(right) {
        assert_eq!(table.lookup(name), right);
        let last = table.explain(name).pop().expect("the head is read").meaning;
        let said = if right.is_some() { format!("result {}", right.result) } else { "no match".to_owned() };
        assert!(last.ends_with(&said), "{last}");
    }
}

/// The names and others around them.
fn around(names: &[NameBuf]) -> Vec<NameBuf> {
    let mut all = names.to_vec();
    for name in names {
        for more in [&b"a"[..], b"zz", &[b'a'; 41]] {
            let mut longer = name.clone();
            longer.push(more).expect("a component");
            all.push(longer);
        }
        let mut bytes = name.as_bytes().to_vec();
        bytes.push(b'a');
        all.extend(NameBuf::new(&bytes).ok());
        bytes.truncate(bytes.len().saturating_sub(2));
        all.extend(NameBuf::new(&bytes).ok());
    }
    all
}

fn saved_and_opened(table: &ActaTable) -> ActaTable {
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("memory");
    ActaTable::from_image(Image::from_bytes(&bytes).expect("an image")).expect("a table")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: wirespeed_image::rounds::cases(200), ..ProptestConfig::default() })]

    /// Random tables and updates, compared after each, an engine's own and an image that was saved and
    /// opened.
    #[test]
    fn it_is_right_after_every_update(
        start in proptest::collection::vec((name(), 1..70_000u32), 0..60),
        steps in proptest::collection::vec(proptest::collection::vec((name(), 0..300u32), 1..30), 0..8),
        seed in any::<u64>(),
    ) {
        let mut oracle: Oracle = start.iter().cloned().collect();
        let mut names: NameTable = start.iter().map(|(name, result)| (name, *result)).collect();
        let all: Vec<_> = start.iter().chain(steps.iter().flatten()).map(|(name, _)| name.clone()).collect();
        let all = around(&all);
        let (mut engine, mut table) = Acta::build(&names, &options(seed)).expect("a table");
        check(&table, &oracle, &all);
        names.track();
        for step in &steps {
            for (name, result) in step {
                let update = match result {
                    0 => NameUpdate::Remove(name.clone()),
                    &result => NameUpdate::Insert(name.clone(), result),
                };
                names.apply(&update);
                match result {
                    0 => drop(oracle.0.remove(name)),
                    &result => drop(oracle.0.insert(name.clone(), result)),
                }
            }
            let changed = names.take_changed();
            match engine.update(&table, &names, &changed) {
                Ok(patch) => table.apply(&patch).expect("it fits"),
                Err(_) => (engine, table) = Acta::build(&names, &options(seed)).expect("a table"),
            }
            names.forget_gone(changed);
            check(&table, &oracle, &all);
            check(&saved_and_opened(&table), &oracle, &all);
        }
    }

    /// Whatever single words a patch sets, it is taken exactly if the image with them is, and lookups end.
    #[test]
    fn check_and_from_image_agree(
        start in proptest::collection::vec((name(), 1..70_000u32), 0..20),
        writes in proptest::collection::vec((0..3u16, any::<prop::sample::Index>(), any::<u64>(), 0..64u32, any::<bool>()), 1..4),
    ) {
        let names: NameTable = start.iter().map(|(name, result)| (name, *result)).collect();
        let (_, mut table) = Acta::build(&names, &options(1)).expect("a table");
        let mut patch = PatchBuilder::new();
        for (section, index, value, bit, flip) in writes {
            let id = [BUCKETS, LONG, HEAD][usize::from(section)];
            let words = table.image().section::<u64>(id);
            let at = index.index(words.len());
            let value = if flip { words[at] ^ 1 << bit } else { value >> bit };
            patch.set(id, at as u64, value);
        }
        let patch = patch.finish(None);
        let mut image = table.image().clone();
        image.apply(&patch).expect("it has its places");
        let taken = ActaTable::from_image(image);
        prop_assert_eq!(taken.is_ok(), table.apply(&patch).is_ok());
        if let Ok(table) = taken {
            let all = around(&start.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
            let batch: NameBatch = all.iter().map(|name| &**name).collect();
            let mut matches = vec![Match::NONE; all.len()];
            let mut plainly = matches.clone();
            table.match_batch(batch.names(), &mut matches);
            VectorLevel::Portable.as_fastest(|| table.match_batch(batch.names(), &mut plainly));
            prop_assert_eq!(&plainly, &matches);
            for (name, found) in all.iter().zip(matches) {
                prop_assert_eq!(table.lookup(name), found);
                table.explain(name);
            }
        }
    }
}

#[test]
fn a_wider_result_is_checked_against_all_buckets() {
    let names: NameTable = [(NameBuf::new("/com/a").unwrap(), 5)].into_iter().collect();
    let (_, table) = Acta::build(&names, &options(1)).unwrap();
    for width in 0..9 {
        let mut patch = PatchBuilder::new();
        patch.set(HEAD, WIDTH_AT as u64, width);
        let patch = patch.finish(None);
        let mut image = table.image().clone();
        image.apply(&patch).unwrap();
        assert_eq!(table.check(&patch).is_ok(), ActaTable::from_image(image).is_ok(), "width {width}");
    }
}

#[test]
fn the_same_seed_makes_the_same_image() {
    let names: NameTable =
        (1..5000).map(|n| (NameBuf::new(&format!("/com/host{n}/{}", n % 7)).unwrap(), n)).collect();
    let bytes = |seed| {
        let mut bytes = Vec::new();
        Acta::build(&names, &options(seed)).unwrap().1.image().write(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

/// Names that whoever knows the seed has chosen so that all want the same sixteenth of the buckets.
#[test]
fn names_that_collide_under_a_known_seed_are_placed_by_another() {
    let known = Seeds::of(1, 0);
    let collides = |component: &String| {
        let hash = known.hash(component.as_bytes()).0;
        hash >> 32 < 1 << 28 && hash & u64::from(u32::MAX) < 1 << 28
    };
    let chosen = (0..200_000).map(|n| format!("host{n}")).filter(collides);
    let entries: Vec<_> =
        (1..).zip(chosen).map(|(n, c)| (NameBuf::new(&format!("/{c}")).unwrap(), n)).collect();
    assert!(entries.len() > 500);
    let names: NameTable = entries.iter().map(|(name, result)| (name, *result)).collect();
    let (_, table) = Acta::build(&names, &options(1)).unwrap();
    assert_ne!(table.view().seeds, known);
    let bytes = table.image().bytes();
    assert!(bytes < 40 * entries.len() as u64 + 16_384, "{bytes}");
    let all: Vec<_> = entries.iter().map(|(name, _)| name.clone()).collect();
    check(&table, &entries.into_iter().collect(), &around(&all));
}

/// Names that want the same sixteenth of the buckets under a seed that is known come to a live table that has
/// it: the table stays right, takes another seed, and doesn't grow out of proportion.
#[test]
fn names_that_collide_come_to_a_live_table() {
    let seed = 1;
    let known = Seeds::of(seed, 0);
    let collides = |component: &String| {
        let hash = known.hash(component.as_bytes()).0;
        hash >> 32 < 1 << 28 && hash & u64::from(u32::MAX) < 1 << 28
    };
    let chosen: Vec<_> = (0..600_000)
        .map(|n| format!("host{n}"))
        .filter(collides)
        .map(|c| NameBuf::new(&format!("/{c}")).unwrap())
        .collect();
    assert!(chosen.len() > 2_000);
    let start: NameTable = (1..2_000).map(|n| (NameBuf::new(&format!("/harmless{n}")).unwrap(), n)).collect();
    let options = BuildOptions { seed: Some(seed), ..BuildOptions::default() };
    let mut live = LiveNames::<Acta>::new(start.into(), options).unwrap();
    for part in chosen.chunks(100) {
        let updates: Vec<_> = part.iter().map(|name| NameUpdate::Insert(name.clone(), 7)).collect();
        live.apply(&updates).unwrap();
    }
    let reader = live.reader();
    for name in &chosen {
        assert_eq!(reader.enter().lookup(name), live.model().names().lookup(name));
    }
    let rebuilds = live.rebuilds();
    assert!(rebuilds < 20, "built anew {rebuilds} times for {} calls", chosen.len().div_ceil(100));
    let a_name = live.memory_usage() / live.model().names().len() as u64;
    assert!(a_name < 2_000, "{a_name} bytes a name");
}

/// Names that come to a table so full that others have to move for them, in patches that each leave it right.
#[test]
fn others_move_for_names_that_come() {
    let mut names = generate::table(&TableSpec { names: 20_000, results: 62, seed: 1 }).unwrap().names;
    let mix = ChurnSpec { insertions: 8.0, results: 62, ..ChurnSpec::default() };
    let updates: Vec<_> = Churn::new(&names, &mix).unwrap().take(4_000).map(|timed| timed.update).collect();
    let (mut engine, mut table) = Acta::build(&names, &BuildOptions { head_room: 10, ..options(1) }).unwrap();
    names.track();
    let mut waited = 0;
    for updates in updates.chunks(400) {
        names.apply_all(updates);
        let changed = names.take_changed();
        let patch = engine.update(&table, &names, &changed).expect("from 76 to 83 in a hundred full");
        names.forget_gone(changed);
        table.apply(&patch).unwrap();
        let (now, most) = engine.waiting();
        waited = waited.max(most);
        assert_eq!(now, 0);
    }
    assert!(waited > 100, "{waited}");
    let all: NameBatch = updates.iter().map(NameUpdate::name).collect();
    for (name, _) in names.iter() {
        assert_eq!(table.lookup(&name), names.lookup(&name));
    }
    for name in all.names().iter() {
        assert_eq!(table.lookup(name), names.lookup(name));
    }
}

/// A name as deep as names may be: a chain of millions of states, by components that all are the same.
#[test]
fn millions_of_components_are_no_harm() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let deep = NameBuf::from_components(std::iter::repeat_n(&b"d"[..], 2_000_000)).unwrap();
    let half = NameBuf::new(&deep.as_bytes()[..2_000_000]).unwrap();
    let names: NameTable = [(&half, 1), (&deep, 2)].into_iter().collect();
    let (mut engine, mut table) = Acta::build(&names, &options(1)).unwrap();
    let bytes = table.image().bytes();
    assert!(bytes < 2_000_000 * 16, "{bytes}");
    let mut deeper = deep.clone();
    deeper.push(b"d").unwrap();
    assert_eq!(table.lookup(&deeper), Match::new(2, deep.len()));
    let batch: NameBatch = [&*half, &*deeper, &*deep].into_iter().collect();
    let mut matches = [Match::NONE; 3];
    table.match_batch(batch.names(), &mut matches);
    assert_eq!(matches.map(|found| found.result), [1, 2, 2]);
    let mut names = names;
    names.track();
    assert_eq!(names.remove(&deep), 2);
    let changed = names.take_changed();
    table.apply(&engine.update(&table, &names, &changed).unwrap()).unwrap();
    names.forget_gone(changed);
    assert_eq!(table.lookup(&deeper), Match::new(1, half.len()));
}
