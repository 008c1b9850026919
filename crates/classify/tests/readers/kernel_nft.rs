//! Verdicts of the kernel: rules of nftables at random, and those that firewalld made, are loaded into a
//! network namespace, packets go through its forward chain, and what comes out was accepted. What was loaded
//! is read as `nft -j list ruleset` says it.
//!
//! It takes root, `unshare`, `ip`, `nft` and python3, and says `skipped:` without them.
//! `WIRESPEED_KERNEL_CASES` is how many rule sets there are.

#![allow(clippy::cast_possible_truncation)] // small numbers, made here

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{Assumptions, ReadOptions, RuleFormat, read_rules_from};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, Tuple};
use wirespeed_rng::Rng;

const PACKETS: usize = 400;

#[test]
fn verdicts_are_those_of_the_kernel() {
    if let Err(why) = can_be_done() {
        eprintln!("skipped: {why}");
        return;
    }
    let cases = std::env::var("WIRESPEED_KERNEL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24);
    let folder = tempfile::tempdir().expect("a folder");
    let all: Vec<Case> = (0..cases).map(Case::at_random).chain([Case::of_firewalld()]).collect();
    all.iter().enumerate().for_each(|(at, case)| case.write(folder.path(), at));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/nft.py");
    let output = Command::new("unshare").arg("-n").arg("python3").arg(script).arg(folder.path()).output();
    let output = output.expect("unshare");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut compared, mut doubted) = (0, 0);
    for (at, case) in all.iter().enumerate() {
        let (sure, not) = case.compare(folder.path(), at);
        compared += sure;
        doubted += not;
    }
    eprintln!("{compared} verdicts compared, {doubted} more in doubt");
    assert!(compared > cases as usize * PACKETS / 3, "{compared} compared, {doubted} in doubt");
}

fn can_be_done() -> Result<(), String> {
    for tool in [&["nft", "--version"][..], &["python3", "--version"], &["ip", "-V"]] {
        let is_there =
            Command::new(tool[0]).arg(tool[1]).output().is_ok_and(|output| output.status.success());
        if !is_there {
            return Err(format!("there is no {}", tool[0]));
        }
    }
    let make = "ip link add a0 type veth peer name a1 && nft add table inet t";
    match Command::new("unshare").args(["-n", "sh", "-c", make]).output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err("no network namespace with veth and nftables can be made".to_owned()),
    }
}

/// A rule set and packets.
struct Case {
    text: String,
    /// The chain at the hook of forwarding, where there are several.
    chain: Option<&'static str>,
    /// What is true of all packets.
    assumed: &'static [&'static str],
    v4: Vec<Ipv4Tuple>,
    v6: Vec<Ipv6Tuple>,
    /// Packets: the IPv4 ones first.
    packets: Vec<Vec<u8>>,
}

impl Case {
    fn at_random(seed: u64) -> Self {
        let mut rng = Rng::new(0x6e66_7400 + seed);
        let has_state = rng.chance(0.4);
        let text = Rules { rng: &mut rng, has_state }.text();
        let assumed: &[&str] = match has_state {
            true => &[
                "in=a1",
                "out=b0",
                "mark=0",
                "ct=new",
                "ct-mark=0",
                "ct-zone=0",
                "tcp-flags=syn",
                "limit=under",
            ],
            false => &["in=a1", "out=b0", "mark=0", "fragment=no"],
        };
        let protocols: &[u8] = if has_state { &[6, 17] } else { &[6, 17, 1, 47, 132, 136, 33, 50] };
        let (mut v4, mut v6, mut packets) = (Vec::new(), Vec::new(), Vec::new());
        for (at, number) in (0..PACKETS).zip(0..) {
            let is_v4 = at < PACKETS * 3 / 4;
            let mut proto = protocols[rng.index(protocols.len())];
            if proto == 1 && !is_v4 {
                proto = 58;
            }
            let ports = match proto {
                1 => [[8, 0], [3, 4], [0, 0], [11, 0]][rng.index(4)],
                58 => [[128, 0], [129, 0], [1, 4], [3, 0]][rng.index(4)],
                47 | 50 => [0, 0],
                _ => [
                    [1u16, 22, 53, 80, 85, 443, 1024, 60_000][rng.index(8)],
                    [1, 22, 53, 80, 85, 90, 443, 2000][rng.index(8)],
                ],
            };
            let transport = transport(proto, ports, number);
            if is_v4 {
                let address = |rng: &mut Rng| [10, rng.index(2) as u8, 0, rng.index(12) as u8];
                let (src, dst) = (address(&mut rng), address(&mut rng));
                v4.push(Ipv4Tuple::new(src.into(), dst.into(), ports[0], ports[1], proto));
                packets.push(ipv4(src, dst, proto, transport));
            } else {
                let address = |rng: &mut Rng| {
                    let (net, host) = (rng.index(2) as u16, rng.index(8) as u16);
                    std::net::Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host + 1)
                };
                let (src, dst) = (address(&mut rng), address(&mut rng));
                v6.push(Ipv6Tuple::new(src, dst, ports[0], ports[1], proto));
                packets.push(ipv6(src, dst, proto, transport));
            }
        }
        Self { text, chain: None, assumed, v4, v6, packets }
    }

    /// The rules that firewalld made, with the chain of what comes in where the packets are forwarded, and a
    /// network's interface as that of its zone.
    fn of_firewalld() -> Self {
        let text = include_str!("../data/firewalld.nft.json")
            .replace("\"hook\": \"forward\"", "\"hook\": \"other\"")
            .replace("\"hook\": \"input\"", "\"hook\": \"forward\"")
            .replace("\"hook\": \"other\"", "\"hook\": \"input\"")
            .replace("\"eth0\"", "\"a1\"");
        let mut rng = Rng::new(0x6e66_7401);
        let nets = [[10, 9, 0], [10, 10, 0], [192, 0, 2], [198, 51, 100], [203, 0, 113]];
        let (mut v4, mut packets, mut flows) = (Vec::new(), Vec::new(), HashSet::new());
        while v4.len() < PACKETS {
            let [a, b, c] = nets[rng.index(nets.len())];
            let (src, dst) = ([a, b, c, 1 + rng.index(100) as u8], [10, 77, 0, 1 + rng.index(9) as u8]);
            // Of other protocols some packets are no beginning of a connection.
            let proto = [6, 17, 1, 50][rng.index(4)];
            let ports = match proto {
                50 => [0, 0],
                // Errors would be of no connection.
                1 => [[8, 0], [13, 0]][rng.index(2)],
                _ => {
                    let to = [22, 23, 137, 443, 5353, 5432, 7999, 8000, 8080, 8081, 9100];
                    [40_000 + rng.index(1000) as u16, to[rng.index(to.len())]]
                }
            };
            // Each is the first of its connection.
            if flows.insert((src, dst, ports, proto)) {
                packets.push(ipv4(src, dst, proto, transport(proto, ports, v4.len() as u32)));
                v4.push(Ipv4Tuple::new(src.into(), dst.into(), ports[0], ports[1], proto));
            }
        }
        let assumed = &["in=a1", "out=b0", "ct=new"];
        Self { text, chain: Some("filter_INPUT"), assumed, v4, v6: Vec::new(), packets }
    }

    fn write(&self, folder: &Path, at: usize) {
        let put = |kind: &str, text: &str| {
            std::fs::write(folder.join(format!("{at}.{kind}")), text).expect("written");
        };
        put("nft", &self.text);
        let mut lines = String::new();
        for packet in &self.packets {
            packet.iter().for_each(|byte| write!(lines, "{byte:02x}").expect("a String takes all"));
            lines.push('\n');
        }
        put("packets", &lines);
    }

    /// Compares; how many verdicts were sure and how many in doubt.
    fn compare(&self, folder: &Path, at: usize) -> (usize, usize) {
        let file = |kind: &str| {
            std::fs::read_to_string(folder.join(format!("{at}.{kind}"))).expect("the kernel's file")
        };
        let (json, seen) = (file("json"), file("seen"));
        let seen: Vec<usize> =
            seen.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        let (a, b) = self.compare_of(&json, &self.v4, 0, &seen);
        let (c, d) = self.compare_of(&json, &self.v6, self.v4.len(), &seen);
        (a + c, b + d)
    }

    fn compare_of<T: Tuple>(&self, json: &str, tuples: &[T], from: usize, seen: &[usize]) -> (usize, usize) {
        let assume = Assumptions::new(self.assumed.iter().map(|text| text.parse().expect("an assumption")));
        let options = ReadOptions {
            format: Some(RuleFormat::Nft),
            chain: self.chain.map(str::to_owned),
            assume: assume.expect("no two of a key"),
            ..ReadOptions::default()
        };
        let (file, report) = read_rules_from::<T>(json.as_bytes(), "list", &options).expect("a chain");
        let oracle = Oracle::of(&file.rules);
        let mut doubted = 0;
        for (at, tuple) in (from..).zip(tuples) {
            let rule = oracle.right(tuple);
            let own = file.action(rule).expect("a policy is last");
            let is_accepted = seen.contains(&at);
            let may_be_other = file.doubts(tuple, rule).any(|doubt| match doubt.action() {
                Some(action) => (file.actions[action as usize] == "accept") == is_accepted,
                None => true,
            });
            doubted += usize::from(file.doubts(tuple, rule).next().is_some());
            assert!(
                (own == "accept") == is_accepted || may_be_other,
                "{tuple}: rule {rule} says {own}, and the kernel accepted: {is_accepted}\n{}\n{report}",
                self.text
            );
        }
        (tuples.len() - doubted, doubted)
    }
}

/// Rules at random in nft's own grammar.
struct Rules<'r> {
    rng: &'r mut Rng,
    has_state: bool,
}

impl Rules<'_> {
    fn text(mut self) -> String {
        let mut text = "table inet f {\n".to_owned();
        text += "  set nets {\n    type ipv4_addr\n    flags interval\n    elements = { 10.0.0.0/30, 10.1.0.5-10.1.0.9 }\n  }\n";
        text += "  set ports {\n    type inet_service\n    elements = { 22, 80, 443 }\n  }\n";
        text += "  set pairs {\n    type ipv4_addr . inet_service\n    flags interval\n    elements = { 10.0.0.0/29 . 1-100, 10.1.0.3 . 443 }\n  }\n";
        for name in ["low", "mid"] {
            let rules = 1 + self.rng.index(4);
            let _ = writeln!(text, "  chain {name} {{"); // a String takes all
            (0..rules).for_each(|_| text += &self.rule(name));
            text += "  }\n";
        }
        text += "  map ways {\n    type inet_service : verdict\n    elements = { 22 : accept, 53 : jump low, 80 : drop, 85 : goto mid, 443 : continue }\n  }\n";
        let policy = ["accept", "drop"][self.rng.index(2)];
        let _ = writeln!(
            text,
            "  chain forwarding {{\n    type filter hook forward priority filter; policy {policy};"
        );
        let rules = 3 + self.rng.index(9);
        (0..rules).for_each(|_| text += &self.rule("forwarding"));
        text + "  }\n}\n"
    }

    fn rule(&mut self, chain: &str) -> String {
        let mut rule = "    ".to_owned();
        for _ in 0..self.rng.weighted(&[1, 5, 4, 1]) {
            rule += &self.matched();
            rule.push(' ');
            if self.rng.chance(0.1) {
                rule += "counter ";
            }
        }
        rule + &self.verdict(chain) + "\n"
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.rng.index(of.len())]
    }

    fn matched(&mut self) -> String {
        let not = self.one(&["", "", "!= "]);
        let port = self.one(&["sport", "dport"]);
        let end = self.one(&["saddr", "daddr"]);
        let ports = ["22", "{ 22, 80-90 }", "1-80", "{ 53, 443, 2000 }", "@ports"];
        let addresses = [
            "10.0.0.3",
            "10.0.0.0/30",
            "10.0.0.2-10.0.0.7",
            "{ 10.0.0.1, 10.1.0.0/29 }",
            "@nets",
            "10.1.0.0/16",
        ];
        let wide = ["2001:db8::1", "2001:db8:1::/48", "{ 2001:db8::2, 2001:db8:1::3 }"];
        match self.rng.index(if self.has_state { 20 } else { 16 }) {
            0 | 1 => format!(
                "{} {port} {not}{}",
                self.one(&["tcp", "udp", "sctp", "udplite", "dccp"]),
                self.one(&ports)
            ),
            2 => format!(
                "tcp {port} {} {}",
                self.one(&["<", ">", "<=", ">="]),
                self.one(&["80", "22", "1", "443"])
            ),
            3 => format!("th {port} {not}{}", self.one(&ports)),
            4 | 5 => format!("ip {end} {not}{}", self.one(&addresses)),
            6 => format!("ip6 {end} {not}{}", self.one(&wide)),
            7 => format!(
                "meta l4proto {not}{}",
                self.one(&["tcp", "{ udp, sctp }", "gre", "{ icmp, ipv6-icmp }", "esp"])
            ),
            8 => format!("ip protocol {not}{}", self.one(&["udp", "{ tcp, icmp }", "47"])),
            9 => format!(
                "icmp type {not}{}",
                self.one(&["echo-request", "{ destination-unreachable, echo-reply }"])
            ),
            10 => format!(
                "icmpv6 type {not}{}",
                self.one(&["echo-request", "{ destination-unreachable, echo-reply }"])
            ),
            11 => format!(
                "ip {end} & 0.0.0.{} {} 0.0.0.{}",
                5,
                self.one(&["==", "!="]),
                self.one(&["0", "1", "4", "5"])
            ),
            12 => format!(
                "ip {end} . tcp {port} {not}{}",
                self.one(&["@pairs", "{ 10.0.0.1 . 80, 10.1.0.0/16 . 1-80 }"])
            ),
            13 => format!("meta nfproto {}", self.one(&["ipv4", "ipv6"])),
            14 => self
                .one(&[
                    "iifname \"a1\"",
                    "iifname \"b*\"",
                    "oifname != \"b0\"",
                    "iifname { \"a1\", \"lo\" }",
                    "oifname \"b*\"",
                ])
                .to_owned(),
            15 => self
                .one(&["meta mark 0", "meta mark & 0xf == 3", "ip ttl 64", "ip ttl 5", "meta length > 50"])
                .to_owned(),
            16 => format!(
                "ct state {}",
                self.one(&["new", "established,related", "{ new, untracked }", "!= new", "invalid"])
            ),
            17 => self
                .one(&[
                    "tcp flags syn",
                    "tcp flags & (syn|ack) == syn",
                    "tcp flags != syn",
                    "tcp flags & (fin|rst) != 0",
                ])
                .to_owned(),
            18 => format!(
                "ct {} {not}{}",
                self.one(&["zone", "zone", "mark"]),
                self.one(&["0", "1", "0-2", "{ 0, 5 }", "{ 1-3, 7 }"])
            ),
            _ => "limit rate 1000/second burst 10000 packets".to_owned(),
        }
    }

    fn verdict(&mut self, chain: &str) -> String {
        let to = match chain {
            "low" => "",
            "mid" => "low",
            _ => self.one(&["low", "mid"]),
        };
        match self.rng.index(13) {
            0..=2 => "accept".to_owned(),
            3..=5 => "drop".to_owned(),
            6 => "return".to_owned(),
            7 if !to.is_empty() => format!("goto {to}"),
            8 | 9 if !to.is_empty() => format!("jump {to}"),
            10 => self.one(&["counter", "log", "meta mark set 3", "continue"]).to_owned(),
            11 if chain == "forwarding" => format!(
                "{} dport vmap {}",
                self.one(&["tcp", "udp", "th"]),
                self.one(&["@ways", "{ 22 : drop, 80-90 : accept, * : jump mid }"])
            ),
            12 if chain == "forwarding" => self
                .one(&[
                    "ip saddr vmap { 10.0.0.0/30 : accept, 10.1.0.1 : jump low }",
                    "meta l4proto . th dport vmap { tcp . 22 : accept, udp . 53 : drop }",
                    "iifname vmap { \"a1\" : jump mid, \"lo\" : accept }",
                ])
                .to_owned(),
            _ => "reject".to_owned(),
        }
    }
}

/// A transport header with a payload that ends in the packet's number.
fn transport(proto: u8, [a, b]: [u16; 2], number: u32) -> Vec<u8> {
    let mut bytes = match proto {
        1 | 58 => vec![a as u8, b as u8, 0, 0, 0, 0, 0, 0],
        47 => vec![0, 0, 0x65, 0x58],
        50 => vec![0, 0, 1, 0, 0, 0, 0, 1],
        _ => [a.to_be_bytes(), b.to_be_bytes()].concat(),
    };
    match proto {
        6 => bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]),
        17 | 136 => bytes.extend([0, 8 + 13, 0, 0]),
        33 => bytes.extend([4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        132 => bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 17]),
        _ => {}
    }
    bytes.extend(b"WIRESPEED");
    bytes.extend(number.to_be_bytes());
    bytes
}

/// Where the checksum of a transport header is; conntrack takes packets with a wrong one for invalid.
const fn checksum_at(proto: u8) -> Option<usize> {
    match proto {
        6 => Some(16),
        17 => Some(6),
        1 | 58 => Some(2),
        _ => None,
    }
}

fn ipv4(src: [u8; 4], dst: [u8; 4], proto: u8, mut transport: Vec<u8>) -> Vec<u8> {
    if let Some(at) = checksum_at(proto) {
        let mut pseudo = Vec::new();
        if proto != 1 {
            pseudo = [&src[..], &dst, &[0, proto], &(transport.len() as u16).to_be_bytes()].concat();
        }
        let sum = checksum(&[&pseudo[..], &transport].concat());
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let total = (20 + transport.len()) as u16;
    let mut head = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0];
    head[2..4].copy_from_slice(&total.to_be_bytes());
    head.extend(src);
    head.extend(dst);
    let sum = checksum(&head);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    head.extend(transport);
    head
}

fn ipv6(src: std::net::Ipv6Addr, dst: std::net::Ipv6Addr, proto: u8, mut transport: Vec<u8>) -> Vec<u8> {
    let length = transport.len() as u16;
    if let Some(at) = checksum_at(proto) {
        let pseudo =
            [&src.octets()[..], &dst.octets(), &[0, 0], &length.to_be_bytes(), &[0, 0, 0, proto]].concat();
        let sum = checksum(&[&pseudo[..], &transport].concat());
        transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let mut head = vec![0x60, 0, 0, 0, 0, 0, proto, 64];
    head[4..6].copy_from_slice(&length.to_be_bytes());
    head.extend(src.octets());
    head.extend(dst.octets());
    head.extend(transport);
    head
}

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    match !(sum as u16) {
        0 => 0xffff,
        sum => sum,
    }
}
