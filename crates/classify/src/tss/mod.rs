//! Classes in cuckoo tables: the common part of tuple search and Bloom search (the paper's sections 4.2 and
//! 4.3).
//!
//! The rules of one mask are a class. A class has a cuckoo table of three subtables, where a value lies in
//! one of three slots that follow from its hash. In Bloom search it also has a filter, which shows for most
//! tuples that they have nothing there.
//!
//! ```text
//! order   class 7 ─► class 2 ─► class 5 ─► …        the best rule of each is no better than that of the one before
//!            │ tuple & mask, hash
//!            ├─ filter: both bits?  mostly not ─► next class
//!            └─ three slots: value equal? ─► rank; stop where the next class has nothing better
//! ```
//!
//! See [`layout`] for the sections and [`hash`] for the positions of entries.

mod batch;
mod build;
mod class;
mod classes;
mod engine;
mod filter;
mod form;
pub mod hash;
mod kernel;
pub mod layout;
mod lookup;
mod order;
mod place;
mod plan;
mod runs;
mod simd;
#[cfg(test)]
mod tests;
mod update;

pub use engine::Tss;
pub use form::Form;
pub use layout::TssTable;
