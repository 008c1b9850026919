//! [`Error`]: the reasons why a switch can't be made or reached.

use std::io;

use thiserror::Error;

/// The reason why a switch can't be made, or has no channel to a controller.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no ports, or too many of them.
    #[error("{found} ports, where a switch has 1 to {most}")]
    Ports {
        /// The number of ports that was asked for.
        found: usize,
        /// The most.
        most: usize,
    },
    /// All workers have their application.
    #[error("the switch was made for {workers} workers, and all of them have their application")]
    Workers {
        /// The number of workers that the switch was made for.
        workers: usize,
    },
    /// An address of a controller is none.
    #[error("{text:?} is no address: tcp:HOST:PORT or HOST:PORT")]
    Address {
        /// The text.
        text: String,
    },
    /// An address can't be listened at.
    #[error("{address}: can't listen")]
    Listen {
        /// The address.
        address: String,
        /// The reason of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A thread can't be started.
    #[error("can't start a thread")]
    Thread(#[source] io::Error),
    /// A line of a file of flows, groups and meters can't be read.
    #[error("line {line}: {why}")]
    Flow {
        /// The number of the line, from 1 on.
        line: usize,
        /// The reason.
        why: String,
    },
    /// A flow, a group or a meter of a file is refused.
    #[error("line {line}: the switch refuses it: {failure}")]
    Refused {
        /// The number of the line, from 1 on.
        line: usize,
        /// The reason, as a controller would be told.
        #[source]
        failure: crate::wire::Failure,
    },
}
