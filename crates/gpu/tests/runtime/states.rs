//! States of a table: every batch sees one, between the patches and replacements around it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::DevicePtr;
use wirespeed_gpu::runtime::{DeviceKeys, Gpu, GpuOptions, Ticket};
use wirespeed_image::{PatchBuilder, SectionId, rounds};

use crate::common::{
    ANY, LEN, all, check_version, four, gather, image, keys, lookup_on, options, send, start, start_with, way,
};
use crate::fake::Fake;

#[test]
fn every_batch_sees_the_state_between_the_patches_around_it() {
    for seed in (0..60).step_by(rounds::plain_step(4)) {
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
            let enqueued = lookup_on(&gpu, &table, stream, four(blocks[0], 100), results, 400).unwrap();
            assert_eq!(enqueued.result_bytes, 4);
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
        let none = lookup_on(&gpu, &table, stream, four(DevicePtr(0), 0), DevicePtr(0), 0).unwrap();
        assert_eq!((none.version, none.result_bytes), (10, 4));
        // Refused before anything is done: the results of the last lookups stay.
        let refused =
            |keys, results, bytes| lookup_on(&gpu, &table, stream, keys, results, bytes).unwrap_err();
        let planes = DeviceKeys::bytes(6, blocks[0], None, 10);
        assert!(matches!(refused(planes, blocks[1], 400), GpuError::Unsupported(_)));
        let short = GpuError::ResultMemory { count: 100, needed: 400, there: 399 };
        assert_eq!(refused(four(blocks[0], 100), blocks[1], 399), short);
        let keys = GpuError::Misaligned { what: "keys", to: 4 };
        assert_eq!(refused(four(blocks[0].plus(2), 10), blocks[1], 400), keys);
        let results = GpuError::Misaligned { what: "results", to: 4 };
        assert_eq!(refused(four(blocks[0], 10), blocks[1].plus(1), 399), results);
        table.require(5).unwrap();
        let narrow = GpuError::NarrowKeys { asked: 4, least: 5 };
        assert_eq!(refused(four(blocks[0], 100), blocks[1], 400), narrow);
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
fn patches_that_nobody_looks_between_go_together() {
    let (gpu, control) = start_with(8, GpuOptions { patch_writes: 1000, ..options() });
    let table = gpu.upload(&image(|_| 0), gather).unwrap();
    // The owner waits in the launch of the first one, and the others gather behind it.
    let gate = control.gate.lock().unwrap();
    for version in 1..=20 {
        table.patch(&all(version)).unwrap();
    }
    drop(gate);
    let done = send(&gpu, &table, &keys(0, 50), None).wait();
    assert_eq!(done.version(), 20);
    check_version(&done);
    assert!(control.launched("patch") <= 8, "{} launches for 20 patches", control.launched("patch"));
    control.check();
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let left_out = GpuOptions { leave_out: vec!["notes".into()], ..options() };
    let (gpu, _control) = start_with(9, left_out);
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
