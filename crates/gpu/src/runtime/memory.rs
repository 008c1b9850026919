//! [`Usage`]: the memory that a device uses, and the cap on it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Result;
use crate::error::GpuError;

/// The memory in use, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Device memory of tables. While a table is replaced both copies count.
    pub tables: u64,
    /// Device memory of slots.
    pub slots: u64,
    /// Pinned memory of this process: slots, and buffers for tables and patches.
    pub pinned: u64,
    /// The cap on device memory, if there is one.
    pub cap: Option<u64>,
}

impl Usage {
    /// All device memory in use.
    pub const fn device(&self) -> u64 {
        self.tables + self.slots
    }
}

/// The purpose of a block of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Table,
    Slot,
}

/// The account of memory. The owner writes it, all threads read it.
#[derive(Debug, Default)]
pub(super) struct Account {
    tables: AtomicU64,
    slots: AtomicU64,
    pinned: AtomicU64,
    cap: Option<u64>,
}

impl Account {
    pub(super) fn new(cap: Option<u64>) -> Self {
        Self { cap, ..Self::default() }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage {
            tables: self.tables.load(Ordering::Relaxed),
            slots: self.slots.load(Ordering::Relaxed),
            pinned: self.pinned.load(Ordering::Relaxed),
            cap: self.cap,
        }
    }

    /// Checks that `needed` more bytes are under the cap.
    pub(super) fn check(&self, needed: u64) -> Result<()> {
        let Some(cap) = self.cap else { return Ok(()) };
        let left = cap.saturating_sub(self.usage().device());
        if needed > left { Err(GpuError::OverCap { needed, left, cap }) } else { Ok(()) }
    }

    pub(super) fn take(&self, purpose: Purpose, bytes: u64) {
        self.of(purpose).fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn give_back(&self, purpose: Purpose, bytes: u64) {
        self.of(purpose).fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn pin(&self, bytes: usize) {
        self.pinned.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn of(&self, purpose: Purpose) -> &AtomicU64 {
        match purpose {
            Purpose::Table => &self.tables,
            Purpose::Slot => &self.slots,
        }
    }
}
