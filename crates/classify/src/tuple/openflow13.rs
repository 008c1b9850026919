//! [`OpenFlow13Tuple`]: the match fields of OpenFlow 1.3 in a cache line.

use super::frame::FrameError;
use super::{Field, Kind, Tuple, words};

/// The match fields that a switch of OpenFlow 1.3 reads from a frame: 512 bits in 16 words. One is absent:
/// the target of neighbour discovery, which a match can only have whole.
///
/// Fields share a place where no frame has both. A rule on such a field has to fix the type that the field is
/// of (specification 1.3.5, section 7.2.3.6), so that it takes no field for another one:
///
/// | place | IPv4 | IPv6 | ARP | others |
/// |---|---|---|---|---|
/// | `eth_vlan` | priority (3 bits), 1 for a tag (1), VLAN (12) of the outer tag | | | |
/// | `sport` | port; ICMP type (8), code (8) | port; ICMPv6 type, code | operation | |
/// | `dport` | port | port; neighbour discovery: highest 16 bits of the link-layer address | highest 16 bits of `arp_sha` | |
/// | `label` | | flow label (20), extension headers (9) | | MPLS label (20), class (3), bottom (1); service of a PBB (24) |
/// | `src` | source and destination in the first 64 bits | source | sender and target in the first 64 bits | |
/// | `dst` | | destination | `arp_tha` in the first 48 bits | |
/// | `link` | | the other 32 bits of the link-layer address | the other 32 bits of `arp_sha` | |
///
/// Bits are counted from the highest of a place on. `wirespeed-openflow` alone makes such tuples of frames
/// and of flows: [`of_frame`](Tuple::of_frame) is an error. Rules in words name these places.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct OpenFlow13Tuple([u32; 16]);

const FIELDS: [Field; 13] = [
    Field::new("in_port", 0, 16, Kind::Number),
    Field::new("eth_src", 16, 48, Kind::Mac),
    Field::new("eth_dst", 64, 48, Kind::Mac),
    Field::new("eth_vlan", 112, 16, Kind::Hex),
    Field::new("eth_type", 128, 16, Kind::Hex),
    Field::new("tos", 144, 8, Kind::Number),
    Field::new("proto", 152, 8, Kind::Protocol),
    Field::new("sport", 160, 16, Kind::Number),
    Field::new("dport", 176, 16, Kind::Number),
    Field::new("label", 192, 32, Kind::Hex),
    Field::new("src", 224, 128, Kind::Ipv6),
    Field::new("dst", 352, 128, Kind::Ipv6),
    Field::new("link", 480, 32, Kind::Hex),
];

words!(OpenFlow13Tuple, 16, 64, "openflow13", FIELDS, [0; 16]);

impl OpenFlow13Tuple {
    /// The port that the frame came in on.
    pub const IN_PORT: Field = FIELDS[0];
    /// The source MAC address.
    pub const ETH_SRC: Field = FIELDS[1];
    /// The destination MAC address.
    pub const ETH_DST: Field = FIELDS[2];
    /// The outer tag.
    pub const ETH_VLAN: Field = FIELDS[3];
    /// The EtherType.
    pub const ETH_TYPE: Field = FIELDS[4];
    /// The type of service.
    pub const TOS: Field = FIELDS[5];
    /// The IP protocol.
    pub const PROTO: Field = FIELDS[6];
    /// The source port, and what shares its place.
    pub const SPORT: Field = FIELDS[7];
    /// The destination port, and what shares its place.
    pub const DPORT: Field = FIELDS[8];
    /// A flow label, or what shares its place.
    pub const LABEL: Field = FIELDS[9];
    /// The source, and what shares its place.
    pub const SRC: Field = FIELDS[10];
    /// The destination, and what shares its place.
    pub const DST: Field = FIELDS[11];
    /// The lowest 32 bits of a link-layer address behind Ethernet's.
    pub const LINK: Field = FIELDS[12];

    const fn from_frame(_in_port: u16, _frame: &[u8]) -> Result<Self, FrameError> {
        Err(FrameError::OfFields { tuple: Self::NAME })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_refused() {
        let error = OpenFlow13Tuple::of_frame(1, &[0; 64]).expect_err("it is of fields");
        assert_eq!(error.to_string(), "a tuple of openflow13 is made of match fields, not of a frame");
    }

    #[test]
    fn each_bit_is_of_one_field() {
        assert_eq!(OpenFlow13Tuple::USED.ones(), 512);
        assert_eq!(FIELDS.iter().map(|field| field.width).sum::<u16>(), 512);
    }
}
