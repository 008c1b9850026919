//! Frames that are made: Ethernet, IPv4 or IPv6, UDP, with right lengths and checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::checksum::{add, checksum, sum};
use crate::header::{ETHERNET, IPV4, IPV6, TYPE_IPV4, TYPE_IPV6};
use crate::{Mac, narrow};

const UDP: u8 = 17;

/// A UDP datagram in a frame, to be made.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// The link-layer destination.
    pub to: Mac,
    /// The link-layer source.
    pub from: Mac,
    /// The addresses: source and destination, of one family.
    pub addresses: (IpAddr, IpAddr),
    /// The ports: source and destination.
    pub ports: (u16, u16),
    /// The time to live, or the hop limit.
    pub hops: u8,
    /// The number of bytes of the whole frame. Smaller than the headers is as large as they are.
    pub bytes: usize,
}

impl Datagram {
    /// Makes the frame. Its payload is a pattern of bytes.
    ///
    /// Panics if the addresses are of different families, or if the packet is larger than 65,535 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, ip) = match self.addresses {
            (IpAddr::V4(from), IpAddr::V4(to)) => (TYPE_IPV4, self.ipv4(from, to)),
            (IpAddr::V6(from), IpAddr::V6(to)) => (TYPE_IPV6, self.ipv6(from, to)),
            (from, to) => panic!("a packet from {from} to {to} is of no family"),
        };
        let mut frame = Vec::with_capacity(self.bytes);
        frame.extend(self.to.0);
        frame.extend(self.from.0);
        frame.extend(kind.to_be_bytes());
        frame.extend(ip);
        frame
    }

    fn ipv4(&self, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
        let udp = self.udp(IPV4, &from.octets(), &to.octets());
        let length = length(IPV4 + udp.len());
        let mut packet = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, self.hops, UDP, 0, 0];
        packet.extend(from.octets());
        packet.extend(to.octets());
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(udp);
        packet
    }

    fn ipv6(&self, from: Ipv6Addr, to: Ipv6Addr) -> Vec<u8> {
        let udp = self.udp(IPV6, &from.octets(), &to.octets());
        let length = length(udp.len());
        let mut packet = vec![0x60, 0, 0, 0, length[0], length[1], UDP, self.hops];
        packet.extend(from.octets());
        packet.extend(to.octets());
        packet.extend(udp);
        packet
    }

    /// The UDP header and a payload, behind an IP header of this many bytes.
    fn udp(&self, ip: usize, from: &[u8], to: &[u8]) -> Vec<u8> {
        let len = length(self.bytes.saturating_sub(ETHERNET + ip).max(8));
        let payload = usize::from(u16::from_be_bytes(len)) - 8;
        let mut udp = [self.ports.0.to_be_bytes(), self.ports.1.to_be_bytes(), len, [0, 0]].concat();
        udp.extend((0..payload).map(|at| narrow::u8(at % 256)));
        let pseudo = add(add(sum(from), sum(to)), add(u16::from(UDP), u16::from_be_bytes(len)));
        // A sum of 0 is sent as its other form, because 0 says that there is none (RFC 768).
        let sum = match !add(pseudo, sum(&udp)) {
            0 => 0xffff,
            sum => sum,
        };
        udp[6..8].copy_from_slice(&sum.to_be_bytes());
        udp
    }
}

/// A length in the order of the network.
fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).expect("a packet of at most 65,535 bytes").to_be_bytes()
}

#[cfg(test)]
mod tests {
    use etherparse::PacketHeaders;

    use super::*;

    #[test]
    fn frames_are_what_they_say() {
        for (from, to) in [("192.0.2.1", "198.51.100.7"), ("2001:db8::1", "2001:db8:1::2")] {
            for bytes in [0, 60, 64, 65, 1518] {
                let frame = Datagram {
                    to: Mac([2, 0, 0, 0, 0, 1]),
                    from: Mac([2, 0, 0, 0, 0, 2]),
                    addresses: (from.parse().unwrap(), to.parse().unwrap()),
                    ports: (1024, 53),
                    hops: 64,
                    bytes,
                }
                .to_bytes();
                let least = if from.contains('.') { 42 } else { 62 };
                assert_eq!(frame.len(), bytes.max(least));
                let parsed = PacketHeaders::from_ethernet_slice(&frame).unwrap();
                let (ip, udp) = (parsed.net.unwrap(), parsed.transport.unwrap().udp().unwrap());
                let payload = parsed.payload.slice();
                let expected = match ip {
                    etherparse::NetHeaders::Ipv4(header, _) => {
                        assert_eq!(header.calc_header_checksum(), header.header_checksum);
                        udp.calc_checksum_ipv4(&header, payload)
                    }
                    etherparse::NetHeaders::Ipv6(header, _) => udp.calc_checksum_ipv6(&header, payload),
                    other => panic!("{other:?}"),
                };
                assert_eq!(expected.unwrap(), udp.checksum);
            }
        }
    }
}
