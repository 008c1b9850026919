//! [`Pipeline`]: many batches under way at once.

use std::collections::VecDeque;
use std::fmt;

use wirespeed_table::Keys;

use crate::common::ReaderCore;
use crate::engine::Served;
use crate::gpu::offload;

/// A queue of batches of one thread, with several batches under way at once, first in, first out. It keeps a
/// GPU and the bus busy in both directions. [`Reader::pipeline`](crate::Reader::pipeline) makes one for
/// addresses, [`NameReader::pipeline`](crate::NameReader::pipeline) for names,
/// [`RuleReader::pipeline`](crate::RuleReader::pipeline) for tuples.
///
/// A batch for the CPU is looked up when its results are taken, and so is a batch that a GPU could not
/// answer.
#[must_use = "a pipeline that is dropped drops the results of its batches"]
pub struct Pipeline<'k, D: Served> {
    reader: &'k ReaderCore<D>,
    under_way: UnderWay<'k, D>,
}

/// The batches under way, with or without GPUs.
enum UnderWay<'k, D: Served> {
    /// All batches are looked up on the CPU.
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

    /// The number of batches under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        match &self.under_way {
            UnderWay::OnCpu(batches) => batches.len(),
            UnderWay::OnEither(pipeline) => pipeline.under_way(),
        }
    }

    /// Whether [`next`](Self::next) returns without waiting for a device. False if no batch is under way.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match &self.under_way {
            UnderWay::OnCpu(batches) => !batches.is_empty(),
            UnderWay::OnEither(pipeline) => pipeline.is_ready(),
        }
    }

    /// Sends a batch: addresses, [`Names`](crate::names::Names) or tuples. A batch that no slot of a GPU
    /// holds goes there in parts. Waits if all threads together have as many batches under way as the GPUs
    /// take.
    pub fn submit(&mut self, keys: D::Keys<'k>) {
        match &mut self.under_way {
            UnderWay::OnCpu(batches) => batches.push_back(keys),
            UnderWay::OnEither(pipeline) => pipeline.submit(keys),
        }
    }

    /// Waits for the oldest batch, and writes its results to the start of `results`: next hops for addresses
    /// and names, rule numbers for tuples. Returns the batch's keys, or `None` if no batch is under way.
    ///
    /// Panics if `results` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, results: &mut [D::Answer]) -> Option<D::Keys<'k>> {
        let (found, reader) = (D::results(results), self.reader);
        let on_cpu = |keys: D::Keys<'k>, found: &mut [D::Result]| reader.lookup_on_cpu(keys, found);
        let keys = match &mut self.under_way {
            UnderWay::OnEither(pipeline) => pipeline.next(found, on_cpu)?,
            UnderWay::OnCpu(batches) => {
                let keys = batches.pop_front()?;
                on_cpu(keys, &mut found[..keys.len()]);
                keys
            }
        };
        if let Some(ids) = reader.ids() {
            D::take_apart(ids, &mut results[..keys.len()]);
        }
        Some(keys)
    }
}

impl<D: Served> fmt::Debug for Pipeline<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
