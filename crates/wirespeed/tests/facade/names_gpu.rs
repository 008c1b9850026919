//! Lookups of names on GPUs through the façade: without one, and on the kernels' host build in a GPU's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use wirespeed::engine::EngineName;
use wirespeed::engine::Served;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::names::NameRib;
use wirespeed::prelude::*;
use wirespeed::{Error, Fleet, Labels, NextHop};

use crate::common::{Warnings, has_gpu, on_host};
use crate::names::{check, churn, engines, keys, names};

/// A device in a GPU's place, and what makes it be lost; `None` where there is no compiler.
fn host() -> Option<(Fleet, Arc<AtomicBool>)> {
    on_host(wirespeed::names::NameDomain::gpu_options())
}

#[test]
fn without_a_gpu_asking_for_one_is_an_error_and_auto_says_why() {
    if has_gpu() {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let error = NameTable::builder().device(Device::Gpu).build().unwrap_err();
    assert!(matches!(error, Error::Gpu(_)), "{error}");
    let rib = names(3);
    let table = NameTable::builder().rib(rib.clone()).device(Device::Auto).build().unwrap();
    assert!(table.device_note().is_some_and(|why| error.to_string().contains(&why)));
    assert!(table.fleet().is_none() && table.lookups().is_none());
    check(&table.reader(), &rib, "on the CPU");
    check_pipeline(&table.reader(), &rib, "on the CPU");
    // Nobody asked.
    assert!(NameTable::builder().build().unwrap().device_note().is_none());
}

#[test]
fn the_cpu_is_what_nobody_asked_otherwise_for() {
    let Some((fleet, _)) = host() else { return };
    let table = NameTable::builder().fleet(fleet).build().unwrap();
    assert!(table.fleet().is_none() && table.lookups().is_none() && table.device_note().is_none());
}

/// Holds what a pipeline gives against the names, batch by batch in order.
fn check_pipeline(reader: &NameReader, rib: &NameRib, what: &str) {
    let batch = keys(rib);
    let all = batch.names();
    let mut found = vec![NextHop(u32::MAX); 300];
    let mut pipeline = reader.pipeline();
    let mut batches =
        (0..all.len()).step_by(found.len()).map(|from| all.part(from..all.len().min(from + 300)));
    assert!(!pipeline.is_ready() && pipeline.next(&mut found).is_none());
    let mut at = 0;
    loop {
        while pipeline.under_way() < 3
            && let Some(batch) = batches.next()
        {
            pipeline.submit(batch);
        }
        let Some(names) = pipeline.next(&mut found) else { break };
        for (taken, &found) in names.iter().zip(&found) {
            assert_eq!(taken, all.name(at), "{what}: in order");
            assert_eq!(found, rib.lookup(taken).next_hop(), "{what}: {taken} in a pipeline");
            at += 1;
        }
    }
    assert_eq!(at, all.len(), "{what}");
}

#[test]
fn a_table_on_a_gpu_follows_updates() {
    for aggregate in [false, true] {
        // One engine of each way to update: the kernels' own tests have all of them. Aggregation is nothing
        // to a kernel.
        let is_taken = |engine| match engine {
            EngineName::Acta => true,
            EngineName::MataNw => !aggregate,
            _ => false,
        };
        for (engine, mut rib) in engines(17).filter(|(engine, _)| is_taken(*engine)) {
            let Some((fleet, _)) = host() else { return };
            let builder = NameTable::builder().rib(rib.clone()).engine(engine).aggregate(aggregate);
            let mut table = builder.device(Device::Gpu).fleet(fleet).build().unwrap();
            assert_eq!(table.engine(), engine);
            assert!(table.fleet().is_some() && table.device_note().is_none());
            let reader = table.reader();
            check(&reader, &rib, engine.as_str());
            let on_gpu = table.lookups().unwrap();
            assert!(on_gpu.gpu > 0 && on_gpu.cpu == 0, "{on_gpu:?}");
            for updates in churn(&rib, 200).chunks(100) {
                table.apply(updates).unwrap();
                updates.iter().for_each(|update| {
                    rib.apply(update);
                });
                check(&reader, &rib, engine.as_str());
            }
            // Results get wider: built anew.
            let wide = NameUpdate::insert(Name::new("/one/of/many").unwrap(), NextHop(70_000));
            assert!(table.apply(std::slice::from_ref(&wide)).unwrap().rebuilt);
            rib.apply(&wide);
            check(&reader.clone(), &rib, engine.as_str());
            check_pipeline(&reader, &rib, engine.as_str());
            assert_eq!(table.lookups().unwrap().cpu, 0, "{engine}: all of it on the GPU");
        }
    }
}

/// Each update moves all names to a new label. Batches on the GPU see one label everywhere.
#[test]
fn updates_during_lookups_are_seen_whole() {
    let Some((fleet, _)) = host() else { return };
    let labels = Labels::new();
    let all: Vec<_> = (0..200).map(|n| NameBuf::new(&format!("/com/{n}/x")).unwrap()).collect();
    let first = all.iter().map(|name| (name, "round 0".to_owned()));
    let builder = NameTable::builder().labelled_names(&labels, first).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    let (reader, is_over) = (table.reader(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (labels, all, is_over, worker_reader) = (&labels, &all, &is_over, reader.clone());
        let worker = scope.spawn(move || {
            let batch: NameBatch = all.iter().map(|name| &**name).collect();
            let (mut found, mut seen) = (vec![NextHop::NONE; batch.len()], 0);
            while !is_over.load(Ordering::Relaxed) {
                let known = labels.enter();
                worker_reader.lookup_batch(&batch, &mut found);
                assert!(found.iter().all(|&next_hop| next_hop == found[0]), "{found:?}");
                assert!(known.get(found[0]).unwrap().starts_with("round"));
                seen += 1;
            }
            seen
        });
        for round in 1..150 {
            let label = labels.intern(format!("round {round}")).unwrap();
            let updates: Vec<_> = all.iter().map(|name| NameUpdate::insert(name, label)).collect();
            table.apply(&updates).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(worker.join().unwrap() > 0);
    });
    let batch: NameBatch = all.iter().map(|name| &**name).collect();
    let mut found = vec![NextHop::NONE; batch.len()];
    reader.lookup_batch(&batch, &mut found);
    assert_eq!(labels.get(found[7]).as_deref(), Some(&"round 149".to_owned()));
    assert_eq!(table.lookups().unwrap().cpu, 0, "all of it on the GPU");
}

#[test]
fn a_gpu_that_is_lost_in_mid_run_costs_no_answer_and_one_warning() {
    let Some((fleet, switch)) = host() else { return };
    let rib = names(23);
    let builder = NameTable::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    let reader = table.reader();
    let warnings = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings(Arc::clone(&warnings)), || {
        check(&reader, &rib, "before");
        let batch = keys(&rib);
        let part = batch.names().part(0..300);
        let mut found = vec![NextHop::NONE; 300];
        let mut pipeline = reader.pipeline();
        pipeline.submit(part);
        pipeline.submit(part);
        assert_eq!(warnings.load(Ordering::Relaxed), 0);
        switch.store(true, Ordering::Relaxed);
        pipeline.submit(part);
        for _ in 0..3 {
            found.fill(NextHop(u32::MAX));
            assert_eq!(pipeline.next(&mut found).unwrap().len(), 300);
            for (name, &found) in part.iter().zip(&found) {
                assert_eq!(found, rib.lookup(name).next_hop(), "{name} when the GPU was lost");
            }
        }
        check(&reader, &rib, "after");
        check_pipeline(&reader, &rib, "after");
    });
    assert_eq!(warnings.load(Ordering::Relaxed), 1);
    let counts = table.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu > 0, "{counts:?}");
    assert!(table.device_note().is_some_and(|note| !note.is_empty()));
    // And updates go on.
    let name = Name::new("/there/since").unwrap();
    table.insert(name, NextHop(9)).unwrap();
    let mut found = [NextHop::NONE];
    reader.lookup_batch(&NameBatch::from_iter([name]), &mut found);
    assert_eq!(found, [NextHop(9)]);
}

#[test]
fn slots_for_addresses_do_for_names_and_lengths_are_the_cpus_there() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let rib = names(25);
    let builder = NameTable::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet);
    let table = builder.build().unwrap();
    check(&table.reader(), &rib, "in narrow slots");
    let counts = table.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu > 0, "results from there, lengths from here: {counts:?}");
}

#[test]
fn auto_keeps_small_batches_on_the_cpu() {
    let Some((fleet, _)) = host() else { return };
    let rib = names(29);
    let builder = NameTable::builder().rib(rib.clone()).device(Device::Auto).fleet(fleet);
    let table = builder.latency_bound(Duration::from_secs(1)).build().unwrap();
    let mut found = [NextHop::NONE; 1];
    for name in keys(&rib).names().iter().take(100) {
        table.reader().lookup_batch(&NameBatch::from_iter([name]), &mut found);
        assert_eq!(found[0], rib.lookup(name).next_hop());
    }
    assert_eq!(table.lookups().map(|counts| (counts.cpu, counts.gpu)), Some((100, 0)));
}
