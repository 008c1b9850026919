//! ICMP errors: that each dropped packet that may be answered is, rightly, and no other one.

use std::net::{IpAddr, Ipv4Addr};

use etherparse::{Icmpv4Type, Icmpv6Type, NetHeaders, PacketHeaders, TransportHeader, icmpv4, icmpv6};

use crate::{forward, frames, hop};

/// Forwards a frame, and returns the frames that came back from port 0.
fn answer(frame: &[u8]) -> Vec<Vec<u8>> {
    let (stats, sent) = forward(&[frame.to_vec()], 256, 1000);
    assert!(stats.is_whole());
    assert_eq!(
        stats.made as usize,
        sent.iter().map(|sent| sent.lock().unwrap().len()).sum::<usize>() - stats.frames_out as usize
    );
    sent[0].lock().unwrap().clone()
}

fn addresses(from: &str, to: &str) -> (IpAddr, IpAddr) {
    (from.parse().unwrap(), to.parse().unwrap())
}

/// Checks the answer to a packet: its addresses, its checksum, and the packet that it quotes.
fn check_v4(frame: &[u8], expected: Icmpv4Type) {
    let back = answer(frame);
    assert_eq!(back.len(), 1, "{expected:?}");
    assert_eq!(back[0][..12], *hop(0, 9).header());
    let parsed = PacketHeaders::from_ethernet_slice(&back[0]).unwrap();
    let Some(NetHeaders::Ipv4(ip, _)) = parsed.net else { panic!("IPv4") };
    let Some(TransportHeader::Icmpv4(icmp)) = parsed.transport else { panic!("ICMP") };
    assert_eq!(icmp.icmp_type, expected);
    assert_eq!(ip.calc_header_checksum(), ip.header_checksum);
    assert_eq!(icmp.icmp_type.calc_checksum(parsed.payload.slice()), icmp.checksum);
    assert_eq!((ip.source, ip.destination), ([192, 0, 2, 100], [192, 0, 2, 7]));
    let quoted = parsed.payload.slice();
    assert_eq!(*quoted, frame[14..14 + quoted.len()]);
    assert!(quoted.len() >= 28.min(frame.len() - 14) && back[0].len() <= 14 + 576);
}

#[test]
fn senders_are_told_why() {
    let udp = |to: &str, hops, payload| frames::udp(addresses("192.0.2.7", to), hops, payload);
    check_v4(
        &udp("10.9.9.9", 1, 20),
        Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit),
    );
    let unreachable = Icmpv4Type::DestinationUnreachable;
    check_v4(&udp("77.0.0.1", 9, 20), unreachable(icmpv4::DestUnreachableHeader::Network));
    check_v4(&udp("10.2.0.1", 9, 20), unreachable(icmpv4::DestUnreachableHeader::Network));
    check_v4(&udp("10.3.0.1", 9, 1000), unreachable(icmpv4::DestUnreachableHeader::FilterProhibited));
    // `etherparse` sets the don't-fragment bit; port 3 takes 600 bytes.
    let too_big = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 600 };
    check_v4(&udp("10.1.2.9", 9, 900), unreachable(too_big));
}

#[test]
fn senders_of_ipv6_are_told_why() {
    for (to, hops, payload, expected) in [
        ("2001:db8:1::1", 1, 20, Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded)),
        ("2a00::1", 9, 20, Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute)),
        ("2001:db8:3::1", 9, 20, Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Prohibited)),
        ("fd00::1", 9, 1300, Icmpv6Type::PacketTooBig { mtu: 600 }),
    ] {
        let frame = frames::udp(addresses("2001:db8::7", to), hops, payload);
        let back = answer(&frame);
        assert_eq!(back.len(), 1, "{expected:?}");
        let parsed = PacketHeaders::from_ethernet_slice(&back[0]).unwrap();
        let Some(NetHeaders::Ipv6(ip, _)) = parsed.net else { panic!("IPv6") };
        let Some(TransportHeader::Icmpv6(icmp)) = parsed.transport else { panic!("ICMPv6") };
        assert_eq!(icmp.icmp_type, expected);
        let payload = parsed.payload.slice();
        assert_eq!(icmp.icmp_type.calc_checksum(ip.source, ip.destination, payload).unwrap(), icmp.checksum);
        assert_eq!(ip.destination_addr().to_string(), "2001:db8::7");
        assert_eq!(*payload, frame[14..14 + payload.len()]);
        assert!(back[0].len() <= 14 + 1280);
    }
}

#[test]
fn what_must_not_be_answered_is_not() {
    // A black hole is silent; so is a wrong packet, one to a group, and one from nowhere.
    for to in ["10.1.2.3", "224.0.0.9", "127.0.0.1"] {
        assert!(answer(&frames::udp(addresses("192.0.2.7", to), 1, 20)).is_empty(), "{to}");
    }
    assert!(answer(&frames::udp(addresses("224.0.0.1", "77.0.0.1"), 9, 20)).is_empty());
    assert!(answer(&frames::udp(addresses("2001:db8::7", "2001:db8:1:2::3"), 9, 20)).is_empty());
    // No error of an error: a quoted answer that expires.
    let frame = frames::udp(addresses("192.0.2.7", "10.9.9.9"), 1, 20);
    let mut error = answer(&frame).remove(0);
    error[14 + 12..14 + 16].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 7).octets());
    error[14 + 16..14 + 20].copy_from_slice(&Ipv4Addr::new(10, 9, 9, 9).octets());
    error[14 + 8] = 1;
    frames::mend(&mut error);
    assert!(answer(&error).is_empty());
    // A later fragment.
    let mut fragment = frame;
    fragment[14 + 6..14 + 8].copy_from_slice(&[0, 3]);
    frames::mend(&mut fragment);
    assert!(answer(&fragment).is_empty());
}

/// RFC 4443, section 2.4 (e), does not except them; RFC 1812, section 4.3.2.7, does for IPv4.
#[test]
fn later_fragments_of_ipv6_are_answered() {
    for protocol in [17, 58] {
        let mut fragment = frames::udp(addresses("2001:db8::7", "2001:db8:1::1"), 1, 20);
        fragment.splice(54..54, [protocol, 0, 0, 8, 0, 0, 0, 1]);
        fragment[14 + 6] = 44;
        fragment[14 + 5] += 8;
        assert_eq!(answer(&fragment).len(), 1, "{protocol}");
    }
}

#[test]
fn no_more_errors_are_sent_than_allowed() {
    let frame = frames::udp(addresses("192.0.2.7", "77.0.0.1"), 9, 20);
    let (stats, sent) = forward(&vec![frame; 1500], 256, 100);
    assert_eq!(stats.dropped.all(), 1500);
    let errors = sent[0].lock().unwrap().len();
    assert!((10..20).contains(&errors), "{errors}");
}

/// A wrong option, from what is no host or in a frame for many: nobody is told (RFC 1812, 4.3.2.7).
#[test]
fn wrong_options_are_told_to_hosts_alone() {
    // Record route, whose pointer points before its first place.
    let with_option = |from: [u8; 4]| {
        let mut frame = frames::udp(addresses("192.0.2.7", "10.9.9.9"), 9, 20);
        frame.splice(34..34, [7, 7, 2, 0, 0, 0, 0, 0]);
        frame[14] = 0x47;
        let length = u16::try_from(frame.len() - 14).unwrap();
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        frame[26..30].copy_from_slice(&from);
        frame[24..26].fill(0);
        let sum = wirespeed_router::checksum::checksum(&frame[14..42]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    };
    assert_eq!(answer(&with_option([192, 0, 2, 7])).len(), 1);
    for from in [[0; 4], [255; 4], [224, 0, 0, 5], [127, 0, 0, 1], [240, 0, 0, 1]] {
        assert!(answer(&with_option(from)).is_empty(), "{from:?}");
    }
    for mut frame in [with_option([192, 0, 2, 7]), frames::udp(addresses("192.0.2.7", "77.0.0.1"), 1, 20)] {
        frame[0] |= 1;
        assert!(answer(&frame).is_empty());
    }
}
