//! [`GpuOptions`]: the options of a device.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A transfer: how a batch's keys get to the kernel and its results back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Way {
    /// Keys are copied to device memory, looked up, and results are copied back: three commands in the slot's
    /// stream. Best for large batches, because copies of several slots use both directions of the bus at its
    /// full rate.
    Copies,
    /// The kernel reads keys from pinned memory and writes results there: one command. Best for small
    /// batches.
    Mapped,
    /// The commands of `Copies`, recorded once and replayed as one command. For batches of few different
    /// sizes.
    Graphs,
}

impl Way {
    /// All transfers.
    pub const ALL: [Self; 3] = [Self::Copies, Self::Mapped, Self::Graphs];

    /// The transfer's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Mapped => "mapped",
            Self::Graphs => "graphs",
        }
    }
}

/// The choice of transfers for batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Transfer {
    /// The best transfer for the batch's size and the load, as measured
    /// ([`Gpu::calibrate`](super::Gpu::calibrate)). Without a measurement: mapped up to 256 K keys, copies
    /// above.
    #[default]
    Auto,
    /// Always this transfer.
    Always(Way),
}

/// Slots of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSize {
    /// The number of slots.
    pub slots: usize,
    /// The number of keys in a slot.
    pub keys: usize,
}

/// The options of a device.
#[derive(Clone, Debug)]
pub struct GpuOptions {
    /// The slots: the number of batches that can be under way at once, and their sizes. A batch gets the
    /// smallest free slot that holds it. Each slot takes `keys × (key_bytes + result_bytes)` of pinned and of
    /// device memory.
    pub slots: Vec<SlotSize>,
    /// Bytes of the widest key. For keys of any length, the bytes that most keys have at most on average.
    pub key_bytes: usize,
    /// Bytes of the widest result.
    pub result_bytes: usize,
    /// The most bytes of device memory for tables and slots.
    pub memory_cap: Option<u64>,
    /// The choice of transfers.
    pub transfer: Transfer,
    /// The time that the owner, and a thread that waits for a ticket, poll before they sleep. Polling
    /// occupies a core and saves the microseconds of waking up.
    pub spin: Duration,
    /// The time without any progress after which a device with work counts as lost.
    pub timeout: Duration,
    /// Bytes of each of the two blocks of pinned memory for uploads of tables.
    pub staging_bytes: usize,
    /// The most writes of a patch in one launch.
    pub patch_writes: usize,
    /// Sections that belong to a table and are not looked up in: attachments. They are not uploaded.
    pub leave_out: Vec<String>,
}

impl GpuOptions {
    /// The number of keys of [`key_bytes`](Self::key_bytes) that a slot must have to hold `count` keys of
    /// `bytes` bytes in all. Ask for this number for a batch of keys of any length.
    pub fn slot_keys(&self, count: usize, bytes: usize) -> usize {
        count.max(bytes.div_ceil(self.key_bytes.max(1)))
    }
}

impl Default for GpuOptions {
    fn default() -> Self {
        Self {
            slots: vec![
                SlotSize { slots: 32, keys: 1 << 16 },
                SlotSize { slots: 32, keys: 1 << 18 },
                SlotSize { slots: 10, keys: 1 << 20 },
            ],
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
