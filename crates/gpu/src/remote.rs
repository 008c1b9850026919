//! [`RemoteTable`] and [`Answers`]: a table on GPUs with its keys and results.

use std::fmt;

use wirespeed_image::Patch;
use wirespeed_image::device::OnDevice;
use wirespeed_image::live::Follower;
use wirespeed_table::Domain;

use crate::copies::Copies;
use crate::error::GpuError;
use crate::in_place::InPlace;
use crate::runtime::{Batch, Done, Fleet, FleetBatch, Form};
use crate::source::Source;

/// A table on GPUs, for keys of a domain. Clones share the table.
pub trait RemoteTable: Clone + Send + Sync + 'static {
    /// The domain of the table.
    type Domain: Domain;

    /// A hint about future keys, given when a table is copied to GPUs. It decides the form of keys and the
    /// measurements.
    type KeyHint<'k>: Copy;

    /// Keys that are written to a slot as they come.
    type Written: InPlace<Domain = Self::Domain>;

    /// The number of parts of a large batch, so that one part's keys travel while another part's results come
    /// back.
    const PARTS: usize;

    /// The fewest keys of such a part.
    const LEAST_PART: usize;

    /// Copies a table to all GPUs. Finds the fastest launches and measures transfers, which takes about a
    /// second.
    fn upload(fleet: &Fleet, table: &dyn Source, hint: Self::KeyHint<'_>) -> Result<Self, GpuError>;

    /// The copies on the GPUs.
    fn copies(&self) -> &Copies;

    /// The number of keys to ask a slot for, so that it holds these keys.
    fn slot_keys(&self, keys: KeysOf<'_, Self>) -> usize;

    /// Has at most `keys` keys written as they come to a slot that `slot` takes. `None` if there is none, if
    /// it holds fewer keys, or if the form of keys is known only when they are sent.
    fn write_to(&self, slot: impl FnOnce() -> Option<FleetBatch>, keys: usize) -> Option<Self::Written>;

    /// The form to send keys in once more that came back with an error. They lie in their slot in this one.
    /// `None` if the error would come again.
    fn once_more(&self, form: Form, error: &GpuError) -> Option<Form> {
        let _ = (form, error);
        None
    }

    /// Says that lookups may depend on this number of leading bits of a key, from the next change on.
    fn reach(&self, bits: u8) {
        let _ = bits;
    }

    /// Says that lookups will never depend on more leading bits of a key than they do now.
    fn fix_reach(&self) {}

    /// Applies a patch.
    fn patch(&self, patch: &Patch) {
        self.copies().patch(patch);
    }

    /// Replaces the table.
    fn replace(&self, table: &dyn Source) {
        self.copies().replace(table);
    }

    /// The follower that keeps the copies in step with a live table: for
    /// [`Live::follow`](wirespeed_table::Live::follow).
    fn follower(&self) -> RemoteFollower<Self> {
        RemoteFollower(self.clone())
    }
}

/// The keys of a table on GPUs, borrowed.
pub type KeysOf<'k, T> = <<T as RemoteTable>::Domain as Domain>::Keys<'k>;

/// The result of each key in a batch of the table's domain.
pub type ResultOf<T> = <<T as RemoteTable>::Domain as Domain>::Result;

/// A table on GPUs with results of a type.
pub trait Answers<R>: RemoteTable {
    /// Writes keys to the start of a batch. `None` if they don't fit.
    fn pack(&self, keys: KeysOf<'_, Self>, to: &mut Batch) -> Option<Form>;

    /// The form of keys that were [written as they came](crate::in_place::InPlace), with results of this
    /// type.
    fn asked(form: Form) -> Form {
        form
    }

    /// Checks a batch that has come back. [`GpuError::NarrowKeys`] and [`GpuError::NarrowResults`] say that
    /// its keys must be packed and sent once more.
    fn check(&self, done: &Done) -> Result<(), GpuError> {
        done.results().map(drop).map_err(Clone::clone)
    }

    /// Reads results of `bytes` bytes each. Panics if their number is not the length of `to`.
    fn unpack(results: &[u8], bytes: usize, to: &mut [R]);
}

/// Passes a live table's changes to its copies on GPUs. A change that fails takes the copies out of use,
/// until a whole table replaces them.
pub struct RemoteFollower<R>(R);

impl<R> fmt::Debug for RemoteFollower<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteFollower")
    }
}

impl<R: RemoteTable, T: OnDevice> Follower<T> for RemoteFollower<R> {
    fn reach(&mut self, bits: u8) {
        self.0.reach(bits);
    }

    fn patch(&mut self, patch: &Patch) {
        self.0.patch(patch);
    }

    fn replace(&mut self, table: &T) {
        self.0.replace(table);
    }
}
