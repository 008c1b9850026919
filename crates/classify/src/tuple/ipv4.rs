//! [`Ipv4Tuple`]: the 5-tuple of IPv4.

use std::net::Ipv4Addr;

use super::frame::{self, FrameError};
use super::{Field, Kind, Tuple, words};

/// Source, destination, source port, destination port and protocol: 104 bits in 4 words.
///
/// For ICMP, the type and the code take the place of the ports, as in OpenFlow. The ports are 0 for other
/// protocols without ports, and for fragments other than the first.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Ipv4Tuple([u32; 4]);

const FIELDS: [Field; 5] = [
    Field::new("src", 0, 32, Kind::Ipv4).or_called("nw_src"),
    Field::new("dst", 32, 32, Kind::Ipv4).or_called("nw_dst"),
    Field::new("sport", 64, 16, Kind::Number).or_called("tp_src"),
    Field::new("dport", 80, 16, Kind::Number).or_called("tp_dst"),
    Field::new("proto", 96, 8, Kind::Protocol).or_called("nw_proto"),
];

words!(Ipv4Tuple, 4, 13, "ipv4", FIELDS, [0; 4]);

impl Ipv4Tuple {
    /// The source address.
    pub const SRC: Field = FIELDS[0];
    /// The destination address.
    pub const DST: Field = FIELDS[1];
    /// The source port, or an ICMP type.
    pub const SPORT: Field = FIELDS[2];
    /// The destination port, or an ICMP code.
    pub const DPORT: Field = FIELDS[3];
    /// The protocol.
    pub const PROTO: Field = FIELDS[4];

    /// The tuple of these fields.
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, sport: u16, dport: u16, proto: u8) -> Self {
        Self([src.to_bits(), dst.to_bits(), (sport as u32) << 16 | dport as u32, (proto as u32) << 24])
    }

    /// The tuple of an IPv4 packet, from its header on.
    #[inline]
    pub fn of_packet(packet: &[u8]) -> Result<Self, FrameError> {
        match Self::of_plain(packet) {
            Some(tuple) => Ok(tuple),
            None => Self::of_any(packet),
        }
    }

    /// The tuple of an IPv4 packet as most are: without options, with both ports; `None` for any other. It
    /// stays in registers, while one of [`of_packet`](Self::of_packet) goes through memory.
    #[inline]
    #[must_use]
    pub fn of_plain(packet: &[u8]) -> Option<Self> {
        let head: &[u8; 24] = packet.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = word(0) & 0xffff;
        let is_later = word(4) & 0x1fff != 0;
        let is_plain = head[0] == 0x45 && length >= 24 && !is_later && frame::has_ports(head[9]);
        is_plain.then(|| Self([word(12), word(16), word(20), u32::from(head[9]) << 24]))
    }

    pub(super) fn of_any(packet: &[u8]) -> Result<Self, FrameError> {
        let ip = frame::ipv4(packet)?;
        let (sport, dport) = ip.transport.ports()?;
        Ok(Self([
            ip.src,
            ip.dst,
            u32::from(sport) << 16 | u32::from(dport),
            u32::from(ip.transport.proto) << 24,
        ]))
    }

    fn from_frame(_in_port: u16, frame: &[u8]) -> Result<Self, FrameError> {
        let ethernet = frame::ethernet(frame)?;
        Self::of_packet(ethernet.of_type(frame::ETHERTYPE_IPV4)?)
    }
}
