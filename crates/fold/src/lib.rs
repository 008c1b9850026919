//! FOLD: SAIL's splitting by levels, with equal chunks folded into one.

mod changes;
mod v4;
mod v6;

pub use v4::{FoldTableV4, FoldV4};
pub use v6::{FoldTableV6, FoldV6};
