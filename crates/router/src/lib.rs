//! A router of packets: frames in chunks, looked up in batches on the CPU or on a GPU.

mod app;
pub mod apps;
pub mod checksum;
mod chunk;
#[cfg(target_os = "linux")]
pub mod control;
mod error;
mod frame;
pub mod frames;
pub mod header;
pub mod io;
mod narrow;
mod reason;
mod route;
mod router;
mod sizing;
mod stats;
mod tracer;
mod worker;

pub use app::App;
pub use chunk::{Chunk, PortId, Verdict};
pub use error::Error;
pub use frame::{Frame, HEAD_ROOM, Memory, STRIDE};
pub use header::Mac;
pub use reason::{Drops, Reason};
pub use route::{Group, Hop, Route, flow_hash};
pub use router::{Report, run};
pub use stats::Stats;
pub use worker::{CHUNK, DropSink, Kernel, Published, Settings, Worker};
