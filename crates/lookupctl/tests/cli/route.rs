//! `route`: captures in and out, frames in memory, and forwarding between interfaces of namespaces.

#![allow(clippy::cast_possible_truncation)] // tests make bytes of numbers

use std::io::Write;
use std::ops::Deref;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use wirespeed_netns::{Link, Namespaces};

use crate::common::Folder;

/// A pcap of frames.
pub(crate) fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        let len = (frame.len() as u32).to_le_bytes();
        file.extend([&[0; 8][..], &len, &len, frame].concat());
    }
    file
}

/// A frame with an IPv4 packet to an address, and this time to live.
pub(crate) fn frame(to: [u8; 4], hops: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, hops, 17, 0, 0, 192, 0, 2, 9];
    packet.extend(to);
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0, 9, 0, 53, 0, 8, 0, 0]);
    [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 0][..], &packet].concat()
}

/// The report of a run that is well.
fn json(folder: &Folder, arguments: &str) -> Value {
    serde_json::from_str(&folder.run(arguments).ok().stdout).unwrap()
}

/// The sum that every run keeps.
fn is_whole(report: &Value) -> bool {
    let of = |key: &str| report[key].as_u64().unwrap();
    let dropped: u64 =
        report["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let kept = of("to_kernel") + of("to_controller") + of("queued");
    of("frames_in") == of("frames_out") + dropped + kept
}

#[test]
fn a_capture_is_forwarded() {
    let folder = Folder::new();
    let frames = [
        frame([10, 1, 2, 9], 64),
        frame([10, 9, 9, 9], 64),
        frame([10, 9, 9, 9], 1),
        frame([77, 0, 0, 1], 64),
        vec![1, 2, 3],
        frame([224, 0, 0, 1], 64),
    ];
    folder.write("in.pcap", pcap(&frames));
    for out in ["out.pcap", "out.pcap.gz", "out.pcapng.zst"] {
        let report =
            json(&folder, &format!("route --fib v4 --in in.pcap --out {out} --drops drops.pcapng --json"));
        assert!(is_whole(&report), "{report}");
        assert_eq!(report["frames_in"], 6);
        assert_eq!(report["frames_out"], 2);
        assert_eq!(report["to_kernel"], 1);
        assert_eq!(report["dropped"]["expired"], 1);
        assert_eq!(report["dropped"]["no_route"], 1);
        assert_eq!(report["dropped"]["cut"], 1);
        assert_eq!(report["made"], 2, "ICMP errors");
        // What was written is read again: the forwarded frames and the errors, each to somewhere.
        let again = json(&folder, &format!("route --fib v4 --in {out} --json"));
        assert_eq!(again["frames_in"], 4, "{out}: {again}");
    }
    let drops = json(&folder, "route --fib v4 --in drops.pcapng --json");
    assert_eq!(drops["frames_in"], 3);
}

#[test]
fn packets_that_can_not_be_frames_are_told_with_the_reason() {
    let folder = Folder::new();
    let mut large = frame([10, 1, 2, 9], 64);
    large.resize(9000, 0);
    folder.write("large.pcap", pcap(&[large, frame([10, 1, 2, 9], 64)]));
    let mut cooked = pcap(&[frame([10, 1, 2, 9], 64)]);
    cooked[20] = 113;
    folder.write("cooked.pcap", cooked);
    for (file, forwarded) in [("large.pcap", 1), ("cooked.pcap", 0)] {
        let arguments = format!("route --fib v4 --in {file}");
        let told = folder.run(&arguments).ok().stdout;
        let says = "in: 1 refused, as neither Ethernet nor IP or over 1856 bytes";
        assert!(told.contains(says), "{told}");
        let report = json(&folder, &format!("{arguments} --json"));
        let refused = &report["ports"]["in"]["refused"];
        assert_eq!((refused, &report["frames_out"]), (&1.into(), &forwarded.into()), "{report}");
    }
}

#[test]
fn no_capture_takes_the_place_of_a_table() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64)]));
    folder.write("rules", "action=1\n");
    folder.write("flows", "priority=1,ip actions=output:2\n");
    for (arguments, file) in [
        ("route --in in.pcap --fib v4 --out v4", "v4"),
        ("route --in in.pcap --fib v4 --app acl --rules rules --rules6 rules --drops rules", "rules"),
        ("route --in in.pcap --app openflow --flows flows --out sink --out ./flows", "flows"),
        ("route lo --app acl --rules rules --drops rules", "rules"),
    ] {
        let before = std::fs::read(folder.path(file)).unwrap();
        folder.run(arguments).refused(&["the output is the input"]);
        assert_eq!(std::fs::read(folder.path(file)).unwrap(), before, "{arguments}");
    }
}

#[test]
fn an_access_list_denies_and_counts() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64), frame([10, 9, 9, 9], 64)]));
    folder.write("rules", "dst=10.1.0.0/16 action=2\ndst=10.0.0.0/8 action=1\n");
    let report = json(&folder, "route --app acl --rules rules --fib v4 --in in.pcap --json");
    assert_eq!((&report["dropped"]["denied"], &report["frames_out"]), (&1.into(), &1.into()), "{report}");
    assert_eq!((&report["counters"]["denied"], &report["counters"]["permitted"]), (&1.into(), &1.into()));
    let report = json(
        &folder,
        "route --app acl --rules rules --otherwise deny --fib v4 --count 1000 --threads 1 --json",
    );
    assert!(is_whole(&report), "{report}");
    assert!(report["dropped"]["denied"].as_u64().unwrap() > 100, "{report}");
}

#[test]
fn filters_without_actions_count_and_permit() {
    let folder = Folder::new();
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64), frame([10, 9, 9, 9], 64)]));
    folder.write("filters", "@0.0.0.0/0\t10.1.0.0/16\t0 : 65535\t0 : 65535\t0x00/0x00\n");
    for (otherwise, permitted) in [("permit", 2), ("deny", 0)] {
        let report = json(
            &folder,
            &format!("route --app acl --rules filters --otherwise {otherwise} --fib v4 --in in.pcap --json"),
        );
        assert_eq!(report["counters"]["permitted"], permitted, "{report}");
    }
}

#[test]
fn interests_are_forwarded_by_name() {
    let folder = Folder::new();
    let ndn = |packet: &[u8]| [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0x24][..], packet].concat();
    // /com/parc/x with a hop limit of 5, /org, and Data.
    let interest = b"\x05\x14\x07\x0f\x08\x03com\x08\x04parc\x08\x02xy\x22\x01\x05";
    let interest = [&[5, 20][..], &interest[2..]].concat();
    let frames = [ndn(&interest), ndn(b"\x05\x07\x07\x05\x08\x03org"), ndn(b"\x06\x07\x07\x05\x08\x03com")];
    folder.write("in.pcap", pcap(&frames));
    folder.write("names", "/com/parc 1\n/com 2\n");
    let report = json(&folder, "route --app names --table names --in in.pcap --out out.pcap --json");
    assert!(is_whole(&report), "{report}");
    assert_eq!(report["frames_out"], 1);
    assert_eq!(report["dropped"]["no_route"], 1);
    assert_eq!(report["to_kernel"], 1, "Data");
    let out = std::fs::read(folder.path("out.pcap")).unwrap();
    let sent = &out[24 + 16..];
    assert_eq!(sent[..6], [2, 0, 1, 0, 0, 1], "the neighbour of the first next hop");
    assert_eq!(sent.last(), Some(&4), "one hop less");
}

#[test]
fn data_goes_back_to_who_asked() {
    let folder = Folder::new();
    let ndn = |packet: &[u8]| [&[2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 9, 0x86, 0x24][..], packet].concat();
    let frames = [ndn(b"\x05\x07\x07\x05\x08\x03com"), ndn(b"\x06\x07\x07\x05\x08\x03com")];
    folder.write("in.pcap", pcap(&[&frames[..], &frames[1..]].concat()));
    folder.write("names", "/com 2\n");
    let with = |options: &str| format!("route --app names --table names --in in.pcap {options} --json");
    let report = json(&folder, &with("--pending 100"));
    assert!(is_whole(&report), "{report}");
    // The sender of the Data is the one who asked, as both are in one capture: it has it.
    assert_eq!(report["dropped"]["unsolicited"], 2, "{report}");
    let mut other = frames[1].clone();
    other[11] = 7;
    folder.write("in.pcap", pcap(&[frames[0].clone(), other.clone(), other]));
    let report = json(&folder, &with("--pending 100 --out out.pcapng"));
    assert_eq!(
        (&report["frames_out"], &report["dropped"]["unsolicited"]),
        (&2.into(), &1.into()),
        "{report}"
    );
    assert_eq!((&report["counters"]["interests"], &report["counters"]["data"]), (&1.into(), &1.into()));
    let report = json(&folder, &with(""));
    assert_eq!((&report["frames_out"], &report["to_kernel"]), (&1.into(), &2.into()), "{report}");
}

#[test]
fn frames_that_are_made_all_come_out() {
    let folder = Folder::new();
    for sizes in ["gen:64", "gen:imix"] {
        let report = json(
            &folder,
            &format!("route --fib both --in {sizes} --count 20000 --threads 2 --buffers 4k --json"),
        );
        assert!(is_whole(&report), "{report}");
        assert_eq!(report["frames_in"], 20_000);
        assert_eq!(report["frames_out"], 20_000);
        assert!(report["chunks"]["cpu"].as_u64().unwrap() > 0);
    }
    // A capture from memory: each worker gives all of it, in order, round and round.
    folder.write(
        "in.pcap",
        pcap(&[frame([10, 1, 2, 9], 64), frame([10, 1, 2, 9], 1), frame([10, 1, 2, 9], 9)]),
    );
    let report =
        json(&folder, "route --fib v4 --in loop:in.pcap --count 3000 --threads 2 --buffers 4k --json");
    assert!(is_whole(&report), "{report}");
    assert_eq!(
        (&report["frames_in"], &report["frames_out"], &report["dropped"]["expired"]),
        (&3000.into(), &2000.into(), &1000.into()),
        "{report}"
    );
    // What is sent of them goes to files.
    let report =
        json(&folder, "route --fib v4 --in loop:in.pcap --count 300 --out sink --out out.pcap --json");
    assert_eq!((&report["frames_in"], &report["frames_out"]), (&300.into(), &200.into()), "{report}");
    let report = json(&folder, "route --fib v4 --in gen:64 --count 300 --out out.pcap --json");
    assert_eq!((&report["frames_out"], is_whole(&report)), (&300.into(), true), "{report}");
    let report = json(&folder, "route --fib v4 --in out.pcap --json");
    assert_eq!((&report["frames_in"], &report["frames_out"]), (&300.into(), &300.into()), "{report}");
    let text = folder.run("route --fib v4 --count 1000 --threads 1").ok().stdout;
    assert!(text.contains("out       1,000") && text.contains("Mpps"), "{text}");
}

#[test]
fn bad_input_is_an_error_that_says_why() {
    let folder = Folder::new();
    folder.write("noise.pcap", crate::common::noise(300));
    folder.write("in.pcap", pcap(&[frame([10, 1, 2, 9], 64)]));
    folder.write("empty.pcap", pcap(&[]));
    let mut part = pcap(&[frame([10, 1, 2, 9], 64), frame([10, 1, 2, 9], 64)]);
    part.truncate(part.len() - 5);
    folder.write("part.pcap", part);
    folder.write("large.pcap", pcap(&[frame([10, 1, 2, 9], 64), vec![0; 2000]]));
    folder.write("bad_rules", "dst=10.0.0.0/8 action=7\n");
    for (arguments, expected) in [
        ("--in noise.pcap", "noise.pcap"),
        ("--in absent.pcap", "absent.pcap"),
        ("--in gen:20", "gen:20"),
        ("--in gen:64 --out x.pcap", "--count"),
        ("--in gen:64 --out x.pcap --count 9 --threads 2", "--threads"),
        ("--in loop:none.pcap", "none.pcap: No such file"),
        ("--in loop:empty.pcap", "empty.pcap: it has no packet"),
        ("--in loop:part.pcap", "part.pcap: "),
        ("--in loop:large.pcap", "large.pcap: packet 2 has 2000 bytes, and at most 1856 fit a buffer"),
        ("--in loop:in.pcap --out in.pcap", "in.pcap"),
        ("--in in.pcap --out no/such/folder.pcap", "no/such/folder.pcap"),
        ("--in in.pcap --threads 2", "--threads"),
        ("--app acl", "--rules"),
        ("--rules bad_rules", "--app acl"),
        ("--app acl --rules bad_rules", "\"7\""),
        ("--app names", "--table"),
        ("--pending 5", "--app names"),
        ("no_such_interface0 --local sw0", "--app openflow"),
        ("no_such_interface0 --host-device esp0", "--app esp"),
        ("no_such_interface0", "no_such_interface0"),
        ("no_such_interface0 --app esp", "--sad"),
        ("no_such_interface0 --app openflow", "--flows"),
        ("no_such_interface0 --app names", "--table"),
        ("no_such_interface0 --standalone", "--app openflow"),
        ("no_such_interface0 --app openflow --standalone --kernel-table 7", "--kernel-table"),
        ("--buffers 99M", "--buffers"),
    ] {
        let fib = if arguments.contains("no_such") || arguments.contains("names") { "" } else { "--fib v4" };
        folder.run(&format!("route {fib} {arguments}")).refused(&[expected]);
    }
    // A capture that is cut off: what is whole is forwarded, and the rest told.
    let mut cut = pcap(&[frame([10, 1, 2, 9], 64), frame([10, 1, 2, 9], 64)]);
    cut.truncate(cut.len() - 5);
    folder.write("cut.pcap", cut);
    let report = json(&folder, "route --fib v4 --in cut.pcap --json");
    assert_eq!(report["frames_out"], 1);
    assert!(report["damage"][0].as_str().unwrap().contains("cut off"), "{report}");
    // So is one whose compressed data is cut off.
    let mut frames = vec![frame([10, 1, 2, 9], 64); 2_000];
    // Behind the packets lies what doesn't become shorter.
    let mut noise = 1_u32;
    for frame in &mut frames {
        frame.extend((0..400).map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        }));
    }
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&pcap(&frames)).unwrap();
    let packed = packed.finish().unwrap();
    folder.write("cut.pcap.gz", &packed[..packed.len() / 2]);
    let report = json(&folder, "route --fib v4 --in cut.pcap.gz --json");
    assert!((500..1_500).contains(&report["frames_in"].as_u64().unwrap()), "{report}");
    assert!(report["damage"][0].as_str().unwrap().starts_with("in: "), "{report}");
    // A file is named once, and for what was tried with it.
    folder.run("route --fib v4 --in none.pcap").refused(&["lookupctl: none.pcap: No such file"]);
    folder.run("route --fib v4 --in cut.pcap --app acl --rules none").refused(&["lookupctl: none: No such"]);
    if cfg!(target_os = "linux") {
        for out in ["--out /dev/full", "--out sink --out /dev/full --drops /dev/full"] {
            let said = "lookupctl: /dev/full: can't be written: No space left on device";
            folder.run(&format!("route --fib v4 --in cut.pcap.gz {out}")).refused(&[said]);
        }
    }
}

/// Hosts and a router between them, in namespaces of their own. They are gone when this is dropped.
pub(crate) struct World(Namespaces);

impl World {
    /// Namespaces without links. `None`, and says so, where they can't be made.
    pub(crate) fn of(sides: &[&str]) -> Option<Self> {
        Namespaces::or_skip(sides, &["python3"]).map(Self)
    }

    /// Two hosts and a router. `None`, and says so, where they can't be made.
    pub(crate) fn new() -> Option<Self> {
        let world = Self::of(&["a", "r", "b"])?;
        for (side, near, far, net) in [("a", "ra", "ha", 1), ("b", "rb", "hb", 2)] {
            world.link(Link { router: ("r", near), host: (side, far), net, queues: 1 }).unwrap();
        }
        if let Err(error) = world.forward("r", true) {
            println!("skipped: forwarding can't be switched on: {error}");
            return None;
        }
        Some(world)
    }

    /// Sends a datagram from one host to the other, and tells whether it came. Several are sent until one
    /// does: the first may wait for its neighbour. Returns the time to live that it came with, too.
    fn reaches(&self, to: &str) -> Option<u32> {
        let script = "\
import socket, sys, subprocess, time
to = sys.argv[1]
family = socket.AF_INET6 if ':' in to else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
if family == socket.AF_INET:
    s.setsockopt(socket.IPPROTO_IP, 12, 1)
else:
    s.setsockopt(socket.IPPROTO_IPV6, 51, 1)
s.bind((to, 7000))
s.settimeout(5)
print('ready', flush=True)
data, control, _, _ = s.recvmsg(100, 100)
print(int.from_bytes(control[0][2][:4], 'little'), flush=True)
";
        let mut receiver = self
            .command("b", "python3")
            .args(["-c", script, to])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let send = "\
import socket, sys, time
to = sys.argv[1]
family = socket.AF_INET6 if ':' in to else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM)
for _ in range(40):
    s.sendto(b'x' * 20, (to, 7000))
    time.sleep(0.1)
";
        let mut sender = self.command("a", "python3").args(["-c", send, to]).spawn().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(receiver.stdout.as_mut().unwrap(), &mut text).unwrap();
        let _ = (receiver.wait(), sender.kill(), sender.wait());
        text.lines().nth(1).and_then(|line| line.parse().ok())
    }
}

impl Deref for World {
    type Target = Namespaces;

    fn deref(&self) -> &Namespaces {
        &self.0
    }
}

/// A router that is killed at the end of a test, however it ends.
pub(crate) struct Router(pub(crate) Child);

impl Drop for Router {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// Waits until a process printed a line to its file with this text.
pub(crate) fn printed(child: &mut Child, path: &std::path::Path, text: &str) -> bool {
    for _ in 0..100 {
        if std::fs::read_to_string(path).is_ok_and(|all| all.contains(text)) {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

#[test]
fn interfaces_are_forwarded_between_and_a_killed_router_leaves_the_kernel() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    for driver in ["packet", "auto"] {
        let log = folder.path("log");
        let file = std::fs::File::create(&log).unwrap();
        let mut command = world.command("r", env!("CARGO_BIN_EXE_lookupctl"));
        command.args(["route", "ra", "rb", "--driver", driver, "--trace", "1000"]);
        let router = command.stderr(file).stdout(Stdio::null()).spawn().unwrap();
        let mut router = Router(router);
        if !printed(&mut router.0, &log, "rb: ") {
            let said = std::fs::read_to_string(&log).unwrap();
            assert!(said.contains("CAP_") || said.contains("ermitted"), "{said}");
            println!("skipped: {said}");
            return;
        }
        if std::fs::read_to_string(&log).unwrap().contains("forwards neither") {
            println!("skipped: --driver {driver} switches the kernel's forwarding off before Linux 6.6");
            continue;
        }
        let hosts = ["10.0.2.2", "fd02::2"];
        // The first packet resolves the neighbour, by the kernel; the next ones are forwarded here.
        for to in hosts.repeat(2) {
            assert_eq!(
                world.reaches(to),
                Some(63),
                "{driver}: {to}: {}",
                std::fs::read_to_string(&log).unwrap()
            );
        }
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains("out rb (CPU)"), "{driver}: the router forwards, not the kernel: {said}");
        router.0.kill().unwrap();
        router.0.wait().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(world.reaches("10.0.2.2"), Some(63), "the kernel goes on after {driver}");
    }
}
