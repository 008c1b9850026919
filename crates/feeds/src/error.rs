//! [`Error`]: why a feed can't start, or ended.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why a feed can't start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refuses a netlink socket or a request.
    #[error("netlink: {action}: {error}")]
    Netlink {
        /// The action that failed.
        action: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The file of a network namespace can't be opened or entered. This needs `CAP_SYS_ADMIN`.
    #[error("can't enter the network namespace {path}: {error}")]
    Namespace {
        /// The file, such as `/run/netns/NAME`.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The address can't be listened on.
    #[error("can't listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's answer.
        error: io::Error,
    },
    /// The thread of the feed can't start.
    #[error("can't start the thread of {feed}: {error}")]
    Thread {
        /// The feed.
        feed: &'static str,
        /// The system's answer.
        error: io::Error,
    },
    /// The feed ended: its thread left the reason in the log.
    #[error("the feed {feed} ended: {reason}")]
    Ended {
        /// The feed.
        feed: &'static str,
        /// The reason.
        reason: String,
    },
    /// A sender violates its protocol.
    #[error("{feed}: {reason}")]
    Violation {
        /// The feed.
        feed: &'static str,
        /// The violation.
        reason: String,
    },
    /// A table or its labels refuse what the feed tells.
    #[error(transparent)]
    Table(#[from] wirespeed::Error),
    /// There are more different paths than a table has indexes.
    #[error(transparent)]
    TooManyPaths(#[from] wirespeed::TooManyNextHops),
}
