//! What can be wrong with a trace.

use std::io;

use crate::address::Family;

/// Why a trace can't be read. Every message names the file, and where in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The source failed.
    #[error("{name}: {source}")]
    Io {
        /// The name of the source.
        name: String,
        /// What it said.
        source: io::Error,
    },
    /// A line that is no address.
    #[error("{name}:{line}: {text:?} is not an address")]
    NotAnAddress {
        /// The name of the source.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The start of the line's first column.
        text: String,
    },
    /// Packed addresses that end within one.
    #[error(
        "{name}: {bytes} bytes are not a whole number of {family} addresses of {each} bytes: {over} are left over"
    )]
    CutAddress {
        /// The name of the source.
        name: String,
        /// Its length.
        bytes: u64,
        /// The family.
        family: Family,
        /// Bytes of an address.
        each: usize,
        /// Bytes after the last whole address.
        over: u64,
    },
    /// A capture that is broken before its first packet.
    #[error("{name}: {offset} bytes in, not a capture: {reason}")]
    BadCapture {
        /// The name of the source.
        name: String,
        /// Bytes before the fault.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A capture, which this build leaves out.
    #[error("{name}: a capture needs a build with the feature `capture`")]
    LeftOut {
        /// The name of the source.
        name: String,
    },
    /// Addresses, but none of the family that is wanted.
    #[error("trace {name} holds {found} addresses, the table is {wanted}")]
    WrongFamily {
        /// The name of the source.
        name: String,
        /// What it holds.
        found: Family,
        /// What is wanted.
        wanted: Family,
    },
    /// No address at all.
    #[error("trace {name} holds no {wanted} address{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Empty {
        /// The name of the source.
        name: String,
        /// What is wanted.
        wanted: Family,
        /// What is there instead.
        why: Option<String>,
    },
}

impl TraceError {
    pub(super) fn io(name: &str, source: io::Error) -> Self {
        Self::Io { name: name.to_owned(), source }
    }
}
