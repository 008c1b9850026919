//! What the router sends, read by tshark: nothing is malformed, and every checksum is right. Where tshark is
//! not installed the tests say that they skip.

use std::net::IpAddr;
use std::process::Command;

use etherparse::Ipv4Header;
use wirespeed_rng::Rng;

use crate::frames::{self, Kind};
use crate::{forward, list::Sent};

/// Fields of a frame, whose values in quoted packets stand behind those of the packet itself.
const FIELDS: [&str; 8] = [
    "_ws.malformed",
    "icmp.type",
    "icmpv6.type",
    "ip.checksum.status",
    "icmp.checksum.status",
    "icmpv6.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
];
const FIRST_STATUS: usize = 3;

/// The fields of each frame, as tshark reads them. `None`, and says so, where it is not installed.
fn read(frames: &[Vec<u8>]) -> Option<Vec<Vec<String>>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sent.pcap");
    let mut bytes = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    bytes[4..8].copy_from_slice(&[2, 0, 4, 0]);
    for (second, frame) in (0_u32..).zip(frames) {
        let len = frame.len() as u32;
        bytes.extend([second, 0, len, len].map(u32::to_le_bytes).concat());
        bytes.extend(frame);
    }
    std::fs::write(&path, bytes).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields"]);
    for option in ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE"] {
        tshark.args(["-o", option]);
    }
    // What the packets carry is made up, whatever protocol their ports are of.
    for port in ["udp.port", "tcp.port"] {
        tshark.args(["-d", &format!("{port}==0-65535,data")]);
    }
    for field in FIELDS {
        tshark.args(["-e", field]);
    }
    let Ok(said) = tshark.output() else {
        println!("skipped: tshark is not installed");
        return None;
    };
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let text = String::from_utf8(said.stdout).unwrap();
    let lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    assert_eq!(lines.len(), frames.len(), "{text}");
    Some(lines)
}

/// Whether tshark finds a frame malformed, or a checksum of it wrong.
fn is_wrong(fields: &[String]) -> bool {
    let is_bad = |status: &String| status.split(',').any(|status| status == "0" || status == "Bad");
    !fields[0].is_empty() || fields[FIRST_STATUS..].iter().any(is_bad)
}

/// An IPv4 frame that may be cut up.
fn divisible(frame: &[u8]) -> Vec<u8> {
    let (mut header, rest) = Ipv4Header::from_slice(&frame[14..]).unwrap();
    header.dont_fragment = false;
    header.header_checksum = header.calc_header_checksum();
    let mut with = frame[..14].to_vec();
    header.write(&mut with).unwrap();
    with.extend_from_slice(rest);
    with
}

/// Packets to each kind of route, in both families: some are forwarded, some cut up, some answered by an
/// error of each kind.
fn packets() -> Vec<Vec<u8>> {
    let mut rng = Rng::new(11);
    let v4 = ["10.9.9.9", "10.1.9.9", "10.1.2.9", "10.2.0.1", "10.3.0.1", "10.5.0.1", "10.6.0.1", "77.0.0.1"];
    let v6 = ["2001:db8:1::1", "2001:db8:1:2::1", "2001:db8:2::1", "2001:db8:3::1", "2a00::1", "fd00::1"];
    let ways = v4.map(|to| ("192.0.2.7", to)).into_iter().chain(v6.map(|to| ("2001:db8::7", to)));
    let mut all = Vec::new();
    for (from, to) in ways {
        let addresses: (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        for (hops, payload) in [(64, 0), (64, 33), (64, 900), (64, 1300), (64, 1400), (1, 20), (1, 1200)] {
            let frame = frames::udp(addresses, hops, payload);
            if addresses.0.is_ipv4() {
                all.push(divisible(&frame));
            }
            all.push(frame);
        }
    }
    for kind in [Kind::UdpV4, Kind::UdpV6, Kind::TcpV4, Kind::Ping, Kind::Vlan] {
        all.extend((0..60).map(|_| frames::of_kind(kind, &mut rng)));
    }
    all
}

fn sent_by(sent: &[Sent]) -> Vec<Vec<u8>> {
    sent.iter().flat_map(|sent| sent.lock().unwrap().clone()).collect()
}

#[test]
fn tshark_finds_nothing_wrong() {
    let packets = packets();
    let Some(read_in) = read(&packets) else { return };
    let wrong = read_in.iter().find(|fields| is_wrong(fields));
    assert_eq!(wrong, None, "what comes in is right");
    let (stats, sent) = forward(&packets, 64, 10_000);
    assert!(stats.is_whole() && stats.made > 100, "{stats:?}");
    let mut sent = sent_by(&sent);
    let Some(read_out) = read(&sent) else { return };
    for (frame, fields) in sent.iter().zip(&read_out) {
        assert!(!is_wrong(fields), "{fields:?}: {frame:02x?}");
    }
    // Errors of each kind were among them, by the type of the outer packet.
    let has = |field: usize, kind: &str| {
        read_out.iter().any(|fields| fields[field].split(',').next() == Some(kind))
    };
    assert!(["3", "11"].iter().all(|kind| has(1, kind)), "ICMP");
    assert!(["1", "2", "3"].iter().all(|kind| has(2, kind)), "ICMPv6");
    // The witness sees what is wrong: a byte of an error's header, of each family.
    let of = |field: usize| read_out.iter().position(|fields| !fields[field].is_empty()).unwrap();
    for (at, header) in [(of(1), 34), (of(2), 54)] {
        sent[at][header + 2] ^= 0x10;
        let Some(read_again) = read(&sent) else { return };
        assert!(is_wrong(&read_again[at]), "{:?}", read_again[at]);
        sent[at][header + 2] ^= 0x10;
    }
}
