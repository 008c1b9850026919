//! Batches: each key gets its result, whichever way it goes, from whichever thread.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::runtime::{Done, GpuOptions, Planes, Submitter, Ticket, Transfer, Way};
use wirespeed_image::rounds;

use crate::common::{ANY, LEN, gather, image, keys, options, results, send, start, start_with};

#[test]
fn every_way_of_moving_data_gives_each_key_its_result() {
    for seed in (0..20).step_by(rounds::plain_step(3)) {
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
fn keys_of_many_threads_pass_by_the_caches_while_few_are_under_way() {
    let (gpu, control) = start(21);
    let take = |_| std::thread::scope(|scope| scope.spawn(|| gpu.batch(1000).unwrap()).join().unwrap());
    let batches: Vec<_> = (0..4).map(take).collect();
    let of_4_bytes = |count| batches.iter().map(move |batch| batch.is_streamed_when_packed(4, count));
    // The fourth batch is the first that four threads have taken batches for.
    assert_eq!(of_4_bytes(1000).collect::<Vec<_>>(), [false, false, false, true]);
    assert!(of_4_bytes(1 << 19).all(|is_past| !is_past), "2 MB of keys");
    assert!(of_4_bytes(usize::MAX).all(|is_past| !is_past));
    drop((batches, gpu));
    control.check_ended();
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
fn a_recording_that_other_code_ends_is_done_without() {
    let always = Transfer::Always(Way::Graphs);
    let (gpu, control) = start_with(16, GpuOptions { transfer: always, ..options() });
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let look_up = || results(&send(&gpu, &table, &keys(1, 100), None).wait())[0];
    let right = keys(1, 1)[0] & (LEN - 1);
    assert_eq!(look_up(), right);
    control.spoils_recording.store(true, Ordering::SeqCst);
    assert_eq!(look_up(), right);
    assert!(!control.spoils_recording.load(Ordering::SeqCst), "it was recorded");
    // As at first: plain, recorded, and replayed from then on.
    for replays in [0, 1, 2] {
        assert_eq!(look_up(), right);
        assert_eq!(control.replays.load(Ordering::SeqCst), replays);
    }
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
