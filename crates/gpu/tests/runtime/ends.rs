//! The ends of kernels: what says so itself is believed before its event, and what it uses stays up to that
//! event.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use wirespeed_gpu::runtime::{Done, GpuOptions, SlotSize, Ticket, Way};

use crate::common::{LEN, gather, image, keys, options, results, send, start, start_with, within};

/// A batch that comes back without its event, however busy this machine is.
fn comes(ticket: Ticket) -> Done {
    ticket.wait_until(Instant::now() + Duration::from_secs(10)).expect("it is said")
}

/// A batch that doesn't come back in a while that is long for this device.
fn stays_out(ticket: Ticket) -> Ticket {
    ticket.wait_until(Instant::now() + Duration::from_millis(50)).expect_err("no event comes")
}

#[test]
fn a_kernel_that_says_that_it_is_done_is_believed_before_its_event() {
    for seed in 0..10 {
        let slots = vec![SlotSize { slots: 4, keys: 5000 }];
        let (gpu, control) = start_with(seed, GpuOptions { slots, ..options() });
        let table = gpu.upload(&image(|i| i * 3), gather).unwrap();
        control.holds_ends.store(true, Ordering::SeqCst);
        // Each in a slot of its own: behind what doesn't end there is nothing done.
        let mut came = Vec::new();
        for (round, count) in (0..).zip([1, 100, 1000, 5000]) {
            let done = comes(send(&gpu, &table, &keys(round, count), Some(Way::Mapped)));
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
    for way in [Way::Copies, Way::Graphs] {
        let (gpu, control) =
            start_with(30, GpuOptions { slots: vec![SlotSize { slots: 1, keys: 1000 }], ..options() });
        let table = gpu.upload(&image(|i| i), gather).unwrap();
        // Its mark stays where the next one's is to come.
        let before = send(&gpu, &table, &keys(0, 100), Some(Way::Mapped)).wait();
        assert_eq!(results(&before).len(), 100);
        drop(before);
        control.holds_ends.store(true, Ordering::SeqCst);
        let ticket = stays_out(send(&gpu, &table, &keys(1, 100), Some(way)));
        control.holds_ends.store(false, Ordering::SeqCst);
        let right: Vec<u32> = keys(1, 100).iter().map(|key| key & (LEN - 1)).collect();
        assert_eq!(results(&ticket.wait()), right);
        // And one that should but doesn't.
        control.is_silent.store(true, Ordering::SeqCst);
        control.holds_ends.store(true, Ordering::SeqCst);
        let ticket = stays_out(send(&gpu, &table, &keys(2, 100), Some(Way::Mapped)));
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
    let announced = announced.map(comes);
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
        drop(comes(send(&gpu, &table, &keys(0, 50), Some(Way::Mapped))));
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
