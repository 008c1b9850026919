//! What every IP engine of Wirespeed shares: addresses and prefixes, next hops, the routing table ([`Rib`]) and
//! its changes.

pub mod address;
mod fib;
mod next_hop;
mod prefix;
pub mod rib;
mod update;

pub use address::{Address, Family, V4, V6};
pub use fib::{AnyUpdate, Fib};
pub use next_hop::{NextHop, NextHops, TooManyNextHops};
pub use prefix::{Prefix, PrefixError};
pub use rib::Rib;
pub use update::Update;
