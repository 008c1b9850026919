//! [`Pipeline`]: many batches under way at once.

use std::collections::VecDeque;
use std::fmt;

use wirespeed_fib::NextHop;
use wirespeed_gpu::ip;

use crate::engine::Engines;
use crate::reader::Reader;

/// Batches of one thread, several under way at once, first in, first out: what keeps a GPU and the bus to it busy in both
/// directions. [`Reader::pipeline`] makes one.
///
/// A batch for the CPU is looked up when it is taken. So is one that a GPU could not answer.
pub struct Pipeline<'k, A: Engines> {
    reader: &'k Reader<A>,
    under_way: UnderWay<'k, A>,
}

enum UnderWay<'k, A> {
    /// All on the CPU.
    OnCpu(VecDeque<&'k [A]>),
    OnEither(ip::Pipeline<'k, A>),
}

impl<'k, A: Engines> Pipeline<'k, A> {
    pub(crate) fn new(reader: &'k Reader<A>) -> Self {
        let under_way = match reader.offload() {
            None => UnderWay::OnCpu(VecDeque::new()),
            Some(offload) => UnderWay::OnEither(ip::Pipeline::new(offload)),
        };
        Self { reader, under_way }
    }

    /// Batches under way.
    pub fn under_way(&self) -> usize {
        match &self.under_way {
            UnderWay::OnCpu(batches) => batches.len(),
            UnderWay::OnEither(pipeline) => pipeline.under_way(),
        }
    }

    /// Whether [`next`](Self::next) would have no device to wait for. Not with nothing under way.
    pub fn is_ready(&self) -> bool {
        match &self.under_way {
            UnderWay::OnCpu(batches) => !batches.is_empty(),
            UnderWay::OnEither(pipeline) => pipeline.is_ready(),
        }
    }

    /// Sends a batch. Waits where as many are under way, on all threads together, as the GPUs take.
    pub fn submit(&mut self, addresses: &'k [A]) {
        match &mut self.under_way {
            UnderWay::OnCpu(batches) => batches.push_back(addresses),
            UnderWay::OnEither(pipeline) => pipeline.submit(addresses),
        }
    }

    /// Waits for the oldest batch and writes its results to the start of `next_hops`; its addresses, or `None` when nothing is
    /// under way.
    ///
    /// Panics where `next_hops` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, next_hops: &mut [NextHop]) -> Option<&'k [A]> {
        let on_cpu = |addresses: &[A], next_hops: &mut [NextHop]| {
            self.reader.enter().lookup_addresses(addresses, next_hops);
        };
        match &mut self.under_way {
            UnderWay::OnEither(pipeline) => pipeline.next(next_hops, on_cpu),
            UnderWay::OnCpu(batches) => {
                let addresses = batches.pop_front()?;
                on_cpu(addresses, &mut next_hops[..addresses.len()]);
                Some(addresses)
            }
        }
    }
}

impl<A: Engines> fmt::Debug for Pipeline<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
