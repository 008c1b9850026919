//! The choice of a table's program for a batch, with numbers of blocks and threads; and the sweep that
//! measures them.
//!
//! Without a sweep a launch has as many blocks as the device holds at once, or fewer if there is not enough
//! work: 256 threads a block, 1,024 if each block stages a part of the table. The sweep tries these and other
//! numbers for each kernel and class of sizes, and takes the launch with the lowest cost ([`cost`]): one for
//! a batch among others, and one for a launch that has the device for itself. A mapped batch of
//! fixed-size keys gets few and large blocks, because each says that it is done (`flag`) with a word over the
//! bus. The sweep does not measure that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytemuck::bytes_of;
use rustc_hash::FxHashMap;

use super::submit::kernel_batch;
use super::{Cargo, Owner, timed_out};
use crate::driver::batches::{Batches, KernelBatch};
use crate::driver::{Driver, Event, Kernel, Shape};
use crate::error::GpuError;
use crate::runtime::Result;
use crate::runtime::form::Form;
use crate::runtime::slot::Slot;
use crate::runtime::tune::{Company, SMALLEST, Tuned, Tuning, class_of};
use wirespeed_image::device::{Kind, Program};

/// The batch size from which on staging is worthwhile, if nothing was measured.
const LARGE: usize = 1 << 18;
/// Threads of a block, and keys of a thread, that are tried. Those that use the device best come first,
/// because the time may be short.
const THREADS: [u32; 4] = [1024, 512, 256, 128];
const KEYS: [usize; 4] = [1, 4, 8, 16];
/// The largest mapped batch for one block.
const FEW: u64 = 1024;
/// Keys for each thread of a mapped batch at least: with more threads an H200 is not faster over the bus.
const MAPPED_KEYS: u64 = 16;
/// Keys for each thread, if nothing was measured.
const USUAL_KEYS: usize = 4;
/// The most time of a sweep.
const SWEEP: Duration = Duration::from_millis(800);

/// The kind of keys, the class of sizes and the company that a launch is for.
pub(super) type LaunchOf = (Kind, u32, Company);

/// A program that looks up one kind of keys in batches of one class of sizes.
pub(super) struct Launch {
    /// An id that no other launch ever has.
    pub(super) id: u64,
    pub(super) kernel: Kernel,
    pub(super) argument: Vec<u8>,
    pub(super) result_bytes: usize,
    shape: Shape,
    /// The most threads of a block, for keys of so many bytes each.
    widest: Option<u32>,
}

impl Launch {
    /// The shape for a batch: not more threads than keys.
    pub(super) fn shape_for(&self, count: u64) -> Shape {
        let enough = u32::try_from(count.div_ceil(u64::from(self.shape.threads))).unwrap_or(u32::MAX);
        Shape { blocks: self.shape.blocks.min(enough).max(1), ..self.shape }
    }

    /// The shape for keys and results in pinned memory: one block if each thread then gets at most a few
    /// keys, and no more blocks than it takes for a few keys more.
    pub(super) fn mapped_shape_for(&self, count: u64) -> Shape {
        let usual = self.shape_for(count);
        if count <= FEW.min(u64::from(usual.threads) * USUAL_KEYS as u64) {
            return Shape { blocks: 1, ..usual };
        }
        let Some(threads) = self.widest else { return usual };
        let all = (u64::from(usual.blocks) * u64::from(usual.threads)).min(count.div_ceil(MAPPED_KEYS));
        let blocks = u32::try_from(all.div_ceil(u64::from(threads))).unwrap_or(u32::MAX);
        Shape { blocks: blocks.max(1), threads, ..usual }
    }
}

/// A launch that the sweep tries.
struct Trial<'a> {
    slot: &'a Slot,
    program: &'a Program,
    kernel: &'a Kernel,
    shape: Shape,
    batch: &'a KernelBatch,
}

/// The measurements, and the events for measuring.
pub(super) struct Tuner {
    begin: Event,
    end: Event,
    /// The best launch of each class, with company and without, by module, kernel and shared memory.
    known: FxHashMap<(String, String, u32), Vec<Tuned>>,
}

impl Tuner {
    pub(super) fn new(driver: &mut dyn Driver) -> Result<Self> {
        Ok(Self { begin: driver.event(true)?, end: driver.event(true)?, known: FxHashMap::default() })
    }

    pub(super) fn learn(&mut self, tuned: Vec<Tuned>) {
        for tuned in tuned {
            let of =
                self.known.entry((tuned.module.clone(), tuned.kernel.clone(), tuned.shared)).or_default();
            of.retain(|old| (old.class, old.company) != (tuned.class, tuned.company));
            of.push(tuned);
        }
    }

    /// The best known launch of a kernel for the class, or for the nearest class. Without one in this company
    /// one in another will do: an earlier version of this software may have measured it. The launch of a
    /// larger class than was measured is estimated ([`grown`], [`lasting`]).
    fn best(
        &self,
        kernel: &Kernel,
        shared: u32,
        (class, company): (u32, Company),
        held: impl FnOnce(u32) -> Result<u32>,
    ) -> Result<Option<Measured>> {
        let known = self.known.get(&(kernel.module.to_owned(), kernel.name.clone(), shared));
        let nearest = |class: u32, company: Company| {
            known?.iter().min_by_key(|tuned| (tuned.company != company, tuned.class.abs_diff(class)))
        };
        let Some(best) = nearest(class, company) else { return Ok(None) };
        let held = held(best.threads)?;
        let larger = class.saturating_sub(best.class);
        let before = best.class.checked_sub(1).and_then(|class| {
            known?
                .iter()
                .filter(|tuned| tuned.company == best.company && tuned.class <= class)
                .max_by_key(|tuned| tuned.class)
        });
        Ok(Some(Measured {
            ns: if larger > 0 { lasting(best, before, class) } else { best.ns },
            blocks: grown(best.blocks, larger, held),
            threads: best.threads,
            held,
        }))
    }
}

/// A launch that was measured, or estimated from one that was.
struct Measured {
    ns: f64,
    blocks: u32,
    threads: u32,
    /// The number of such blocks that the device holds at once.
    held: u32,
}

impl Owner {
    /// The launch that looks up `count` keys in a table.
    pub(super) fn launch_for(
        &mut self,
        table: u64,
        kind: Kind,
        count: usize,
        company: Company,
    ) -> Result<Arc<Launch>> {
        let of = (kind, class_of(count), company);
        let state = self.table(table)?;
        let known = state.launches.iter().find(|(known, _)| *known == of);
        if let Some((_, launch)) = known {
            return Ok(Arc::clone(launch));
        }
        let programs = state.programs.clone();
        let launch = Arc::new(self.choose(&programs, of)?);
        if let Some(state) = self.tables.get_mut(&table) {
            state.launches.push((of, Arc::clone(&launch)));
        }
        Ok(launch)
    }

    fn choose(&mut self, programs: &[Program], (kind, class, company): LaunchOf) -> Result<Launch> {
        let mut least: Option<(f64, &Program, Shape)> = None;
        for program in programs {
            let kernel = program.kernel(kind);
            let (driver, multiprocessors) = (&mut self.driver, self.shared.properties.multiprocessors);
            let held = |threads| held(&mut **driver, multiprocessors, &kernel, threads, program.shared);
            let best = self.tuner.best(&kernel, program.shared, (class, company), held)?;
            let Some(Measured { ns, blocks, threads, held }) = best else { continue };
            let cost = cost(ns, blocks, held, company);
            if least.as_ref().is_none_or(|&(least, ..)| cost < least) {
                least = Some((cost, program, Shape::row(blocks, threads, program.shared)));
            }
        }
        let (program, shape) = match least {
            Some((_, program, shape)) => (program, shape),
            None => {
                let count = 1usize << class;
                let at = if count >= LARGE { 0 } else { programs.len() - 1 };
                (&programs[at], self.usual_shape(&programs[at], kind, count)?)
            }
        };
        let kernel = program.kernel(kind);
        let mut widest = None;
        if matches!(kind, Kind::Bytes(_)) {
            for threads in THREADS {
                if self.held(&kernel, threads, program.shared)? > 0 {
                    widest = Some(threads);
                    break;
                }
            }
        }
        let (argument, result_bytes) = (program.table.clone(), program.result_bytes);
        Ok(Launch { id: self.shared.next_id(), kernel, argument, result_bytes, shape, widest })
    }

    fn usual_shape(&mut self, program: &Program, kind: Kind, count: usize) -> Result<Shape> {
        let kernel = program.kernel(kind);
        let first = if program.shared > 0 { 1024 } else { 256 };
        for threads in [first, 512, 256, 128] {
            let held = self.held(&kernel, threads, program.shared)?;
            if held > 0 {
                let blocks = enough(count, threads, USUAL_KEYS).min(held);
                return Ok(Shape::row(blocks, threads, program.shared));
            }
        }
        let (needs, there) = (program.shared, self.shared.properties.shared_per_block);
        let name = kernel.name;
        Err(GpuError::Unsupported(format!(
            "{name}: {needs} bytes of shared memory a block, there are {there}"
        )))
    }

    fn held(&mut self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        held(&mut *self.driver, self.shared.properties.multiprocessors, kernel, threads, shared)
    }

    /// Measures all programs of a table with random keys, which are in the slot. The slot's stream is idle
    /// when it returns.
    pub(super) fn tune(&mut self, slot: &Slot, table: u64, form: Form) -> Result<Tuning> {
        let tuned = self.sweep_all(slot, table, form);
        if tuned.as_ref().is_err_and(GpuError::is_fatal) {
            return tuned;
        }
        // An error may have come in the middle, and if the time was up nothing was waited for.
        self.wait_for(slot).and(tuned)
    }

    fn sweep_all(&mut self, slot: &Slot, table: u64, form: Form) -> Result<Tuning> {
        self.flush(table)?;
        self.wait_until(|owner| owner.flights.iter().all(|flight| matches!(flight.cargo, Cargo::Foreign)))?;
        if form.bytes() > slot.keys.len || form.count() > slot.capacity {
            return Err(GpuError::TooManyKeys { asked: form.count(), most: slot.capacity });
        }
        #[allow(unsafe_code)] // a copy to the device
        // SAFETY: both are the slot's, equally long, and `tune` waits for the stream before the slot leaves
        // (where that fails the device is lost).
        unsafe {
            self.driver.copy_in(slot.stream, slot.device_keys, slot.keys.host, slot.keys.len)?;
        }
        let programs = self.table(table)?.programs.clone();
        let classes: Vec<u32> =
            (SMALLEST..).step_by(2).take_while(|&class| form.count() >> class != 0).collect();
        let (until, mut parts) = (Instant::now() + SWEEP, programs.len() * classes.len());
        let mut tuned = Vec::new();
        for (program, &class) in
            programs.iter().flat_map(|program| classes.iter().map(move |class| (program, class)))
        {
            // Each program has its share of the time, so that kernels that are slow with few keys leave time
            // for many keys.
            let now = Instant::now();
            let share = until.saturating_duration_since(now) / u32::try_from(parts).unwrap_or(u32::MAX);
            parts -= 1;
            tuned.extend(self.sweep(slot, program, form.first(1 << class), now + share)?);
        }
        self.tuner.learn(tuned.clone());
        self.tables.values_mut().for_each(super::TableState::forget_launches);
        Ok(Tuning { device: self.shared.properties.name.clone(), tuned })
    }

    /// The best blocks and threads of a program for these keys, among those that there is time for, with
    /// company and without. Empty if the device holds no block.
    fn sweep(&mut self, slot: &Slot, program: &Program, form: Form, until: Instant) -> Result<Vec<Tuned>> {
        let (count, class) = (form.count(), form.count().ilog2());
        let kernel = program.kernel(form.kind());
        let batch = kernel_batch(slot.device_keys, form, slot.device_results, program.result_bytes);
        let mut best: [(f64, Option<Tuned>); 2] = [(f64::INFINITY, None), (f64::INFINITY, None)];
        let companies = [Company::Batches, Company::Nothing];
        for threads in THREADS {
            let held = self.held(&kernel, threads, program.shared)?;
            for blocks in candidates(count, threads, held, self.shared.properties.multiprocessors) {
                if best[0].1.is_some() && Instant::now() >= until {
                    return Ok(best.into_iter().filter_map(|(_, best)| best).collect());
                }
                let shape = Shape::row(blocks, threads, program.shared);
                // A launch that takes longer than both of these costs more than the best ones.
                let to_beat = [0, 1].map(|at| best[at].0 / cost(1.0, blocks, held, companies[at]));
                let trial = Trial { slot, program, kernel: &kernel, shape, batch: &batch };
                let ns = self.timed(&trial, to_beat[0].max(to_beat[1]))?;
                for (at, company) in companies.into_iter().enumerate() {
                    if ns < to_beat[at] {
                        let (module, kernel) = (kernel.module.to_owned(), kernel.name.clone());
                        let shared = program.shared;
                        let tuned = Tuned { module, kernel, shared, company, class, blocks, threads, ns };
                        best[at] = (cost(ns, blocks, held, company), Some(tuned));
                    }
                }
            }
        }
        Ok(best.into_iter().filter_map(|(_, best)| best).collect())
    }

    /// Nanoseconds of a launch: of one round if it is far from the best, otherwise the better of two rounds.
    fn timed(&mut self, trial: &Trial<'_>, to_beat: f64) -> Result<f64> {
        /// Nanoseconds of a round, the most launches in it, and the most time of the way to the device and
        /// back.
        const ROUND: f64 = 400e3;
        const LAUNCHES: f64 = 16.0;
        const WAY: f64 = 20e3;
        let mut best = self.launched(trial, 1)?;
        if best > 2.0 * to_beat + WAY {
            return Ok(best);
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 16 at most
        let times = (ROUND / best).clamp(1.0, LAUNCHES) as u16;
        for _ in 0..2 {
            best = best.min(self.launched(trial, times)?);
        }
        Ok(best)
    }

    /// Nanoseconds of one of `times` launches.
    fn launched(&mut self, trial: &Trial<'_>, times: u16) -> Result<f64> {
        let Trial { slot, program, kernel, shape, batch } = *trial;
        let batches = Batches::of(&[*batch]);
        self.driver.record(self.tuner.begin, slot.stream)?;
        for _ in 0..times {
            let arguments = [bytes_of(&batches), &program.table[..]];
            #[allow(unsafe_code)] // a launch
            // SAFETY: keys and results are the slot's and long enough for as many keys as it holds; the table
            // stays, as its handle asked for this and no command comes between.
            unsafe {
                self.driver.launch(slot.stream, kernel, shape, arguments)?;
            }
        }
        self.wait_for(slot)?;
        let ms = self.driver.elapsed_ms(self.tuner.begin, self.tuner.end)?;
        Ok(f64::from(ms) * 1e6 / f64::from(times))
    }

    /// Waits for all work of a slot's stream.
    fn wait_for(&mut self, slot: &Slot) -> Result<()> {
        self.driver.record(self.tuner.end, slot.stream)?;
        let began = Instant::now();
        while !self.driver.is_done(self.tuner.end)? {
            if began.elapsed() > self.shared.options.timeout {
                return Err(timed_out(self.shared.options.timeout));
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Numbers of blocks to try, descending: one that gives each thread a few keys, and 1, 2, 4, … for each
/// multiprocessor.
fn candidates(count: usize, threads: u32, held: u32, multiprocessors: u32) -> Vec<u32> {
    let by_keys = KEYS.iter().map(|&keys| enough(count, threads, keys));
    let by_device = std::iter::successors(Some(multiprocessors.max(1)), |blocks| blocks.checked_mul(2));
    let most = enough(count, threads, 1).min(held);
    let by_device = by_device.take_while(|&blocks| blocks <= most);
    let mut all: Vec<u32> = by_keys.chain(by_device).filter(|&blocks| blocks <= held).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup();
    all
}

/// The cost of a launch: its time, if it has the device for itself. Among batches the mean of this and of its
/// time multiplied by its share of the device.
fn cost(ns: f64, blocks: u32, held: u32, company: Company) -> f64 {
    let share = match company {
        Company::Batches => f64::from(blocks) / f64::from(held.max(1)),
        Company::Nothing => 1.0,
    };
    ns * f64::midpoint(1.0, share.min(1.0))
}

/// The number of blocks that a device holds at once.
fn held(
    driver: &mut dyn Driver,
    multiprocessors: u32,
    kernel: &Kernel,
    threads: u32,
    shared: u32,
) -> Result<u32> {
    Ok(driver.blocks_per_multiprocessor(kernel, threads, shared)? * multiprocessors.max(1))
}

/// Nanoseconds for 2^`class` keys, more than were measured: each key takes as long as the last ones did. What
/// a launch takes whatever its keys, such as staging, is then not counted again.
#[allow(clippy::cast_precision_loss)] // an estimate
fn lasting(best: &Tuned, before: Option<&Tuned>, class: u32) -> f64 {
    let keys = |class: u32| (1u64 << class.min(63)) as f64;
    let each = before
        .map(|before| (best.ns - before.ns) / (keys(best.class) - keys(before.class)))
        .filter(|&each| each > 0.0)
        .unwrap_or(best.ns / keys(best.class));
    best.ns + each * (keys(class) - keys(best.class))
}

/// Blocks for 2^`larger` times the keys that a launch was measured with: keys on the device can be more than
/// a slot holds. Each block has as much work as before, until the device is full.
fn grown(blocks: u32, larger: u32, held: u32) -> u32 {
    blocks.checked_shl(larger).filter(|grown| grown >> larger == blocks).unwrap_or(held).min(held).max(blocks)
}

/// The number of blocks with one thread for every `keys` keys.
fn enough(count: usize, threads: u32, keys: usize) -> u32 {
    u32::try_from(count.div_ceil(threads as usize * keys)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_keys_get_few_blocks() {
        let launch = |blocks, threads, widest| Launch {
            id: 1,
            kernel: Kernel { module: "m", name: "k".into() },
            argument: Vec::new(),
            result_bytes: 1,
            shape: Shape::row(blocks, threads, 0),
            widest,
        };
        let shapes = |of: &Launch, count| {
            [of.mapped_shape_for(count), of.shape_for(count)].map(|shape| (shape.blocks, shape.threads))
        };
        let names = launch(2, 128, None);
        let few = [1, 256, 512, 513].map(|count| shapes(&names, count)[0]);
        assert_eq!(few, [(1, 128), (1, 128), (1, 128), (2, 128)]);
        assert_eq!([1, 256, 513].map(|count| shapes(&names, count)[1].0), [1, 2, 2]);
        assert_eq!([1024, 1025].map(|count| shapes(&launch(9, 512, None), count)[0].0), [1, 3]);
        // As many threads in large blocks, with 16 keys each at least.
        let keys = launch(64, 128, Some(1024));
        let shapes = [100, 4096, 16_384, 16_385, 65_536, 1 << 20].map(|count| shapes(&keys, count)[0]);
        assert_eq!(shapes, [(1, 128), (1, 1024), (1, 1024), (2, 1024), (4, 1024), (8, 1024)]);
    }

    #[test]
    fn a_part_of_the_device_for_a_little_longer_costs_less() {
        let cost = |ns, blocks, held| super::cost(ns, blocks, held, Company::Batches);
        assert!(cost(12.0, 32, 132) < cost(10.0, 132, 132) && cost(20.0, 32, 132) > cost(10.0, 132, 132));
        assert!(cost(9.0, 132, 132) < cost(10.0, 132, 132) && cost(10.0, 300, 0) == 10.0);
        assert_eq!(super::cost(12.0, 32, 132, Company::Nothing), 12.0);
    }

    #[test]
    fn launches_grow_with_their_keys_until_the_device_is_full() {
        assert_eq!([0, 1, 2, 3].map(|larger| grown(64, larger, 264)), [64, 128, 256, 264]);
        assert_eq!([grown(64, 40, 264), grown(64, 31, 264), grown(300, 1, 264)], [264, 264, 300]);
    }

    #[test]
    fn times_of_more_keys_leave_out_what_a_launch_takes_anyhow() {
        let tuned = |class, ns| Tuned {
            module: "m".into(),
            kernel: "k".into(),
            shared: 0,
            company: Company::Nothing,
            class,
            blocks: 1,
            threads: 128,
            ns,
        };
        // 1 µs a launch and 1 ns a key.
        let (before, best) = (tuned(8, 1256.0), tuned(10, 2024.0));
        assert_eq!(lasting(&best, Some(&before), 12), 1000.0 + 4096.0);
        assert_eq!(lasting(&best, None, 11), 2.0 * 2024.0);
        assert_eq!(lasting(&best, Some(&tuned(8, 3000.0)), 11), 2.0 * 2024.0);
    }

    #[test]
    fn candidates_are_few_and_fit_the_device() {
        assert_eq!(candidates(256, 128, 2112, 132), [2, 1]);
        assert_eq!(candidates(1 << 20, 1024, 264, 132), [264, 256, 132, 128, 64]);
        assert_eq!(candidates(1 << 20, 1024, 0, 132), [0u32; 0]);
        for blocks in candidates(1 << 22, 128, 2112, 132) {
            assert!((1..=2112).contains(&blocks));
        }
    }
}
