//! What every IP engine of Wirespeed shares: addresses and prefixes, next hops, the routing table ([`Rib`])
//! and its changes, its statistics, readers and writers, synthetic tables and traces.

pub mod address;

#[cfg(feature = "conformance")]
pub mod conformance;
mod fib;
mod live;
mod lpm;
mod next_hop;
pub mod oracle;
mod prefix;
pub mod read;
pub mod rib;
pub mod stats;
pub mod synth;
pub mod trace;
mod update;
mod way;
pub mod write;

pub use address::{Address, Family, V4, V6};
pub use fib::{AnyUpdate, Fib, InFib};
pub use live::{Applied, LiveTable};
pub use lpm::{BuildError, BuildOptions, ByPrefixes, Engine, Lpm, Outgrown, Step, Strides, on_all_cores};
pub use next_hop::{NextHop, NextHops, TooManyNextHops};
pub use prefix::{Prefix, PrefixError};
pub use rib::Rib;
pub use stats::Stats;
pub use update::{Undo, Update};
pub use way::Way;
