//! Routes from outside, live: the Linux kernel's by netlink, FRR's by FPM, and any router's by BMP.
//!
//! ```text
//! kernel::follow ─┐                       ┌─ LiveTable: a wirespeed table that follows
//! fpm::listen ────┼─► Feed ─► Batch of ───┼─ Updates: updates for tables of your own
//! bmp::listen ────┘           Changes     └─ your code: links, addresses, neighbours, rules, routes
//! ```
//!
//! A feed runs on a thread of its own, and holds the state of its source. So it tells differences only: what
//! it lost, it reads again, and compares. Each [`Change`] replaces an older one, and a consumer keeps no more
//! than it needs. The markers say how far the state can be trusted: [`Change::Synced`] when the first state
//! is whole, [`Change::Stale`] when the source is lost, [`Change::Resynced`] when the state was compared and
//! is whole again.
//!
//! # A table that follows the kernel
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use wirespeed_feeds::{LiveTable, kernel};
//!
//! let feed = kernel::follow(kernel::Options::default())?;
//! let mut table = LiveTable::of(&feed, Duration::from_secs(30))?;
//! let reader = table.reader(); // for other threads
//! loop {
//!     table.follow(&feed, Duration::from_secs(1))?;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), wirespeed_feeds::Error>(())
//! ```
//!
//! `examples/follow_kernel.rs` is a complete program, and `examples/listen.rs` prints what FRR and routers
//! tell.
//!
//! # What is held, and what it takes
//!
//! | feed | state of its own | bounds |
//! |---|---|---|
//! | [`kernel`] | routes of all tables and metrics, next-hop objects, links, addresses, neighbours, rules | prefixes, hops of different paths |
//! | [`fpm`] | routes of all tables, next-hop objects | the same |
//! | [`bmp`] | the routes of each peer and view | routes, hops of different paths, connections, routers, peers |
//!
//! The state of an IPv4 route takes 33 bytes of a hash map, which is at least 44 % full. Equal paths are
//! stored once. Whatever is over a bound is skipped, counted in [`Status::skipped`], and not told. A consumer
//! that is slow holds the feed back: at most 16 batches wait.
//!
//! # Faults
//!
//! No byte sequence makes a feed panic; each protocol has a fuzz target. Bytes that violate the framing end a
//! connection with a warning (`tracing`), and the routes stay and age until the sender is back. A single
//! message that can't be read is skipped and counted by reason.

pub mod bmp;
mod bridge;
mod error;
mod feed;
pub mod fpm;
pub mod kernel;
mod model;
mod netlink;
mod quiet;
mod recorded;
mod state;
mod status;
mod tcp;

pub use bridge::{LiveTable, Updates};
pub use error::Error;
pub use feed::Feed;
pub use model::{
    Batch, Change, Hop, InterfaceAddress, Link, Mac, Neighbour, NeighbourState, Path, PathKind, Reason,
    Route, Rule, RuleAction, TableId,
};
pub use recorded::Recorded;
pub use status::{Monitored, Skip, Status};
