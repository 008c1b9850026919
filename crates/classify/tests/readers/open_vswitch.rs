//! Answers of Open vSwitch: flows at random are put into a bridge of its userspace datapath, and frames
//! traced through it. What was put in is read twice, as it was written and as `ovs-ofctl dump-flows` says it.
//!
//! It takes ovsdb-server, ovs-vswitchd and their tools, and says `skipped:` without them.
//! `WIRESPEED_OVS_CASES` is how many tables there are.

#![cfg(unix)]
#![allow(clippy::cast_possible_truncation)] // small numbers, made here

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use wirespeed_classify::oracle::{Oracle, Right};
use wirespeed_classify::read::{ReadOptions, RuleFormat, read_rules_from};
use wirespeed_classify::{OpenFlowTuple, Tuple};
use wirespeed_rng::Rng;

const FRAMES: usize = 300;

#[test]
fn answers_are_those_of_open_vswitch() {
    let folder = tempfile::tempdir().expect("a folder");
    let switch = match Switch::start(folder.path()) {
        Ok(switch) => switch,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let cases = std::env::var("WIRESPEED_OVS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let (mut compared, mut doubted) = (0, 0);
    for seed in 0..cases {
        let mut rng = Rng::new(0x6f76_7300 + seed);
        let text = table(&mut rng);
        let dump = switch.load(folder.path(), &text);
        let frames: Vec<(u16, Vec<u8>)> = (0..FRAMES).map(|_| frame(&mut rng)).collect();
        let answers: Vec<String> = frames.iter().map(|(port, frame)| switch.trace(*port, frame)).collect();
        for text in [&text, &dump] {
            let options = ReadOptions { format: Some(RuleFormat::Ovs), ..ReadOptions::default() };
            let (file, report) =
                read_rules_from::<OpenFlowTuple>(text.as_bytes(), "flows", &options).expect("flows");
            let oracle = Oracle::of(&file.rules);
            for ((port, frame), answer) in frames.iter().zip(&answers) {
                let tuple = OpenFlowTuple::of_frame(*port, frame).expect("a frame");
                let rule = oracle.right(&tuple);
                let own = file.action(rule).unwrap_or("none");
                let may_be_other = file.doubts(&tuple, rule).any(|doubt| {
                    doubt.action().is_none_or(|action| file.actions[action as usize] == *answer)
                });
                let is_doubted = file.doubts(&tuple, rule).next().is_some();
                *(if is_doubted { &mut doubted } else { &mut compared }) += 1;
                assert!(
                    own == answer || may_be_other,
                    "{tuple}: {own}, and Open vSwitch says {answer}\n{text}\n{report}"
                );
            }
        }
    }
    eprintln!("{compared} answers compared, {doubted} more in doubt");
    assert!(compared > FRAMES * cases as usize, "{compared} compared, {doubted} in doubt");
}

/// A running switch.
struct Switch {
    control: String,
    processes: Vec<String>,
    folder: std::path::PathBuf,
}

impl Switch {
    fn start(folder: &Path) -> Result<Self, String> {
        let schema = Path::new("/usr/share/openvswitch/vswitch.ovsschema");
        if !schema.exists() {
            return Err("Open vSwitch isn't installed".to_owned());
        }
        let path = |name: &str| folder.join(name).display().to_string();
        let mut switch =
            Self { control: path("vswitchd.ctl"), processes: Vec::new(), folder: folder.to_owned() };
        let db = format!("unix:{}", path("db.sock"));
        let (db_pid, pid) = (path("db.pid"), path("vswitchd.pid"));
        let (conf, sock, db_control) = (path("conf.db"), path("db.sock"), path("db.ctl"));
        switch.words(&format!("ovsdb-tool create {conf} {}", schema.display()))?;
        let daemon = "--detach --no-chdir --log-file=/dev/null";
        switch.words(&format!(
            "ovsdb-server {conf} --remote=punix:{sock} --pidfile={db_pid} --unixctl={db_control} {daemon}"
        ))?;
        switch.processes.push(db_pid);
        let control = &switch.control;
        switch.words(&format!("ovs-vswitchd {db} --enable-dummy=override --disable-system --pidfile={pid} --unixctl={control} {daemon}"))?;
        switch.processes.push(pid);
        switch.words(&format!("ovs-vsctl --db={db} --no-wait init"))?;
        let ports = "-- add-port br0 p1 -- set interface p1 type=dummy ofport_request=1 \
            -- add-port br0 p2 -- set interface p2 type=dummy ofport_request=2";
        let bridge = "add-br br0 -- set bridge br0 datapath_type=dummy fail-mode=secure";
        switch.words(&format!("ovs-vsctl --db={db} {bridge} {ports}"))?;
        Ok(switch)
    }

    /// Runs a command of words without blanks in them.
    fn words(&self, command: &str) -> Result<String, String> {
        self.run(&command.split_whitespace().collect::<Vec<_>>())
    }

    fn run(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new(words[0]);
        for key in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(key, &self.folder);
        }
        let output = command.args(&words[1..]).output().map_err(|error| format!("{}: {error}", words[0]))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("{}: {}", words[0], String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Puts flows into the bridge; what it says of them.
    fn load(&self, folder: &Path, text: &str) -> String {
        let path = folder.join("flows").display().to_string();
        std::fs::write(&path, text).expect("written");
        self.run(&["ovs-ofctl", "del-flows", "br0"]).expect("no flows");
        self.run(&["ovs-ofctl", "add-flows", "br0", &path]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        self.run(&["ovs-ofctl", "dump-flows", "br0"]).expect("the flows")
    }

    /// The actions of the flow that a frame meets.
    fn trace(&self, port: u16, frame: &[u8]) -> String {
        let hex = frame.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}"); // a String takes all
            hex
        });
        let call =
            format!(r#"{{"id":0,"method":"ofproto/trace","params":["br0","in_port={port}","{hex}"]}}"#);
        let mut stream = UnixStream::connect(&self.control).expect("the switch");
        stream.write_all(call.as_bytes()).expect("asked");
        let (mut reply, mut bytes) = (Vec::new(), [0; 4096]);
        let reply: serde_json::Value = loop {
            let count = stream.read(&mut bytes).expect("a reply");
            assert!(count > 0, "the switch went away");
            reply.extend_from_slice(&bytes[..count]);
            if let Ok(whole) = serde_json::from_slice(&reply) {
                break whole;
            }
        };
        let text = reply["result"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned();
        let mut lines = text.lines();
        let flow = lines.find(|line| line.starts_with(" 0. ")).unwrap_or_else(|| panic!("{text}"));
        if flow.contains("No match") {
            return "none".to_owned();
        }
        // What is written to a register tells the flows apart; a conjunction is told before it.
        let action = text.lines().map(str::trim).find(|line| line.starts_with("load:"));
        action.unwrap_or_else(|| panic!("{text}")).to_owned()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for pid in &self.processes {
            if let Ok(pid) = std::fs::read_to_string(pid) {
                let _ = Command::new("kill").arg(pid.trim()).status();
            }
        }
    }
}

/// Flows at random, no two of a priority but those of a conjunction.
fn table(rng: &mut Rng) -> String {
    let mut text = String::new();
    let flows = 8 + rng.index(16);
    let mut priorities: Vec<u32> = (1..200).collect();
    rng.shuffle(&mut priorities);
    let mut number = 0;
    let mut action = || {
        number += 1;
        format!("load:{number:#x}->NXM_NX_REG0[]")
    };
    for &priority in &priorities[..flows] {
        if rng.chance(0.15) {
            let id = 100 + priority;
            for dimension in 1..=2 {
                for _ in 0..1 + rng.index(3) {
                    let _ = writeln!(
                        text,
                        "priority={priority},{}actions=conjunction({id},{dimension}/2)",
                        matches(rng, false)
                    );
                }
            }
            let also = rng.one_of(&["", "", "", "ip,", "tcp,"]);
            let _ = writeln!(text, "priority={priority},conj_id={id},{also}actions={}", action());
        } else {
            let odd = rng.chance(0.15);
            let _ = writeln!(text, "priority={priority},{}actions={}", matches(rng, odd), action());
        }
    }
    text
}

/// A choice.
trait OneOf {
    fn one_of<'t>(&mut self, of: &[&'t str]) -> &'t str;
}

impl OneOf for Rng {
    fn one_of<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.index(of.len())]
    }
}

/// What a flow wants, by words that end in commas; odd ones look at what no tuple has, or say less than they
/// seem to.
fn matches(rng: &mut Rng, odd: bool) -> String {
    let mut words: BTreeMap<&str, String> = BTreeMap::new();
    if rng.chance(0.2) {
        words.insert("in_port", format!("in_port={}", 1 + rng.index(2)));
    }
    if rng.chance(0.2) {
        let mac = rng.one_of(&[
            "02:00:00:00:00:01",
            "02:00:00:00:00:02",
            "01:00:00:00:00:00/01:00:00:00:00:00",
            "02:00:00:00:00:00/ff:ff:ff:ff:ff:fe",
        ]);
        let name = rng.one_of(&["dl_src", "eth_dst"]);
        words.insert(name, format!("{name}={mac}"));
    }
    if rng.chance(0.35) {
        let vlan = rng.one_of(&[
            "dl_vlan=5",
            "dl_vlan=0",
            "dl_vlan=0xffff",
            "dl_vlan_pcp=0",
            "dl_vlan_pcp=3",
            "dl_vlan=5,dl_vlan_pcp=0",
            "vlan_tci=0",
            "vlan_tci=0/0xfff",
            "vlan_tci=0x1000/0x1000",
            "vlan_tci=0x1001/0x1001",
            "vlan_tci=0/0x1000",
            "vlan_tci=0/0xefff",
            "vlan_vid=0x1005",
            "vlan_vid=0x1000/0x1000",
            "vlan_vid=0x1005,vlan_pcp=3",
        ]);
        words.insert("vlan", vlan.to_owned());
    }
    let address = |rng: &mut Rng| {
        rng.one_of(&["10.0.0.1", "10.0.0.0/30", "10.0.0.0/255.0.0.3", "10.0.0.4/30", "*"]).to_owned()
    };
    let port = |rng: &mut Rng| rng.one_of(&["80", "0x50/0xfff0", "443", "1/1"]).to_owned();
    let kind = rng.one_of(&[
        "",
        "ip",
        "tcp",
        "udp",
        "icmp",
        "sctp",
        "arp",
        "ipv6",
        "tcp6",
        "icmp6",
        "ip,nw_proto=47",
        "dl_type=0x88cc",
        "dl_type=0x0800,ip_proto=6",
        "rarp",
    ]);
    if !kind.is_empty() {
        words.insert("kind", kind.to_owned());
    }
    if matches!(kind, "ip" | "tcp" | "udp" | "icmp" | "sctp" | "arp") && rng.chance(0.6) {
        let [src, dst] = if kind == "arp" { ["arp_spa", "arp_tpa"] } else { ["nw_src", "ip_dst"] };
        let name = rng.one_of(&[src, dst]);
        words.insert(name, format!("{name}={}", address(rng)));
    }
    if matches!(kind, "ip" | "tcp") && rng.chance(0.2) {
        words.insert("tos", rng.one_of(&["nw_tos=32", "ip_dscp=8"]).to_owned());
    }
    match kind {
        "tcp" | "udp" | "sctp" | "tcp6" if rng.chance(0.6) => {
            let name = rng.one_of(&["tp_src", "tp_dst"]);
            words.insert(name, format!("{name}={}", port(rng)));
        }
        "icmp" | "icmp6" if rng.chance(0.6) => {
            let kind = rng.one_of(&["icmp_type=8", "icmp_type=3,icmp_code=1", "icmp_code=0"]);
            words.insert("type", kind.to_owned());
        }
        "arp" if rng.chance(0.5) => {
            words.insert("op", "arp_op=1".to_owned());
        }
        _ => {}
    }
    if odd {
        let odd =
            rng.one_of(&["tp_dst=80", "nw_src=10.0.0.1", "reg1=0", "metadata=0", "reg2=5", "ct_state=-trk"]);
        // A field that is there already would be two demands of it.
        if !words.values().any(|word| word.split('=').next() == odd.split('=').next()) {
            words.insert("odd", odd.to_owned());
        }
    }
    let mut words: Vec<String> = words.into_values().collect();
    rng.shuffle(&mut words);
    words.into_iter().fold(String::new(), |all, word| all + &word + ",")
}

/// A port and a frame.
fn frame(rng: &mut Rng) -> (u16, Vec<u8>) {
    let mac = |rng: &mut Rng| [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [3, 0, 0, 0, 0, 1]][rng.index(3)];
    let mut frame = [mac(rng), mac(rng)].concat();
    if rng.chance(0.5) {
        let tci = [0u16, 5, 0x6000, 0x6005, 6, 1][rng.index(6)];
        frame.extend([0x81, 0]);
        frame.extend(tci.to_be_bytes());
    }
    let address = |rng: &mut Rng| [10u8, 0, 0, rng.index(8) as u8];
    let ports = |rng: &mut Rng| [[80u16, 81, 443, 22][rng.index(4)], [80u16, 85, 443, 53][rng.index(4)]];
    let (src, dst) = (address(rng), address(rng));
    let proto = [6u8, 6, 17, 1, 132, 47][rng.index(6)];
    let [a, b] = ports(rng);
    let transport = |proto: u8, rng: &mut Rng| {
        let mut bytes = match proto {
            1 | 58 => [[8, 0, 0, 0], [3, 1, 0, 0], [128, 0, 0, 0]][rng.index(3)].to_vec(),
            47 => vec![0; 4],
            _ => [a.to_be_bytes(), b.to_be_bytes()].concat(),
        };
        match proto {
            6 => bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]),
            17 => bytes.extend([0, 16, 0, 0]),
            _ => bytes.extend([0; 8]),
        }
        bytes.extend([0; 8]);
        bytes
    };
    match rng.index(10) {
        0..=5 => {
            let transport = transport(proto, rng);
            frame.extend([8, 0, 0x45, [0, 32, 35][rng.index(3)]]);
            frame.extend((20 + transport.len() as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
            frame.extend(src);
            frame.extend(dst);
            frame.extend(transport);
        }
        6 | 7 => {
            frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + rng.index(2) as u8, 2, 0, 0, 0, 0, 1]);
            frame.extend(src);
            frame.extend([0; 6]);
            frame.extend(dst);
        }
        8 => {
            let proto = [6u8, 17, 58][rng.index(3)];
            let transport = transport(proto, rng);
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((transport.len() as u16).to_be_bytes());
            frame.extend([proto, 64]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
            frame.extend(transport);
        }
        _ => frame.extend([0x88, 0xcc, 1, 2, 3, 4]),
    }
    frame.resize(frame.len().max(64), 0);
    (1 + rng.index(2) as u16, frame)
}
