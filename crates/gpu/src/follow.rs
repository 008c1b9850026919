//! [`Staleness`]: whether a table on GPUs missed a change of the live one that it follows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::GpuError;
use crate::runtime::Fleet;

/// Whether a change couldn't be made, so that the table is of an older state than the live one; and why.
#[derive(Debug, Default)]
pub(crate) struct Staleness {
    is_stale: AtomicBool,
    why: Mutex<Option<GpuError>>,
}

impl Staleness {
    /// Whether a change was missed.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Acquire)
    }

    /// A change was made, or not.
    pub(crate) fn note(&self, changed: Result<u64, GpuError>) {
        if let Err(error) = changed {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.is_stale.store(true, Ordering::Release);
        }
    }

    /// A whole table took its place, or not.
    pub(crate) fn replaced(&self, replaced: Result<u64, GpuError>) {
        if replaced.is_ok() {
            self.is_stale.store(false, Ordering::Release);
        }
        self.note(replaced);
    }

    /// Why nothing can be looked up in a table on these GPUs, if so.
    pub(crate) fn is_out(&self, fleet: &Fleet) -> Option<GpuError> {
        if self.is_stale() {
            return self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        let gpus = fleet.gpus();
        gpus.iter().all(|gpu| gpu.lost().is_some()).then(|| gpus[0].lost().cloned()).flatten()
    }
}
