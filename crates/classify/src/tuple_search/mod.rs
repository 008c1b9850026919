//! Tuple search (the paper's section 4.2, Algorithm 4): a cuckoo table for each class, each looked up in, the
//! class with the best rule first, until no class left has a better one than what was found.
//!
//! A lookup costs three slots a class, whatever the number of rules. For sets of a few dozen classes, or
//! where most of them match, it is as good as [Bloom search](crate::bloom); with more, that one is better.
//! See [`tss`](crate::tss) for both.

use crate::tss::{Form, Tss, TssTable};

/// The form of tuple search.
#[derive(Clone, Copy, Debug, Default)]
pub struct TupleForm;

impl Form for TupleForm {
    const NAME: &'static str = "tuple";
    const KIND: &'static str = Self::NAME;
    const FILTERED: bool = false;
}

/// Builds, and keeps up to date, a table for tuple search.
pub type TupleSearch<T> = Tss<T, TupleForm>;
/// A table for tuple search, ready for lookups.
pub type TupleSearchTable<T> = TssTable<T, TupleForm>;
