//! Linear search (the paper's section 4.1, Algorithms 1 to 3): a tuple is compared with entry after entry.
//!
//! The paper goes through all rules and keeps the best that matches; here they lie best first, so that the first that matches is the
//! answer and a search can stop. What makes it fast enough for a thousand rules is that 16 entries are compared at once, a word of
//! each in a vector. For sets of more than a few thousand rules any other engine is better; for a few dozen this one is.
//!
//! Updates keep the order: entries lie in groups of 16 lanes that are left a little empty, so that one that comes moves those after it
//! in its group. A group that is full shares with its neighbours, as many as it takes until they are less than full (a
//! packed-memory array), and a table where all are is outgrown. See [`layout`] for the sections.

mod build;
pub mod layout;
mod lookup;
mod order;
mod simd;
#[cfg(test)]
mod tests;
mod update;

pub use build::Linear;
pub use layout::LinearTable;
