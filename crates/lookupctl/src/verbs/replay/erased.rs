//! Places without their types: what drives a trace is compiled once for all of them. What a thread does over
//! and over is compiled for each, and a batch pays nothing for the rest.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::bound::Paced;
use super::drive::{Pass, Plan};
use super::latency::Latencies;
use super::place::{GpuState, Lane, Place};

/// A place of some type.
pub(in crate::verbs) trait AnyPlace {
    /// Keys of the trace.
    fn count(&self) -> usize;
    /// What a thread does with a lane for batches of at most so many keys.
    fn worker(&self, batch: usize) -> Box<dyn Worker + '_>;
    /// What GPUs have to do with it.
    fn gpu_state(&self) -> Option<GpuState>;
}

impl<P: Place> AnyPlace for P {
    fn count(&self) -> usize {
        self.len()
    }

    fn worker(&self, batch: usize) -> Box<dyn Worker + '_> {
        Box::new(self.lane(batch))
    }

    fn gpu_state(&self) -> Option<GpuState> {
        self.gpu()
    }
}

/// A lane of some type, in the hands of a thread.
pub(in crate::verbs) trait Worker: Send {
    /// [`Plan::work`].
    fn work(
        &mut self,
        plan: &Plan,
        thread: usize,
        start: &Barrier,
        stop: &AtomicBool,
    ) -> (Latencies, Instant);
    /// [`Plan::pass_over`].
    fn pass_over(&mut self, plan: &Plan, batches: Range<usize>) -> Pass;
    /// [`Paced::work`].
    fn work_paced(&mut self, paced: &Paced) -> (Latencies, Instant, bool);
}

impl<L: Lane> Worker for L {
    fn work(
        &mut self,
        plan: &Plan,
        thread: usize,
        start: &Barrier,
        stop: &AtomicBool,
    ) -> (Latencies, Instant) {
        plan.work(thread, self, start, stop)
    }

    fn pass_over(&mut self, plan: &Plan, batches: Range<usize>) -> Pass {
        plan.pass_over(batches, self)
    }

    fn work_paced(&mut self, paced: &Paced) -> (Latencies, Instant, bool) {
        paced.work(self)
    }
}
