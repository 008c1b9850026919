//! Verdicts beside those of the kernel: random files of rules are loaded by `iptables-restore` and
//! `ip6tables-restore` into a network namespace of their own, packets are sent through it, and what comes out
//! on the other side was accepted.
//!
//! It needs root, network namespaces, iptables, ipset and Python; where something of these isn't there it
//! says that it is skipped.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{Assumptions, ReadOptions, read_rules_from};
use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, Tuple};
use wirespeed_rng::Rng;

const ROUNDS: u64 = 60;
const PACKETS: usize = 400;
/// What holds for all packets that are sent.
const ASSUMED: [&str; 9] = [
    "in=a1",
    "out=b1",
    "ct=new",
    "ct-dir=original",
    "mark=0",
    "ct-mark=0",
    "tcp-flags=syn",
    "dst-type=unicast",
    "src-type=unicast",
];

#[test]
fn verdicts_are_those_of_the_kernel() {
    if let Err(why) = can_run() {
        eprintln!("skipped: {why}");
        return;
    }
    let began = Instant::now();
    let dir = tempfile::tempdir().expect("a folder");
    let (mut rounds, mut seen) = (String::new(), HashSet::new());
    // More of them, for a longer look.
    let number =
        std::env::var("WIRESPEED_KERNEL_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    for round in 0..number {
        let mut rng = Rng::stream(0x6b65_726e, round);
        let is_v6 = round % 3 == 2;
        let file = File::random(&mut rng, is_v6, &mut seen);
        let write = |kind: &str, text: &str| {
            std::fs::write(dir.path().join(format!("{round}.{kind}")), text).expect("written");
        };
        write("family", if is_v6 { "6" } else { "4" });
        write("sets", &file.sets);
        write("rules", &file.rules);
        write("packets", &file.packets.iter().map(|packet| format!("{packet}\n")).collect::<String>());
        let _ = writeln!(rounds, "{round}");
    }
    std::fs::write(dir.path().join("rounds"), rounds).expect("written");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel/forward.py");
    let out = Command::new("timeout")
        .args(["500", "unshare", "-n", "-m", "python3"])
        .arg(script)
        .arg(dir.path())
        .output()
        .expect("started");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (mut compared, mut accepted) = (0, 0);
    for round in 0..number {
        let (all, taken) = match round % 3 == 2 {
            true => compare::<Ipv6Tuple>(dir.path(), round),
            false => compare::<Ipv4Tuple>(dir.path(), round),
        };
        (compared, accepted) = (compared + all, accepted + taken);
    }
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("{compared} verdicts of the kernel, {accepted} of them ACCEPT, {seconds:.1} s");
    let all = PACKETS * usize::try_from(number).expect("few");
    assert!(compared > all / 2, "most files have to be taken: {compared} of {all}");
    assert!((compared / 5..compared * 4 / 5).contains(&accepted), "both verdicts: {accepted} of {compared}");
}

fn can_run() -> Result<(), String> {
    for words in [
        "unshare -n -m true",
        "iptables-restore --version",
        "ip6tables-restore --version",
        "ipset --version",
        "python3 --version",
        "unshare -n ip link add a1 type veth peer name a0",
        "unshare -n iptables -A FORWARD -m conntrack --ctstate NEW -m multiport -p tcp --ports 1 -j DROP",
        "unshare -n ipset create x hash:net",
    ] {
        let mut all = words.split(' ');
        let done = Command::new(all.next().expect("a command")).args(all).output();
        match done {
            Ok(out) if out.status.success() => {}
            Ok(out) => return Err(format!("{words}: {}", String::from_utf8_lossy(&out.stderr).trim())),
            Err(error) => return Err(format!("{words}: {error}")),
        }
    }
    Ok(())
}

/// Compares the verdicts of a round, of what was loaded and of what the tool saved again; how many, and how
/// many the kernel accepted.
fn compare<T: Tuple>(dir: &Path, round: u64) -> (usize, usize) {
    let text = |kind: &str| std::fs::read_to_string(dir.join(format!("{round}.{kind}")));
    if let Ok(why) = text("refused") {
        eprintln!("round {round}: the tool refused: {}", why.trim());
        return (0, 0);
    }
    let accepted: Vec<usize> =
        text("accepted").expect("an answer").lines().map(|line| line.parse().expect("a place")).collect();
    let assume = ASSUMED.iter().map(|one| one.parse().expect("an assumption"));
    let options = ReadOptions {
        assume: Assumptions::new(assume).expect("no contradiction"),
        chain: Some("FORWARD".to_owned()),
        sets: Some(text("sets").expect("sets")),
        ..ReadOptions::default()
    };
    let packets = text("packets").expect("packets");
    for kind in ["rules", "saved"] {
        let rules = text(kind).expect("rules");
        let (file, report) = read_rules_from::<T>(rules.as_bytes(), kind, &options)
            .unwrap_or_else(|error| panic!("{error}\n{rules}"));
        assert!(report.left_out.is_empty() && file.doubts.is_empty(), "round {round}: {report}\n{rules}");
        let oracle = Oracle::of(&file.rules);
        for (place, packet) in packets.lines().enumerate() {
            let tuple: T = wirespeed_classify::read::tuple_of_line(packet).expect("a tuple");
            let verdict = file.action(oracle.right(&tuple)).expect("there is a policy");
            let by_kernel = accepted.contains(&place);
            assert_eq!(
                verdict == "ACCEPT",
                by_kernel,
                "round {round}, {kind}: {tuple}: {verdict}, by the kernel accepted: {by_kernel}\n{rules}"
            );
        }
    }
    (packets.lines().count(), accepted.len())
}

/// A file of rules, and packets that meet them.
struct File {
    rules: String,
    sets: String,
    packets: Vec<String>,
}

/// Chains; each jumps to later ones.
const CHAINS: [&str; 4] = ["FORWARD", "one", "two", "three-3"];

impl File {
    fn random(rng: &mut Rng, is_v6: bool, seen: &mut HashSet<String>) -> Self {
        let mut made = Maker { rng, is_v6 };
        let policy = made.pick(&["ACCEPT", "DROP"]);
        let last = if is_v6 { "fd00:9::9" } else { "198.18.9.9" };
        let mut rules = format!(
            "# random\n*filter\n:FORWARD {policy} [0:0]\n:one - [0:0]\n:two - [0:0]\n:three-3 - [0:0]\n-A FORWARD -s {last} -j ACCEPT\n"
        );
        for (at, chain) in CHAINS.iter().enumerate() {
            for _ in 0..2 + made.rng.index(7) {
                let _ = writeln!(rules, "{}", made.rule(at, chain));
            }
        }
        rules.push_str("COMMIT\n");
        let sets = if is_v6 { String::new() } else { made.sets() };
        let mut packets: Vec<String> = (0..PACKETS).map(|_| made.packet()).collect();
        // Neither a packet of a connection that there is, nor one back.
        packets.retain(|packet| {
            let mut words: Vec<&str> = packet.split(' ').collect();
            let is_new = seen.insert(words.join(" "));
            words.swap(0, 1);
            words.swap(2, 3);
            seen.insert(words.join(" ")) && is_new
        });
        Self { rules, sets, packets }
    }
}

struct Maker<'a> {
    rng: &'a mut Rng,
    is_v6: bool,
}

impl Maker<'_> {
    fn pick<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.rng.index(all.len())]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    /// An address of few.
    fn address(&mut self) -> String {
        let low = self.rng.below(16);
        let high = self.rng.below(4);
        match self.is_v6 {
            true => {
                Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(high) << 80 | u128::from(low)).to_string()
            }
            false => Ipv4Addr::from_bits(u32::try_from(0x0b00_0000 | high << 16 | low).expect("32 bits"))
                .to_string(),
        }
    }

    fn port(&mut self) -> u64 {
        let port = self.pick(&["0", "1", "22", "53", "80", "81", "443", "1023", "1024", "65535"]);
        port.parse().expect("a port")
    }

    fn not(&mut self) -> &'static str {
        if self.chance(25) { "! " } else { "" }
    }

    fn packet(&mut self) -> String {
        let icmp = if self.is_v6 { "58" } else { "1" };
        let proto = self.pick(&["6", "17", "6", "17", icmp, "132", "47", "50", "33", "136"]);
        let (src, dst) = (self.address(), self.address());
        let (sport, dport) = match proto {
            "1" => (
                self.pick(&["0", "3", "5", "8", "11", "13", "200"]).to_owned(),
                self.rng.below(4).to_string(),
            ),
            "58" => (
                self.pick(&["1", "2", "3", "4", "128", "129", "200"]).to_owned(),
                self.rng.below(4).to_string(),
            ),
            "47" | "50" => ("0".to_owned(), "0".to_owned()),
            _ => (self.port().to_string(), self.port().to_string()),
        };
        format!("{src} {dst} {sport} {dport} {proto}")
    }

    fn addresses(&mut self) -> String {
        let address = self.address();
        match self.rng.below(8) {
            0 if !self.is_v6 => format!("{address}/255.0.0.{}", self.pick(&["1", "3", "5", "255"])),
            0 => format!("{address}/ffff:ffff::{}", self.pick(&["1", "5", "f"])),
            1 => format!("{address}/{}", if self.is_v6 { "48" } else { "16" }),
            2 => format!("{address}/{}", if self.is_v6 { "125" } else { "29" }),
            3 => format!("{address}/{}", if self.is_v6 { "80" } else { "255.255.0.0" }),
            _ => address,
        }
    }

    /// Ports, but not all of them.
    fn ports(&mut self) -> String {
        let (a, b) = (self.port(), self.port());
        let (least, most) = (a.min(b), a.max(b));
        match self.rng.below(6) {
            0 if (least, most) != (0, 65535) => format!("{least}:{most}"),
            1 if a != 65535 => format!(":{a}"),
            2 if a != 0 => format!("{a}:"),
            _ => a.to_string(),
        }
    }

    fn port_list(&mut self) -> String {
        let len = 1 + self.rng.index(4);
        let one = |made: &mut Self| {
            let (a, b) = (made.port(), made.port());
            if made.chance(30) && a != b { format!("{}:{}", a.min(b), a.max(b)) } else { a.to_string() }
        };
        (0..len).map(|_| one(self)).collect::<Vec<_>>().join(",")
    }

    /// A rule, its options in an order of their own.
    fn rule(&mut self, at: usize, chain: &str) -> String {
        let mut options: Vec<String> = Vec::new();
        if self.chance(50) {
            let name = self.pick(&["-s ", "--source ", "--src "]);
            options.push(match self.chance(12) {
                true => format!("{name}{},{}", self.addresses(), self.addresses()),
                false => format!("{}{name}{}", self.not(), self.addresses()),
            });
        }
        if self.chance(40) {
            // A negation beside a list of addresses is refused.
            let has_list = options.iter().any(|option| option.contains(','));
            let not = if has_list { "" } else { self.not() };
            options.push(format!("{not}-d {}", self.addresses()));
        }
        let proto = self.protocol(&mut options);
        self.matches(&mut options, &proto);
        let target = match self.rng.below(12) {
            0..3 if at + 1 < CHAINS.len() => {
                let to = CHAINS[at + 1 + self.rng.index(CHAINS.len() - at - 1)];
                format!("{} {to}", self.pick(&["-j", "-g", "--jump", "-j"]))
            }
            3 | 4 => "-j RETURN".to_owned(),
            5 => "-j MARKED".to_owned(),
            6 => "-j REJECT".to_owned(),
            _ => self.pick(&["-j ACCEPT", "-j DROP", "--jump DROP", "-j ACCEPT"]).to_owned(),
        };
        // It only counts.
        if target != "-j MARKED" {
            let place = self.rng.index(options.len() + 1);
            // A match of the protocol is known behind the protocol only.
            options.insert(place, target);
        }
        let counters = if self.chance(10) { "[3:180] " } else { "" };
        format!("{counters}-A {chain} {}", options.join(" ")).trim_end().to_owned()
    }

    /// A protocol with its own options; which it is.
    fn protocol(&mut self, options: &mut Vec<String>) -> String {
        let icmp = if self.is_v6 { "ipv6-icmp" } else { "icmp" };
        let proto = self
            .pick(&["", "", "tcp", "udp", "6", "17", "sctp", "dccp", "udplite", icmp, "gre", "esp", "all"]);
        if proto.is_empty() {
            return String::new();
        }
        if self.chance(15) && proto != "all" {
            options.push(format!("! -p {proto}"));
            return String::new();
        }
        let mut all = format!("{} {proto}", self.pick(&["-p", "--protocol"]));
        let name = match proto {
            "6" => "tcp",
            "17" => "udp",
            "ipv6-icmp" => "icmp6",
            other => other,
        };
        match name {
            "tcp" | "udp" | "sctp" | "dccp" => {
                if self.chance(50) {
                    let _ = write!(all, " -m {name}");
                }
                if self.chance(50) {
                    let _ = write!(all, " {}--dport {}", self.not(), self.ports());
                }
                if self.chance(25) {
                    let _ = write!(all, " {}--sport {}", self.not(), self.ports());
                }
                if name == "tcp" && self.chance(20) {
                    let flags = self.pick(&[
                        "--syn",
                        "--tcp-flags SYN,ACK SYN",
                        "--tcp-flags ALL NONE",
                        "--tcp-flags FIN,RST FIN",
                    ]);
                    let _ = write!(all, " {}{flags}", self.not());
                }
            }
            "icmp" if self.chance(60) => {
                let kind = self.pick(&[
                    "8",
                    "echo-reply",
                    "3/1",
                    "host-unreachable",
                    "any",
                    "255",
                    "time-exceeded",
                    "redirect",
                    "13",
                    "network-redirect",
                    "echo-request",
                ]);
                let _ = write!(all, " {}--icmp-type {kind}", self.not());
            }
            "icmp6" if self.chance(60) => {
                let kind = self.pick(&[
                    "128",
                    "echo-reply",
                    "1/1",
                    "destination-unreachable",
                    "time-exceeded",
                    "packet-too-big",
                    "no-route",
                    "4/2",
                    "unknown-option",
                ]);
                let _ = write!(all, " {}--icmpv6-type {kind}", self.not());
            }
            _ => {}
        }
        if matches!(name, "tcp" | "udp" | "sctp" | "dccp" | "udplite") && self.chance(25) {
            let which = self.pick(&["--sports", "--dports", "--ports", "--destination-ports"]);
            let _ = write!(all, " -m multiport {}{which} {}", self.not(), self.port_list());
        }
        options.push(all);
        name.to_owned()
    }

    /// Matches that depend on what was assumed, and others.
    fn matches(&mut self, options: &mut Vec<String>, proto: &str) {
        if self.chance(15) {
            let name = self.pick(&["a1", "a+", "b1", "lo", "a1+", "eth0"]);
            options.push(format!("{}-i {name}", self.not()));
        }
        if self.chance(10) {
            let name = self.pick(&["b1", "b+", "a1", "docker0"]);
            options.push(format!("{}-o {name}", self.not()));
        }
        // Of other protocols and messages a first packet may be invalid.
        if matches!(proto, "tcp" | "udp") && self.chance(20) {
            let states = self.pick(&[
                "NEW",
                "RELATED,ESTABLISHED",
                "NEW,ESTABLISHED",
                "INVALID",
                "DNAT",
                "NEW,SNAT",
                "UNTRACKED",
            ]);
            let option = match self.chance(50) && !states.contains("NAT") {
                true => format!("-m state {}--state {states}", self.not()),
                false => format!("-m conntrack {}--ctstate {states}", self.not()),
            };
            options.push(option);
        }
        if self.chance(8) {
            options.push(format!(
                "-m mark {}--mark {}",
                self.not(),
                self.pick(&["0", "0x1/0x1", "0/0xff", "7"])
            ));
        }
        if self.chance(8) {
            let (a, b) = (self.address(), self.address());
            let (from, to) = match (a.parse::<std::net::IpAddr>(), b.parse::<std::net::IpAddr>()) {
                (Ok(x), Ok(y)) if x > y => (b, a),
                _ => (a, b),
            };
            let side = self.pick(&["--src-range", "--dst-range"]);
            options.push(format!("-m iprange {}{side} {from}-{to}", self.not()));
        }
        if !self.is_v6 && self.chance(10) {
            let kind = self.pick(&["UNICAST", "LOCAL", "MULTICAST", "BROADCAST", "LOCAL,UNICAST"]);
            options.push(format!("-m addrtype {}--dst-type {kind}", self.not()));
        }
        if !self.is_v6 && self.chance(20) {
            let set = self.pick(&[
                "nets src",
                "nets dst",
                "web dst,dst",
                "web src,dst",
                "ports dst",
                "hosts src",
                "pairs src,dst",
            ]);
            options.push(format!("-m set {}--match-set {set}", self.not()));
        }
        if self.chance(10) {
            options.push("-m comment --comment \"-j \\\"DROP\\\" ! -s 1.1.1.1\"".to_owned());
        }
    }

    fn sets(&mut self) -> String {
        let mut sets = "create nets hash:net family inet\ncreate web hash:ip,port family inet\ncreate ports bitmap:port range 0-65535\ncreate hosts hash:ip family inet\ncreate pairs hash:net,port family inet\n".to_owned();
        let nets: std::collections::BTreeSet<String> = (0..6)
            .map(|_| format!("{}/{}", self.address(), self.pick(&["8", "16", "24", "28", "30", "32"])))
            .map(network)
            .collect();
        for net in nets {
            let _ = writeln!(sets, "add nets {net}{}", if self.chance(30) { " nomatch" } else { "" });
        }
        for _ in 0..6 {
            let proto = self.pick(&["tcp", "udp", "sctp", "udplite"]);
            let _ = writeln!(sets, "add web {},{proto}:{}", self.address(), self.port());
        }
        for _ in 0..4 {
            let _ = writeln!(sets, "add ports {}", self.port());
            let _ = writeln!(sets, "add hosts {}", self.address());
            let _ = writeln!(sets, "add pairs {}/29,tcp:{}", self.address(), self.port());
        }
        sets
    }
}

/// A prefix with its address at the start.
fn network(prefix: String) -> String {
    let (address, len) = prefix.split_once('/').expect("a prefix");
    let (address, len): (Ipv4Addr, u32) =
        (address.parse().expect("an address"), len.parse().expect("a length"));
    format!("{}/{len}", Ipv4Addr::from_bits(address.to_bits() & u32::MAX << (32 - len)))
}
