//! Tuples on a GPU: kernels with tuples on the device, and whole trips with tuples in pinned memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wirespeed_classify::Tuple;
use wirespeed_classify::kernel::result_bytes;
use wirespeed_gpu::classify::{bytes_of as bytes_of_tuples, pack};
use wirespeed_gpu::numbers::unpack;
use wirespeed_gpu::runtime::{Batch, Gpu, GpuOptions, SlotSize, TableHandle};
use wirespeed_image::device::OnDevice;

use super::Device;
use super::bench::Bench;
use super::in_form::InForm;
use super::trip::{Filled, Trip, checked};
use crate::report::median;

impl Bench {
    /// Puts tuples on the device, to be answered by numbers of so many bytes.
    pub fn tuples<T: Tuple>(&mut self, tuples: &[T], result_bytes: usize) -> Result<InForm> {
        let mut bytes = vec![0; bytes_of_tuples::<T>(tuples.len())];
        let form = pack(tuples, result_bytes, &mut bytes).context("tuples that kernels take")?;
        self.in_form(&bytes, form)
    }
}

/// A device with so many slots for batches of each of some sizes, for tuples of up to so many bytes, polling
/// all the time.
pub fn start(device: Device, slots: usize, sizes: &[usize], key_bytes: usize) -> Result<Gpu> {
    let slots = sizes.iter().map(|&keys| SlotSize { slots, keys }).collect();
    let options = GpuOptions { slots, key_bytes, spin: Duration::from_secs(1), ..GpuOptions::default() };
    Ok(Gpu::start(device.open()?, options)?)
}

/// A table on a GPU, its launches tuned with tuples of a sample.
pub fn upload<T: Tuple, C: OnDevice>(gpu: &Gpu, table: &C, sample: &[T]) -> Result<TableHandle> {
    let handle = gpu.upload(table.image(), |sections| table.programs(sections))?;
    let width = handle.result_bytes();
    gpu.tune_with(&handle, |batch: &mut Batch| {
        let count = batch.capacity().min(sample.len());
        pack(&sample[..count], width, batch.keys_mut())
    })?;
    Ok(handle)
}

/// Takes and fills as many batches as will be under way, each with other tuples, and looks each up once to
/// hold its numbers against the right ones.
pub fn fill<T: Tuple>(
    gpu: &Gpu,
    handle: &TableHandle,
    tuples: &[T],
    right: &[u32],
    trip: &Trip,
) -> Result<Filled> {
    let mut batches = Vec::new();
    for at in 0..trip.in_flight {
        let from = at * trip.batch % (tuples.len() - trip.batch + 1);
        let part = &tuples[from..from + trip.batch];
        let mut batch = gpu.batch(trip.batch)?;
        let form = pack(part, handle.result_bytes(), batch.keys_mut()).context("a slot with room")?;
        let done = batch.submit_form(handle, form).wait();
        let mut found = vec![u32::MAX; part.len()];
        unpack(checked(&done)?, done.result_bytes(), &mut found);
        ensure!(found == right[from..][..part.len()], "numbers of a batch of {} differ", part.len());
        batches.push((done.into_batch()?, form));
    }
    Ok(Filled(batches))
}

/// Bytes a second at which one thread writes tuples as they lie in a batch, into memory that it has written
/// to before, and at which it copies them: the medians of some rounds.
pub fn packing_rates<T: Tuple>(tuples: &[T], rounds: usize) -> Result<[f64; 2]> {
    let mut to = vec![0; size_of_val(tuples).max(bytes_of_tuples::<T>(tuples.len()))];
    let source: &[u8] = bytemuck::cast_slice(tuples);
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let began = Instant::now();
        let form = pack(tuples, result_bytes(0), &mut to).context("room for tuples")?;
        #[allow(clippy::cast_precision_loss)] // a rate
        rates[0].push(form.bytes() as f64 / began.elapsed().as_secs_f64());
        let began = Instant::now();
        to[..source.len()].copy_from_slice(source);
        #[allow(clippy::cast_precision_loss)] // a rate
        rates[1].push(source.len() as f64 / began.elapsed().as_secs_f64());
    }
    Ok(rates.map(|rates| median(&rates)))
}
