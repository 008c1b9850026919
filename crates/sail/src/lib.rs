//! SAIL, the splitting approach to IP lookup (Yang et al., SIGCOMM 2014), for IPv4 and IPv6.
//!
//! [`SailL`] is the lookup-oriented variant (section 4.2). It is the control plane; [`SailLTable`] looks up.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lpm, NextHop, Rib, V4};
//! use wirespeed_sail::SailL;
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.1.2.0/24".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = SailL::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["10.1.2.3", "10.9.9.9", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```

pub mod accesses;
pub mod on_chip;
mod sail_b;
mod sail_l;

pub use sail_b::{EveryLength, EverySixth, Levels, SailB, SailBTable, SailU, SailUTable, Split, SplitTable};
pub use sail_l::{SailL, SailLTable};

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
