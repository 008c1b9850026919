//! What is held against the truth: a table on the CPU, or on GPUs.

use std::sync::OnceLock;

use wirespeed::GpuError;
use wirespeed::gpu::ip::Remote;
use wirespeed_fib::{Address, Lookup, NextHop};

/// A table that is looked up in one or more ways.
pub(super) trait Subject<A>: Sync {
    /// The ways for probes.
    const WAYS: &'static [Way];
    /// Keys of a batch, by the first of the ways, when every address is looked up.
    const MANY: usize;

    /// Looks keys up by the way of that number.
    fn look_up(&self, way: usize, keys: &[A], next_hops: &mut [NextHop]);
}

/// A way of looking up.
pub(super) struct Way {
    /// What it is called in a report.
    pub(super) name: &'static str,
    /// Keys of a batch.
    pub(super) keys: usize,
}

/// A table on this machine's cores, in batches and one by one.
pub(super) struct OnCpu<'a, T>(pub(super) &'a T);

impl<A: Address, T: Lookup<A>> Subject<A> for OnCpu<'_, T> {
    const WAYS: &'static [Way] = &[Way { name: "batch", keys: 4096 }, Way { name: "single", keys: 4096 }];
    const MANY: usize = 4096;

    fn look_up(&self, way: usize, keys: &[A], next_hops: &mut [NextHop]) {
        if way == 0 {
            return self.0.lookup_batch(keys, next_hops);
        }
        for (next_hop, &key) in next_hops.iter_mut().zip(keys) {
            *next_hop = self.0.lookup(key);
        }
    }
}

/// A table on GPUs, in batches large and small: they may go different ways, to different kernels.
pub(super) struct OnGpu<'a, A> {
    remote: &'a Remote<A>,
    failed: OnceLock<GpuError>,
}

impl<'a, A: Address> OnGpu<'a, A> {
    pub(super) fn new(remote: &'a Remote<A>) -> Self {
        Self { remote, failed: OnceLock::new() }
    }

    /// Why there were no answers. What there were instead is wrong.
    pub(super) fn failure(self) -> Option<GpuError> {
        self.failed.into_inner()
    }
}

impl<A: Address> Subject<A> for OnGpu<'_, A> {
    const WAYS: &'static [Way] = &[Way { name: "batch", keys: 1 << 16 }, Way { name: "small", keys: 999 }];
    const MANY: usize = 1 << 22;

    fn look_up(&self, _: usize, keys: &[A], next_hops: &mut [NextHop]) {
        // Nothing of an earlier batch may pass for an answer.
        next_hops.fill(NextHop(u32::MAX));
        if let Err(error) = self.remote.lookup_batch(keys, next_hops) {
            // The first is told.
            let _ = self.failed.set(error);
        }
    }
}
