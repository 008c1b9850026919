//! What every IP engine of Wirespeed shares: addresses and prefixes, next hops, the routing table ([`Rib`])
//! and its changes, its statistics, readers and writers, synthetic tables and traces.

pub mod address;

#[cfg(feature = "conformance")]
pub mod conformance;
mod domain;
mod fib;
mod next_hop;
pub mod oracle;
mod prefix;
pub mod read;
pub mod rib;
pub mod stats;
pub mod synth;
pub mod trace;
mod update;
pub mod write;

pub use address::{Address, Family, V4, V6};
pub use domain::LiveTable;
pub use fib::{AnyUpdate, Fib, InFib};
pub use next_hop::{NextHop, NextHops, TooManyNextHops};
pub use prefix::{Prefix, PrefixError};
pub use rib::Rib;
pub use stats::Stats;
pub use update::{Undo, Update};
pub use wirespeed_table::{
    Applied, BuildError, BuildOptions, ByEntries, Engine, Lookup, Outgrown, Standing, Step, Strides,
    VectorLevel, on_all_cores,
};
