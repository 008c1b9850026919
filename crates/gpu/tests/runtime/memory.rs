//! Slots and memory: who waits for them, how they are counted, and that all comes back.

use std::time::{Duration, Instant};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::runtime::{Gpu, GpuOptions, SlotSize};
use wirespeed_image::ImageBuilder;
use wirespeed_image::device::{Program, Sections, Unsupported};

use crate::common::{
    E, GATHER, all, check_version, gather, image, keys, options, results, send, start, start_with, way,
};
use crate::fake::Fake;

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
    let none = |_: Sections<'_>| Err(Unsupported("this".into()));
    assert!(matches!(gpu.upload(&image(|_| 0), none), Err(GpuError::Unsupported(_))));
    assert!(gpu.upload(&image(|_| 0), |_| Ok(Vec::new())).is_err());
    assert!(other.replace(&image(|_| 0), none).is_err());
    let wide = |sections: Sections<'_>| Ok(vec![Program::new(GATHER, &[sections.at(E).0, 255], 8)]);
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
