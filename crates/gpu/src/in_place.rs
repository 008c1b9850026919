//! [`InPlace`]: keys that are written to a slot of a GPU as they come; [`InSlot`]: such keys in a slot that
//! was sent.
//!
//! ```text
//! RemoteTable::written ──► InPlace ──push, extend_from──► into_slot ──► sent, and back: InSlot reads the keys there
//! ```

use std::fmt::Debug;
use std::sync::OnceLock;

use wirespeed_table::Domain;

use crate::runtime::{Done, FleetBatch, Form};

/// A key of a domain.
type Key<'k, W> = <<W as InPlace>::Domain as Domain>::Key<'k>;
/// The keys of a batch of a domain.
type KeysOf<'k, W> = <<W as InPlace>::Domain as Domain>::Keys<'k>;

/// Keys in a slot that is being filled. They lie nowhere else, and are read there, too.
pub trait InPlace: Debug + Send + Sync + Sized {
    /// The domain of the keys.
    type Domain: Domain;

    /// The keys in a slot that was sent.
    type Sent: InSlot<Domain = Self::Domain>;

    /// Adds a key. Returns `false`, and adds nothing, if the slot has no room for its bytes, or if single
    /// keys are not for a slot. Panics if there are as many keys as the slot was taken for.
    fn push(&mut self, key: Key<'_, Self>) -> bool;

    /// Adds at most `most` keys, and returns how many. It ends at a key that the slot has no room for: this
    /// one and the rest are given back. Panics if there are as many keys as the slot was taken for.
    fn extend<'k, I>(&mut self, keys: I, most: usize) -> (usize, Option<(Key<'k, Self>, I)>)
    where
        I: Iterator<Item = Key<'k, Self>>,
    {
        let (before, mut keys) = (self.len(), keys);
        let unfit = keys.by_ref().take(most).find(|&key| !self.push(key));
        (self.len() - before, unfit.map(|key| (key, keys)))
    }

    /// Adds the first of the keys, as many as the slot has room for, and returns how many. Panics if that is
    /// more keys than the slot was taken for.
    fn extend_from(&mut self, keys: KeysOf<'_, Self>) -> usize;

    /// The keys. Those that lie in another form are made now, in memory of their own.
    fn keys(&self) -> KeysOf<'_, Self>;

    /// The number of keys.
    fn len(&self) -> usize;

    /// Whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot, the form of its keys, and the value that reads them when the slot is back.
    fn into_slot(self) -> (FleetBatch, Form, Self::Sent);
}

/// Keys in a slot that is under way, or has come back.
pub trait InSlot: Debug + Send + Sync {
    /// The domain of the keys.
    type Domain: Domain;

    /// The keys, in the slot that has come back. Those that lie in another form are made now.
    fn keys<'k>(&'k self, done: &'k Done) -> <Self::Domain as Domain>::Keys<'k>;

    /// The number of keys.
    fn len(&self) -> usize;

    /// Whether there are no keys.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Forgets keys that were taken out of a slot to be read, because there are more.
#[inline]
pub(crate) fn forget<K>(read: &mut OnceLock<K>) {
    if read.get().is_some() {
        read.take();
    }
}
