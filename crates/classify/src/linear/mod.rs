//! Linear search (the paper's section 4.1, Algorithms 1 to 3) compares a tuple with entry after entry.
//!
//! The paper goes through all rules and keeps the best that matches. Here the best entry is first, so that
//! the first match is the answer and the search can stop. It is fast enough for a thousand rules because a
//! vector compares a word of 16 entries at once. For sets of more than a few thousand rules any other engine
//! is better; for a few dozen rules this engine is better.
//!
//! Updates keep the order. Entries lie in groups of 16 lanes with a few free lanes, so that a new entry moves
//! only the entries after it in its group. A full group shares its entries with its neighbours, as many as it
//! takes until they have free lanes (a packed-memory array). If all groups are full, the table is outgrown.
//! See [`layout`] for the sections.
//!
//! Measured on one core of a Zen 4 by AVX-512 (`benches/classify_speed.rs`, batches of 8,192; a shared
//! machine, so take ratios):
//!
//! | set | patterns | table | trace order, shuffled | live updates, 64 a call |
//! |---|---|---|---|---|
//! | ClassBench acl1 1K | 1,237 | 0.05 MiB | 15.1, 11.5 M/s | 0.39 M/s |
//! | ClassBench fw1 1K | 2,899 | 0.13 MiB | 6.9, 6.0 M/s | 0.37 M/s |
//! | ClassBench ipc1 1K | 1,286 | 0.06 MiB | 26.1, 24.1 M/s | 0.53 M/s |
//! | OpenFlow, 1,024 in 128 classes | 1,024 | 0.09 MiB | 7.1, 7.1 M/s | 0.30 M/s |
//! | ClassBench acl1 10K | 13,450 | 0.58 MiB | 2.6, 2.5 M/s | 0.38 M/s |
//!
//! What was tried, in the order of the table and in trace order:
//! - Giving a group up after every second word only, instead of after each in which no lane is left: 14.1,
//!   5.1, 16.4, 6.7, 1.4 M/s.
//! - The same with two tuples at a time, so that a group is loaded once for both: 12.2, 6.1, 16.7, 4.3, 1.4
//!   M/s.

mod build;
mod kernel;
pub mod layout;
mod lookup;
mod order;
mod portable;
mod simd;
#[cfg(test)]
mod tests;
mod update;

pub use build::Linear;
pub use layout::LinearTable;
