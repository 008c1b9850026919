//! The tables and figures of the SAIL paper (Yang et al., "Guarantee IP lookup performance with FIB
//! explosion", SIGCOMM 2014) that a CPU can show, computed or measured anew, each with the paper's own
//! figures beside it.
//!
//! | here | in the paper |
//! |---|---|
//! | [`lookup`] | Figures 9 and 10: lookup rates of SAIL_L, Lulea, Tree Bitmap and LC-trie |
//! | [`update`] | Figure 11: memory accesses of an update |
//! | [`memory`] | Figures 6 and 7: on-chip memory of growing tables; section 7: of IPv6 tables |
//!
//! ```text
//! cargo xtask sail-paper                          all, in one or two minutes; writes benches/record/MACHINE/DATE-sail-paper-….csv
//! cargo xtask sail-paper -- --dry                 prints, and writes nothing
//! cargo xtask sail-paper -- --figures updates     one of lookups, updates, memory, ipv6
//! ```
//!
//! The tables are the real ones where they are there (today's and that of 2010, which is nearest to the
//! paper's own), synthetic ones of today's size otherwise.
//!
//! The rivals: Lulea and PBF are written here, from their papers ([`rivals::Lulea`](crate::rivals::Lulea),
//! [`rivals::Pbf`](crate::rivals::Pbf)). Tree Bitmap and LC-trie are crates,
//! `ip_network_table-deps-treebitmap` and `iptrie`. Both are sound: each answers 4 million random addresses
//! and 4 million drawn from prefixes without a fault on every real IPv4 table. A run checks this anew and
//! leaves out, with a word, whoever answers a single one wrongly.
//!
//! The paper looks up one key a call. That is the `single` rows, beside which its ratios stand; `batch` rows
//! are SAIL_L as it is meant to be used today, and a loop for the rivals. Ratios of single lookups are not
//! the paper's any more: its CPU had 0.5 MB of L2 and 4 MB of L3, in today's Lulea's 2 MB lie in L2 for the
//! most part, SAIL_L's 8 MB for level 24 in L3.
//!
//! Figure 8 needs the traffic of a router in China and is not here; Figure 12 is about SAIL_M, Figures 13 and
//! 14 about a GPU, Figure 15 about a processor of 36 cores.

pub mod lookup;
pub mod memory;
pub mod update;
