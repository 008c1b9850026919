//! Lookups on NVIDIA GPUs.
//!
//! ```text
//! ip       addresses as keys; tables of them on GPUs, which follow updates     (what keys are is known here)
//! names    names as keys, and their tables                                     (and here)
//! classify tuples as keys, and their tables                                    (and here, and nowhere else)
//! copies   a table on GPUs, in step with a live one or not, whatever its keys are
//! in_place keys that are written to a slot as they come, whatever they are
//! offload  batches that go to the CPU or to GPUs, one by one or several under way; the CPU answers for a GPU that fails
//! remote   what a table on GPUs is, whatever its keys are
//! trip     a batch to a GPU and back
//! runtime  one owner thread a device; slots and batches, tables and their patches, the way of moving data, fleets
//! driver   memory, streams, events, launches, graphs of one device
//! ```
//!
//! The features `names` and `rules`, both on by default, are for tables of names and rules.
//!
//! This crate names no engine, though engines of names and rules lie in the crates of their domains, which it
//! needs. Each engine says which kernels look up in its tables, and with which arguments:
//! [`wirespeed_image::device`].

// Users print what they get, and keep it in types of their own that derive `Debug`.
#![warn(missing_debug_implementations)]

mod check;
#[cfg(feature = "rules")]
pub mod classify;
mod copies;
pub mod costs;
pub mod dispatch;
pub mod driver;
mod error;
mod follow;
pub mod in_place;
pub mod ip;
#[cfg(feature = "names")]
pub mod names;
pub mod numbers;
pub mod offload;
mod per_key;
mod remote;
pub mod runtime;
mod simd;
mod source;
mod tally;
pub mod trip;

pub use check::{check, run as check_driver};
pub use copies::Copies;
pub use error::GpuError;
