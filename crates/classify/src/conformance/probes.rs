//! Tuples that the suite looks up: those [around](around) rules.

pub use crate::generate::{around, flipped, random};
