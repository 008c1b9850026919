//! The programs over made frames, beside [`Transit`] in Rust, and beside the disassembly.

use std::net::IpAddr;
use std::process::Command;

use proptest::prelude::*;

use super::super::super::bpf::test_run;
use super::super::super::sys;
use super::super::super::transit::Transit;
use super::*;

const MAC: [u8; 6] = [0x02, 0xff, 0x80, 0x41, 0xfe, 0x99];
const OTHER: [u8; 6] = [0x02, 0xff, 0x80, 0x41, 0xfe, 0x98];
const XDP_REDIRECT: u32 = 4;

/// Both programs, loaded, with a socket in the map, and the rules in Rust.
struct Loaded {
    program: OwnedFd,
    dropping: OwnedFd,
    transit: Transit,
    local: LocalAddresses,
    _socket: OwnedFd,
    _sockets: Map,
}

/// Loads the programs. `None` where this is not allowed.
fn loaded(takes: impl Into<Takes>) -> Option<Loaded> {
    let takes = takes.into();
    let local = LocalAddresses::new();
    local.set(["192.0.2.1", "2001:db8::1"].map(|a| a.parse::<IpAddr>().unwrap())).unwrap();
    let interface = interface();
    let transit = local.transit(&interface, takes.clone());
    let made = || -> io::Result<(Map, Arc<Map>, OwnedFd)> {
        let sockets = Map::new(Kind::Sockets, "sockets", 4, 4, 8)?;
        let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        // A socket with a ring of received frames can be in a map.
        sys::set_option(&socket, libc::SOL_XDP, libc::XDP_RX_RING, 64_u32)?;
        sockets.set(&0_u32.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())?;
        Ok((sockets, local.kernel()?, socket))
    };
    let (sockets, map, socket) = match made() {
        Ok(made) => made,
        Err(cause) => {
            println!("skipped: {cause}");
            return None;
        }
    };
    let made =
        |hook, end| super::loaded(hook, "test", &instructions(MAC, &takes, map.number(), end)).unwrap();
    let program = made(Hook::Xdp, End::Socket(sockets.number()));
    let dropping = made(Hook::Ingress, End::Drop);
    Some(Loaded { program, dropping, transit, local, _socket: socket, _sockets: sockets })
}

fn interface() -> Interface {
    let mut interface = Interface::open("lo").expect("a loopback");
    interface.mac = MAC;
    interface
}

impl Loaded {
    /// Whether the kernel redirects the frame; the rules in Rust must say so too.
    fn forwards(&self, frame: &[u8]) -> bool {
        let verdict = test_run::verdict(&self.program, frame).unwrap();
        assert!([XDP_REDIRECT, 2].contains(&verdict), "{verdict}");
        let forwards = verdict == XDP_REDIRECT;
        assert_eq!(self.transit.forwards(frame), forwards, "{frame:02x?}");
        // Behind AF_PACKET the kernel runs no program over IP packets without a whole header.
        match test_run::verdict(&self.dropping, frame) {
            Ok(verdict) => {
                let expected = if forwards { TCX_DROP } else { TCX_NEXT };
                assert_eq!(verdict.cast_signed(), expected, "behind AF_PACKET: {frame:02x?}");
            }
            Err(cause) => assert!(frame.len() < 14 + 40 && !forwards, "{cause}: {frame:02x?}"),
        }
        forwards
    }
}

fn frame(to: [u8; 6], tags: &[[u8; 4]], packet: &[u8], kind: [u8; 2]) -> Vec<u8> {
    [&to[..], &[2; 6], &tags.concat(), &kind, packet].concat()
}

fn v4(destination: &str) -> Vec<u8> {
    let IpAddr::V4(address) = destination.parse().unwrap() else { panic!("IPv4") };
    let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 1, 17, 0, 0, 198, 51, 100, 1];
    packet.extend(address.octets());
    packet
}

fn v6(destination: &str) -> Vec<u8> {
    let IpAddr::V6(address) = destination.parse().unwrap() else { panic!("IPv6") };
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 59, 1];
    packet.extend([1; 16]);
    packet.extend(address.octets());
    packet
}

const IPV4: [u8; 2] = [8, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TAG: [u8; 4] = [0x81, 0, 0, 5];
const OUTER: [u8; 4] = [0x88, 0xa8, 0, 6];

#[test]
fn transit_is_redirected_and_the_rest_stays_the_kernels() {
    let (Some(untagged), Some(tagged)) = (loaded(Tags::Kernel), loaded(Tags::Forward)) else { return };
    let both = |frame: Vec<u8>, expected: bool, what: &str| {
        assert_eq!(untagged.forwards(&frame), expected, "{what}");
        assert_eq!(tagged.forwards(&frame), expected, "{what}, tags forwarded");
    };
    both(frame(MAC, &[], &v4("203.0.113.1"), IPV4), true, "IPv4");
    both(frame(MAC, &[], &v4("223.255.255.255"), IPV4), true, "the last unicast address");
    both(frame(MAC, &[], &v6("2001:db8::2"), IPV6), true, "IPv6");
    both(frame(MAC, &[], &v6("fec0::1"), IPV6), true, "beside link-local");
    both(frame(OTHER, &[], &v4("203.0.113.1"), IPV4), false, "another hardware address");
    both(frame([0xff; 6], &[], &v4("203.0.113.1"), IPV4), false, "broadcast");
    both(frame(MAC, &[], &v4("192.0.2.1"), IPV4), false, "a local address");
    both(frame(MAC, &[], &v6("2001:db8::1"), IPV6), false, "a local address");
    both(frame(MAC, &[], &v4("224.0.0.5"), IPV4), false, "multicast");
    both(frame(MAC, &[], &v4("255.255.255.255"), IPV4), false, "broadcast");
    both(frame(MAC, &[], &v6("ff02::5"), IPV6), false, "multicast");
    both(frame(MAC, &[], &v6("fe80::1"), IPV6), false, "link-local");
    both(frame(MAC, &[], &v6("febf::1"), IPV6), false, "link-local");
    both(frame(MAC, &[], &[0; 28], [8, 6]), false, "ARP");
    both(frame(MAC, &[], &[0; 46], [0, 46]), false, "a length, not a type");
    both(frame(MAC, &[], &v6("2001:db8::2"), IPV4), false, "IPv6 as IPv4");
    both(frame(MAC, &[], &v4("203.0.113.1"), IPV6), false, "IPv4 as IPv6");
    for tags in [&[TAG][..], &[OUTER], &[OUTER, TAG], &[TAG, TAG]] {
        for frame in [frame(MAC, tags, &v4("203.0.113.1"), IPV4), frame(MAC, tags, &v6("2001:db8::2"), IPV6)]
        {
            assert!(!untagged.forwards(&frame) && tagged.forwards(&frame), "{frame:02x?}");
        }
        assert!(!tagged.forwards(&frame(MAC, tags, &v4("192.0.2.1"), IPV4)));
        assert!(!tagged.forwards(&frame(MAC, tags, &[0; 28], [8, 6])));
    }
    both(frame(MAC, &[OUTER, TAG, TAG], &v4("203.0.113.1"), IPV4), false, "three tags");
}

#[test]
fn cut_frames_stay_the_kernels() {
    let Some(tagged) = loaded(Tags::Forward) else { return };
    for frame in [
        frame(MAC, &[], &v4("203.0.113.1"), IPV4),
        frame(MAC, &[TAG], &v4("203.0.113.1"), IPV4),
        frame(MAC, &[], &v6("2001:db8::2"), IPV6),
        frame(MAC, &[OUTER, TAG], &v6("2001:db8::2"), IPV6),
    ] {
        assert!(tagged.forwards(&frame));
        for len in 14..frame.len() {
            assert!(!tagged.forwards(&frame[..len]), "{len} of {frame:02x?}");
        }
    }
}

#[test]
fn local_addresses_change_under_a_loaded_program() {
    let Some(loaded) = loaded(Tags::Kernel) else { return };
    let to = |address: &str| {
        let is_v4 = address.contains('.');
        let (packet, kind) = if is_v4 { (v4(address), IPV4) } else { (v6(address), IPV6) };
        loaded.forwards(&frame(MAC, &[], &packet, kind))
    };
    assert!(to("203.0.113.9") && !to("192.0.2.1") && !to("2001:db8::1"));
    loaded.local.set(["203.0.113.9", "2001:db8::1"].map(|a| a.parse().unwrap())).unwrap();
    assert!(!to("203.0.113.9") && to("192.0.2.1") && !to("2001:db8::1"));
    loaded.local.set([]).unwrap();
    assert!(to("203.0.113.9") && to("192.0.2.1") && to("2001:db8::1"));
    let many = (0..=super::super::super::local::MOST).map(|n| IpAddr::from(n.to_be_bytes()));
    assert!(loaded.local.set(many).is_err());
}

/// Ports of tunnels.
const PORTS: [u16; 2] = [4500, 4501];

/// An IPv4 packet to a local address with this protocol, these flags and a payload.
fn local_v4(protocol: u8, flags: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut packet = v4("192.0.2.1");
    packet[6..8].copy_from_slice(&flags);
    packet[9] = protocol;
    [packet, payload.to_vec()].concat()
}

fn local_v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = v6("2001:db8::1");
    packet[6] = protocol;
    [packet, payload.to_vec()].concat()
}

/// A UDP header to a port, and a payload.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    [&[0, 9][..], &port.to_be_bytes(), &[0; 4], payload].concat()
}

#[test]
fn packets_of_tunnels_to_the_router_are_taken() {
    let takes = Takes::Tunnels(Tags::Kernel, PORTS.to_vec());
    let (Some(gateway), Some(router)) = (loaded(takes), loaded(Tags::Kernel)) else { return };
    let of = |packet: &[u8]| frame(MAC, &[], packet, if packet[0] >> 4 == 4 { IPV4 } else { IPV6 });
    let is = |packet: Vec<u8>, expected: bool, what: &str| {
        assert_eq!(gateway.forwards(&of(&packet)), expected, "{what}");
        assert!(!router.forwards(&of(&packet)), "{what}, without tunnels");
    };
    is(local_v4(50, [0, 0], &[]), true, "ESP");
    is(local_v4(50, [0x20, 7], &[]), true, "a fragment of ESP, which has to be counted");
    is(local_v6(50, &[]), true, "ESP in IPv6");
    is(local_v6(44, &[50, 0, 5, 1, 0, 0, 0, 9]), true, "a fragment of ESP in IPv6");
    is(local_v6(44, &[50, 0, 5, 1, 0, 0, 0]), false, "a fragment header that is cut");
    is(local_v6(44, &[17, 0, 0, 1, 0, 0, 0, 9]), false, "a fragment of UDP in IPv6");
    is(local_v4(44, [0, 0], &[50; 40]), false, "a protocol that is none of IPv4");
    is(local_v4(6, [0, 0], &[0; 20]), false, "TCP");
    is(local_v6(58, &[0; 20]), false, "neighbour discovery");
    for port in PORTS {
        is(local_v4(17, [0x40, 0], &udp(port, &[])), true, "ESP in UDP");
        is(local_v4(17, [0x20, 0], &udp(port, &[])), true, "the first fragment");
        is(local_v4(17, [0, 1], &udp(port, &[])), false, "a later fragment");
        is(local_v6(17, &udp(port, &[])), true, "ESP in UDP in IPv6");
    }
    is(local_v4(17, [0, 0], &udp(53, &[])), false, "another port");
    is(local_v6(17, &udp(53, &[])), false, "another port");
    is(local_v4(17, [0, 0], &udp(4500, &[])[..7]), false, "a UDP header that is cut");
    let mut with_options = local_v4(17, [0, 0], &[&[1; 4][..], &udp(4500, &[])].concat());
    with_options[0] = 0x46;
    is(with_options, false, "behind options");
    let transit = of(&v4("203.0.113.1"));
    assert!(gateway.forwards(&transit) && router.forwards(&transit));
    assert!(!gateway.forwards(&frame(OTHER, &[], &local_v4(50, [0, 0], &[]), IPV4)));
}

#[test]
fn interests_are_taken_and_data_is_not() {
    let Some(names) = loaded(Takes::Interests) else { return };
    const NDN: [u8; 2] = [0x86, 0x24];
    const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0x17, 0xaa];
    for (kind, expected) in [(5, true), (0x64, true), (6, false), (0x50, false)] {
        let packet = [kind, 2, 7, 0];
        for mac in [MAC, GROUP] {
            assert_eq!(names.forwards(&frame(mac, &[], &packet, NDN)), expected, "{kind} to {mac:?}");
        }
        assert!(!names.forwards(&frame(OTHER, &[], &packet, NDN)), "another's");
        assert!(!names.forwards(&frame(MAC, &[TAG], &packet, NDN)), "tagged");
        let v4 = |flags, port| frame(MAC, &[], &local_v4(17, flags, &udp(port, &packet)), IPV4);
        let v6 = |port| frame(MAC, &[], &local_v6(17, &udp(port, &packet)), IPV6);
        assert_eq!(names.forwards(&v4([0x40, 0], 6363)), expected);
        assert_eq!(names.forwards(&v6(6363)), expected);
        assert!(!names.forwards(&v4([0, 0], 6364)) && !names.forwards(&v6(6364)), "another port");
        assert!(!names.forwards(&v4([0x20, 0], 6363)), "a fragment");
    }
    let Some(both) = loaded(Takes::InterestsAndData) else { return };
    for (kind, expected) in [(5, true), (0x64, true), (6, true), (0x50, false)] {
        let packet = [kind, 2, 7, 0];
        for mac in [MAC, GROUP] {
            assert_eq!(both.forwards(&frame(mac, &[], &packet, NDN)), expected, "{kind} to {mac:?}");
        }
        assert!(!both.forwards(&frame(OTHER, &[], &packet, NDN)), "another's");
        assert!(!both.forwards(&frame(MAC, &[TAG], &packet, NDN)), "tagged");
        let datagram = frame(MAC, &[], &local_v6(17, &udp(6363, &packet)), IPV6);
        assert_eq!(both.forwards(&datagram), expected && kind != 6, "{kind} in UDP");
    }
    assert!(!names.forwards(&frame(MAC, &[], &[], NDN)), "nothing in it");
    assert!(!names.forwards(&frame(MAC, &[], &v4("203.0.113.1"), IPV4)), "transit");
    assert!(!names.forwards(&frame(MAC, &[], &[0; 28], [8, 6])), "ARP");
}

#[test]
fn a_switch_takes_every_frame() {
    let Some(switch) = loaded(Takes::All) else { return };
    for frame in [
        frame(OTHER, &[], &[0; 28], [8, 6]),
        frame([0xff; 6], &[TAG], &v4("192.0.2.1"), IPV4),
        frame(MAC, &[], &[0; 46], [0, 46]),
        frame(MAC, &[], &local_v6(58, &[0; 20]), IPV6),
    ] {
        assert!(switch.forwards(&frame), "{frame:02x?}");
    }
}

#[test]
fn random_frames_are_decided_as_in_rust() {
    let tunnels = Takes::Tunnels(Tags::Forward, PORTS.to_vec());
    let both = Takes::InterestsAndData;
    let all = [Tags::Kernel.into(), Tags::Forward.into(), tunnels, Takes::Interests, both].map(loaded);
    if all.iter().any(Option::is_none) {
        return;
    }
    let [untagged, tagged, tunnels, names, both] = all.map(Option::unwrap);
    let byte = prop_oneof![
        any::<u8>(),
        Just(0x45),
        Just(0x60),
        Just(0xff),
        Just(0xfe),
        Just(17),
        Just(44),
        Just(50)
    ];
    let kinds = prop_oneof![
        Just(IPV4),
        Just(IPV6),
        Just([0x81, 0]),
        Just([0x88, 0xa8]),
        Just([0x86, 0x24]),
        any::<[u8; 2]>()
    ];
    let ports = prop_oneof![Just(4500), Just(6363), any::<u16>()];
    let known = prop_oneof![Just(None), Just(Some(false)), Just(Some(true))];
    let frames = (
        prop_oneof![9 => Just(MAC), 1 => Just(OTHER)],
        kinds.clone(),
        kinds,
        prop::collection::vec(byte, 0..80),
        (known, ports),
    );
    proptest!(|((mac, kind, inner, mut rest, (known, port)) in frames)| {
        if let Some(place) = rest.get_mut(2..4) {
            place.copy_from_slice(&inner);
        }
        // Packets to the router that get as far as their port.
        let header = match known {
            Some(true) => local_v4(rest.first().copied().unwrap_or(17), [0, 0], &udp(port, &[])),
            Some(false) => local_v6(rest.first().copied().unwrap_or(17), &udp(port, &[])),
            None => Vec::new(),
        };
        let most = header.len().min(rest.len());
        rest[..most].copy_from_slice(&header[..most]);
        let kind = match known {
            Some(true) => IPV4,
            Some(false) => IPV6,
            None => kind,
        };
        let frame = frame(mac, &[], &rest, kind);
        [&untagged, &tagged, &tunnels, &names, &both].iter().for_each(|one| _ = one.forwards(&frame));
    });
}

/// Linux 6.1 takes what is stored at the start of a slot of the stack for a saved register, and lets only
/// who may see addresses of the kernel overwrite a part of it. The router has given that right back.
#[test]
fn no_part_of_a_slot_is_stored_after_its_start() {
    let all = [
        Takes::Transit(Tags::Kernel),
        Takes::Tunnels(Tags::Forward, PORTS.to_vec()),
        Takes::InterestsAndData,
        Takes::All,
    ];
    let mut narrow = 0;
    for (takes, end) in all.iter().flat_map(|takes| [(takes, End::Socket(1)), (takes, End::Drop)]) {
        let mut started = std::collections::BTreeSet::new();
        for instruction in instructions(MAC, takes, 0, end) {
            let is_store = matches!(instruction.code & 7, 2 | 3);
            if instruction.code & 7 == 5 {
                // What is behind a jump comes another way.
                started.clear();
            } else if is_store && instruction.registers & 15 == R10 as u8 {
                let slot = instruction.offset.div_euclid(8);
                if instruction.code & 0x18 != 0x18 {
                    assert!(!started.contains(&slot), "{takes:?}, {end:?}: {instruction:?}");
                    narrow += 1;
                }
                if instruction.offset % 8 == 0 {
                    started.insert(slot);
                }
            }
        }
    }
    assert!(narrow > 0, "keys of IPv4 are stored in parts");
}

/// An instruction as `bpftool` writes it, without the target of a jump. `None` for those that the kernel
/// writes anew when it loads them: those of maps and calls.
fn text(instruction: &Instruction) -> Option<String> {
    let (to, from) = (instruction.registers & 15, instruction.registers >> 4);
    let (offset, constant) = (instruction.offset, instruction.constant);
    let width = |code: u8| ["u32", "u16", "u8", "u64"][usize::from(code >> 3 & 3)];
    Some(match instruction.code {
        0xbf => format!("(bf) r{to} = r{from}"),
        0xb7 => format!("(b7) r{to} = {constant}"),
        0x07 => format!("(07) r{to} += {constant}"),
        0x77 => format!("(77) r{to} >>= {constant}"),
        0x57 => format!("(57) r{to} &= {constant}"),
        code @ (0x61 | 0x69 | 0x71 | 0x79) if from != 6 => {
            format!("({code:02x}) r{to} = *({} *)(r{from} {offset:+})", width(code))
        }
        code @ (0x63 | 0x6b | 0x73 | 0x7b) => {
            format!("({code:02x}) *({} *)(r{to} {offset:+}) = r{from}", width(code))
        }
        code @ (0x62 | 0x6a | 0x72 | 0x7a) => {
            format!("({code:02x}) *({} *)(r{to} {offset:+}) = {constant}", width(code))
        }
        0x05 => "(05) goto".to_owned(),
        0x2d => format!("(2d) if r{to} > r{from} goto"),
        0x16 => format!("(16) if w{to} == {constant:#x} goto"),
        0x56 => format!("(56) if w{to} != {constant:#x} goto"),
        0x36 => format!("(36) if w{to} >= {constant:#x} goto"),
        0x15 => format!("(15) if r{to} == {constant:#x} goto"),
        0x95 => "(95) exit".to_owned(),
        _ => return None,
    })
}

#[test]
fn the_kernels_disassembly_has_each_instruction_in_order() {
    let Some(loaded) = loaded(Takes::Tunnels(Tags::Forward, PORTS.to_vec())) else { return };
    let number = test_run::number(&loaded.program).unwrap().to_string();
    let output = match Command::new("bpftool").args(["prog", "dump", "xlated", "id", &number]).output() {
        Ok(output) if output.status.success() => output,
        other => {
            println!("skipped: bpftool: {other:?}");
            return;
        }
    };
    let dump = String::from_utf8(output.stdout).unwrap();
    let mut lines = dump.lines().map(|line| {
        let line = line.split_once(':').map_or(line, |(_, rest)| rest).trim();
        line.split_once(" goto").map_or(line.to_owned(), |(before, _)| format!("{before} goto"))
    });
    let takes = Takes::Tunnels(Tags::Forward, PORTS.to_vec());
    let program = instructions(MAC, &takes, 0, End::Socket(0));
    let known: Vec<String> = program.iter().filter_map(text).collect();
    assert!(known.len() + 12 >= program.len(), "{} of {}", known.len(), program.len());
    for expected in known {
        assert!(lines.any(|line| line == expected), "{expected} is missing in\n{dump}");
    }
}
