//! Tuples on a GPU: kernels with tuples on the device, and whole trips with tuples in pinned memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytemuck::bytes_of;
use wirespeed_classify::Tuple;
use wirespeed_classify::kernel::result_bytes;
use wirespeed_gpu::classify::{bytes_of as bytes_of_tuples, pack};
use wirespeed_gpu::driver::{DevicePtr, Shape};
use wirespeed_gpu::numbers::unpack;
use wirespeed_gpu::runtime::{Batch, Form, Gpu, GpuOptions, SlotSize, TableHandle};
use wirespeed_image::device::{OnDevice, Program};

use super::Device;
use super::bench::{Bench, Uploaded};
use super::names::{KernelRate, batch_of};
use super::trip::{Filled, Trip, checked};
use crate::report::median;

/// Tuples on the device and room for their numbers.
#[derive(Debug)]
pub struct DeviceTuples {
    /// The form of the tuples in memory.
    pub form: Form,
    blocks: Vec<DevicePtr>,
    result_bytes: usize,
}

#[allow(unsafe_code)] // every call is waited for before what it uses is given back
impl Bench {
    /// Puts tuples on the device, to be answered by numbers of so many bytes.
    pub fn tuples<T: Tuple>(&mut self, tuples: &[T], result_bytes: usize) -> Result<DeviceTuples> {
        let mut bytes = vec![0; bytes_of_tuples::<T>(tuples.len())];
        let form = pack(tuples, result_bytes, &mut bytes).context("tuples that kernels take")?;
        let blocks = self.driver.alloc(&[bytes.len(), result_bytes * form.count()])?;
        self.put(blocks[0], &bytes)?;
        self.put(blocks[1], &vec![0xff; result_bytes * form.count()])?;
        Ok(DeviceTuples { form, blocks, result_bytes })
    }

    /// Gives their memory back.
    pub fn drop_tuples(&mut self, tuples: &DeviceTuples) -> Result<()> {
        self.free(&tuples.blocks)
    }

    /// Looks all of them up once.
    pub fn launch_tuples(&mut self, program: &Program, tuples: &DeviceTuples, shape: Shape) -> Result<()> {
        let batch = batch_of(tuples.blocks[0], tuples.form, tuples.blocks[1]);
        let arguments = [bytes_of(&batch), &program.table[..]];
        // SAFETY: tuples, numbers and the table stay until they are given back, which waits for the stream.
        Ok(unsafe { self.driver.launch(self.stream, &program.kernel(tuples.form.kind()), shape, arguments) }?)
    }

    /// Holds the numbers of the last launch against the right ones, and overwrites them.
    pub fn check_tuples(&mut self, program: &Program, tuples: &DeviceTuples, right: &[u32]) -> Result<()> {
        let mut bytes = vec![0; tuples.form.count() * tuples.result_bytes];
        // SAFETY: the destination lives until the copy is waited for.
        unsafe { self.driver.copy_out(self.stream, bytes.as_mut_ptr(), tuples.blocks[1], bytes.len()) }?;
        self.driver.synchronize(self.stream)?;
        let mut found = vec![0; right.len()];
        unpack(&bytes, tuples.result_bytes, &mut found);
        let differ = found.iter().zip(right).filter(|(found, right)| found != right).count();
        ensure!(differ == 0, "{}: {differ} of {} numbers differ from the CPU's", program.stem, right.len());
        bytes.fill(0xff);
        self.put(tuples.blocks[1], &bytes)
    }
}

/// Every program of a table in every shape, the numbers of each held against the right ones; the fastest
/// first.
pub fn kernel_rates(
    bench: &mut Bench,
    table: &Uploaded,
    tuples: &DeviceTuples,
    right: &[u32],
    rounds: usize,
) -> Result<Vec<KernelRate>> {
    let mut rates = Vec::new();
    for program in &table.programs {
        for shape in bench.shapes(program, tuples.form.kind())? {
            bench.launch_tuples(program, tuples, shape)?;
            bench.check_tuples(program, tuples, right)?;
            let launch = |bench: &mut Bench| bench.launch_tuples(program, tuples, shape);
            let rate = bench.rate_of(tuples.form.count(), rounds, launch)?;
            rates.push(KernelRate { shared: program.shared, shape, rate });
        }
    }
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    Ok(rates)
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
