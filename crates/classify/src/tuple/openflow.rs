//! [`OpenFlowTuple`]: the 12 fields of OpenFlow 1.0.

use super::frame::{self, ETHERTYPE_ARP, ETHERTYPE_IPV4, FrameError};
use super::{Field, Kind, Tuple, words};

/// The `dl_vlan` of a frame without a tag (`OFP_VLAN_NONE`).
pub const VLAN_NONE: u16 = 0xffff;

/// The 12 fields of OpenFlow 1.0 in the order and with the widths of `ofp_match` (specification 1.0.0,
/// section 5.2.3): with its padding the 288 bits of the paper, in 9 words.
///
/// Section 3.4 of the specification sets the values. `dl_vlan` is [`VLAN_NONE`] for a frame without a tag; of
/// several tags the outer tag counts. For ARP, `nw_proto` is the operation and the addresses are those of the
/// sender and the target. For ICMP, the ports are the type and the code. Fragments other than the first have
/// ports of 0. For frames that are neither IPv4 nor ARP, all fields after `dl_type` are 0. `nw_tos` has its
/// upper six bits. A frame with a length instead of a type has the `dl_type` of its SNAP header, or else
/// 0x05ff. A header that is cut off or contradicts itself gives 0, from that header on, because a switch must
/// handle every frame. Only a frame without an Ethernet header is an error.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct OpenFlowTuple([u32; 9]);

const FIELDS: [Field; 12] = [
    Field::new("in_port", 0, 16, Kind::Number),
    Field::new("dl_src", 16, 48, Kind::Mac),
    Field::new("dl_dst", 64, 48, Kind::Mac),
    Field::new("dl_vlan", 112, 16, Kind::Number),
    Field::new("dl_vlan_pcp", 128, 8, Kind::Number),
    Field::new("dl_type", 144, 16, Kind::Hex),
    Field::new("nw_tos", 160, 8, Kind::Number),
    Field::new("nw_proto", 168, 8, Kind::Protocol).or_called("proto"),
    Field::new("nw_src", 192, 32, Kind::Ipv4).or_called("src"),
    Field::new("nw_dst", 224, 32, Kind::Ipv4).or_called("dst"),
    Field::new("tp_src", 256, 16, Kind::Number).or_called("sport"),
    Field::new("tp_dst", 272, 16, Kind::Number).or_called("dport"),
];

words!(OpenFlowTuple, 9, 36, "openflow", FIELDS, [0, 0, 0, VLAN_NONE as u32, 0, 0, 0, 0, 0]);

impl OpenFlowTuple {
    /// The port that the frame came in on.
    pub const IN_PORT: Field = FIELDS[0];
    /// The source MAC address.
    pub const DL_SRC: Field = FIELDS[1];
    /// The destination MAC address.
    pub const DL_DST: Field = FIELDS[2];
    /// The VLAN.
    pub const DL_VLAN: Field = FIELDS[3];
    /// The VLAN's priority.
    pub const DL_VLAN_PCP: Field = FIELDS[4];
    /// The EtherType.
    pub const DL_TYPE: Field = FIELDS[5];
    /// The type of service, in its upper six bits.
    pub const NW_TOS: Field = FIELDS[6];
    /// The IP protocol, or an ARP operation.
    pub const NW_PROTO: Field = FIELDS[7];
    /// The source address.
    pub const NW_SRC: Field = FIELDS[8];
    /// The destination address.
    pub const NW_DST: Field = FIELDS[9];
    /// The source port, or an ICMP type.
    pub const TP_SRC: Field = FIELDS[10];
    /// The destination port, or an ICMP code.
    pub const TP_DST: Field = FIELDS[11];

    fn from_frame(in_port: u16, frame: &[u8]) -> Result<Self, FrameError> {
        let ethernet = frame::ethernet_or_part(frame)?;
        let (vlan, pcp) = ethernet.tag.map_or((VLAN_NONE, 0), |tag| (tag & 0xfff, tag >> 13));
        let (dl_type, payload) = ethernet.type_or_snap();
        let mut tuple = Self::default()
            .with(&Self::IN_PORT, in_port.into())
            .with(&Self::DL_SRC, ethernet.src.into())
            .with(&Self::DL_DST, ethernet.dst.into())
            .with(&Self::DL_VLAN, vlan.into())
            .with(&Self::DL_VLAN_PCP, pcp.into())
            .with(&Self::DL_TYPE, dl_type.into());
        match dl_type {
            ETHERTYPE_IPV4 => tuple.add_ipv4(payload),
            ETHERTYPE_ARP => tuple.add_arp(payload),
            _ => {}
        }
        Ok(tuple)
    }

    fn add_ipv4(&mut self, packet: &[u8]) {
        let Ok(ip) = frame::ipv4(packet) else { return };
        let (tp_src, tp_dst) = ip.transport.ports().unwrap_or_default();
        for (field, number) in [
            (Self::NW_TOS, u32::from(ip.tos & 0xfc)),
            (Self::NW_PROTO, ip.transport.proto.into()),
            (Self::NW_SRC, ip.src),
            (Self::NW_DST, ip.dst),
            (Self::TP_SRC, tp_src.into()),
            (Self::TP_DST, tp_dst.into()),
        ] {
            self.set_field(&field, number.into());
        }
    }

    fn add_arp(&mut self, packet: &[u8]) {
        let Some(arp) = frame::arp(packet) else { return };
        self.set_field(&Self::NW_PROTO, arp.operation.into());
        self.set_field(&Self::NW_SRC, arp.sender.into());
        self.set_field(&Self::NW_DST, arp.target.into());
    }
}
