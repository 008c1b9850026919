//! Names on a GPU: kernels with names on the device, and whole trips with names in pinned memory.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bytemuck::bytes_of;
use wirespeed_gpu::driver::batches::Batches;
use wirespeed_gpu::driver::{DevicePtr, Shape};
use wirespeed_gpu::names::{
    Wanted, bytes_of as bytes_of_names, pack, pack_ends, pack_rows, row_bytes_of, unpack,
};
use wirespeed_gpu::runtime::{Batch, Form, Gpu, GpuOptions, SlotSize, TableHandle};
use wirespeed_image::device::{OnDevice, Program};
use wirespeed_namelookup::Names;

use super::Device;
use super::bench::{Bench, Uploaded, one_batch};
use super::trip::{Filled, Trip, checked};
use crate::report::median;

/// The form of names in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Groups of 32 with short ends.
    Packed,
    /// An end each: the paper's contiguous names.
    Ends,
    /// Input numbers of up to so many bytes, interleaved: the paper's MATA-NW.
    Rows(usize),
}

impl Layout {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Ends => "contiguous",
            Self::Rows(_) => "interleaved",
        }
    }

    /// Writes names so; `None` where there is no room.
    pub fn pack(self, names: Names<'_>, to: &mut [u8]) -> Option<Form> {
        match self {
            Self::Packed => pack(names, Wanted::Results, to),
            Self::Ends => pack_ends(names, Wanted::Results, to),
            Self::Rows(stride) => pack_rows(names, stride, Wanted::Results, to),
        }
    }

    /// Bytes that are enough for names.
    pub fn room(self, names: Names<'_>) -> usize {
        match self {
            Self::Packed | Self::Ends => bytes_of_names(names),
            Self::Rows(stride) => row_bytes_of(names, stride),
        }
    }
}

/// The argument of a kernel that looks up what lies there in this form.
pub(crate) fn batch_of(names: DevicePtr, form: Form, results: DevicePtr) -> Batches {
    let second = names.plus(form.second().unwrap_or(0) as u64);
    one_batch(names, second, results, form.count(), form.result_bytes().unwrap_or(0))
}

/// Names on the device and room for their results.
#[derive(Debug)]
pub struct DeviceNames {
    /// The form of the names in memory.
    pub form: Form,
    blocks: Vec<DevicePtr>,
}

#[allow(unsafe_code)] // every call is waited for before what it uses is given back
impl Bench {
    /// Puts names on the device.
    pub fn names(&mut self, layout: Layout, names: Names<'_>) -> Result<DeviceNames> {
        let mut bytes = vec![0; layout.room(names)];
        let form = layout.pack(names, &mut bytes).context("room for names")?;
        let blocks = self.driver.alloc(&[form.bytes(), 4 * form.count()])?;
        self.put(blocks[0], &bytes[..form.bytes()])?;
        self.put(blocks[1], &vec![0xff; 4 * form.count()])?;
        Ok(DeviceNames { form, blocks })
    }

    /// Gives their memory back.
    pub fn drop_names(&mut self, names: &DeviceNames) -> Result<()> {
        self.free(&names.blocks)
    }

    /// Looks all of them up once.
    pub fn launch_names(&mut self, program: &Program, names: &DeviceNames, shape: Shape) -> Result<()> {
        let batch = batch_of(names.blocks[0], names.form, names.blocks[1]);
        let arguments = [bytes_of(&batch), &program.table[..]];
        // SAFETY: names, results and the table stay until they are given back, which waits for the stream.
        Ok(unsafe { self.driver.launch(self.stream, &program.kernel(names.form.kind()), shape, arguments) }?)
    }

    /// Holds the results of the last launch against the right ones, and overwrites them.
    pub fn check_names(&mut self, program: &Program, names: &DeviceNames, right: &[u32]) -> Result<()> {
        let mut bytes = vec![0; names.form.count() * program.result_bytes];
        // SAFETY: the destination lives until the copy is waited for.
        unsafe { self.driver.copy_out(self.stream, bytes.as_mut_ptr(), names.blocks[1], bytes.len()) }?;
        self.driver.synchronize(self.stream)?;
        let mut found = vec![0; right.len()];
        unpack(&bytes, program.result_bytes, &mut found);
        let differ = found.iter().zip(right).filter(|(found, right)| found != right).count();
        ensure!(differ == 0, "{}: {differ} of {} results differ from the CPU's", program.stem, right.len());
        bytes.fill(0xff);
        self.put(names.blocks[1], &bytes)
    }
}

/// A kernel's rate by program and launch.
#[derive(Clone, Debug)]
pub struct KernelRate {
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// Blocks and threads.
    pub shape: Shape,
    /// Names a second.
    pub rate: f64,
}

/// Every program of a table in every shape, the results of each held against the right ones; the fastest
/// first.
pub fn kernel_rates(
    bench: &mut Bench,
    table: &Uploaded,
    names: &DeviceNames,
    right: &[u32],
    rounds: usize,
) -> Result<Vec<KernelRate>> {
    let mut rates = Vec::new();
    for program in &table.programs {
        for shape in bench.shapes(program, names.form.kind())? {
            bench.launch_names(program, names, shape)?;
            bench.check_names(program, names, right)?;
            let launch = |bench: &mut Bench| bench.launch_names(program, names, shape);
            let rate = bench.rate_of(names.form.count(), rounds, launch)?;
            rates.push(KernelRate { shared: program.shared, shape, rate });
        }
    }
    rates.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    Ok(rates)
}

/// A GPU of this machine with so many slots for batches of so many names of so many bytes in all, polling all
/// the time.
pub fn start(slots: usize, names: usize, bytes: usize) -> Result<Gpu> {
    let key_bytes = bytes.div_ceil(names.max(1)) + 1;
    let options = GpuOptions {
        slots: vec![SlotSize { slots, keys: names }],
        key_bytes,
        spin: std::time::Duration::from_secs(1),
        ..GpuOptions::default()
    };
    Ok(Gpu::start(Device::Gpu.open()?, options)?)
}

/// A table on a GPU, its launches tuned with names of a sample.
pub fn upload<T: OnDevice>(gpu: &Gpu, table: &T, layout: Layout, sample: Names<'_>) -> Result<TableHandle> {
    let handle = gpu.upload(table.image(), |sections| table.programs(sections))?;
    gpu.tune_with(&handle, |batch: &mut Batch| {
        let count = batch.capacity().min(sample.len());
        layout.pack(sample.part(0..count), batch.keys_mut())
    })?;
    Ok(handle)
}

/// Takes and fills as many batches as will be under way, each with other names, and looks each up once to
/// hold its results against the right ones.
pub fn fill(
    gpu: &Gpu,
    handle: &TableHandle,
    layout: Layout,
    names: Names<'_>,
    right: &[u32],
    trip: &Trip,
) -> Result<Filled> {
    let mut batches = Vec::new();
    for at in 0..trip.in_flight {
        let from = at * trip.batch % (names.len() - trip.batch + 1);
        let part = names.part(from..from + trip.batch);
        let mut batch = gpu.batch(trip.batch)?;
        let form = layout.pack(part, batch.keys_mut()).context("a slot with room for its names")?;
        let done = batch.submit_form(handle, form).wait();
        let mut found = vec![u32::MAX; part.len()];
        unpack(checked(&done)?, done.result_bytes(), &mut found);
        ensure!(found == right[from..][..part.len()], "results of a batch of {} differ", part.len());
        batches.push((done.into_batch()?, form));
    }
    Ok(Filled(batches))
}

/// Bytes a second at which one thread writes names into memory that it has written to before, as they lie
/// there: the median of some rounds.
pub fn packing_rate(layout: Layout, names: Names<'_>, to: &mut [u8], rounds: usize) -> Result<f64> {
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        let form = layout.pack(names, to).context("room for names")?;
        #[allow(clippy::cast_precision_loss)] // a rate
        rates.push(form.bytes() as f64 / began.elapsed().as_secs_f64());
    }
    Ok(median(&rates))
}
