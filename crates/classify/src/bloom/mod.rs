//! Bloom search (the paper's section 4.3, Algorithm 5): [tuple search](crate::tuple_search) where each class
//! has a Bloom filter of two hashes, and a lookup reads its table only if the filter has both bits.
//!
//! Filters have 32 to 64 bits for each rule, of which two are set: one in 300 to 1,000 of the tuples that a
//! class doesn't match gets past its filter. See [`tss`](crate::tss) for both.

use crate::tss::{Form, Tss, TssTable};

/// The form of Bloom search.
#[derive(Clone, Copy, Debug, Default)]
pub struct BloomForm;

impl Form for BloomForm {
    const NAME: &'static str = "bloom";
    const KIND: &'static str = Self::NAME;
    const FILTERED: bool = true;
}

/// Builds, and keeps up to date, a table for Bloom search.
pub type BloomSearch<T> = Tss<T, BloomForm>;
/// A table for Bloom search, ready for lookups.
pub type BloomSearchTable<T> = TssTable<T, BloomForm>;
