//! Headers at their offsets: Ethernet with VLAN tags, and fields of IPv4 and IPv6.
//!
//! The hot path reads and writes bytes in place, and trusts nothing: each function says what has to be there.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Reason;

/// A link-layer address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Whether it is a group's: the first byte is odd.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// No address: six bytes in hexadecimal, with colons between them, are one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no link-layer address, such as 02:00:00:00:00:01")]
pub struct NoMac(String);

impl std::str::FromStr for Mac {
    type Err = NoMac;

    fn from_str(text: &str) -> Result<Self, NoMac> {
        let no = || NoMac(text.to_owned());
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(no)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| no())?;
        }
        if parts.next().is_some() { Err(no()) } else { Ok(Self(mac)) }
    }
}

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
pub const IPV4: usize = 20;
/// Bytes of an IPv6 header.
pub const IPV6: usize = 40;

/// The EtherType of IPv4.
pub const TYPE_IPV4: u16 = 0x0800;
/// The EtherType of IPv6.
pub const TYPE_IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: 802.1Q, and 802.1ad.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// The 16 bits at an offset, in the order of the network.
#[inline]
#[must_use]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The EtherType of a frame, behind its VLAN tags, and the offset of what follows it.
#[inline]
pub fn network(frame: &[u8]) -> Result<(u16, usize), Reason> {
    if frame.len() < ETHERNET {
        return Err(Reason::Cut);
    }
    let kind = be16(frame, 12);
    if TAGS.contains(&kind) { behind_tags(frame, kind) } else { Ok((kind, ETHERNET)) }
}

#[cold]
fn behind_tags(frame: &[u8], mut kind: u16) -> Result<(u16, usize), Reason> {
    let mut at = ETHERNET;
    while TAGS.contains(&kind) {
        if frame.len() < at + TAG {
            return Err(Reason::Cut);
        }
        kind = be16(frame, at + 2);
        at += TAG;
    }
    Ok((kind, at))
}

/// The addresses of an IPv4 header: source and destination.
///
/// Panics without a whole header.
#[must_use]
pub fn ipv4_addresses(packet: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let of = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    (of(12), of(16))
}

/// The addresses of an IPv6 header: source and destination.
///
/// Panics without a whole header.
#[must_use]
pub fn ipv6_addresses(packet: &[u8]) -> (Ipv6Addr, Ipv6Addr) {
    let of = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&packet[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    (of(8), of(24))
}

/// The payload of an IPv6 packet behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The protocol.
    pub protocol: u8,
    /// The place where it begins in the packet.
    pub at: usize,
    /// Whether it is a fragment other than the first, which has no transport header.
    pub is_later_fragment: bool,
}

/// Extension headers of IPv6 that have a length in units of eight bytes: hop-by-hop options, routing,
/// destination options, mobility, HIP, shim6.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;

/// Walks the extension headers of an IPv6 packet. `None` if one of them is cut off.
///
/// Panics without a whole IPv6 header.
#[must_use]
pub fn ipv6_payload(packet: &[u8]) -> Option<Payload> {
    let (mut protocol, mut at, mut is_later_fragment) = (packet[6], IPV6, false);
    loop {
        let bytes = match protocol {
            FRAGMENT => {
                let offset = be16(packet.get(at..at + 8)?, 2) >> 3;
                is_later_fragment |= offset != 0;
                8
            }
            AUTHENTICATION => (usize::from(*packet.get(at + 1)?) + 2) * 4,
            extension if EXTENSIONS.contains(&extension) => (usize::from(*packet.get(at + 1)?) + 1) * 8,
            _ => return Some(Payload { protocol, at, is_later_fragment }),
        };
        protocol = *packet.get(at..at + bytes)?.first()?;
        at += bytes;
        if is_later_fragment {
            // Behind the header of a later fragment come bytes of any kind.
            return Some(Payload { protocol, at, is_later_fragment });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_told() {
        let mac: Mac = "02:00:5e:10:00:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:00:5e:10:00:ff");
        assert!(!mac.is_group() && Mac([0xff; 6]).is_group());
        for bad in ["", "02:00:5e:10:00", "02:00:5e:10:00:ff:01", "2:0:5e:10:0:ff", "02:00:5e:10:00:fg"] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }

    #[test]
    fn types_are_behind_tags() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 0x86, 0xdd]);
        assert_eq!(network(&frame), Ok((TYPE_IPV6, 22)));
        for len in 0..frame.len() {
            assert_eq!(network(&frame[..len]), Err(Reason::Cut), "{len}");
        }
        frame[12..14].copy_from_slice(&[8, 0]);
        assert_eq!(network(&frame), Ok((TYPE_IPV4, 14)));
    }

    #[test]
    fn extension_headers_are_walked() {
        let mut packet = vec![0; IPV6];
        packet[6] = 0; // hop by hop, 8 bytes
        packet.extend([60, 0, 1, 4, 0, 0, 0, 0]); // destination options, 16 bytes
        packet.extend([44, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([17, 0, 0, 1, 0, 0, 0, 9]); // the first fragment
        let at = packet.len();
        packet.extend([0; 8]);
        assert_eq!(ipv6_payload(&packet), Some(Payload { protocol: 17, at, is_later_fragment: false }));
        for len in IPV6..at {
            assert_eq!(ipv6_payload(&packet[..len]), None, "{len}");
        }
        packet[at - 5] = 8; // an offset of one unit
        assert!(ipv6_payload(&packet).unwrap().is_later_fragment);
    }
}
