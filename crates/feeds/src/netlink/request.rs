//! Requests to the kernel: dumps, and the resolution of a neighbour.

use std::net::IpAddr;

use super::attributes::{AF_INET, AF_INET6};
use super::message::flags;

/// What a dump lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DumpOf {
    Links,
    Addresses,
    Neighbours,
    Rules,
    NextHops,
    RoutesV4,
    RoutesV6,
}

impl DumpOf {
    /// The message type, the family, and the length of the message's fixed part.
    const fn request(self) -> (u16, u8, usize) {
        match self {
            Self::Links => (18, 0, 16),
            Self::Addresses => (22, 0, 8),
            Self::Neighbours => (30, 0, 12),
            Self::Rules => (34, 0, 12),
            Self::NextHops => (106, 0, 8),
            Self::RoutesV4 => (26, AF_INET, 12),
            Self::RoutesV6 => (26, AF_INET6, 12),
        }
    }
}

/// The request of a dump.
pub(crate) fn dump_request(of: DumpOf, sequence: u32) -> Vec<u8> {
    let (kind, family, fixed) = of.request();
    let mut body = vec![0; fixed];
    body[0] = family;
    request(kind, flags::DUMP, sequence, &body)
}

/// Type of the message of a neighbour, and the attribute with its address.
const RTM_NEWNEIGH: u16 = 28;
const NDA_DST: u16 = 1;
/// Flag of a neighbour: a packet is about to use it, so the kernel asks for its hardware address.
const NTF_USE: u8 = 0x01;

/// The request to resolve a neighbour, which the kernel makes if it doesn't know it. No answer is asked for.
pub(crate) fn resolve_request(interface: u32, address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(v4) => (AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (AF_INET6, v6.octets().to_vec()),
    };
    // Family, three bytes of padding, interface, state (none), flags, type.
    let mut body = vec![family, 0, 0, 0];
    body.extend(interface.to_ne_bytes());
    body.extend([0, 0, NTF_USE, 0]);
    let length = u16::try_from(4 + octets.len()).expect("at most 20");
    body.extend(length.to_ne_bytes());
    body.extend(NDA_DST.to_ne_bytes());
    body.extend(octets);
    request(RTM_NEWNEIGH, flags::CREATE, 0, &body)
}

/// A request: its header and its body.
fn request(kind: u16, more: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(16 + body.len()).expect("requests are short");
    let mut bytes = Vec::with_capacity(16 + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((flags::REQUEST | more).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
    use netlink_packet_route::RouteNetlinkMessage;
    use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourFlags};

    use super::*;

    #[test]
    fn the_request_for_a_neighbour_reads_as_it_should() {
        for address in ["192.0.2.7", "2001:db8::7"] {
            let address: IpAddr = address.parse().unwrap();
            let bytes = resolve_request(7, address);
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes).unwrap();
            assert_eq!(message.header.flags, 0x401, "a request that creates");
            let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewNeighbour(neighbour)) = message.payload
            else {
                panic!("{message:?}");
            };
            assert_eq!((neighbour.header.ifindex, neighbour.header.flags), (7, NeighbourFlags::Use));
            let expected = match address {
                IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
                IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
            };
            assert_eq!(neighbour.attributes, [NeighbourAttribute::Destination(expected)]);
        }
    }
}
