//! SAIL, the splitting approach to IP lookup (Yang et al., SIGCOMM 2014), for IPv4 and IPv6.
//!
//! The idea is two splits: find the length of the longest matching prefix first and its next hop then, and
//! treat prefixes of up to 24 bits apart from longer prefixes. The variants differ in the levels that
//! prefixes are pushed to. Each is a control plane with a table that looks up.
//!
//! | | levels | families | reads a lookup, to /24 | image, real IPv4 table | an update, on-chip + off-chip | when |
//! |---|---|---|---|---|---|---|
//! | [`SailL`] | 16, 24, 32, … | both | 1 or 2 | 15 MB | 0.004 + 1.10, at most 33 + 190 | always, on a CPU or a GPU |
//! | [`SailU`] | 6, 12, 18, 24 | IPv4 | 2 to 5 | 19 MB | 0.08 + 0.95, at most 1 + 4 | where the time of one update must be bounded |
//! | [`SailB`] | 0, 1, 2 … 24 | IPv4 | 2 to 26 | 37 MB | 0.11 + 0.95, at most 1 + 1 | to compare: a stage a level, as in hardware |
//!
//! Updates are in memory accesses of 64 bits, as [`accesses`] counts them: means and the worst of 717,776
//! changes of a day, one at a time. (No engine bounds the off-chip cost of an update of a short prefix with
//! prefixes longer than /24 beneath it, which inherit its next hop.) SAIL_U and SAIL_B keep bit maps of a
//! fixed size, 2.03 and 4 MB, on the chip of the paper's machine, SAIL_L 2.13 MB at most: see [`on_chip`].
//!
//! Random · prefix traffic of the real table of 2026 ran at 609 · 493 million lookups a second in SAIL_L, 109
//! · 149 in SAIL_U and 33 · 81 in SAIL_B. This was one run on a core of Zen 4 with 1 MB of L2.
//!
//! [`SailM`] (section 4.3) is SAIL_L for the FIBs of any number of virtual routers in one [`SailMTable`];
//! [`LiveFibs`] keeps it up to date beside its readers.
//!
//! ```
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
//! use wirespeed_sail::SailL;
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.1.2.0/24".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = <SailL as Engine<V4>>::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["10.1.2.3", "10.9.9.9", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```

pub mod accesses;
mod kernel;
pub mod on_chip;
pub mod sail_b;
pub mod sail_l;
pub mod sail_m;

pub use sail_b::{EveryLength, EverySixth, Levels, SailB, SailBTable, SailU, SailUTable, Split, SplitTable};
pub use sail_l::{SailL, SailLTable};
pub use sail_m::{FibId, Fibs, FibsError, LiveFibs, SailM, SailMTable};

wirespeed_fib::whole! {
    wirespeed_fib::V4, SailB;
    wirespeed_fib::V4, SailU;
    wirespeed_fib::V4, SailL;
    wirespeed_fib::V6, SailL;
    wirespeed_fib::V4, SailM;
    wirespeed_fib::V6, SailM;
}
