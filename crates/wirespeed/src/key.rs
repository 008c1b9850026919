//! The types that an address can be given as: the project's own types, integers in host order, and the
//! standard library's types.

use std::net::{Ipv4Addr, Ipv6Addr};

use wirespeed_fib::{Address, NextHop, V4, V6};

/// A key of family `A`: [`V4`], `u32` or [`Ipv4Addr`]; [`V6`], `u128` or [`Ipv6Addr`].
///
/// Batches of the first two types are looked up without a copy: they are integers in host order already. The
/// standard library's addresses are octets in network order. They are copied and converted a block at a time.
pub trait Key<A: Address>: Copy + sealed::Sealed {
    /// The address.
    fn address(self) -> A;

    /// Looks a batch up with a function that takes addresses, a block at a time, and writes a result for each
    /// key.
    #[doc(hidden)]
    fn each_block(keys: &[Self], next_hops: &mut [NextHop], lookup: impl FnMut(&[A], &mut [NextHop]));

    /// Converts a whole batch to addresses, and hands it to a function.
    #[doc(hidden)]
    fn all_at_once<R>(keys: &[Self], take: impl FnOnce(&[A]) -> R) -> R;
}

/// The number of addresses that are copied at a time: enough for a fast batch, few enough for the first-level
/// cache.
pub(crate) const BLOCK: usize = 512;

mod sealed {
    pub trait Sealed {}
}

macro_rules! keys {
    ($address:ident, $int:ty, $std:ty) => {
        keys!(as it is, $address, $address);
        keys!(as it is, $address, $int);

        impl sealed::Sealed for $std {}

        impl Key<$address> for $std {
            #[inline]
            fn address(self) -> $address {
                self.into()
            }

            fn each_block(
                keys: &[Self],
                next_hops: &mut [NextHop],
                mut lookup: impl FnMut(&[$address], &mut [NextHop]),
            ) {
                let mut addresses = [$address::MIN; BLOCK];
                for (keys, next_hops) in keys.chunks(BLOCK).zip(next_hops.chunks_mut(BLOCK)) {
                    let addresses = &mut addresses[..keys.len()];
                    for (address, &key) in addresses.iter_mut().zip(keys) {
                        *address = key.into();
                    }
                    lookup(addresses, next_hops);
                }
            }

            fn all_at_once<R>(keys: &[Self], take: impl FnOnce(&[$address]) -> R) -> R {
                let addresses: Vec<$address> = keys.iter().map(|&key| key.into()).collect();
                take(&addresses)
            }
        }
    };
    (as it is, $address:ident, $key:ty) => {
        impl sealed::Sealed for $key {}

        impl Key<$address> for $key {
            #[inline]
            fn address(self) -> $address {
                bytemuck::cast(self)
            }

            #[inline]
            fn each_block(
                keys: &[Self],
                next_hops: &mut [NextHop],
                mut lookup: impl FnMut(&[$address], &mut [NextHop]),
            ) {
                lookup(bytemuck::cast_slice(keys), next_hops);
            }

            #[inline]
            fn all_at_once<R>(keys: &[Self], take: impl FnOnce(&[$address]) -> R) -> R {
                take(bytemuck::cast_slice(keys))
            }
        }
    };
}

keys!(V4, u32, Ipv4Addr);
keys!(V6, u128, Ipv6Addr);
