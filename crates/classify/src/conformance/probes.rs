//! Tuples that the suite looks up: those [around] rules.

pub use crate::generate::{around, flipped, random};
