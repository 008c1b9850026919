//! [`InBoth`]: a trace of both families in the tables of both.
//!
//! The keys of each family keep their order in the trace. A batch takes from both families alike, so that all
//! batches have the trace's mixture, and one buffer holds the results of both parts.
//!
//! ```text
//! n keys, n4 of IPv4           batch a..b
//! IPv4  │ … a·n4/n ████████ b·n4/n …      │ ──┐
//! IPv6  │ … a - a·n4/n ███ b - b·n4/n …   │ ──┴─► results │ ████████ ███ │
//! ```

use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use wirespeed::engine::{Addresses, AnyReader, AnyTable};
use wirespeed::gpu::offload::{Offload, Pipeline};
use wirespeed::gpu::runtime::SlotSize;
use wirespeed_fib::{NextHop, V4, V6};

use super::place::{CpuKeys, CpuLane, GpuState, Lane, Place, gpu_state, only};
use super::plan::Plan;
use crate::device::On;

/// A trace of both families, looked up on the CPU or on GPUs.
pub(in crate::verbs) struct InBoth<'k> {
    pub(in crate::verbs) v4: OfFamily<'k, V4>,
    pub(in crate::verbs) v6: OfFamily<'k, V6>,
}

/// The keys of a family, and the table that they are looked up in.
pub(in crate::verbs) struct OfFamily<'k, A: Addresses> {
    pub(in crate::verbs) keys: &'k [A],
    pub(in crate::verbs) cpu: OnCpu<A>,
    /// The table on GPUs, if these look up.
    pub(in crate::verbs) offload: Option<Offload<A::Remote>>,
}

/// A table on the CPU.
#[derive(Clone)]
pub(in crate::verbs) enum OnCpu<A: Addresses> {
    Live(Arc<dyn AnyReader<A>>),
    /// The table of an image for prefix lookups, whose results are taken apart.
    ForPrefixes(Arc<dyn AnyTable<A>>),
}

impl<A: Addresses> OnCpu<A> {
    fn look_up(&self, keys: &[A], found: &mut [NextHop]) {
        match self {
            Self::Live(reader) => reader.lookup_batch(keys, found),
            Self::ForPrefixes(table) => table.lookup_batch(keys, found),
        }
    }
}

impl Place for InBoth<'_> {
    fn len(&self) -> usize {
        self.v4.keys.len() + self.v6.keys.len()
    }

    fn lane(&self, plan: &Plan) -> Box<dyn Lane + '_> {
        let is_on_gpu = self.v4.offload.is_some() || self.v6.offload.is_some();
        Box::new(BothLane {
            split: Split { v4: self.v4.keys.len(), len: self.len() },
            v4: self.v4.lane_on(plan.only),
            v6: self.v6.lane_on(plan.only),
            found: vec![NextHop::NONE; plan.batch.min(self.len())],
            under_way: VecDeque::new(),
            depth: if is_on_gpu { plan.in_flight } else { 1 },
        })
    }

    fn gpu(&self) -> Option<GpuState> {
        let (v4, v6) = (gpu_state(self.v4.offload.as_ref()?)?, gpu_state(self.v6.offload.as_ref()?)?);
        let counts = v4.counts.plus(v6.counts);
        // A batch takes a slot for each family.
        let slots = v4.slots.into_iter().map(|size| SlotSize { slots: size.slots / 2, ..size }).collect();
        Some(GpuState { counts, slots, out: v4.out.or(v6.out), ..v4 })
    }
}

/// Keys of one family, on the CPU.
impl<A: Addresses> Place for OfFamily<'_, A> {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn lane(&self, plan: &Plan) -> Box<dyn Lane + '_> {
        let found = vec![NextHop::NONE; plan.batch.min(self.keys.len())];
        Box::new(CpuLane::new(FamilyKeys { keys: self.keys, cpu: &self.cpu, found }))
    }
}

/// The keys of one family in a table on the CPU.
struct FamilyKeys<'p, A: Addresses> {
    keys: &'p [A],
    cpu: &'p OnCpu<A>,
    found: Vec<NextHop>,
}

impl<A: Addresses> CpuKeys for FamilyKeys<'_, A> {
    fn look_up(&mut self, keys: Range<usize>) -> &[NextHop] {
        let found = black_box(&mut self.found[..keys.len()]);
        self.cpu.look_up(&self.keys[keys], found);
        black_box(found)
    }
}

/// How batches are split by family.
#[derive(Clone, Copy, Debug)]
struct Split {
    /// IPv4 keys of the trace.
    v4: usize,
    /// All keys of the trace, at least one.
    len: usize,
}

impl Split {
    /// The IPv4 keys and the IPv6 keys of a batch.
    fn of(self, batch: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let (start, end) = (self.before(batch.start), self.before(batch.end));
        (start..end, batch.start - start..batch.end - end)
    }

    /// IPv4 keys before a key.
    #[allow(clippy::cast_possible_truncation)] // at most `v4`
    fn before(self, key: usize) -> usize {
        (key as u128 * self.v4 as u128 / self.len as u128) as usize
    }
}

/// A lane for both families.
struct BothLane<'p, 'k> {
    split: Split,
    v4: FamilyLane<'p, 'k, V4>,
    v6: FamilyLane<'p, 'k, V6>,
    found: Vec<NextHop>,
    under_way: VecDeque<Range<usize>>,
    depth: usize,
}

impl Lane for BothLane<'_, '_> {
    fn depth(&self) -> usize {
        self.depth
    }

    fn under_way(&self) -> usize {
        self.under_way.len()
    }

    fn is_ready(&self) -> bool {
        self.under_way.front().is_some_and(|batch| {
            let (v4, v6) = self.split.of(batch);
            self.v4.is_ready(&v4) && self.v6.is_ready(&v6)
        })
    }

    fn submit(&mut self, batch: Range<usize>) {
        let (v4, v6) = self.split.of(&batch);
        self.v4.submit(v4, || self.v6.give_up_slot());
        self.v6.submit(v6, || self.v4.give_up_slot());
        self.under_way.push_back(batch);
    }

    fn take(&mut self) -> &[NextHop] {
        let Some(batch) = self.under_way.pop_front() else { return &[] };
        let (v4, v6) = self.split.of(&batch);
        let found = black_box(&mut self.found[..batch.len()]);
        let (fours, sixes) = found.split_at_mut(v4.len());
        self.v4.take(v4, fours);
        self.v6.take(v6, sixes);
        black_box(found)
    }
}

/// The part of a lane for one family. It does nothing for an empty part of a batch.
struct FamilyLane<'p, 'k, A: Addresses> {
    keys: &'k [A],
    cpu: &'p OnCpu<A>,
    pipeline: Option<Pipeline<'p, 'k, A::Remote, NextHop>>,
}

impl<'k, A: Addresses> OfFamily<'k, A> {
    fn lane_on(&self, on: Option<On>) -> FamilyLane<'_, 'k, A> {
        let offload = self.offload.as_ref().filter(|_| on != Some(On::Cpu));
        let pipeline = offload.map(|offload| only(Pipeline::new(offload), on));
        FamilyLane { keys: self.keys, cpu: &self.cpu, pipeline }
    }
}

impl<A: Addresses> FamilyLane<'_, '_, A> {
    /// Whether the oldest part is back. It has these keys.
    fn is_ready(&self, part: &Range<usize>) -> bool {
        part.is_empty() || self.pipeline.as_ref().is_none_or(Pipeline::is_ready)
    }

    fn submit(&mut self, part: Range<usize>, free: impl FnMut() -> bool) {
        if let Some(pipeline) = self.pipeline.as_mut().filter(|_| !part.is_empty()) {
            pipeline.submit_freeing(&self.keys[part], free);
        }
    }

    fn give_up_slot(&mut self) -> bool {
        self.pipeline.as_mut().is_some_and(Pipeline::give_up_slot)
    }

    /// Writes the results of the oldest part. It has these keys.
    fn take(&mut self, part: Range<usize>, found: &mut [NextHop]) {
        match &mut self.pipeline {
            _ if part.is_empty() => {}
            None => self.cpu.look_up(&self.keys[part], found),
            Some(pipeline) => drop(pipeline.next(found, |keys, found| self.cpu.look_up(keys, found))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use wirespeed::device;
    use wirespeed::engine::{AnyLive, EngineName};
    use wirespeed::gpu::dispatch::Use;
    use wirespeed_fib::synth::{self, TableSpec, UpdateSpec, Updates};
    use wirespeed_fib::trace::{TraceKind, keys};
    use wirespeed_fib::{AnyUpdate, BuildOptions, InFib, Rib};

    use super::*;
    use crate::on_host;
    use crate::verbs::replay::drive::Feeder;
    use crate::verbs::replay::feed::{LiveBoth, Pace};

    const PLAN: Plan = Plan {
        len: 10_000,
        batch: 300,
        threads: 3,
        in_flight: 5,
        only: None,
        beside: None,
        time: Duration::from_millis(100),
    };

    /// A live table with keys and updates for it.
    struct Family<A: Addresses> {
        live: Box<dyn AnyLive<A>>,
        keys: Vec<A>,
        updates: Vec<AnyUpdate>,
    }

    fn family<A: Addresses + InFib>(keys_of_it: usize) -> Family<A> {
        let rib: Rib<A> = synth::table(&TableSpec { prefixes: 2000, ..TableSpec::full(A::FAMILY) }).unwrap();
        let keys = keys(&rib, TraceKind::Prefix, keys_of_it, 1).unwrap();
        let updates = Updates::new(&rib, &UpdateSpec::real(A::FAMILY)).take(1000);
        let updates = updates.map(|timed| A::any(timed.update)).collect();
        let live = A::live(EngineName::Fold, rib, BuildOptions::default(), ()).unwrap().unwrap();
        Family { live, keys, updates }
    }

    /// More batches are under way than there are slots, so lanes give slots up to each other.
    #[test]
    fn both_families_share_the_gpus() {
        let Some((fleet, switch)) = on_host::fleet::<V6>() else { return };
        let (mut v4, mut v6) = (family::<V4>(7_000), family::<V6>(3_000));
        let (cpu4, cpu6) = (OnCpu::Live(v4.live.reader()), OnCpu::Live(v6.live.reader()));
        let on_cpu = InBoth {
            v4: OfFamily { keys: &v4.keys, cpu: cpu4.clone(), offload: None },
            v6: OfFamily { keys: &v6.keys, cpu: cpu6.clone(), offload: None },
        };
        let (reach4, reach6) = (v4.live.reach(), v6.live.reach());
        let offload4 = device::offload(&mut *v4.live, &fleet, &v4.keys, reach4, Use::Always, 3).unwrap();
        let offload6 = device::offload(&mut *v6.live, &fleet, &v6.keys, reach6, Use::Always, 3).unwrap();
        let place = InBoth {
            v4: OfFamily { keys: &v4.keys, cpu: cpu4, offload: Some(offload4) },
            v6: OfFamily { keys: &v6.keys, cpu: cpu6, offload: Some(offload6) },
        };
        let before = PLAN.pass(&place);
        assert_eq!(before.checksum, PLAN.pass(&on_cpu).checksum);
        assert_eq!(before.matched(), 10_000);
        let gpu = place.gpu().unwrap();
        assert_eq!((gpu.counts.gpu, gpu.counts.cpu), (10_000, 0), "{gpu:?}");

        let mut updates = v4.updates;
        updates.extend(v6.updates);
        let mut live = LiveBoth { v4: v4.live, v6: v6.live };
        let mut drive = || {
            let feed = Box::new(|start: Instant, stop: &AtomicBool| {
                Pace::Flat.feed(&mut live, &updates, start, stop)
            });
            PLAN.drive(&place, Some(Feeder { feed, to_its_end: false })).unwrap()
        };
        // Where other programs keep the cores, the time may be over before the first update.
        let driven = (0..100).map(|_| drive()).find(|driven| driven.fed.unwrap().applied > 0);
        assert!(driven.expect("updates go in while lookups run").latencies.count() >= 6);
        let after = PLAN.pass(&place).checksum;
        assert_eq!(after, PLAN.pass(&on_cpu).checksum);
        assert_ne!(before.checksum, after, "the updates change what the trace finds");
        assert_eq!(place.gpu().unwrap().counts.cpu, 0);

        switch.store(true, Ordering::Relaxed);
        assert_eq!(PLAN.pass(&place).checksum, after, "the CPU goes on");
        let gpu = place.gpu().unwrap();
        assert!(gpu.out.is_some() && gpu.counts.cpu > 0, "{gpu:?}");
    }

    /// All slots are taken by one family of a lane when the first keys of the other come: a lane that waited
    /// for a slot would wait for ever.
    #[test]
    fn a_lane_does_not_wait_for_its_own_slots() {
        let Some((fleet, _)) = on_host::fleet::<V6>() else { return };
        let (mut v4, mut v6) = (family::<V4>(1), family::<V6>(99));
        let (reach4, reach6) = (v4.live.reach(), v6.live.reach());
        let offload4 = device::offload(&mut *v4.live, &fleet, &v4.keys, reach4, Use::Always, 1).unwrap();
        let offload6 = device::offload(&mut *v6.live, &fleet, &v6.keys, reach6, Use::Always, 1).unwrap();
        let (cpu4, cpu6) = (OnCpu::Live(v4.live.reader()), OnCpu::Live(v6.live.reader()));
        let four = OfFamily { keys: &v4.keys, cpu: cpu4.clone(), offload: Some(offload4) };
        let six = OfFamily { keys: &v6.keys, cpu: cpu6.clone(), offload: Some(offload6) };
        let mut lane = BothLane {
            split: Split { v4: 1, len: 100 },
            v4: four.lane_on(None),
            v6: six.lane_on(None),
            found: vec![NextHop::NONE; 1],
            under_way: VecDeque::new(),
            depth: 100,
        };
        (0..100).for_each(|key| lane.submit(key..key + 1));
        let mut right = vec![NextHop::NONE; 100];
        cpu6.look_up(&v6.keys, &mut right[..99]);
        cpu4.look_up(&v4.keys, &mut right[99..]);
        let found: Vec<_> = (0..100).map(|_| lane.take()[0]).collect();
        assert_eq!(found, right);
        assert!(lane.take().is_empty());
    }

    #[test]
    fn batches_take_every_key_of_both_families_once() {
        for (v4, v6) in [(1, 1), (7, 0), (0, 7), (1, 100), (100, 1), (33, 67), (50, 50)] {
            let split = Split { v4, len: v4 + v6 };
            for batch in 1..=v4 + v6 + 1 {
                let (mut fours, mut sixes) = (0, 0);
                for start in (0..split.len).step_by(batch) {
                    let keys = start..split.len.min(start + batch);
                    let (of_v4, of_v6) = split.of(&keys);
                    assert_eq!((of_v4.start, of_v6.start), (fours, sixes), "{split:?} {keys:?}");
                    assert_eq!(of_v4.len() + of_v6.len(), keys.len(), "{split:?} {keys:?}");
                    (fours, sixes) = (of_v4.end, of_v6.end);
                    let fair = keys.len() * v4 / split.len;
                    assert!(of_v4.len() - fair <= 1, "{split:?} {keys:?}: {of_v4:?}");
                }
                assert_eq!((fours, sixes), (v4, v6));
            }
        }
    }
}
