//! [`Pipeline`]: many batches under way at once.

use std::collections::VecDeque;
use std::fmt;

use wirespeed_fib::NextHop;
use wirespeed_gpu::ip;
use wirespeed_gpu::offload::{self, Answers, Offload};

use crate::engine::Addresses;
use crate::reader::Reader;

/// Batches of one thread, several under way at once, first in, first out. They keep a GPU and the bus to it
/// busy in both directions. [`Reader::pipeline`] makes one.
///
/// A batch for the CPU is looked up when it is taken. So is one that a GPU could not answer.
pub struct Pipeline<'k, A: Addresses> {
    reader: &'k Reader<A>,
    under_way: UnderWay<'k, ip::Remote<A>, NextHop>,
}

impl<'k, A: Addresses> Pipeline<'k, A> {
    pub(crate) fn new(reader: &'k Reader<A>) -> Self {
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

    /// Sends a batch. Waits where all threads together have as many under way as the GPUs take.
    pub fn submit(&mut self, addresses: &'k [A]) {
        self.under_way.submit(addresses);
    }

    /// Waits for the oldest batch, and writes its results to the start of `next_hops`. Returns its addresses,
    /// or `None` when nothing is under way.
    ///
    /// Panics where `next_hops` is shorter than the batch.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self, next_hops: &mut [NextHop]) -> Option<&'k [A]> {
        self.under_way.next(next_hops, |addresses, next_hops| {
            self.reader.enter().lookup_addresses(addresses, next_hops);
        })
    }
}

impl<A: Addresses> fmt::Debug for Pipeline<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("under_way", &self.under_way()).finish_non_exhaustive()
    }
}

/// Batches under way, of addresses or names, where there may be GPUs or none.
pub(crate) enum UnderWay<'k, T: Answers<R>, R> {
    /// All on the CPU.
    OnCpu(VecDeque<T::Keys<'k>>),
    OnEither(offload::Pipeline<'k, T, R>),
}

impl<'k, T: Answers<R>, R: Copy + Default> UnderWay<'k, T, R> {
    pub(crate) fn new(offload: Option<&'k Offload<T>>) -> Self {
        match offload {
            None => Self::OnCpu(VecDeque::new()),
            Some(offload) => Self::OnEither(offload::Pipeline::new(offload)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::OnCpu(batches) => batches.len(),
            Self::OnEither(pipeline) => pipeline.under_way(),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::OnCpu(batches) => !batches.is_empty(),
            Self::OnEither(pipeline) => pipeline.is_ready(),
        }
    }

    pub(crate) fn submit(&mut self, keys: T::Keys<'k>) {
        match self {
            Self::OnCpu(batches) => batches.push_back(keys),
            Self::OnEither(pipeline) => pipeline.submit(keys),
        }
    }

    pub(crate) fn next(
        &mut self,
        found: &mut [R],
        cpu: impl FnOnce(T::Keys<'k>, &mut [R]),
    ) -> Option<T::Keys<'k>> {
        match self {
            Self::OnEither(pipeline) => pipeline.next(found, cpu),
            Self::OnCpu(batches) => {
                let keys = batches.pop_front()?;
                cpu(keys, &mut found[..T::count(keys)]);
                Some(keys)
            }
        }
    }
}
