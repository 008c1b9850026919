//! [`Place`]: where the keys of a trace are looked up, on the CPU, or on GPUs with the CPU behind them.
//!
//! Each lookup thread has its own lane. A lane takes batches and gives their results back in order. A CPU has
//! one batch under way; a GPU has several, so that the transfers of one overlap the lookups of another.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use wirespeed::Counts;
use wirespeed::engine::{AnyReader, Served};
use wirespeed::gpu::dispatch;
use wirespeed::gpu::offload::{Answers, Offload, Pipeline, RemoteTable};
use wirespeed::gpu::runtime::{Gpu, SlotSize};
use wirespeed_fib::{Address, NextHop};
use wirespeed_image::live::Reader;
use wirespeed_namelookup::{Match, NameDomain, Names};
use wirespeed_sail::{FibId, SailMTable};
use wirespeed_table::Keys;

use super::plan::Plan;
use crate::device::On;

/// Where a trace is looked up.
pub(in crate::verbs) trait Place {
    /// Keys of the trace.
    fn len(&self) -> usize;

    /// A lane for one thread of a plan.
    fn lane(&self, plan: &Plan) -> Box<dyn Lane + '_>;

    /// The state of the GPUs that look up, if any do.
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

    /// Whether [`take`](Self::take) returns without waiting for a device.
    fn is_ready(&self) -> bool;

    /// Sends a batch. Fewer than [`depth`](Self::depth) must be under way.
    fn submit(&mut self, keys: Range<usize>);

    /// The results of the oldest batch; empty if none is under way.
    fn take(&mut self) -> &[NextHop];
}

/// The state of GPUs at one moment of a replay.
#[derive(Clone, Debug)]
pub(in crate::verbs) struct GpuState {
    pub(in crate::verbs) name: String,
    pub(in crate::verbs) devices: usize,
    pub(in crate::verbs) counts: Counts,
    /// Why they no longer look up, if so.
    pub(in crate::verbs) out: Option<String>,
    /// The slots of all of them, the smallest first.
    pub(in crate::verbs) slots: Vec<SlotSize>,
}

impl GpuState {
    /// Batches of so many keys that slots hold at once. Those over the largest slot go in parts.
    pub(in crate::verbs) fn room(&self, keys: usize) -> usize {
        match self.slots.iter().filter(|size| keys <= size.keys).map(|size| size.slots).sum() {
            0 => self.slots.last().map_or(0, |size| size.slots / keys.div_ceil(size.keys)),
            slots => slots,
        }
    }
}

/// The answer that a replay asks for: results alone, or with lengths.
pub(in crate::verbs) trait Ask<D: Served>: 'static {
    /// The answer for one key.
    type Found: Copy + Default + Send;

    /// Looks keys up on the CPU.
    fn look_up(reader: &dyn AnyReader<D>, keys: D::Keys<'_>, found: &mut [Self::Found]);

    /// The results among the answers; copied to `spare` if they don't lie side by side.
    fn results<'f>(found: &'f [Self::Found], spare: &'f mut Vec<NextHop>) -> &'f [NextHop];
}

/// Asks for results: next hops, or numbers of rules.
pub(in crate::verbs) enum Results {}

impl<D: Served<Result: bytemuck::Pod>> Ask<D> for Results {
    type Found = D::Result;

    #[inline]
    fn look_up(reader: &dyn AnyReader<D>, keys: D::Keys<'_>, found: &mut [D::Result]) {
        reader.lookup_batch(keys, found);
    }

    fn results<'f>(found: &'f [D::Result], _: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        bytemuck::cast_slice(found)
    }
}

/// Asks for the results of names and how much of each matched.
pub(in crate::verbs) enum Lengths {}

impl Ask<NameDomain> for Lengths {
    type Found = Match;

    fn look_up(reader: &dyn AnyReader<NameDomain>, keys: Names<'_>, found: &mut [Match]) {
        reader.enter().table.match_batch(keys, found);
    }

    fn results<'f>(found: &'f [Match], spare: &'f mut Vec<NextHop>) -> &'f [NextHop] {
        spare.clear();
        spare.extend(found.iter().map(|found| found.next_hop()));
        spare
    }
}

/// A trace that is looked up in a live table, on the CPU or on GPUs.
pub(in crate::verbs) struct InTable<'k, D: Served, Q> {
    pub(in crate::verbs) trace: D::Keys<'k>,
    pub(in crate::verbs) ask: PhantomData<Q>,
    pub(in crate::verbs) reader: Arc<dyn AnyReader<D>>,
    /// The table on GPUs, if these look up.
    pub(in crate::verbs) offload: Option<Offload<D::Remote>>,
}

impl<D: Served<Remote: Answers<Q::Found>>, Q: Ask<D>> InTable<'_, D, Q> {
    /// Looks keys up: on GPUs if these look up, else on the CPU.
    pub(in crate::verbs) fn look_up(&self, keys: D::Keys<'_>, found: &mut [Q::Found]) {
        let on_cpu = |keys: D::Keys<'_>, found: &mut [Q::Found]| {
            Q::look_up(&*self.reader, keys, found);
        };
        match &self.offload {
            None => on_cpu(keys, found),
            Some(offload) => offload.lookup_batch(keys, found, on_cpu),
        }
    }
}

impl<D: Served<Remote: Answers<Q::Found>>, Q: Ask<D>> Place for InTable<'_, D, Q> {
    fn len(&self) -> usize {
        self.trace.len()
    }

    fn lane(&self, plan: &Plan) -> Box<dyn Lane + '_> {
        let (trace, reader) = (self.trace, self.reader.clone());
        let (found, spare) = (vec![Q::Found::default(); plan.batch.min(trace.len())], Vec::new());
        match &self.offload {
            Some(offload) if plan.only != Some(On::Cpu) => {
                let (pipeline, in_flight) = (only(Pipeline::new(offload), plan.only), plan.in_flight);
                Box::new(EitherLane::<D, Q> { trace, reader, pipeline, found, spare, in_flight })
            }
            Some(_) | None => Box::new(CpuLane::new(TraceKeys::<D, Q> { trace, reader, found, spare })),
        }
    }

    fn gpu(&self) -> Option<GpuState> {
        gpu_state(self.offload.as_ref()?)
    }
}

/// A pipeline that sends all batches to one device, if only that one looks up.
pub(super) fn only<'o, 'k, T: Answers<R>, R: Copy + Default>(
    pipeline: Pipeline<'o, 'k, T, R>,
    on: Option<On>,
) -> Pipeline<'o, 'k, T, R> {
    match on {
        None => pipeline,
        Some(On::Cpu) => pipeline.only(dispatch::Place::Cpu),
        Some(On::Gpu) => pipeline.only(dispatch::Place::Gpu),
    }
}

/// The state of the GPUs that hold a table.
pub(super) fn gpu_state<R: RemoteTable>(offload: &Offload<R>) -> Option<GpuState> {
    let copies = offload.remote().copies();
    let gpus = copies.fleet().gpus();
    Some(GpuState {
        name: gpus.first()?.properties().name.clone(),
        devices: gpus.len(),
        counts: offload.counts(),
        out: copies.is_out().map(|why| why.to_string()),
        slots: slots(gpus),
    })
}

/// The slots of all GPUs, the smallest first.
fn slots(gpus: &[Gpu]) -> Vec<SlotSize> {
    let mut all: Vec<SlotSize> = Vec::new();
    for size in gpus.iter().flat_map(|gpu| &gpu.options().slots) {
        match all.iter_mut().find(|known| known.keys == size.keys) {
            Some(known) => known.slots += size.slots,
            None => all.push(*size),
        }
    }
    all.sort_unstable_by_key(|size| size.keys);
    all
}

/// Keys that the CPU looks up.
pub(super) trait CpuKeys: Send {
    /// The results of a range of keys.
    fn look_up(&mut self, keys: Range<usize>) -> &[NextHop];
}

/// A lane that looks a batch up when its results are taken.
pub(super) struct CpuLane<K> {
    keys: K,
    waiting: Option<Range<usize>>,
}

impl<K: CpuKeys> CpuLane<K> {
    pub(super) const fn new(keys: K) -> Self {
        Self { keys, waiting: None }
    }
}

impl<K: CpuKeys> Lane for CpuLane<K> {
    fn depth(&self) -> usize {
        1
    }

    fn under_way(&self) -> usize {
        usize::from(self.waiting.is_some())
    }

    fn is_ready(&self) -> bool {
        self.waiting.is_some()
    }

    fn submit(&mut self, keys: Range<usize>) {
        self.waiting = Some(keys);
    }

    fn take(&mut self) -> &[NextHop] {
        self.waiting.take().map_or(&[], |batch| self.keys.look_up(batch))
    }
}

/// The keys of a trace in one table.
struct TraceKeys<'k, D: Served, Q: Ask<D>> {
    trace: D::Keys<'k>,
    reader: Arc<dyn AnyReader<D>>,
    found: Vec<Q::Found>,
    spare: Vec<NextHop>,
}

impl<D: Served, Q: Ask<D>> CpuKeys for TraceKeys<'_, D, Q> {
    fn look_up(&mut self, keys: Range<usize>) -> &[NextHop] {
        let found = std::hint::black_box(&mut self.found[..keys.len()]);
        Q::look_up(&*self.reader, self.trace.part(keys), found);
        Q::results(std::hint::black_box(found), &mut self.spare)
    }
}

/// A lane to GPUs, with the CPU behind them.
struct EitherLane<'p, 'k, D: Served<Remote: Answers<Q::Found>>, Q: Ask<D>> {
    trace: D::Keys<'k>,
    reader: Arc<dyn AnyReader<D>>,
    pipeline: Pipeline<'p, 'k, D::Remote, Q::Found>,
    found: Vec<Q::Found>,
    spare: Vec<NextHop>,
    in_flight: usize,
}

impl<D: Served<Remote: Answers<Q::Found>>, Q: Ask<D>> Lane for EitherLane<'_, '_, D, Q> {
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
        let on_cpu = |keys: D::Keys<'_>, found: &mut [Q::Found]| Q::look_up(&**reader, keys, found);
        let count = pipeline.next(found, on_cpu).map_or(0, |keys| keys.len());
        Q::results(std::hint::black_box(&self.found[..count]), &mut self.spare)
    }
}

/// A trace that is looked up in a table of several FIBs. Each key names its FIB.
pub(in crate::verbs) struct InFibs<'k, A: Address> {
    pub(in crate::verbs) fibs: &'k [FibId],
    pub(in crate::verbs) keys: &'k [A],
    pub(in crate::verbs) reader: Reader<SailMTable<A>>,
}

impl<A: Address> Place for InFibs<'_, A> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn lane(&self, plan: &Plan) -> Box<dyn Lane + '_> {
        let next_hops = vec![NextHop::NONE; plan.batch.min(self.keys.len())];
        let Self { fibs, keys, reader } = self;
        Box::new(CpuLane::new(FibKeys { fibs, keys, reader: reader.clone(), next_hops }))
    }
}

/// Keys with their FIBs, in one table of several FIBs.
struct FibKeys<'k, A: Address> {
    fibs: &'k [FibId],
    keys: &'k [A],
    reader: Reader<SailMTable<A>>,
    next_hops: Vec<NextHop>,
}

impl<A: Address> CpuKeys for FibKeys<'_, A> {
    fn look_up(&mut self, keys: Range<usize>) -> &[NextHop] {
        let next_hops = std::hint::black_box(&mut self.next_hops[..keys.len()]);
        self.reader.enter().lookup_mixed(&self.fibs[keys.clone()], &self.keys[keys], next_hops);
        next_hops
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use wirespeed::classify::Facts;
    use wirespeed::device;
    use wirespeed::engine::{AnyLive, EngineName, Wanted};
    use wirespeed::gpu::dispatch::Use;
    use wirespeed::names::generate::{self, Churn, ChurnSpec, Load, Paths, TraceSpec};
    use wirespeed_classify::Ipv4Tuple;
    use wirespeed_classify::generate as made;
    use wirespeed_fib::synth::{self, TableSpec, UpdateSpec, Updates};
    use wirespeed_fib::trace::{TraceKind, keys};
    use wirespeed_fib::{BuildOptions, Family, Rib, V4};
    use wirespeed_namelookup::NameModel;

    use super::*;
    use crate::on_host;
    use crate::verbs::replay::drive::Feeder;
    use crate::verbs::replay::feed::{Fed, Pace};
    use crate::verbs::replay::paced::Trial;
    use crate::verbs::replay::plan::Beside;
    use crate::verbs::replay::{bound, choose};

    const PLAN: Plan = Plan {
        len: 10_000,
        batch: 300,
        threads: 2,
        in_flight: 3,
        only: None,
        beside: None,
        time: Duration::from_millis(100),
    };

    /// A live table with updates and a trace for it, and the same table on a device in a GPU's place.
    struct Bench<D: Served, Q> {
        live: Box<dyn AnyLive<D>>,
        updates: Vec<D::Update>,
        place: InTable<'static, D, Q>,
        /// Makes the device be lost.
        switch: Arc<AtomicBool>,
    }

    /// A bench of a model.
    fn bench<D: Served, Q>(
        (engine, model, wanted): (EngineName, D::Model, Wanted<D>),
        trace: D::Keys<'static>,
        updates: Vec<D::Update>,
    ) -> Option<Bench<D, Q>> {
        let (fleet, switch) = on_host::fleet::<D>()?;
        let mut live = D::live(engine, model, BuildOptions::default(), wanted).unwrap().unwrap();
        let (sample, reach) = (trace.part(0..500), live.reach());
        let offload = device::offload(&mut *live, &fleet, sample, reach, Use::Always, 2).unwrap();
        let (reader, offload) = (live.reader(), Some(offload));
        let place = InTable { trace, ask: PhantomData, reader, offload };
        Some(Bench { live, updates, place, switch })
    }

    /// A bench of addresses.
    fn addresses() -> Option<Bench<V4, Results>> {
        let spec = TableSpec { prefixes: 2000, ..TableSpec::full(Family::V4) };
        let rib: Rib<V4> = synth::table(&spec).unwrap();
        let trace = &*keys(&rib, TraceKind::Prefix, PLAN.len, 1).unwrap().leak();
        let updates = Updates::new(&rib, &UpdateSpec::real(Family::V4)).take(2000);
        let updates = updates.map(|timed| timed.update).collect();
        bench((EngineName::SailL, rib, ()), trace, updates)
    }

    /// A bench of names, in an aggregated table, of which something is asked.
    fn names<Q>() -> Option<Bench<NameDomain, Q>> {
        let spec = generate::TableSpec { names: 2000, results: 5, seed: 1 };
        let table = generate::table(&spec).unwrap().names;
        let spec = TraceSpec { load: Load::Average, misses: 0.1, seed: 1 };
        let trace = Box::leak(Box::new(generate::trace(&table, Paths::made(), &spec, PLAN.len).unwrap()));
        let updates = Churn::new(&table, &ChurnSpec { results: 5, ..ChurnSpec::default() }).unwrap();
        let updates = updates.take(2000).map(|timed| timed.update).collect();
        bench((EngineName::Acta, NameModel::new(table, true), ()), trace.names(), updates)
    }

    /// A bench of rules.
    fn rules() -> Option<Bench<Ipv4Tuple, Results>> {
        let rules = made::classbench::<Ipv4Tuple>(made::Kind::Firewall, 300, 1);
        let trace = &*made::tuples(&rules, PLAN.len, 1.0, 1).leak();
        let updates = made::churn(&rules, 2000, 1);
        bench((EngineName::Bloom, rules, Facts::None), trace, updates)
    }

    fn updates_in_flight_reach_the_gpu<D, Q>(bench: Option<Bench<D, Q>>)
    where
        D: Served<Remote: Answers<Q::Found>, Update: Sync>,
        Q: Ask<D>,
    {
        let Some(Bench { mut live, updates, place, .. }) = bench else { return };
        let (trace, reader) = (place.trace, place.reader.clone());
        let cpu = InTable::<D, Q> { trace, ask: PhantomData, reader, offload: None };
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
        updates_in_flight_reach_the_gpu(names::<Results>());
    }

    #[test]
    fn updates_in_flight_reach_the_gpu_for_names_with_lengths() {
        updates_in_flight_reach_the_gpu(names::<Lengths>());
    }

    #[test]
    fn updates_in_flight_reach_the_gpu_for_rules() {
        updates_in_flight_reach_the_gpu(rules());
    }

    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu<D, Q>(bench: Option<Bench<D, Q>>)
    where
        D: Served<Remote: Answers<Q::Found>>,
        Q: Ask<D>,
    {
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
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(names::<Results>());
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_names_with_lengths() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(names::<Lengths>());
    }

    #[test]
    fn a_gpu_that_is_lost_in_mid_run_leaves_the_cpu_for_rules() {
        a_gpu_that_is_lost_in_mid_run_leaves_the_cpu(rules());
    }

    fn a_rate_is_held_on_a_gpu<D>(bench: Option<Bench<D, Results>>)
    where
        D: Served<Result: bytemuck::Pod>,
    {
        let Some(Bench { place, .. }) = bench else { return };
        let (bound, plan) = (Duration::from_millis(200), PLAN);
        let plans = [100, 500].map(|batch| Plan { batch, threads: 1, ..plan });
        let (held, driven) = bound::hold(&place, bound, &plans, None).unwrap();
        assert!(plans.contains(&held.plan) && held.is_held && held.rate > 0.0, "{:?}", held.plan);
        assert!(driven.latencies.percentiles().p99 <= 200_000.0, "{driven:?}");
        assert_eq!(place.gpu().unwrap().counts.cpu, 0);
        // Nothing is back within a nanosecond. That is a result, too.
        let (held, driven) = bound::hold(&place, Duration::from_nanos(1), &plans, None).unwrap();
        assert!(!held.is_held && held.plan == plans[0] && driven.latencies.count() > 0);
    }

    #[test]
    fn the_best_of_several_plans_is_chosen() {
        let Some(Bench { place, .. }) = addresses() else { return };
        let on = |only| Plan { only, time: Duration::from_millis(1), ..PLAN };
        let plans = [Some(On::Cpu), Some(On::Gpu), None].map(on);
        let best = choose::best(&plans, &place, true).unwrap();
        assert!(plans.contains(&best) || best.beside.is_some());
        let counts = place.gpu().unwrap().counts;
        assert!(counts.gpu > 0, "all were tried: {counts:?}");
        // One device looks up what only it is to look up.
        for (only, is_gpu) in [(On::Cpu, false), (On::Gpu, true)] {
            let before = place.gpu().unwrap().counts;
            on(Some(only)).pass(&place);
            let after = place.gpu().unwrap().counts;
            assert_eq!(after.gpu - before.gpu, if is_gpu { PLAN.len as u64 } else { 0 });
            assert_eq!(
                after.cpu - before.cpu,
                0,
                "a plan for the CPU alone has nothing to choose or to count"
            );
        }
    }

    #[test]
    fn two_teams_look_up_all_keys_with_batches_of_their_own() {
        let Some(Bench { place, .. }) = addresses() else { return };
        let beside = Some(Beside { threads: 2, batch: 70, permille: 400 });
        let plan = Plan { only: Some(On::Gpu), beside, ..PLAN };
        let passes: Vec<_> = plan.teams().map(|(team, _)| team.pass(&place)).collect();
        assert_eq!((passes[0].checksum, passes[0].matched()), (passes[1].checksum, passes[1].matched()));
        let before = place.gpu().unwrap().counts;
        let driven = plan.drive(&place, None).unwrap();
        assert_eq!(driven.batches.len(), 4);
        let (lookups, matched) = plan.totals(&driven, &passes);
        assert_eq!(lookups, matched, "every key of such a trace matches");
        let teams: Vec<u64> =
            plan.batches_by_team(&driven.batches).map(|(team, batches)| team.lookups(batches)).collect();
        assert_eq!(teams.iter().sum::<u64>(), lookups);
        assert!(teams.iter().all(|&keys| keys > 0), "{teams:?}");
        // One team warms up and looks up on the GPU, the other on the CPU, uncounted.
        let counts = place.gpu().unwrap().counts;
        assert_eq!((counts.gpu - before.gpu, counts.cpu - before.cpu), (PLAN.len as u64 + teams[0], 0));
        // At a rate each team has its part of the keys, if the machine is fast enough.
        let trial = Trial::of(&place, plan, 50_000.0, Duration::from_millis(400));
        let teams: Vec<u64> = plan
            .batches_by_team(&trial.driven.batches)
            .map(|(team, batches)| team.lookups(batches))
            .collect();
        assert!(teams[0] <= 12_000 + 600 && teams[1] <= 8_000 + 140, "{teams:?}");
    }

    #[test]
    fn a_rate_is_held_on_a_gpu_for_addresses() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        a_rate_is_held_on_a_gpu(addresses());
    }

    #[test]
    fn a_rate_is_held_on_a_gpu_for_names() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        a_rate_is_held_on_a_gpu(names());
    }
}
