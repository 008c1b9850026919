//! [`Worker`]: a lane in the hands of a thread. What a thread does over and over is compiled for each kind of
//! lane, so that a batch pays for no call but that of its table.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::drive::Pass;
use super::latency::Latencies;
use super::paced::Paced;
use super::place::Lane;
use super::plan::Plan;

/// A lane of some kind.
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
