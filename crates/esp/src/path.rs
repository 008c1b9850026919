//! ICMP errors that tell the size of a tunnel's path (RFC 4301, 8.2): which association they are about.

use std::net::IpAddr;

use crate::ip::{self, Family, Header, IPV4, IPV6, PROTOCOL_ESP, PROTOCOL_UDP, UDP, be16, be32};

/// A router on the path told that a packet of an association was too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) spi: u32,
    /// The largest packet that the next link takes, and no less than every link has to take.
    pub(crate) mtu: u16,
}

/// The least that a link takes whole: of IPv4 what every host takes (RFC 791, 3.1), of IPv6 RFC 8200, 5.
const LEAST_V4: u32 = 576;
const LEAST_V6: u32 = 1280;
/// Bytes of a header of ICMP.
const ICMP: usize = 8;

impl TooLarge {
    /// Reads a packet. `None` for one that is no such error, or is about no ESP packet.
    #[inline]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let is_v4 = packet.first()? >> 4 == 4;
        // Nearly every packet ends here.
        if *packet.get(if is_v4 { 9 } else { 6 })? != if is_v4 { 1 } else { 58 } {
            return None;
        }
        Self::read_icmp(packet, is_v4)
    }

    #[cold]
    fn read_icmp(packet: &[u8], is_v4: bool) -> Option<Self> {
        let len = Header::read(packet)?.len;
        let start = if is_v4 { usize::from(packet[0] & 15) * 4 } else { IPV6 };
        let message = packet.get(start..len)?;
        let (icmp, quoted) = message.split_first_chunk::<ICMP>()?;
        let (mtu, least) = match (is_v4, icmp[0], icmp[1]) {
            (true, 3, 4) if wirespeed_checksum::sum(message) == 0xffff => (be16(icmp, 6).into(), LEAST_V4),
            (false, 2, 0) if ip::is_sum_right(packet, len) => (be32(icmp, 4), LEAST_V6),
            _ => return None,
        };
        let family = match quoted.first()? >> 4 {
            4 if quoted.len() >= IPV4 => Family::V4,
            6 if quoted.len() >= IPV6 => Family::V6,
            _ => return None,
        };
        let (protocol, mut esp) = match family {
            Family::V4 => (quoted[9], usize::from(quoted[0] & 15) * 4),
            Family::V6 => (quoted[6], IPV6),
        };
        match protocol {
            PROTOCOL_ESP => {}
            PROTOCOL_UDP => esp += UDP,
            _ => return None,
        }
        Some(Self {
            src: ip::source(quoted, family),
            dst: ip::destination(quoted, family),
            spi: be32(quoted.get(esp..esp + 4)?, 0),
            mtu: u16::try_from(mtu.max(least)).unwrap_or(u16::MAX),
        })
    }
}
