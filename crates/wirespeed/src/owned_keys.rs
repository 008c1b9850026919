//! [`OwnedKeys`]: keys of a domain in memory of their own, which is filled and used again.

use std::fmt::Debug;

#[cfg(feature = "rules")]
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple};
use wirespeed_fib::{V4, V6};
#[cfg(feature = "names")]
use wirespeed_namelookup::{Name, NameBatch, NameDomain, Names};
use wirespeed_table::Domain;

/// Keys in memory of their own.
pub trait OwnedKeys<D: Domain>: Debug + Default + Send + Sync {
    /// The keys.
    fn keys(&self) -> D::Keys<'_>;

    /// The number of keys.
    fn count(&self) -> usize;

    /// Removes all keys, and keeps the memory.
    fn empty(&mut self);

    /// Makes room for this number of keys in all.
    fn make_room(&mut self, keys: usize);

    /// Adds a key. Returns `false`, and adds nothing, if no more bytes fit.
    fn add(&mut self, key: D::Key<'_>) -> bool;

    /// Adds at most `most` keys. Returns how many.
    fn add_all<'k>(&mut self, keys: impl Iterator<Item = D::Key<'k>>, most: usize) -> usize {
        let before = self.count();
        // `all` ends at the first key that does not fit.
        keys.take(most).all(|key| self.add(key));
        self.count() - before
    }

    /// Adds at most `most` of the keys. Returns how many.
    fn copy(&mut self, keys: D::Keys<'_>, most: usize) -> usize;
}

macro_rules! vec_of {
    ($key:ty, by value) => {
        vec_of!($key, key => key, keys => keys);
    };
    ($key:ty, by reference) => {
        vec_of!($key, key => *key, keys => keys.copied());
    };
    ($key:ty, $one:ident => $value:expr, $keys:ident => $values:expr) => {
        impl OwnedKeys<$key> for Vec<$key> {
            #[inline]
            fn keys(&self) -> &[$key] {
                self
            }

            #[inline]
            fn count(&self) -> usize {
                self.len()
            }

            #[inline]
            fn empty(&mut self) {
                self.clear();
            }

            fn make_room(&mut self, keys: usize) {
                self.reserve(keys.saturating_sub(self.len()));
            }

            #[inline]
            fn add(&mut self, $one: <$key as Domain>::Key<'_>) -> bool {
                self.push($value);
                true
            }

            #[inline]
            fn add_all<'k>(
                &mut self,
                $keys: impl Iterator<Item = <$key as Domain>::Key<'k>>,
                most: usize,
            ) -> usize {
                let before = self.len();
                self.extend($values.take(most));
                self.len() - before
            }

            #[inline]
            fn copy(&mut self, keys: &[$key], most: usize) -> usize {
                let keys = &keys[..keys.len().min(most)];
                self.extend_from_slice(keys);
                keys.len()
            }
        }
    };
}

vec_of!(V4, by value);
vec_of!(V6, by value);
#[cfg(feature = "rules")]
vec_of!(Ipv4Tuple, by reference);
#[cfg(feature = "rules")]
vec_of!(Ipv6Tuple, by reference);
#[cfg(feature = "rules")]
vec_of!(OpenFlowTuple, by reference);

#[cfg(feature = "names")]
impl OwnedKeys<NameDomain> for NameBatch {
    fn keys(&self) -> Names<'_> {
        self.names()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn empty(&mut self) {
        self.clear();
    }

    fn make_room(&mut self, _: usize) {
        // Nobody knows the bytes of names to come. The memory grows to that of the largest batch and stays.
    }

    #[inline]
    fn add(&mut self, name: &Name) -> bool {
        self.push(name).is_ok()
    }

    fn copy(&mut self, names: Names<'_>, most: usize) -> usize {
        self.add_all(names.iter(), most)
    }
}
