//! All names of a table replaced in one step, from memory and from files.

use wirespeed::engine::Served;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::names::{NameDomain, NameRib};
use wirespeed::prelude::*;
use wirespeed::{Error, Labels, NextHop, Reloader};

use crate::common::{on_host, under_readers};
use crate::names::{check, churn, engines};

/// The names after some updates.
fn changed(names: &NameRib, updates: usize) -> NameRib {
    let mut after = names.clone();
    churn(names, updates).iter().for_each(|update| _ = after.apply(update));
    after
}

/// The number of names that are not alike in both.
fn differing(old: &NameRib, new: &NameRib) -> usize {
    let gone = old.iter().filter(|(name, _)| new.result(name) == 0).count();
    gone + new.iter().filter(|(name, result)| old.result(name) != *result).count()
}

#[test]
fn every_engine_takes_other_names() {
    for aggregate in [false, true] {
        for ((engine, first), (_, other)) in engines(21).zip(engines(22)) {
            let builder = NameTable::builder().rib(first.clone()).engine(engine).aggregate(aggregate);
            let mut table = builder.build().unwrap();
            let (reader, few) = (table.reader(), changed(&first, 5));
            // Few differences, many, none, no names at all, and back.
            for (at, state) in
                [few.clone(), other.clone(), other, NameRib::new(), few].into_iter().enumerate()
            {
                let (before, rebuilds) = (table.entries().clone(), table.rebuilds());
                let applied = table.replace(state.clone()).unwrap();
                let differing = differing(&before, &state);
                assert_eq!(applied.changes, differing, "{engine}: state {at}");
                let is_many = differing > state.len() / 4;
                assert!(
                    !is_many || applied.rebuilt && table.rebuilds() == rebuilds + 1,
                    "{engine}: state {at}"
                );
                assert!(differing > 0 || !applied.rebuilt && applied.writes == 0, "{engine}: state {at}");
                assert_eq!((table.len(), table.is_aggregated()), (state.len(), aggregate));
                check(&reader, &state, engine.as_str());
            }
            // Updates go on from there.
            table.insert(Name::new("/one/by/one").unwrap(), NextHop(7)).unwrap();
            assert_eq!(reader.lookup(Name::new("/one/by/one/x").unwrap()), NextHop(7));
        }
    }
}

/// Some names lead to the number of the round, so a mixture of two rounds is seen.
fn round(n: u32, of_round: u32, others: u32) -> NameRib {
    let name = |at: u32| NameBuf::new(&format!("/of/{at}")).unwrap();
    let still = (0..others).map(|at| (NameBuf::new(&format!("/still/{at}")).unwrap(), 1));
    (0..of_round).map(|at| (name(at), n)).chain(still).collect()
}

#[test]
fn readers_see_one_table_or_the_other() {
    // By a build, and by difference.
    for (of_round, others) in [(64, 0), (8, 100)] {
        let mut table = NameTable::builder().rib(round(1, of_round, others)).build().unwrap();
        let (reader, rebuilds) = (table.reader(), table.rebuilds());
        let mut keys = NameBatch::new();
        (0..of_round).for_each(|at| keys.push(&NameBuf::new(&format!("/of/{at}/x")).unwrap()).unwrap());
        let look = || {
            let mut found = vec![NextHop::NONE; keys.len()];
            reader.lookup_batch(&keys, &mut found);
            assert!(found.iter().all(|&next_hop| next_hop == found[0]), "a mixture");
        };
        let change = || (2..60).for_each(|n| _ = table.replace(round(n, of_round, others)).unwrap());
        under_readers(look, change);
        let rebuilt = table.rebuilds() - rebuilds;
        assert!(if others == 0 { rebuilt == 58 } else { rebuilt < 10 }, "{rebuilt} rebuilds");
    }
}

#[test]
fn what_fails_leaves_the_names_and_their_labels() {
    let (labels, first) = (Labels::new(), NameBuf::new("/com/parc").unwrap());
    let builder = NameTable::builder().labelled_names(&labels, [(&first, "a".to_owned())]);
    let mut table = builder.memory_cap(4 << 20).build().unwrap();
    let reader = table.reader();
    let much: NameRib = (1..200_000).map(|n| (NameBuf::new(&format!("/{n}/{n}")).unwrap(), n)).collect();
    let error = table.replace(much).unwrap_err();
    assert!(matches!(error, Error::MemoryCap { .. }), "{error}");
    assert_eq!((table.refused(), table.len(), labels.len()), (1, 1, 1));
    assert_eq!(reader.lookup(&first), NextHop(1));
    table.insert(&first, labels.intern("b".to_owned()).unwrap()).unwrap();
    assert_eq!(labels.get(reader.lookup(&first)).as_deref().map(String::as_str), Some("b"));
}

#[test]
fn gpus_follow() {
    let Some((fleet, _)) = on_host(GpuOptions { ..NameDomain::gpu_options() }) else { return };
    let (_, first) = engines(4).last().unwrap();
    let builder = NameTable::builder().rib(first.clone()).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    for state in [changed(&first, 5), crate::names::names(5)] {
        table.replace(state.clone()).unwrap();
        check(&table.reader(), &state, "on a GPU");
    }
    assert!(table.lookups().unwrap().gpu > 0);
}

#[test]
fn a_table_follows_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("names"), dir.path().join("other"));
    let labels = Labels::<String>::new();
    let (mut table, mut reloader) = (NameTable::builder().build().unwrap(), Reloader::new(&path));
    let reader = table.reader();
    let mut reload = |table: &mut NameTable| reloader.if_changed(|path| table.load(path, &labels));
    let put = |text: &str| {
        std::fs::write(&other, text).unwrap();
        std::fs::rename(&other, &path).unwrap();
    };
    let ask = |name: &str| {
        let known = labels.enter();
        known.get(reader.lookup(Name::new(name).unwrap())).cloned().unwrap_or_default()
    };
    put("/com/parc a\n/org b\n");
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(2));
    assert!(reload(&mut table).unwrap().is_none());
    assert_eq!([ask("/com/parc/x"), ask("/org")], ["a", "b"]);

    put("/com/parc c\n");
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(2));
    assert_eq!([ask("/com/parc/x"), ask("/org")], ["c", ""]);
    assert_eq!(labels.len(), 1, "labels end with their names");

    // A wrong file changes nothing, and is tried again.
    put("/com/parc d\n/com//parc e\n");
    for _ in 0..2 {
        let error = reload(&mut table).unwrap_err();
        assert!(error.to_string().contains(":2"), "{error}");
        assert_eq!((ask("/com/parc"), labels.len()), ("c".to_owned(), 1));
    }

    // An image, with the labels of another table.
    let of_image = Labels::new();
    let names = [("/com/parc", "x"), ("/net", "e"), ("/org", "c")];
    let names = names.map(|(name, label)| (NameBuf::new(name).unwrap(), label.to_owned()));
    let image = NameTable::builder().labelled_names(&of_image, names).build().unwrap();
    image.save_labelled(&other, &of_image).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(3));
    assert_eq!([ask("/com/parc"), ask("/net"), ask("/org")], ["x", "e", "c"]);

    // An image without labels says nothing that a label could be.
    image.save(&path).unwrap();
    let error = reload(&mut table).unwrap_err();
    assert!(error.to_string().contains("labels"), "{error}");
    assert_eq!((ask("/net"), table.len(), labels.len()), ("e".to_owned(), 3, 3));
}
