//! FOLD for IPv6.

mod build;
mod form;
mod layout;
mod lookup;
mod simd;
mod walk;

pub use build::FoldV6;
pub use layout::FoldTableV6;
