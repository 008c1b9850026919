//! Mapped batches that are launched together.
//!
//! A launch takes the owner's thread 5 µs, asking whether it is done another 2, whatever the number of keys.
//! If more batches come than it can launch one by one, some wait in the channel of commands. Those of one
//! table and kernel that the owner finds there in a row go in one launch, each in a row of blocks of its own.
//! A batch that comes alone is launched alone, at once: nothing waits for company.
//!
//! ```text
//! commands   batch │ batch │ batch │ patch …          row 0   batch
//!            └───── one launch ────┘                  row 1   batch
//!                                                     row 2   batch
//! ```
//!
//! Any other command, and each check of the device, comes after the launch of what was taken before it.

use std::sync::Arc;

use super::Owner;
use super::launch::Launch;
use super::submit::{Ready, kernel_batch};
use crate::driver::{Event, Stream, batches};
use crate::runtime::Result;
use crate::runtime::slot::{Slot, Slots};

/// The most bytes of keys of batches that are launched together. The bus takes 10 µs for so many, and a
/// launch 5. With more, all threads get their results at about the same time, and the bus is idle while they
/// fill the next batches: with twice as much 8 threads with 2 batches of 64 K IPv4 keys each are 8 % slower.
const MOST_BYTES: usize = 512 << 10;

/// Batches of one table and kernel.
pub(super) struct Joined {
    table: u64,
    copy: u64,
    launch: Arc<Launch>,
    bytes: usize,
    pub(super) slots: Slots,
}

impl Joined {
    fn takes(&self, ready: &Ready, bytes: usize) -> bool {
        // A launch belongs to one state of one table, and to one copy of it.
        self.launch.id == ready.launch.id
            && self.slots.len() < batches::MOST
            && self.bytes + bytes <= MOST_BYTES
    }

    /// The stream of the first batch, where all are launched.
    fn stream(&self) -> Stream {
        self.slots[0].stream
    }
}

impl Owner {
    /// Puts a batch to those that will be launched next.
    pub(super) fn join(&mut self, slot: Box<Slot>, ready: Ready) {
        let bytes = slot.request.form.bytes();
        if !self.joined.as_ref().is_some_and(|joined| joined.takes(&ready, bytes)) {
            self.launch_joined();
        }
        let Ready { table, copy, launch, .. } = ready;
        let joined =
            self.joined.get_or_insert_with(|| Joined { table, copy, launch, bytes: 0, slots: Vec::new() });
        joined.bytes += bytes;
        joined.slots.push(slot);
    }

    /// Launches the batches that were put together.
    pub(super) fn launch_joined(&mut self) {
        let Some(mut joined) = self.joined.take() else { return };
        let sent = self.caught(|owner| owner.launch_all(&mut joined));
        self.sent(sent, joined.copy, joined.stream(), joined.slots);
    }

    #[allow(unsafe_code)] // a launch
    fn launch_all(&mut self, joined: &mut Joined) -> Result<[Event; 2]> {
        let stream = joined.stream();
        self.after_patch(joined.table, stream, Some(&mut joined.slots[0].waited_for))?;
        let largest = joined.slots.iter().map(|slot| slot.request.form.count()).max();
        let shape = joined.launch.mapped_shape_for(largest.unwrap_or(0) as u64);
        let mut all = Vec::with_capacity(joined.slots.len());
        for slot in &mut joined.slots {
            let (form, width) = (slot.request.form, joined.launch.result_bytes);
            let mut batch = kernel_batch(slot.keys.device, form, slot.results.device, width);
            if let Some((done, mark)) = slot.flag.next(shape.blocks) {
                (batch.done, batch.mark) = (done, mark);
            }
            all.push(batch);
        }
        // SAFETY: keys and results are pinned, long enough (`request` saw to that), and stay with the flight,
        // untouched until the kernel has no more use for them (`flag`), and at their place until it has
        // ended; so does the table.
        unsafe { self.start(stream, &joined.launch, shape, &all) }?;
        let event = self.spare_event()?;
        self.driver.record(event, stream)?;
        Ok([event, event])
    }
}
