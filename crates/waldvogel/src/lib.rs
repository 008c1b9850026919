//! Binary search on prefix lengths over hash tables (Waldvogel, Varghese, Turner and Plattner, "Scalable High
//! Speed IP Routing Lookups", SIGCOMM 1997), for IPv4 and for IPv6 to the full 128 bits; PacketShader looks
//! up IPv6 this way.
//!
//! Prefixes of one length are found by hashing. If a search for one length finds a route or the marker of
//! longer routes, it goes on with longer lengths, else with shorter lengths. A marker has the best match so
//! far, so that no search goes back. In this engine every region of the first bits and every key has its own
//! order of lengths, a rope, chosen for the routes beneath it. This is the paper's mutating search (sections
//! 5.1 to 5.3). A key of up to 48 bits can be in one slot only, so that each try reads at most two words.
//!
//! [`Waldvogel`] is the control plane, [`WaldvogelTable`] looks up.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V6};
//! use wirespeed_waldvogel::Waldvogel;
//!
//! let mut rib = Rib::<V6>::new();
//! rib.insert("2001:db8::/32".parse().unwrap(), NextHop(1));
//! rib.insert("2001:db8:1::/48".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = Waldvogel::<V6>::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["2001:db8:1::1", "2001:db8:2::1", "::1"].map(|text| text.parse::<V6>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```
//!
//! # When to choose it
//!
//! For tables of scattered prefixes, such as host routes all over the address space, and if memory must
//! follow the number of routes of any length: 20 bytes a prefix for the real 246,175 IPv6 prefixes,
//! half of the capacity free, and 26 for each prefix of more than 48 bits. No table is below 2.5 MB, as slots
//! are 2^18 at least. `wirespeed-fold` is faster on real tables.
//!
//! Keys of more than 48 bits are in buckets of a cache line, three each, five sixths of the capacity taken
//! when a table is built. A batch looks for 64 of them at a time, with all their lines on the way. The engine
//! keeps no copy of the buckets: an update reads them in a live copy of the table
//! ([`Engine::patch`](wirespeed_fib::Engine::patch)).
//!
//! # How fast it is
//!
//! On a Zen 4 core, the real IPv6 table of 2026 (62 next hops), batches of 1,024 of 4 million distinct keys,
//! in one run, random · by prefix: 511 · 127 M/s beside 371 · 224 of FOLD and 125 · 85 of DPDK's `rte_fib6`
//! with AVX-512, so 4.1 and 1.5 times the last. 143 M/s by prefix with a million distinct keys, 176 with a
//! thousand over and over. The build takes 0.12 s, 1.3 s for the real IPv4 table; 3.2 million updates a
//! second of the real trace.
//!
//! Ablations in a prototype of the lookup, a thousand keys over and over: of 25 cycles a key the first arrays
//! and the first try took 17.5, of which 2.9 were a gather of what to do after a try in vain and 2.0 the
//! gather of pilots. The first of these gathers is now done for the keys that need it alone, when they are
//! tried again: 141 to 176 M/s from the caches, 110 to 140 M/s with a million distinct keys.
//!
//! # What was tried
//!
//! **Tries a lookup** of keys drawn by prefix, counted: halving the lengths from bit 24 on 2.25, the weighted
//! half 1.65, the length with the most routes 1.63, the best of all trees 0.6 % below that where it was
//! worked out (beneath bit 32). From bit 16 on 1.99, from bit 20 1.85, from bit 28 1.48; all the longest
//! first from bit 24: 2.89. Markers: 11 thousand of 257 thousand keys; by halving 40 thousand.
//!
//! **Buckets of a cache line**, five keys each, two choices: the keys that are not done in a list, eight a
//! vector, each compared with its bucket by itself. 63 M/s by prefix, 57 cycles a key: 21 for the arrays and
//! the list, 16 to compare a bucket, 6 to work out the next try, 15 for the tries after the first. Second
//! buckets at once, by a branch: 60 beside 70 M/s from the caches. One scalar pass a try: 51 beside 70.
//!
//! **Vectors of a round**: two 173 and 117 M/s (a thousand keys over and over, a million distinct ones), four
//! 174 and 137, eight 167 and 125. **Results** stored one by one instead of scattered: no faster.

mod buckets;
mod build;
mod form;
mod hash;
mod kernel;
mod keys;
pub mod layout;
mod lookup;
mod probe;
mod rope;
mod sections;
mod simd;
mod slots;
mod tree;
mod update;
mod value;

pub use build::Waldvogel;
pub use layout::WaldvogelTable;

wirespeed_fib::whole! {
    wirespeed_fib::V4, Waldvogel<wirespeed_fib::V4>;
    wirespeed_fib::V6, Waldvogel<wirespeed_fib::V6>;
}
