//! Frames by hand, and frames that are anything.

use proptest::prelude::*;

use super::super::{Ipv4Tuple, Ipv6Tuple, OpenFlowTuple, Tuple, VLAN_NONE};
use super::*;

fn ethernet_frame(tags: &[(u16, u16)], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for (tpid, tci) in tags {
        frame.extend(tpid.to_be_bytes());
        frame.extend(tci.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An IPv4 packet from 10.0.0.1 to 192.0.2.7 with so many words of options.
fn ipv4_packet(proto: u8, options: u8, fragment: u16, transport: &[u8]) -> Vec<u8> {
    let header = 20 + usize::from(options) * 4;
    let total = u16::try_from(header + transport.len()).expect("a short packet");
    let mut packet = vec![0x45 + options, 0xb8];
    packet.extend(total.to_be_bytes());
    packet.extend([0, 7]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, proto, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7]);
    packet.resize(header, 1);
    packet.extend(transport);
    packet
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
fn ipv6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(payload.len()).expect("a short packet").to_be_bytes());
    packet.extend([next, 64]);
    for last in [1u16, 2] {
        packet.extend(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).octets());
    }
    packet.extend(payload);
    packet
}

/// Ports 4000 and 443, and more of a header.
const PORTS: [u8; 20] = [0x0f, 0xa0, 0x01, 0xbb, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9];

fn of_v4(frame: &[u8]) -> Result<String, FrameError> {
    Ipv4Tuple::of_frame(0, frame).map(|tuple| tuple.to_string())
}

fn of_v6(frame: &[u8]) -> Result<String, FrameError> {
    Ipv6Tuple::of_frame(0, frame).map(|tuple| tuple.to_string())
}

#[test]
fn ipv4_with_tags_options_and_padding() {
    let right = Ok("src=10.0.0.1 dst=192.0.2.7 sport=4000 dport=443 proto=tcp".to_owned());
    for tags in [&[][..], &[(0x8100, 5)], &[(0x88a8, 5), (0x8100, 0xe007)]] {
        for options in [0, 1, 10] {
            let mut frame = ethernet_frame(tags, 0x0800, &ipv4_packet(6, options, 0, &PORTS));
            assert_eq!(of_v4(&frame), right);
            frame.extend([0; 9]);
            assert_eq!(of_v4(&frame), right);
        }
    }
    // Padding is no header.
    let mut frame = ethernet_frame(&[], 0x0800, &ipv4_packet(17, 0, 0, &[]));
    frame.resize(60, 0);
    let cut = |layer, needed, found| Err(FrameError::CutOff { layer, needed, found });
    assert_eq!(of_v4(&frame), cut(Layer::Transport, 4, 0));
    // A length that was not filled in.
    let mut frame = ethernet_frame(&[], 0x0800, &ipv4_packet(6, 0, 0, &PORTS));
    frame[16..18].fill(0);
    assert_eq!(of_v4(&frame), right);
}

#[test]
fn fragments_and_protocols_of_ipv4() {
    let of = |proto, fragment, transport: &[u8]| {
        let tuple = Ipv4Tuple::of_packet(&ipv4_packet(proto, 0, fragment, transport)).expect("a packet");
        (tuple.field(&Ipv4Tuple::SPORT), tuple.field(&Ipv4Tuple::DPORT))
    };
    assert_eq!(of(17, 0x2000, &PORTS), (4000, 443), "the first");
    assert_eq!(of(17, 0x2001, &PORTS), (0, 0), "one in the middle");
    assert_eq!(of(17, 0x00b9, &[]), (0, 0), "the last");
    assert_eq!(of(17, 0x4000, &PORTS), (4000, 443), "not to be fragmented");
    assert_eq!(of(1, 0, &[8, 3, 0, 0]), (8, 3), "ICMP");
    assert_eq!((of(132, 0, &PORTS), of(47, 0, &PORTS), of(50, 0, &[])), ((4000, 443), (0, 0), (0, 0)));
}

#[test]
#[allow(clippy::cast_possible_truncation)] // random numbers that are small
fn plain_packets_have_the_tuples_of_any() {
    let mut rng = wirespeed_rng::Rng::new(5);
    let (mut plain, mut other) = (0, 0);
    let mut count = |is_plain: bool| if is_plain { plain += 1 } else { other += 1 };
    for _ in 0..20_000 {
        let proto = [6, 17, 33, 132, 136, 1, 58, 50, 44][rng.below(9) as usize];
        let ports: [u8; 20] = std::array::from_fn(|_| rng.below(256) as u8);
        let fragment = [0, 0x4000, 0x2000, 0x2001, 1][rng.below(5) as usize];
        let mut v4 = ipv4_packet(proto, u8::from(rng.chance(0.1)), fragment, &ports);
        let mut v6 = ipv6_packet(proto, &ports);
        for packet in [&mut v4, &mut v6] {
            if rng.chance(0.5) {
                packet[rng.below(12) as usize] = rng.below(256) as u8;
            }
            if rng.chance(0.3) {
                packet.truncate(rng.below(packet.len() as u64 + 1) as usize);
            }
        }
        if let Some(tuple) = Ipv4Tuple::of_plain(&v4) {
            assert_eq!(Ipv4Tuple::of_any(&v4), Ok(tuple), "{v4:02x?}");
        }
        if let Some(tuple) = Ipv6Tuple::of_plain(&v6) {
            assert_eq!(Ipv6Tuple::of_any(&v6), Ok(tuple), "{v6:02x?}");
        }
        count(Ipv4Tuple::of_plain(&v4).is_some());
        count(Ipv6Tuple::of_plain(&v6).is_some());
    }
    assert!(plain > 5000 && other > 5000, "{plain} {other}");
}

#[test]
fn ipv6_with_extension_headers() {
    let right =
        |proto: &str| Ok(format!("src=2001:db8::1 dst=2001:db8::2 sport=4000 dport=443 proto={proto}"));
    let frame = |next, parts: &[&[u8]]| ethernet_frame(&[], 0x86dd, &ipv6_packet(next, &parts.concat()));
    assert_eq!(of_v6(&frame(6, &[&PORTS])), right("tcp"));
    let hop = [60, 0, 0, 0, 0, 0, 0, 0];
    let long_options = [&[43, 2][..], &[0; 22]].concat();
    let routing = [51, 0, 0, 0, 0, 0, 0, 0];
    let authentication = [&[44, 4][..], &[0; 22]].concat();
    let first_fragment = [17, 0, 0, 1, 0, 0, 0, 9];
    let all: [&[u8]; 6] = [&hop, &long_options, &routing, &authentication, &first_fragment, &PORTS];
    assert_eq!(of_v6(&frame(0, &all)), right("udp"));
    let later = [17, 0, 0, 9, 0, 0, 0, 9];
    let no_ports = |proto: &str| Ok(format!("src=2001:db8::1 dst=2001:db8::2 sport=0 dport=0 proto={proto}"));
    assert_eq!(of_v6(&frame(44, &[&later, &PORTS])), no_ports("udp"));
    assert_eq!(of_v6(&frame(50, &[&PORTS])), no_ports("esp"));
    assert_eq!(of_v6(&frame(59, &[])), no_ports("59"));
    let icmp = "src=2001:db8::1 dst=2001:db8::2 sport=135 dport=0 proto=icmpv6";
    assert_eq!(of_v6(&frame(58, &[&[135, 0, 0, 0]])), Ok(icmp.to_owned()));
    let cut = FrameError::CutOff { layer: Layer::Extension, needed: 24, found: 8 };
    assert_eq!(of_v6(&frame(60, &[&[6, 2, 0, 0, 0, 0, 0, 0]])), Err(cut));
}

#[test]
fn openflow_fields() {
    let of = |frame: &[u8]| OpenFlowTuple::of_frame(3, frame).expect("an Ethernet header").to_string();
    let start = "in_port=3 dl_src=02:00:00:00:00:02 dl_dst=02:00:00:00:00:01";
    let tcp = ethernet_frame(&[(0x8100, 0xa007)], 0x0800, &ipv4_packet(6, 1, 0, &PORTS));
    let tail = "nw_tos=184 nw_proto=tcp nw_src=10.0.0.1 nw_dst=192.0.2.7 tp_src=4000 tp_dst=443";
    assert_eq!(of(&tcp), format!("{start} dl_vlan=7 dl_vlan_pcp=5 dl_type=0x0800 {tail}"));
    let nothing = "nw_tos=0 nw_proto=0 nw_src=0.0.0.0 nw_dst=0.0.0.0 tp_src=0 tp_dst=0";
    let untagged = format!("{start} dl_vlan={VLAN_NONE} dl_vlan_pcp=0");
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &[1; 6], &[10, 0, 0, 1], &[2; 6], &[10, 0, 0, 2]].concat();
    let arp_tail = "nw_tos=0 nw_proto=igmp nw_src=10.0.0.1 nw_dst=10.0.0.2 tp_src=0 tp_dst=0";
    assert_eq!(of(&ethernet_frame(&[], 0x0806, &arp)), format!("{untagged} dl_type=0x0806 {arp_tail}"));
    assert_eq!(
        of(&ethernet_frame(&[], 0x86dd, &ipv6_packet(6, &PORTS))),
        format!("{untagged} dl_type=0x86dd {nothing}")
    );
    // A length, with and without SNAP.
    assert_eq!(of(&ethernet_frame(&[], 3, &[0x42, 0x42, 3])), format!("{untagged} dl_type=0x05ff {nothing}"));
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &ipv4_packet(6, 1, 0, &PORTS)].concat();
    assert_eq!(of(&ethernet_frame(&[], 60, &snap)), format!("{untagged} dl_type=0x0800 {tail}"));
    // What is cut off is 0.
    let ports = "tp_src=4000 tp_dst=443";
    let cut = of(&tcp[..tcp.len() - 17]);
    assert_eq!(cut, of(&tcp).replace(ports, "tp_src=0 tp_dst=0"));
    assert_eq!(of(&tcp[..30]), format!("{start} dl_vlan=7 dl_vlan_pcp=5 dl_type=0x0800 {nothing}"));
    assert_eq!(of(&tcp[..16]), format!("{untagged} dl_type=0x8100 {nothing}"));
    assert!(OpenFlowTuple::of_frame(3, &tcp[..13]).is_err());
}

#[test]
fn what_is_no_such_packet_is_refused() {
    let v4 = ethernet_frame(&[], 0x0800, &ipv4_packet(6, 2, 0, &PORTS));
    assert_eq!(of_v6(&v4), Err(FrameError::EtherType { found: 0x0800, wanted: 0x86dd }));
    let with = |at: usize, byte: u8| {
        let mut frame = v4.clone();
        frame[at] = byte;
        of_v4(&frame)
    };
    assert_eq!(with(14, 0x65), Err(FrameError::Version { found: 6, wanted: 4 }));
    assert_eq!(with(14, 0x44), Err(FrameError::Length { layer: Layer::Ipv4, found: 16, least: 20 }));
    assert_eq!(with(17, 27), Err(FrameError::Length { layer: Layer::Ipv4, found: 27, least: 28 }));
    // Cut anywhere before the ports end it says so, and after them nobody notices.
    let enough = 14 + 28 + 4;
    for len in 0..v4.len() {
        let found = of_v4(&v4[..len]);
        assert_eq!(found.is_ok(), len >= enough, "{len} bytes: {found:?}");
        assert!(found.is_ok() || matches!(found, Err(FrameError::CutOff { .. })), "{len} bytes: {found:?}");
    }
}

proptest! {
    /// Whatever comes in, there is a tuple or an error.
    #[test]
    fn anything_is_taken(
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        ethertype in proptest::sample::select(vec![0x0800u16, 0x86dd, 0x0806, 0x8100, 0x88a8, 60]),
        version in any::<u8>(),
        flips in proptest::collection::vec((0..200usize, any::<u8>()), 0..4),
    ) {
        if frame.len() > 14 {
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
            frame[14] = version;
        }
        for (at, byte) in flips {
            if let Some(b) = frame.get_mut(at) { *b = byte; }
        }
        let _ = Ipv4Tuple::of_frame(1, &frame);
        let _ = Ipv6Tuple::of_frame(1, &frame);
        prop_assert_eq!(OpenFlowTuple::of_frame(1, &frame).is_ok(), frame.len() >= 14);
    }

    /// Extension headers in any order and of any length end somewhere.
    #[test]
    fn any_chain_of_headers_ends(first in any::<u8>(), kinds in proptest::collection::vec((proptest::sample::select(vec![0u8, 43, 44, 51, 60, 135]), 0..4u8), 0..40)) {
        let mut payload = Vec::new();
        for (next, units) in kinds {
            payload.extend([next, units]);
            payload.extend(vec![0; usize::from(units) * 8 + 6]);
        }
        let _ = Ipv6Tuple::of_packet(&ipv6_packet(first, &payload));
    }
}
