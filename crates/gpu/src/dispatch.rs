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
//! cost of feeding may change. Load is the share of its threads' time that a CPU spends on lookups, in
//! windows of a millisecond. A decision reads a clock and a few shared numbers, which takes well under a
//! microsecond.
//!
//! Each thread stays with the device that its last batch of such a size went to, until the other one is
//! better by more than times vary, or the load has changed for certain. Keys that lie in a slot of a GPU go
//! there unless the CPU is twice as fast, because it would have to read them out of the slot.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::GpuError;
use crate::per_key::PerKey;
use crate::tally::{self, Keys, Tally};
pub use crate::tally::{Counts, Last, Reasons, Why};

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
/// The load below which the CPU no longer counts as busy, for batches that go to a GPU.
const LOW_LOAD: f64 = 0.5;
/// A device has to be better by one part in this many to get batches that go to the other one. A batch that
/// stays loses no more than that.
const MARGIN: u128 = 32;
/// The CPU has to be sooner by this factor to get a batch whose keys lie in a slot.
const IN_SLOT: u128 = 2;
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

    /// Begins with the time that the CPU took to feed a GPU with `keys` keys.
    #[must_use]
    pub(crate) fn with_feed(self, keys: usize, time: Duration) -> Self {
        Self { feed_per_key: PerKey::measured(keys, time), ..self }
    }

    /// The expected cost of `keys` keys on the CPU.
    pub fn cpu(&self, keys: usize) -> Duration {
        self.cpu_per_key.of(keys)
    }

    /// The expected cost for the CPU of `keys` keys that a GPU looks up.
    pub fn feed(&self, keys: usize) -> Duration {
        self.feed_per_key.of(keys)
    }

    /// The number of threads that look up.
    #[allow(clippy::cast_possible_truncation)] // it was a usize
    pub(crate) fn threads(&self) -> usize {
        self.threads as usize
    }

    /// Keys a second that all threads look up on the CPU.
    #[allow(clippy::cast_precision_loss)] // a rate
    pub(crate) fn cpu_rate(&self) -> f64 {
        self.threads as f64 * 1e12 / self.cpu_per_key.of_one(USUAL) as f64
    }

    /// Whether a core looks up in the time that it takes to feed a GPU.
    fn is_fed_in_vain(&self, keys: usize, last: Last) -> bool {
        let [cpu, feed] = [&self.cpu_per_key, &self.feed_per_key].map(|cost| u128::from(cost.of_one(keys)));
        last.is_cpu_sooner(cpu, feed)
    }

    /// Whether a batch goes to a GPU although it is fed in vain: once in a while.
    fn is_probed(&self) -> bool {
        self.kept.fetch_add(1, Ordering::Relaxed) % PROBED == PROBED - 1
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
    /// The device for a batch with these expected times. The last one of its size went to `last`.
    pub fn place(&self, cpu: Duration, gpu: Duration, load: f64, last: Last) -> Place {
        let is_cpu_sooner = last.is_cpu_sooner(cpu.as_nanos(), gpu.as_nanos());
        let sooner = if is_cpu_sooner { Place::Cpu } else { Place::Gpu };
        let Some(bound) = self.latency_bound else { return sooner };
        let busy = if matches!(last, Last::Gpu | Last::Slot) { LOW_LOAD } else { HIGH_LOAD };
        match (cpu <= bound, gpu <= bound) {
            (true, true) if load < busy => Place::Cpu,
            (true, true) | (false, true) => Place::Gpu,
            (true, false) => Place::Cpu,
            (false, false) => sooner,
        }
    }
}

impl Last {
    /// Whether a time of the CPU counts as the shorter one, or as short.
    fn is_cpu_sooner(self, cpu: u128, gpu: u128) -> bool {
        match self {
            Self::Nowhere => cpu <= gpu,
            Self::Cpu => cpu * MARGIN <= gpu * (MARGIN + 1),
            Self::Gpu => cpu * (MARGIN + 1) <= gpu * MARGIN,
            Self::Slot => cpu * IN_SLOT <= gpu,
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

    /// The device for a batch of `count` such keys, or the reason for the CPU. `gpu` gives the expected time
    /// on a GPU without the feeding; `None` if the GPUs are out of use. A batch without keys is one for the
    /// CPU.
    pub(crate) fn place(
        &self,
        keys: Keys,
        count: usize,
        gpu: Option<&dyn Fn() -> Duration>,
    ) -> Result<(), Why> {
        self.choose(keys, count, gpu, &|_, _| {})
    }

    /// The device for a batch that goes there now. The next batches like it stay with the device.
    pub(crate) fn send(
        &self,
        keys: Keys,
        count: usize,
        gpu: Option<&dyn Fn() -> Duration>,
    ) -> Result<(), Why> {
        self.choose(keys, count, gpu, &|last, choice| {
            let on_gpu = choice.place.is_ok();
            if last == Last::Slot || last == if on_gpu { Last::Gpu } else { Last::Cpu } {
                return;
            }
            self.counts.note(keys, count, on_gpu);
            if last != Last::Nowhere {
                let Choice { cpu, feed, gpu, load, place } = choice;
                let to = if on_gpu { "GPU" } else { "CPU" };
                let why = place.err().map_or("it is the better device", Why::text);
                tracing::debug!(keys = count, ?cpu, ?feed, ?gpu, load, "batches go to the {to}: {why}");
            }
        })
    }

    /// The device for a batch. `chosen` hears of a choice by the policy: of the device before it, too.
    fn choose(
        &self,
        keys: Keys,
        count: usize,
        gpu: Option<&dyn Fn() -> Duration>,
        chosen: &dyn Fn(Last, &Choice),
    ) -> Result<(), Why> {
        let Some(gpu) = gpu else { return Err(Why::Failed) };
        if count == 0 {
            return Err(Why::FasterCpu);
        }
        let Use::ByLoad(policy) = self.by else { return Ok(()) };
        let (last, load, cpu) = (self.counts.last(keys, count), self.meter.load(), self.meter.cpu(count));
        // Keys in a GPU's form cost nothing more to feed.
        let feed = if keys == Keys::Slice { self.meter.feed(count) } else { Duration::ZERO };
        let mut choice = Choice { cpu, feed, gpu: gpu(), load, place: Ok(()) };
        // A GPU that answers sooner may still cost the core more than it saves.
        let is_vain = || {
            keys == Keys::Slice
                && policy.latency_bound.is_none()
                && self.meter.is_fed_in_vain(count, last)
                && policy.place(cpu, choice.gpu, load, last) == Place::Gpu
        };
        choice.place = match policy.place(cpu, feed + choice.gpu, load, last) {
            Place::Gpu => Ok(()),
            Place::Cpu if is_vain() => {
                if self.meter.is_probed() {
                    return Ok(());
                }
                Err(Why::VainFeeding)
            }
            Place::Cpu => Err(Why::FasterCpu),
        };
        chosen(last, &choice);
        choice.place
    }

    /// Looks a batch up on the CPU, for a reason.
    pub(crate) fn on_cpu(&self, keys: usize, why: Why, cpu: impl FnOnce()) {
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
        self.counts.add(Err(why), keys as u64);
    }

    /// The expected cost for the CPU of keys that a GPU looks up.
    pub(crate) fn feed(&self, keys: usize) -> Duration {
        self.meter.feed(keys)
    }

    /// Notes the time that the CPU took for a batch that a GPU looked up.
    pub(crate) fn fed(&self, keys: usize, time: Duration) {
        self.meter.fed(keys, time);
    }

    /// Counts keys that a GPU looked up.
    pub(crate) fn on_gpu(&self, keys: usize) {
        self.counts.add(Ok(()), keys as u64);
    }

    /// Warns of an error, if it is the first. The reason why the CPU looks the batch up.
    pub(crate) fn warn(&self, error: &GpuError) -> Why {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("lookups go on on the CPU: {error}");
        }
        if matches!(error, GpuError::NoSlot(_)) { Why::NoSlot } else { Why::Failed }
    }
}

/// A choice by the policy, with the times and the load that it was made by.
struct Choice {
    cpu: Duration,
    feed: Duration,
    gpu: Duration,
    load: f64,
    place: Result<(), Why>,
}

impl Why {
    /// The reason in words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::FasterCpu => "it is the better device",
            Self::VainFeeding => "feeding a GPU takes as long as looking up",
            Self::NoSlot => "no slot is free",
            Self::Failed => "the GPUs are out of use",
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

    const LASTS: [Last; 4] = [Last::Nowhere, Last::Cpu, Last::Gpu, Last::Slot];

    #[test]
    fn without_a_bound_the_sooner() {
        let policy = Policy::default();
        for last in LASTS {
            assert_eq!(policy.place(US(2), US(10), 1.0, last), Place::Cpu);
            assert_eq!(policy.place(US(200), US(50), 0.0, last), Place::Gpu);
        }
    }

    #[test]
    fn within_the_bound_the_gpu_at_high_load_only() {
        let policy = Policy { latency_bound: Some(US(100)) };
        for last in LASTS {
            assert_eq!(policy.place(US(80), US(30), 0.1, last), Place::Cpu);
            assert_eq!(policy.place(US(80), US(30), 0.9, last), Place::Gpu);
            assert_eq!(policy.place(US(800), US(30), 0.1, last), Place::Gpu);
            assert_eq!(policy.place(US(80), US(300), 0.9, last), Place::Cpu, "the bound counts first");
            assert_eq!(policy.place(US(800), US(300), 0.0, last), Place::Gpu);
            assert_eq!(policy.place(US(300), US(800), 0.9, last), Place::Cpu);
        }
    }

    #[test]
    fn batches_stay_where_they_are_until_the_other_device_is_clearly_better() {
        let places =
            |policy: Policy, cpu, gpu, load| LASTS.map(|last| policy.place(US(cpu), US(gpu), load, last));
        let (cpu, gpu, policy) = (Place::Cpu, Place::Gpu, Policy::default());
        assert_eq!(places(policy, 100, 100, 0.0), [cpu, cpu, gpu, gpu]);
        assert_eq!(places(policy, 103, 100, 0.0), [gpu, cpu, gpu, gpu]);
        assert_eq!(places(policy, 104, 100, 0.0), [gpu; 4]);
        assert_eq!(places(policy, 98, 100, 0.0), [cpu, cpu, gpu, gpu]);
        assert_eq!(places(policy, 96, 100, 0.0), [cpu, cpu, cpu, gpu]);
        assert_eq!(places(policy, 51, 100, 0.0), [cpu, cpu, cpu, gpu]);
        assert_eq!(places(policy, 50, 100, 0.0), [cpu; 4]);
        // The load, too, has to change for certain.
        let policy = Policy { latency_bound: Some(US(100)) };
        assert_eq!(places(policy, 20, 30, 0.4), [cpu; 4]);
        assert_eq!(places(policy, 20, 30, 0.6), [cpu, cpu, gpu, gpu]);
        assert_eq!(places(policy, 20, 30, 0.7), [gpu; 4]);
    }

    /// A dispatcher whose CPU takes 1 ns a key.
    fn by_load() -> Dispatcher {
        Dispatcher::new(Use::ByLoad(Policy::default()), Meter::new(16, Duration::from_nanos(1)))
    }

    #[test]
    fn slices_and_keys_that_come_in_place_stay_by_one_rule() {
        for keys in [Keys::Slice, Keys::AsTheyCome] {
            let dispatcher = by_load();
            let send = |count, us| dispatcher.send(keys, count, Some(&|| US(us)));
            assert_eq!(send(100_000, 99), Ok(()), "the first one goes where it is answered first");
            assert_eq!(send(100_000, 102), Ok(()), "it stays");
            // Questions change nothing, nor do batches of another size.
            assert_eq!(dispatcher.place(keys, 100_000, Some(&|| US(120))), Err(Why::FasterCpu));
            assert_eq!(send(1_000, 120), Err(Why::FasterCpu));
            assert_eq!(send(100_000, 102), Ok(()));
            assert_eq!(send(100_000, 110), Err(Why::FasterCpu), "the CPU is clearly better");
            assert_eq!(send(100_000, 98), Err(Why::FasterCpu), "it stays there");
            assert_eq!(dispatcher.send(Keys::InSlot, 100_000, Some(&|| US(102))), Ok(()));
            assert_eq!(send(100_000, 90), Ok(()));
        }
    }

    #[test]
    fn a_gpu_is_not_fed_in_vain() {
        let meter = Meter::new(1, Duration::from_nanos(2));
        let is_vain = |last| meter.is_fed_in_vain(1000, last);
        assert!(!is_vain(Last::Nowhere), "nothing is known");
        meter.fed(1000, US(1));
        assert_eq!(meter.feed(1000), US(1));
        assert!(!is_vain(Last::Cpu), "feeding takes half of the time");
        (0..200).for_each(|_| meter.fed(1000, US(2)));
        assert_eq!((is_vain(Last::Cpu), is_vain(Last::Gpu)), (true, false), "batches stay where they are");
        (0..100).for_each(|_| meter.fed(1000, US(9)));
        assert!(is_vain(Last::Gpu));
        // Once feeding is cheap again, the GPU gets batches.
        (0..100).for_each(|_| meter.fed(1000, US(1)));
        assert!(!is_vain(Last::Cpu));
        meter.fed(0, US(9));
        assert_eq!(meter.feed(1000), US(1));
    }

    #[test]
    fn one_batch_in_many_goes_to_a_gpu_in_vain() {
        let dispatcher = by_load();
        // The CPU takes 66 us.
        let send = |gpu| dispatcher.send(Keys::Slice, 1 << 16, Some(&|| US(gpu)));
        (0..100).for_each(|_| dispatcher.fed(1 << 16, US(100)));
        assert_eq!(send(90), Err(Why::FasterCpu), "a GPU would take longer without feeding, too");
        let sent = (0..10 * PROBED).map(|_| send(20)).filter(Result::is_ok).count() as u64;
        assert_eq!(sent, 10, "one batch in so many");
        assert_eq!(send(20), Err(Why::VainFeeding), "the others stay");
        assert_eq!(dispatcher.send(Keys::AsTheyCome, 1 << 16, Some(&|| US(20))), Ok(()), "nothing to feed");
    }

    #[test]
    fn the_cpu_has_its_reasons() {
        let dispatcher = by_load();
        assert_eq!(dispatcher.send(Keys::Slice, 100, None), Err(Why::Failed));
        assert_eq!(dispatcher.send(Keys::Slice, 0, Some(&|| US(1))), Err(Why::FasterCpu));
        assert_eq!(dispatcher.warn(&GpuError::NoSlot(1)), Why::NoSlot);
        assert_eq!(dispatcher.warn(&GpuError::NoDevice), Why::Failed);
        for (why, keys) in [Why::FasterCpu, Why::VainFeeding, Why::NoSlot, Why::Failed].into_iter().zip(1..) {
            dispatcher.on_cpu(keys, why, || {});
        }
        dispatcher.on_gpu(5);
        let why_cpu = Reasons { faster_cpu: 1, vain_feeding: 2, no_slot: 3, failed: 4 };
        assert_eq!(dispatcher.counts(), Counts { cpu: 10, gpu: 5, why_cpu });
    }

    #[test]
    fn batches_of_few_keys_do_not_send_larger_ones_to_a_gpu() {
        let dispatcher = by_load();
        let place = |keys, count| dispatcher.place(keys, count, Some(&|| US(20)));
        // A lone key costs as much as a hundred in one batch.
        (0..1000).for_each(|_| dispatcher.meter().done(1, Duration::from_nanos(200)));
        assert_eq!(place(Keys::Slice, 256), Err(Why::FasterCpu));
        assert_eq!(place(Keys::AsTheyCome, 256), Err(Why::FasterCpu));
        assert_eq!(place(Keys::Slice, 1), Err(Why::FasterCpu));
        assert_eq!(place(Keys::Slice, 1 << 16), Ok(()));
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
