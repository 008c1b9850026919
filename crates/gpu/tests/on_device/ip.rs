//! IP tables on GPUs that follow live ones: every answer is that of the live table, whatever happens to it
//! and to the GPU.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wirespeed_dir24::Dir24;
use wirespeed_fib::conformance::scattered;
use wirespeed_fib::conformance::tables::scattered_routes;
use wirespeed_fib::{
    Address, BuildOptions, Engine, Family, LiveTable, Lookup, NextHop, Prefix, Rib, Update, V4, V6,
};
use wirespeed_gpu::dispatch::{Meter, Policy, Use};
use wirespeed_gpu::ip::{InPlace, KeyBytes, Offload, Pipeline, Remote};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::{Fleet, GpuOptions};
use wirespeed_gpu::trip;
use wirespeed_image::device::OnDevice;

use crate::fleet::{fleet, losable, slots};

fn options() -> GpuOptions {
    slots([1 << 10, 1 << 14])
}

fn probes<A: Address>(rib: &Rib<A>) -> Vec<A> {
    let ends = rib.iter().flat_map(|(prefix, _)| [prefix.address(), prefix.last()]);
    ends.chain(scattered::<A>(500)).collect()
}

fn check<A: Address>(remote: &Remote<A>, rib: &Rib<A>, what: &str) {
    let probes = probes(rib);
    let mut found = vec![NextHop(u32::MAX); probes.len()];
    remote.lookup_batch(&probes, &mut found).expect("the GPU answers");
    for (&address, &found) in probes.iter().zip(&found) {
        let right = rib.longest_match(address).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
        assert_eq!(found, right, "{what}: {address}");
    }
}

fn follows<A: Address, E: Engine<A, Table: OnDevice + Lookup<A>>>(devices: usize) {
    let Some(fleet) = fleet(devices, &options()) else { return };
    let short = |len: u8| len.min(16);
    let routes = scattered_routes::<A>(300);
    let rib: Rib<A> = routes
        .iter()
        .map(|prefix| (Prefix::around(prefix.address(), short(prefix.len())), NextHop(3)))
        .collect();
    let mut live = LiveTable::<A, E>::new(rib, BuildOptions::default()).expect("it is built");
    let remote =
        Remote::upload(&fleet, &*live.reader().enter(), (live.reach(), &[])).expect("it is uploaded");
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    let narrow = remote.key_bytes();
    assert_eq!(narrow, KeyBytes::for_bits(A::FAMILY, live.reach()));
    check(&remote, live.model(), "as uploaded");
    // Longer prefixes, next hops that entries have no room for, and back to nothing.
    for (round, routes) in (0..).zip(routes.chunks(40)) {
        let next_hop = NextHop(1 + round * 100);
        let updates: Vec<_> = routes.iter().map(|&prefix| Update::announce(prefix, next_hop)).collect();
        live.apply(&updates).expect("it takes them");
        check(&remote, live.model(), "after announcements");
    }
    assert!(remote.key_bytes() >= narrow && remote.key_bytes().count() * 8 >= usize::from(live.reach()));
    let withdrawn: Vec<_> = live.model().iter().map(|(prefix, _)| Update::withdraw(prefix)).collect();
    for updates in withdrawn.chunks(100) {
        live.apply(updates).expect("it takes them");
        check(&remote, live.model(), "after withdrawals");
    }
    assert!(live.model().is_empty());
}

#[test]
fn a_table_on_one_device_follows_a_live_one() {
    follows::<V4, Dir24>(1);
}

#[test]
fn replicas_on_two_devices_follow_a_live_one() {
    follows::<V4, Dir24>(2);
}

/// All routes have the same next hop in every state, so a batch that sees two states shows it.
#[test]
fn batches_on_many_threads_see_one_state_each_while_updates_go_in() {
    let Some(fleet) = fleet(2, &options()) else { return };
    let routes: Vec<Prefix<V4>> = [(10, 8), (20, 16), (30, 20), (40, 24)]
        .map(|(octet, len)| Prefix::around(V4(octet << 24), len))
        .into();
    let at = |next_hop| routes.iter().map(move |&prefix| Update::announce(prefix, NextHop(next_hop)));
    let mut live = LiveTable::<V4, Dir24>::new(
        routes.iter().map(|&p| (p, NextHop(1))).collect(),
        BuildOptions::default(),
    )
    .expect("it is built");
    let remote =
        Remote::upload(&fleet, &*live.reader().enter(), (live.reach(), &[])).expect("it is uploaded");
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    let probes: Vec<V4> = routes.iter().flat_map(|p| [p.address(), p.last()]).cycle().take(997).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (remote, probes, stop) = (remote.clone(), &probes, &stop);
            scope.spawn(move || {
                let mut found = vec![NextHop::NONE; probes.len()];
                let mut batches = 0;
                while !stop.load(Ordering::Relaxed) || batches == 0 {
                    remote.lookup_batch(probes, &mut found).expect("the GPU answers");
                    assert!(found[0].is_some() && found.iter().all(|&n| n == found[0]), "two states");
                    batches += 1;
                }
            });
        }
        for round in 2..60 {
            // Now and then a rebuild, when entries get wider.
            let next_hop = if round == 30 { 1000 } else { round };
            live.apply(&at(next_hop).collect::<Vec<_>>()).expect("it takes them");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn keys_are_written_in_place_as_kinds_of_their_family() {
    let Some(fleet) = fleet(1, &options()) else { return };
    let (v4, v6) =
        (|kind, keys| takes::<V4>(&fleet, kind, keys), |kind, keys| takes::<V6>(&fleet, kind, keys));
    for bytes in [6, 8, 16] {
        let kind = KeyBytes::of(Family::V6, bytes);
        assert!(v6(kind, 10) && !v4(kind, 10), "{bytes} bytes");
        assert!(!v6(kind, 1 << 40), "more than the slot holds");
    }
    for bytes in [3, 4] {
        let kind = KeyBytes::of(Family::V4, bytes);
        assert!(v4(kind, 10) && !v6(kind, 10), "{bytes} bytes");
        assert!(!v4(kind, 1 << 40), "more than the slot holds");
    }
}

/// Whether a slot takes keys of a kind.
fn takes<A: Address>(fleet: &Fleet, kind: KeyBytes, keys: usize) -> bool {
    InPlace::<A>::new(fleet.batch(10).expect("a slot is free"), kind, keys).is_ok()
}

#[test]
fn keys_packed_before_a_longer_prefix_came_are_packed_again() {
    let Some(fleet) = fleet(1, &options()) else { return };
    let rib: Rib<V4> = [("10.0.0.0/24".parse().unwrap(), NextHop(1))].into_iter().collect();
    let mut live = LiveTable::<V4, Dir24>::new(rib, BuildOptions::default()).expect("it is built");
    let uploaded = Remote::<V4>::upload(&fleet, &*live.reader().enter(), (live.reach(), &[]));
    let remote = uploaded.expect("it is uploaded");
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    assert_eq!(remote.key_bytes().count(), 3);
    // Packed in three bytes and held back until the table takes only four.
    let addresses = [V4(0x0a00_0001), V4(0x0a00_0080)];
    let mut batch = remote.copies().fleet().batch(2).expect("a slot is free");
    let kind = KeyBytes::for_bits(V4::FAMILY, 24);
    wirespeed_gpu::ip::pack(&addresses, kind, batch.batch().keys_mut()).expect("there is room");
    live.apply(&[Update::announce("10.0.0.128/25".parse::<Prefix<V4>>().unwrap(), NextHop(2))]).unwrap();
    let done = batch.submit(remote.copies().table(), 3, 2).wait();
    assert!(done.results().is_err(), "narrow keys are refused");
    let mut found = [NextHop::NONE; 2];
    trip::results(&remote, done, &addresses, &mut found).expect("they are sent again");
    assert_eq!(found, [NextHop(1), NextHop(2)]);
}

#[test]
fn the_cpu_answers_for_a_device_that_is_lost() {
    let Some((fleet, switch)) = losable(&options()) else { return };
    let rib: Rib<V4> = scattered_routes::<V4>(500).into_iter().zip((1..200).cycle().map(NextHop)).collect();
    let mut live = LiveTable::<V4, Dir24>::new(rib, BuildOptions::default()).expect("it is built");
    let reader = live.reader();
    let remote = Remote::upload(&fleet, &*reader.enter(), (live.reach(), &[])).expect("it is uploaded");
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    let offload = Offload::new(remote, Use::Always, Meter::new(2, Duration::from_nanos(2)));
    let probes = probes(live.model());
    let expected: Vec<NextHop> = probes.iter().map(|&address| reader.enter().lookup(address)).collect();
    let lost = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (offload, reader, probes, expected) = (&offload, live.reader(), &probes, &expected);
            let (lost, switch) = (&lost, &switch);
            scope.spawn(move || {
                let batches: Vec<&[V4]> = probes.chunks(97 + thread).collect();
                let mut found = vec![NextHop::NONE; 200];
                for round in 0..30 {
                    if round == 10 && thread == 0 {
                        switch.store(true, Ordering::Relaxed);
                        lost.store(true, Ordering::Relaxed);
                    }
                    let mut pipeline = Pipeline::new(offload);
                    let mut at = 0;
                    let mut take = |pipeline: &mut Pipeline<'_, V4>| {
                        let keys = pipeline.next(&mut found, |keys, found| {
                            reader.enter().lookup_batch(keys, found);
                        });
                        let keys = keys.expect("one is under way");
                        assert_eq!(found[..keys.len()], expected[at..at + keys.len()], "in order and right");
                        at += keys.len();
                    };
                    for batch in &batches {
                        if pipeline.under_way() == 2 {
                            take(&mut pipeline);
                        }
                        pipeline.submit(batch);
                    }
                    while pipeline.under_way() > 0 {
                        take(&mut pipeline);
                    }
                    assert_eq!(at, probes.len());
                }
            });
        }
    });
    assert!(lost.load(Ordering::Relaxed) && offload.remote().copies().is_out().is_some());
    let counts = offload.counts();
    assert!(counts.gpu > 0 && counts.cpu > 0, "both had their share: {counts:?}");
    assert_eq!(counts.cpu + counts.gpu, 8 * 30 * probes.len() as u64);
    // The live table goes on without it.
    live.apply(&[Update::announce("10.0.0.0/8".parse::<Prefix<V4>>().unwrap(), NextHop(77))])
        .expect("it takes it");
    assert_eq!(
        reader.enter().lookup(V4(0x0aff_ffff)),
        live.model().longest_match(V4(0x0aff_ffff)).unwrap().1
    );
}

/// Batches of twice and of ten times what a slot holds, beside small ones, by several threads, until the
/// device is lost.
#[test]
fn a_batch_that_no_slot_holds_goes_in_parts() {
    let Some((fleet, switch)) = losable(&slots([1 << 6, 1 << 8])) else { return };
    let rib: Rib<V4> = scattered_routes::<V4>(300).into_iter().zip((1..200).cycle().map(NextHop)).collect();
    let live = LiveTable::<V4, Dir24>::new(rib, BuildOptions::default()).expect("it is built");
    let reader = live.reader();
    let remote = Remote::<V4>::upload(&fleet, &*reader.enter(), (live.reach(), &[])).expect("it is uploaded");
    let offload = Offload::new(remote, Use::Always, Meter::new(2, Duration::from_nanos(2)));
    let probes: Vec<V4> = probes(live.model()).into_iter().cycle().take(4000).collect();
    let right: Vec<NextHop> = probes.iter().map(|&address| reader.enter().lookup(address)).collect();
    let sizes = [3, 512, 1, 2560, 257, 667];
    let hold = || {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (offload, reader, probes, right) = (&offload, live.reader(), &probes, &right);
                scope.spawn(move || {
                    let mut pipeline = Pipeline::new(offload);
                    let mut rest = &probes[..];
                    for (at, size) in sizes.into_iter().enumerate() {
                        let part;
                        (part, rest) = rest.split_at(size);
                        pipeline.submit(part);
                        assert_eq!(pipeline.under_way(), at + 1);
                    }
                    assert!(rest.is_empty());
                    let (mut found, mut at) = (vec![NextHop::NONE; 4000], 0);
                    for size in sizes {
                        let on_cpu =
                            |keys: &[V4], found: &mut [NextHop]| reader.enter().lookup_batch(keys, found);
                        let keys = pipeline.next(&mut found, on_cpu).expect("one is under way");
                        assert_eq!(keys, &probes[at..at + size], "in order");
                        assert_eq!(found[..size], right[at..at + size]);
                        at += size;
                    }
                    assert!(pipeline.under_way() == 0 && !pipeline.is_ready());
                    assert!(pipeline.next(&mut found, |_, _| ()).is_none());
                });
            }
        });
    };
    hold();
    assert_eq!((offload.counts().gpu, offload.counts().cpu), (16_000, 0));
    switch.store(true, Ordering::Relaxed);
    hold();
    assert_eq!(offload.counts().gpu + offload.counts().cpu, 32_000);
    assert!(offload.counts().cpu > 0 && offload.remote().copies().is_out().is_some());
}

#[test]
fn by_load_small_batches_stay_on_the_cpu() {
    let Some(fleet) = fleet(1, &options()) else { return };
    let rib: Rib<V4> = [("0.0.0.0/0".parse().unwrap(), NextHop(1))].into_iter().collect();
    let live = LiveTable::<V4, Dir24>::new(rib, BuildOptions::default()).expect("it is built");
    let remote =
        Remote::<V4>::upload(&fleet, &*live.reader().enter(), (live.reach(), &[])).expect("it is uploaded");
    let meter = Meter::new(1, Duration::from_nanos(2));
    let offload = Offload::new(remote, Use::ByLoad(Policy::default()), meter);
    let (mut found, reader) = (vec![NextHop::NONE; 64], live.reader());
    for _ in 0..20 {
        let keys = scattered::<V4>(64);
        offload.lookup_batch(&keys, &mut found, |keys, found| reader.enter().lookup_batch(keys, found));
        assert!(found.iter().all(|&n| n == NextHop(1)));
    }
    assert_eq!(offload.counts().gpu, 0, "a few keys are soonest done here");
}
