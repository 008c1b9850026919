//! [`Pipeline`]: many batches under way at once.

use std::collections::VecDeque;
use std::fmt;

use wirespeed_table::Keys;

use crate::common::ReaderCore;
use crate::engine::Served;
use crate::gpu::offload;

/// Batches of one thread, several under way at once, first in, first out. They keep a GPU and the bus to it
/// busy in both directions. [`Reader::pipeline`](crate::Reader::pipeline) makes one for addresses,
/// [`NameReader::pipeline`](crate::NameReader::pipeline) for names,
/// [`RuleReader::pipeline`](crate::RuleReader::pipeline) for tuples.
///
/// A batch for the CPU is looked up when it is taken. So is one that a GPU could not answer.
pub struct Pipeline<'k, D: Served> {
    reader: &'k ReaderCore<D>,
    under_way: UnderWay<'k, D>,
}

/// Batches under way, where there may be GPUs or none.
enum UnderWay<'k, D: Served> {
    /// All on the CPU.
    OnCpu(VecDeque<D::Keys<'k>>),
    OnEither(offload::Pipeline<'k, 'k, D::Remote, D::Result>),
}

impl<'k, D: Served> Pipeline<'k, D> {
    pub(crate) fn new(reader: &'k ReaderCore<D>) -> Self {
        let under_way = match reader.offload() {
            None => UnderWay::OnCpu(VecDeque::new()),
            Some(offload) => UnderWay::OnEither(offload::Pipeline::new(offload)),
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

    /// Whether [`next`](Self::next) would have no device to wait for. False with nothing under way.
    pub fn is_ready(&self) -> bool {
        match &self.under_way {
            UnderWay::OnCpu(batches) => !batches.is_empty(),
            UnderWay::OnEither(pipeline) => pipeline.is_ready(),
        }
    }

    /// Sends a batch: addresses, [`Names`](crate::names::Names) or tuples. The CPU looks it up where no slot
    /// of the GPUs holds it. Waits where all threads together have as many under way as the GPUs take.
    pub fn submit(&mut self, keys: D::Keys<'k>) {
        match &mut self.under_way {
            UnderWay::OnCpu(batches) => batches.push_back(keys),
            UnderWay::OnEither(pipeline) => pipeline.submit(keys),
        }
    }

    /// Waits for the oldest batch, and writes its results to the start of `results`: next hops of addresses
    /// and names, numbers of rules. Returns its keys, or `None` when nothing is under way.
    ///
    /// Panics where `results` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, results: &mut [D::Answer]) -> Option<D::Keys<'k>> {
        let (results, reader) = (D::results(results), self.reader);
        let on_cpu = |keys: D::Keys<'k>, results: &mut [D::Result]| reader.lookup_on_cpu(keys, results);
        match &mut self.under_way {
            UnderWay::OnEither(pipeline) => pipeline.next(results, on_cpu),
            UnderWay::OnCpu(batches) => {
                let keys = batches.pop_front()?;
                on_cpu(keys, &mut results[..keys.len()]);
                Some(keys)
            }
        }
    }
}

impl<D: Served> fmt::Debug for Pipeline<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
