//! Tables of rules on GPUs that follow live ones: every answer is that of the live table, whatever happens to
//! it and to the GPU, and however wide its numbers get.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::conformance::probes::around;
use wirespeed_classify::conformance::sets::classes;
use wirespeed_classify::linear::Linear;
use wirespeed_classify::oracle::{Expected, Right};
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::{
    BuildOptions, Engine, LiveRules, Lookup, OpenFlowTuple, RuleSet, RuleUpdate, Tuple,
};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_gpu::classify::{Offload, Pipeline, Remote};
use wirespeed_gpu::dispatch::{Meter, Use};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::GpuOptions;
use wirespeed_image::device::OnDevice;

use crate::fleet::{fleet, losable, slots};

/// Slots for tuples of 37 bytes.
fn options() -> GpuOptions {
    GpuOptions { key_bytes: 37, ..slots([1 << 8, 1 << 12]) }
}

fn seeded() -> BuildOptions {
    BuildOptions { seed: Some(1), ..BuildOptions::default() }
}

fn check<T: Tuple>(remote: &Remote<T>, rules: &RuleSet<T>, what: &str) {
    let probes = around(rules, 300);
    let right = Expected::of(rules);
    let mut found = vec![u32::MAX; probes.len()];
    remote.lookup_batch(&probes, &mut found).expect("the GPU answers");
    for (tuple, &found) in probes.iter().zip(&found) {
        assert_eq!(found, right.right(tuple), "{what}: {tuple}");
    }
}

fn follows<T: Tuple, E: Engine<T, Table: OnDevice>>(devices: usize) {
    let Some(fleet) = fleet(devices, &options()) else { return };
    let rules: RuleSet<T> = classes(&mut Rng::new(5), 30, 200);
    let pool: RuleSet<T> = classes(&mut Rng::new(6), 60, 400);
    let mut live = LiveRules::<T, E>::new(rules, seeded()).expect("it is built");
    let sample = around(live.model(), 100);
    let remote = Remote::upload(&fleet, &*live.reader().enter(), &sample).expect("it is uploaded");
    assert!(!remote.copies().calibration().measured.is_empty());
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    check(&remote, live.model(), "as uploaded");
    // Numbers of 1, 2 and 4 bytes, a rule that matches all, and back to nothing.
    let pooled: Vec<_> = pool.iter().map(|(_, rule)| rule.clone()).collect();
    for round in 0..8u32 {
        let some = pooled.iter().cycle().skip(50 * round as usize).take(50).cloned();
        let numbers = (1 + round * 11_000)..;
        let sets = numbers.zip(some).map(|(number, rule)| RuleUpdate::Set(number, rule));
        let removes = (0..20).map(|n| RuleUpdate::Remove(1 + (round * 31 + n * 3) % 200));
        let updates: Vec<_> = sets.chain(removes).collect();
        live.apply(&updates).expect("it takes them");
        check(&remote, live.model(), "after updates");
    }
    assert!(live.model().last_number() > 65_535);
    let all: Vec<_> =
        live.model().sorted().into_iter().map(|(number, _)| RuleUpdate::Remove(number.get())).collect();
    for updates in all.chunks(150) {
        live.apply(updates).expect("it takes them");
        check(&remote, live.model(), "after removals");
    }
    assert!(live.model().is_empty());
}

#[test]
fn a_table_on_one_device_follows_a_live_one() {
    follows::<OpenFlowTuple, Linear<_>>(1);
    follows::<OpenFlowTuple, BloomSearch<_>>(1);
    follows::<OpenFlowTuple, Quilt<_>>(1);
}

#[test]
fn replicas_on_two_devices_follow_a_live_one() {
    follows::<wirespeed_classify::Ipv4Tuple, Linear<_>>(2);
}

#[test]
fn the_cpu_answers_for_a_device_that_is_lost() {
    let Some((fleet, switch)) = losable(&options()) else { return };
    let rules: RuleSet<OpenFlowTuple> = classes(&mut Rng::new(5), 30, 200);
    let (_, table) = Linear::<OpenFlowTuple>::build(&rules, &seeded()).expect("it is built");
    let probes = around(&rules, 100);
    let expected = Expected::of(&rules);
    let right: Vec<u32> = probes.iter().map(|tuple| expected.right(tuple)).collect();
    let remote = Remote::upload(&fleet, &table, &probes).expect("it is uploaded");
    let offload = Offload::new(remote, Use::Always, Meter::measured(1, 1000, Duration::from_micros(100)));
    let hold = || {
        let mut found = vec![u32::MAX; probes.len()];
        offload.lookup_batch(&probes, &mut found, |tuples, found| table.lookup_batch(tuples, found));
        assert_eq!(found, right);
        let mut pipeline = Pipeline::new(&offload);
        probes.chunks(97).for_each(|part| pipeline.submit(part));
        for part in right.chunks(97) {
            let mut found = vec![u32::MAX; 97];
            pipeline.next(&mut found, |tuples, found| table.lookup_batch(tuples, found)).expect("under way");
            assert_eq!(found[..part.len()], *part);
        }
    };
    hold();
    assert_eq!((offload.counts().gpu, offload.counts().cpu), (2 * probes.len() as u64, 0));
    switch.store(true, Ordering::Relaxed);
    hold();
    hold();
    assert!(offload.remote().copies().is_out().is_some());
    assert!(offload.counts().cpu >= 3 * probes.len() as u64);
}
