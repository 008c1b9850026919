//! The common base of Wirespeed's IP engines: addresses and prefixes, next hops, the routing table ([`Rib`])
//! and its changes, statistics, readers and writers, synthetic tables and traces.
//!
//! | feature | what it adds |
//! |---|---|
//! | `text` | readers and writers of text and JSON ([`read`], [`write`](mod@write)), and statistics of tables ([`stats`]) |
//! | `mrt` | reading and writing MRT; includes `text` |
//! | `compression` | compressed files, recognised by magic number. `gzip`, `bzip2` and `zstd` are also features of their own; all include `text` |
//! | `capture` | traces from captures, pcap and pcapng ([`trace::capture`]) |
//! | `synth` | synthetic tables and updates ([`synth`]), and generated traces ([`trace::keys`]) |
//! | `parallel` | batches on the threads of a pool ([`Lookup::par_lookup_batch`]) |
//!
//! All are on by default. A file in a format that the build leaves out is still recognised, and refused by an
//! error that names the feature.

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

pub mod address;

#[cfg(feature = "text")]
pub mod bogons;
#[cfg(feature = "conformance")]
pub mod conformance;
mod domain;
mod fib;
#[cfg(feature = "text")]
pub mod merge;
mod next_hop;
pub mod oracle;
mod prefix;
mod range;
#[cfg(feature = "text")]
pub mod read;
pub mod rib;
pub mod rpki;
#[cfg(feature = "text")]
pub mod stats;
#[cfg(feature = "synth")]
pub mod synth;
pub mod trace;
mod update;
#[cfg(feature = "text")]
pub mod write;

pub use address::{Address, Family, V4, V6};
pub use domain::LiveTable;
pub use fib::{AnyUpdate, Fib, InFib};
pub use next_hop::{NextHop, NextHops, TooManyNextHops};
pub use prefix::{HostBits, Prefix, PrefixError};
pub use range::{PrefixesOfRange, prefixes_of_range};
pub use rib::Rib;
#[cfg(feature = "text")]
pub use stats::Stats;
pub use update::{Undo, Update};
#[cfg(feature = "parallel")]
pub use wirespeed_table::on_all_cores;
pub use wirespeed_table::vector;
pub use wirespeed_table::{
    Applied, BuildError, BuildOptions, ByEntries, Engine, Lookup, Outgrown, Standing, Step, Strides,
    VectorLevel, whole,
};
