//! [`Field`]: the basic match fields of OpenFlow 1.3, and where each lies in a [`Key`].
//!
//! ```text
//! word 0   in_port (32) | eth_type (16) | vlan_vid (16: a bit for "tagged", 12 for the VLAN)
//! word 1   eth_dst (48) | ip_proto (8) | ip_dscp (6) | ip_ecn (2)
//! word 2   eth_src (48) | vlan_pcp (8) | mpls_tc (7) | mpls_bos (1)
//! word 3   ipv4_src, arp_spa (32) | ipv4_dst, arp_tpa (32)
//! word 4   tcp, udp, sctp_src, arp_op (16) | …_dst (16) | icmpv4, icmpv6 type (16) | code (16)
//! word 5   metadata                        word 6    tunnel_id
//! word 7   in_phy_port (32) | mpls_label (32)
//! word 8   ipv6_flabel (32) | pbb_isid (32)  word 9    ipv6_exthdr (16)
//! words 10, 11  ipv6_src                   words 12, 13  ipv6_dst
//! words 14, 15  ipv6_nd_target             word 16   arp_sha, ipv6_nd_sll      word 17   arp_tha, ipv6_nd_tll
//! ```
//!
//! Fields share a place where no packet has both: a match on such a field has to match the type exactly that
//! the field is of (specification 1.3.5, section 7.2.3.6), so that no match takes one field for the other.

/// The number of words of a [`Key`].
pub const WORDS: usize = 18;

/// All match fields of a packet in one row, or a mask over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key(pub [u64; WORDS]);

macro_rules! fields {
    ($($(#[doc = $doc:literal])+ $name:ident = $oxm:literal, $bits:literal, $word:literal, $shift:literal, $maskable:literal, $text:literal;)+) => {
        /// A match field, with its number in OpenFlow's basic class.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Field {
            $($(#[doc = $doc])+ $name = $oxm,)+
        }

        impl Field {
            /// All fields, in the order of their numbers.
            pub const ALL: [Self; 40] = [$(Self::$name),+];

            const PLACES: [Place; 40] = [$(Place { bits: $bits, word: $word, shift: $shift, maskable: $maskable, name: $text }),+];
        }
    };
}

/// Where a field lies, and what it is.
struct Place {
    bits: u32,
    word: usize,
    shift: u32,
    maskable: bool,
    name: &'static str,
}

fields! {
    /// The port that the packet came in on.
    InPort = 0, 32, 0, 32, false, "in_port";
    /// The physical port.
    InPhyPort = 1, 32, 7, 32, false, "in_phy_port";
    /// The number that tables pass on with a packet.
    Metadata = 2, 64, 5, 0, true, "metadata";
    /// The Ethernet destination.
    EthDst = 3, 48, 1, 16, true, "eth_dst";
    /// The Ethernet source.
    EthSrc = 4, 48, 2, 16, true, "eth_src";
    /// The type behind all VLAN tags.
    EthType = 5, 16, 0, 16, false, "eth_type";
    /// The VLAN of the outer tag, with the bit 0x1000; 0 without a tag.
    VlanVid = 6, 13, 0, 0, true, "vlan_vid";
    /// The priority of the outer tag.
    VlanPcp = 7, 3, 2, 8, false, "vlan_pcp";
    /// The upper six bits of the type of service.
    IpDscp = 8, 6, 1, 2, false, "ip_dscp";
    /// The lower two bits of the type of service.
    IpEcn = 9, 2, 1, 0, false, "ip_ecn";
    /// The IP protocol.
    IpProto = 10, 8, 1, 8, false, "ip_proto";
    /// The IPv4 source.
    Ipv4Src = 11, 32, 3, 32, true, "ipv4_src";
    /// The IPv4 destination.
    Ipv4Dst = 12, 32, 3, 0, true, "ipv4_dst";
    /// The source port of TCP.
    TcpSrc = 13, 16, 4, 48, false, "tcp_src";
    /// The destination port of TCP.
    TcpDst = 14, 16, 4, 32, false, "tcp_dst";
    /// The source port of UDP.
    UdpSrc = 15, 16, 4, 48, false, "udp_src";
    /// The destination port of UDP.
    UdpDst = 16, 16, 4, 32, false, "udp_dst";
    /// The source port of SCTP.
    SctpSrc = 17, 16, 4, 48, false, "sctp_src";
    /// The destination port of SCTP.
    SctpDst = 18, 16, 4, 32, false, "sctp_dst";
    /// The type of ICMP.
    Icmpv4Type = 19, 8, 4, 16, false, "icmpv4_type";
    /// The code of ICMP.
    Icmpv4Code = 20, 8, 4, 0, false, "icmpv4_code";
    /// The operation of ARP.
    ArpOp = 21, 16, 4, 48, false, "arp_op";
    /// The sender's IPv4 address in ARP.
    ArpSpa = 22, 32, 3, 32, true, "arp_spa";
    /// The target's IPv4 address in ARP.
    ArpTpa = 23, 32, 3, 0, true, "arp_tpa";
    /// The sender's link-layer address in ARP.
    ArpSha = 24, 48, 16, 0, true, "arp_sha";
    /// The target's link-layer address in ARP.
    ArpTha = 25, 48, 17, 0, true, "arp_tha";
    /// The IPv6 source.
    Ipv6Src = 26, 128, 10, 0, true, "ipv6_src";
    /// The IPv6 destination.
    Ipv6Dst = 27, 128, 12, 0, true, "ipv6_dst";
    /// The flow label of IPv6.
    Ipv6Flabel = 28, 20, 8, 32, true, "ipv6_flabel";
    /// The type of ICMPv6.
    Icmpv6Type = 29, 8, 4, 16, false, "icmpv6_type";
    /// The code of ICMPv6.
    Icmpv6Code = 30, 8, 4, 0, false, "icmpv6_code";
    /// The target of neighbour discovery.
    Ipv6NdTarget = 31, 128, 14, 0, false, "ipv6_nd_target";
    /// The source link-layer address of neighbour discovery.
    Ipv6NdSll = 32, 48, 16, 0, false, "ipv6_nd_sll";
    /// The target link-layer address of neighbour discovery.
    Ipv6NdTll = 33, 48, 17, 0, false, "ipv6_nd_tll";
    /// The label of the outer MPLS entry.
    MplsLabel = 34, 20, 7, 0, false, "mpls_label";
    /// The traffic class of the outer MPLS entry.
    MplsTc = 35, 3, 2, 1, false, "mpls_tc";
    /// Whether the outer MPLS entry is the last.
    MplsBos = 36, 1, 2, 0, false, "mpls_bos";
    /// The service of provider backbone bridges.
    PbbIsid = 37, 24, 8, 0, true, "pbb_isid";
    /// The number of a logical port's tunnel.
    TunnelId = 38, 64, 6, 0, true, "tunnel_id";
    /// The extension headers of IPv6.
    Ipv6Exthdr = 39, 9, 9, 0, true, "ipv6_exthdr";
}

impl Field {
    const fn place(self) -> &'static Place {
        &Self::PLACES[self as usize]
    }

    /// The field of a number.
    #[must_use]
    pub fn of(oxm: u8) -> Option<Self> {
        Self::ALL.get(usize::from(oxm)).copied()
    }

    /// The number of its bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.place().bits
    }

    /// The number of its bytes in messages.
    #[must_use]
    pub const fn bytes(self) -> usize {
        // Of the widths of fields only 20 bits take more bytes than they fill.
        if self.bits() == 20 { 4 } else { self.bits().div_ceil(8) as usize }
    }

    /// Whether a match may have a mask over it.
    #[must_use]
    pub const fn is_maskable(self) -> bool {
        self.place().maskable
    }

    /// Its name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.place().name
    }

    /// The number of all ones in its width.
    #[must_use]
    pub const fn all(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Its bit in a set of fields.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self as u8
    }
}

impl Key {
    /// The number in a field.
    #[must_use]
    #[inline]
    pub const fn of(&self, field: Field) -> u128 {
        let Place { bits, word, shift, .. } = *field.place();
        if bits == 128 {
            return (self.0[word] as u128) << 64 | self.0[word + 1] as u128;
        }
        (self.0[word] >> shift) as u128 & field.all()
    }

    /// Sets the number in a field; bits over its width are dropped.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // halves of a number, or as many bits as the field has
    pub const fn set(&mut self, field: Field, number: u128) {
        let Place { bits, word, shift, .. } = *field.place();
        let number = number & field.all();
        if bits == 128 {
            self.0[word] = (number >> 64) as u64;
            self.0[word + 1] = number as u64;
            return;
        }
        self.0[word] = self.0[word] & !((field.all() as u64) << shift) | (number as u64) << shift;
    }

    /// The key with a number in a field.
    #[must_use]
    pub const fn with(mut self, field: Field, number: u128) -> Self {
        self.set(field, number);
        self
    }

    /// The bits that both have.
    #[must_use]
    pub fn and(&self, mask: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & mask.0[at]))
    }

    /// Whether each bit of a mask is one of this mask.
    #[must_use]
    pub fn covers(&self, mask: &Self) -> bool {
        self.and(mask) == *mask
    }

    /// Whether the key has a value under a mask.
    #[must_use]
    pub fn matches(&self, value: &Self, mask: &Self) -> bool {
        (0..WORDS).all(|at| (self.0[at] ^ value.0[at]) & mask.0[at] == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_apart_unless_no_packet_has_both() {
        let mask = |field: Field| Key::default().with(field, field.all());
        let shared = [
            (Field::TcpSrc, Field::UdpSrc),
            (Field::TcpSrc, Field::SctpSrc),
            (Field::UdpSrc, Field::SctpSrc),
            (Field::TcpDst, Field::UdpDst),
            (Field::TcpDst, Field::SctpDst),
            (Field::UdpDst, Field::SctpDst),
            (Field::TcpSrc, Field::ArpOp),
            (Field::UdpSrc, Field::ArpOp),
            (Field::SctpSrc, Field::ArpOp),
            (Field::Ipv4Src, Field::ArpSpa),
            (Field::Ipv4Dst, Field::ArpTpa),
            (Field::Icmpv4Type, Field::Icmpv6Type),
            (Field::Icmpv4Code, Field::Icmpv6Code),
            (Field::ArpSha, Field::Ipv6NdSll),
            (Field::ArpTha, Field::Ipv6NdTll),
        ];
        for (at, &one) in Field::ALL.iter().enumerate() {
            assert_eq!(one as usize, at);
            assert_eq!(mask(one).of(one), one.all(), "{}", one.name());
            for &other in &Field::ALL[at + 1..] {
                let is_apart = mask(one).and(&mask(other)) == Key::default();
                assert_eq!(is_apart, !shared.contains(&(one, other)), "{} {}", one.name(), other.name());
            }
        }
    }
}
