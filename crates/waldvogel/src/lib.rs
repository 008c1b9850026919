//! Binary search on prefix lengths over hash tables (Waldvogel, Varghese, Turner and Plattner, "Scalable High Speed
//! IP Routing Lookups", SIGCOMM 1997), for IPv4 and for IPv6 to the full 128 bits; PacketShader looks up IPv6 this way.
//!
//! Prefixes of one length are found by hashing. Where a search for one length finds something, a route or the marker
//! of longer ones, it goes on with longer lengths, else with shorter ones; a marker has the best match so far, so
//! that no search goes back. Here every region of the first bits and every key has its own order of lengths, a rope,
//! chosen by what is beneath it (the paper's mutating search, its sections 5.1 to 5.3), and buckets are cache lines,
//! compared at once.
//!
//! [`Waldvogel`] is the control plane, [`WaldvogelTable`] looks up.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lpm, NextHop, Rib, V6};
//! use wirespeed_waldvogel::Waldvogel;
//!
//! let mut rib = Rib::<V6>::new();
//! rib.insert("2001:db8::/32".parse().unwrap(), NextHop(1));
//! rib.insert("2001:db8:1::/48".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = Waldvogel::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["2001:db8:1::1", "2001:db8:2::1", "::1"].map(|text| text.parse::<V6>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```
//!
//! # When to choose it
//!
//! For IPv6 tables with many scattered long prefixes, and where memory must follow the number of routes whatever
//! their lengths: a key takes 8 bytes and a value 4, a table of the real 246,175 IPv6 prefixes 24 bytes a prefix
//! with two fifths of its room free. `wirespeed-fold` is faster on real tables.
//!
//! # How fast it is
//!
//! In one quiet run on a Zen 4 core, the real IPv6 table of 2026 (62 next hops), batches of 1,024 of 4 million
//! distinct keys: 494 M/s for random keys, 63 M/s for keys drawn by prefix, beside 373 and 233 of FOLD, and 139 and
//! 71 of DPDK's `rte_fib6` with AVX-512: 3.6 times the last for random keys, which the arrays decide, and 0.9 times
//! it by prefix. The build takes 0.09 s, updates of the real day 3.1 M/s in calls of 256.
//!
//! Where the 57 cycles of a key drawn by prefix go, with all keys in the caches: 21 for the arrays, the ropes and
//! the list of the first try; 16 to compare a bucket and 6 to work out the next try; 15 for the 0.5 tries after the
//! first, which are the tail of a block. Memory is not what decides: 4 million keys are as fast as a thousand.
//!
//! # What was tried
//!
//! On a Zen 4 core that other programs share, on the real IPv6 table of 2026, batches of 1,024 of 4 million distinct
//! keys; FOLD in the same rounds gives the scale.
//!
//! **Tries a lookup** of keys drawn by prefix, counted: halving the lengths from bit 24 on 2.25, the weighted half
//! 1.65, the length with the most routes 1.63, the best of all trees 0.6 % below that where it was worked out
//! (beneath bit 32). From bit 16 on 1.99, from bit 20 1.85, from bit 28 1.48; all the longest first from bit 24:
//! 2.89. Markers: 11 thousand of 257 thousand keys; by halving 40 thousand.
//!
//! **The second bucket** at once, by a branch, instead of as one more try of the list: 60 beside 70 M/s for keys drawn
//! by prefix from a set that fits the caches.
//! **Conditions by branches** instead of selections: 39 beside 59 M/s by prefix.
//! **One scalar pass** a try, with the comparison alone in a vector: 51 beside 70 M/s from the caches. Noting first
//! who has a next try and moving the others after that: 49; working out words and buckets in a pass of their own: 64.
//! **Blocks** of 64, 128 and 256 keys: 43, 45 and 48 M/s by prefix. Buckets half full instead of three fifths: no
//! faster.

mod buckets;
mod build;
mod changes;
mod form;
mod hash;
mod keys;
mod layout;
mod lookup;
mod rope;
mod simd;
mod slots;
mod tree;
mod update;
mod value;

pub use build::Waldvogel;
pub use layout::WaldvogelTable;
