//! Algorithm 1: a batch of names cut into N parts, each copied in, looked up and copied out by a stream,
//! several at once.
//!
//! ```text
//! part 1   fetch ── kernel ── write back
//! part 2            fetch ─── kernel ──── write back          at most UNDER_WAY parts at a time, in order
//! part 3                      fetch ───── kernel ──── …       a batch ends when its last part is back
//! ```
//!
//! The paper gives every part to a stream of its own and all to the driver at once; the copies then stand in
//! its queue, which is no time that the paper's latency counts. Here a part is given to the driver when one
//! before it is back, so that latency is what a packet would see: from giving it away to having its result,
//! by the clock of the CPU.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bytemuck::bytes_of;
use wirespeed_gpu::driver::{DevicePtr, Event, Pinned, Shape, Stream};
use wirespeed_gpu::names::unpack;
use wirespeed_gpu::runtime::Form;
use wirespeed_image::device::Program;
use wirespeed_namelookup::Names;

use crate::gpu::bench::Bench;
use crate::gpu::in_form::batch_of;
use crate::gpu::names::Layout;
use crate::report::median;

/// Parts under way: one each on its way in, in a kernel and on its way out, and one to follow.
const UNDER_WAY: usize = 4;
/// Where a part may start in memory.
const ALIGN: usize = 256;

/// The program of lookups: a kernel and how it is launched; `None` for copies alone.
pub type Lookup<'p> = Option<(&'p Program, Shape)>;

/// A batch in pinned memory, cut into parts, and streams to send them by.
pub struct Pipeline {
    parts: Vec<Part>,
    names: Pinned,
    results: Pinned,
    lanes: Vec<Lane>,
    /// Names of the batch.
    pub count: usize,
    /// Bytes of all parts, as they cross the bus.
    pub bytes: usize,
}

/// Names that go together.
struct Part {
    form: Form,
    /// Where they start in pinned memory.
    at: usize,
    /// The first of them.
    first: usize,
}

struct Lane {
    stream: Stream,
    done: Event,
    blocks: Vec<DevicePtr>,
}

/// The times of a batch that is sent again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Seconds of a batch, the median.
    pub batch_seconds: f64,
    /// Names a second.
    pub rate: f64,
    /// Microseconds of a part, from giving it away to having its results: the median.
    pub p50: f64,
    /// Microseconds that one part in a hundred exceeds.
    pub p99: f64,
}

#[allow(unsafe_code)] // every part is waited for before its memory is used again or given back
impl Pipeline {
    /// Cuts names into so many parts, packs each, and takes streams for them.
    pub fn new(bench: &mut Bench, layout: Layout, names: Names<'_>, parts: usize) -> Result<Self> {
        let each = names.len().div_ceil(parts.max(1)).max(1);
        let starts: Vec<usize> = (0..names.len()).step_by(each).collect();
        let part = |from: usize| names.part(from..names.len().min(from + each));
        let room: usize =
            starts.iter().map(|&from| layout.room(part(from)).next_multiple_of(ALIGN) + ALIGN).sum();
        let pinned = bench.driver.alloc_pinned(room)?;
        // SAFETY: the memory is that long, and nothing else uses it yet.
        let memory = unsafe { std::slice::from_raw_parts_mut(pinned.host, room) };
        let (mut packed, mut at) = (Vec::with_capacity(starts.len()), 0usize);
        for &first in &starts {
            let form = layout.pack(part(first), &mut memory[at..]).context("room for names")?;
            packed.push(Part { form, at, first });
            at += form.bytes().next_multiple_of(ALIGN);
        }
        let largest = packed.iter().map(|part| part.form.bytes()).max().unwrap_or(0) + ALIGN;
        let results = bench.driver.alloc_pinned(4 * names.len() + ALIGN)?;
        let mut lanes = Vec::new();
        for _ in 0..packed.len().min(UNDER_WAY) {
            let blocks = bench.driver.alloc(&[largest, 4 * each + ALIGN])?;
            let (stream, done) = match bench.spare.pop() {
                Some(spare) => spare,
                None => (bench.driver.stream()?, bench.driver.event(false)?),
            };
            lanes.push(Lane { stream, done, blocks });
        }
        let bytes = packed.iter().map(|part| part.form.bytes()).sum();
        Ok(Self { parts: packed, names: pinned, results, lanes, count: names.len(), bytes })
    }

    /// Sends the batch once untimed and then for about so many seconds, twice at least.
    pub fn run(&self, bench: &mut Bench, lookup: Lookup<'_>, seconds: f64) -> Result<Timing> {
        let mut parts = Vec::with_capacity(self.parts.len());
        self.send(bench, lookup, &mut parts)?;
        parts.clear();
        let (mut batches, began) = (Vec::new(), Instant::now());
        while batches.len() < 2 || began.elapsed().as_secs_f64() < seconds {
            batches.push(self.send(bench, lookup, &mut parts)?);
        }
        parts.sort_by(f64::total_cmp);
        let at = |share: usize| parts[(parts.len() * share / 100).min(parts.len() - 1)];
        let batch_seconds = median(&batches);
        #[allow(clippy::cast_precision_loss)] // a rate
        let rate = self.count as f64 / batch_seconds;
        Ok(Timing { batch_seconds, rate, p50: at(50), p99: at(99) })
    }

    /// Sends the batch once; its seconds, and the microseconds of each part.
    fn send(&self, bench: &mut Bench, lookup: Lookup<'_>, times: &mut Vec<f64>) -> Result<f64> {
        let began = Instant::now();
        let mut given = vec![began; self.lanes.len()];
        for (at, part) in self.parts.iter().enumerate() {
            let lane = at % self.lanes.len();
            if at >= self.lanes.len() {
                times.push(self.back(bench, lane, given[lane])?);
            }
            given[lane] = Instant::now();
            self.give(bench, &self.lanes[lane], part, lookup)?;
        }
        let left = self.parts.len().saturating_sub(self.lanes.len());
        for at in left..self.parts.len() {
            let lane = at % self.lanes.len();
            times.push(self.back(bench, lane, given[lane])?);
        }
        Ok(began.elapsed().as_secs_f64())
    }

    /// Waits until what a lane has to do is done; microseconds since it was given.
    fn back(&self, bench: &mut Bench, lane: usize, given: Instant) -> Result<f64> {
        while !bench.driver.is_done(self.lanes[lane].done)? {
            std::hint::spin_loop();
        }
        Ok(given.elapsed().as_secs_f64() * 1e6)
    }

    /// Gives a part to the driver.
    fn give(&self, bench: &mut Bench, lane: &Lane, part: &Part, lookup: Lookup<'_>) -> Result<()> {
        let (names, results) = (lane.blocks[0], lane.blocks[1]);
        let result_bytes = lookup.map_or(1, |(program, _)| program.result_bytes);
        // SAFETY: pinned memory and the lane's blocks stay until `forget`, which comes after all is waited
        // for; the part lies in the former, and the latter have room for the largest part.
        unsafe {
            bench.driver.copy_in(lane.stream, names, self.names.host.add(part.at), part.form.bytes())?;
            if let Some((program, shape)) = lookup {
                let batch = batch_of(names, part.form, results);
                let arguments = [bytes_of(&batch), &program.table[..]];
                bench.driver.launch(lane.stream, &program.kernel(part.form.kind()), shape, arguments)?;
            }
            let to = self.results.host.add(part.first * result_bytes);
            bench.driver.copy_out(lane.stream, to, results, part.form.count() * result_bytes)?;
        }
        Ok(bench.driver.record(lane.done, lane.stream)?)
    }

    /// Sends the batch once over spoilt results, and holds those that come back against the right ones.
    pub fn check(&self, bench: &mut Bench, lookup: (&Program, Shape), right: &[u32]) -> Result<()> {
        // SAFETY: the memory is that long, and nothing is under way.
        unsafe { std::slice::from_raw_parts_mut(self.results.host, self.results.len) }.fill(0xff);
        self.send(bench, Some(lookup), &mut Vec::new())?;
        let width = lookup.0.result_bytes;
        // SAFETY: as above: all parts were waited for.
        let bytes = unsafe { std::slice::from_raw_parts(self.results.host, self.count * width) };
        let mut found = vec![0; self.count];
        unpack(bytes, width, &mut found);
        let wrong = found.iter().zip(right).filter(|(found, right)| found != right).count();
        ensure!(wrong == 0, "{} with {:?}: {wrong} of {} results", lookup.0.stem, lookup.1, self.count);
        Ok(())
    }

    /// Gives all memory back.
    pub fn forget(self, bench: &mut Bench) -> Result<()> {
        for lane in &self.lanes {
            bench.driver.synchronize(lane.stream)?;
        }
        for lane in &self.lanes {
            bench.free(&lane.blocks)?;
            bench.spare.push((lane.stream, lane.done));
        }
        // SAFETY: all streams were waited for.
        unsafe {
            bench.driver.free_pinned(self.names);
            bench.driver.free_pinned(self.results);
        }
        Ok(())
    }
}
