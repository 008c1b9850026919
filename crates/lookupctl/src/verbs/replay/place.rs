//! Where the keys of a trace are looked up: on the CPU, or on GPUs with the CPU behind them.
//!
//! Each lookup thread has a lane of its own, which takes batches and gives them back in order. On the CPU one is under way at a time;
//! on the way to a GPU several are, so that keys of one travel while another's are looked up and a third's results come back.

use std::ops::Range;

use wirespeed::Counts;
use wirespeed::gpu::offload::{Answers, Offload, Pipeline, RemoteTable};
use wirespeed::gpu::{ip, names};
use wirespeed_fib::{Address, Lpm, NextHop};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;
use wirespeed_namelookup::{Match, NameLpm, Names};
use wirespeed_sail::{FibId, SailMTable};

/// Where a trace is looked up.
pub(in crate::verbs) trait Place {
    /// What a thread looks up with.
    type Lane<'p>: Lane
    where
        Self: 'p;

    /// Keys of the trace.
    fn len(&self) -> usize;

    /// A lane for batches of at most so many keys.
    fn lane(&self, batch: usize) -> Self::Lane<'_>;

    /// What GPUs have to do with it.
    fn gpu(&self) -> Option<GpuState> {
        None
    }
}

/// One thread's batches, first in, first out.
pub(in crate::verbs) trait Lane: Send {
    /// Batches that may be under way at once, at least 1.
    fn depth(&self) -> usize;

    /// Batches under way.
    fn under_way(&self) -> usize;

    /// Whether [`take`](Self::take) has no device to wait for.
    fn is_ready(&self) -> bool;

    /// Sends a batch; there must be fewer under way than may be.
    fn submit(&mut self, keys: Range<usize>);

    /// The results of the oldest batch; empty where nothing is under way.
    fn take(&mut self) -> &[NextHop];
}

/// GPUs as they are at some time of a replay.
#[derive(Clone, Debug)]
pub(in crate::verbs) struct GpuState {
    pub(in crate::verbs) name: String,
    pub(in crate::verbs) devices: usize,
    pub(in crate::verbs) counts: Counts,
    /// Why nothing is looked up there any more.
    pub(in crate::verbs) out: Option<String>,
}

/// Keys that a table takes.
pub(in crate::verbs) trait KeysOf<T>: Copy + Send {
    /// How many there are.
    fn len(&self) -> usize;
    /// Looks some of them up.
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]);
}

impl<A: Address, T: Lpm<A>> KeysOf<T> for &[A] {
    fn len(&self) -> usize {
        <[A]>::len(self)
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(&self[keys], next_hops);
    }
}

/// Names, whose lengths that matched are not asked for.
impl<T: NameLpm> KeysOf<T> for Names<'_> {
    fn len(&self) -> usize {
        Names::len(self)
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(self.part(keys), bytemuck::cast_slice_mut(next_hops));
    }
}

/// Names, whose lengths that matched are asked for too.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct WithLengths<'a>(pub(in crate::verbs) Names<'a>);

impl<T: NameLpm> KeysOf<T> for WithLengths<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        const BLOCK: usize = 1 << 12;
        let mut matches = [Match::NONE; BLOCK];
        for (block, next_hops) in next_hops.chunks_mut(BLOCK).enumerate() {
            let (from, matches) = (keys.start + block * BLOCK, &mut matches[..next_hops.len()]);
            table.match_batch(self.0.part(from..from + next_hops.len()), matches);
            for (next_hop, found) in next_hops.iter_mut().zip(&*std::hint::black_box(matches)) {
                *next_hop = found.next_hop();
            }
        }
    }
}

/// Keys, each with its FIB.
#[derive(Clone, Copy, Debug)]
pub(in crate::verbs) struct Mixed<'a, A> {
    pub(in crate::verbs) fibs: &'a [FibId],
    pub(in crate::verbs) keys: &'a [A],
}

impl<A: Address> KeysOf<SailMTable<A>> for Mixed<'_, A> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline]
    fn look_up(&self, table: &SailMTable<A>, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_mixed(&self.fibs[keys.clone()], &self.keys[keys], next_hops);
    }
}

/// All on the CPU.
pub(in crate::verbs) struct OnCpu<K, T: Table> {
    pub(in crate::verbs) trace: K,
    pub(in crate::verbs) reader: Reader<T>,
}

pub(in crate::verbs) struct CpuLane<K, T: Table> {
    trace: K,
    reader: Reader<T>,
    next_hops: Vec<NextHop>,
    waiting: Option<Range<usize>>,
}

impl<K: KeysOf<T>, T: Table> Place for OnCpu<K, T> {
    type Lane<'p>
        = CpuLane<K, T>
    where
        Self: 'p;

    fn len(&self) -> usize {
        self.trace.len()
    }

    fn lane(&self, batch: usize) -> CpuLane<K, T> {
        let next_hops = vec![NextHop::NONE; batch.min(self.trace.len())];
        CpuLane { trace: self.trace, reader: self.reader.clone(), next_hops, waiting: None }
    }
}

impl<K: KeysOf<T>, T: Table> Lane for CpuLane<K, T> {
    fn depth(&self) -> usize {
        1
    }

    fn under_way(&self) -> usize {
        usize::from(self.waiting.is_some())
    }

    fn is_ready(&self) -> bool {
        self.waiting.is_some()
    }

    #[inline]
    fn submit(&mut self, keys: Range<usize>) {
        self.waiting = Some(keys);
    }

    #[inline]
    fn take(&mut self) -> &[NextHop] {
        let Some(keys) = self.waiting.take() else { return &[] };
        let next_hops = std::hint::black_box(&mut self.next_hops[..keys.len()]);
        self.trace.look_up(&self.reader.enter(), keys, next_hops);
        next_hops
    }
}

/// Keys that GPUs take too.
pub(in crate::verbs) trait RemoteKeys<T>: KeysOf<T> + Sync {
    /// The table on GPUs.
    type Remote: Answers<Self::Found>;
    /// What is found of a key there.
    type Found: Copy + Default + Send;

    /// Some of them.
    fn part(&self, keys: Range<usize>) -> <Self::Remote as RemoteTable>::Keys<'_>;
    /// The CPU's way.
    fn on_cpu(table: &T, keys: <Self::Remote as RemoteTable>::Keys<'_>, found: &mut [Self::Found]);
    /// The next hops of what was found; `spare` has room for them where they don't lie there as they are.
    fn next_hops<'f>(found: &'f [Self::Found], spare: &'f mut Vec<NextHop>) -> &'f [NextHop];
}

impl<A: Address, T: Lpm<A>> RemoteKeys<T> for &[A] {
    type Remote = ip::Remote<A>;
    type Found = NextHop;

    fn part(&self, keys: Range<usize>) -> &[A] {
        &self[keys]
    }

    fn on_cpu(table: &T, keys: &[A], found: &mut [NextHop]) {
        table.lookup_batch(keys, found);
    }

    fn next_hops<'f>(found: &'f [NextHop], _: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        found
    }
}

impl<T: NameLpm> RemoteKeys<T> for Names<'_> {
    type Remote = names::Remote;
    type Found = u32;

    fn part(&self, keys: Range<usize>) -> Names<'_> {
        Names::part(self, keys)
    }

    fn on_cpu(table: &T, keys: Names<'_>, found: &mut [u32]) {
        table.lookup_batch(keys, found);
    }

    fn next_hops<'f>(found: &'f [u32], _: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        bytemuck::cast_slice(found)
    }
}

impl<T: NameLpm> RemoteKeys<T> for WithLengths<'_> {
    type Remote = names::Remote;
    type Found = Match;

    fn part(&self, keys: Range<usize>) -> Names<'_> {
        self.0.part(keys)
    }

    fn on_cpu(table: &T, keys: Names<'_>, found: &mut [Match]) {
        table.match_batch(keys, found);
    }

    fn next_hops<'f>(found: &'f [Match], spare: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        spare.clear();
        spare.extend(found.iter().map(|found| found.next_hop()));
        spare
    }
}

/// On GPUs, always or by load; on the CPU what doesn't go there.
pub(in crate::verbs) struct OnEither<K: RemoteKeys<T>, T: Table> {
    pub(in crate::verbs) trace: K,
    pub(in crate::verbs) reader: Reader<T>,
    pub(in crate::verbs) offload: Offload<K::Remote>,
    /// Batches of a thread under way at once.
    pub(in crate::verbs) in_flight: usize,
}

pub(in crate::verbs) struct EitherLane<'p, K: RemoteKeys<T>, T: Table> {
    trace: &'p K,
    reader: Reader<T>,
    pipeline: Pipeline<'p, K::Remote, K::Found>,
    found: Vec<K::Found>,
    spare: Vec<NextHop>,
    in_flight: usize,
}

impl<K: RemoteKeys<T>, T: Table> Place for OnEither<K, T> {
    type Lane<'p>
        = EitherLane<'p, K, T>
    where
        Self: 'p;

    fn len(&self) -> usize {
        self.trace.len()
    }

    fn lane(&self, batch: usize) -> EitherLane<'_, K, T> {
        EitherLane {
            trace: &self.trace,
            reader: self.reader.clone(),
            pipeline: Pipeline::new(&self.offload),
            found: vec![K::Found::default(); batch.min(self.trace.len())],
            spare: Vec::new(),
            in_flight: self.in_flight,
        }
    }

    fn gpu(&self) -> Option<GpuState> {
        let remote = self.offload.remote();
        let gpus = remote.fleet().gpus();
        Some(GpuState {
            name: gpus.first()?.properties().name.clone(),
            devices: gpus.len(),
            counts: self.offload.counts(),
            out: remote.is_out().map(|why| why.to_string()),
        })
    }
}

impl<K: RemoteKeys<T>, T: Table> Lane for EitherLane<'_, K, T> {
    fn depth(&self) -> usize {
        self.in_flight
    }

    fn under_way(&self) -> usize {
        self.pipeline.under_way()
    }

    fn is_ready(&self) -> bool {
        self.pipeline.is_ready()
    }

    fn submit(&mut self, keys: Range<usize>) {
        self.pipeline.submit(self.trace.part(keys));
    }

    fn take(&mut self) -> &[NextHop] {
        let Self { reader, pipeline, found, .. } = self;
        let taken = pipeline.next(found, |keys, found| K::on_cpu(&reader.enter(), keys, found));
        let count = taken.map_or(0, K::Remote::count);
        K::next_hops(std::hint::black_box(&self.found[..count]), &mut self.spare)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use anyhow::Result;
    use wirespeed::device::beside;
    use wirespeed::gpu::ip::Use;
    use wirespeed_fib::synth::{self, TableSpec, UpdateSpec, Updates};
    use wirespeed_fib::trace::{TraceKind, keys};
    use wirespeed_fib::{BuildOptions, Engine, LiveTable, Rib, Update, V4};
    use wirespeed_sail::SailL;

    use super::*;
    use crate::on_host;
    use crate::verbs::replay::drive::{Feeder, Plan};
    use crate::verbs::replay::feed::{Fed, Pace};

    type Table = <SailL as Engine<V4>>::Table;

    /// A live table, its trace, and the same table on a device in a GPU's place.
    struct Bench {
        live: LiveTable<V4, SailL>,
        trace: Vec<V4>,
        updates: Vec<Update<V4>>,
    }

    impl Bench {
        fn new() -> Self {
            let spec = TableSpec { prefixes: 2000, ..TableSpec::full(wirespeed_fib::Family::V4) };
            let rib: Rib<V4> = synth::table(&spec).unwrap();
            let trace = keys(&rib, TraceKind::Prefix, 10_000, 1).unwrap();
            let spec = UpdateSpec::real(wirespeed_fib::Family::V4);
            let updates = Updates::new(&rib, &spec).take(2000).map(|timed| timed.update).collect();
            Self { live: LiveTable::new(rib, BuildOptions::default()).unwrap(), trace, updates }
        }

        fn on_either(&mut self, fleet: &wirespeed::Fleet) -> OnEither<&'static [V4], Table> {
            let (mut offload, bits) = (None, self.live.reach());
            let follow = |table: &Table| {
                let made = beside(fleet, table, bits, Use::Always, 2)?;
                Ok::<_, wirespeed::GpuError>(offload.insert(made).remote().follower())
            };
            self.live.follow(follow).unwrap();
            let trace = &*self.trace.clone().leak();
            OnEither { trace, reader: self.live.reader(), offload: offload.unwrap(), in_flight: 3 }
        }
    }

    const PLAN: Plan = Plan { len: 10_000, batch: 300, threads: 2, time: Duration::from_millis(100) };

    #[test]
    fn updates_in_flight_reach_the_gpu() {
        let Some((fleet, _)) = on_host::fleet() else { return };
        let mut bench = Bench::new();
        let place = bench.on_either(&fleet);
        let cpu = OnCpu { trace: place.trace, reader: bench.live.reader() };
        let before = PLAN.pass(&place).checksum;
        assert_eq!(before, PLAN.pass(&cpu).checksum);
        let Bench { mut live, updates, .. } = bench;
        let feed = |start: Instant, stop: &AtomicBool| Pace::Flat.feed(&mut live, &updates, start, stop);
        let driven = PLAN.drive(&place, Some(Feeder { feed, to_its_end: false })).unwrap();
        assert!(driven.fed.unwrap().applied > 0 && driven.latencies.count() >= 6, "{driven:?}");
        let after = PLAN.pass(&place).checksum;
        assert_eq!(after, PLAN.pass(&cpu).checksum);
        assert_ne!(before, after, "the updates change what the trace finds");
        let gpu = place.gpu().unwrap();
        assert!(gpu.counts.cpu == 0 && gpu.out.is_none(), "all of it on the GPU: {gpu:?}");
        // A pass before, one after, one to warm up, and what was timed.
        let timed = PLAN.lookups(&driven.batches);
        assert_eq!(gpu.counts.gpu, 3 * PLAN.len as u64 + timed);
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu() {
        let Some((fleet, switch)) = on_host::fleet() else { return };
        let place = Bench::new().on_either(&fleet);
        let right = PLAN.pass(&place).checksum;
        let losing = |_: Instant, _: &AtomicBool| {
            std::thread::sleep(PLAN.time / 2);
            switch.store(true, Ordering::Relaxed);
            Ok(())
        };
        PLAN.drive(&place, Some(Feeder { feed: losing, to_its_end: true })).unwrap();
        assert_eq!(PLAN.pass(&place).checksum, right);
        let gpu = place.gpu().unwrap();
        assert!(gpu.out.is_some() && gpu.counts.gpu > 0 && gpu.counts.cpu >= PLAN.len as u64, "{gpu:?}");
    }

    #[test]
    fn a_rate_is_held_on_a_gpu() {
        let Some((fleet, _)) = on_host::fleet() else { return };
        let place = Bench::new().on_either(&fleet);
        let (bound, plan) = (Duration::from_millis(200), Plan { threads: 1, ..PLAN });
        let no_feeder = None::<Feeder<fn(Instant, &AtomicBool) -> Result<Fed>>>;
        let (held, driven) = plan.hold(&place, bound, &[100, 500], no_feeder).unwrap();
        assert!([100, 500].contains(&held.plan.batch) && held.rate > 0.0, "{}", held.rate);
        assert!(driven.latencies.percentiles().p99 <= 200_000.0, "{driven:?}");
        assert_eq!(place.gpu().unwrap().counts.cpu, 0);
    }
}
