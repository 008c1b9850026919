//! The choice of CPU or GPU for each batch: PacketShader's opportunistic offloading, by measured cost and a
//! bound on latency.
//!
//! ```text
//! cpu(n)   n keys × what a key of such a batch costs on this CPU, kept up to date by batches that go there
//! feed(n)  n keys × what it costs this CPU to pack a key and to take its result, kept up to date likewise
//! gpu(n)   feed(n), what a lone batch of n takes, as calibrated, and what is under way before it
//!
//!                              load is low          load is high
//! both within the bound        CPU                  GPU
//! one within it                that one             that one
//! neither, or no bound         the sooner           the sooner
//! ```
//!
//! So at low load a batch stays on the CPU if that is in time, and without a bound a batch goes where it is
//! answered first. When a GPU has as much as it can do, cores look up themselves. A core also looks up where
//! it would be as long busy with feeding a GPU; now and then one batch goes there nevertheless, because the
//! cost of feeding may change. Keys that lie in a slot of a GPU already go there unless the CPU is clearly
//! better, because it would have to read them out of the slot. Load is the share of its threads' time that a
//! CPU spends on lookups, in windows of a millisecond. A decision reads a clock and a few shared numbers,
//! which takes well under a microsecond.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::GpuError;
use crate::per_key::PerKey;
pub use crate::tally::Counts;
use crate::tally::{self, Tally};

/// The device that looks a batch up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The engine on this CPU.
    Cpu,
    /// A GPU.
    Gpu,
}

/// The policy for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Policy {
    /// The most time that a batch may take. Without it a batch goes where it is answered first.
    pub latency_bound: Option<Duration>,
}

/// The load from which on the CPU counts as busy.
const HIGH_LOAD: f64 = 0.7;
/// The load below which the CPU no longer counts as busy, for a batch that was made for a GPU.
const LOW_LOAD: f64 = 0.5;
/// A batch that was made for a GPU goes there unless the CPU is sooner by this factor: the other device has
/// to be clearly better.
const CLEARLY: u32 = 2;
/// Nanoseconds of a window.
const WINDOW: u64 = 1_000_000;
/// One batch in this many goes to a GPU although feeding it costs as much as a lookup on the CPU.
const PROBED: u64 = 512;
/// A batch of fewer keys is small.
const SMALL: usize = 4096;
/// One small batch in this many of a thread is measured where nobody asks for the load.
const SAMPLED: u64 = 32;
/// Keys of a batch by which the CPU's rate is told: results stay in its caches.
const USUAL: usize = 4096;

/// The cost of lookups on the CPU and the CPU's load, measured by all threads.
#[derive(Debug)]
pub struct Meter {
    started: Instant,
    /// The cost of each key that the CPU looks up.
    cpu_per_key: PerKey,
    /// The cost for the CPU of each key that a GPU looks up. 0 until it is known.
    feed_per_key: PerKey,
    /// Batches that were kept from a GPU because of the cost of feeding it.
    kept: AtomicU64,
    /// Start of the window, in nanoseconds from the start.
    window: AtomicU64,
    /// Nanoseconds that all threads spent on lookups in the window.
    busy: AtomicU64,
    /// The last whole window's load, in millionths of all threads' time.
    load: AtomicU64,
    /// The number of threads that look up.
    threads: u64,
}

impl Meter {
    /// Makes a meter for a number of threads, from the cost of a key on one thread.
    pub fn new(threads: usize, cpu_per_key: Duration) -> Self {
        Self::measured(threads, 1, cpu_per_key)
    }

    /// Makes a meter for a number of threads, from the time that a batch of `keys` keys took.
    pub fn measured(threads: usize, keys: usize, time: Duration) -> Self {
        let zero = || AtomicU64::new(0);
        let (cpu_per_key, feed_per_key) = (PerKey::measured(keys, time), PerKey::new(0));
        let (started, threads) = (Instant::now(), threads.max(1) as u64);
        let (kept, window, busy, load) = (zero(), zero(), zero(), zero());
        Self { started, cpu_per_key, feed_per_key, kept, window, busy, load, threads }
    }

    /// The expected cost of `keys` keys on the CPU.
    pub fn cpu(&self, keys: usize) -> Duration {
        self.cpu_per_key.of(keys)
    }

    /// The expected cost for the CPU of `keys` keys that a GPU looks up.
    pub fn feed(&self, keys: usize) -> Duration {
        self.feed_per_key.of(keys)
    }

    /// Keys a second that all threads look up on the CPU.
    #[allow(clippy::cast_precision_loss)] // a rate
    pub(crate) fn cpu_rate(&self) -> f64 {
        self.threads as f64 * 1e12 / self.cpu_per_key.of_one(USUAL) as f64
    }

    /// Whether a core looks up in the time that it takes to feed a GPU. Says no once in a while.
    fn is_fed_in_vain(&self, keys: usize) -> bool {
        let [cpu, feed] = [&self.cpu_per_key, &self.feed_per_key].map(|cost| cost.of_one(keys));
        feed >= cpu && self.kept.fetch_add(1, Ordering::Relaxed) % PROBED != PROBED - 1
    }

    /// Notes the time that the CPU took for a batch that a GPU looked up.
    pub fn fed(&self, keys: usize, time: Duration) {
        self.feed_per_key.note(keys, time);
    }

    /// The share of all threads' time that lookups on the CPU took recently, 0 to 1.
    #[allow(clippy::cast_precision_loss)] // a share
    pub fn load(&self) -> f64 {
        self.roll(nanos(self.started.elapsed()));
        self.load.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Notes a batch that the CPU looked up.
    pub fn done(&self, keys: usize, time: Duration) {
        self.cpu_per_key.note(keys, time);
        self.busy.fetch_add(nanos(time), Ordering::Relaxed);
        self.roll(nanos(self.started.elapsed()));
    }

    /// Ends the window if it is over.
    fn roll(&self, now: u64) {
        let began = self.window.load(Ordering::Relaxed);
        let past = now.saturating_sub(began);
        if past < WINDOW {
            return;
        }
        let ended = self.window.compare_exchange(began, now, Ordering::Relaxed, Ordering::Relaxed);
        if ended.is_ok() {
            let busy = self.busy.swap(0, Ordering::Relaxed);
            let load = busy.saturating_mul(1_000_000) / (past * self.threads);
            self.load.store(load.min(1_000_000), Ordering::Relaxed);
        }
    }
}

impl Policy {
    /// The device for a batch with these expected times.
    pub fn place(&self, cpu: Duration, gpu: Duration, load: f64) -> Place {
        self.place_by(cpu, gpu, load < HIGH_LOAD)
    }

    /// The device for a batch like that of [`place`](Self::place) whose keys lie in a slot of a GPU already.
    pub fn place_in_slot(&self, cpu: Duration, gpu: Duration, load: f64) -> Place {
        self.place_by(cpu * CLEARLY, gpu, load < LOW_LOAD)
    }

    fn place_by(&self, cpu: Duration, gpu: Duration, is_idle: bool) -> Place {
        let sooner = if cpu <= gpu { Place::Cpu } else { Place::Gpu };
        let Some(bound) = self.latency_bound else { return sooner };
        match (cpu <= bound, gpu <= bound) {
            (true, true) if is_idle => Place::Cpu,
            (true, true) | (false, true) => Place::Gpu,
            (true, false) => Place::Cpu,
            (false, false) => sooner,
        }
    }
}

/// Devices that batches may go to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Use {
    /// A GPU, always.
    Always,
    /// The device that answers soonest, or as the latency bound demands.
    ByLoad(Policy),
}

/// Chooses the device of each batch, and keeps the counts. Batches that a GPU can't answer go to the CPU,
/// with one warning for all.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    by: Use,
    meter: Meter,
    has_warned: AtomicBool,
    counts: Tally,
}

impl Dispatcher {
    pub(crate) fn new(by: Use, meter: Meter) -> Self {
        Self { by, meter, has_warned: AtomicBool::new(false), counts: Tally::default() }
    }

    /// The measured costs of the CPU.
    pub(crate) const fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The policy. `None` if a GPU looks up always.
    pub(crate) const fn policy(&self) -> Option<Policy> {
        match self.by {
            Use::Always => None,
            Use::ByLoad(policy) => Some(policy),
        }
    }

    /// Numbers of keys that each device looked up since the start.
    pub(crate) fn counts(&self) -> Counts {
        self.counts.sum()
    }

    /// The device for a batch of `keys` keys. `gpu` gives the expected time on a GPU; `None` if no GPU can
    /// take the batch.
    pub(crate) fn place(&self, keys: usize, gpu: Option<impl FnOnce() -> Duration>) -> Place {
        let Some(gpu) = gpu.filter(|_| keys > 0) else { return Place::Cpu };
        match self.by {
            Use::Always => Place::Gpu,
            Use::ByLoad(policy) => {
                let gpu = self.meter.feed(keys) + gpu();
                match policy.place(self.meter.cpu(keys), gpu, self.meter.load()) {
                    Place::Gpu if policy.latency_bound.is_none() && self.meter.is_fed_in_vain(keys) => {
                        Place::Cpu
                    }
                    place => place,
                }
            }
        }
    }

    /// The device for keys that are to be written in a GPU's form as they come, so that feeding it costs
    /// nothing more; or that were written to a slot.
    pub(crate) fn place_packed(
        &self,
        keys: usize,
        gpu: Option<impl FnOnce() -> Duration>,
        is_in_slot: bool,
    ) -> Place {
        let (cpu, load) = (self.meter.cpu(keys), || self.meter.load());
        match (self.by, gpu.filter(|_| keys > 0)) {
            (_, None) => Place::Cpu,
            (Use::Always, _) => Place::Gpu,
            (Use::ByLoad(policy), Some(gpu)) if is_in_slot => policy.place_in_slot(cpu, gpu(), load()),
            (Use::ByLoad(policy), Some(gpu)) => policy.place(cpu, gpu(), load()),
        }
    }

    /// Looks a batch up on the CPU.
    pub(crate) fn on_cpu(&self, keys: usize, cpu: impl FnOnce()) {
        // The clock and numbers that all threads write cost as much as some hundred lookups. Only a bound on
        // latency asks for the load, which all batches make. One small batch in many tells the cost of a key.
        let asks_for_load = matches!(self.by, Use::ByLoad(Policy { latency_bound: Some(_) }));
        if asks_for_load || keys >= SMALL || tally::turn().is_multiple_of(SAMPLED) {
            let began = Instant::now();
            cpu();
            self.meter.done(keys, began.elapsed());
        } else {
            cpu();
        }
        self.count(Place::Cpu, keys);
    }

    /// The expected cost for the CPU of keys that a GPU looks up.
    pub(crate) fn feed(&self, keys: usize) -> Duration {
        self.meter.feed(keys)
    }

    /// Notes the time that the CPU took for a batch that a GPU looked up.
    pub(crate) fn fed(&self, keys: usize, time: Duration) {
        self.meter.fed(keys, time);
    }

    pub(crate) fn count(&self, place: Place, keys: usize) {
        self.counts.add(place == Place::Gpu, keys as u64);
    }

    pub(crate) fn warn(&self, error: &GpuError) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("lookups go on on the CPU: {error}");
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    #[test]
    fn without_a_bound_the_sooner() {
        let policy = Policy::default();
        assert_eq!(policy.place(US(2), US(10), 1.0), Place::Cpu);
        assert_eq!(policy.place(US(200), US(50), 0.0), Place::Gpu);
    }

    #[test]
    fn within_the_bound_the_gpu_at_high_load_only() {
        let policy = Policy { latency_bound: Some(US(100)) };
        assert_eq!(policy.place(US(80), US(30), 0.1), Place::Cpu);
        assert_eq!(policy.place(US(80), US(30), 0.9), Place::Gpu);
        assert_eq!(policy.place(US(800), US(30), 0.1), Place::Gpu);
        assert_eq!(policy.place(US(80), US(300), 0.9), Place::Cpu);
        assert_eq!(policy.place(US(800), US(300), 0.0), Place::Gpu);
        assert_eq!(policy.place(US(300), US(800), 0.9), Place::Cpu);
    }

    #[test]
    fn a_batch_for_a_gpu_stays_there_unless_the_cpu_is_clearly_better() {
        let policy = Policy::default();
        assert_eq!(policy.place(US(20), US(30), 0.0), Place::Cpu);
        assert_eq!(policy.place_in_slot(US(20), US(30), 0.0), Place::Gpu);
        assert_eq!(policy.place_in_slot(US(15), US(30), 0.0), Place::Cpu);
        let policy = Policy { latency_bound: Some(US(100)) };
        assert_eq!(policy.place(US(20), US(30), 0.6), Place::Cpu);
        assert_eq!(policy.place_in_slot(US(20), US(30), 0.6), Place::Gpu);
        assert_eq!(policy.place_in_slot(US(20), US(30), 0.4), Place::Cpu);
        assert_eq!(policy.place_in_slot(US(30), US(200), 0.9), Place::Cpu, "the bound counts first");
    }

    #[test]
    fn a_gpu_is_not_fed_in_vain() {
        let meter = Meter::new(1, Duration::from_nanos(2));
        assert!(!meter.is_fed_in_vain(1000), "nothing is known");
        meter.fed(1000, US(1));
        assert_eq!(meter.feed(1000), US(1));
        assert!(!meter.is_fed_in_vain(1000), "feeding takes half of the time");
        (0..100).for_each(|_| meter.fed(1000, US(9)));
        let kept = (0..10 * PROBED).filter(|_| meter.is_fed_in_vain(1000)).count() as u64;
        assert_eq!(kept, 10 * (PROBED - 1), "one batch in so many goes to the GPU");
        // Once feeding is cheap again, the GPU gets batches.
        (0..100).for_each(|_| meter.fed(1000, US(1)));
        assert!(!meter.is_fed_in_vain(1000));
        meter.fed(0, US(9));
        assert_eq!(meter.feed(1000), US(1));
    }

    #[test]
    fn batches_of_few_keys_do_not_send_larger_ones_to_a_gpu() {
        let dispatcher =
            Dispatcher::new(Use::ByLoad(Policy::default()), Meter::new(16, Duration::from_nanos(1)));
        let gpu = || Some(|| US(20));
        // A lone key costs as much as a hundred in one batch.
        (0..1000).for_each(|_| dispatcher.meter().done(1, Duration::from_nanos(200)));
        assert_eq!(dispatcher.place(256, gpu()), Place::Cpu);
        assert_eq!(dispatcher.place_packed(256, gpu(), false), Place::Cpu);
        assert_eq!(dispatcher.place(1, gpu()), Place::Cpu);
        assert_eq!(dispatcher.place(1 << 16, gpu()), Place::Gpu);
    }

    #[test]
    fn load_is_the_busy_share_of_a_window() {
        let meter = Meter::new(2, Duration::from_nanos(1));
        let begin = nanos(meter.started.elapsed());
        meter.window.store(begin, Ordering::Relaxed);
        meter.busy.store(WINDOW, Ordering::Relaxed);
        meter.roll(begin + WINDOW / 2);
        assert_eq!(meter.load.load(Ordering::Relaxed), 0, "the window goes on");
        meter.roll(begin + WINDOW);
        assert_eq!(meter.load.load(Ordering::Relaxed), 500_000, "one of two threads");
        meter.roll(begin + 2 * WINDOW);
        assert_eq!(meter.load.load(Ordering::Relaxed), 0, "nothing since");
    }
}
