//! Classes in cuckoo tables: what tuple search and Bloom search share (the paper's sections 4.2 and 4.3).
//!
//! The rules of one mask are a class. A class has a cuckoo table of three subtables, where a value lies in
//! one of three slots that its hash says, and in Bloom search a filter that says of most tuples that they
//! have nothing there.
//!
//! ```text
//! order   class 7 ─► class 2 ─► class 5 ─► …        the best rule of each is no better than that of the one before
//!            │ tuple & mask, hash
//!            ├─ filter: both bits?  mostly not ─► next class
//!            └─ three slots: value equal? ─► rank; stop where the next class has nothing better
//! ```
//!
//! See [`layout`] for the sections and [`hash`] for where things lie.

mod build;
mod class;
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

pub use build::Tss;
pub use form::Form;
pub use layout::TssTable;
