//! Traces: the keys of lookups, generated from a table or read from a file.
//!
//! [`TraceKind`] names the generators, [`keys`] runs them. [`from_reader`] takes text, packed addresses and
//! captures by content; [`from_text`], [`from_packed`] and `capture::from_capture` take one format each.
//! Generators need the feature `synth`, captures the feature `capture`.
//!
//! ```
//! use wirespeed_fib::trace::{self, TraceKind};
//! use wirespeed_fib::{NextHop, Rib, V4};
//!
//! let table: Rib<V4> = [("10.0.0.0/8".parse()?, NextHop(1))].into_iter().collect();
//! let kind: TraceKind = "prefix".parse()?;
//! let keys = trace::keys(&table, kind, 1000, 7)?;
//! assert!(keys.iter().all(|&key| table.longest_match(key).is_some()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addresses;
#[cfg(feature = "capture")]
pub mod capture;
mod deepest;
mod error;
#[cfg(feature = "synth")]
mod generate;
mod magic;
mod packed;
#[cfg(feature = "capture")]
mod packet;
#[cfg(feature = "capture")]
mod packets;
mod read;
mod text;
#[cfg(feature = "synth")]
mod zipf;

pub use addresses::Trace;
pub use deepest::deepest;
pub use error::TraceError;
#[cfg(feature = "synth")]
pub use generate::{Generator, KindError, NoPrefixes, TraceKind, fill, keys};
pub use packed::{from_packed, write_packed};
#[cfg(feature = "capture")]
pub use packets::{Packet, PacketError, Packets};
pub use read::{Format, from_reader, is_capture};
pub use text::{from_text, write_text};
#[cfg(feature = "synth")]
pub use zipf::Zipf;
