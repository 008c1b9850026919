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

use wirespeed_namelookup::{Match, NameDomain, Names};

use super::form::{PACKED, Wanted, bytes_of, pack, pack_to, unpack_matches};
use super::in_place::InPlace;
use crate::copies::Copies;
use crate::error::GpuError;
use crate::numbers::unpack;
use crate::remote::{Answers, RemoteTable};
use crate::runtime::{Batch, Fleet, FleetBatch, Form};
use crate::source::Source;
use crate::trip::look_up;

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
}

impl RemoteTable for Remote {
    type Domain = NameDomain;

    /// Names like those of future lookups: launches and transfers are measured with them on each GPU. Without
    /// names nothing is measured.
    type KeyHint<'k> = Names<'k>;

    type Written = InPlace;

    const PARTS: usize = 8;

    const LEAST_PART: usize = 1 << 14;

    fn upload(fleet: &Fleet, table: &dyn Source, hint: Names<'_>) -> Result<Self, GpuError> {
        let copies = Copies::upload(fleet, table, &mut |_, gpu, replica| {
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

    fn slot_keys(&self, names: Names<'_>) -> usize {
        self.copies.slot_keys(names.len(), bytes_of(names))
    }

    fn write_to(&self, slot: impl FnOnce() -> Option<FleetBatch>, names: usize) -> Option<InPlace> {
        // A batch that fills a slot keeps it from those that are ready to go.
        if !self.copies.has_spare_slots(names) {
            return None;
        }
        InPlace::new(slot()?, names)
    }
}

impl Answers<u32> for Remote {
    fn pack(&self, names: Names<'_>, to: &mut Batch) -> Option<Form> {
        pack_for(names, Wanted::Results, to)
    }

    fn unpack(results: &[u8], bytes: usize, to: &mut [u32]) {
        unpack(results, bytes, to);
    }
}

impl Answers<Match> for Remote {
    fn pack(&self, names: Names<'_>, to: &mut Batch) -> Option<Form> {
        pack_for(names, Wanted::Matches, to)
    }

    fn asked(form: Form) -> Form {
        Wanted::Matches.form(PACKED, form.count(), form.second().unwrap_or(0), form.bytes())
    }

    fn unpack(results: &[u8], _: usize, to: &mut [Match]) {
        unpack_matches(results, to);
    }
}

fn pack_for(names: Names<'_>, wanted: Wanted, to: &mut Batch) -> Option<Form> {
    let is_streamed = to.is_streamed_when_packed(bytes_of(names) / names.len().max(1), names.len());
    pack_to(names, wanted, to.keys_mut(), is_streamed)
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
