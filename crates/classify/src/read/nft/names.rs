//! The names that nft writes for numbers.

use crate::read::services;

/// Types of ICMP messages (`nft describe icmp type`).
const ICMP_TYPES: [(&str, u8); 15] = [
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp-request", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("address-mask-request", 17),
    ("address-mask-reply", 18),
];

/// Codes of ICMP messages.
const ICMP_CODES: [(&str, u8); 8] = [
    ("net-unreachable", 0),
    ("host-unreachable", 1),
    ("prot-unreachable", 2),
    ("port-unreachable", 3),
    ("frag-needed", 4),
    ("net-prohibited", 9),
    ("host-prohibited", 10),
    ("admin-prohibited", 13),
];

/// Types of ICMPv6 messages.
const ICMPV6_TYPES: [(&str, u8); 19] = [
    ("destination-unreachable", 1),
    ("packet-too-big", 2),
    ("time-exceeded", 3),
    ("parameter-problem", 4),
    ("echo-request", 128),
    ("echo-reply", 129),
    ("mld-listener-query", 130),
    ("mld-listener-report", 131),
    ("mld-listener-done", 132),
    ("mld-listener-reduction", 132),
    ("nd-router-solicit", 133),
    ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135),
    ("nd-neighbor-advert", 136),
    ("nd-redirect", 137),
    ("router-renumbering", 138),
    ("ind-neighbor-solicit", 141),
    ("ind-neighbor-advert", 142),
    ("mld2-listener-report", 143),
];

/// Codes of ICMPv6 messages.
const ICMPV6_CODES: [(&str, u8); 6] = [
    ("no-route", 0),
    ("admin-prohibited", 1),
    ("addr-unreachable", 3),
    ("port-unreachable", 4),
    ("policy-fail", 5),
    ("reject-route", 6),
];

/// TCP flags from the lowest bit on.
const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ecn", "cwr"];

/// What the numbers of a field are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// Names that the tuple has: of addresses, and of protocols.
    OfField,
    /// Services, of which nft takes the port whatever the protocol.
    Ports,
    IcmpTypes,
    IcmpCodes,
    Icmpv6Types,
    Icmpv6Codes,
}

impl Names {
    /// The number of a name.
    pub(super) fn number(self, name: &str) -> Option<u128> {
        let of: &[(&str, u8)] = match self {
            Self::OfField => return None,
            Self::Ports => return services::port(name, None).map(u128::from),
            Self::IcmpTypes => &ICMP_TYPES,
            Self::IcmpCodes => &ICMP_CODES,
            Self::Icmpv6Types => &ICMPV6_TYPES,
            Self::Icmpv6Codes => &ICMPV6_CODES,
        };
        of.iter().find(|entry| entry.0 == name).map(|entry| entry.1.into())
    }
}

/// The bit of a TCP flag.
pub(super) fn flag(name: &str) -> Option<u8> {
    FLAGS.iter().position(|flag| *flag == name).map(|bit| 1 << bit)
}
