//! The kernels' host build in place of a GPU, for tests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use wirespeed::Fleet;
use wirespeed::engine::{EngineName, Served, of_domain};
use wirespeed::gpu::runtime::{Gpu, GpuOptions, SlotSize};
use wirespeed_image::rounds;
use wirespeed_kernels_host::{HostDriver, Sanitizers};

/// A device for keys of a domain, and a switch that makes it fail. `None`, with a message, if there is no
/// compiler.
pub(crate) fn fleet<D: Served>() -> Option<(Fleet, Arc<AtomicBool>)> {
    with(D::gpu_options())
}

fn with(options: GpuOptions) -> Option<(Fleet, Arc<AtomicBool>)> {
    let driver = HostDriver::for_tests(Sanitizers::Off)?;
    let switch = driver.switch();
    let slots = vec![SlotSize { slots: 4, keys: 1 << 10 }, SlotSize { slots: 2, keys: 1 << 14 }];
    let gpu = Gpu::start(Box::new(driver), GpuOptions { slots, ..options }).unwrap();
    Some((Fleet::new(vec![gpu]).unwrap(), switch))
}

/// The engines of a domain that a test goes through.
pub(crate) fn engines<D: Served>() -> impl Iterator<Item = EngineName> {
    rounds::engines(of_domain::<D>(), |engine| engine.standing().is_paper())
}
