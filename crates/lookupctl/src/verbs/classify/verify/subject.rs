//! What is held against the truth: a table on the CPU, or on GPUs. As `verify` of addresses has it, behind a
//! trait object.

use std::sync::OnceLock;

use wirespeed::GpuError;
use wirespeed::engine::RuleTuple;
use wirespeed::gpu::classify::Remote;
use wirespeed_classify::Lookup;

/// A table that is looked up in one or more ways.
pub(super) trait Subject<T>: Sync {
    /// The ways.
    fn ways(&self) -> &'static [Way];

    /// Looks tuples up by the way of that number.
    fn look_up(&self, way: usize, tuples: &[T], found: &mut [u32]);
}

/// A way of looking up.
pub(super) struct Way {
    /// What it is called in a report.
    pub(super) name: &'static str,
    /// Tuples of a batch.
    pub(super) tuples: usize,
}

/// A table on this machine's cores: in batches large and small, and one by one.
pub(super) struct OnCpu<'a, T>(pub(super) &'a dyn Lookup<T>);

impl<T: RuleTuple> Subject<T> for OnCpu<'_, T> {
    fn ways(&self) -> &'static [Way] {
        &[
            Way { name: "batch", tuples: usize::MAX },
            Way { name: "small batch", tuples: 37 },
            Way { name: "single", tuples: usize::MAX },
        ]
    }

    fn look_up(&self, way: usize, tuples: &[T], found: &mut [u32]) {
        match way {
            0 | 1 => self.0.lookup_batch(tuples, found),
            _ => tuples.iter().zip(found).for_each(|(tuple, found)| *found = self.0.lookup(tuple)),
        }
    }
}

/// A table on GPUs, in batches large and small, which may go different ways to different kernels.
pub(super) struct OnGpu<'a, T> {
    remote: &'a Remote<T>,
    failed: OnceLock<GpuError>,
}

impl<'a, T> OnGpu<'a, T> {
    pub(super) const fn new(remote: &'a Remote<T>) -> Self {
        Self { remote, failed: OnceLock::new() }
    }

    /// Why there were no answers. What there were instead is wrong.
    pub(super) fn failure(self) -> Option<GpuError> {
        self.failed.into_inner()
    }
}

impl<T: RuleTuple> Subject<T> for OnGpu<'_, T> {
    fn ways(&self) -> &'static [Way] {
        &[Way { name: "batch", tuples: usize::MAX }, Way { name: "small batch", tuples: 999 }]
    }

    fn look_up(&self, _: usize, tuples: &[T], found: &mut [u32]) {
        if let Err(error) = self.remote.lookup_batch(tuples, found) {
            // The first is told.
            let _ = self.failed.set(error);
        }
    }
}
