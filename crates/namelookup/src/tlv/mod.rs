//! NDN names on the wire (NDN Packet Format 0.3), and as the [`Name`](crate::Name)s of this crate.
//!
//! ```text
//! 05 1c                            Interest, 28 bytes
//!    07 14                         Name, 20 bytes                ┐
//!       08 03 63 6f 6d             GenericNameComponent "com"    │ WireName: borrowed, checked once
//!       08 04 70 61 72 63          GenericNameComponent "parc"   │
//!       36 01 03                   VersionNameComponent 3        │
//!       32 02 01 00                SegmentNameComponent 256      ┘  ──► /com/parc/54=%03/50=%01%00
//! ```
//!
//! The Name is the canonical URI: `type=value` for a component, without `8=` for a generic one; bytes other
//! than letters, digits and `-._~` percent-encoded with capital digits; three periods more where a value is
//! periods alone or nothing; the digests as `sha256digest=` and `params-sha256=` with small hexadecimal
//! digits. As all of that is one to one, two wire names are equal iff their Names are, one is a prefix of the
//! other iff its Name is, and a typed component never matches a generic one.
//!
//! ```
//! use wirespeed_namelookup::NameTable;
//! use wirespeed_namelookup::tlv::{Packet, WireNameBuf};
//!
//! let mut fib = NameTable::new();
//! fib.insert(&WireNameBuf::from_uri(b"ndn:/com/parc")?.as_wire().to_name()?, 7);
//!
//! let interest = b"\x05\x16\x07\x0e\x08\x03com\x08\x04parc\x36\x01\x03\x0a\x04\x01\x02\x03\x04";
//! let packet = Packet::parse(interest)?;
//! let mut text = Vec::new();
//! let name = packet.name.write_name(&mut text)?;
//! assert_eq!(name.to_string(), "/com/parc/54=%03");
//! let found = fib.lookup(name);
//! assert_eq!(found.result, 7);
//! // What matched, on the wire.
//! assert_eq!(packet.name.matched(name, found.length).as_value(), b"\x08\x03com\x08\x04parc");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod component;
mod element;
mod name;
mod packet;
#[cfg(test)]
mod tests;
mod uri;

pub use component::{Component, ComponentType};
pub use name::{Components, Ends, WireName, WireNameBuf};
pub use packet::{Packet, PacketKind};
pub use uri::UriError;

/// Why bytes are no name or packet. Offsets count from the start of the bytes that were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlvError {
    /// The bytes end within a number or a value.
    #[error("byte {offset}: {wanted} bytes are to follow, there are {left}")]
    Short {
        /// Where the number or the value starts.
        offset: usize,
        /// Its bytes.
        wanted: u64,
        /// Bytes that there are.
        left: usize,
    },
    /// A number in more bytes than it takes.
    #[error("byte {offset}: {number} is not in its shortest form")]
    NotShortest {
        /// Where it starts.
        offset: usize,
        /// What it says.
        number: u64,
    },
    /// Another element than the one that is to be there.
    #[error("byte {offset}: an element of type {found:#x}, not {wanted}")]
    Unexpected {
        /// Where it starts.
        offset: usize,
        /// Its type.
        found: u64,
        /// What is to be there.
        wanted: &'static str,
    },
    /// A component of type 0, or of more than 65535.
    #[error("byte {offset}: no component has type {found}: they are 1 to 65535")]
    ComponentType {
        /// Where it starts.
        offset: usize,
        /// Its type.
        found: u64,
    },
    /// A SHA-256 digest that isn't 32 bytes.
    #[error("byte {offset}: a digest of {found} bytes, not 32")]
    Digest {
        /// Where its component starts.
        offset: usize,
        /// Its bytes.
        found: usize,
    },
    /// Bytes after a name that is to be all there is.
    #[error("byte {offset}: {left} bytes after the name")]
    Rest {
        /// Where the name ends.
        offset: usize,
        /// Bytes after it.
        left: usize,
    },
    /// An Interest or Data without a name.
    #[error("a packet of {found} bytes without a name")]
    NoName {
        /// Bytes of its value.
        found: usize,
    },
}
