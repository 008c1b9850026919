//! Classification on GPUs through the façade: without one, and on the kernels' host build in a GPU's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use wirespeed::classify::oracle::Oracle;
use wirespeed::engine::{EngineName, Engines, RuleTuple};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::prelude::*;
use wirespeed::{Error, Fleet};

use crate::classify::{change_places, check, churn, places, rules, tuples};
use crate::common::{Warnings, engines, has_gpu, on_host};

/// A device in a GPU's place, and what makes it be lost; `None` where there is no compiler.
fn host<T: RuleTuple>() -> Option<(Fleet, Arc<AtomicBool>)> {
    on_host(T::gpu_options())
}

#[test]
fn without_a_gpu_asking_for_one_is_an_error_and_auto_says_why() {
    if has_gpu() {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let error = Classifier::<Ipv4Tuple>::builder().device(Device::Gpu).build().unwrap_err();
    assert!(matches!(error, Error::Gpu(_)), "{error}");
    let set = rules::<Ipv4Tuple>(3);
    let classifier = Classifier::builder().rule_set(set.clone()).device(Device::Auto).build().unwrap();
    assert!(classifier.device_note().is_some_and(|why| error.to_string().contains(&why)));
    assert!(classifier.fleet().is_none() && classifier.lookups().is_none());
    check(&classifier.reader(), &set, "on the CPU");
    check_pipeline(&classifier.reader(), &set, "on the CPU");
    // Nobody asked.
    assert!(Classifier::<Ipv4Tuple>::builder().build().unwrap().device_note().is_none());
}

/// Holds what a pipeline gives against the rules, batch by batch in order.
fn check_pipeline<T: RuleTuple>(reader: &RuleReader<T>, rules: &RuleSet<T>, what: &str) {
    let (oracle, all) = (Oracle::of(rules), tuples(rules));
    let mut found = vec![u32::MAX; 300];
    let mut pipeline = reader.pipeline();
    let mut batches = all.chunks(300);
    assert!(!pipeline.is_ready() && pipeline.next(&mut found).is_none());
    let mut taken = Vec::new();
    loop {
        while pipeline.under_way() < 3
            && let Some(batch) = batches.next()
        {
            pipeline.submit(batch);
        }
        let Some(tuples) = pipeline.next(&mut found) else { break };
        for (tuple, &found) in tuples.iter().zip(&found) {
            assert_eq!(found, oracle.lookup(tuple), "{what}: {tuple} in a pipeline");
        }
        taken.extend_from_slice(tuples);
    }
    assert_eq!(taken, all, "{what}: in order");
}

#[test]
fn a_classifier_on_a_gpu_follows_updates() {
    for engine in engines::<Ipv4Tuple>() {
        follows_updates::<Ipv4Tuple>(engine);
    }
    follows_updates::<OpenFlowTuple>(OpenFlowTuple::best_on_gpu(&RuleSet::new()));
}

fn follows_updates<T: RuleTuple>(engine: EngineName) {
    let Some((fleet, _)) = host::<T>() else { return };
    let mut set = rules::<T>(17);
    let what = format!("{engine} {}", T::NAME);
    let builder = Classifier::builder().rule_set(set.clone()).engine(engine).device(Device::Gpu);
    let mut classifier = builder.fleet(fleet).build().unwrap();
    assert_eq!(classifier.engine(), engine);
    assert!(classifier.fleet().is_some() && classifier.device_note().is_none());
    let reader = classifier.reader();
    check(&reader, &set, &what);
    for updates in churn(&set, 60, 7).chunks(60) {
        classifier.apply(updates).unwrap();
        updates.iter().for_each(|update| _ = set.apply(update).unwrap());
        check(&reader, &set, &what);
    }
    // Numbers get wider.
    let wide = RuleUpdate::Set(70_000, "dport=3 priority=9 action=8".parse().unwrap());
    classifier.apply(std::slice::from_ref(&wide)).unwrap();
    set.apply(&wide).unwrap();
    check(&reader.clone(), &set, &what);
    check_pipeline(&reader, &set, &what);
    let counts = classifier.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu == 0, "{what}: all of it on the GPU: {counts:?}");
}

/// A number is another rule's with every update. Batches on the GPU get the action of the rule that they
/// found all the same.
#[test]
fn numbers_that_change_hands_during_lookups_have_the_right_actions() {
    let Some((fleet, _)) = host::<Ipv4Tuple>() else { return };
    let mut classifier = Classifier::builder().device(Device::Gpu).fleet(fleet).build().unwrap();
    classifier.apply(&places(0)).unwrap();
    let rounds = change_places(&mut classifier, 50, 20);
    let mut found = [0; 2];
    let tuples = ["dport=1".parse().unwrap(), "dport=2".parse().unwrap()];
    classifier.reader().lookup_batch(&tuples, &mut found);
    assert_eq!(found, [1 + rounds % 2, 2 - rounds % 2]);
    let counts = classifier.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu == 0, "{counts:?}");
}

#[test]
fn a_gpu_that_is_lost_in_mid_run_costs_no_answer_and_one_warning() {
    let Some((fleet, switch)) = host::<OpenFlowTuple>() else { return };
    let set = rules::<OpenFlowTuple>(23);
    let builder = Classifier::builder().rule_set(set.clone()).device(Device::Gpu).fleet(fleet);
    let mut classifier = builder.build().unwrap();
    let reader = classifier.reader();
    let warnings = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(Warnings(Arc::clone(&warnings)), || {
        check(&reader, &set, "before");
        let (oracle, all) = (Oracle::of(&set), tuples(&set));
        let mut pipeline = reader.pipeline();
        pipeline.submit(&all[..300]);
        assert_eq!(warnings.load(Ordering::Relaxed), 0);
        switch.store(true, Ordering::Relaxed);
        pipeline.submit(&all[..300]);
        for _ in 0..2 {
            let mut found = vec![u32::MAX; 300];
            for (tuple, &found) in pipeline.next(&mut found).unwrap().iter().zip(&found) {
                assert_eq!(found, oracle.lookup(tuple), "{tuple} when the GPU was lost");
            }
        }
        check(&reader, &set, "after");
        check_pipeline(&reader, &set, "after");
    });
    assert_eq!(warnings.load(Ordering::Relaxed), 1);
    let counts = classifier.lookups().unwrap();
    assert!(counts.gpu > 0 && counts.cpu > 0, "{counts:?}");
    assert!(classifier.device_note().is_some_and(|note| !note.is_empty()));
    // And updates go on.
    let number = classifier.insert("in_port=9 priority=4294967295".parse().unwrap()).unwrap();
    let mut found = [0];
    reader.lookup_batch(&["in_port=9".parse().unwrap()], &mut found);
    assert_eq!(found, [number.get()]);
}

#[test]
fn slots_for_addresses_do_for_tuples() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let set = rules::<Ipv6Tuple>(25);
    let builder = Classifier::builder().rule_set(set.clone()).device(Device::Gpu).fleet(fleet);
    let classifier = builder.build().unwrap();
    check(&classifier.reader(), &set, "in narrow slots");
    assert_eq!(classifier.lookups().map(|counts| counts.cpu), Some(0));
}

#[test]
fn auto_keeps_small_batches_on_the_cpu_and_the_cpu_is_what_nobody_asked_otherwise_for() {
    let Some((fleet, _)) = host::<Ipv4Tuple>() else { return };
    let set = rules::<Ipv4Tuple>(29);
    let builder = || Classifier::builder().rule_set(set.clone()).fleet(fleet.clone());
    let classifier = builder().device(Device::Auto).latency_bound(Duration::from_secs(1)).build().unwrap();
    let oracle = Oracle::of(&set);
    let mut found = [0];
    for tuple in tuples(&set).chunks(1).take(100) {
        classifier.reader().lookup_batch(tuple, &mut found);
        assert_eq!(found[0], oracle.lookup(&tuple[0]));
    }
    assert_eq!(classifier.lookups().map(|counts| (counts.cpu, counts.gpu)), Some((100, 0)));
    let classifier = builder().build().unwrap();
    assert!(
        classifier.fleet().is_none() && classifier.lookups().is_none() && classifier.device_note().is_none()
    );
}
