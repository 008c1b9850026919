//! IP and name lookup and packet classification at the speed of the wire: the one dependency of a network
//! service.
//!
//! A table maps prefixes to indexes ([`NextHop`]). [`Labels`] map an index to a value of the service's own
//! type. One owner changes a table. Any number of readers look up at the same time, and never wait.
//!
//! ```text
//! routes, files, images ──► builder ──► Ipv4Table / Ipv6Table / IpTable      one writer: apply, insert, remove, replace, save
//!                                           └─ reader() ──► Reader           shared by threads: lookup, lookup_batch, enter
//! values ──► Labels::intern ──► index ─ ─ ─ in the table ─ ─ ─► index ──► Labels::get ──► &value
//! ```
//!
//! # Flow enrichment
//!
//! The program looks up both ends of each flow in batches, and attaches labels. `examples/flow_enrichment.rs`
//! is a complete program.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! struct Flow {
//!     from: IpAddr,
//!     to: IpAddr,
//!     bytes: u64,
//! }
//!
//! #[derive(Debug, PartialEq, Eq, Hash)]
//! struct Network {
//!     asn: u32,
//!     name: &'static str,
//! }
//!
//! let labels = Labels::new();
//! let table = IpTable::builder()
//!     .labelled_routes(&labels, [
//!         ("192.0.2.0/24".parse::<IpNet>()?, Network { asn: 64496, name: "eyeballs" }),
//!         ("198.51.100.0/24".parse()?, Network { asn: 64497, name: "cloud" }),
//!         ("2001:db8::/32".parse()?, Network { asn: 64497, name: "cloud" }),
//!     ])
//!     .build()?;
//! let reader = table.reader();
//!
//! let flows = [
//!     Flow { from: "192.0.2.7".parse()?, to: "198.51.100.9".parse()?, bytes: 1500 },
//!     Flow { from: "2001:db8::1".parse()?, to: "2001:db9::1".parse()?, bytes: 40 },
//! ];
//! let mut lines = Vec::new();
//! for batch in flows.chunks(1024) {
//!     let addresses: Vec<IpAddr> = batch.iter().flat_map(|flow| [flow.from, flow.to]).collect();
//!     let mut found = vec![NextHop::NONE; addresses.len()];
//!     let known = labels.enter(); // before the lookup: then what it finds resolves
//!     reader.lookup_batch(&addresses, &mut found); // all of a batch in one state of the table
//!     for (flow, ends) in batch.iter().zip(found.chunks_exact(2)) {
//!         let name = |end: NextHop| known.get(end).map_or("unknown", |network| network.name);
//!         lines.push(format!("{} -> {}: {}", name(ends[0]), name(ends[1]), flow.bytes));
//!     }
//! }
//! assert_eq!(lines, ["eyeballs -> cloud: 1500", "cloud -> unknown: 40"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A table that changes
//!
//! One thread takes route updates from a channel. The workers look up with clones of one reader.
//! `examples/live_table.rs` is a complete program. An [`UpdateBuffer`] collects updates that come singly, for
//! a limited time.
//!
//! ```
//! use std::sync::mpsc;
//! use std::thread;
//!
//! use wirespeed::prelude::*;
//!
//! let mut table = Ipv4Table::builder().routes([("0.0.0.0/0".parse::<Ipv4Net>()?, NextHop(1))]).build()?;
//! let (updates, incoming) = mpsc::channel();
//! let reader = table.reader();
//!
//! let writer = thread::spawn(move || {
//!     while let Ok(first) = incoming.recv() {
//!         // All that is waiting at once: cheaper, and readers see them together.
//!         let updates: Vec<Update<V4>> = std::iter::once(first).chain(incoming.try_iter()).collect();
//!         table.apply(&updates)?;
//!     }
//!     Ok::<_, wirespeed::Error>(table)
//! });
//! let workers: Vec<_> = (0..2)
//!     .map(|_| {
//!         let reader = reader.clone();
//!         thread::spawn(move || {
//!             let keys = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 255, 0, 1)];
//!             let mut found = [NextHop::NONE; 2];
//!             while found[0] != NextHop(2) {
//!                 reader.lookup_batch(&keys, &mut found);
//!                 assert_eq!(found[0], found[1]); // never half an update
//!             }
//!         })
//!     })
//!     .collect();
//!
//! updates.send(Update::announce("10.0.0.0/8".parse()?, NextHop(2)))?;
//! workers.into_iter().for_each(|worker| worker.join().unwrap());
//! drop(updates);
//! assert_eq!(writer.join().unwrap()?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From a file, and from an image
//!
//! Builders read routes from all formats of [`fib::read`]. A compiled table can be saved as an image. A
//! service that opens an image starts at once.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! # let dir = tempfile::tempdir()?;
//! # let (routes, image) = (dir.path().join("routes.txt"), dir.path().join("routes.img"));
//! # std::fs::write(&routes, "192.0.2.0/24 64496\n198.51.100.0/24 64497\n")?;
//! let labels = Labels::<u32>::new(); // the origin AS; Labels<String> takes any text
//! let table = Ipv4Table::builder().file(&routes, &labels).build()?;
//! let found = table.reader().lookup(Ipv4Addr::new(198, 51, 100, 9));
//! assert_eq!(labels.get(found).as_deref(), Some(&64497));
//!
//! table.save_labelled(&image, &labels)?;
//! let (reader, labels) = (Ipv4Reader::open(&image)?, Labels::<u32>::open(&image)?);
//! assert_eq!(labels.get(reader.lookup(Ipv4Addr::new(192, 0, 2, 1))).as_deref(), Some(&64496));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Many tables
//!
//! [`Vrfs`] are thousands of tables by number. A batch has keys of any of them.
//! `examples/collector.rs` is a flow collector with 200 of them, in 80 lines.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! let net = "10.0.0.0/8".parse::<IpNet>()?;
//! let mut vrfs = Vrfs::builder().vrf(VrfId(1), [(net, NextHop(7))]).vrf(VrfId(2), [(net, NextHop(8))]).build()?;
//! vrfs.set(VrfId(3), [(net, NextHop(9))])?; // live
//! let mut found = [NextHop::NONE; 2];
//! vrfs.reader().lookup_batch(&[VrfId(3), VrfId(1)], &["10.1.2.3".parse()?; 2], &mut found);
//! assert_eq!(found, [NextHop(9), NextHop(7)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Names
//!
//! NDN names, domains and URLs are looked up by their components: [`names`] has a forwarder's FIB and a
//! filter as examples.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! let table = NameTable::builder().names([(NameBuf::from_domain(b"parc.com")?, NextHop(1))]).build()?;
//! assert_eq!(table.reader().lookup(NameBuf::from_domain(b"www.parc.com")?), NextHop(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Packets
//!
//! Rules match header fields by masks, ranges and priorities, as in firewalls and switches. [`classify`] has
//! an access list in a proxy and an OpenFlow-like switch as examples.
//!
//! ```
//! use wirespeed::prelude::*;
//!
//! let rules: [Rule<Ipv4Tuple>; 2] = ["dport=443 proto=tcp action=1".parse()?, "src=10.0.0.0/8 action=2".parse()?];
//! let reader = Classifier::builder().rules(rules).build()?.reader();
//! let packet = "src=10.1.2.3 dst=192.0.2.1 sport=40000 dport=80 proto=tcp".parse()?;
//! assert_eq!(reader.find(&packet).map(|found| found.action), Some(NextHop(2)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On a GPU
//!
//! One call of the builder brings a table to GPUs: [`Device::Gpu`] or [`Device::Auto`]. [`Device::Auto`]
//! sends each batch to the CPU or to a GPU, whichever answers sooner, and stays on the CPU if no GPU is
//! usable. Large batches, and several batches under way at once ([`Reader::pipeline`]), make the best use of
//! a GPU. A thread that gets its keys one at a time fills [`Batches`].
//!
//! ```
//! use std::time::Duration;
//!
//! use wirespeed::prelude::*;
//!
//! let mut table = Ipv4Table::builder()
//!     .routes([("10.0.0.0/8".parse::<Ipv4Net>()?, NextHop(1))])
//!     .device(Device::Auto)
//!     .latency_bound(Duration::from_micros(100))
//!     .build()?;
//! let reader = table.reader();
//! let addresses: Vec<V4> = (0..1 << 16).map(|n| V4(0x0a00_0000 | n)).collect();
//! let mut found = vec![NextHop::NONE; addresses.len()];
//! reader.lookup_batch(&addresses, &mut found);
//! assert!(found.iter().all(|&next_hop| next_hop == NextHop(1)));
//!
//! table.insert("10.0.128.0/17".parse::<Ipv4Net>()?, NextHop(2))?; // on the GPUs too
//! reader.lookup_batch(&addresses, &mut found);
//! assert_eq!(found[0x8000], NextHop(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Reader::on_device`] is for keys that are in the GPU's memory already: [`on_device`] has the rules.
//!
//! # Features
//!
//! | feature | what it adds | by default |
//! |---|---|---|
//! | `text` | files of routes: `Builder::file` | yes |
//! | `names` | tables of names, with their readers, and a pool of threads that builds them: `NameTable` | yes |
//! | `rules` | packet classification, with the readers of rules, and a pool of threads that builds: `Classifier` | yes |
//! | `gpu` | lookups on NVIDIA GPUs, also of keys that are there already: `on_device`; the driver is opened at run time | yes |
//! | `parallel` | batches on every core: `par_lookup_batch` | yes |
//! | `papers` | engines that `auto` never picks, most of them of papers: SAIL, GAMT, DIR-24-8, ATA, MATA, STT, tuple and Bloom search | no |
//! | `compression` | compressed files, recognised by magic number. `gzip`, `bzip2` and `zstd` are also features of their own; `zstd` needs a C compiler | no |
//! | `mmdb` | routes from MaxMind DB files | no |
//! | `mrt` | routes and updates in MRT, read and written | no |
//! | `capture` | traces from pcap and pcapng | no |
//! | `serde` | labels of any `serde` type in images, as JSON: `Labels::open_json` | no |
//! | `synth` | synthetic tables, updates and traces: `fib::synth`, `names::generate`, `classify::generate` | no |
//! | `full` | all of them | no |
//!
//! A feature adds code and changes none: what works in one build works alike in a build with more features,
//! and `auto` picks the same engine. Without a feature its methods are absent, and its files, engines and
//! devices are refused with an error that names the feature. Without any feature there are IPv4 and IPv6
//! tables on the CPU, live and as images: 27 packages, no C compiler, no CUDA.
//!
//! ```toml
//! [dependencies]
//! wirespeed = { path = "../wirespeed/crates/wirespeed", default-features = false, features = ["text"] }
//! ```
//!
//! # What is guaranteed
//!
//! - A lookup gives the longest match. Every engine is tested against an oracle.
//! - A batch sees one state of a family's table. Lookups through one guard see one state, too. Updates that
//!   are applied together become visible together. A batch that goes to a GPU in parts sees one state in each
//!   part ([`Builder::device`]).
//! - A packet gets the rule of the highest priority, and among equals the first. Its action comes from the
//!   same state of the rules.
//! - An index that a lookup returned stands for the value that it was interned for, if the labels were
//!   entered before the lookup: see [`Labels`].
//!
//! # What it costs
//!
//! Looking a batch up makes one virtual call, whatever the batch's size, because the engine is chosen at run
//! time. A single lookup makes one, too; `examples/single_lookups.rs` measures both.

// Users print what they get, and keep it in types of their own that derive `Debug`. An answer that nobody
// reads is a mistake.
#![warn(missing_debug_implementations, clippy::must_use_candidate)]

mod batches;
mod builder;
#[cfg(feature = "rules")]
pub mod classify;
mod common;
#[cfg(all(feature = "names", feature = "rules", feature = "text"))]
pub mod content;
pub mod device;
pub mod engine;
mod error;
#[cfg(not(feature = "gpu"))]
#[allow(clippy::must_use_candidate)] // like the crate in whose place it is
pub mod gpu;
pub mod image_file;
mod ip;
mod key;
mod labels;
#[cfg(any(feature = "text", feature = "names", feature = "rules"))]
mod load;
mod match_ids;
mod memory;
mod methods;
#[cfg(feature = "names")]
pub mod names;
#[cfg(feature = "gpu")]
pub mod on_device;
mod owned_keys;
mod pipeline;
mod reader;
mod reloader;
mod replace;
mod route_list;
mod routes;
mod settings;
mod sync;
mod table;
mod taken_apart;
#[cfg_attr(not(feature = "rules"), allow(dead_code))] // only rules change hands
mod turnover;
mod update_buffer;
mod uses;
mod vrfs;

pub use batches::{Answers, Asked, Batch, Batches, Full, Numbers, Results, Submitted};
pub use builder::Builder;
#[cfg(feature = "rules")]
pub use classify::{Classifier, RuleReader};
pub use device::Device;
pub use error::Error;
pub use ip::{IpBuilder, IpGuard, IpReader, IpTable};
pub use key::Key;
pub use labels::{LabelRef, Labels, LabelsGuard};
#[cfg(feature = "names")]
pub use names::{NameReader, NameTable};
#[cfg(feature = "gpu")]
pub use on_device::DeviceTable;
pub use pipeline::Pipeline;
pub use reader::{Guard, Reader};
pub use reloader::Reloader;
pub use routes::Routes;
pub use table::{Ipv4Reader, Ipv4Table, Ipv6Reader, Ipv6Table, Table};
pub use update_buffer::UpdateBuffer;
pub use vrfs::{VrfGuard, VrfReader, VrfRoutes, VrfUpdate, Vrfs, VrfsBuilder};

pub use wirespeed_fib::{
    Address, AnyUpdate, Applied, Family, Fib, HostBits, NextHop, Prefix, Rib, TooManyNextHops, Update, V4, V6,
};

pub use wirespeed_forest::FibId as VrfId;

pub use gpu::GpuError;
pub use gpu::dispatch::{Counts, Reasons};
pub use gpu::runtime::Fleet;

pub use wirespeed_fib as fib;
#[cfg(feature = "gpu")]
pub use wirespeed_gpu as gpu;
pub use wirespeed_image as image;
#[cfg(feature = "names")]
pub use wirespeed_namelookup as namelookup;

/// Types that most services use, with the addresses and prefixes of the standard library and `ipnet`.
pub mod prelude {
    pub use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    pub use ipnet::{IpNet, Ipv4Net, Ipv6Net};

    #[cfg(feature = "rules")]
    pub use crate::classify::{
        Classifier, Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Pattern, Rule, RuleMatch, RuleNumber, RuleReader,
        RuleSet, RuleUpdate, Tuple,
    };
    #[cfg(feature = "names")]
    pub use crate::names::{Match, Name, NameBatch, NameBuf, NameReader, NameTable, NameUpdate};
    pub use crate::{
        AnyUpdate, Device, IpReader, IpTable, Ipv4Reader, Ipv4Table, Ipv6Reader, Ipv6Table, Labels, NextHop,
        Update, V4, V6, VrfId, VrfReader, VrfUpdate, Vrfs,
    };
}

/// Guides for whole services. Each program is a test.
pub mod guide {
    #[doc = include_str!("guide/sharing.md")]
    pub mod sharing {}
}

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
