//! Quilt: tuple search of our own, over few merged classes whose keys are all tried at once.
//!
//! Tuple search has a hash table for each mask, and real rule sets have hundreds of masks. TupleMerge (Daly et al., 2019) puts rules
//! under coarser masks that many share. Quilt does that too, and is made so that a probe that finds nothing costs next to nothing:
//!
//! 1. A *layer* is a merged class: a mask, and a directory of 32-bit slots that its hash leads to. A slot names a *bucket* and has a
//!    filter of 8 bits, 4 of which each key sets. Layers are tried for 16 tuples at once in vectors: mask, hash, slot, filter. What
//!    gets through is a list of candidates, most of which hold a rule of the tuple's key.
//! 2. A bucket is one to four groups of four cells. All of a group are compared at once: two vectors for tuples of 4 words.
//! 3. A *cell* is a rule in full. Where each 16 bits of a rule are a range (prefixes and ranges of ports are), the cell is the least
//!    number and the span of each, so that ranges need no expansion; else it is a value and a mask.
//!
//! Which masks are merged follows from the rules (`plan`, `tune`): the mask that can take the most rules, without many in a bucket, comes
//! first, then that which can take the most of the others, and so on. A rule that comes goes to the most specific layer that has room
//! in the rule's bucket, or into a new layer. Buckets hold 16 cells at most, equal cells are one, and hashing is seeded: no chosen
//! set of rules makes a lookup slow, but one with as many masks as rules.
//!
//! A lookup goes through layers by four, and ends where what it found beats all rules of those left. Each slot says how high the best
//! rule of its bucket is, and a bucket below what was found is passed over.
//!
//! Measured on one core of a Zen 4 (ClassBench sets and traces, answers held against their truth, batches of 1,024;
//! `examples/quilt_speed.rs`; a shared machine, the better of two runs, so take ratios): M lookups/s in the order of the trace and
//! shuffled, and M updates/s of a live table, 4,096 a call:
//!
//! | | 1 K | 10 K | 100 K |
//! |---|---|---|---|
//! | acl1 | 95, 93; 4.3 | 100, 90; 3.3 | 74, 69; 1.2 |
//! | acl3 | 108, 104; 3.7 | 50, 46; 2.8 | 60, 50; 1.2 |
//! | fw1 | 59, 63; 3.8 | 67, 50; 3.0 | 43, 39; 1.3 |
//! | fw2 | 116, 132; 4.4 | 112, 109; 3.4 | 93, 75; 1.1 |
//! | ipc1 | 105, 82; 3.7 | 46, 44; 2.3 | 63, 53; 1.2 |
//!
//! 198 to 280 bytes a rule with the room for others; building takes 2 to 15 ms, 20 to 120 ms and 0.2 to 1.1 s on two cores.
//!
//! What was tried:
//! - Comparing all buckets whatever they hold: 48 M/s instead of 93 on acl1 of 1 K. A tuple matches rules of five layers there.
//! - One plan for all sets (buckets of 8): 49 M/s instead of 100 on acl1 of 10 K. The best plan is another for each set.
//! - Eight layers at a time instead of four: 85 M/s instead of 93 on acl1 of 10 K, with the same plan.
//! - Gathering tuples that the first layers left into chunks of their own: no gain, or a loss of 5 to 10 %. Building vectors of slots
//!   from single loads instead of through memory: no difference.

mod buckets;
mod build;
mod cell;
mod directories;
mod dirty;
mod hash;
mod known;
mod layers;
pub mod layout;
mod lookup;
mod plan;
#[cfg(target_arch = "x86_64")]
mod simd;
mod space;
mod store;
#[cfg(test)]
mod tests;
mod tune;
mod update;
mod weigh;

pub use build::Quilt;
pub use layout::QuiltTable;
