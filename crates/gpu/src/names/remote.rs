//! [`Remote`]: a table of names on GPUs, kept in step with a live one.
//!
//! ```text
//! LiveNames ──patch, replace──► Follower ──► FleetTable: a replica on each GPU
//! names ──pack──► batch of the least loaded GPU ──► results or matches ──unpack──► as asked for
//! ```
//!
//! Names are sent in packed form; batches with groups of 64 KiB and more with one end for each name. A batch
//! needs a slot by its bytes: names that are longer than slots are made for
//! ([`GpuOptions::key_bytes`](crate::runtime::GpuOptions::key_bytes)) go in more batches.

use std::fmt;
use std::sync::Arc;

use wirespeed_image::device::OnDevice;
use wirespeed_namelookup::{Match, NameDomain, Names};

use super::form::{Wanted, bytes_of, pack, unpack_matches};
use crate::copies::Copies;
use crate::error::GpuError;
use crate::numbers::unpack;
use crate::offload::{Answers, RemoteTable, look_up};
use crate::runtime::{Batch, Done, Fleet, Form, Ticket};

/// The fewest names of a part.
const LEAST_PART: usize = 1 << 14;

/// A table of names on GPUs. Clones are the same table.
#[derive(Clone)]
pub struct Remote {
    copies: Arc<Copies>,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

impl Remote {
    /// Writes the result of each name to the same index of `results`. Large batches go in parts. After an
    /// error some results are written and some are not.
    ///
    /// Panics when the lengths differ.
    pub fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) -> Result<(), GpuError> {
        look_up(self, names, results)
    }

    /// Writes the result and the matched length of each name to the same index of `matches`.
    ///
    /// Panics when the lengths differ.
    pub fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) -> Result<(), GpuError> {
        look_up(self, names, matches)
    }

    /// The number of keys to ask a slot for, so that it holds these names.
    fn slot_keys(&self, names: Names<'_>) -> usize {
        self.copies.slot_keys(names.len(), bytes_of(names))
    }

    /// Packs and sends names, at most as many as a slot holds. Waits for a slot.
    pub fn submit(&self, names: Names<'_>, wanted: Wanted) -> Result<Ticket, GpuError> {
        self.copies.check()?;
        let mut batch = self.copies.fleet().batch(self.slot_keys(names))?;
        let form = packed(names, wanted, batch.batch())?;
        Ok(batch.submit_form(self.copies.table(), form))
    }

    /// Packs and sends names like [`submit`](Self::submit). `None` if no slot is free; a caller with batches
    /// under way then takes the results of one, which frees a slot.
    pub fn try_submit(&self, names: Names<'_>, wanted: Wanted) -> Result<Option<Ticket>, GpuError> {
        self.copies.check()?;
        let Some(mut batch) = self.copies.fleet().try_batch(self.slot_keys(names))? else { return Ok(None) };
        let form = packed(names, wanted, batch.batch())?;
        Ok(Some(batch.submit_form(self.copies.table(), form)))
    }
}

impl RemoteTable for Remote {
    type Domain = NameDomain;

    /// Names like those of future lookups: launches and transfers are measured with them on each GPU. Without
    /// names nothing is measured.
    type KeyHint<'k> = Names<'k>;

    const PARTS: usize = 8;

    fn upload<T: OnDevice>(fleet: &Fleet, table: &T, hint: Names<'_>) -> Result<Self, GpuError> {
        let copies = Copies::upload(fleet, table, |_, gpu, replica| {
            if hint.is_empty() {
                return Ok(None);
            }
            gpu.tune_with(replica, |batch| pack_some(hint, batch.capacity(), batch))?;
            gpu.calibrate_with(replica, |batch, count| pack_exactly(hint, count, batch)).map(Some)
        })?;
        Ok(Self { copies: Arc::new(copies) })
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn end_of_part(&self, names: Names<'_>, start: usize) -> usize {
        let largest = self.copies.fleet().largest_batch();
        let mut count = names.len().div_ceil(Self::PARTS).max(LEAST_PART).min(largest).max(1);
        loop {
            let end = names.len().min(start + count);
            if count == 1 || self.slot_keys(names.part(start..end)) <= largest {
                return end;
            }
            count = (end - start).div_ceil(2);
        }
    }
}

/// A type of result for a name.
pub trait Found: Sized {
    /// The wanted result.
    const WANTED: Wanted;

    /// Takes the results of names that were sent for this result.
    fn take(done: &Done, found: &mut [Self]) -> Result<(), GpuError>;
}

impl Found for u32 {
    const WANTED: Wanted = Wanted::Results;

    fn take(done: &Done, found: &mut [Self]) -> Result<(), GpuError> {
        take(done, found)
    }
}

impl Found for Match {
    const WANTED: Wanted = Wanted::Matches;

    fn take(done: &Done, found: &mut [Self]) -> Result<(), GpuError> {
        take_matches(done, found)
    }
}

impl<R: Found> Answers<R> for Remote {
    fn send(&self, names: Names<'_>) -> Result<Ticket, GpuError> {
        self.submit(names, R::WANTED)
    }

    fn try_send(&self, names: Names<'_>) -> Result<Option<Ticket>, GpuError> {
        self.try_submit(names, R::WANTED)
    }

    fn results(&self, done: Done, _: Names<'_>, found: &mut [R]) -> Result<(), GpuError> {
        R::take(&done, found)
    }
}

/// Takes the results of names that were sent for [`Wanted::Results`]. Panics if the number of results is not
/// the length of `results`.
pub fn take(done: &Done, results: &mut [u32]) -> Result<(), GpuError> {
    unpack(done.results().map_err(Clone::clone)?, done.result_bytes(), results);
    Ok(())
}

/// Takes the matches of names that were sent for [`Wanted::Matches`]. Panics if the number of matches is not
/// the length of `matches`.
pub fn take_matches(done: &Done, matches: &mut [Match]) -> Result<(), GpuError> {
    unpack_matches(done.results().map_err(Clone::clone)?, matches);
    Ok(())
}

fn packed(names: Names<'_>, wanted: Wanted, batch: &mut Batch) -> Result<Form, GpuError> {
    let too_many = GpuError::TooManyKeys { asked: names.len(), most: batch.capacity() };
    pack(names, wanted, batch.keys_mut()).ok_or(too_many)
}

/// Packs as many names of a sample as fit, up to `most`. Repeats the sample if it is shorter.
fn pack_some(sample: Names<'_>, most: usize, batch: &mut Batch) -> Option<Form> {
    let count = most.min(sample.len());
    let halves = std::iter::successors(Some(count), |&count| (count > 1).then_some(count / 2));
    let mut fitting = halves.filter(|&count| bytes_of(sample.part(0..count)) <= batch.keys_mut().len());
    let count = fitting.next()?;
    drop(fitting);
    pack(sample.part(0..count), Wanted::Results, batch.keys_mut())
}

/// Packs `count` names of a sample. `None` if the sample is shorter, or if they don't fit.
fn pack_exactly(sample: Names<'_>, count: usize, batch: &mut Batch) -> Option<Form> {
    let there = count <= sample.len();
    there.then(|| pack(sample.part(0..count), Wanted::Results, batch.keys_mut())).flatten()
}
