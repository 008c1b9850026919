//! [`RulePipeline`]: many batches of tuples under way at once.

use std::fmt;

use wirespeed_gpu::classify::Remote;

use super::reader::RuleReader;
use crate::engine::RuleTuple;
use crate::pipeline::UnderWay;

/// Batches of tuples of one thread, several under way at once, first in, first out, like the addresses of a
/// [`Pipeline`](crate::Pipeline). [`RuleReader::pipeline`] makes one.
///
/// A batch for the CPU is looked up when it is taken. So is one that a GPU could not answer.
pub struct RulePipeline<'k, T: RuleTuple> {
    reader: &'k RuleReader<T>,
    under_way: UnderWay<'k, Remote<T>, u32>,
}

impl<'k, T: RuleTuple> RulePipeline<'k, T> {
    pub(super) fn new(reader: &'k RuleReader<T>) -> Self {
        Self { reader, under_way: UnderWay::new(reader.offload()) }
    }

    /// Batches under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether [`next`](Self::next) would have no device to wait for. False with nothing under way.
    pub fn is_ready(&self) -> bool {
        self.under_way.is_ready()
    }

    /// Sends a batch. The CPU looks it up where no slot of the GPUs holds it. Waits where all threads
    /// together have as many under way as the GPUs take.
    pub fn submit(&mut self, tuples: &'k [T]) {
        self.under_way.submit(tuples);
    }

    /// Waits for the oldest batch, and writes the numbers of its rules, 0 where none matches, to the start of
    /// `numbers`. Returns its tuples, or `None` when nothing is under way.
    ///
    /// Panics where `numbers` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, numbers: &mut [u32]) -> Option<&'k [T]> {
        self.under_way.next(numbers, |tuples, numbers| self.reader.enter().lookup_batch(tuples, numbers))
    }
}

impl<T: RuleTuple> fmt::Debug for RulePipeline<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RulePipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
