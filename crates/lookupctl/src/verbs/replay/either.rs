//! [`OnEither`]: GPUs with the CPU behind them, for addresses, names and tuples.

use std::ops::Range;

use wirespeed::gpu::offload::{Answers, Offload, Pipeline, RemoteTable};
use wirespeed::gpu::{classify, ip, names};
use wirespeed_classify::Tuple;
use wirespeed_fib::{Address, Lookup, NextHop};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;
use wirespeed_namelookup::{Match, NameDomain, Names};

use super::place::{GpuState, KeysOf, Lane, Place, Tuples, WithLengths};

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

impl<A: Address, T: Lookup<A>> RemoteKeys<T> for &[A] {
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

impl<T: Lookup<NameDomain>> RemoteKeys<T> for Names<'_> {
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

impl<T: Tuple, C: Lookup<T>> RemoteKeys<C> for Tuples<'_, T> {
    type Remote = classify::Remote<T>;
    type Found = u32;

    fn part(&self, keys: Range<usize>) -> &[T] {
        &self.0[keys]
    }

    fn on_cpu(table: &C, keys: &[T], found: &mut [u32]) {
        table.lookup_batch(keys, found);
    }

    fn next_hops<'f>(found: &'f [u32], _: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        bytemuck::cast_slice(found)
    }
}

impl<T: Lookup<NameDomain>> RemoteKeys<T> for WithLengths<'_> {
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

/// Looks up on GPUs, always or by load, and on the CPU what doesn't go there.
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
        let gpus = remote.copies().fleet().gpus();
        Some(GpuState {
            name: gpus.first()?.properties().name.clone(),
            devices: gpus.len(),
            counts: self.offload.counts(),
            out: remote.copies().is_out().map(|why| why.to_string()),
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use wirespeed::gpu::ip::Use;
    use wirespeed::names::generate::{self, Churn, ChurnSpec, Load, Paths, TraceSpec};
    use wirespeed::{GpuError, device, names};
    use wirespeed_classify::bloom::BloomSearch;
    use wirespeed_classify::generate as made;
    use wirespeed_classify::{Ipv4Tuple, LiveRules};
    use wirespeed_fib::synth::{self, TableSpec, UpdateSpec, Updates};
    use wirespeed_fib::trace::{TraceKind, keys};
    use wirespeed_fib::{BuildOptions, Engine, Family, LiveTable, Rib, V4};
    use wirespeed_namelookup::{Acta, LiveNames, NameModel};
    use wirespeed_sail::SailL;

    use super::*;
    use crate::on_host;
    use crate::verbs::replay::drive::{Feeder, Plan};
    use crate::verbs::replay::feed::{Fed, Live, Pace};
    use crate::verbs::replay::place::OnCpu;

    const PLAN: Plan = Plan { len: 10_000, batch: 300, threads: 2, time: Duration::from_millis(100) };

    /// A live table with updates and a trace for it, and the same table on a device in a GPU's place.
    struct Bench<L: Live, K: RemoteKeys<T>, T: Table> {
        live: L,
        updates: Vec<L::Update>,
        place: OnEither<K, T>,
        /// Makes the device be lost.
        switch: Arc<AtomicBool>,
    }

    type SailLTable = <SailL as Engine<V4>>::Table;
    type ActaTable = <Acta as Engine<NameDomain>>::Table;

    /// A bench of addresses.
    fn addresses() -> Option<Bench<LiveTable<V4, SailL>, &'static [V4], SailLTable>> {
        let (fleet, switch) = on_host::fleet()?;
        let spec = TableSpec { prefixes: 2000, ..TableSpec::full(Family::V4) };
        let rib: Rib<V4> = synth::table(&spec).unwrap();
        let trace = &*keys(&rib, TraceKind::Prefix, PLAN.len, 1).unwrap().leak();
        let updates = Updates::new(&rib, &UpdateSpec::real(Family::V4)).take(2000);
        let updates = updates.map(|timed| timed.update).collect();
        let mut live = LiveTable::new(rib, BuildOptions::default()).unwrap();
        let (mut offload, bits) = (None, live.reach());
        let follow = |table: &SailLTable| {
            let made = device::beside(&fleet, table, bits, Use::Always, 2)?;
            Ok::<_, GpuError>(offload.insert(made).remote().follower())
        };
        live.follow(follow).unwrap();
        let place = OnEither { trace, reader: live.reader(), offload: offload?, in_flight: 3 };
        Some(Bench { live, updates, place, switch })
    }

    /// A bench of names, in an aggregated table, for which something is asked.
    fn names<K>(ask: fn(Names<'static>) -> K) -> Option<Bench<LiveNames<Acta>, K, ActaTable>>
    where
        K: RemoteKeys<ActaTable, Remote = super::names::Remote>,
    {
        let (fleet, switch) = on_host::fleet_of_names()?;
        let spec = generate::TableSpec { names: 2000, results: 5, seed: 1 };
        let table = generate::table(&spec).unwrap().names;
        let spec = TraceSpec { load: Load::Average, misses: 0.1, seed: 1 };
        let trace = Box::leak(Box::new(generate::trace(&table, Paths::made(), &spec, PLAN.len).unwrap()));
        let updates = Churn::new(&table, &ChurnSpec { results: 5, ..ChurnSpec::default() }).unwrap();
        let updates = updates.take(2000).map(|timed| timed.update).collect();
        let model = NameModel::new(table, true);
        let (mut live, mut offload) = (LiveNames::new(model, BuildOptions::default()).unwrap(), None);
        let follow = |table: &ActaTable| {
            let made = names::device::beside(&fleet, table, trace, Use::Always, 2)?;
            Ok::<_, GpuError>(offload.insert(made).remote().follower())
        };
        live.follow(follow).unwrap();
        let (trace, reader) = (ask(trace.names()), live.reader());
        Some(Bench {
            live,
            updates,
            place: OnEither { trace, reader, offload: offload?, in_flight: 3 },
            switch,
        })
    }

    type Bloom = BloomSearch<Ipv4Tuple>;
    type BloomTable = <Bloom as Engine<Ipv4Tuple>>::Table;
    type BenchOfRules = Bench<LiveRules<Ipv4Tuple, Bloom>, Tuples<'static, Ipv4Tuple>, BloomTable>;

    /// A bench of rules.
    fn rules() -> Option<BenchOfRules> {
        let (fleet, switch) = on_host::fleet_of_rules()?;
        let rules = made::classbench::<Ipv4Tuple>(made::Kind::Firewall, 300, 1);
        let trace = &*made::tuples(&rules, PLAN.len, 1.0, 1).leak();
        let updates = made::churn(&rules, 2000, 1);
        let mut live = LiveRules::new(rules, BuildOptions::default()).unwrap();
        let mut offload = None;
        let follow = |table: &BloomTable| {
            let made = wirespeed::classify::device::beside(&fleet, table, &trace[..500], Use::Always, 2)?;
            Ok::<_, GpuError>(offload.insert(made).remote().follower())
        };
        live.follow(follow).unwrap();
        let place = OnEither { trace: Tuples(trace), reader: live.reader(), offload: offload?, in_flight: 3 };
        Some(Bench { live, updates, place, switch })
    }

    fn updates_in_flight_reach_the_gpu<L, K, T>(bench: Option<Bench<L, K, T>>)
    where
        L: Live<Update: Sync> + Send,
        K: RemoteKeys<T>,
        T: Table,
    {
        let Some(Bench { mut live, updates, place, .. }) = bench else { return };
        let cpu = OnCpu { trace: place.trace, reader: place.reader.clone() };
        let before = PLAN.pass(&place).checksum;
        assert_eq!(before, PLAN.pass(&cpu).checksum);
        let mut drive = || {
            let feed = Box::new(|start: Instant, stop: &AtomicBool| {
                Pace::Flat.feed(&mut live, &updates, start, stop)
            });
            PLAN.drive(&place, Some(Feeder { feed, to_its_end: false })).unwrap()
        };
        // Where other programs keep the cores, the time may be over before the first update.
        let driven = (0..100).map(|_| drive()).find(|driven| driven.fed.unwrap().applied > 0);
        let driven = driven.expect("updates go in while lookups run");
        assert!(driven.latencies.count() >= 6, "{driven:?}");
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
    fn updates_in_flight_reach_the_gpu_for_addresses() {
        updates_in_flight_reach_the_gpu(addresses());
    }

    #[test]
    fn updates_in_flight_reach_the_gpu_for_names() {
        updates_in_flight_reach_the_gpu(names(|names| names));
    }

    #[test]
    fn updates_in_flight_reach_the_gpu_for_names_with_lengths() {
        updates_in_flight_reach_the_gpu(names(WithLengths));
    }

    #[test]
    fn updates_in_flight_reach_the_gpu_for_rules() {
        updates_in_flight_reach_the_gpu(rules());
    }

    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu<L: Live, K: RemoteKeys<T>, T: Table>(
        bench: Option<Bench<L, K, T>>,
    ) {
        let Some(Bench { place, switch, .. }) = bench else { return };
        let right = PLAN.pass(&place).checksum;
        let feed = Box::new(|_: Instant, _: &AtomicBool| {
            std::thread::sleep(PLAN.time / 2);
            switch.store(true, Ordering::Relaxed);
            Ok(Fed { applied: 0, seconds: 0.0, rebuilds: 0 })
        });
        PLAN.drive(&place, Some(Feeder { feed, to_its_end: true })).unwrap();
        assert_eq!(PLAN.pass(&place).checksum, right);
        let gpu = place.gpu().unwrap();
        assert!(gpu.out.is_some() && gpu.counts.gpu > 0 && gpu.counts.cpu >= PLAN.len as u64, "{gpu:?}");
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_addresses() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(addresses());
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_names() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(names(|names| names));
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_names_with_lengths() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(names(WithLengths));
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_rules() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(rules());
    }

    fn a_rate_is_held_on_a_gpu<L: Live, K: RemoteKeys<T>, T: Table>(bench: Option<Bench<L, K, T>>) {
        let Some(Bench { place, .. }) = bench else { return };
        let (bound, plan) = (Duration::from_millis(200), PLAN);
        let (held, driven) = plan.hold(&place, bound, &[100, 500], &[1], None).unwrap();
        assert!([100, 500].contains(&held.plan.batch) && held.plan.threads == 1, "{:?}", held.plan);
        assert!(held.rate > 0.0, "{}", held.rate);
        assert!(driven.latencies.percentiles().p99 <= 200_000.0, "{driven:?}");
        assert_eq!(place.gpu().unwrap().counts.cpu, 0);
    }

    #[test]
    fn a_rate_is_held_on_a_gpu_for_addresses() {
        a_rate_is_held_on_a_gpu(addresses());
    }

    #[test]
    fn a_rate_is_held_on_a_gpu_for_names() {
        a_rate_is_held_on_a_gpu(names(|names| names));
    }
}
