//! [`OwnedKeys`], and keys in memory of their own.

use std::fmt::Debug;

#[cfg(feature = "rules")]
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple};
#[cfg(feature = "names")]
use wirespeed_namelookup::{Name, NameBatch, NameDomain, Names};
use wirespeed_table::Domain;

use crate::gpu::dispatch::Why;
use crate::gpu::offload::{Answers, KeysOf, Offload, RemoteTable, Sent};
use crate::gpu::runtime::Done;

/// The most keys to allocate memory for before they come. A caller may ask for a batch of any size.
const MOST_AHEAD: usize = 1 << 20;

/// A key of a table's domain.
pub(super) type KeyOf<'k, T> = <<T as RemoteTable>::Domain as Domain>::Key<'k>;

/// The keys of a batch for a table: in memory of their own, or in a slot of a GPU.
pub trait OwnedKeys<T: RemoteTable>: Debug + Default + Send + Sync {
    /// The keys. `done` is the slot that they were sent in, if it has come back.
    fn keys<'k>(&'k self, done: Option<&'k Done>) -> KeysOf<'k, T>;

    /// The number of keys.
    fn count(&self) -> usize;

    /// Removes all keys, and keeps the memory. A slot goes back.
    fn empty(&mut self);

    /// Makes room for this number of keys, without a key in it. The room may be a slot of these GPUs.
    fn make_room(&mut self, keys: usize, offload: Option<&Offload<T>>);

    /// Adds a key. Returns `false`, and adds nothing, if no more bytes fit.
    fn add(&mut self, key: KeyOf<'_, T>) -> bool;

    /// Adds at most `most` keys. Returns how many.
    fn add_all<'k>(&mut self, keys: impl Iterator<Item = KeyOf<'k, T>>, most: usize) -> usize {
        let before = self.count();
        // `all` ends at the first key that does not fit.
        keys.take(most).all(|key| self.add(key));
        self.count() - before
    }

    /// Adds at most `most` of the keys. Returns how many.
    fn copy(&mut self, keys: KeysOf<'_, T>, most: usize) -> usize;

    /// Sends the keys to a GPU if that suits them, and a slot is there. An error is the reason why not.
    fn send<R>(&mut self, offload: &Offload<T>) -> Result<Sent, Why>
    where
        T: Answers<R>,
    {
        offload.try_send::<R>(self.keys(None))
    }

    /// Whether the keys lie in the slot that was sent, and nowhere else.
    fn is_away(&self) -> bool {
        false
    }
}

macro_rules! vec_of {
    ($($key:ty),* => $one:ident, $value:expr) => {$(
        impl<T: RemoteTable<Domain = $key>> OwnedKeys<T> for Vec<$key> {
            fn keys<'k>(&'k self, _: Option<&'k Done>) -> &'k [$key] {
                self
            }

            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            fn empty(&mut self) {
                self.clear();
            }

            fn make_room(&mut self, keys: usize, _: Option<&Offload<T>>) {
                self.reserve(keys.min(MOST_AHEAD));
            }

            #[inline]
            fn add(&mut self, $one: <$key as Domain>::Key<'_>) -> bool {
                self.push($value);
                true
            }

            #[inline]
            fn add_all<'k>(
                &mut self,
                keys: impl Iterator<Item = <$key as Domain>::Key<'k>>,
                most: usize,
            ) -> usize {
                let before = self.len();
                self.extend(keys.take(most).map(|$one| $value));
                self.len() - before
            }

            fn copy(&mut self, keys: &[$key], most: usize) -> usize {
                let keys = &keys[..keys.len().min(most)];
                self.extend_from_slice(keys);
                keys.len()
            }
        }
    )*};
}

#[cfg(feature = "rules")]
vec_of!(Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, OpenFlow13Tuple => tuple, *tuple);
vec_of!(wirespeed_fib::V4, wirespeed_fib::V6 => address, address);

#[cfg(feature = "names")]
impl<T: RemoteTable<Domain = NameDomain>> OwnedKeys<T> for NameBatch {
    fn keys<'k>(&'k self, _: Option<&'k Done>) -> Names<'k> {
        self.names()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn empty(&mut self) {
        self.clear();
    }

    fn make_room(&mut self, _: usize, _: Option<&Offload<T>>) {
        // Nobody knows the bytes of names to come. The memory grows to that of the largest batch and stays.
    }

    #[inline]
    fn add(&mut self, name: &Name) -> bool {
        self.push(name).is_ok()
    }

    fn copy(&mut self, names: Names<'_>, most: usize) -> usize {
        let names = names.part(0..names.len().min(most));
        match self.push_all(names) {
            Ok(()) => names.len(),
            // Some may fit.
            Err(_) => OwnedKeys::<T>::add_all(self, names.iter(), most),
        }
    }
}
