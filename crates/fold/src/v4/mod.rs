//! IPv4: 18 bits choose a chunk of 64 elements, 6 bits one of them; where there are longer prefixes, 8 more
//! bits one of 256.

mod build;
pub(crate) mod content;
pub(crate) mod form;
mod kernel;
pub mod layout;
pub(crate) mod long;
pub(crate) mod lookup;
mod past_24;
mod simd;
mod update;
pub(crate) mod walk;

pub use build::{FoldV4, most_bytes};
pub use layout::FoldTableV4;
