//! IPv6: the checks before a packet is looked up, and the changes when it is forwarded (RFC 8200, RFC 4291).

use wirespeed::V6;
use wirespeed::fib::Address;

use crate::header::{IPV6, be16, ipv6_payload};
use crate::{Reason, Verdict};

/// What the checks say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The packet is to be looked up.
    LookUp(V6),
    /// The packet is decided.
    Decided(Verdict),
    /// Its source is of the link that it came from: dropped, and the sender is told.
    BeyondScope,
}

/// The hop-by-hop options header.
const HOP_BY_HOP: u8 = 0;
/// Its option that asks routers on the way to look at the packet (RFC 2711).
const ROUTER_ALERT: u8 = 5;

/// The kinds of addresses that matter to a router.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Global,
    /// Not forwarded: `::`, `::1`, and IPv4-mapped addresses.
    Martian,
    LinkLocal,
    Multicast,
}

#[inline]
const fn kind(high: u64, low: u64) -> Kind {
    // Most addresses are of 2000::/3.
    if high >> 61 == 1 {
        return Kind::Global;
    }
    kind_of_others(high, low)
}

const fn kind_of_others(high: u64, low: u64) -> Kind {
    if high >> 56 == 0xff {
        Kind::Multicast
    } else if high >> 54 == 0xfe80 >> 6 {
        Kind::LinkLocal
    } else if high == 0 && (low <= 1 || low >> 32 == 0xffff) {
        Kind::Martian
    } else {
        Kind::Global
    }
}

#[inline]
fn half(packet: &[u8], at: usize) -> u64 {
    packet[at..].first_chunk().map_or(0, |&bytes| u64::from_be_bytes(bytes))
}

/// Checks a packet that begins at its IPv6 header.
#[inline]
pub(super) fn check(packet: &[u8]) -> Checked {
    let drop = |reason| Checked::Decided(Verdict::Drop(reason));
    if packet.len() < IPV6 {
        return drop(Reason::Cut);
    }
    if packet[0] >> 4 != 6 {
        return drop(Reason::Version);
    }
    let payload = usize::from(be16(packet, 4));
    if IPV6 + payload > packet.len() {
        return drop(Reason::Length);
    }
    if packet[6] == HOP_BY_HOP
        && let Some(verdict) = hop_by_hop(&packet[IPV6..], payload)
    {
        return Checked::Decided(verdict);
    }
    let source = kind(half(packet, 8), half(packet, 16));
    let (high, low) = (half(packet, 24), half(packet, 32));
    match (source, kind(high, low)) {
        (Kind::Global, Kind::Global) => {
            Checked::LookUp(V6::from_u128_low(u128::from(high) << 64 | u128::from(low)))
        }
        (source, destination) => other(source, destination),
    }
}

#[cold]
fn other(source: Kind, destination: Kind) -> Checked {
    match (source, destination) {
        // Neighbour discovery is sent from `::`, too.
        (Kind::Multicast, _) => Checked::Decided(Verdict::Drop(Reason::Martian)),
        (_, Kind::Multicast | Kind::LinkLocal) => Checked::Decided(Verdict::Kernel),
        (Kind::LinkLocal, Kind::Global) => Checked::BeyondScope,
        _ => Checked::Decided(Verdict::Drop(Reason::Martian)),
    }
}

/// What the hop-by-hop options decide. A length of 0 says that the packet is larger than 65,535 bytes, which
/// no frame here is.
#[cold]
fn hop_by_hop(extension: &[u8], payload: usize) -> Option<Verdict> {
    if payload == 0 {
        return Some(Verdict::Drop(Reason::Length));
    }
    let extension = &extension[..extension.len().min(payload)];
    let bytes = extension.get(1).map(|&units| (usize::from(units) + 1) * 8);
    let Some(mut options) = bytes.and_then(|bytes| extension.get(2..bytes)) else {
        return Some(Verdict::Drop(Reason::Cut));
    };
    while let Some((&option, rest)) = options.split_first() {
        if option == 0 {
            options = rest;
            continue;
        }
        if option == ROUTER_ALERT {
            return Some(Verdict::Kernel);
        }
        let Some((&len, rest)) = rest.split_first() else { return Some(Verdict::Drop(Reason::Cut)) };
        let Some(rest) = rest.get(usize::from(len)..) else { return Some(Verdict::Drop(Reason::Cut)) };
        options = rest;
    }
    None
}

/// Whether its hop limit is spent, so that it can't be forwarded.
#[inline]
pub(super) fn is_expired(packet: &[u8]) -> bool {
    packet[7] <= 1
}

/// Takes one off the hop limit, which must be 1 at the least.
#[inline]
pub(super) fn count_hop(packet: &mut [u8]) {
    packet[7] -= 1;
}

/// The bytes of the packet, without padding.
#[inline]
pub(super) fn total_length(packet: &[u8]) -> usize {
    IPV6 + usize::from(be16(packet, 4))
}

/// The number of the packet's flow: with the flow label, and with ports where there are some (RFC 6438).
pub(super) fn flow(packet: &[u8]) -> u32 {
    let label = u32::from_be_bytes([0, packet[1] & 15, packet[2], packet[3]]);
    let Some(payload) = ipv6_payload(packet).filter(|_| packet[6] != 44) else {
        return crate::route::flow_hash(&packet[8..40], 0, label);
    };
    let has_ports = matches!(payload.protocol, 6 | 17 | 33 | 132 | 136) && !payload.is_later_fragment;
    let ports = packet.get(payload.at..payload.at + 4).filter(|_| has_ports);
    let ports = ports.map_or(0, |at| u32::from_be_bytes([at[0], at[1], at[2], at[3]]));
    crate::route::flow_hash(&packet[8..40], payload.protocol, ports ^ label.rotate_left(7))
}
