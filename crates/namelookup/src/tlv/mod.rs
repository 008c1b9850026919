//! NDN names on the wire (NDN Packet Format 0.3), and their conversion to [`Name`](crate::Name).
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
//! The name is the canonical URI: `type=value` for a component, without `8=` for a generic one. Bytes other
//! than letters, digits and `-._~` are percent-encoded with capital digits. An empty value, or a value of
//! periods only, gets three more periods. Digests are `sha256digest=` and `params-sha256=` with lower-case
//! hexadecimal digits. This mapping is one to one: two wire names are equal if and only if their names are,
//! one is a prefix of the other if and only if its name is, and a typed component never matches a generic
//! one.
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

/// The reason why bytes are no name or packet. Offsets count from the start of the given bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlvError {
    /// The bytes end within a number or a value.
    #[error("byte {offset}: {wanted} bytes must follow, there are {left}")]
    Short {
        /// The offset of the number or value.
        offset: usize,
        /// Its bytes.
        wanted: u64,
        /// Bytes that follow.
        left: usize,
    },
    /// A number is longer than necessary.
    #[error("byte {offset}: {number} is not in its shortest form")]
    NotShortest {
        /// The offset of the number.
        offset: usize,
        /// The number.
        number: u64,
    },
    /// An element of a wrong type.
    #[error("byte {offset}: an element of type {found:#x}, not {wanted}")]
    Unexpected {
        /// The offset of the element.
        offset: usize,
        /// Its type.
        found: u64,
        /// The wanted element.
        wanted: &'static str,
    },
    /// A component of type 0, or of a type over 65535.
    #[error("byte {offset}: no component has type {found}: types are 1 to 65535")]
    ComponentType {
        /// The offset of the component.
        offset: usize,
        /// Its type.
        found: u64,
    },
    /// A SHA-256 digest that does not have 32 bytes.
    #[error("byte {offset}: a digest of {found} bytes, not 32")]
    Digest {
        /// The offset of the component.
        offset: usize,
        /// Its bytes.
        found: usize,
    },
    /// Bytes after a name that should be the last element.
    #[error("byte {offset}: {left} bytes after the name")]
    Rest {
        /// The offset of the name's end.
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
