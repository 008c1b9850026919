//! [`Error`]: the reasons why a router can't be made, or ends.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The reason why a router can't be made, or ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Buffers can't be mapped.
    #[error("{buffers} buffers of {stride} bytes can't be mapped")]
    Memory {
        /// The number of buffers that was asked for.
        buffers: u32,
        /// Bytes between two buffers.
        stride: u32,
        /// The reason of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A port can't be opened, or fails for good.
    #[error("{port}: {what}")]
    Port {
        /// The name of the port.
        port: String,
        /// The action that failed.
        what: String,
        /// The reason of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Another program forwards at an interface.
    #[error("{port}: another program of this kind forwards here already; end it first")]
    Claimed {
        /// The interface.
        port: String,
    },
    /// Another XDP program is attached at an interface.
    #[error("{port}: another XDP program is attached here")]
    OtherXdp {
        /// The interface.
        port: String,
    },
    /// A capture can't be read or written.
    #[error("{}: {what}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The fault, with its place.
        what: String,
    },
    /// A table can't be built or changed.
    #[error(transparent)]
    Table(#[from] wirespeed::Error),
    /// The feed of routes ended.
    #[error(transparent)]
    Feed(wirespeed_feeds::Error),
    /// The kernel's state can't be forwarded by.
    #[error("{0}")]
    Control(&'static str),
    /// A worker can't run on the core that was asked for.
    #[error("{what}")]
    Cores {
        /// The core, and those that are allowed.
        what: String,
        /// The reason of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Frames were lost or doubled: a fault of the router itself.
    #[error("{held} of {buffers} buffers are accounted for")]
    Unaccounted {
        /// The buffers that were found.
        held: usize,
        /// The buffers that there are.
        buffers: usize,
    },
}

impl Error {
    /// An error of a port, with the reason of the operating system.
    pub fn port(port: impl Into<String>, what: impl Into<String>, cause: io::Error) -> Self {
        Self::Port { port: port.into(), what: what.into(), cause }
    }
}
