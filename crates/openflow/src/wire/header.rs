//! [`Header`]: what each message begins with.

/// The version of OpenFlow 1.3 in messages.
pub const VERSION: u8 = 4;
/// The bytes of a message's header.
pub const HEADER: usize = 8;

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub version: u8,
    /// The type.
    pub kind: u8,
    /// The length with the header.
    pub len: u16,
    /// The number that an answer repeats.
    pub xid: u32,
}

impl Header {
    /// The header at the start of bytes, if it is there.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let &[version, kind, a, b, c, d, e, f] = bytes.first_chunk()?;
        let (len, xid) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
        Some(Self { version, kind, len, xid })
    }
}
