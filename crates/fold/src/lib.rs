//! FOLD: SAIL's splitting by levels, with equal chunks folded into one.

mod v4;

pub use v4::{FoldTableV4, FoldV4};
