//! [`Packet`]: the name of an Interest or a Data packet.

use super::TlvError;
use super::element::element;
use super::name::{NAME, WireName};

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketKind {
    /// A request for Data.
    Interest,
    /// An answer.
    Data,
}

/// The first packet in some bytes, as far as forwarding by name needs it. The bytes after its name are not
/// read.
///
/// ```
/// use wirespeed_namelookup::tlv::{Packet, PacketKind};
///
/// let packet = Packet::parse(b"\x06\x07\x07\x05\x08\x03com and more")?;
/// assert_eq!((packet.kind, packet.name.to_uri()), (PacketKind::Data, "ndn:/com".to_owned()));
/// assert_eq!(packet.rest, b" and more");
/// # Ok::<(), wirespeed_namelookup::tlv::TlvError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'b> {
    /// The kind of the packet.
    pub kind: PacketKind,
    /// The packet's name.
    pub name: WireName<'b>,
    /// The bytes after the packet.
    pub rest: &'b [u8],
}

impl<'b> Packet<'b> {
    /// Reads a packet's name. Skips elements before it that may be ignored (even types above 31).
    pub fn parse(bytes: &'b [u8]) -> Result<Self, TlvError> {
        const WANTED: &str = "an Interest or a Data packet";
        let outer = element(bytes, 0)?;
        let kind = match outer.kind {
            5 => PacketKind::Interest,
            6 => PacketKind::Data,
            found => return Err(TlvError::Unexpected { offset: 0, found, wanted: WANTED }),
        };
        let packet = &bytes[..outer.end()];
        let mut at = outer.body;
        while at < packet.len() {
            let inner = element(packet, at)?;
            if inner.kind == NAME {
                let name = WireName::check(&bytes[..inner.end()], inner.body)?;
                return Ok(Self { kind, name, rest: &bytes[outer.end()..] });
            }
            let is_critical = inner.kind < 32 || inner.kind % 2 == 1;
            if is_critical {
                return Err(TlvError::Unexpected { offset: at, found: inner.kind, wanted: "a Name" });
            }
            at = inner.end();
        }
        Err(TlvError::NoName { found: outer.value.len() })
    }
}
