//! Devices that are lost, hang or don't start, and an owner that panics: every ticket ends, with its keys.

use std::sync::atomic::Ordering;
use std::time::Duration;

use wirespeed_gpu::GpuError;
use wirespeed_gpu::runtime::{Gpu, GpuOptions, Way};

use crate::common::{all, check_version, gather, image, keys, options, send, start, start_with, within};
use crate::fake::Fake;

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
    // It is under way before the other one comes.
    while control.launches.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
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
fn whoever_learns_of_a_loss_finds_all_of_it() {
    for seed in 0..150 {
        let (gpu, control) = start(seed);
        let table = gpu.upload(&image(|_| 0), gather).unwrap();
        control.panics.store(true, Ordering::SeqCst);
        match seed % 3 {
            // A panic with a batch in hand, with a patch, and no panic but a loss.
            0 => assert_lost(send(&gpu, &table, &keys(0, 10), None).wait().results().map(|_| ())),
            1 => assert_lost(table.patch(&all(1)).and_then(|_| table.settle()).as_ref().map(|_| ())),
            _ => {
                control.lose_after(0);
                assert_lost(send(&gpu, &table, &keys(0, 10), None).wait().results().map(|_| ()));
            }
        }
        assert!(gpu.lost().is_some() && gpu.batch(1).is_err(), "seed {seed}");
    }
}

fn assert_lost(result: Result<(), &GpuError>) {
    assert!(matches!(result, Err(GpuError::Lost(_))), "{result:?}");
}
