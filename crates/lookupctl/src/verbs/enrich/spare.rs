//! [`Spare`]: memory that is used again.

use std::sync::{Mutex, PoisonError};

/// Buffers that nobody uses now. A block's buffers are larger than what the allocator keeps, so a new one
/// costs the system a page fault for each 4 KiB. There are never more than blocks under way.
#[derive(Debug, Default)]
pub(super) struct Spare<T>(Mutex<Vec<T>>);

impl<T> Spare<T> {
    /// A buffer as it was given back.
    pub(super) fn take(&self) -> Option<T> {
        self.all().pop()
    }

    pub(super) fn give_back(&self, buffer: T) {
        self.all().push(buffer);
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
