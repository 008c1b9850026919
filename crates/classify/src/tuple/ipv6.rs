//! [`Ipv6Tuple`]: the 5-tuple of IPv6.

use std::net::Ipv6Addr;

use super::frame::{self, FrameError};
use super::{Field, Kind, Tuple, words};

/// Source, destination, source port, destination port and protocol: 296 bits in 10 words.
///
/// The protocol is that of the header after all extension headers. ESP ends the search, and so does a
/// fragment other than the first. The ports are like those of [`Ipv4Tuple`](super::Ipv4Tuple).
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Ipv6Tuple([u32; 10]);

const FIELDS: [Field; 5] = [
    Field::new("src", 0, 128, Kind::Ipv6).or_called("ipv6_src"),
    Field::new("dst", 128, 128, Kind::Ipv6).or_called("ipv6_dst"),
    Field::new("sport", 256, 16, Kind::Number).or_called("tp_src"),
    Field::new("dport", 272, 16, Kind::Number).or_called("tp_dst"),
    Field::new("proto", 288, 8, Kind::Protocol).or_called("nw_proto"),
];

words!(Ipv6Tuple, 10, 37, "ipv6", FIELDS, [0; 10]);

impl Ipv6Tuple {
    /// The source address.
    pub const SRC: Field = FIELDS[0];
    /// The destination address.
    pub const DST: Field = FIELDS[1];
    /// The source port, or an ICMPv6 type.
    pub const SPORT: Field = FIELDS[2];
    /// The destination port, or an ICMPv6 code.
    pub const DPORT: Field = FIELDS[3];
    /// The protocol.
    pub const PROTO: Field = FIELDS[4];

    /// The tuple of these fields.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr, sport: u16, dport: u16, proto: u8) -> Self {
        let numbers = [src.to_bits(), dst.to_bits(), sport.into(), dport.into(), proto.into()];
        FIELDS.iter().zip(numbers).fold(Self::default(), |tuple, (field, number)| tuple.with(field, number))
    }

    /// The tuple of an IPv6 packet, from its header on.
    #[inline]
    pub fn of_packet(packet: &[u8]) -> Result<Self, FrameError> {
        match Self::of_plain(packet) {
            Some(tuple) => Ok(tuple),
            None => Self::of_any(packet),
        }
    }

    /// The tuple of an IPv6 packet as most are: without extension headers, with both ports; `None` for any
    /// other. It stays in registers, while one of [`of_packet`](Self::of_packet) goes through memory.
    #[inline]
    #[must_use]
    pub fn of_plain(packet: &[u8]) -> Option<Self> {
        let head: &[u8; 44] = packet.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let is_plain = head[0] >> 4 == 6 && word(4) >> 16 >= 4 && frame::has_ports(head[6]);
        is_plain.then(|| {
            Self([8, 12, 16, 20, 24, 28, 32, 36, 40, 44].map(|at| match at {
                44 => u32::from(head[6]) << 24,
                at => word(at),
            }))
        })
    }

    pub(super) fn of_any(packet: &[u8]) -> Result<Self, FrameError> {
        let ip = frame::ipv6(packet)?;
        let (sport, dport) = ip.transport.ports()?;
        Ok(Self::new(ip.src, ip.dst, sport, dport, ip.transport.proto))
    }

    fn from_frame(_in_port: u16, frame: &[u8]) -> Result<Self, FrameError> {
        let ethernet = frame::ethernet(frame)?;
        Self::of_packet(ethernet.of_type(frame::ETHERTYPE_IPV6)?)
    }
}
