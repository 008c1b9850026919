//! Lookups on NVIDIA GPUs.
//!
//! ```text
//! ip       a Program for each engine's image; tables that follow updates    (the only part that knows what a key is)
//! runtime  one owner thread a device; slots and batches, tables and their patches, the way of moving data, fleets
//! driver   memory, streams, events, launches, graphs of one device
//! ```

mod check;
pub mod driver;
mod error;
pub mod ip;
pub mod program;
pub mod runtime;

pub use check::{check, run as check_driver};
pub use error::GpuError;
