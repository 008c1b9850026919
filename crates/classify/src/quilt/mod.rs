//! Quilt: a tuple search of this project. It has few merged classes and tries their keys all at once.
//!
//! Tuple search has a hash table for each mask, and real rule sets have hundreds of masks. TupleMerge (Daly
//! et al., 2019) puts rules under coarser masks that many share. Quilt does that too, and makes a
//! probe that finds nothing very cheap:
//!
//! 1. A *layer* is a merged class: a mask, and a directory of 32-bit slots that its hash leads to. A slot
//!    names a *bucket* and has a filter of 8 bits, 4 of which each key sets. Layers are tried for 16 tuples
//!    at once in vectors: mask, hash, slot, filter. The result is a list of candidates, most of which
//!    hold a rule of the tuple's key.
//! 2. A bucket is one to four groups of four cells. All cells of a group are compared at once: two vectors
//!    for tuples of 4 words.
//! 3. A *cell* is a rule in full. Where each 16 bits of a rule are a range (prefixes and ranges of ports
//!    are), the cell is the least number and the span of each, so that ranges need no expansion; else it is a
//!    value and a mask. A rule with a range of addresses is a few cells: the range is cut where its upper
//!    bits change (`regions`).
//! 4. Cells that no hash tells apart are *scanned*: those of wide ranges, which fix no bits, or the same ones
//!    as many others do, and those of masks that few rules share, where there would be a layer for each.
//!    After the layers a tuple is compared with 16 of them at a time, the best first. Many ordinary sets have
//!    a dozen: rules of few fields, whose bucket nearly all tuples would be compared with.
//!
//! The rules decide the masks to merge (`plan`, `tune`): the mask that can take the most rules without many
//! in a bucket comes first, then the mask that can take the most of the other rules, and so on. A new rule
//! goes to the most specific layer with space in the rule's bucket, or into a new layer. It is scanned where
//! there are many layers. Buckets hold 16 cells at most, equal cells are one, and hashing is seeded. In the
//! worst case an attacker's rules are all scanned: `cargo bench -p wirespeed-classify --bench hostile_speed`
//! measures that case.
//!
//! A lookup goes through layers by four, and ends when its best rule beats all rules of the layers left. Each
//! slot has the height of its bucket's best rank ([`layout`]), and a lookup skips a bucket below its best
//! rule. GPUs read the same image (`kernels/quilt.cuh`).
//!
//! Measured on one core of a Zen 4 (ClassBench sets and traces, answers held against their truth, batches of
//! 1,024; `cargo bench -p wirespeed-classify --bench quilt_speed`; a shared machine, so take ratios; the
//! better of two runs): M lookups/s in the order of the trace and shuffled; M updates/s of a live table,
//! rules that go and rules that come, 4,096 a call:
//!
//! | | 1 K | 10 K | 100 K |
//! |---|---|---|---|
//! | acl1 | 95, 94; 8.5, 6.4 | 102, 93; 6.7, 5.2 | 87, 79; 4.8, 3.7 |
//! | acl3 | 110, 106; 7.6, 5.7 | 50, 47; 6.2, 4.6 | 54, 48; 4.9, 3.1 |
//! | fw1 | 75, 70; 7.0, 5.5 | 68, 65; 7.0, 4.9 | 57, 48; 4.9, 3.4 |
//! | fw2 | 135, 135; 8.9, 6.9 | 114, 108; 7.0, 5.7 | 94, 87; 4.6, 3.8 |
//! | ipc1 | 109, 85; 7.3, 5.3 | 49, 46; 5.6, 4.3 | 79, 70; 5.0, 3.4 |
//!
//! 193 to 210 bytes a rule with the room for others; building takes 2 to 15 ms, 20 to 120 ms and 0.2 to 1.1 s
//! on two cores.
//!
//! An update finds its cell by a hash and the layer that an index has for it; the cell itself lies in its
//! bucket alone. Each change touches a dozen lines of memory, and these are the cost of updates. So the
//! updates of a call ask for all that they will read a few updates before their turn, stage by stage
//! (`update`). What a call changes is kept by place (`pending`) and written to the patch in order; the rest
//! is read in the table. Rules share the expansion of their ranges. 64 updates at a time go through the rules
//! and the engine, so that the one finds in the cache what the other read. A rule that goes is found by its
//! rank, without a look at cells.
//!
//! Before cells and slots lay in the table alone, an insertion into a live table of 100 K rules took about
//! 290 ns. The set of rules took 50 of them, its cell and what leads to it 70, and its bucket 90 (140 with
//! fw1, where every other rule finds the first layer's bucket full). Its part of the patch took 20, and the
//! two copies of the image, four lines of each, 60.
//!
//! What was tried:
//! - An own copy of slots, cells and ranks for updates: 1.03 to 1.2 times the updates, in twice the memory of
//!   a live table. A hash table for what a call changes: 0.8 times the updates of 10 K rules.
//! - A hash map of whole cells, patches sorted by comparing, rules looked up one after the other and cloned
//!   in full: 0.3 to 0.5 times the updates on 100 K in the same run, 0.6 to 0.95 times on 1 K and 10 K.
//! - Asking for what 32 or 64 changes read stage after stage, without work between: 0.8 times the updates at
//!   100 K. As many lines as can be under way are, and the next stage waits for them.
//! - All updates of a call through the rules first and then through the engine: 0.8 to 0.9 times the updates,
//!   0.7 times those of fw1 of 100 K that go. All memory in huge pages, heap and all, instead of arrays
//!   alone: 1.03 times, so arrays are enough.
//! - Comparing all buckets whatever they hold: 48 M/s instead of 93 on acl1 of 1 K. A tuple matches rules of
//!   five layers there.
//! - One plan for all sets (buckets of 8): 49 M/s instead of 100 on acl1 of 10 K. The best plan is another
//!   for each set.
//! - Eight layers at a time instead of four: 85 M/s instead of 93 on acl1 of 10 K, with the same plan.
//! - Choosing all plans by tuples that match few rules, too: 9 to 15 % slower on traces of fw1 of 1 K and fw2
//!   of 100 K. These tuples decide on the scan alone.
//! - Gathering tuples that the first layers left into chunks of their own: no gain, or a loss of 5 to 10 %.
//!   Building vectors of slots from single loads instead of through memory: no difference.

mod base;
mod buckets;
mod build;
mod cell;
mod crowd;
mod directories;
mod dirty;
mod full;
pub mod hash;
mod kernel;
mod known;
mod layers;
pub mod layout;
mod lookup;
mod pending;
mod plan;
mod scan;
#[cfg(target_arch = "x86_64")]
mod simd;
mod space;
mod step;
mod store;
#[cfg(test)]
mod tests;
mod tune;
mod update;
mod weigh;

pub use build::Quilt;
pub use layout::QuiltTable;
