//! Names on a GPU: kernels with names on the device, and whole trips with names in pinned memory.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use wirespeed_gpu::names::{
    Wanted, bytes_of as bytes_of_names, pack, pack_ends, pack_rows, row_bytes_of, unpack,
};
use wirespeed_gpu::runtime::{Batch, Form, Gpu, GpuOptions, SlotSize, TableHandle};
use wirespeed_image::device::OnDevice;
use wirespeed_namelookup::Names;

use super::Device;
use super::bench::Bench;
use super::in_form::InForm;
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

impl Bench {
    /// Puts names on the device.
    pub fn names(&mut self, layout: Layout, names: Names<'_>) -> Result<InForm> {
        let mut bytes = vec![0; layout.room(names)];
        let form = layout.pack(names, &mut bytes).context("room for names")?;
        self.in_form(&bytes[..form.bytes()], form)
    }
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
