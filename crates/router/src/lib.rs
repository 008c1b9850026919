//! A router of packets: frames in chunks, looked up in batches on the CPU or on a GPU.
//!
//! ```text
//! Port ─ receive ─► Chunk ─ pre_shade ─► batches of keys ─ CPU or GPU ─► post_shade ─► Verdict ─► Port, kernel, or dropped
//!                     └── Frame: a ticket for a buffer of the worker's Memory; the bytes stay where they are
//! ```
//!
//! A [`Worker`] is a thread with its own memory, one queue of each device, and an application. [`run`] starts
//! several. An [`App`] reads chunks and decides; [`apps`] has those for IP, access lists, IPsec tunnels and
//! NDN names. [`io`] has the ports: interfaces of Linux, captures, and memory. On Linux [`control`] follows
//! the kernel's routes, a table for each VRF, or takes those of other sources.
//!
//! The three steps are those of PacketShader (Han et al., SIGCOMM 2010). Each frame that comes in is sent,
//! dropped for a counted [`Reason`], taken by the operating system, or still queued: [`Stats::is_whole`].
//!
//! # A capture through a table
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use wirespeed::prelude::*;
//! use wirespeed_router::apps::Ip;
//! use wirespeed_router::apps::ip::Owns;
//! use wirespeed_router::io::Port;
//! use wirespeed_router::io::capture::{CapturePort, CaptureWriter};
//! use wirespeed_router::{Hop, Mac, Memory, PortId, Published, Route, Settings, Worker};
//!
//! let routes = Labels::new();
//! let neighbour = Hop::new(PortId(1), Mac([2, 0, 0, 0, 0, 9]), Mac([2, 0, 0, 0, 0, 1]), 1500);
//! let table = IpTable::builder()
//!     .labelled_routes(&routes, [("10.0.0.0/8".parse::<IpNet>()?, Route::Via(neighbour))])
//!     .build()?;
//! let out = CaptureWriter::create(Path::new("out.pcapng"))?;
//! let ports: Vec<Box<dyn Port>> = vec![
//!     Box::new(CapturePort::new("in").from_file(Path::new("in.pcap"))?),
//!     Box::new(CapturePort::new("out").to_writer(&out)?),
//! ];
//! let own = Owns::default(); // no addresses: no ICMP errors
//! let app = Ip::new(&table.reader(), &routes, &own);
//! let mut worker = Worker::new(app, Memory::new(4096)?, ports, Settings::default());
//! let stats = worker.run(&AtomicBool::new(false), &Published::default())?;
//! out.finish()?;
//! println!("{} of {} frames forwarded", stats.frames_out, stats.frames_in);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod any_app;
mod app;
pub mod apps;
mod chunk;
#[cfg(target_os = "linux")]
pub mod control;
#[cfg(target_os = "linux")]
mod cores;
mod error;
mod frame;
pub mod frames;
pub mod header;
pub mod io;
mod lateness;
#[cfg(feature = "metrics")]
pub mod metrics;
mod narrow;
mod reason;
mod report;
mod route;
mod router;
mod sizing;
mod stats;
mod tables;
mod tracer;
mod used;
mod why;
mod worker;

pub use app::{App, Packet};
pub use chunk::{Chunk, PortId, Verdict};
#[cfg(target_os = "linux")]
pub use cores::{Cores, NoCores};
pub use error::Error;
pub use frame::{Frame, HEAD_ROOM, Memory, STRIDE};
pub use header::Mac;
pub use reason::{Drops, Reason};
pub use report::Report;
pub use route::{Group, Hop, Route, flow_hash};
pub use router::run;
pub use stats::{ChunkSizes, Stats};
pub use tables::{PortTable, PortTables};
pub use used::{Taken, Used};
pub use why::{Why, Whys};
pub use wirespeed_checksum as checksum;
pub use worker::{CHUNK, DropSink, Kernel, Published, Settings, Worker};
