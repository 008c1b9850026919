//! The runtime over a device that runs its work in any order that is allowed, and fails on demand (`fake`).
//!
//! Tables are gathered from. Where states are told apart all elements of a table are its version, so that a batch is right
//! when all its results are the version that it says it saw.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

mod fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fake::{Control, Fake};
use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::DevicePtr;
use wirespeed_gpu::program::{Program, Sections};
use wirespeed_gpu::runtime::{
    Done, Fleet, Gpu, GpuOptions, Planes, SlotSize, Submitter, TableHandle, Ticket, Transfer, Tuning, Way,
};
use wirespeed_image::{Image, ImageBuilder, Patch, PatchBuilder, SectionId};

const E: SectionId = SectionId(0);
const LEN: u32 = 256;

fn options() -> GpuOptions {
    GpuOptions {
        slots: vec![SlotSize { slots: 4, keys: 1000 }],
        spin: Duration::from_micros(20),
        timeout: Duration::from_secs(20),
        staging_bytes: 300,
        patch_writes: 100,
        ..GpuOptions::default()
    }
}

fn start(seed: u64) -> (Gpu, Arc<Control>) {
    start_with(seed, options())
}

fn start_with(seed: u64, options: GpuOptions) -> (Gpu, Arc<Control>) {
    let (driver, control) = Fake::start(seed, 1 << 24);
    (Gpu::start(driver, options).unwrap(), control)
}

/// A table of four-byte elements.
fn image(element: impl Fn(u32) -> u32) -> Image {
    let mut image = ImageBuilder::new("gather", 1).section::<u32>("e", LEN.into()).build(None).unwrap();
    for (at, to) in (0..).zip(image.section_mut::<u32>(E).unwrap()) {
        *to = element(at);
    }
    image
}

#[expect(clippy::unnecessary_wraps, reason = "as `upload` takes it")]
fn gather(sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
    Ok(vec![Program::new("gather", "gather_w4", &[sections.at(E).0, u64::from(LEN - 1)], 4)])
}

/// A patch that makes all elements the same.
fn all(value: u64) -> Patch {
    let mut patch = PatchBuilder::new();
    (0..LEN.into()).for_each(|at| patch.set(E, at, value));
    patch.finish(None)
}

fn keys(seed: u32, count: usize) -> Vec<u32> {
    (0..u32::try_from(count).unwrap()).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b1)).collect()
}

fn send(gpu: &Gpu, table: &TableHandle, keys: &[u32], way: Option<Way>) -> Ticket {
    let mut batch = gpu.batch(keys.len()).unwrap();
    batch.keys_mut()[..4 * keys.len()].copy_from_slice(bytemuck::cast_slice(keys));
    match way {
        Some(way) => batch.submit_by(way, table, 4, keys.len()),
        None => batch.submit(table, 4, keys.len()),
    }
}

fn results(done: &Done) -> Vec<u32> {
    assert_eq!(done.results().unwrap().len(), done.count() * done.result_bytes());
    done.results().unwrap().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Panics unless all results are the version that the batch saw.
fn check_version(done: &Done) {
    let version = u32::try_from(done.version()).unwrap();
    let results = results(done);
    assert!(results.iter().all(|&result| result == version), "version {version}: {results:?}");
}

fn within(limit: Duration, what: impl FnOnce()) {
    let began = Instant::now();
    what();
    assert!(began.elapsed() < limit, "took {:?}", began.elapsed());
}

fn way(round: u64) -> Option<Way> {
    ANY[usize::try_from(round % 4).unwrap()]
}

const ANY: [Option<Way>; 4] = [None, Some(Way::Copies), Some(Way::Mapped), Some(Way::Graphs)];

#[test]
fn every_way_of_moving_data_gives_each_key_its_result() {
    for seed in 0..20 {
        let (gpu, control) = start(seed);
        control.is_silent.store(seed % 4 == 3, Ordering::SeqCst);
        let table = gpu.upload(&image(|i| i * 7), gather).unwrap();
        for round in 0..30u32 {
            let way = ANY[round as usize % 4];
            let sizes = [0, 1, 7, 8, 999, 1000, 33];
            for &count in &sizes {
                let keys = keys(round, count);
                let done = send(&gpu, &table, &keys, way).wait();
                let right: Vec<u32> = keys.iter().map(|key| (key & (LEN - 1)) * 7).collect();
                assert_eq!(results(&done), right, "{way:?}, {count} keys");
                assert_eq!(&done.keys()[..4 * count], bytemuck::cast_slice::<u32, u8>(&keys));
            }
        }
        assert!(control.replays.load(Ordering::SeqCst) > 0, "graphs were replayed");
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn batches_of_a_submitter_come_back_in_order() {
    let (gpu, control) = start(1);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let mut submitter = Submitter::new(&gpu);
    let mut came = Vec::new();
    for count in 1..=200usize {
        let mut batch = submitter.batch(count, |done| came.push(done.count())).unwrap();
        batch.keys_mut()[..4 * count].copy_from_slice(bytemuck::cast_slice(&keys(0, count)));
        submitter.submit(batch, &table, 4, count);
        if count % 9 == 0 {
            came.extend(submitter.try_next().map(|done| done.count()));
        }
    }
    assert!(submitter.under_way() > 0);
    while let Some(done) = submitter.next() {
        came.push(done.count());
    }
    assert_eq!(came, (1..=200).collect::<Vec<_>>());
    drop((gpu, table, submitter));
    control.check_ended();
}

#[test]
fn two_planes_lie_where_the_kernel_looks() {
    let (gpu, control) = start(2);
    let table = gpu.upload(&image(|i| i + 1), gather).unwrap();
    for way in ANY {
        for count in [1, 5, 8, 1000] {
            let mut batch = gpu.batch(count).unwrap();
            let (high, low) = batch.planes_mut(6, count);
            assert_eq!((high.len(), low.len()), (4 * count, 2 * count));
            high.copy_from_slice(bytemuck::cast_slice(&keys(3, count)));
            let second: Vec<u16> = (0..count).map(|i| u16::try_from((i * 31) & 0xffff).unwrap()).collect();
            low.copy_from_slice(bytemuck::cast_slice(&second));
            let ticket = match way {
                Some(way) => batch.submit_by(way, &table, 6, count),
                None => batch.submit(&table, 6, count),
            };
            let right: Vec<u32> = keys(3, count)
                .iter()
                .zip(&second)
                .map(|(&high, &low)| ((high ^ u32::from(low)) & (LEN - 1)) + 1)
                .collect();
            assert_eq!(results(&ticket.wait()), right);
        }
    }
    assert!(Planes::of(6).low(5).is_some());
    control.check();
}

#[test]
fn who_asks_for_one_slot_too_many_waits() {
    let (gpu, control) = start(3);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let mut held: Vec<_> = (0..4).map(|_| gpu.batch(10).unwrap()).collect();
    assert!(gpu.try_batch(10).unwrap().is_none());
    let soon = Instant::now() + Duration::from_millis(20);
    assert!(gpu.batch_until(10, soon).unwrap().is_none() && Instant::now() >= soon);
    let waits = {
        let gpu = gpu.clone();
        std::thread::spawn(move || gpu.batch(10).map(drop))
    };
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waits.is_finished());
    let done = held.pop().unwrap().submit(&table, 4, 10).wait();
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waits.is_finished(), "results that are being read keep the slot");
    drop(done);
    waits.join().unwrap().unwrap();
    drop((gpu, table, held));
    control.check_ended();
}

#[test]
fn a_batch_gets_the_smallest_slot_that_holds_it() {
    let sizes = vec![
        SlotSize { slots: 1, keys: 1000 },
        SlotSize { slots: 1, keys: 10 },
        SlotSize { slots: 0, keys: 5 },
    ];
    let (gpu, _control) = start_with(4, GpuOptions { slots: sizes, ..options() });
    assert_eq!(gpu.largest_batch(), 1000);
    let small = gpu.batch(3).unwrap();
    assert_eq!(small.capacity(), 10);
    let large = gpu.batch(3).unwrap();
    assert_eq!(large.capacity(), 1000, "the small one is lent");
    assert!(gpu.try_batch(11).unwrap().is_none());
    drop(small);
    assert!(gpu.try_batch(11).unwrap().is_none());
    assert_eq!(gpu.batch(1001).err(), Some(GpuError::TooManyKeys { asked: 1001, most: 1000 }));
}

#[test]
fn what_does_not_fit_is_an_error_of_that_batch_alone() {
    let (gpu, control) = start(5);
    let (other, _) = start(6);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let foreign = other.upload(&image(|i| i), gather).unwrap();
    let error = |ticket: Ticket| ticket.wait().results().unwrap_err().clone();
    let batch = || gpu.batch(1).unwrap();
    assert_eq!(error(batch().submit(&table, 4, 1001)), GpuError::TooManyKeys { asked: 1001, most: 1000 });
    assert_eq!(
        error(batch().submit(&table, 4, usize::MAX)),
        GpuError::TooManyKeys { asked: usize::MAX, most: 1000 }
    );
    assert_eq!(error(batch().submit(&table, 17, 1)), GpuError::TooWide { what: "keys", asked: 17, most: 16 });
    assert_eq!(error(batch().submit(&foreign, 4, 1)), GpuError::OtherDevice);
    assert_eq!(error(batch().submit(&table, 8, 1)), GpuError::NoKernel("gather_w4_k8".into()));
    control.refuse_launch.store(1, Ordering::SeqCst);
    let refused = error(send(&gpu, &table, &keys(0, 100), Some(Way::Copies)));
    assert!(matches!(refused, GpuError::Call { .. }), "{refused}");
    let keys = keys(0, 100);
    assert_eq!(results(&send(&gpu, &table, &keys, None).wait()).len(), 100);
    assert_eq!(gpu.load(), 0);
    drop((gpu, table));
    control.check_ended();
}

#[test]
fn sixty_four_threads_share_four_slots() {
    let (gpu, control) = start(7);
    let table = gpu.upload(&image(|i| i ^ 0x55), gather).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..64u32 {
            let (gpu, table) = (&gpu, &table);
            scope.spawn(move || {
                let mut submitter = Submitter::new(gpu);
                let mut next = 0;
                let mut check = |done: Done| {
                    let right: Vec<u32> = keys(thread * 100 + next, done.count())
                        .iter()
                        .map(|key| key & (LEN - 1) ^ 0x55)
                        .collect();
                    assert_eq!(results(&done), right);
                    next += 1;
                };
                for round in 0..20u32 {
                    let count = ((thread * 31 + round * 7) % 50) as usize;
                    let mut batch = submitter.batch(count, &mut check).unwrap();
                    batch.keys_mut()[..4 * count]
                        .copy_from_slice(bytemuck::cast_slice(&keys(thread * 100 + round, count)));
                    match ANY[(round % 4) as usize] {
                        Some(way) => submitter.submit_by(way, batch, table, 4, count),
                        None => submitter.submit(batch, table, 4, count),
                    }
                }
                while let Some(done) = submitter.next() {
                    check(done);
                }
                assert_eq!(next, 20);
            });
        }
    });
    assert_eq!(gpu.load(), 0);
    drop((gpu, table));
    control.check_ended();
}

#[test]
fn every_batch_sees_the_state_between_the_patches_around_it() {
    for seed in 0..60 {
        let (gpu, control) = start(seed);
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        let mut under_way = std::collections::VecDeque::new();
        for round in 0..40u64 {
            let count = 1 + (round * 97 % 300) as usize;
            if under_way.len() == 4 {
                let (version, ticket): (u64, Ticket) = under_way.pop_front().unwrap();
                let done = ticket.wait();
                assert_eq!(done.version(), version);
                check_version(&done);
            }
            under_way.push_back((table.version(), send(&gpu, &table, &keys(1, count), way(round))));
            let next = table.version() + 1;
            match round % 5 {
                0 => {}
                1 => assert_eq!(table.patch_one_by_one(&all(next)).unwrap(), next),
                2 => {
                    // Two of which nobody sees the first.
                    table.patch(&all(999_999)).unwrap();
                    table.patch(&all(next + 1)).unwrap();
                }
                _ => assert_eq!(table.patch(&all(next)).unwrap(), next),
            }
        }
        table.settle().unwrap();
        for (version, ticket) in under_way {
            let done = ticket.wait();
            assert_eq!(done.version(), version);
            check_version(&done);
        }
        check_version(&send(&gpu, &table, &keys(1, 300), None).wait());
        drop((gpu, table));
        control.check_ended();
    }
}

/// Whether a batch comes back in a while that is long for this device.
fn comes(ticket: Ticket) -> Result<Done, Ticket> {
    ticket.wait_until(Instant::now() + Duration::from_millis(50))
}

#[test]
fn a_kernel_that_says_that_it_is_done_is_believed_before_its_event() {
    for seed in 0..10 {
        let (gpu, control) = start(seed);
        let table = gpu.upload(&image(|i| i * 3), gather).unwrap();
        control.holds_ends.store(true, Ordering::SeqCst);
        // Each in a slot of its own: behind what doesn't end there is nothing done.
        let mut came = Vec::new();
        for (round, count) in (0..).zip([1, 100, 999, 1000]) {
            let done = comes(send(&gpu, &table, &keys(round, count), Some(Way::Mapped))).expect("it is said");
            let right: Vec<u32> = keys(round, count).iter().map(|key| (key & (LEN - 1)) * 3).collect();
            assert_eq!(results(&done), right);
            came.push(done);
        }
        drop(came);
        assert_eq!(gpu.load(), 0);
        control.holds_ends.store(false, Ordering::SeqCst);
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn what_has_not_announced_its_end_waits_for_its_event() {
    for way in [Way::Copies, Way::Graphs, Way::Mapped] {
        let (gpu, control) =
            start_with(30, GpuOptions { slots: vec![SlotSize { slots: 1, keys: 4000 }], ..options() });
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        // Its mark stays where the next one's is to come.
        let before = send(&gpu, &table, &keys(0, 100), Some(Way::Mapped)).wait();
        assert_eq!(results(&before).len(), 100);
        drop(before);
        // Several blocks announce nothing.
        let count = if way == Way::Mapped { 4000 } else { 100 };
        control.holds_ends.store(true, Ordering::SeqCst);
        let ticket = comes(send(&gpu, &table, &keys(1, count), Some(way))).expect_err("no event comes");
        control.holds_ends.store(false, Ordering::SeqCst);
        let right: Vec<u32> = keys(1, count).iter().map(|key| key & (LEN - 1)).collect();
        assert_eq!(results(&ticket.wait()), right);
        // And one of one block that should but doesn't.
        control.is_silent.store(true, Ordering::SeqCst);
        control.holds_ends.store(true, Ordering::SeqCst);
        let ticket = comes(send(&gpu, &table, &keys(2, 100), Some(Way::Mapped))).expect_err("no event comes");
        control.holds_ends.store(false, Ordering::SeqCst);
        assert_eq!(results(&ticket.wait()).len(), 100);
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn a_table_stays_until_the_kernels_that_read_it_have_ended() {
    let (gpu, control) = start(31);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let other = gpu.upload(&image(|i| i), gather).unwrap();
    let both = gpu.usage().tables;
    control.holds_ends.store(true, Ordering::SeqCst);
    let announced = [&table, &table, &other].map(|table| send(&gpu, table, &keys(0, 50), Some(Way::Mapped)));
    let announced = announced.map(|ticket| comes(ticket).expect("it is said"));
    drop(table);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(gpu.usage().tables, both, "the kernels have not ended");
    control.holds_ends.store(false, Ordering::SeqCst);
    within(Duration::from_secs(10), || {
        while gpu.usage().tables != both / 2 {
            std::thread::yield_now();
        }
    });
    drop((announced, gpu, other));
    control.check_ended();
}

#[test]
fn what_a_kernel_uses_stays_until_it_has_ended_even_at_the_end() {
    for seed in 0..10 {
        let (gpu, control) = start(seed);
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        control.holds_ends.store(true, Ordering::SeqCst);
        drop(comes(send(&gpu, &table, &keys(0, 50), Some(Way::Mapped))).expect("it is said"));
        let releases = {
            let control = Arc::clone(&control);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(10));
                let has_ended = control.has_ended();
                control.holds_ends.store(false, Ordering::SeqCst);
                has_ended
            })
        };
        drop((gpu, table));
        assert!(!releases.join().unwrap(), "the device ends before its work does");
        control.check_ended();
    }
}

#[test]
fn patches_that_nobody_looks_between_go_together() {
    let (gpu, control) = start_with(8, GpuOptions { patch_writes: 1000, ..options() });
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    control.hangs.store(true, Ordering::SeqCst);
    // The owner waits for the stages of this one, and the others gather behind it.
    for _ in 0..3 {
        table.patch(&all(1)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    for version in 4..=20 {
        table.patch(&all(version)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    control.hangs.store(false, Ordering::SeqCst);
    let done = send(&gpu, &table, &keys(0, 50), None).wait();
    assert_eq!(done.version(), 20);
    check_version(&done);
    assert!(control.launched("patch") <= 8, "{} launches for 20 patches", control.launched("patch"));
    control.check();
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let (gpu, control) = start(9);
    let left_out = GpuOptions { leave_out: vec!["notes".into()], ..options() };
    drop(gpu);
    let (gpu, _) = { (start_with(9, left_out).0, control) };
    let with_notes = image(|_| 0).with_attachment("notes", &[1; 1000]).unwrap();
    let table = gpu.upload(&with_notes, gather).unwrap();
    assert!(gpu.usage().tables < 4 * 256 + 1000, "notes stay behind");
    for (section, index, value) in [(0, u64::from(LEN), 0), (0, 0, 1 << 32), (1, 0, 0), (2, 0, 0)] {
        let mut patch = PatchBuilder::new();
        patch.set(SectionId(0), 1, 77);
        patch.set(SectionId(section), index, value);
        assert!(matches!(table.patch(&patch.finish(None)), Err(GpuError::Patch(_))));
    }
    assert_eq!(table.version(), 0);
    table.settle().unwrap();
    check_version(&send(&gpu, &table, &keys(1, 300), None).wait());
}

#[test]
fn replacing_and_patching_never_stop_or_mislead_lookups() {
    for seed in 0..6 {
        let (gpu, control) = start(100 + seed);
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        let (stop, checked) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..6u32 {
                let (gpu, table, stop, checked) = (&gpu, &table, &stop, &checked);
                scope.spawn(move || {
                    let mut last = 0;
                    let mut round = 0;
                    while !stop.load(Ordering::SeqCst) {
                        let way = ANY[((thread + round) % 4) as usize];
                        let before = table.version();
                        let done = send(gpu, table, &keys(thread, 40 + thread as usize), way).wait();
                        check_version(&done);
                        assert!(done.version() >= last.max(before) && done.version() <= table.version() + 1);
                        last = done.version();
                        round += 1;
                        checked.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            for round in 1..=60u64 {
                let version = if round % 3 == 0 {
                    let value = u32::try_from(table.version() + 1).unwrap();
                    table.replace(&image(|_| value), gather).unwrap()
                } else {
                    table.patch(&all(table.version() + 1)).unwrap()
                };
                assert_eq!(version, round);
            }
            let so_far = checked.load(Ordering::SeqCst);
            // A thread that found something wrong counts no more.
            let patience = Instant::now() + Duration::from_secs(20);
            while checked.load(Ordering::SeqCst) < so_far + 50 && Instant::now() < patience {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert_eq!(gpu.usage().tables, 4 * 256 + 256, "one copy is left");
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn dropping_anything_in_mid_flight_leaves_nothing_behind() {
    for seed in 0..40 {
        let (gpu, control) = start(seed);
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        let way = way(seed);
        drop(gpu.batch(10).unwrap());
        drop(send(&gpu, &table, &keys(1, 500), way));
        let kept = send(&gpu, &table, &keys(2, 500), way);
        let unsent = gpu.batch(10).unwrap();
        table.patch(&all(1)).unwrap();
        let gone = send(&gpu, &table, &keys(3, 500), way);
        match seed % 3 {
            0 => {
                drop((table, gpu, unsent, gone));
                assert!(!control.has_ended(), "a ticket keeps the device up");
                let done = kept.wait();
                assert_eq!(results(&done).len(), 500);
                drop(done);
            }
            1 => drop((gone, kept, unsent, table, gpu)),
            _ => drop((gpu, table, gone, kept, unsent)),
        }
        control.check_ended();
    }
}

#[test]
fn a_ticket_can_be_waited_for_in_parts() {
    let (gpu, control) = start(10);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    control.hangs.store(true, Ordering::SeqCst);
    let ticket = send(&gpu, &table, &keys(0, 10), None);
    assert!(!ticket.is_done());
    let ticket = ticket.try_wait().err().unwrap();
    let soon = Instant::now() + Duration::from_millis(10);
    let ticket = ticket.wait_until(soon).err().unwrap();
    assert!(Instant::now() >= soon);
    control.hangs.store(false, Ordering::SeqCst);
    let done = ticket.wait_until(Instant::now() + Duration::from_secs(10)).ok().unwrap();
    assert_eq!(done.results().unwrap().len(), 40);
    let again = done.into_batch().unwrap().submit(&table, 4, 3);
    while !again.is_done() {
        std::thread::yield_now();
    }
    assert_eq!(again.try_wait().ok().unwrap().count(), 3);
}

#[test]
fn a_lost_device_ends_every_ticket_and_leaves_its_keys() {
    // From hardly up to in the middle of things.
    for calls in (0..400).step_by(3) {
        let (gpu, control) = start(calls);
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        control.lose_after(calls);
        within(Duration::from_secs(10), || {
            let mut tickets = Vec::new();
            let mut lost = false;
            for round in 0..100usize {
                match gpu.batch(100) {
                    Ok(mut batch) => {
                        batch.keys_mut()[..400].copy_from_slice(bytemuck::cast_slice(&keys(7, 100)));
                        tickets.push(batch.submit(&table, 4, 100));
                    }
                    Err(error) => lost |= error.is_fatal(),
                }
                lost |= table.patch(&all(table.version() + 1)).is_err();
                if tickets.len() == 3 || lost {
                    for ticket in tickets.drain(..) {
                        let done = ticket.wait();
                        assert_eq!(&done.keys()[..400], bytemuck::cast_slice::<u32, u8>(&keys(7, 100)));
                        match done.results() {
                            Ok(_) => check_version(&done),
                            Err(error) => {
                                assert!(matches!(error, GpuError::Lost(_)), "{error}");
                                lost = true;
                            }
                        }
                    }
                }
                if lost {
                    break;
                }
                assert!(round < 99, "the device was to be lost after {calls} calls");
            }
            // From now on at once, everything.
            assert!(matches!(gpu.lost(), Some(GpuError::Lost(_))));
            assert!(gpu.batch(1).is_err() && gpu.try_batch(1).is_err());
            assert!(table.patch(&all(1)).is_err() && table.settle().is_err());
            assert!(table.replace(&image(|_| 1), gather).is_err());
            assert!(gpu.upload(&image(|_| 1), gather).is_err());
            assert!(gpu.calibrate(&table, 4).is_err() && gpu.tune(&table, 4).is_err());
            assert_eq!(gpu.load(), 0);
        });
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn a_batch_that_was_lent_before_the_loss_ends_with_it() {
    let (gpu, control) = start(11);
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    let mut early = gpu.batch(10).unwrap();
    early.keys_mut()[..4].copy_from_slice(&[1, 2, 3, 4]);
    control.lose_after(0);
    assert!(table.settle().is_err());
    let done = early.submit(&table, 4, 10).wait();
    assert!(matches!(done.results(), Err(GpuError::Lost(_))));
    assert_eq!(done.keys()[..4], [1, 2, 3, 4]);
    assert!(done.into_batch().is_err());
}

#[test]
fn a_device_that_does_not_start_is_an_error() {
    for calls in 0..30 {
        let (driver, control) = Fake::start(1, 1 << 24);
        control.lose_at.store(calls, Ordering::SeqCst);
        assert!(matches!(Gpu::start(driver, options()), Err(GpuError::Lost(_))), "call {calls}");
        control.check_ended();
    }
}

#[test]
fn an_event_that_never_comes_is_a_time_out() {
    for way in Way::ALL {
        let (gpu, control) = start_with(12, GpuOptions { timeout: Duration::from_millis(100), ..options() });
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        control.hangs.store(true, Ordering::SeqCst);
        within(Duration::from_secs(5), || {
            let tickets: Vec<_> = (0..4).map(|_| send(&gpu, &table, &keys(5, 20), Some(way))).collect();
            // One more waits for a slot, and ends, too.
            assert_eq!(gpu.batch(1).err(), Some(GpuError::TimedOut(100)));
            for ticket in tickets {
                let done = ticket.wait();
                assert_eq!(done.results(), Err(&GpuError::TimedOut(100)));
                assert_eq!(&done.keys()[..80], bytemuck::cast_slice::<u32, u8>(&keys(5, 20)));
            }
            drop((gpu, table));
        });
        // What the device may still use stays for good, so the driver is not ended.
        assert!(!control.has_ended());
        control.check();
    }
}

#[test]
fn a_panic_of_the_owner_ends_like_a_loss() {
    let (gpu, control) = start(13);
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    control.hangs.store(true, Ordering::SeqCst);
    let before = send(&gpu, &table, &keys(0, 10), None);
    std::thread::sleep(Duration::from_millis(20));
    control.panics.store(true, Ordering::SeqCst);
    within(Duration::from_secs(5), || {
        for ticket in [send(&gpu, &table, &keys(0, 10), None), before] {
            assert!(matches!(ticket.wait().results(), Err(GpuError::Lost(_))));
        }
        assert!(gpu.batch(1).is_err());
        drop((gpu, table));
    });
}

#[test]
fn memory_is_accounted_and_capped_with_both_sizes() {
    let (gpu, control) = start(14);
    let idle = gpu.usage();
    assert!(idle.slots >= 4 * 1000 * 20 && idle.tables == 0);
    assert!(idle.pinned >= idle.slots + 4 * 100 * 16 && idle.cap.is_none());
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    let with_table = gpu.usage().tables;
    assert!((4 * 256..=4 * 256 + 512).contains(&with_table));
    drop(table);
    // The owner gives it back when the message arrives.
    let other = gpu.upload(&image(|_| 0), gather).unwrap();
    assert_eq!(gpu.usage().tables, with_table);
    // What is refused leaves nothing behind, either.
    let none = |_: Sections<'_>| Err(GpuError::Unsupported("this".into()));
    assert!(matches!(gpu.upload(&image(|_| 0), none), Err(GpuError::Unsupported(_))));
    assert!(gpu.upload(&image(|_| 0), |_| Ok(Vec::new())).is_err());
    assert!(other.replace(&image(|_| 0), none).is_err());
    let wide =
        |sections: Sections<'_>| Ok(vec![Program::new("gather", "gather_w4", &[sections.at(E).0, 255], 8)]);
    assert_eq!(
        gpu.upload(&image(|_| 0), wide).err(),
        Some(GpuError::TooWide { what: "results", asked: 8, most: 4 })
    );
    other.settle().unwrap();
    assert_eq!(gpu.usage().tables, with_table);
    let huge = ImageBuilder::new("gather", 1).section::<u64>("e", 1 << 22).build(None).unwrap();
    match gpu.upload(&huge, gather).err() {
        Some(GpuError::OutOfMemory { needed, free }) => assert!(needed > free && needed > 8 << 22),
        other => panic!("{other:?}"),
    }
    drop((gpu, other));
    control.check_ended();

    let cap = idle.device() + with_table + 100;
    let (gpu, control) = start_with(14, GpuOptions { memory_cap: Some(cap), ..options() });
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    let over = GpuError::OverCap { needed: with_table, left: 100, cap };
    assert_eq!(table.replace(&image(|_| 1), gather), Err(over.clone()));
    assert_eq!(gpu.upload(&image(|_| 1), gather).err(), Some(over));
    check_version(&send(&gpu, &table, &keys(0, 10), None).wait());
    drop((gpu, table));
    control.check_ended();
    let (driver, control) = Fake::start(1, 1 << 24);
    let small = GpuOptions { memory_cap: Some(50_000), ..options() };
    assert!(matches!(Gpu::start(driver, small), Err(GpuError::OverCap { cap: 50_000, .. })));
    assert!(control.has_ended());
    let (driver, _) = Fake::start(1, 50_000);
    assert!(matches!(Gpu::start(driver, options()), Err(GpuError::OutOfMemory { .. })));
}

#[test]
fn calibration_and_tuning_measure_and_are_used() {
    let (gpu, control) = start(15);
    let table = gpu.upload(&image(|i| i), two_programs).unwrap();
    assert!(gpu.calibration().is_none());
    let calibration = gpu.calibrate(&table, 4).unwrap();
    // 256 keys alone fit the slots; each way was measured, unless the time was up.
    assert!(!calibration.measured.is_empty() && calibration.measured.iter().all(|cell| cell.count == 256));
    assert!(calibration.measured.iter().all(|cell| cell.rate > 0.0 && cell.lone_us > 0.0));
    assert_eq!(gpu.calibration().as_ref(), Some(&calibration));
    let tuning = gpu.tune(&table, 4).unwrap();
    assert_eq!(tuning.tuned.len(), 2, "{tuning}");
    assert_eq!((tuning.tuned[0].class, tuning.device.as_str()), (8, "made up"));
    let right: Vec<u32> = keys(0, 900).iter().map(|key| key & (LEN - 1)).collect();
    assert_eq!(results(&send(&gpu, &table, &keys(0, 900), None).wait()), right);
    // What a file says is used: the other program from now on.
    let mut other = tuning.clone();
    for tuned in &mut other.tuned {
        tuned.ns = if tuned.kernel == "gather_w4_k4" { 1e9 } else { 1.0 };
    }
    gpu.set_tuned(&Tuning { device: "another".into(), ..other.clone() }).unwrap();
    gpu.set_tuned(&other).unwrap();
    let before = control.launched("gather_w4_k4");
    let plain = control.launched("gather_w4_plain_k4");
    let done = send(&gpu, &table, &keys(0, 900), None).wait();
    assert_eq!(results(&done), right);
    assert_eq!(control.launched("gather_w4_plain_k4"), plain + 1);
    assert_eq!(control.launched("gather_w4_k4"), before, "the other program was chosen");
    assert!(gpu.tune(&table, 8).is_err(), "there is no kernel for such keys");
    drop((gpu, table, done));
    control.check_ended();
}

/// A table with a program that stages and one that doesn't.
#[expect(clippy::unnecessary_wraps, reason = "as `upload` takes it")]
fn two_programs(sections: Sections<'_>) -> Result<Vec<Program>, GpuError> {
    let argument = [sections.at(E).0, u64::from(LEN - 1)];
    let staged = Program::new("gather", "gather_w4", &argument, 4).with_shared(1000);
    Ok(vec![staged, Program::new("gather", "gather_w4_plain", &argument, 4)])
}

#[test]
fn a_fixed_way_is_kept() {
    let always = Transfer::Always(Way::Graphs);
    let (gpu, control) = start_with(16, GpuOptions { transfer: always, ..options() });
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    for _ in 0..20 {
        let done = send(&gpu, &table, &keys(1, 100), None).wait();
        assert_eq!(results(&done)[0], keys(1, 1)[0] & (LEN - 1));
    }
    // The first plain, the second recorded and replayed, in the one slot that is warm.
    assert_eq!(control.replays.load(Ordering::SeqCst), 19);
    // More sizes than are kept.
    for count in (1..=30).chain(1..=30).chain(1..=30) {
        for _ in 0..2 {
            assert_eq!(send(&gpu, &table, &keys(1, count), None).wait().count(), count);
        }
    }
    drop((gpu, table));
    control.check_ended();
}

#[test]
fn keys_on_the_device_see_one_state_too() {
    for seed in 0..30 {
        let (mut driver, control) = Fake::start(seed, 1 << 24);
        // The caller's own stream and memory, as another part of the process would have them.
        let stream = driver.stream().unwrap();
        let blocks = driver.alloc(&[400, 400, 400, 400]).unwrap();
        let gpu = Gpu::start(driver, options()).unwrap();
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        let mut seen = Vec::new();
        for round in 0..10usize {
            let results = blocks[1 + round % 3];
            #[allow(unsafe_code)]
            // SAFETY: the blocks hold 100 keys and as many results, and only this stream uses them.
            let enqueued =
                unsafe { gpu.lookup_on(&table, stream, blocks[0], None, 4, results, 100) }.unwrap();
            assert_eq!(enqueued.version, table.version());
            seen.push(enqueued.version);
            if round % 4 == 3 {
                let value = u32::try_from(table.version() + 1).unwrap();
                table.replace(&image(|_| value), gather).unwrap();
            } else {
                table.patch(&all(table.version() + 1)).unwrap();
            }
        }
        assert_eq!(seen, (0..10).collect::<Vec<_>>());
        #[allow(unsafe_code)]
        // SAFETY: as above; nothing is looked up.
        let none = unsafe { gpu.lookup_on(&table, stream, DevicePtr(0), None, 4, DevicePtr(0), 0) }.unwrap();
        assert_eq!((none.version, none.result_bytes), (10, 4));
        #[allow(unsafe_code)]
        // SAFETY: refused before anything is done.
        let planes = unsafe { gpu.lookup_on(&table, stream, blocks[0], None, 6, blocks[1], 10) };
        assert!(matches!(planes, Err(GpuError::Unsupported(_))));
        drop((gpu, table));
        // The caller's own blocks are left over, with what was looked up last.
        assert!(control.has_ended());
        let left = control.left.lock().unwrap();
        for (block, version) in [(1, 9u32), (2, 7), (3, 8)] {
            assert_eq!(left[&blocks[block].0], version.to_le_bytes().repeat(100));
        }
    }
}

#[test]
fn a_fleet_shares_the_work_and_the_changes() {
    let (gpus, controls): (Vec<_>, Vec<_>) = (20..23).map(start).unzip();
    let fleet = Fleet::new(gpus).unwrap();
    let table = fleet.upload(&image(|_| 0), gather).unwrap();
    let used = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..40u32 {
                    let mut batch = fleet.batch(100).unwrap();
                    used.fetch_or(1 << batch.device(), Ordering::SeqCst);
                    batch.batch().keys_mut()[..400].copy_from_slice(bytemuck::cast_slice(&keys(round, 100)));
                    check_version(&batch.submit(&table, 4, 100).wait());
                }
            });
        }
        for version in 1..=20u64 {
            let made = match version % 5 {
                0 => table.replace(&image(|_| u32::try_from(version).unwrap()), gather),
                _ => table.patch(&all(version)),
            };
            assert_eq!(made, Ok(version));
        }
    });
    assert_eq!(used.load(Ordering::SeqCst), 0b111, "each device had something to do");
    // The one with the fewest keys under way is next.
    controls.iter().for_each(|control| control.hangs.store(true, Ordering::SeqCst));
    let mut devices: Vec<_> = Vec::new();
    let mut tickets = Vec::new();
    for count in [100, 50, 10, 5, 1] {
        let batch = fleet.batch(count).unwrap();
        devices.push(batch.device());
        tickets.push(batch.submit(&table, 4, count));
    }
    assert_eq!(devices, [0, 1, 2, 2, 2]);
    controls.iter().for_each(|control| control.hangs.store(false, Ordering::SeqCst));
    drop(tickets);
    // One is lost: the others go on.
    controls[1].lose_after(0);
    assert_eq!(table.patch(&all(21)), Ok(21));
    while fleet.gpus()[1].lost().is_none() {
        drop(table.replicas()[1].settle());
    }
    assert_eq!(table.patch(&all(22)), Ok(22));
    for _ in 0..30 {
        let batch = fleet.batch(10).unwrap();
        assert_ne!(batch.device(), 1);
        let done = batch.submit(&table, 4, 10).wait();
        assert_eq!(done.version(), 22);
        check_version(&done);
    }
    controls[0].lose_after(0);
    controls[2].lose_after(0);
    while fleet.gpus().iter().any(|gpu| gpu.lost().is_none()) {
        table.replicas().iter().for_each(|replica| drop(replica.settle()));
    }
    assert!(fleet.batch(10).is_err() && table.patch(&all(23)).is_err());
    drop((fleet, table));
    controls.iter().for_each(|control| control.check_ended());
    assert!(matches!(Fleet::new(Vec::new()), Err(GpuError::NoDevice)));
}
