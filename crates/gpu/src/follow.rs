//! [`Staleness`]: whether a table on GPUs missed a change of the live table that it follows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::GpuError;
use crate::runtime::Fleet;

/// Whether a change failed, so that the table is older than the live table; and the error.
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

    /// Notes the result of a change.
    pub(crate) fn note(&self, changed: Result<u64, GpuError>) {
        if let Err(error) = changed {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.is_stale.store(true, Ordering::Release);
        }
    }

    /// Notes the result of a replacement by a whole table.
    pub(crate) fn replaced(&self, replaced: Result<u64, GpuError>) {
        if replaced.is_ok() {
            self.is_stale.store(false, Ordering::Release);
        }
        self.note(replaced);
    }

    /// The error that prevents lookups in a table on these GPUs, if there is one.
    pub(crate) fn is_out(&self, fleet: &Fleet) -> Option<GpuError> {
        if self.is_stale() {
            return self.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        }
        let gpus = fleet.gpus();
        gpus.iter().all(|gpu| gpu.lost().is_some()).then(|| gpus[0].lost().cloned()).flatten()
    }
}
