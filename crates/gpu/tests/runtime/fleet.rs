//! Several devices with a table each.

use std::sync::atomic::{AtomicU64, Ordering};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::runtime::Fleet;

use crate::common::{all, check_version, gather, image, keys, start};

#[test]
fn a_fleet_shares_the_work_and_the_changes() {
    let (gpus, controls): (Vec<_>, Vec<_>) = (20..23).map(start).unzip();
    let fleet = Fleet::new(gpus).unwrap();
    let table = fleet.upload(&image(|_| 0), &gather).unwrap();
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
                0 => table.replace(&image(|_| u32::try_from(version).unwrap()), &gather),
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
