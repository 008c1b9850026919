//! Tables from the Rust registry. Each file wraps one crate and says how its users would call it.

mod iptrie;
mod poptrie;
mod prefix_trie;
mod treebitmap;

pub use iptrie::{IptrieLc, IptrieRadix};
pub use poptrie::Poptrie;
pub use prefix_trie::PrefixTrie;
pub use treebitmap::Treebitmap;

use std::net::{Ipv4Addr, Ipv6Addr};

use wirespeed_fib::{Address, NextHop, V4, V6};

/// An address in the types that other crates use.
pub trait Native: Address {
    /// The primitive integer.
    type Int: Copy;
    /// The standard library's type.
    type Std: Copy;

    /// As the integer.
    fn int(self) -> Self::Int;
    /// As the standard library's type.
    fn std(self) -> Self::Std;
}

impl Native for V4 {
    type Int = u32;
    type Std = Ipv4Addr;

    #[inline]
    fn int(self) -> u32 {
        self.0
    }

    #[inline]
    fn std(self) -> Ipv4Addr {
        self.into()
    }
}

impl Native for V6 {
    type Int = u128;
    type Std = Ipv6Addr;

    #[inline]
    fn int(self) -> u128 {
        self.0
    }

    #[inline]
    fn std(self) -> Ipv6Addr {
        self.into()
    }
}

/// The body of [`Contestant`](crate::table::Contestant) for a table that only looks up one key at a time, into an optional
/// value: batches are a loop.
macro_rules! one_by_one {
    ($address:ty) => {
        type Answer = wirespeed_fib::NextHop;

        #[inline]
        fn next_hop(answer: wirespeed_fib::NextHop) -> wirespeed_fib::NextHop {
            answer
        }

        fn many(&self, keys: $crate::trace::Keys<'_, $address>, answers: &mut [wirespeed_fib::NextHop]) {
            for (answer, &key) in answers.iter_mut().zip(keys.host) {
                *answer = self.one(key);
            }
        }
    };
}
use one_by_one;

/// The next hop of an optional value.
#[inline]
fn or_none(value: Option<&u32>) -> NextHop {
    value.map_or(NextHop::NONE, |&index| NextHop(index))
}

/// The value to store for an announcement; those of a contest all have a next hop.
#[inline]
fn index(next_hop: Option<NextHop>) -> u32 {
    next_hop.unwrap_or(NextHop(1)).0
}
