//! What is held against the truth: a table on the CPU, or on GPUs. As `verify` of addresses has it.

use std::sync::OnceLock;

use wirespeed::GpuError;
use wirespeed::gpu::names::Remote;
use wirespeed::names::{Match, Names};
use wirespeed_namelookup::{Lookup, NameDomain};

/// A table that is looked up in one or more ways.
pub(super) trait Subject: Sync {
    /// The ways.
    const WAYS: &'static [Way];

    /// Looks names up by the way of that number; one that tells no lengths leaves these as they are.
    fn look_up(&self, way: usize, names: Names<'_>, found: &mut [Match]);
}

/// A way of looking up.
pub(super) struct Way {
    /// What it is called in a report.
    pub(super) name: &'static str,
    /// Names of a batch.
    pub(super) names: usize,
    /// Whether it tells how much matched.
    pub(super) has_lengths: bool,
}

/// A table on this machine's cores: in batches, with lengths and without, and one by one.
pub(super) struct OnCpu<'a, T>(pub(super) &'a T);

impl<T: Lookup<NameDomain>> Subject for OnCpu<'_, T> {
    const WAYS: &'static [Way] = &[
        Way { name: "match batch", names: usize::MAX, has_lengths: true },
        Way { name: "batch", names: usize::MAX, has_lengths: false },
        Way { name: "single", names: usize::MAX, has_lengths: true },
    ];

    fn look_up(&self, way: usize, names: Names<'_>, found: &mut [Match]) {
        match way {
            0 => self.0.match_batch(names, found),
            1 => results(found, |results| self.0.lookup_batch(names, results)),
            _ => names.iter().zip(found).for_each(|(name, found)| *found = self.0.lookup(name)),
        }
    }
}

/// A table on GPUs: with lengths and without, in batches large and small, which may go different ways to
/// different kernels.
pub(super) struct OnGpu<'a> {
    remote: &'a Remote,
    failed: OnceLock<GpuError>,
}

impl<'a> OnGpu<'a> {
    pub(super) const fn new(remote: &'a Remote) -> Self {
        Self { remote, failed: OnceLock::new() }
    }

    /// Why there were no answers. What there were instead is wrong.
    pub(super) fn failure(self) -> Option<GpuError> {
        self.failed.into_inner()
    }
}

impl Subject for OnGpu<'_> {
    const WAYS: &'static [Way] = &[
        Way { name: "match batch", names: usize::MAX, has_lengths: true },
        Way { name: "batch", names: usize::MAX, has_lengths: false },
        Way { name: "small match batch", names: 999, has_lengths: true },
        Way { name: "small batch", names: 999, has_lengths: false },
    ];

    fn look_up(&self, way: usize, names: Names<'_>, found: &mut [Match]) {
        let mut answered = Ok(());
        if Self::WAYS[way].has_lengths {
            answered = self.remote.match_batch(names, found);
        } else {
            results(found, |results| answered = self.remote.lookup_batch(names, results));
        }
        if let Err(error) = answered {
            // The first is told.
            let _ = self.failed.set(error);
        }
    }
}

/// Has results alone looked up; what is not written is as it was.
fn results(found: &mut [Match], look_up: impl FnOnce(&mut [u32])) {
    let mut results: Vec<u32> = found.iter().map(|found| found.result).collect();
    look_up(&mut results);
    found.iter_mut().zip(results).for_each(|(found, result)| found.result = result);
}
