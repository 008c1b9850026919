//! Engines of transition arrays (STT, ATA, MATA), held against the oracle on names that meet, and on states
//! that are crowded, deep or in each other's way.

use proptest::prelude::*;
use wirespeed_image::{Image, Table};
use wirespeed_namelookup::aligned::layout::{ARRAYS, HEAD, RESULTS, ROOT, TRANSITIONS};
use wirespeed_namelookup::ata::Ata;
use wirespeed_namelookup::generate::{self, Churn, ChurnSpec, TableSpec};
use wirespeed_namelookup::mata::{Mata, MataNw, MataTable};
use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::stt::Stt;
use wirespeed_namelookup::{
    BuildOptions, Engine, HEAD_ROOM, LiveNames, Lookup, Match, NameBatch, NameBuf, NameDomain, NameTable,
    NameUpdate,
};

fn name(text: &str) -> NameBuf {
    NameBuf::new(text).unwrap()
}

/// A table finds what the oracle does, alone, in batches, interleaved, and by its explanation.
fn agrees<T: Lookup<NameDomain>>(table: &T, oracle: &Oracle, names: &[NameBuf]) {
    let batch: NameBatch = names.iter().map(|name| &**name).collect();
    let expected: Vec<_> = names.iter().map(|name| oracle.lookup(name)).collect();
    let mut matches = vec![Match { result: 77, length: 77 }; names.len()];
    table.match_batch(batch.names(), &mut matches);
    assert_eq!(matches, expected, "{names:?}");
    let mut results = vec![77; names.len()];
    table.lookup_batch(batch.names(), &mut results);
    assert_eq!(results, expected.iter().map(|found| found.result).collect::<Vec<_>>());
    for (name, &expected) in names.iter().zip(&expected) {
        assert_eq!(table.lookup(name), expected, "{name}");
        let last = table.explain(name).pop().expect("a step");
        let said = if expected.is_some() { format!("result {}", expected.result) } else { "no match".into() };
        assert_eq!(last.meaning, said);
    }
}

/// Names that meet: of few bytes, some of them such that steps are 0 or end in zeros.
fn names() -> impl Strategy<Value = NameBuf> {
    let byte = || prop::sample::select(vec![b'a', b'b', 0, 0xff, b'.', b'0']);
    let component = prop_oneof![
        3 => proptest::collection::vec(byte(), 1..3),
        3 => proptest::collection::vec(byte(), 1..12),
        1 => proptest::collection::vec(any::<u8>().prop_filter("no slash", |&b| b != b'/'), 1..6),
    ];
    proptest::collection::vec(component, 0..5)
        .prop_map(|components| NameBuf::from_components(components.iter().map(|c| &c[..])).expect("names"))
}

fn builds<E: Engine<NameDomain>>(entries: &[(NameBuf, u32)], others: &[NameBuf]) {
    let oracle: Oracle = entries.iter().cloned().collect();
    let table: NameTable = entries.iter().cloned().collect();
    let (_, table) = E::build(&table, &BuildOptions::default()).expect("a valid table is built");
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).unwrap();
    let back = E::Table::from_image(Image::from_bytes(&bytes).unwrap()).expect("what was built is valid");
    let names: Vec<_> = entries.iter().map(|(name, _)| name.clone()).chain(others.iter().cloned()).collect();
    agrees(&table, &oracle, &names);
    agrees(&back, &oracle, &names);
}

fn updates<E: Engine<NameDomain>>(entries: &[(NameBuf, u32)], steps: &[(NameBuf, u32)], every: usize) {
    let mut oracle: Oracle = entries.iter().cloned().collect();
    let table: NameTable = entries.iter().cloned().collect();
    let mut live =
        LiveNames::<E>::new(table.into(), BuildOptions::default()).expect("a valid table is built");
    let names: Vec<_> = entries.iter().chain(steps).map(|(name, _)| name.clone()).collect();
    for steps in steps.chunks(every) {
        let updates: Vec<_> = steps
            .iter()
            .map(|(name, result)| match result {
                0 => NameUpdate::Remove(name.clone()),
                &result => NameUpdate::Insert(name.clone(), result),
            })
            .collect();
        for (name, result) in steps {
            match result {
                0 => oracle.0.remove(name),
                &result => oracle.0.insert(name.clone(), result),
            };
        }
        live.apply(&updates).expect("it is built anew where need be");
        agrees(&*live.reader().enter(), &oracle, &names);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(wirespeed_image::rounds::cases(256)))]

    #[test]
    fn every_form_finds_what_the_oracle_does(
        entries in proptest::collection::vec((names(), 1..300u32), 0..60),
        others in proptest::collection::vec(names(), 0..30),
    ) {
        builds::<Stt>(&entries, &others);
        builds::<Ata>(&entries, &others);
        builds::<Ata<2>>(&entries, &others);
        builds::<Mata>(&entries, &others);
        builds::<MataNw>(&entries, &others);
    }

    #[test]
    fn every_form_takes_updates(
        entries in proptest::collection::vec((names(), 1..300u32), 0..30),
        steps in proptest::collection::vec((names(), prop_oneof![2 => Just(0u32), 3 => 1..300u32]), 0..60),
        again in proptest::collection::vec(any::<prop::sample::Index>(), 0..30),
        every in 1..9usize,
    ) {
        let mut steps = steps;
        if !entries.is_empty() {
            // Some of the table's own go, and come again.
            let own = |at: &prop::sample::Index| at.get(&entries).0.clone();
            steps.extend(again.iter().map(|at| (own(at), 0)));
            steps.extend(again.iter().rev().map(|at| (own(at), 5)));
        }
        updates::<Stt>(&entries, &steps, every);
        updates::<Ata>(&entries, &steps, every);
        updates::<Ata<2>>(&entries, &steps, every);
        updates::<Mata>(&entries, &steps, every);
        updates::<MataNw>(&entries, &steps, every);
    }
}

/// Three bytes a step take 128 MB: once is enough.
#[test]
fn an_ata_of_three_bytes_a_step() {
    let names = ["/com/amazon/books", "/com/amazon/www", "/com/yahoo/www", "/com", "/org/x"];
    let entries: Vec<_> = names.into_iter().map(name).zip(1..).collect();
    let others = ["/", "/com/amazon", "/com/amazons", "/org", "/com/yahoo/www/a/b", "/org/xx"].map(name);
    builds::<Ata<3>>(&entries, &others);
}

/// A state of so many transitions that no prime keeps them apart, with inputs of any bytes, and others that
/// share their halves.
fn crowded() -> Vec<(NameBuf, u32)> {
    let mut seed = 7u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33).to_le_bytes().map(|b| if b == b'/' { b'.' } else { b })
    };
    (1..20_000)
        .map(|result| {
            let mut bytes = random();
            if result % 3 == 0 {
                bytes[..2].copy_from_slice(b"aa");
            }
            let component = &bytes[..4 + result as usize % 3];
            let components = [&b"com"[..], component, b"www"];
            (NameBuf::from_components(components.into_iter().take(2 + result as usize % 2)).unwrap(), result)
        })
        .collect()
}

#[test]
fn a_state_with_very_many_transitions_is_halved() {
    let entries = crowded();
    let others: Vec<_> = ["/com", "/com/aa", "/com/aaaa", "/com/\0\0\0\0", "/co"].map(name).to_vec();
    builds::<Mata>(&entries, &others);
    builds::<MataNw>(&entries, &others);
    let table: NameTable = entries.iter().cloned().collect();
    let (_, table) = Mata::build(&table, &BuildOptions::default()).unwrap();
    let arrays = table.arrays();
    assert!(arrays.iter().any(|array| array.halved && array.transitions > 1_000));
    // It takes updates as any other.
    let (start, rest) = entries.split_at(15_000);
    let gone = start.iter().step_by(3).map(|(name, _)| (name.clone(), 0));
    let steps: Vec<_> = rest.iter().cloned().chain(gone).collect();
    updates::<Mata>(start, &steps, 4_000);
}

#[test]
fn long_and_deep_names() {
    let long = |byte: u8, len: usize| NameBuf::from_components([&vec![byte; len][..]]).unwrap();
    let deep = |len: usize| NameBuf::from_components(std::iter::repeat_n(&b"x"[..], len)).unwrap();
    let entries: Vec<_> =
        [long(b'a', 8_000), long(b'a', 7_999), long(0, 8_000), deep(300), deep(1), NameBuf::root()]
            .into_iter()
            .zip(1..)
            .collect();
    let others = [long(b'a', 8_001), long(0, 7_999), long(0, 4), deep(299), deep(301), deep(10_000)];
    builds::<Ata>(&entries, &others);
    builds::<Mata>(&entries, &others);
    builds::<MataNw>(&entries, &others);
    builds::<Stt>(&entries, &others);
    let steps: Vec<_> = entries.iter().map(|(name, _)| (name.clone(), 0)).collect();
    updates::<Mata>(&entries, &steps, 1);
    updates::<Stt>(&entries, &steps, 1);
}

#[test]
fn what_updates_take_is_given_back() {
    let host = |n: u32| name(&format!("/com/host{}/www{}", n % 4_000, n / 4_000));
    let table: NameTable = (0..8_000).map(|n| (host(n), 1 + n % 200)).collect();
    let mut live = LiveNames::<Mata>::new(table.into(), BuildOptions::default()).unwrap();
    let used = |live: &LiveNames<Mata>| -> u32 {
        live.reader().enter().arrays().iter().map(|array| array.transitions).sum()
    };
    let before = used(&live);
    for round in 0..40 {
        let new = |n: u32| name(&format!("/com/host{n}/r{round}"));
        let inserts: Vec<_> = (0..500).map(|n| NameUpdate::Insert(new(n), 1 + n % 200)).collect();
        let removes: Vec<_> = (0..500).map(|n| NameUpdate::Remove(new(n))).collect();
        live.apply(&inserts).unwrap();
        live.apply(&removes).unwrap();
    }
    assert_eq!((used(&live), live.rebuilds()), (before, 0));
}

/// Where states grow, shrink and are in each other's way, each slot says how large the state is that has it.
#[test]
fn states_that_grow_are_known_by_their_size() {
    let mut names = generate::table(&TableSpec { names: 30_000, results: 200, seed: 1 }).unwrap().names;
    let mix = ChurnSpec {
        insertions: 4.0,
        removals: 1.0,
        changes: 0.0,
        returns: 0.0,
        results: 200,
        ..ChurnSpec::default()
    };
    let updates: Vec<_> = Churn::new(&names, &mix).unwrap().take(5_000).map(|timed| timed.update).collect();
    let options = BuildOptions { head_room: HEAD_ROOM, ..BuildOptions::default() };
    let (mut engine, mut table) = Mata::build(&names, &options).unwrap();
    names.track();
    let mut rebuilds = 0;
    for updates in updates.chunks(250) {
        names.apply_all(updates);
        let changed = names.take_changed();
        match engine.update(&table, &names, &changed) {
            Ok(patch) => table.apply(&patch).unwrap(),
            Err(_) => {
                rebuilds += 1;
                (engine, table) = Mata::build(&names, &options).unwrap();
            }
        }
        names.forget_gone(changed);
        assert!(engine.knows_sizes());
    }
    // Even in arrays as short as these there is mostly place for a tenth more: two or three of ten such
    // tables are rebuilt once.
    assert!(rebuilds < 2, "{rebuilds}");
    for name in updates.iter().map(NameUpdate::name) {
        assert_eq!(table.lookup(name), names.lookup(name));
    }
}

/// A name's end is followed by nothing, even where the table has steps that are 0.
#[test]
fn zeros_after_a_names_end_match_nothing() {
    let entries = [(name("/com"), 1), (name("/com/\0\0\0\0"), 2), (name("/com/\0\0\0\0\0\0\0\0/a"), 3)];
    builds::<MataNw>(&entries, &["/com", "/com/\0\0\0\0", "/com/\0\0\0\0\0\0\0\0"].map(name));
}

#[test]
fn damaged_images_are_refused() {
    let entries: NameTable = ["/com/a", "/com/b", "/org"].into_iter().map(name).zip(1..).collect();
    let (_, table) = Mata::build(&entries, &BuildOptions::default()).unwrap();
    let damaged = |damage: &dyn Fn(&mut Image)| {
        let mut image = table.image().clone();
        damage(&mut image);
        MataTable::from_image(image).is_err()
    };
    assert!(!damaged(&|_| {}));
    assert!(damaged(&|image| image.section_mut::<u64>(HEAD).unwrap()[ROOT] = 100 << 24));
    assert!(damaged(&|image| image.section_mut::<u64>(HEAD).unwrap()[0] = 3));
    assert!(damaged(&|image| image.section_mut::<u64>(ARRAYS).unwrap()[1] += 1));
    assert!(damaged(&|image| image.section_mut::<u64>(ARRAYS).unwrap()[2] += 1));
    assert!(damaged(&|image| image.section_mut::<u64>(ARRAYS).unwrap()[3] = 2));
    assert!(damaged(&|image| image.section_mut::<u64>(TRANSITIONS).unwrap()[5] = 1 << 62));
    assert!(damaged(&|image| image.section_mut::<u8>(RESULTS).unwrap()[5] = 4));
    assert!(
        Ata::<1>::build(&entries, &BuildOptions { memory_cap: Some(2_000), ..Default::default() }).is_err()
    );
}
