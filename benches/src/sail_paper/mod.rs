//! The tables and figures of the SAIL paper (Yang et al., "Guarantee IP lookup performance with FIB explosion", SIGCOMM
//! 2014) that a CPU can show, computed or measured anew, each with the paper's own figures beside it.
//!
//! | here | in the paper |
//! |---|---|
//! | [`lookup`] | Figures 9 and 10: lookup rates of SAIL_L, Lulea, Tree Bitmap and LC-trie |
//! | [`update`] | Figure 11: memory accesses of an update |
//! | [`memory`] | Figures 6 and 7: on-chip memory of growing tables; section 7: of IPv6 tables |
//!
//! `cargo xtask sail-paper` makes them all in about a minute and writes each as a CSV file
//! `benches/record/MACHINE/DATE-sail-paper-….csv`; with `-- --dry` it prints only. The tables are real where they are
//! there, synthetic ones of the same size otherwise.
//!
//! The rivals: Lulea and PBF are written here, from their papers ([`rivals::Lulea`](crate::rivals::Lulea),
//! [`rivals::Pbf`](crate::rivals::Pbf)). Tree Bitmap and LC-trie are crates, `ip_network_table-deps-treebitmap` and
//! `iptrie`. Both are sound: all their answers are right for 4 million random addresses and 4 million drawn from
//! prefixes on each table, and a run leaves out, with a word, whoever answers a single one wrongly. Two things to know
//! when ratios are read: `iptrie`'s trie skips bits that all prefixes share and keeps its leaves in one array, which is much
//! faster than the LC-trie of 1999 that the paper has; and `treebitmap` hands back the prefix with the value.
//!
//! Figure 8 needs the traffic of a router in China and is not here; Figure 12 is about SAIL_M, Figures 13 and 14 about a GPU,
//! Figure 15 about a processor of 36 cores.

pub mod lookup;
pub mod memory;
pub mod update;
