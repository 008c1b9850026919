//! DIR-24-8: one direct table of 2^24 entries for IPv4, and chunks of 256 entries beneath the /24s that have
//! longer prefixes; kept up to date as GALE does.
//!
//! The layout is that of Gupta, Lin and McKeown ("Routing lookups in hardware at memory access speeds",
//! INFOCOM 1998). PacketShader (SIGCOMM 2010) put it on a GPU, and DPDK has it as `rte_fib`. GALE made it
//! updatable, with a length beside each entry (Zhao et al., "Exploiting graphics processors for
//! high-performance IP lookup in software routers", INFOCOM 2011). A lookup is one read for nearly every key
//! and never more than two. The price is memory: at least 16 MB even for few routes, so that the read rarely
//! hits a near cache.
//!
//! Choose it as the baseline of comparisons, or if memory and caches are plentiful. On
//! the real table with 62 next hops `wirespeed-fold` takes a quarter of the memory and is faster for random
//! keys. For keys drawn by prefix, this engine was faster in batches, as long as most of its 16 MB
//! could stay in the last-level cache.
//!
//! [`Dir24`] is the control plane, [`Dir24Table`] looks up, and [`accesses`] counts what an update costs GALE
//! on its device.
//!
//! ```
//! use wirespeed_dir24::Dir24;
//! use wirespeed_fib::{BuildOptions, Engine, Lookup, NextHop, Rib, V4};
//!
//! let mut rib = Rib::<V4>::new();
//! rib.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
//! rib.insert("10.1.2.128/25".parse().unwrap(), NextHop(2));
//! let (mut engine, table) = Dir24::build(&rib, &BuildOptions::default()).unwrap();
//!
//! let keys = ["10.1.2.200", "10.1.2.3", "11.0.0.1"].map(|text| text.parse::<V4>().unwrap());
//! let mut next_hops = [NextHop::NONE; 3];
//! table.lookup_batch(&keys, &mut next_hops);
//! assert_eq!(next_hops, [NextHop(2), NextHop(1), NextHop::NONE]);
//! ```

pub mod accesses;
mod build;
mod kernel;
pub mod layout;
mod lookup;
mod update;

pub use build::Dir24;
pub use layout::Dir24Table;

wirespeed_fib::whole! {
    wirespeed_fib::V4, Dir24;
}
