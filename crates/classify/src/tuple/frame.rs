//! Reads tuples from frames: Ethernet, VLAN tags, ARP, IPv4, IPv6 and what of TCP, UDP and ICMP a tuple
//! holds.
//!
//! Nothing is trusted: a header that isn't whole, or that says that it is longer than what is there, is an
//! error that says so.

use std::fmt;
use std::net::Ipv6Addr;

/// The reason why a frame has no tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A header isn't whole.
    #[error("the {layer} header is cut off: it takes {needed} bytes, {found} are there")]
    CutOff {
        /// The layer of the header.
        layer: Layer,
        /// Bytes that it takes.
        needed: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// Not the protocol that the tuple is of.
    #[error("EtherType {found:#06x}, {wanted:#06x} is wanted")]
    EtherType {
        /// The frame's.
        found: u16,
        /// The tuple's.
        wanted: u16,
    },
    /// The version in an IP header is another one.
    #[error("IP version {found}, {wanted} is wanted")]
    Version {
        /// The packet's.
        found: u8,
        /// The tuple's.
        wanted: u8,
    },
    /// A header that says that it is shorter than any is.
    #[error("a length of {found} bytes in a header of {layer}, which takes at least {least}")]
    Length {
        /// The layer of the header.
        layer: Layer,
        /// The length in the header.
        found: usize,
        /// The least length.
        least: usize,
    },
    /// A kind of tuple that isn't read from frames.
    #[error("a tuple of {tuple} is made of match fields, not of a frame")]
    OfFields {
        /// The tuple's name.
        tuple: &'static str,
    },
}

/// The layer of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet.
    Ethernet,
    /// A VLAN tag.
    Vlan,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// An extension header of IPv6.
    Extension,
    /// TCP, UDP, ICMP or the like.
    Transport,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::Vlan => "VLAN",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Extension => "IPv6 extension",
            Self::Transport => "transport",
        })
    }
}

pub(super) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(super) const ETHERTYPE_ARP: u16 = 0x0806;
pub(super) const ETHERTYPE_IPV6: u16 = 0x86dd;

/// 802.1Q, 802.1ad, and what was in use before it.
const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// The least number that is a type. A smaller one is a length.
const FIRST_TYPE: u16 = 0x0600;
/// The type of a frame without one (`OFP_DL_TYPE_NOT_ETH_TYPE`).
const NO_TYPE: u16 = 0x05ff;

/// The beginning of a frame.
pub(super) struct Ethernet<'f> {
    pub(super) src: u64,
    pub(super) dst: u64,
    /// The outer tag.
    pub(super) tag: Option<u16>,
    ethertype: u16,
    pub(super) payload: &'f [u8],
}

/// The headers of a frame up to its type.
pub(super) fn ethernet(frame: &[u8]) -> Result<Ethernet<'_>, FrameError> {
    let (ethernet, cut) = tags(frame)?;
    cut.map_or(Ok(ethernet), Err)
}

/// The headers of a frame up to its type; where a tag is cut off, what comes before it.
pub(super) fn ethernet_or_part(frame: &[u8]) -> Result<Ethernet<'_>, FrameError> {
    Ok(tags(frame)?.0)
}

fn tags(frame: &[u8]) -> Result<(Ethernet<'_>, Option<FrameError>), FrameError> {
    let (head, mut payload) = split::<14>(frame, Layer::Ethernet)?;
    let mac = |from: usize| head[from..from + 6].iter().fold(0, |mac, &byte| mac << 8 | u64::from(byte));
    let (mut ethertype, mut tag, mut cut) = (be16(&head[12..]), None, None);
    while TAGS.contains(&ethertype) {
        match split::<4>(payload, Layer::Vlan) {
            Ok((bytes, rest)) => {
                tag = tag.or(Some(be16(bytes)));
                (ethertype, payload) = (be16(&bytes[2..]), rest);
            }
            Err(error) => {
                (cut, payload) = (Some(error), &[]);
                break;
            }
        }
    }
    Ok((Ethernet { src: mac(6), dst: mac(0), tag, ethertype, payload }, cut))
}

impl<'f> Ethernet<'f> {
    /// What the frame carries, if that is of a type.
    pub(super) const fn of_type(&self, wanted: u16) -> Result<&'f [u8], FrameError> {
        if self.ethertype == wanted {
            Ok(self.payload)
        } else {
            Err(FrameError::EtherType { found: self.ethertype, wanted })
        }
    }

    /// The type, that of a SNAP header where there is a length instead, and what comes after it.
    pub(super) fn type_or_snap(&self) -> (u16, &'f [u8]) {
        match self.payload {
            _ if self.ethertype >= FIRST_TYPE => (self.ethertype, self.payload),
            [0xaa, 0xaa, 0x03, 0, 0, 0, high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
            _ => (NO_TYPE, &[]),
        }
    }
}

/// What of an ARP packet a tuple holds.
pub(super) struct Arp {
    /// The low eight bits.
    pub(super) operation: u8,
    pub(super) sender: u32,
    pub(super) target: u32,
}

/// An ARP packet of IPv4 over Ethernet; `None` for others and where it is cut off.
pub(super) fn arp(packet: &[u8]) -> Option<Arp> {
    let arp = packet.first_chunk::<28>()?;
    let is_ethernet_ipv4 = arp[..6] == [0, 1, 8, 0, 6, 4];
    is_ethernet_ipv4.then(|| Arp { operation: arp[7], sender: be32(&arp[14..]), target: be32(&arp[24..]) })
}

/// What of an IP packet a tuple holds.
pub(super) struct Ip<'p, A> {
    pub(super) src: A,
    pub(super) dst: A,
    pub(super) tos: u8,
    pub(super) transport: Transport<'p>,
}

/// What an IP packet carries.
pub(super) struct Transport<'p> {
    pub(super) proto: u8,
    /// The transport header and what follows it; `None` of a fragment but the first, which hasn't one.
    header: Option<&'p [u8]>,
}

impl Transport<'_> {
    /// The ports; of ICMP type and code, 0 where there are none.
    pub(super) fn ports(&self) -> Result<(u16, u16), FrameError> {
        let Some(header) = self.header else { return Ok((0, 0)) };
        match self.proto {
            proto if has_ports(proto) => {
                let (ports, _) = split::<4>(header, Layer::Transport)?;
                Ok((be16(ports), be16(&ports[2..])))
            }
            // ICMP, ICMPv6.
            1 | 58 => {
                let (head, _) = split::<2>(header, Layer::Transport)?;
                Ok((head[0].into(), head[1].into()))
            }
            _ => Ok((0, 0)),
        }
    }
}

/// Whether the header of an IP protocol begins with two ports: of TCP, UDP, DCCP, SCTP and UDP-Lite.
#[inline]
pub const fn has_ports(proto: u8) -> bool {
    matches!(proto, 6 | 17 | 33 | 132 | 136)
}

/// An IPv4 packet. What comes after the length in its header, as short frames have it, is no part of it; a
/// length of 0, as captured before the network card filled it in, says nothing.
pub(super) fn ipv4(packet: &[u8]) -> Result<Ip<'_, u32>, FrameError> {
    let layer = Layer::Ipv4;
    let (head, _) = split::<20>(packet, layer)?;
    version(head[0] >> 4, 4)?;
    let header = usize::from(head[0] & 15) * 4;
    if header < 20 {
        return Err(FrameError::Length { layer, found: header, least: 20 });
    }
    let packet = match usize::from(be16(&head[2..])) {
        0 => packet,
        total if total < header => return Err(FrameError::Length { layer, found: total, least: header }),
        total => &packet[..total.min(packet.len())],
    };
    let cut = FrameError::CutOff { layer, needed: header, found: packet.len() };
    let payload = packet.get(header..).ok_or(cut)?;
    let is_later = be16(&head[6..]) & 0x1fff != 0;
    let transport = Transport { proto: head[9], header: (!is_later).then_some(payload) };
    Ok(Ip { src: be32(&head[12..]), dst: be32(&head[16..]), tos: head[1], transport })
}

/// An IPv6 packet, its extension headers followed.
pub(super) fn ipv6(packet: &[u8]) -> Result<Ip<'_, Ipv6Addr>, FrameError> {
    let (head, payload) = split::<40>(packet, Layer::Ipv6)?;
    version(head[0] >> 4, 6)?;
    let payload = match usize::from(be16(&head[4..])) {
        // A jumbogram, or not filled in.
        0 => payload,
        length => &payload[..length.min(payload.len())],
    };
    let address = |from: usize| {
        let bytes: [u8; 16] = head[from..from + 16].try_into().expect("16 bytes");
        Ipv6Addr::from(bytes)
    };
    let tos = head[0] << 4 | head[1] >> 4;
    Ok(Ip { src: address(8), dst: address(24), tos, transport: extensions(head[6], payload)? })
}

/// Follows extension headers (RFC 8200, section 4) to what isn't one.
fn extensions(first: u8, payload: &[u8]) -> Result<Transport<'_>, FrameError> {
    let (mut proto, mut rest) = (first, payload);
    loop {
        let is_authentication = proto == 51;
        match proto {
            // A fragment's: whether what follows is here or in the first.
            44 => {
                let (head, after) = split::<8>(rest, Layer::Extension)?;
                proto = head[0];
                rest = after;
                if be16(&head[2..]) >> 3 != 0 {
                    return Ok(Transport { proto, header: None });
                }
            }
            // Hop by hop, routing, destination options, mobility, host identity, shim6; authentication counts
            // words.
            0 | 43 | 60 | 135 | 139 | 140 | 51 => {
                let (head, _) = split::<8>(rest, Layer::Extension)?;
                let units = usize::from(head[1]);
                let needed = if is_authentication { (units + 2) * 4 } else { (units + 1) * 8 };
                let cut = FrameError::CutOff { layer: Layer::Extension, needed, found: rest.len() };
                proto = head[0];
                rest = rest.get(needed..).ok_or(cut)?;
            }
            _ => return Ok(Transport { proto, header: Some(rest) }),
        }
    }
}

const fn version(found: u8, wanted: u8) -> Result<(), FrameError> {
    if found == wanted { Ok(()) } else { Err(FrameError::Version { found, wanted }) }
}

/// The first bytes, and what is after them.
fn split<const N: usize>(bytes: &[u8], layer: Layer) -> Result<(&[u8; N], &[u8]), FrameError> {
    bytes.split_first_chunk().ok_or(FrameError::CutOff { layer, needed: N, found: bytes.len() })
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes([bytes[0], bytes[1]])
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests;
