//! The Linux kernel's links, addresses, neighbours, next-hop objects, routes and rules, by netlink.
//!
//! ```text
//! subscribe ──► dump ──► events that came meanwhile ──► Synced ──► event, event, …
//!                ▲                                                   │ the kernel's buffer overran: ENOBUFS
//!                └── compare with what is held ◄─────────────────────┘ a link changed: IPv4 routes change silently
//! ```
//!
//! All routing tables of a network namespace come in one feed. The route of a prefix is that of the lowest
//! metric; if it goes, the next one takes its place. Routes for one type of service, from one source address
//! only, and cached routes are skipped and counted. A route's own MTU is passed over and counted.
//!
//! Reading needs no privilege. A receive buffer beyond `net.core.rmem_max` needs `CAP_NET_ADMIN`, and another
//! network namespace needs `CAP_SYS_ADMIN`.

mod backlog;
mod dump;
mod follow;
mod namespace;
mod resolver;
mod socket;

use std::path::PathBuf;

use crate::error::Error;
use crate::feed::Feed;
pub use resolver::Resolver;

/// The settings of [`follow`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The file of a network namespace, such as `/run/netns/NAME`. The namespace of the process if `None`.
    pub namespace: Option<PathBuf>,
    /// The bytes that the kernel may hold for the feed while it is busy. More make an overrun less probable.
    pub receive_buffer: usize,
    /// The prefixes that the feed holds at most. Others are skipped and counted.
    pub cap: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { namespace: None, receive_buffer: 64 << 20, cap: 16 << 20 }
    }
}

impl Options {
    /// The options for a network namespace that `ip netns add` made.
    #[must_use]
    pub fn in_namespace(name: &str) -> Self {
        Self { namespace: Some(PathBuf::from("/run/netns").join(name)), ..Self::default() }
    }
}

/// Starts a feed of the kernel's state.
///
/// The first batches build the state up to [`Change::Synced`](crate::Change::Synced). Fails if the thread
/// can't start. If the kernel refuses a socket, the feed ends, and [`Feed::recv`] tells the reason.
pub fn follow(options: Options) -> Result<Feed, Error> {
    Feed::start("kernel", move |out| {
        if let Some(path) = &options.namespace {
            namespace::enter(path)?;
        }
        follow::run(&options, out)
    })
}
