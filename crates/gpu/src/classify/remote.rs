//! [`Remote`]: a table of rules on GPUs, kept in step with a live one.
//!
//! ```text
//! LiveRules ──patch, replace──► Follower ──► FleetTable: a replica on each GPU
//! tuples ──pack──► batch of the least loaded GPU ──► numbers of rules ──unpack──► as asked for
//! ```
//!
//! Results have as few bytes as the table's largest number needs. Before a larger number is added, later
//! batches ask for wider results. A batch that was sent too early comes back as [`GpuError::NarrowResults`]
//! and is sent again.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wirespeed_classify::Tuple;
use wirespeed_classify::kernel::result_bytes;
use wirespeed_image::Patch;

use super::form::{bytes_of, has_too_large, kind, most_of, pack};
use super::in_place::InPlace;
use crate::copies::Copies;
use crate::error::GpuError;
use crate::numbers::unpack;
use crate::remote::{Answers, RemoteTable};
use crate::runtime::{Batch, Done, Fleet, FleetBatch, Form};
use crate::source::Source;
use crate::trip::look_up;

/// A table of rules on GPUs. Clones are the same table.
pub struct Remote<T> {
    inner: Arc<Inner>,
    tuple: PhantomData<fn() -> T>,
}

struct Inner {
    copies: Copies,
    /// The largest number in the tables on the GPUs, or more.
    largest: AtomicU64,
}

impl<T> fmt::Debug for Remote<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl<T> Clone for Remote<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), tuple: PhantomData }
    }
}

impl<T: Tuple> Remote<T> {
    /// Writes the number of each tuple's rule to the same index of `numbers`. Large batches go in parts.
    /// After an error some numbers are written and some are not.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch(&self, tuples: &[T], numbers: &mut [u32]) -> Result<(), GpuError> {
        look_up(self, tuples, numbers)
    }

    /// Bytes of the largest number.
    fn result_bytes(&self) -> usize {
        result_bytes(self.inner.largest.load(Ordering::Acquire))
    }

    /// The number of keys to ask a slot for, so that it holds `count` tuples.
    fn slot_keys_of(&self, count: usize) -> usize {
        self.inner.copies.slot_keys(count, bytes_of::<T>(count))
    }
}

/// The number of a sample's tuples that fit: all, a half, a quarter and so on.
fn most_in<T: Tuple>(bytes: usize, sample: &[T]) -> usize {
    let halves = std::iter::successors(Some(sample.len()), |&count| (count > 1).then_some(count / 2));
    halves.into_iter().find(|&count| bytes_of::<T>(count) <= bytes).unwrap_or(0)
}

impl<T: Tuple> RemoteTable for Remote<T> {
    type Domain = T;

    /// Tuples like those of future lookups: launches and transfers are measured with them on each GPU.
    /// Without tuples nothing is measured.
    type KeyHint<'k> = &'k [T];

    type Written = InPlace<T>;

    const PARTS: usize = 8;

    const LEAST_PART: usize = 1 << 14;

    fn upload(fleet: &Fleet, table: &dyn Source, hint: &[T]) -> Result<Self, GpuError> {
        if kind::<T>().is_none() {
            return Err(GpuError::Unsupported(format!("tuples of {}", T::NAME)));
        }
        let largest = table.image().results();
        let copies = Copies::upload(fleet, table, &mut |_, gpu, replica| {
            if hint.is_empty() {
                return Ok(None);
            }
            gpu.tune_with(replica, |batch| {
                let count = batch.capacity().min(most_in(batch.keys_mut().len(), hint));
                pack(&hint[..count], result_bytes(largest), batch.keys_mut())
            })?;
            let fill = |batch: &mut Batch, count| {
                let part = hint.get(..count)?;
                pack(part, result_bytes(largest), batch.keys_mut())
            };
            gpu.calibrate_with(replica, fill).map(Some)
        })?;
        let inner = Inner { copies, largest: AtomicU64::new(largest) };
        Ok(Self { inner: Arc::new(inner), tuple: PhantomData })
    }

    fn copies(&self) -> &Copies {
        &self.inner.copies
    }

    fn slot_keys(&self, tuples: &[T]) -> usize {
        self.slot_keys_of(tuples.len())
    }

    fn write_to(&self, slot: impl FnOnce() -> Option<FleetBatch>, tuples: usize) -> Option<InPlace<T>> {
        InPlace::new(slot()?, tuples, self.result_bytes())
    }

    fn once_more(&self, form: Form, error: &GpuError) -> Option<Form> {
        matches!(error, GpuError::NarrowResults { .. }).then(|| form.with_results_of(self.result_bytes()))
    }

    fn patch(&self, patch: &Patch) {
        if let Some((_, largest)) = patch.counts() {
            let known = self.inner.largest.fetch_max(largest, Ordering::AcqRel);
            if result_bytes(largest) > result_bytes(known) {
                self.inner.copies.widen(result_bytes(largest));
            }
        }
        self.inner.copies.patch(patch);
    }

    fn replace(&self, table: &dyn Source) {
        let largest = table.image().results();
        self.inner.largest.fetch_max(largest, Ordering::AcqRel);
        if self.inner.copies.replace(table) {
            self.inner.largest.store(largest, Ordering::Release);
        }
    }
}

impl<T: Tuple> Answers<u32> for Remote<T> {
    fn pack(&self, tuples: &[T], to: &mut Batch) -> Option<Form> {
        pack(tuples, self.result_bytes(), to.keys_mut())
    }

    fn check(&self, done: &Done) -> Result<(), GpuError> {
        let (results, bytes) = (done.results().map_err(Clone::clone)?, done.result_bytes());
        if has_too_large(results, bytes) {
            // This and later batches get wider results.
            self.inner.largest.fetch_max(most_of(bytes), Ordering::AcqRel);
            return Err(GpuError::NarrowResults { bytes });
        }
        Ok(())
    }

    fn unpack(results: &[u8], bytes: usize, to: &mut [u32]) {
        unpack(results, bytes, to);
    }
}
