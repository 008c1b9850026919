//! Errors of traces.

use std::io;

use crate::address::Family;

/// The reason why a trace can't be read. Every message names the file, and the place in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The source failed.
    #[error("{name}: {cause}")]
    Io {
        /// The name of the source.
        name: String,
        /// The error of the source.
        cause: io::Error,
    },
    /// A line is not an address.
    #[error("{name}:{line}: {text:?} is not an address")]
    NotAnAddress {
        /// The name of the source.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The start of the line's first column.
        text: String,
    },
    /// Packed addresses end within an address.
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
    /// A capture is broken before its first packet.
    #[error("{name}: {offset} bytes in, not a capture: {reason}")]
    BadCapture {
        /// The name of the source.
        name: String,
        /// The offset of the error in bytes.
        offset: u64,
        /// The error.
        reason: String,
    },
    /// The trace is a capture, and this build leaves captures out.
    #[error("{name}: a capture needs a build with the feature `capture`")]
    LeftOut {
        /// The name of the source.
        name: String,
    },
    /// The trace has addresses of the other family only.
    #[error("trace {name} holds {found} addresses, the table is {wanted}")]
    WrongFamily {
        /// The name of the source.
        name: String,
        /// The family of the trace.
        found: Family,
        /// The wanted family.
        wanted: Family,
    },
    /// The trace has no address.
    #[error("trace {name} holds no {wanted} address{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Empty {
        /// The name of the source.
        name: String,
        /// The wanted family.
        wanted: Family,
        /// A description of the other content.
        why: Option<String>,
    },
}

impl TraceError {
    pub(super) fn io(name: &str, cause: io::Error) -> Self {
        Self::Io { name: name.to_owned(), cause }
    }
}
