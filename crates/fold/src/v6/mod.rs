//! IPv6: steps of 20, 12, 5, 5 and 6 bits to the 48th, and on by octets to the 128th.

mod build;
mod form;
mod kernel;
pub mod layout;
mod lookup;
mod reached;
mod rest;
mod simd;
mod update;
mod walk;

pub use build::{FoldV6, most_bytes};
pub use layout::FoldTableV6;
