//! IPv4 lookup over ranked chunks: SAIL's split at 16 and 24 bits, with each run of equal elements stored
//! once.
//!
//! For tables with more next hops than a byte holds: there a flat chunk costs the width of its elements.
//! [`Rank`] is the control plane; [`RankTable`] looks up. [The layout](RankTable) explains the idea.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
//! use wirespeed_rank::Rank;
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(64_512));
//! rib.insert("10.1.2.0/24".parse().unwrap(), NextHop(4_200_000));
//! let (mut engine, table) = Rank::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["10.1.2.3", "10.9.9.9", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(4_200_000), NextHop(64_512), NextHop::NONE]);
//! ```

mod build;
mod chunks;
mod form;
mod kernel;
pub mod layout;
mod lookup;
mod portable;
mod refresh;
mod runs;
mod simd;
mod sink;
mod space;
mod update;

pub use form::Rank;
pub use layout::RankTable;

wirespeed_fib::whole! {
    wirespeed_fib::V4, Rank;
}
