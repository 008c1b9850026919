//! [`OwnedKeys`]: the keys of a batch, in memory that is filled and used again.

mod own;
#[cfg(feature = "gpu")]
mod placed;

#[cfg(feature = "names")]
use wirespeed_namelookup::NameBatch;

pub use own::OwnedKeys;
#[cfg(feature = "gpu")]
use placed::Placed;

/// Addresses of a batch.
#[cfg(feature = "gpu")]
pub type AddressKeys<A> = Placed<crate::gpu::ip::Remote<A>, Vec<A>>;
/// Addresses of a batch.
#[cfg(not(feature = "gpu"))]
pub type AddressKeys<A> = Vec<A>;

/// Names of a batch.
#[cfg(all(feature = "gpu", feature = "names"))]
pub type NameKeys = Placed<crate::gpu::names::Remote, NameBatch>;
/// Names of a batch.
#[cfg(all(not(feature = "gpu"), feature = "names"))]
pub type NameKeys = NameBatch;

/// Tuples of a batch.
#[cfg(all(feature = "gpu", feature = "rules"))]
pub type TupleKeys<T> = Placed<crate::gpu::classify::Remote<T>, Vec<T>>;
/// Tuples of a batch.
#[cfg(all(not(feature = "gpu"), feature = "rules"))]
pub type TupleKeys<T> = Vec<T>;
