//! Tables of names on GPUs that follow live ones: every answer is that of the live table, whatever happens to
//! it and to the GPU, and whichever way names travel.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirespeed_gpu::dispatch::{Meter, Use};

use wirespeed_gpu::names::{Offload, Pipeline, Remote, Wanted, pack, pack_ends, unpack, unpack_matches};
use wirespeed_gpu::offload::RemoteTable;
use wirespeed_gpu::runtime::{DeviceKeys, DeviceMemory, Gpu, GpuOptions, Way};
use wirespeed_image::Table;
use wirespeed_image::device::{Kind, OnDevice};
use wirespeed_namelookup::oracle::Oracle;
use wirespeed_namelookup::{
    Acta, BuildOptions, Engine, LiveNames, Lookup, Match, Name, NameBatch, NameBuf, NameDomain, NameTable,
    NameUpdate,
};

use crate::fleet::{fleet, losable, slots};

/// Slots for names of 32 bytes on average and matches.
fn options() -> GpuOptions {
    GpuOptions { key_bytes: 32, result_bytes: 8, ..slots([1 << 8, 1 << 12]) }
}

fn name(text: &str) -> NameBuf {
    NameBuf::new(text).expect("a name")
}

/// Entry `n` of the table, each the prefix of some others.
fn entry(n: u32) -> NameBuf {
    match n % 4 {
        0 => name(&format!("/com/site-{n}")),
        1 => name(&format!("/com/site-{}/www", n - 1)),
        2 => name(&format!("/org/{n}/a/b")),
        _ => name(&format!("/net/{}", "long".repeat((n % 30) as usize + 1))),
    }
}

/// Names beneath entries, and beside them.
fn probes() -> NameBatch {
    let below =
        |n: u32| [entry(n), name(&format!("{}/index.html", entry(n))), name(&format!("{}x", entry(n)))];
    let all: Vec<_> = (0..400).flat_map(below).chain([NameBuf::root()]).collect();
    all.iter().map(|name| &**name as &Name).collect()
}

fn right(table: &NameTable, names: &NameBatch) -> Vec<Match> {
    let oracle: Oracle = table.iter().collect();
    names.names().iter().map(|name| oracle.lookup(name)).collect()
}

fn check(remote: &Remote, table: &NameTable, what: &str) {
    let probes = probes();
    let right = right(table, &probes);
    let mut matches = vec![Match { result: 9, length: 9 }; probes.len()];
    remote.match_batch(probes.names(), &mut matches).expect("the GPU answers");
    assert_eq!(matches, right, "{what}");
    let mut results = vec![u32::MAX; probes.len()];
    remote.lookup_batch(probes.names(), &mut results).expect("the GPU answers");
    assert!(results.iter().zip(&right).all(|(found, right)| *found == right.result), "{what}");
}

fn follows<E: Engine<NameDomain, Table: OnDevice>>(devices: usize) {
    let Some(fleet) = fleet(devices, &options()) else { return };
    let table: NameTable = (0..300).map(|n| (entry(n), 1 + n % 200)).collect();
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let mut live = LiveNames::<E>::new(table.into(), options).expect("it is built");
    let sample = probes();
    let remote = Remote::upload(&fleet, &*live.reader().enter(), sample.names()).expect("it is uploaded");
    assert!(!remote.copies().calibration().measured.is_empty());
    live.follow(|_| Ok::<_, ()>(remote.follower())).expect("it follows");
    check(&remote, live.model().names(), "as uploaded");
    // Results that tables have no room for, the root, and back to nothing.
    for round in 0..8u32 {
        let result = 1 + round * 40_000;
        let inserts = (round * 50..round * 50 + 50).map(|n| NameUpdate::Insert(entry(n), result));
        let removes = (0..20).map(|n| NameUpdate::Remove(entry(round * 31 + n * 3)));
        let root = (round == 3).then(|| NameUpdate::Insert(NameBuf::root(), 5));
        let updates: Vec<_> = inserts.chain(removes).chain(root).collect();
        live.apply(&updates).expect("it takes them");
        check(&remote, live.model().names(), "after updates");
    }
    let all: Vec<_> = live.model().names().iter().map(|(name, _)| NameUpdate::Remove(name)).collect();
    for updates in all.chunks(150) {
        live.apply(updates).expect("it takes them");
        check(&remote, live.model().names(), "after removals");
    }
    assert!(live.model().names().is_empty());
}

#[test]
fn a_table_on_one_device_follows_a_live_one() {
    follows::<Acta>(1);
    follows::<wirespeed_namelookup::mata::Mata>(1);
}

#[test]
fn replicas_on_two_devices_follow_a_live_one() {
    follows::<Acta>(2);
}

/// A slot holds 4,096 names, and 128 KiB of them: fewer of these.
#[test]
fn a_batch_that_no_slot_holds_goes_in_parts() {
    let Some(fleet) = fleet(1, &options()) else { return };
    let table: NameTable = (0..300).map(|n| (entry(n), 1 + n % 200)).collect();
    let options = BuildOptions { seed: Some(1), ..BuildOptions::default() };
    let live = LiveNames::<Acta>::new(table.into(), options).expect("it is built");
    let probes = probes();
    let batch: NameBatch = (0..8).flat_map(|_| probes.names().iter()).collect();
    let one = right(live.model().names(), &probes);
    let remote = Remote::upload(&fleet, &*live.reader().enter(), probes.names()).expect("it is uploaded");
    let offload = Offload::new(remote, Use::Always, Meter::new(2, Duration::from_nanos(2)));
    let mut pipeline = Pipeline::<u32>::new(&offload);
    pipeline.submit(batch.names());
    pipeline.submit(probes.names());
    assert_eq!(pipeline.under_way(), 2);
    let mut found = vec![u32::MAX; batch.len()];
    for times in [8, 1] {
        let names = pipeline.next(&mut found, |_, _| panic!("the GPU answers")).expect("one is under way");
        assert_eq!(names.len(), times * one.len());
        for found in found[..names.len()].chunks(one.len()) {
            assert!(found.iter().zip(&one).all(|(&found, right)| found == right.result));
        }
    }
    assert!(pipeline.next(&mut found, |_, _| ()).is_none());
}

/// Each way, in both forms, while the table changes between batches: each batch sees the state that it was
/// sent in.
#[test]
fn every_way_over_patches_and_replacements() {
    let Some(driver) = crate::device::driver() else { return };
    let gpu = Gpu::start(driver, options()).expect("it starts");
    let mut names: NameTable = (0..300).map(|n| (entry(n), 1 + n % 200)).collect();
    let options = BuildOptions { seed: Some(1), results: 255, ..BuildOptions::default() };
    let (mut engine, mut table) = Acta::build(&names, &options).expect("it is built");
    names.track();
    let handle = gpu.upload(table.image(), |sections| table.programs(sections)).expect("it fits");
    let probes = probes();
    let mut under_way = VecDeque::new();
    for step in 0..18u32 {
        // The same sizes again and again, so that graphs are recorded and replayed.
        let part = probes.names().part(if step % 2 == 0 { 0..probes.len() } else { 40..97 });
        let wanted = if step % 4 < 2 { Wanted::Results } else { Wanted::Matches };
        let pack = if step % 5 == 4 { pack_ends } else { pack };
        let mut batch = gpu.batch(1 << 11).expect("the device is there");
        let form = pack(part, wanted, batch.keys_mut()).expect("there is room");
        let ticket = batch.submit_form_by(Way::ALL[(step / 6) as usize], &handle, form);
        let mut right = vec![Match::NONE; part.len()];
        table.match_batch(part, &mut right);
        under_way.push_back((ticket, handle.version(), wanted, right));
        if under_way.len() == 2 {
            let (ticket, version, wanted, right) = under_way.pop_front().expect("two");
            let done = ticket.wait();
            assert_eq!(done.version(), version);
            if wanted == Wanted::Matches {
                let mut found = vec![Match::NONE; right.len()];
                unpack_matches(done.results().expect("it is looked up"), &mut found);
                assert_eq!(found, right);
            } else {
                let mut found = vec![0; right.len()];
                unpack(done.results().expect("it is looked up"), done.result_bytes(), &mut found);
                assert!(found.iter().zip(&right).all(|(found, right)| *found == right.result));
            }
        }
        for n in 0..9 {
            let of = entry((step * 37 + n * 11) % 400);
            if n % 3 == 0 {
                names.remove(&of)
            } else {
                names.insert(&of, 1 + (step + n) % 200)
            };
        }
        let changed = names.take_changed();
        match engine.update(&table, &names, &changed) {
            Ok(patch) if step % 7 != 6 => {
                table.apply(&patch).expect("it fits its table");
                handle.patch(&patch).expect("it fits");
            }
            _ => {
                (engine, table) = Acta::build(&names, &options).expect("it is built");
                handle.replace(table.image(), |sections| table.programs(sections)).expect("it fits");
            }
        }
        names.forget_gone(changed);
    }
}

/// Names on the device already, in a stream that isn't the runtime's.
#[test]
#[allow(unsafe_code)]
fn names_that_are_on_the_device() {
    let Some(mut driver) = crate::device::driver() else { return };
    let probes = probes();
    let mut bytes = vec![0; wirespeed_gpu::names::bytes_of(probes.names())];
    let form = pack(probes.names(), Wanted::Matches, &mut bytes).expect("there is room");
    let stream = driver.stream().expect("a device has streams");
    let names = driver.alloc(&[form.bytes()]).expect("there is memory")[0];
    let results = driver.alloc_pinned(8 * probes.len()).expect("there is memory");
    // SAFETY: the source lives until the copy is waited for.
    unsafe { driver.copy_in(stream, names, bytes.as_ptr(), form.bytes()) }.expect("it is copied");
    driver.synchronize(stream).expect("it is copied");
    // SAFETY: the driver gave as many bytes, and the device doesn't use them yet.
    unsafe { results.host.write_bytes(0xff, results.len) };

    let gpu = Gpu::start(driver, options()).expect("it starts");
    let table: NameTable = (0..300).map(|n| (entry(n), 1 + n)).collect();
    let (_, built) = Acta::build(&table, &BuildOptions::default()).expect("it is built");
    let handle = gpu.upload(built.image(), |sections| built.programs(sections)).expect("it fits");
    let second = names.plus(form.second().expect("names have two parts") as u64);
    let Kind::Named(kind) = form.kind() else { unreachable!("names are keys of any length") };
    let keys = DeviceKeys::parts(kind, names, Some(second), form.count()).with_results_of(8);
    let memory = DeviceMemory { at: results.device, bytes: results.len };
    // SAFETY: names and results were taken for as many, both stay until the driver ends, and nobody else uses
    // the stream.
    let sent = unsafe { gpu.lookup_on(&handle, stream, keys, memory) };
    assert_eq!(sent.expect("it is sent").result_bytes, 8);
    handle.settle().expect("the device is there");
    let until = Instant::now() + Duration::from_secs(30);
    let mut found = vec![Match::NONE; probes.len()];
    loop {
        // SAFETY: as many bytes as the driver gave; what the device is writing meanwhile is read again.
        let bytes = unsafe { std::slice::from_raw_parts(results.host, results.len) };
        unpack_matches(bytes, &mut found);
        if found.iter().all(|found| found.result != u32::MAX) || Instant::now() > until {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(found, right(&table, &probes));
}

#[test]
fn the_cpu_answers_for_a_device_that_is_lost_and_for_names_that_no_slot_holds() {
    let Some((fleet, switch)) = losable(&options()) else { return };
    let names: NameTable = (0..300).map(|n| (entry(n), 1 + n)).collect();
    let (_, table) = Acta::build(&names, &BuildOptions::default()).expect("it is built");
    let sample = probes();
    let remote = Remote::upload(&fleet, &table, sample.names()).expect("it is uploaded");
    let offload = Offload::new(remote, Use::Always, Meter::measured(1, 1000, Duration::from_micros(100)));
    let hold = |probes: &NameBatch| {
        let mut found = vec![Match::NONE; probes.len()];
        offload.lookup_batch(probes.names(), &mut found, |names, found| table.match_batch(names, found));
        assert_eq!(found, right(&names, probes));
        let mut results = vec![0; probes.len()];
        offload.lookup_batch(probes.names(), &mut results, |names, found| table.lookup_batch(names, found));
        assert!(results.iter().zip(&found).all(|(result, found)| *result == found.result));
    };
    hold(&sample);
    assert_eq!(offload.counts().gpu, 2 * sample.len() as u64);

    // Groups of 64 KiB and more go with an end each, in several batches; a name that is longer than the
    // largest slot stays here.
    let long = |len: usize| name(&format!("/com/site-8/{}", "y".repeat(len)));
    let some: Vec<_> = (0..70).map(|n| long(2000 + n * 10)).collect();
    hold(&some.iter().map(|name| &**name as &Name).collect());
    assert_eq!(offload.counts().cpu, 0);
    let huge = long(200_000);
    hold(&[&*huge, &*entry(3)].into_iter().collect());
    assert_eq!(offload.counts().cpu, 4);

    switch.store(true, Ordering::Relaxed);
    hold(&sample);
    hold(&sample);
    assert!(offload.remote().copies().is_out().is_some());
    assert!(offload.counts().cpu >= 4 + 3 * sample.len() as u64);
}
