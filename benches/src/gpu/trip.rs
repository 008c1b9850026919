//! Whole trips: keys in pinned memory, over the bus, through a kernel, and the results back in pinned memory.
//!
//! Batches are filled before the clock starts, each with other keys of the trace, and sent again as soon as
//! they are back, so that what is measured is the way and not the filling. The results of each are checked
//! first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytemuck::cast_slice_mut;
use wirespeed_fib::{Address, Lookup, NextHop};
use wirespeed_gpu::driver::Cuda;
use wirespeed_gpu::ip::{KeyBytes, pack};
use wirespeed_gpu::numbers::unpack;
use wirespeed_gpu::runtime::{Batch, Done, Form, Gpu, GpuOptions, SlotSize, TableHandle, Ticket, Way};
use wirespeed_image::device::OnDevice;

use crate::report::median;

/// The conditions of trips.
#[derive(Clone, Copy, Debug)]
pub struct Trip {
    /// Keys of a batch.
    pub batch: usize,
    /// Batches under way.
    pub in_flight: usize,
    /// The way of their data; without it the runtime chooses.
    pub way: Option<Way>,
    /// The length of the measurement.
    pub time: Duration,
}

/// The results of trips.
#[derive(Clone, Copy, Debug)]
pub struct Travelled {
    /// Keys a second.
    pub rate: f64,
    /// Microseconds from sending a batch to having its results.
    pub p50: f64,
    /// Microseconds that one batch in a hundred exceeds.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// A GPU of this machine with slots for such batches, polling all the time.
pub fn start(number: usize, key: KeyBytes, slots: &[SlotSize]) -> Result<Gpu> {
    let options = GpuOptions {
        slots: slots.to_vec(),
        key_bytes: key.count(),
        spin: Duration::from_secs(1),
        ..GpuOptions::default()
    };
    Ok(Gpu::start(Box::new(Cuda::open(number)?), options)?)
}

/// A table on a GPU, its launches tuned.
pub fn upload<T: OnDevice>(gpu: &Gpu, table: &T, key: KeyBytes) -> Result<TableHandle> {
    let handle = gpu.upload(table.image(), |sections| table.programs(sections))?;
    gpu.tune(&handle, key.count())?;
    Ok(handle)
}

/// Batches filled from a trace, and how what is in them lies.
pub struct Filled(pub Vec<(Batch, Form)>);

/// Takes and fills as many batches as will be under way, and looks each up once to hold its results against
/// the CPU's.
pub fn fill<A: Address, T: Lookup<A>>(
    gpu: &Gpu,
    handle: &TableHandle,
    table: &T,
    keys: &[A],
    key: KeyBytes,
    trip: &Trip,
) -> Result<Filled> {
    let mut batches = Vec::new();
    for at in 0..trip.in_flight {
        let from = at * trip.batch % (keys.len() - trip.batch + 1);
        let part = &keys[from..from + trip.batch];
        let mut batch = gpu.batch(trip.batch)?;
        let form = pack(part, key, batch.keys_mut()).context("more keys than memory")?;
        let done = batch.submit_form(handle, form).wait();
        let mut found = vec![NextHop(u32::MAX); part.len()];
        unpack(checked(&done)?, done.result_bytes(), cast_slice_mut(&mut found));
        let mut right = vec![NextHop::NONE; part.len()];
        table.par_lookup_batch(part, &mut right);
        ensure!(found == right, "results of a batch of {} differ from the CPU's", part.len());
        batches.push((done.into_batch()?, form));
    }
    Ok(Filled(batches))
}

/// Sends batches round and round.
pub fn travel(handle: &TableHandle, filled: Filled, trip: &Trip) -> Result<(Travelled, Filled)> {
    let Filled(mut batches) = filled;
    let send = |(batch, form): (Batch, Form)| -> (Instant, Form, Ticket) {
        let now = Instant::now();
        let ticket = match trip.way {
            Some(way) => batch.submit_form_by(way, handle, form),
            None => batch.submit_form(handle, form),
        };
        (now, form, ticket)
    };
    // Twice for each slot first: a graph is recorded then.
    for _ in 0..2 {
        let sent: Vec<_> = batches.into_iter().map(send).collect();
        let wait = |(_, form, ticket): (_, _, Ticket)| Ok((back(ticket.wait())?, form));
        batches = sent.into_iter().map(wait).collect::<Result<_>>()?;
    }
    let mut times = Vec::new();
    let began = Instant::now();
    let mut under_way: VecDeque<_> = batches.into_iter().map(send).collect();
    let mut batches = Vec::new();
    let mut done = 0usize;
    while let Some((sent, form, ticket)) = under_way.pop_front() {
        let batch = back(ticket.wait())?;
        times.push(sent.elapsed().as_secs_f64() * 1e6);
        done += form.count();
        if began.elapsed() < trip.time {
            under_way.push_back(send((batch, form)));
        } else {
            batches.push((batch, form));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    #[allow(clippy::cast_precision_loss)] // a rate
    let rate = done as f64 / seconds;
    let travelled = Travelled { rate, p50: at(50), p99: at(99), max: times[times.len() - 1] };
    Ok((travelled, Filled(batches)))
}

/// Sends batches round and round so many times: the medians of what came of them.
pub fn travels(
    handle: &TableHandle,
    mut filled: Filled,
    trip: &Trip,
    rounds: usize,
) -> Result<(Travelled, Filled)> {
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let (travelled, back) = travel(handle, filled, trip)?;
        all.push(travelled);
        filled = back;
    }
    let of = |figure: fn(&Travelled) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
    let travelled =
        Travelled { rate: of(|t| t.rate), p50: of(|t| t.p50), p99: of(|t| t.p99), max: of(|t| t.max) };
    Ok((travelled, filled))
}

fn back(done: Done) -> Result<Batch> {
    checked(&done)?;
    Ok(done.into_batch()?)
}

pub(super) fn checked(done: &Done) -> Result<&[u8]> {
    Ok(done.results().map_err(Clone::clone)?)
}
