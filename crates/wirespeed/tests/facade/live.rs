//! Tables that change, with every engine.

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::engine::EngineName;
use wirespeed::fib::synth::{self, UpdateSpec};
use wirespeed::{Address, Labels, NextHop, Prefix, Rib, Table, Update, V4, V6};
use wirespeed_image::rounds;

use crate::common::{self, Native, check, rib};

#[test]
fn every_engine_is_right_before_and_after_updates_v4() {
    every_engine_is_right::<V4>();
}

#[test]
fn every_engine_is_right_before_and_after_updates_v6() {
    every_engine_is_right::<V6>();
}

fn every_engine_is_right<A: Native>() {
    for engine in common::engines::<A>() {
        let mut rib = rib::<A>(11);
        let mut table = Table::builder().rib(rib.clone()).engine(engine).build().unwrap();
        assert_eq!((table.engine(), table.len()), (engine, rib.len()));
        let reader = table.reader();
        check(&reader, &rib, engine.as_str());

        let spec = UpdateSpec { next_hops: 400, ..UpdateSpec::real(A::FAMILY) };
        let updates: Vec<_> = synth::Updates::new(&rib, &spec).take(600).map(|timed| timed.update).collect();
        for updates in updates.chunks(200) {
            let applied = table.apply(updates).unwrap();
            let changes = updates.iter().filter(|update| rib.apply(update)).count();
            assert_eq!(applied.changes, changes);
            check(&reader.clone(), &rib, engine.as_str());
        }

        // One at a time, down to an empty table and back.
        let routes: Vec<_> = rib.iter().collect();
        for &(prefix, _) in &routes {
            table.remove(prefix).unwrap();
        }
        assert!(table.is_empty());
        check(&reader, &Rib::new(), engine.as_str());
        for &(prefix, next_hop) in &routes {
            table.insert(prefix, next_hop).unwrap();
        }
        assert!(table.routes().iter().eq(rib.iter()));
        check(&reader, &rib, engine.as_str());
        drop(table);
        check(&reader, &rib, "after the writer is gone");
    }
}

/// Each update moves all prefixes to a new label. Readers see one label everywhere, and can tell what it
/// stands for.
#[test]
fn readers_see_updates_whole_and_resolve_what_they_see() {
    const ROUNDS: u64 = 120;
    fn family<A: Native>() {
        for engine in common::engines::<A>() {
            let prefixes: Vec<Prefix<A>> = [5, 8, 15, 16, 19, 24, 27, A::BITS]
                .into_iter()
                .zip(1u8..)
                .map(|(len, at)| Prefix::around(A::MIN.with_octet(0, 16 * at), len))
                .collect();
            let labels = Labels::new();
            let all = |label: u64| prefixes.iter().map(move |&prefix| (prefix, label));
            let mut table =
                Table::<A>::builder().labelled_routes(&labels, all(0)).engine(engine).build().unwrap();
            let keys: Vec<A> = prefixes.iter().flat_map(|prefix| [prefix.address(), prefix.last()]).collect();
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    let (reader, labels, keys, stop) = (table.reader(), labels.clone(), &keys, &stop);
                    scope.spawn(move || {
                        let mut found = vec![NextHop::NONE; keys.len()];
                        let mut last = 0;
                        while !stop.load(Ordering::Relaxed) {
                            let known = labels.enter();
                            let state = reader.enter();
                            state.lookup_batch(keys, &mut found);
                            assert!(found.iter().all(|&n| n == found[0]), "{engine}: mixed: {found:?}");
                            let label = *known.get(found[0]).expect("an index that was seen resolves");
                            assert!(label >= last, "{engine}: a change was undone");
                            last = label;
                            assert!(keys.iter().all(|&key| known.get(state.lookup(key)) == Some(&label)));
                            drop(state);
                            let one = *known.get(reader.lookup(keys[0])).expect("so does a later one");
                            assert!(one >= label);
                            // The writer is to have its share of two cores, too.
                            std::thread::yield_now();
                        }
                    });
                }
                for label in 1..=ROUNDS {
                    let next_hop = labels.intern(label).unwrap();
                    let updates: Vec<_> = prefixes.iter().map(|&p| Update::announce(p, next_hop)).collect();
                    table.apply(&updates).unwrap();
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(labels.get(table.reader().lookup(keys[0])).as_deref(), Some(&ROUNDS));
        }
    }
    family::<V4>();
    family::<V6>();
}

#[test]
fn a_cap_is_for_both_copies_and_holds_for_rebuilds() {
    if rounds::leaves_to_ci() {
        return;
    }
    fn family<A: Native>() {
        for engine in common::engines::<A>() {
            let rib = rib::<A>(3);
            let build = |cap| Table::builder().rib(rib.clone()).engine(engine).memory_cap(cap).build();
            let Err(wirespeed::Error::MemoryCap { what, needed, cap }) = build(1000) else {
                panic!("{engine}: a thousand bytes hold no table")
            };
            assert_eq!((what, cap), (A::FAMILY.to_string().as_str(), 1000));
            let message = build(1000).unwrap_err().to_string();
            assert!(message.contains(&needed.to_string()) && message.contains("1000"), "{message}");
            assert!(build(needed - 1).is_err());
            let mut table = build(needed).unwrap();
            assert!(table.memory_usage() > needed);

            // A next hop that doesn't fit the width of an element makes for a wider table, over the cap: what
            // is live stays.
            let (reader, before) = (table.reader(), rib.clone());
            match table.insert(Prefix::host(A::MIN), NextHop(1 << 20)) {
                Err(wirespeed::Error::MemoryCap { cap, .. }) => {
                    assert_eq!(cap, needed);
                    check(&reader, &before, "over the cap");
                }
                Ok(_) => {
                    assert_ne!(
                        engine,
                        EngineName::SailL,
                        "its elements are as narrow as the next hops allow"
                    );
                    check(&reader, &table.routes().to_rib(), "within the cap");
                }
                Err(other) => panic!("{engine}: {other}"),
            }
            table.remove(Prefix::host(A::MIN)).unwrap();
            check(&reader, &table.routes().to_rib(), "as it was");
        }
    }
    family::<V4>();
    family::<V6>();
}

#[test]
fn room_for_expected_next_hops_spares_a_rebuild() {
    let build = |next_hops| {
        let builder = Table::<V4>::builder().rib(rib(3)).engine(EngineName::SailL);
        let mut table = builder.next_hops(next_hops).build().unwrap();
        table.insert(Prefix::host(V4::MIN), NextHop(70_000)).unwrap();
        table.rebuilds()
    };
    assert_eq!((build(0), build(70_000)), (1, 0));
}
