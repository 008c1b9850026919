//! Fleets of the device under test, and one that can be lost.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirespeed_gpu::runtime::{Fleet, Gpu, GpuOptions, SlotSize};
use wirespeed_kernels_host::{HostDriver, Sanitizers};

/// Options of devices with slots for this many keys: of each of two sizes a few, so that batches wait for
/// them.
pub(crate) fn slots(keys: [usize; 2]) -> GpuOptions {
    let [small, large] = keys;
    GpuOptions {
        slots: vec![SlotSize { slots: 3, keys: small }, SlotSize { slots: 2, keys: large }],
        timeout: Duration::from_secs(60),
        ..GpuOptions::default()
    }
}

/// So many devices as one fleet, where there is one.
pub(crate) fn fleet(devices: usize, options: &GpuOptions) -> Option<Fleet> {
    let start = |_| Some(Gpu::start(crate::device::driver()?, options.clone()).expect("it starts"));
    let gpus: Option<Vec<Gpu>> = (0..devices).map(start).collect();
    Some(Fleet::new(gpus?).expect("one at least"))
}

/// A device that is lost when the switch is set, on the host; `None`, after saying why, where it can't be
/// built.
pub(crate) fn losable(options: &GpuOptions) -> Option<(Fleet, Arc<AtomicBool>)> {
    let driver = HostDriver::for_tests(Sanitizers::Off)?;
    let switch = driver.switch();
    let gpu = Gpu::start(Box::new(driver), options.clone()).expect("it starts");
    Some((Fleet::new(vec![gpu]).expect("one at least"), switch))
}
