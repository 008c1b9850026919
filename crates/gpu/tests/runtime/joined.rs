//! Batches that come faster than they can be launched one by one are launched together.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::runtime::{Done, Gpu, GpuOptions, SlotSize, TableHandle, Ticket, Way};
use wirespeed_image::rounds;

use crate::common::{LEN, all, check_version, gather, image, keys, options, results, send, start_with};
use crate::fake::Control;

const KERNEL: &str = "gather_w4_k4";
const MAPPED: Option<Way> = Some(Way::Mapped);

fn start(seed: u64, slots: usize, keys: usize) -> (Gpu, Arc<Control>) {
    start_with(seed, GpuOptions { slots: vec![SlotSize { slots, keys }], ..options() })
}

/// What waits while a batch of the table is launched.
fn while_launching<R>(gpu: &Gpu, control: &Control, table: &TableHandle, meanwhile: impl FnOnce() -> R) -> R {
    let mut first = None;
    let held = control.while_launching(|| first = Some(send(gpu, table, &keys(0, 900), MAPPED)), meanwhile);
    assert_eq!(results(&first.unwrap().wait()).len(), 900);
    held
}

/// Checks a batch of a table whose elements are their numbers.
fn check(done: &Done, seed: u32) {
    let right: Vec<u32> = keys(seed, done.count()).iter().map(|key| key & (LEN - 1)).collect();
    assert_eq!(results(done), right);
}

#[test]
fn batches_of_one_table_are_launched_together_and_come_back_one_by_one() {
    for seed in (0..8).step_by(rounds::plain_step(3)) {
        let (gpu, control) = start(seed, 24, 1000);
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        control.is_silent.store(seed % 4 == 3, Ordering::SeqCst);
        let holds_ends = seed % 4 == 2;
        let tickets = while_launching(&gpu, &control, &table, || {
            control.holds_ends.store(holds_ends, Ordering::SeqCst);
            // Of several sizes of one class: blocks and threads are those of the largest.
            (1..=17)
                .map(|at| send(&gpu, &table, &keys(at, 600 + 20 * at as usize), MAPPED))
                .collect::<Vec<_>>()
        });
        // In any order. Where no event comes, each says so itself.
        for (at, ticket) in (1..18).zip(tickets).rev() {
            check(&ticket.wait_until(Instant::now() + Duration::from_secs(10)).expect("it comes"), at);
        }
        control.holds_ends.store(false, Ordering::SeqCst);
        // One alone; then 8 at once, 8, and 1.
        assert_eq!(control.launched(KERNEL), 4);
        assert_eq!(gpu.load(), 0);
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn batches_of_several_tables_sizes_and_ways_do_not_mix() {
    let (gpu, control) = start(40, 24, 1000);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let other = gpu.upload(&image(|i| i + 1), gather).unwrap();
    let sends = [(&table, 900, Way::Mapped), (&other, 900, Way::Mapped), (&other, 900, Way::Mapped)];
    let more = [(&other, 90, Way::Mapped), (&other, 900, Way::Copies), (&other, 900, Way::Mapped)];
    let tickets = while_launching(&gpu, &control, &table, || {
        let sent = sends.iter().chain(&more);
        let sent = sent.map(|&(table, count, way)| send(&gpu, table, &keys(5, count), Some(way)));
        sent.collect::<Vec<_>>()
    });
    for ((to, ..), ticket) in sends.iter().chain(&more).zip(tickets) {
        let done = ticket.wait();
        let add = u32::from(!std::ptr::eq(*to, &raw const table));
        let right: Vec<u32> = keys(5, done.count()).iter().map(|key| (key & (LEN - 1)) + add).collect();
        assert_eq!(results(&done), right);
    }
    assert_eq!(control.launched(KERNEL), 1 + 5);
    drop((gpu, table, other));
    control.check_ended();
}

#[test]
fn large_batches_do_not_wait_for_each_other() {
    let (gpu, control) = start(41, 7, 50_000);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let tickets = while_launching(&gpu, &control, &table, || {
        (0..6).map(|at| send(&gpu, &table, &keys(at, 50_000), MAPPED)).collect::<Vec<_>>()
    });
    (0..).zip(tickets).for_each(|(at, ticket)| check(&ticket.wait(), at));
    // 200 kB each, 512 kB at once.
    assert_eq!(control.launched(KERNEL), 1 + 3);
    drop((gpu, table));
    control.check_ended();
}

#[test]
fn each_batch_sees_the_state_that_it_was_sent_to() {
    for seed in (0..10).step_by(rounds::plain_step(4)) {
        let (gpu, control) = start(50 + seed, 24, 1000);
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        let tickets = while_launching(&gpu, &control, &table, || {
            let mut tickets = Vec::new();
            for version in 0..6u64 {
                let send = || send(&gpu, &table, &keys(1, 700), MAPPED);
                tickets.extend([(version, send()), (version, send())]);
                table.patch(&all(version + 1)).unwrap();
            }
            tickets
        });
        for (version, ticket) in tickets {
            let done = ticket.wait();
            assert_eq!(done.version(), version);
            check_version(&done);
        }
        // Patches part them, and now and then a look at the device does.
        assert!((7..=9).contains(&control.launched(KERNEL)));
        drop((gpu, table));
        control.check_ended();
    }
}

#[test]
fn an_error_is_of_all_that_were_launched_together_and_of_no_other() {
    let (gpu, control) = start(60, 24, 1000);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let tickets = while_launching(&gpu, &control, &table, || {
        control.refuse_launch.store(2, Ordering::SeqCst);
        (0..10).map(|at| send(&gpu, &table, &keys(at, 900), MAPPED)).collect::<Vec<_>>()
    });
    for (at, ticket) in (0..).zip(tickets) {
        let done = ticket.wait();
        match done.results() {
            Err(error) => assert!(at < 8 && matches!(error, GpuError::Call { .. }), "{at}: {error}"),
            Ok(_) => {
                assert!(at >= 8, "{at}");
                check(&done, at);
            }
        }
    }
    check(&send(&gpu, &table, &keys(7, 50), None).wait(), 7);
    assert_eq!(gpu.load(), 0);
    drop((gpu, table));
    control.check_ended();
}

#[test]
fn all_batches_come_back_with_the_reason_when_the_device_is_lost() {
    for panics in [false, true] {
        let (gpu, control) = start(61, 24, 1000);
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        let first = std::cell::Cell::new(None);
        let tickets: Vec<Ticket> = control.while_launching(
            || first.set(Some(send(&gpu, &table, &keys(0, 900), MAPPED))),
            || {
                let tickets = (0..10).map(|at| send(&gpu, &table, &keys(at, 900), MAPPED)).collect();
                if panics {
                    control.panics.store(true, Ordering::SeqCst);
                } else {
                    control.lose_after(2);
                }
                tickets
            },
        );
        let _ = first.take().unwrap().wait();
        for ticket in tickets {
            let done = ticket.wait();
            let error = done.results().unwrap_err();
            assert!(matches!(error, GpuError::Lost(_)), "{error}");
        }
        assert_eq!(gpu.load(), 0);
    }
}

#[test]
fn a_table_stays_until_the_last_of_a_launch_has_ended() {
    let (gpu, control) = start(62, 24, 1000);
    let table = gpu.upload(&image(|i| i), gather).unwrap();
    let tickets = while_launching(&gpu, &control, &table, || {
        control.holds_ends.store(true, Ordering::SeqCst);
        (0..3).map(|at| send(&gpu, &table, &keys(at, 700), MAPPED)).collect::<Vec<_>>()
    });
    let full = gpu.usage().tables;
    (0..).zip(tickets).for_each(|(at, ticket)| check(&ticket.wait(), at));
    drop(table);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(gpu.usage().tables, full, "their kernel has not ended");
    control.holds_ends.store(false, Ordering::SeqCst);
    let began = Instant::now();
    while gpu.usage().tables > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "it is freed");
        std::thread::yield_now();
    }
    drop(gpu);
    control.check_ended();
}
