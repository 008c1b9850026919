//! [`Slot`]: the resources of one batch: a stream, an event, pinned memory and device memory.

use std::sync::Arc;

use super::flag::Flag;
use super::form::Form;
use super::graphs::Graphs;
use super::options::Way;
use super::reply::Reply;
use crate::driver::{DevicePtr, Event, Pinned, Stream};
use crate::error::GpuError;

/// A slot. Only its holder accesses its memory: the pool, the submitter, the owner while the device works on
/// it, or the reader of its results.
pub(super) struct Slot {
    /// The index of its size in the pool.
    pub(super) size: usize,
    /// The threads that took slots of late when this one was taken.
    pub(super) feeders: usize,
    /// The number of keys of the widest kind that it holds.
    pub(super) capacity: usize,
    pub(super) stream: Stream,
    /// The end of its kernel, if its results are copied afterwards.
    pub(super) looked_up: Event,
    pub(super) keys: Pinned,
    pub(super) results: Pinned,
    /// The flag, after the results in the same memory. Only the owner uses it.
    pub(super) flag: Flag,
    pub(super) device_keys: DevicePtr,
    pub(super) device_results: DevicePtr,
    pub(super) reply: Arc<Reply>,
    pub(super) request: Request,
    pub(super) outcome: Outcome,
    /// Work recorded for this slot's buffers. Only the owner uses it.
    pub(super) graphs: Graphs,
    /// The last patch that the stream was made to wait for. Only the owner uses it.
    pub(super) waited_for: u64,
}

/// Slots, each of which moves between threads as one pointer.
#[allow(clippy::vec_box)]
pub(super) type Slots = Vec<Box<Slot>>;

/// A submitter's request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) table: u64,
    /// The layout of the keys in pinned memory.
    pub(super) form: Form,
    /// The transfer, if the submitter chose one.
    pub(super) way: Option<Way>,
}

impl Request {
    pub(super) const NONE: Self = Self { table: u64::MAX, form: Form::parts("none", 0, 0, 0), way: None };
}

/// The outcome of the request.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) error: Option<GpuError>,
    pub(super) result_bytes: usize,
    pub(super) version: u64,
}

impl Outcome {
    pub(super) const NONE: Self = Self { error: None, result_bytes: 0, version: 0 };

    pub(super) fn failed(error: GpuError) -> Self {
        Self { error: Some(error), ..Self::NONE }
    }
}

#[allow(unsafe_code)] // pinned memory as slices
impl Slot {
    pub(super) fn keys(&self) -> &[u8] {
        // SAFETY: 1. The driver gave `len` bytes, zeroed and so initialised, that stay at their place until
        // they are given back, which the owner does after the slot has come back to it for good. 2. Nobody
        // writes to them while this borrow lasts: the CPU does through `keys_mut` alone, and the device never
        // does.
        unsafe { std::slice::from_raw_parts(self.keys.host, self.keys.len) }
    }

    pub(super) fn keys_mut(&mut self) -> &mut [u8] {
        // SAFETY: 1. as in `keys`. 2. The borrow is exclusive on the CPU; the device reads keys only while
        // the owner has the slot, which hands it on when the device has said that it reads them no more.
        // (After a time-out it may read still, whatever is there, and nobody looks at the results; such a
        // slot is lent to nobody again.)
        unsafe { std::slice::from_raw_parts_mut(self.keys.host, self.keys.len) }
    }

    pub(super) fn results(&self) -> &[u8] {
        // SAFETY: 1. as in `keys`. 2. The device writes results only while the owner has the slot; after a
        // time-out it might still, but then the outcome is an error and `Done::results` comes here for no
        // batch with one.
        unsafe {
            std::slice::from_raw_parts(
                self.results.host,
                self.outcome.result_bytes * self.request.form.count(),
            )
        }
    }
}
