//! Packets that are changed, against the fields and the sums of their bytes.

use wirespeed_rng::Rng;
use wirespeed_router::Mac;
use wirespeed_router::checksum::checksum;
use wirespeed_router::frames::Datagram;

use super::super::parse::{ICMP, ICMPV6, SCTP, TCP, UDP, parse_to};
use super::fields::crc32c;
use super::{OUTSIDE, Packet};
use crate::wire::Field;

/// A datagram of UDP.
fn datagram(addresses: [&str; 2], bytes: usize) -> Vec<u8> {
    let addresses = (addresses[0].parse().unwrap(), addresses[1].parse().unwrap());
    let (to, from, ports) = (Mac([2; 6]), Mac([4; 6]), (1000, 2000));
    Datagram { to, from, addresses, ports, hops: 64, bytes }.to_bytes()
}

#[test]
fn another_protocol_keeps_the_sum_that_covers_it() {
    for (addresses, start, proto) in [(["10.0.0.1", "10.0.0.2"], 26, 23), (["::1", "::2"], 22, 20)] {
        let frame = datagram(addresses, 99);
        let mut packet = Packet::new(frame, 1);
        let transport = if start == 26 { 34 } else { 54 };
        let sum = |packet: &Packet| {
            let mut pseudo = packet.bytes[start..].to_vec();
            // The pseudo header has the protocol and the length at its end, in whatever order.
            pseudo.resize(pseudo.len().next_multiple_of(2), 0);
            pseudo.extend([0, packet.bytes[proto]]);
            #[allow(clippy::cast_possible_truncation)] // it is short
            pseudo.extend(((packet.bytes.len() - transport) as u16).to_be_bytes());
            checksum(&pseudo)
        };
        assert_eq!((packet.bytes[proto], sum(&packet)), (UDP, 0));
        packet.set_field(Field::IpProto, TCP.into());
        assert_eq!((packet.bytes[proto], sum(&packet)), (TCP, 0));
        if start == 26 {
            assert_eq!(checksum(&packet.bytes[14..34]), 0);
        }
    }
}

/// Fields after changes that read the frame again, and after those that only note what they set.
#[test]
fn fields_are_those_of_the_bytes_after_each_change() {
    let mut rng = Rng::new(11);
    let mut noted = 0;
    for round in 0..4000 {
        let addresses = if round % 2 == 0 { ["10.0.0.1", "10.0.0.2"] } else { ["::1", "::2"] };
        let mut frame = datagram(addresses, 80);
        // Another protocol, a tag, a later fragment, or a frame that is cut off.
        frame[if round % 2 == 0 { 23 } else { 20 }] = [TCP, UDP, SCTP, ICMP, ICMPV6][rng.index(5)];
        if rng.chance(0.2) {
            frame.splice(12..12, [0x81, 0, 0x20, 7]);
        }
        if rng.chance(0.1) {
            frame[20] |= 0x3f;
        }
        if rng.chance(0.3) {
            frame.truncate(rng.index(80));
        }
        let mut packet = Packet::new(frame, 9);
        for _ in 0..6 {
            match rng.below(8) {
                0 => packet.set_nw_ttl(7),
                1 => drop(packet.dec_nw_ttl()),
                2 => packet.push_vlan(0x8100),
                3 => packet.push_mpls(0x8847),
                _ => {
                    let field = Field::ALL[rng.index(Field::ALL.len())];
                    packet.set_field(field, rng.bits128());
                }
            }
            noted += usize::from(!packet.is_stale);
            let mut known = packet.clone();
            known.refresh();
            let mut key = packet.key.and(&OUTSIDE);
            let layout = parse_to(&packet.bytes, &mut key);
            assert_eq!((known.key, known.layout), (key, layout), "{:x?}", packet.bytes);
        }
    }
    assert!((1000..23_000).contains(&noted), "{noted} of 24,000");
}

#[test]
fn ports_of_sctp_are_set_where_the_packet_is_whole() {
    for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
        let is_v6 = addresses[0].contains(':');
        let frame = datagram(addresses, 80);
        // The first fragment and one that is the whole packet, or a packet that is none.
        for (more, is_fragment) in [(1, true), (0, true), (0, false)] {
            let mut frame = frame.clone();
            if !is_v6 {
                frame[23] = SCTP;
                frame[20] = more << 5;
            } else if is_fragment {
                frame[20] = 44;
                frame[19] += 8;
                frame.splice(54..54, [SCTP, 0, 0, more, 0, 0, 0, 1]);
            } else {
                frame[20] = SCTP;
            }
            let mut packet = Packet::new(frame.clone(), 1);
            assert_eq!(packet.is_whole_for(Field::SctpSrc), more == 0, "{frame:x?}");
            assert!(packet.is_whole_for(Field::Ipv4Src) && packet.is_whole_for(Field::UdpSrc));
            packet.set_field(Field::SctpSrc, 7);
            let at = packet.layout.ip.unwrap().transport.unwrap();
            let sum = u32::from_le_bytes(*packet.bytes[at + 8..].first_chunk().unwrap());
            packet.bytes[at + 8..at + 12].fill(0);
            assert_eq!(sum == crc32c(&packet.bytes[at..]), more == 0, "{frame:x?}");
            // A packet that is cut off is none.
            frame.pop();
            assert!(!Packet::new(frame, 1).is_whole_for(Field::SctpDst));
        }
    }
}

#[test]
fn packets_of_a_flow_have_one_hash() {
    for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
        let mut frame = datagram(addresses, 80);
        frame.splice(12..12, [0x81, 0, 0x20, 7]);
        let hash_with = |field: Field, value: u128| {
            let mut packet = Packet::new(frame.clone(), 9);
            packet.set_field(field, value);
            packet.refresh();
            assert_eq!(packet.key.of(field), value, "{}", field.name());
            packet.flow_hash()
        };
        let hash = Packet::new(frame.clone(), 9).flow_hash();
        for (field, value) in
            [(Field::IpEcn, 3), (Field::IpDscp, 46), (Field::VlanPcp, 6), (Field::VlanVid, 0x1009)]
        {
            assert_eq!(hash_with(field, value), hash, "{}", field.name());
        }
        let is_v6 = addresses[0].contains(':');
        let (src, dst) =
            if is_v6 { (Field::Ipv6Src, Field::Ipv6Dst) } else { (Field::Ipv4Src, Field::Ipv4Dst) };
        for field in [Field::EthSrc, Field::EthDst, src, dst, Field::UdpSrc, Field::UdpDst] {
            assert_ne!(hash_with(field, 99), hash, "{}", field.name());
        }
        assert_ne!(hash_with(Field::IpProto, TCP.into()), hash);
    }
}

#[test]
fn fragments_of_a_flow_have_one_hash() {
    for addresses in [["10.0.0.1", "10.0.0.2"], ["::1", "::2"]] {
        // A part by the word of its offset, in units of eight bytes, and of whether more follow.
        let part = |offset: u16, has_more: bool| {
            let mut frame = datagram(addresses, 120);
            if addresses[0].contains(':') {
                let word = (offset << 3 | u16::from(has_more)).to_be_bytes();
                // Options for the destination come before the ports, so the first part alone has the
                // number of the protocol.
                let options = if offset == 0 { &[17, 0, 1, 4, 0, 0, 0, 0][..] } else { &[] };
                frame[20] = 44;
                frame[19] += if offset == 0 { 16 } else { 8 };
                frame.splice(54..54, [&[60, 0, word[0], word[1], 0, 0, 0, 1], options].concat());
            } else {
                let word = offset | u16::from(has_more) << 13;
                frame[20..22].copy_from_slice(&word.to_be_bytes());
            }
            Packet::new(frame, 1).flow_hash()
        };
        let hash = part(0, true);
        assert_eq!([part(1, true), part(5, true), part(9, false)], [hash; 3], "{addresses:?}");
        // A packet that is whole has its ports, also as the only part.
        assert_ne!(part(0, false), hash);
        let other = datagram([addresses[0], addresses[0]], 120);
        assert_ne!(Packet::new(other, 1).flow_hash(), hash);
    }
}

#[test]
fn the_check_of_a_known_text() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
