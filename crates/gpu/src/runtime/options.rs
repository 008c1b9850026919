//! [`GpuOptions`]: what a device is started with.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a batch's keys get to the kernel and its results back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Way {
    /// Copied to device memory, looked up, copied back: each a command of the slot's stream. Best for large
    /// batches, as copies of several slots go both ways at once at the full rate of the bus.
    Copies,
    /// The kernel itself reads keys from pinned memory and writes results there: one command. Best for small
    /// batches.
    Mapped,
    /// The commands of `Copies`, recorded once and replayed as one. For batches of few different sizes.
    Graphs,
}

impl Way {
    /// All ways.
    pub const ALL: [Self; 3] = [Self::Copies, Self::Mapped, Self::Graphs];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Mapped => "mapped",
            Self::Graphs => "graphs",
        }
    }
}

/// Which way batches take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transfer {
    /// The best for the size of the batch and for all else that is under way, as measured
    /// ([`Gpu::calibrate`](super::Gpu::calibrate)). Before it is measured: mapped up to 256 K keys, copies
    /// above.
    #[default]
    Auto,
    /// Always the same.
    Always(Way),
}

/// Slots of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSize {
    /// How many.
    pub slots: usize,
    /// Keys that each holds.
    pub keys: usize,
}

/// What a device is started with.
#[derive(Clone, Debug)]
pub struct GpuOptions {
    /// The slots: how many batches can be under way at once, and how large they can be. A batch gets the
    /// smallest free one that holds it. Pinned and device memory: `keys × (key_bytes + result_bytes)` each.
    pub slots: Vec<SlotSize>,
    /// Bytes of the widest key; where keys are of any length, as many as most take on average.
    pub key_bytes: usize,
    /// Bytes of the widest result.
    pub result_bytes: usize,
    /// Device memory that may be taken in all: tables and slots.
    pub memory_cap: Option<u64>,
    /// Which way batches take.
    pub transfer: Transfer,
    /// How long the owner, and whoever waits for a ticket, poll before they sleep. Polling takes a core and
    /// saves the microseconds of waking up.
    pub spin: Duration,
    /// How long the device may take without finishing anything that was given to it before it counts as lost.
    pub timeout: Duration,
    /// Bytes of one of the two pieces of pinned memory that tables are uploaded through.
    pub staging_bytes: usize,
    /// Writes of a patch that go in one launch.
    pub patch_writes: usize,
    /// Sections that belong to a table without being looked up in: attachments. They stay behind.
    pub leave_out: Vec<String>,
}

impl GpuOptions {
    /// How many keys of [`key_bytes`](Self::key_bytes) a slot must be made for to hold so many keys of so
    /// many bytes in all: what to ask for a batch of keys of any length.
    pub fn slot_keys(&self, count: usize, bytes: usize) -> usize {
        count.max(bytes.div_ceil(self.key_bytes.max(1)))
    }
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            slots: vec![SlotSize { slots: 16, keys: 1 << 16 }, SlotSize { slots: 8, keys: 1 << 20 }],
            key_bytes: 16,
            result_bytes: 4,
            memory_cap: None,
            transfer: Transfer::Auto,
            spin: Duration::from_micros(100),
            timeout: Duration::from_secs(10),
            staging_bytes: 4 << 20,
            patch_writes: 1 << 14,
            leave_out: Vec::new(),
        }
    }
}
