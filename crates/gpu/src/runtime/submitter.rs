//! [`Submitter`]: batches that come back in the order of submission.

use std::collections::VecDeque;

use super::Result;
use super::batch::{Batch, Done, Ticket};
use super::form::Form;
use super::gpu::Gpu;
use super::options::Way;
use super::table::TableHandle;

/// A queue of one thread's batches, first in, first out.
///
/// A submitter with a batch under way waits for that batch, and not for a slot. So any number of submitters
/// can share any number of slots without blocking each other.
#[derive(Debug)]
pub struct Submitter {
    gpu: Gpu,
    under_way: VecDeque<Ticket>,
}

impl Submitter {
    /// Makes a submitter with no batch under way.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), under_way: VecDeque::new() }
    }

    /// A batch for `keys` keys. While no slot is free, batches that come back are given to `done`, in order.
    pub fn batch(&mut self, keys: usize, mut done: impl FnMut(Done)) -> Result<Batch> {
        loop {
            if let Some(batch) = self.gpu.try_batch(keys)? {
                return Ok(batch);
            }
            match self.next() {
                Some(came) => done(came),
                None => return self.gpu.batch(keys),
            }
        }
    }

    /// Sends a batch.
    pub fn submit(&mut self, batch: Batch, table: &TableHandle, key_bytes: usize, count: usize) {
        self.under_way.push_back(batch.submit(table, key_bytes, count));
    }

    /// Sends a batch by this transfer.
    pub fn submit_by(&mut self, way: Way, batch: Batch, table: &TableHandle, key_bytes: usize, count: usize) {
        self.under_way.push_back(batch.submit_by(way, table, key_bytes, count));
    }

    /// Sends keys of any length in this form ([`Batch::submit_form`]), by this transfer, or by the device's
    /// choice.
    pub fn submit_form(&mut self, way: Option<Way>, batch: Batch, table: &TableHandle, form: Form) {
        self.under_way.push_back(match way {
            Some(way) => batch.submit_form_by(way, table, form),
            None => batch.submit_form(table, form),
        });
    }

    /// The number of batches under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Waits for the oldest batch. `None` if no batch is under way.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self) -> Option<Done> {
        self.under_way.pop_front().map(Ticket::wait)
    }

    /// The oldest batch, if it has come back.
    pub fn try_next(&mut self) -> Option<Done> {
        let ticket = self.under_way.pop_front()?;
        match ticket.try_wait() {
            Ok(done) => Some(done),
            Err(ticket) => {
                self.under_way.push_front(ticket);
                None
            }
        }
    }
}
