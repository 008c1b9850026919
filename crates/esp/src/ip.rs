//! IP headers: the checks of a packet, and the fields that a tunnel reads and changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wirespeed_checksum::{add, changed, fold, is_right, sum, with_hop_less};

use crate::narrow;

/// Bytes of an IPv4 header without options.
pub(crate) const IPV4: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const IPV6: usize = 40;
/// Bytes of a fragment header of IPv6.
pub(crate) const FRAGMENT_HEADER: usize = 8;
/// Bytes of a UDP header.
pub(crate) const UDP: usize = 8;
/// Bytes of the index and the sequence number, at the start of an ESP packet.
pub(crate) const ESP: usize = 8;

/// The UDP ports of a tunnel through address translation (RFC 3948): source and destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// The source port.
    pub src: u16,
    /// The destination port.
    pub dst: u16,
}

/// Protocol numbers.
pub(crate) const PROTOCOL_UDP: u8 = 17;
pub(crate) const PROTOCOL_ESP: u8 = 50;
/// Next header of a fragment header of IPv6.
pub(crate) const PROTOCOL_FRAGMENT: u8 = 44;
/// Next headers of ESP in tunnel mode, and of a dummy packet.
pub(crate) const NEXT_IPV4: u8 = 4;
pub(crate) const NEXT_IPV6: u8 = 41;
pub(crate) const NEXT_NONE: u8 = 59;

const DONT_FRAGMENT: u16 = 0x4000;
/// More fragments, and the offset.
const FRAGMENT: u16 = 0x3fff;
const OFFSET: u16 = 0x1fff;

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// The parts of a packet's header that a tunnel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) family: Family,
    /// Bytes of the packet. Padding of the link may follow.
    pub(crate) len: usize,
    /// The traffic class: differentiated services and congestion.
    pub(crate) class: u8,
    /// The time to live, or the hop limit.
    pub(crate) hops: u8,
    /// Whether routers may not cut it. It is so for IPv6.
    pub(crate) is_whole: bool,
}

impl Header {
    /// Reads the header of a packet. `None` if lengths or checksum are wrong.
    #[inline]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let header = packet.first_chunk::<IPV4>()?;
                let bytes = usize::from(header[0] & 15) * 4;
                let len = usize::from(be16(header, 2));
                let has_lengths = bytes >= IPV4 && (bytes..=packet.len()).contains(&len);
                let has_sum =
                    || if bytes == IPV4 { is_right(header) } else { sum(&packet[..bytes]) == 0xffff };
                (has_lengths && has_sum()).then(|| Self {
                    family: Family::V4,
                    len,
                    class: header[1],
                    hops: header[8],
                    is_whole: be16(header, 6) & DONT_FRAGMENT != 0,
                })
            }
            6 => {
                let header = packet.first_chunk::<IPV6>()?;
                let len = IPV6 + usize::from(be16(header, 4));
                (len <= packet.len()).then(|| Self {
                    family: Family::V6,
                    len,
                    class: (header[0] << 4) | (header[1] >> 4),
                    hops: header[7],
                    is_whole: true,
                })
            }
            _ => None,
        }
    }
}

/// The 16 bits at an offset, in the order of the network.
#[inline]
pub(crate) const fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32 bits at an offset.
#[inline]
pub(crate) const fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Whether a packet is a fragment, and if so, whether it is another one than the first. The IPv4 header is
/// whole, or those of IPv6 and of the fragment.
pub(crate) const fn is_later_fragment(packet: &[u8], family: Family) -> Option<bool> {
    match family {
        Family::V4 if be16(packet, 6) & FRAGMENT == 0 => None,
        Family::V4 => Some(be16(packet, 6) & OFFSET != 0),
        Family::V6 if packet[6] != PROTOCOL_FRAGMENT => None,
        Family::V6 => Some(be16(packet, IPV6 + 2) & !7 != 0),
    }
}

/// The source of a packet whose header is whole.
pub(crate) fn source(packet: &[u8], family: Family) -> IpAddr {
    match family {
        Family::V4 => address(&packet[12..16]),
        Family::V6 => address(&packet[8..24]),
    }
}

/// The destination of a packet whose header is whole.
#[inline]
pub(crate) fn destination(packet: &[u8], family: Family) -> IpAddr {
    match family {
        Family::V4 => address(&packet[16..20]),
        Family::V6 => address(&packet[24..40]),
    }
}

/// The address of 4 bytes, or of 16.
fn address(bytes: &[u8]) -> IpAddr {
    match bytes.first_chunk::<16>() {
        Some(bytes) => Ipv6Addr::from(*bytes).into(),
        None => Ipv4Addr::from_bits(be32(bytes, 0)).into(),
    }
}

/// Takes one off the time to live or the hop limit.
///
/// The header is whole, and the field is 1 at the least.
#[inline]
pub(crate) fn count_hop(packet: &mut [u8], family: Family) {
    match family {
        Family::V4 => {
            packet[8] -= 1;
            let sum = with_hop_less(be16(packet, 10));
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Family::V6 => packet[7] -= 1,
    }
}

/// Writes another congestion field.
///
/// The header is whole.
pub(crate) fn set_congestion(packet: &mut [u8], family: Family, congestion: u8) {
    match family {
        Family::V4 => {
            let old = u16::from(packet[1]);
            packet[1] = packet[1] & !3 | congestion;
            let sum = changed(be16(packet, 10), old, packet[1].into());
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        Family::V6 => packet[1] = packet[1] & !0x30 | congestion << 4,
    }
}

/// The parts of an outer header that a tunnel reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) protocol: u8,
    /// Bytes of the whole packet.
    pub(crate) len: usize,
    pub(crate) class: u8,
    pub(crate) is_whole: bool,
    pub(crate) id: u16,
}

/// The hops of a packet that a tunnel makes.
const HOPS: u8 = 64;

impl Outer {
    /// Writes the header to the start of a packet.
    ///
    /// Panics if the packet is shorter. The addresses are of one family.
    #[inline]
    pub(crate) fn write(&self, packet: &mut [u8]) {
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                // Words stay in registers: bytes that are written one by one and read together wait for
                // memory.
                let flags = if self.is_whole { DONT_FRAGMENT } else { 0 };
                let mut words = [
                    0x4500_0000 | u32::from(self.class) << 16 | u32::from(narrow::u16(self.len)),
                    u32::from(self.id) << 16 | u32::from(flags),
                    u32::from(HOPS) << 24 | u32::from(self.protocol) << 16,
                    src.to_bits(),
                    dst.to_bits(),
                ];
                words[2] |= u32::from(!fold(words.iter().map(|&word| u64::from(word)).sum()));
                let (header, _) = packet[..IPV4].as_chunks_mut::<4>();
                header.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_be_bytes());
            }
            (src, dst) => {
                let bits = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                let mut header = [0; IPV6];
                header[..2].copy_from_slice(&(0x6000 | u16::from(self.class) << 4).to_be_bytes());
                header[4..6].copy_from_slice(&narrow::u16(self.len - IPV6).to_be_bytes());
                (header[6], header[7]) = (self.protocol, HOPS);
                header[8..24].copy_from_slice(&bits(src));
                header[24..40].copy_from_slice(&bits(dst));
                packet[..IPV6].copy_from_slice(&header);
            }
        }
    }
}

/// The sum of an IPv6 packet's payload with what is summed of its header (RFC 8200, 8.1). No extension header
/// is there, and the packet ends where its header says.
fn sum_of_payload(packet: &[u8]) -> u16 {
    let payload = &packet[IPV6..];
    let length = add(narrow::u16(payload.len()), packet[6].into());
    add(add(sum(&packet[8..IPV6]), sum(payload)), length)
}

/// Whether the checksum in the payload of an IPv6 packet of so many bytes is right.
pub(crate) fn is_sum_right(packet: &[u8], len: usize) -> bool {
    sum_of_payload(&packet[..len]) == 0xffff
}

/// The checksum of a UDP datagram in IPv6, whose own field is 0.
///
/// The packet is an IPv6 header and the datagram.
pub(crate) fn udp_checksum(packet: &[u8]) -> u16 {
    match !sum_of_payload(packet) {
        0 => 0xffff,
        sum => sum,
    }
}
