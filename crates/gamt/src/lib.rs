//! GAMT: a multi-bit trie encoded as a state-jump table (Li et al., "GAMT: A Fast and Scalable IP Lookup
//! Engine for GPU-based Software Routers", ANCS 2013), with the update machinery of its control plane, and
//! its mirror on the CPU, MAMT.
//!
//! A leaf-pushed trie of a few levels. Each unit of a node is one integer: a leaf, or the position in the
//! next level where its child begins. In each level a lookup takes some bits of the address, adds them to its
//! position, and reads a unit, until the unit is a leaf. The number of bits of each level is chosen for the
//! routes ([`strides`]).
//!
//! | engine | a leaf holds | effect |
//! |---|---|---|
//! | [`GamtT`], `gamt` | a next hop (the paper's GAMT_T) | a lookup ends with it |
//! | [`GamtS`], `gamt-s` | the slot of its prefix in a separate table of next hops (GAMT_S) | a prefix changes its next hop by one word |
//!
//! | module | part of the paper |
//! |---|---|
//! | `layout` | 3.1: rules 1 to 3, wider units past their limits; narrower ones of ours |
//! | `lookup`, `simd` | 3.1: Algorithm 1, as MAMT: batches that go level by level, on any number of cores by [`Lookup::par_lookup_batch`](wirespeed_fib::Lookup::par_lookup_batch) |
//! | [`strides`] | 4.2: Algorithm 3, and an objective of ours |
//! | `trie`, `update` | 3.2: the trie that updates are made in; 4.3: lazy deletion, head room, rebuilding |
//! | `slots` | 3.3: the separate table |
//! | `bubbles` | 3.2: the write-bubble table and Algorithm 2 |
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, Strides, V4};
//! use wirespeed_gamt::GamtT;
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.1.2.0/24".parse().unwrap(), NextHop(2));
//! let options = BuildOptions { strides: Strides::Given(vec![16, 8]), ..BuildOptions::default() };
//! let (mut engine, table) = GamtT::<V4>::build(&rib, &options).unwrap();
//!
//! let keys = ["10.1.2.3", "10.9.9.9", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//!
//! let prefix = "10.1.2.0/24".parse().unwrap();
//! rib.insert(prefix, NextHop(3));
//! let patch = engine.update(&table, &rib, &[prefix]).unwrap();
//! assert_eq!(patch.writes().len(), 1); // one bubble
//! ```
//!
//! # What was tried
//!
//! On the real tables of 2026 (62 next hops), on a Zen 4 core with 1 MB of L2 that other programs share; M
//! lookups/s, random · by prefix. Numbers of one line are of one run.
//!
//! With the paper's units of 4 bytes IPv4 takes 10 to 18 MB whatever the strides, and runs at 200 · 190
//! beside 356 · 442 of SAIL_L, with two levels or with three. Asking for units ahead of the gathers changed
//! nothing. Narrow units: 18-6 bits in 5.3 MB at 362 · 421. Their first form, with the lowest bit for a jump,
//! took 23 bytes a prefix for IPv6, the present one 19.8.
//!
//! IPv6, keys of four vectors at a time: 553 · 137; of two 705 · 103, of six 512 · 110, of eight 435 · 122.
//! Two rounds of four vectors in turn, each asking for its next units while the other reads: 380 · 113 beside
//! 564 · 141, without the asking 389 · 106.

pub mod strides;

mod bubbles;
mod build;
mod code;
mod kernel;
pub mod layout;
mod lookup;
mod plan;
mod simd;
mod slots;
mod trie;
mod update;

pub use build::{GamtS, GamtT};
pub use layout::{GamtTable, InTrie, Placement, Separate};
pub use trie::LevelUsage;

wirespeed_fib::whole! {
    wirespeed_fib::V4, GamtT<wirespeed_fib::V4>;
    wirespeed_fib::V6, GamtT<wirespeed_fib::V6>;
    wirespeed_fib::V4, GamtS<wirespeed_fib::V4>;
    wirespeed_fib::V6, GamtS<wirespeed_fib::V6>;
}
