//! [`DeviceKeys`]: keys that are on a GPU, in the layouts that kernels read.

use std::marker::PhantomData;

use wirespeed_fib::{V4, V6};
#[cfg(feature = "names")]
use wirespeed_namelookup::{Match, NameDomain};

use crate::engine::{Addresses, Served};
use crate::gpu::driver::DevicePtr;
#[cfg(feature = "names")]
use crate::gpu::names::{ENDS, PACKED, Wanted};
use crate::gpu::runtime;

/// Names that share a record of the [`packed`](DeviceKeys::packed) form.
#[cfg(feature = "names")]
pub const NAME_GROUP: usize = crate::gpu::names::GROUP;

/// Bytes of a record of the [`packed`](DeviceKeys::packed) form: a start, `u32`, and 32 ends, `u16`.
#[cfg(feature = "names")]
pub const NAME_GROUP_BYTES: usize = size_of::<u32>() + NAME_GROUP * size_of::<u16>();

/// Tuples whose words lie side by side: [`tuples`](DeviceKeys::tuples).
#[cfg(feature = "rules")]
pub const TUPLE_GROUP: usize = crate::gpu::classify::GROUP;

/// Keys of a domain on a GPU: addresses of a family, names, or tuples. It holds addresses of memory, and no
/// memory. The [module](super#keys) has a table of all layouts.
#[derive(Debug)]
pub struct DeviceKeys<D> {
    keys: runtime::DeviceKeys,
    domain: PhantomData<fn() -> D>,
}

impl<D> Clone for DeviceKeys<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for DeviceKeys<D> {}

impl<D: Served> DeviceKeys<D> {
    const fn of(keys: runtime::DeviceKeys) -> Self {
        Self { keys, domain: PhantomData }
    }

    /// The number of keys.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.keys.count()
    }

    pub(super) const fn keys(&self) -> runtime::DeviceKeys {
        self.keys
    }
}

impl<A: Addresses> DeviceKeys<A> {
    /// Whole addresses, numbers of 4 bytes (IPv4) or 16 bytes (IPv6). They are right in every state.
    #[must_use]
    pub const fn whole(addresses: DevicePtr, count: usize) -> Self {
        Self::of(runtime::DeviceKeys::bytes(size_of::<A>(), addresses, None, count))
    }
}

impl DeviceKeys<V4> {
    /// The first 24 bits of addresses: bits 0 to 15 as numbers of 2 bytes, and bits 16 to 23, a byte each.
    #[must_use]
    pub const fn first_24(high: DevicePtr, low: DevicePtr, count: usize) -> Self {
        Self::of(runtime::DeviceKeys::bytes(3, high, Some(low), count))
    }
}

impl DeviceKeys<V6> {
    /// The first 64 bits of addresses, numbers of 8 bytes.
    #[must_use]
    pub const fn first_64(high: DevicePtr, count: usize) -> Self {
        Self::of(runtime::DeviceKeys::bytes(8, high, None, count))
    }

    /// The first 48 bits of addresses: bits 0 to 31 as numbers of 4 bytes, and bits 32 to 47 as numbers of 2
    /// bytes.
    #[must_use]
    pub const fn first_48(high: DevicePtr, low: DevicePtr, count: usize) -> Self {
        Self::of(runtime::DeviceKeys::bytes(6, high, Some(low), count))
    }
}

#[cfg(feature = "names")]
impl DeviceKeys<NameDomain> {
    /// Names with short ends: the fastest form.
    ///
    /// ```text
    /// groups   start u32, 32 ends u16 │ start, 32 ends │ …     a record of 68 bytes for each 32 names, the last one whole, too
    /// text     /com/parc/com/exa…                              the bytes of all names
    /// ```
    ///
    /// A record has the place of its first name in `text`, and the end of each of its names, relative to that
    /// place. A name starts at the end of the one before it, so the names of a record lie without gaps and
    /// take less than 64 KiB. Records are in the order of their places. Ends after the last name are not
    /// read.
    ///
    /// A name is the bytes of a [`Name`](crate::names::Name): a slash before each component and none at the
    /// end, or a single slash for the root.
    #[must_use]
    pub fn packed(wanted: Wanted, groups: DevicePtr, text: DevicePtr, count: usize) -> Self {
        Self::names(wanted, PACKED, groups, text, count)
    }

    /// Names with an end of 4 bytes each: for records of 64 KiB and more.
    ///
    /// ```text
    /// ends     end u32 │ end u32 │ …         the end of each name in `text`
    /// text     /com/parc/com/exa…            the bytes of all names, without gaps from the start on
    /// ```
    #[must_use]
    pub fn ended(wanted: Wanted, ends: DevicePtr, text: DevicePtr, count: usize) -> Self {
        Self::names(wanted, ENDS, ends, text, count)
    }

    fn names(wanted: Wanted, layout: &'static str, first: DevicePtr, text: DevicePtr, count: usize) -> Self {
        let keys = runtime::DeviceKeys::parts(wanted.kind(layout), first, Some(text), count);
        Self::of(match wanted {
            Wanted::Results => keys,
            Wanted::Matches => keys.with_results_of(size_of::<Match>()),
        })
    }
}

#[cfg(feature = "rules")]
impl<T: crate::engine::RuleTuple> DeviceKeys<T> {
    /// Tuples, word by word, 32 tuples at a time.
    ///
    /// ```text
    /// words    word 0 of 32 tuples │ word 1 of 32 tuples │ …  │ word 0 of the next 32 │ …     whole words only
    /// tails    a byte of each tuple
    /// ```
    ///
    /// A tuple is a row of words ([`Tuple`](crate::classify::Tuple) has a picture of each type), of which
    /// [`PACKED`](crate::classify::Tuple::PACKED) bytes are in use. `words` has the `PACKED / 4` whole words:
    /// 3 of an [`Ipv4Tuple`](crate::classify::Ipv4Tuple), 9 of the others. Word `w` of tuple `t` is the `u32`
    /// at index `(t / 32 * whole + w) * 32 + t % 32`. Bits that belong to no field are 0. `tails` has what is
    /// left: the highest byte of the last word, which is the protocol.
    /// [`OpenFlowTuple`](crate::classify::OpenFlowTuple)s have no tails: any address will do, such as 0.
    #[must_use]
    pub fn tuples(words: DevicePtr, tails: DevicePtr, count: usize) -> Self {
        let kind = crate::gpu::classify::kind::<T>().expect("tuples that are served have kernels");
        let tails = Some(tails).filter(|_| !T::PACKED.is_multiple_of(size_of::<u32>()));
        Self::of(runtime::DeviceKeys::parts(kind, words, tails, count))
    }
}
