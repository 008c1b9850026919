//! FOLD: SAIL's splitting by levels (Yang et al., SIGCOMM 2014, section 3), with equal chunks folded into
//! one, for IPv4 and IPv6.
//!
//! SAIL_L gives every /16 with longer prefixes a chunk of its own. Many chunks are equal: a network announces
//! its space in the same pieces to the same next hop again and again, and in a forwarding table only next
//! hops differ. FOLD stores equal chunks once, like the nodes of a folded trie (Rétvári et al., "Compressing
//! IP forwarding tables", SIGCOMM 2013), and levels are cut where chunks fold best. A slot without longer
//! prefixes has a chunk of one next hop, so that a lookup is the same few reads for every key, with no
//! branch.
//!
//! [`FoldV4`] and [`FoldV6`] are the control planes, [`FoldTableV4`] and [`FoldTableV6`] look up. [`FoldHot`]
//! and [`FoldHotTable`] are IPv4 for a GPU: cut at bit 16, so that a first level of 128 KB fits the shared
//! memory of a block of threads, and beside it *hot blocks*, which answer there for the parts of chunks that
//! most keys fall into.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
//! use wirespeed_fold::FoldV4;
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.1.2.0/24".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = FoldV4::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["10.1.2.3", "10.9.9.9", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```
//!
//! # What was tried
//!
//! Figures are M lookups/s for random keys and keys drawn by prefix, on a Zen 4 core with 1 MB of L2 that
//! other programs share. The tables are the real ones of 2026 (62 next hops), and batches are 1,024 of 4
//! million distinct keys. Numbers of one paragraph are of one run; between runs they differ by a third.
//!
//! **IPv4.** Chunks of 256, 64 and 32 elements (18,127, 42,298 and 58,664 of them; 4.6, 2.7 and 1.9 MB): 701
//! · 597, 756 · 644 and 760 · 739. 32 elements leave the numbers of chunks too little room in 16 bits, so it
//! is 64. Prefetching the keys 512 ahead: 682 · 646 without, 778 · 687 with it. Four vectors at a time
//! instead of eight: 493 · 536 beside 726 · 672. Prefetching the elements of chunks between the levels: 636 ·
//! 566 beside 756 · 644. Reading both levels with scalar loads in two passes: 757 · 592 beside 804 · 651 with
//! gathers. AVX2, eight keys a gather, is no slower than AVX-512: 695 · 587 beside 681 · 611. Runs instead of
//! elements, found by popcount (1.6 MB in all): 499 · 433 beside 804 · 651; it is what `wirespeed-rank` does
//! for next hops that need more than a byte. A row of four numbers of 64-element chunks for each /16 instead
//! of 2^18 numbers: 426 · 371 beside 594 · 496, both scalar.
//!
//! **IPv6**, by prefix only. A sorted line of 16 boundaries, compared at once, as nodes of a B-tree below bit
//! 32 (0.7 MB): 222 M/s; after bit 32 steps of 8 and 8 bits 236, of 5, 5 and 6 bits 267, of four times 4
//! bits 259. Steps of 8 and 8 read less and were the fastest as long as all fitted the caches (532 against
//! 434 M/s for 1,024 keys over and over). Four vectors at a time: 204–214 M/s, eight: 181–193.
//!
//! **IPv6 tables that grow**, on a Zen 3 core (AVX2, 512 KB of L2) that other programs used at the same time:
//! synthetic tables, 2 million distinct keys by prefix, in turns; `cargo bench -p wirespeed-fold --bench
//! growth` counts and measures. A lookup makes 3.6 reads, whatever the size. The first is of a few lines.
//! What keys touch of the others doubles from 250,000 to 1,000,000 prefixes: 3.7 MB (steps of 12, 5, 5 and 6
//! bits: 1.2, 0.7, 0.8 and 1.0) and 7.6 MB (1.7, 1.2, 1.8 and 3.0). So it is waiting for memory that grows.
//! 128 keys together, whose elements are prefetched step by step, beside 32 keys without prefetches: 0.98 on
//! the real table, 1.0 at 250,000 prefixes, 1.0–1.1 at 500,000, 1.3–1.5 at 1,000,000 and 1.6 at 2,000,000; on
//! quiet minutes 0.9 at 250,000. That is why tables from 13 MiB on are looked up so, with AVX2; with AVX-512
//! it was not measured. 64 keys together without prefetches: 1.2–1.4 at 1,000,000 prefixes; with prefetches
//! 1.1–1.3; 256 keys with prefetches 1.05 of 128. Four times 4 bits after bit 32, where lengths of prefixes
//! tend to end: keys touch 5.1 MB instead of 7.6, with 3.9 reads, for 0.9–1.0 of the rate. Steps of 8 and 8
//! bits: 10.9 MB with 3.1 reads.

pub mod hot;
pub mod v4;
pub mod v6;

pub use hot::{FoldHot, FoldHotTable};
pub use v4::{FoldTableV4, FoldV4};
pub use v6::{FoldTableV6, FoldV6};

wirespeed_fib::whole! {
    wirespeed_fib::V4, FoldV4;
    wirespeed_fib::V4, FoldHot;
    wirespeed_fib::V6, FoldV6;
}
