//! [`Region`]: the mapping of a [`Memory`], by which its ports know it again.

#![allow(unsafe_code)] // a pointer that moves between threads

use std::ptr::NonNull;

use crate::Memory;

/// The mapping of a memory: its first byte and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region(NonNull<u8>, usize);

// SAFETY: it is compared and handed to the kernel, and never read through.
unsafe impl Send for Region {}

impl Region {
    /// The mapping of a memory.
    pub(super) fn of(memory: &Memory) -> Self {
        let (base, len) = memory.region();
        Self(base, len)
    }

    /// Its first byte and its length.
    pub(super) const fn parts(self) -> (NonNull<u8>, usize) {
        (self.0, self.1)
    }
}
