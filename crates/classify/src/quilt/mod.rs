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
//! Which masks are merged follows from the rules ([`plan`]): the mask that can take the most rules, without many in a bucket, comes
//! first, then that which can take the most of the others, and so on. A rule that comes goes to the most specific layer that has room
//! in the rule's bucket, or into a new layer. Buckets hold 16 cells at most, equal cells are one, and hashing is seeded: no chosen
//! set of rules makes a lookup slow, but one with as many masks as rules.
//!
//! A lookup goes through layers by four, and ends where what it found beats all rules of those left.

mod build;
mod cell;
mod hash;
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

pub use build::Quilt;
pub use layout::QuiltTable;
