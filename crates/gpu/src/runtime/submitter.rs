//! [`Submitter`]: batches that come back in the order in which they were sent.

use std::collections::VecDeque;

use super::Result;
use super::batch::{Batch, Done, Ticket};
use super::form::Form;
use super::gpu::Gpu;
use super::options::Way;
use super::table::TableHandle;

/// One thread's batches, first in, first out.
///
/// It never waits for a slot while it has one under way that it could wait for instead; so any number of
/// submitters share any number of slots without standing in each other's way for good.
#[derive(Debug)]
pub struct Submitter {
    gpu: Gpu,
    under_way: VecDeque<Ticket>,
}

impl Submitter {
    /// A submitter with nothing under way.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), under_way: VecDeque::new() }
    }

    /// A batch for so many keys. While there is none, what comes back goes to `done`, in order.
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

    /// Sends a batch, moving the data that way.
    pub fn submit_by(&mut self, way: Way, batch: Batch, table: &TableHandle, key_bytes: usize, count: usize) {
        self.under_way.push_back(batch.submit_by(way, table, key_bytes, count));
    }

    /// Sends keys of any length that lie in this form ([`Batch::submit_form`]), moving the data that way, or
    /// as the device chooses.
    pub fn submit_form(&mut self, way: Option<Way>, batch: Batch, table: &TableHandle, form: Form) {
        self.under_way.push_back(match way {
            Some(way) => batch.submit_form_by(way, table, form),
            None => batch.submit_form(table, form),
        });
    }

    /// Batches under way.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Waits for the oldest batch; `None` when nothing is under way.
    #[allow(clippy::should_implement_trait)] // it ends and goes on again, as no iterator should
    pub fn next(&mut self) -> Option<Done> {
        self.under_way.pop_front().map(Ticket::wait)
    }

    /// The oldest batch if it has come back.
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
