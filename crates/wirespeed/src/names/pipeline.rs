//! [`NamePipeline`]: many batches of names under way at once.

use std::fmt;

use wirespeed_fib::NextHop;
use wirespeed_gpu::names::Remote;
use wirespeed_namelookup::Names;

use super::reader::NameReader;
use crate::pipeline::UnderWay;

/// Batches of names of one thread, several under way at once, first in, first out, like the addresses of a
/// [`Pipeline`](crate::Pipeline). [`NameReader::pipeline`] makes one.
///
/// A batch for the CPU is looked up when it is taken. So is one that a GPU could not answer.
pub struct NamePipeline<'k> {
    reader: &'k NameReader,
    under_way: UnderWay<'k, Remote, u32>,
}

impl<'k> NamePipeline<'k> {
    pub(super) fn new(reader: &'k NameReader) -> Self {
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
    pub fn submit(&mut self, names: impl Into<Names<'k>>) {
        self.under_way.submit(names.into());
    }

    /// Waits for the oldest batch, and writes its results to the start of `next_hops`. Returns its names, or
    /// `None` when nothing is under way.
    ///
    /// Panics where `next_hops` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, next_hops: &mut [NextHop]) -> Option<Names<'k>> {
        self.under_way.next(bytemuck::cast_slice_mut(next_hops), |names, results| {
            self.reader.enter().lookup_batch(names, bytemuck::cast_slice_mut(results));
        })
    }
}

impl fmt::Debug for NamePipeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamePipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}
