//! Frames of every kind, right and wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{Ipv4Header, Ipv4Options, Ipv6Header, PacketBuilder};
use wirespeed_rng::Rng;

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    UdpV4,
    UdpV6,
    TcpV4,
    Ping,
    Vlan,
    Options,
    Fragment,
    Large,
    DontFragment,
    ExtensionV6,
    Spent,
    Martian,
    /// Packets that have an address of the router as their source, or one beside those.
    FromRouter,
    WrongChecksum,
    Arp,
    Noise,
}

impl Kind {
    pub(crate) const ALL: &[Self] = &[
        Self::UdpV4,
        Self::UdpV6,
        Self::TcpV4,
        Self::Ping,
        Self::Vlan,
        Self::Options,
        Self::Fragment,
        Self::Large,
        Self::DontFragment,
        Self::ExtensionV6,
        Self::Spent,
        Self::Martian,
        Self::FromRouter,
        Self::WrongChecksum,
        Self::Arp,
        Self::Noise,
    ];
}

const TO: [u8; 6] = [2, 0, 0, 0, 0, 0];
const FROM: [u8; 6] = [2, 0, 9, 9, 9, 9];

fn below(rng: &mut Rng, end: u64) -> u64 {
    rng.bits() % end
}

fn destination_v4(rng: &mut Rng) -> Ipv4Addr {
    let first = [10, 10, 10, 10, 192, 77][below(rng, 6) as usize];
    if first == 192 {
        return Ipv4Addr::new(192, 0, 2, rng.bits() as u8);
    }
    let second = below(rng, 8) as u8;
    let third = if below(rng, 2) == 0 { 2 } else { rng.bits() as u8 };
    Ipv4Addr::new(first, second, third, below(rng, 8) as u8)
}

fn destination_v6(rng: &mut Rng) -> Ipv6Addr {
    let first = [0x2001, 0x2001, 0x2001, 0xfd00, 0x2a00][below(rng, 5) as usize];
    let (second, third) = (0xdb8, below(rng, 7) as u16);
    let fourth = if below(rng, 2) == 0 { 2 } else { rng.bits() as u16 };
    Ipv6Addr::new(first, second, third, fourth, 0, 0, 0, below(rng, 8) as u16)
}

/// An IPv4 frame with the bit that forbids fragments.
pub(crate) fn unfragmented(frame: &[u8]) -> Vec<u8> {
    let (mut header, rest) = Ipv4Header::from_slice(&frame[14..]).unwrap();
    header.dont_fragment = true;
    header.header_checksum = header.calc_header_checksum();
    let mut with = frame[..14].to_vec();
    header.write(&mut with).unwrap();
    with.extend_from_slice(rest);
    with
}

/// A UDP datagram in a frame, with this time to live and payload.
pub(crate) fn udp(addresses: (IpAddr, IpAddr), hops: u8, payload: usize) -> Vec<u8> {
    let link = PacketBuilder::ethernet2(FROM, TO);
    let bytes = vec![0x5a; payload];
    let mut frame = Vec::new();
    match addresses {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            link.ipv4(from.octets(), to.octets(), hops).udp(1000, 53).write(&mut frame, &bytes).unwrap();
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            link.ipv6(from.octets(), to.octets(), hops).udp(1000, 53).write(&mut frame, &bytes).unwrap();
        }
        _ => panic!("two families"),
    }
    frame
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    [&TO[..], &FROM, &kind.to_be_bytes(), packet].concat()
}

/// An IPv4 packet with any fields, and a right checksum.
fn ipv4(rng: &mut Rng, change: impl FnOnce(&mut Ipv4Header, &mut Rng), payload: usize) -> Vec<u8> {
    let mut header = Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, [192, 0, 2, 7], [0; 4]).unwrap();
    header.destination = destination_v4(rng).octets();
    header.dont_fragment = false;
    change(&mut header, rng);
    header.set_payload_len(payload).unwrap();
    header.header_checksum = header.calc_header_checksum();
    let mut packet = Vec::new();
    header.write_raw(&mut packet).unwrap();
    packet.extend((0..payload).map(|at| at as u8));
    packet
}

fn ipv6(rng: &mut Rng, extensions: &[u8], first: u8) -> Vec<u8> {
    let payload: Vec<u8> = extensions.iter().copied().chain((0..40).map(|at| at as u8)).collect();
    let header = Ipv6Header {
        payload_length: payload.len() as u16,
        next_header: etherparse::IpNumber(first),
        hop_limit: 9,
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7).octets(),
        destination: destination_v6(rng).octets(),
        ..Ipv6Header::default()
    };
    let mut packet = Vec::new();
    header.write(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

/// A frame of a kind.
pub(crate) fn of_kind(kind: Kind, rng: &mut Rng) -> Vec<u8> {
    let from_v4 = IpAddr::from([192, 0, 2, 1 + below(rng, 99) as u8]);
    let from_v6: IpAddr = format!("2001:db8::{:x}", 1 + below(rng, 99)).parse().unwrap();
    match kind {
        Kind::UdpV4 => {
            let payload = below(rng, 100) as usize;
            let mut frame = udp((from_v4, destination_v4(rng).into()), 1 + rng.bits() as u8 % 250, payload);
            // Padding as of short frames.
            frame.resize(frame.len() + below(rng, 20) as usize, 0);
            frame
        }
        Kind::UdpV6 => {
            udp((from_v6, destination_v6(rng).into()), 1 + rng.bits() as u8 % 250, below(rng, 100) as usize)
        }
        Kind::TcpV4 => {
            let IpAddr::V4(from) = from_v4 else { unreachable!("of IPv4") };
            let link =
                PacketBuilder::ethernet2(FROM, TO).ipv4(from.octets(), destination_v4(rng).octets(), 9);
            let mut frame = Vec::new();
            link.tcp(80, rng.bits() as u16, 1, 1000).ack(2).write(&mut frame, &[7; 30]).unwrap();
            frame
        }
        Kind::Ping => {
            let IpAddr::V4(from) = from_v4 else { unreachable!("of IPv4") };
            let link =
                PacketBuilder::ethernet2(FROM, TO).ipv4(from.octets(), destination_v4(rng).octets(), 9);
            let mut frame = Vec::new();
            link.icmpv4_echo_request(1, 2).write(&mut frame, &[3; 20]).unwrap();
            frame
        }
        Kind::Vlan => {
            let inner = udp((from_v4, destination_v4(rng).into()), 64, 20);
            let tags: &[u8] =
                if below(rng, 2) == 0 { &[0x81, 0, 0, 7] } else { &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9] };
            [&inner[..12], tags, &inner[12..]].concat()
        }
        Kind::Options => {
            let change = |header: &mut Ipv4Header, rng: &mut Rng| {
                let options: &[u8] = match below(rng, 7) {
                    0 => &[7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    1 => &[148, 4, 0, 0],
                    2 => &[131, 7, 4, 10, 0, 0, 1, 0],
                    3 => &[7, 0, 0, 0],
                    4 => &[1, 1, 1, 0],
                    5 => &[0x82, 8, 1, 2, 3, 4, 5, 6],
                    _ => &[1, 7, 3, 4],
                };
                header.options = Ipv4Options::try_from(options).unwrap();
            };
            ethernet(0x0800, &ipv4(rng, change, 33))
        }
        Kind::Fragment => {
            let change = |header: &mut Ipv4Header, rng: &mut Rng| {
                header.more_fragments = below(rng, 2) == 0;
                header.fragment_offset = etherparse::IpFragOffset::try_new(below(rng, 50) as u16).unwrap();
            };
            ethernet(0x0800, &ipv4(rng, change, 48))
        }
        Kind::Large => {
            let change = |header: &mut Ipv4Header, rng: &mut Rng| {
                if below(rng, 3) == 0 {
                    header.options = Ipv4Options::try_from(&[0x82_u8, 4, 1, 2, 1, 1, 1, 1][..]).unwrap();
                }
                header.more_fragments = below(rng, 4) == 0;
            };
            let payload = 560 + below(rng, 900) as usize;
            ethernet(0x0800, &ipv4(rng, change, payload))
        }
        Kind::DontFragment => {
            let payload = 560 + below(rng, 900) as usize;
            ethernet(0x0800, &ipv4(rng, |header, _| header.dont_fragment = true, payload))
        }
        Kind::ExtensionV6 => {
            let (extensions, first): (&[u8], u8) = match below(rng, 6) {
                0 => (&[17, 0, 1, 4, 0, 0, 0, 0], 0),
                1 => (&[17, 0, 5, 2, 0, 0, 1, 0], 0),
                2 => (&[17, 0, 0, 8, 0, 0, 0, 1], 44),
                3 => (&[44, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 1, 0, 0, 0, 1], 60),
                4 => (&[17, 9, 1, 4, 0, 0, 0, 0], 0),
                _ => (&[17, 0, 5, 200, 0, 0, 1, 0], 0),
            };
            ethernet(0x86dd, &ipv6(rng, extensions, first))
        }
        Kind::Spent => {
            let hops = below(rng, 2) as u8;
            if below(rng, 2) == 0 {
                udp((from_v4, destination_v4(rng).into()), hops, 20)
            } else {
                udp((from_v6, destination_v6(rng).into()), hops, 20)
            }
        }
        Kind::Martian => {
            let v4 =
                ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.5", "255.255.255.255", "250.1.1.1", "10.0.0.1"];
            let v6 = ["::", "::1", "::ffff:10.0.0.1", "ff02::1", "fe80::1", "2001:db8:1::1"];
            let one = |rng: &mut Rng, of: &[&str]| -> IpAddr {
                of[below(rng, of.len() as u64) as usize].parse().unwrap()
            };
            if below(rng, 2) == 0 {
                udp((one(rng, &v4), one(rng, &v4)), 9, 20)
            } else {
                udp((one(rng, &v6), one(rng, &v6)), 9, 20)
            }
        }
        Kind::FromRouter => {
            let from = IpAddr::from([192, 0, 2, 98 + below(rng, 8) as u8]);
            let mut frame = udp((from, destination_v4(rng).into()), 64, 20);
            if below(rng, 2) == 0 {
                frame = [&frame[..12], &[0x81, 0, 0, 7], &frame[12..]].concat();
            }
            frame
        }
        Kind::WrongChecksum => {
            let mut frame = udp((from_v4, destination_v4(rng).into()), 64, 20);
            frame[24] ^= 1 << below(rng, 8);
            frame
        }
        Kind::Arp => ethernet(0x0806, &[0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        Kind::Noise => (0..below(rng, 200)).map(|_| rng.bits() as u8).collect(),
    }
}

/// A frame of any kind.
pub(crate) fn random(rng: &mut Rng) -> Vec<u8> {
    let kind = Kind::ALL[below(rng, Kind::ALL.len() as u64) as usize];
    of_kind(kind, rng)
}

/// Makes the length and the checksum of an IPv4 or IPv6 packet right, if it has a whole header.
pub(crate) fn mend(frame: &mut [u8]) {
    let len = frame.len() - 14;
    match frame[14] >> 4 {
        4 => {
            frame[16..18].copy_from_slice(&(len as u16).to_be_bytes());
            let bytes = usize::from(frame[14] & 15) * 4;
            if (20..=len).contains(&bytes) {
                frame[24..26].fill(0);
                let mut sum = 0_u32;
                for pair in frame[14..14 + bytes].chunks(2) {
                    sum += u32::from(u16::from_be_bytes([pair[0], pair[1]]));
                }
                while sum > 0xffff {
                    sum = (sum & 0xffff) + (sum >> 16);
                }
                frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            }
        }
        _ if len >= 40 => frame[18..20].copy_from_slice(&(len as u16 - 40).to_be_bytes()),
        _ => {}
    }
}

/// Whether a frame holds a fragment of IPv4.
pub(crate) fn is_fragment(frame: &[u8]) -> bool {
    let Ok(parsed) = etherparse::LaxSlicedPacket::from_ethernet(frame) else { return false };
    match parsed.net {
        Some(etherparse::LaxNetSlice::Ipv4(ip)) => ip.header().is_fragmenting_payload(),
        _ => false,
    }
}
