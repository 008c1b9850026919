//! A device, a table that is gathered from, and batches for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wirespeed_gpu::GpuError;
use wirespeed_gpu::driver::{DevicePtr, Stream};
use wirespeed_gpu::runtime::{DeviceKeys, DeviceMemory, Done, Enqueued, Gpu, GpuOptions, SlotSize};
use wirespeed_gpu::runtime::{TableHandle, Ticket, Way};
use wirespeed_image::device::{Program, Programs, Sections, Stem, Width};
use wirespeed_image::{Image, ImageBuilder, Patch, PatchBuilder, SectionId};

use crate::fake::{Control, Fake};

pub(crate) const E: SectionId = SectionId(0);
pub(crate) const LEN: u32 = 256;

pub(crate) fn options() -> GpuOptions {
    GpuOptions {
        slots: vec![SlotSize { slots: 4, keys: 1000 }],
        spin: Duration::from_micros(20),
        timeout: Duration::from_secs(20),
        staging_bytes: 300,
        patch_writes: 100,
        ..GpuOptions::default()
    }
}

pub(crate) fn start(seed: u64) -> (Gpu, Arc<Control>) {
    start_with(seed, options())
}

pub(crate) fn start_with(seed: u64, options: GpuOptions) -> (Gpu, Arc<Control>) {
    let (driver, control) = Fake::start(seed, 1 << 24);
    (Gpu::start(driver, options).unwrap(), control)
}

/// A table of four-byte elements.
pub(crate) fn image(element: impl Fn(u32) -> u32) -> Image {
    let mut image = ImageBuilder::new("gather", 1).section::<u32>("e", LEN.into()).build(None).unwrap();
    for (at, to) in (0..).zip(image.section_mut::<u32>(E).unwrap()) {
        *to = element(at);
    }
    image
}

/// The kernel that reads them.
pub(crate) const GATHER: Stem = Stem::of("gather").width('w', Width::Four);

#[expect(clippy::unnecessary_wraps, reason = "as `upload` takes it")]
pub(crate) fn gather(sections: Sections<'_>) -> Programs {
    Ok(vec![Program::new(GATHER, &[sections.at(E).0, u64::from(LEN - 1)], 4)])
}

/// A patch that makes all elements the same.
pub(crate) fn all(value: u64) -> Patch {
    let mut patch = PatchBuilder::new();
    (0..LEN.into()).for_each(|at| patch.set(E, at, value));
    patch.finish(None)
}

pub(crate) fn keys(seed: u32, count: usize) -> Vec<u32> {
    (0..u32::try_from(count).unwrap()).map(|i| (i ^ seed).wrapping_mul(0x9e37_79b1)).collect()
}

pub(crate) fn send(gpu: &Gpu, table: &TableHandle, keys: &[u32], way: Option<Way>) -> Ticket {
    let mut batch = gpu.batch(keys.len()).unwrap();
    batch.keys_mut()[..4 * keys.len()].copy_from_slice(bytemuck::cast_slice(keys));
    match way {
        Some(way) => batch.submit_by(way, table, 4, keys.len()),
        None => batch.submit(table, 4, keys.len()),
    }
}

pub(crate) fn results(done: &Done) -> Vec<u32> {
    assert_eq!(done.results().unwrap().len(), done.count() * done.result_bytes());
    done.results().unwrap().chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Panics unless all results are the version that the batch saw.
pub(crate) fn check_version(done: &Done) {
    let version = u32::try_from(done.version()).unwrap();
    let results = results(done);
    assert!(results.iter().all(|&result| result == version), "version {version}: {results:?}");
}

pub(crate) fn within(limit: Duration, what: impl FnOnce()) {
    let began = Instant::now();
    what();
    assert!(began.elapsed() < limit, "took {:?}", began.elapsed());
}

pub(crate) fn way(round: u64) -> Option<Way> {
    ANY[usize::try_from(round % 4).unwrap()]
}

pub(crate) const ANY: [Option<Way>; 4] = [None, Some(Way::Copies), Some(Way::Mapped), Some(Way::Graphs)];

/// Keys of four bytes.
pub(crate) fn four(at: DevicePtr, count: usize) -> DeviceKeys {
    DeviceKeys::bytes(4, at, None, count)
}

/// Looks up keys in a block of the driver, with results in another one.
pub(crate) fn lookup_on(
    gpu: &Gpu,
    table: &TableHandle,
    stream: Stream,
    keys: DeviceKeys,
    results: DevicePtr,
    bytes: usize,
) -> Result<Enqueued, GpuError> {
    #[allow(unsafe_code)]
    // SAFETY: blocks hold 100 keys or results of four bytes, and only this stream uses them.
    unsafe {
        gpu.lookup_on(table, stream, keys, DeviceMemory { at: results, bytes })
    }
}
