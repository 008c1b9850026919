//! The destination of a captured packet, by link type. It reads no more than it needs, so short snapshots are
//! enough.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The link header of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Ethernet II, 802.1Q and 802.1ad tags.
    Ethernet,
    /// IP without a link header, either version.
    Raw,
    /// Linux cooked, 16 bytes (`any` device of older tools).
    Cooked,
    /// Linux cooked version 2, 20 bytes.
    Cooked2,
    /// BSD loopback: 4 bytes with the family, in the byte order of the capturing host.
    Null,
    /// A type that this reader doesn't know.
    Other,
}

impl Link {
    /// The link type of a number in the registry of tcpdump.org.
    pub(super) fn of(number: u32) -> Self {
        // The upper half may hold the length of a frame check sequence.
        match number & 0xffff {
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            0 | 108 => Self::Null,
            _ => Self::Other,
        }
    }

    /// The destination in the packet's outermost IP header. `None` if there is none or it is truncated.
    pub(super) fn destination(self, packet: &[u8]) -> Option<IpAddr> {
        match self {
            Self::Ethernet => typed(packet.get(12..)?),
            Self::Raw => ip(packet),
            Self::Cooked => typed(packet.get(14..)?),
            Self::Cooked2 => match packet.first_chunk()? {
                [0x08, 0x00] | [0x86, 0xdd] => ip(packet.get(20..)?),
                [0x81, 0x00] => typed(packet.get(22..)?),
                _ => None,
            },
            // The numbers of IPv6 as a family differ between systems, but the version field does not.
            Self::Null => ip(packet.get(4..)?),
            Self::Other => None,
        }
    }
}

/// The packet after an EtherType and any number of VLAN tags.
fn typed(mut rest: &[u8]) -> Option<IpAddr> {
    loop {
        match rest.first_chunk()? {
            [0x08, 0x00] | [0x86, 0xdd] => return ip(&rest[2..]),
            [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00] => rest = rest.get(4..)?,
            _ => return None,
        }
    }
}

/// The destination of an IP header of either version.
fn ip(header: &[u8]) -> Option<IpAddr> {
    match header.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*header.get(16..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*header.get(24..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An IPv4 header to 192.0.2.`last`.
    pub(in super::super) fn v4(last: u8) -> Vec<u8> {
        let mut header = vec![0; 20];
        header[0] = 0x45;
        header[16..].copy_from_slice(&[192, 0, 2, last]);
        header
    }

    fn v6() -> Vec<u8> {
        let mut header = vec![0; 40];
        header[0] = 0x60;
        header[39] = 1;
        header
    }

    fn after(link: &[u8], packet: Vec<u8>) -> Vec<u8> {
        [link, &packet].concat()
    }

    /// An IPv4 packet in Ethernet.
    pub(in super::super) fn ethernet(last: u8) -> Vec<u8> {
        after(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], v4(last))
    }

    #[test]
    fn every_link_type_finds_the_destination() {
        let want4: IpAddr = "192.0.2.9".parse().unwrap();
        let want6: IpAddr = "::1".parse().unwrap();
        let macs = [0; 12];
        let tagged = |tags: &[u8], ip: Vec<u8>| after(&macs, after(tags, ip));
        assert_eq!(Link::Ethernet.destination(&ethernet(9)), Some(want4));
        assert_eq!(Link::Ethernet.destination(&tagged(&[0x81, 0, 0, 5, 0x86, 0xdd], v6())), Some(want6));
        let twice = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0];
        assert_eq!(Link::Ethernet.destination(&tagged(&twice, v4(9))), Some(want4));
        assert_eq!(Link::Raw.destination(&v6()), Some(want6));
        let cooked = [0; 14];
        assert_eq!(Link::Cooked.destination(&after(&cooked, after(&[8, 0], v4(9)))), Some(want4));
        let mut cooked2 = [0; 20];
        cooked2[..2].copy_from_slice(&[0x86, 0xdd]);
        assert_eq!(Link::Cooked2.destination(&after(&cooked2, v6())), Some(want6));
        assert_eq!(Link::Null.destination(&after(&[2, 0, 0, 0], v4(9))), Some(want4));
        assert_eq!(Link::Other.destination(&ethernet(9)), None);
    }

    #[test]
    fn what_is_cut_off_or_not_ip_has_none() {
        let packet = ethernet(9);
        for len in 0..packet.len() {
            assert_eq!(Link::Ethernet.destination(&packet[..len]), None);
        }
        let arp = after(&[0; 12], vec![8, 6, 0, 1]);
        assert_eq!(Link::Ethernet.destination(&arp), None);
        let tags = [[0x81, 0, 0, 0]; 1000].concat();
        assert_eq!(Link::Ethernet.destination(&after(&[0; 12], tags)), None);
    }
}
