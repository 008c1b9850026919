//! FOLD for IPv4: levels 18, 24 and 32.

mod build;
mod layout;
mod lookup;
mod simd;
mod update;

pub use build::FoldV4;
pub use layout::FoldTableV4;
