//! Measuring a device: transfers by batch size, and launches of programs.

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Result;
use super::batch::{Batch, Done, Ticket};
use super::calibration::{Calibration, Measured};
use super::command::Command;
use super::form::Form;
use super::gpu::Gpu;
use super::options::Way;
use super::table::TableHandle;
use super::tune::Tuning;
use crate::error::GpuError;

/// The measured sizes: 2^8, 2^10, … 2^22 keys, as far as slots hold them, and the largest power of two that
/// they hold.
const SIZES: [u32; 8] = [8, 10, 12, 14, 16, 18, 20, 22];
/// The most batches under way while a rate is measured.
const STREAMED: usize = 16;
/// The time that a rate is measured for, if the budget allows it.
const STREAMING: Duration = Duration::from_millis(8);
/// The most single batches that are measured for a transfer and size.
const LONE: usize = 15;
impl Gpu {
    /// A batch for a measurement. Fails if none comes free: slots may be kept for any time.
    fn batch_in_time(&self, keys: usize) -> Result<Batch> {
        let timeout = self.options().timeout;
        let batch = self.batch_until(keys, Instant::now() + timeout)?;
        batch.ok_or_else(|| GpuError::NoSlot(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Measures each transfer by batch size, for half a second at most, with the slots that such batches get.
    /// [`Transfer::Auto`](super::Transfer::Auto) chooses by the result from then on. Keys are random bytes.
    /// Batches of other threads disturb the measurement.
    pub fn calibrate(&self, table: &TableHandle, key_bytes: usize) -> Result<Calibration> {
        let seed = Cell::new(0);
        let write = |batch: &mut Batch, count: usize| {
            seed.set(seed.get() + 1);
            let used = (count * key_bytes).min(batch.keys_mut().len());
            fill(&mut batch.keys_mut()[..used], seed.get());
            Form::keys(key_bytes, count)
        };
        run(self, table, &write, Duration::from_millis(500))
    }

    /// Measures like [`calibrate`](Self::calibrate), with keys of any length: `fill` writes the first keys of
    /// a sample into a batch and returns their form, or `None` if they don't fit.
    pub fn calibrate_with(
        &self,
        table: &TableHandle,
        fill: impl Fn(&mut Batch, usize) -> Option<Form>,
    ) -> Result<Calibration> {
        run(self, table, &fill, Duration::from_millis(500))
    }

    /// Measures by batch size the best numbers of blocks and threads for each of the table's programs, and
    /// the fastest program, and uses the result. Keys are random bytes on the device. All other work waits,
    /// well under a second.
    pub fn tune(&self, table: &TableHandle, key_bytes: usize) -> Result<Tuning> {
        self.tune_keys(table, key_bytes, |batch| {
            fill(batch.keys_mut(), 1);
            Form::keys(key_bytes, batch.capacity())
        })
    }

    /// Measures like [`tune`](Self::tune), with keys of `key_bytes` bytes that `fill` writes.
    pub(crate) fn tune_keys(
        &self,
        table: &TableHandle,
        key_bytes: usize,
        fill: impl FnOnce(&mut Batch) -> Option<Form>,
    ) -> Result<Tuning> {
        let most = self.options().key_bytes;
        if key_bytes > most {
            return Err(GpuError::TooWide { what: "keys", asked: key_bytes, most });
        }
        self.tune_with(table, fill)
    }

    /// Measures like [`tune`](Self::tune), with keys of any length: `fill` writes as many keys of a sample as
    /// fit into a batch and returns their form.
    pub fn tune_with(
        &self,
        table: &TableHandle,
        fill: impl FnOnce(&mut Batch) -> Option<Form>,
    ) -> Result<Tuning> {
        if !table.is_of(&self.core) {
            return Err(GpuError::OtherDevice);
        }
        let mut batch = self.batch_in_time(self.largest_batch())?;
        let too_many = GpuError::TooManyKeys { asked: batch.capacity(), most: batch.capacity() };
        let form = fill(&mut batch).ok_or(too_many)?;
        let (slot, table) = (batch.into_slot(), table.id());
        self.core.ask(|answer| Command::Tune { slot, table, form, answer })
    }
}

/// Fills memory with random bytes, which depend on the seed only. The seed must not be 0.
fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for word in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes()[..word.len()]);
    }
}

fn run(
    gpu: &Gpu,
    table: &TableHandle,
    fill: &dyn Fn(&mut Batch, usize) -> Option<Form>,
    budget: Duration,
) -> Result<Calibration> {
    let most = gpu.largest_batch();
    let mut bench = Bench { table, batches: Vec::new() };
    let largest = most.checked_ilog2();
    let sizes = SIZES.into_iter().filter(|&size| Some(size) < largest).chain(largest);
    let cells: Vec<(u32, Way)> = sizes.flat_map(|size| Way::ALL.map(|way| (size, way))).collect();
    let until = Instant::now() + budget;
    let device = gpu.properties().name.clone();
    let mut calibration = Calibration { device, key_bytes: 0, measured: Vec::new() };
    let mut filled = None;
    for (at, &(size, way)) in cells.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let share = left / u32::try_from(cells.len() - at).expect("few cells");
        if filled.is_none_or(|(of, _)| of != size) {
            // Keys that are longer than slots are made for need a larger slot.
            filled = None;
            for slot in [1 << size, most] {
                // They go back first: a slot that is waited for may be among them.
                bench.batches.clear();
                bench.batches = batches_for(gpu, slot)?;
                let forms: Option<Vec<Form>> =
                    bench.batches.iter_mut().map(|batch| fill(batch, 1 << size)).collect();
                // All slots have the same keys.
                filled = forms.and_then(|forms| forms.last().map(|&form| (size, form)));
                if filled.is_some() {
                    break;
                }
            }
        }
        let Some((_, form)) = filled else { break };
        calibration.key_bytes = form.bytes().div_ceil(form.count().max(1));
        calibration.measured.push(bench.measure(way, form, share)?);
    }
    drop(bench);
    if !calibration.measured.is_empty() {
        gpu.set_calibration(calibration.clone())?;
    }
    Ok(calibration)
}

/// Batches of the slots that such batches get.
fn batches_for(gpu: &Gpu, keys: usize) -> Result<Vec<Batch>> {
    let mut batches = vec![gpu.batch_in_time(keys)?];
    while batches.len() < STREAMED
        && let Some(batch) = gpu.try_batch(keys)?
    {
        batches.push(batch);
    }
    Ok(batches)
}

struct Bench<'a> {
    table: &'a TableHandle,
    batches: Vec<Batch>,
}

impl Bench<'_> {
    fn measure(&mut self, way: Way, form: Form, share: Duration) -> Result<Measured> {
        let lone_us = self.lone(way, form, share / 2)?;
        let rate = self.streamed(way, form, share / 2)?;
        Ok(Measured { way, count: form.count(), lone_us, rate })
    }

    fn lone(&mut self, way: Way, form: Form, share: Duration) -> Result<f64> {
        // First each slot is used as often as recording a graph takes.
        for _ in 0..2 {
            let tickets: Vec<_> = std::mem::take(&mut self.batches)
                .into_iter()
                .map(|batch| batch.submit_form_by(way, self.table, form))
                .collect();
            for ticket in tickets {
                self.batches.push(checked(ticket.wait())?);
            }
        }
        let until = Instant::now() + share;
        let mut times = Vec::new();
        while times.is_empty() || times.len() < LONE && Instant::now() < until {
            let batch = self.batches.pop().expect("one batch at least");
            let began = Instant::now();
            let done = batch.submit_form_by(way, self.table, form).wait();
            times.push(began.elapsed().as_secs_f64() * 1e6);
            self.batches.push(checked(done)?);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }

    fn streamed(&mut self, way: Way, form: Form, share: Duration) -> Result<f64> {
        let (began, time) = (Instant::now(), share.min(STREAMING));
        let mut under_way: VecDeque<Ticket> = VecDeque::new();
        let mut done = 0usize;
        for batch in std::mem::take(&mut self.batches) {
            under_way.push_back(batch.submit_form_by(way, self.table, form));
        }
        while let Some(ticket) = under_way.pop_front() {
            let batch = checked(ticket.wait())?;
            done += form.count();
            if began.elapsed() < time {
                under_way.push_back(batch.submit_form_by(way, self.table, form));
            } else {
                self.batches.push(batch);
            }
        }
        #[allow(clippy::cast_precision_loss)] // a rate
        let rate = done as f64 / began.elapsed().as_secs_f64();
        Ok(rate)
    }
}

fn checked(done: Done) -> Result<Batch> {
    if let Err(error) = done.results() {
        return Err(error.clone());
    }
    done.into_batch()
}
