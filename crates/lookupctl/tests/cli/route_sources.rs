//! `route IF…` and `replay --follow` by routes of files, FRR, BMP, VRFs and the kernel, in namespaces. FRR
//! and the router of BMP are senders of our own.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use wirespeed_netns::Namespaces;

use crate::bmp::{LOC_RIB, Peer, initiation};
use crate::common::Folder;
use crate::route::{Router, World, printed};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lookupctl");

/// A frame of FPM with routes of the main table, each a prefix, its length and its gateway.
fn fpm(routes: &[([u8; 4], u8, [u8; 4])]) -> Vec<u8> {
    let attribute =
        |number: u16, value: [u8; 4]| [&8_u16.to_ne_bytes()[..], &number.to_ne_bytes(), &value].concat();
    let mut messages = Vec::new();
    for &(prefix, length, gateway) in routes {
        let fixed = [2, length, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
        let body = [&fixed[..], &attribute(1, prefix), &attribute(5, gateway)].concat();
        messages.extend(u32::try_from(16 + body.len()).unwrap().to_ne_bytes());
        messages.extend(24_u16.to_ne_bytes());
        messages.extend([0; 10]);
        messages.extend(body);
    }
    let length = u16::try_from(4 + messages.len()).unwrap().to_be_bytes();
    [&[1, 1][..], &length, &messages].concat()
}

/// Messages of BMP of a router that shows its own choice: prefixes, with their BGP next hops.
fn bmp(routes: &[(&str, &str)]) -> Vec<u8> {
    let update = |&(prefix, next_hop): &(&str, &str)| LOC_RIB.announce(&[prefix], next_hop, &[64_497]);
    let updates: Vec<u8> = routes.iter().flat_map(update).collect();
    [initiation("edge"), LOC_RIB.up(false), updates].concat()
}

impl World {
    /// Starts the program in the router's namespace, and waits until it says a text. `None`, and says so,
    /// where it may not forward.
    fn start(&self, folder: &Folder, arguments: &str, until: &str) -> Option<Router> {
        let log = folder.path("log");
        let mut command = self.command("r", PROGRAM);
        command.args(arguments.split(' ')).current_dir(folder.path("")).stderr(File::create(&log).unwrap());
        let out = File::create(folder.path("out")).unwrap();
        let mut router = Router(command.stdout(out).spawn().unwrap());
        if printed(&mut router.0, &log, until) {
            return Some(router);
        }
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains("CAP_") || said.contains("ermitted"), "{arguments}: {said}");
        println!("skipped: {said}");
        None
    }

    /// A process in the router's namespace that connects to a port, sends bytes, and stays.
    fn sender(&self, port: &str, bytes: &[u8]) -> Router {
        let script = "\
import socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
for line in sys.stdin: s.sendall(bytes.fromhex(line))
";
        let mut command = self.command("r", "python3");
        let mut sender = Router(command.args(["-uc", script, port]).stdin(Stdio::piped()).spawn().unwrap());
        send(&mut sender, bytes);
        sender
    }

    /// Whether pings from a host are answered, at the latest after some time.
    fn pings(&self, side: &str, to: &str) -> bool {
        becomes(|| self.pings_once(side, to))
    }

    /// Whether one ping from a host is answered.
    fn pings_once(&self, side: &str, to: &str) -> bool {
        Namespaces::pings(self, side, to).unwrap()
    }
}

/// Sends more bytes by a process that [`World::sender`] started.
fn send(sender: &mut Router, bytes: &[u8]) {
    let line: String = bytes.iter().map(|byte| format!("{byte:02x}")).chain(["\n".to_owned()]).collect();
    sender.0.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
}

/// Whether something becomes true, at the latest after some time.
fn becomes(is_so: impl Fn() -> bool) -> bool {
    (0..100).any(|_| {
        let now = is_so();
        if !now {
            std::thread::sleep(Duration::from_millis(100));
        }
        now
    })
}

/// Ends a program as Ctrl-C does, and reads its report.
fn report(router: &mut Router, out: &Path) -> Value {
    Command::new("kill").args(["-INT", &router.0.id().to_string()]).output().unwrap();
    assert_eq!(router.0.wait().unwrap().code(), Some(130));
    serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap()
}

#[test]
fn frr_gives_the_routes() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    world.ip("b", "addr add 172.16.0.1/32 dev lo");
    world.ip("b", "addr add 172.20.0.1/32 dev lo");
    let arguments = "route ra rb --feed fpm:127.0.0.1:2620 --json";
    let Some(mut router) = world.start(&folder, arguments, "waiting for all routes of fpm:") else { return };
    let frr = world.sender("2620", &fpm(&[([172, 16, 0, 0], 16, [10, 0, 2, 2])]));
    let log = folder.path("log");
    // FPM has no end marker, so this takes some seconds of quiet.
    assert!(
        (0..4).any(|_| printed(&mut router.0, &log, "rb: ")),
        "{}",
        std::fs::read_to_string(&log).unwrap()
    );
    assert!(world.pings("a", "172.16.0.1"));
    assert!(!world.pings_once("a", "172.20.0.1"), "FRR has told no such route");
    assert!(world.pings("a", "10.0.2.2"), "the links' own routes are the kernel's");
    // A rule that comes later can't be refused any more.
    world.ip("r", "rule add from 10.9.0.0/16 lookup 100");
    let warning = "not followed: IPv4 32765: from 10.9.0.0/16 lookup 100";
    assert!(printed(&mut router.0, &log, warning));
    // FRR is lost, and the routes stay. It comes back with one route more.
    drop(frr);
    assert!(world.pings("a", "172.16.0.1"));
    let routes = [([172, 16, 0, 0], 16, [10, 0, 2, 2]), ([172, 20, 0, 0], 16, [10, 0, 2, 2])];
    let frr = world.sender("2620", &fpm(&routes));
    assert!(world.pings("a", "172.20.0.1"));
    drop(frr);
    std::thread::sleep(Duration::from_secs(1));
    let report = report(&mut router, &folder.path("out"));
    let [kernel, frr] = &report["sources"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&kernel["source"], &kernel["stale_s"]), (&"kernel".into(), &Value::Null));
    assert_eq!((&frr["source"], &frr["connections"]), (&"fpm:127.0.0.1:2620".into(), &2.into()));
    assert!(frr["stale_s"].as_f64().unwrap() > 0.0 && frr["prefixes"] == 2, "{report}");
    assert!(report["frames_out"].as_u64().unwrap() >= 6, "{report}");
    assert!(report["dropped"]["no_route"].as_u64().unwrap() >= 1, "{report}");
}

#[test]
fn a_router_gives_its_routes_by_bmp() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    for address in ["172.16.0.1", "172.20.0.1"] {
        world.ip("b", &format!("addr add {address}/32 dev lo"));
    }
    // The way to the second next hop, which is no neighbour.
    world.ip("r", "route add 192.0.2.0/24 via 10.0.2.2");
    let arguments = "route ra rb --feed bmp:127.0.0.1:11019 --driver packet --json";
    let Some(mut router) = world.start(&folder, arguments, "waiting for all routes of bmp:") else { return };
    let routes =
        [("172.16.0.0/16", "10.0.2.2"), ("172.20.0.0/16", "192.0.2.1"), ("172.21.0.0/16", "198.51.100.1")];
    let _sender = world.sender("11019", &bmp(&routes));
    let log = folder.path("log");
    assert!(
        (0..4).any(|_| printed(&mut router.0, &log, "rb: ")),
        "{}",
        std::fs::read_to_string(&log).unwrap()
    );
    assert!(world.pings("a", "172.16.0.1") && world.pings("a", "172.20.0.1"));
    assert!(!world.pings_once("a", "172.21.0.1"), "no route leads to the next hop");
    world.ip("r", "route del 192.0.2.0/24 via 10.0.2.2");
    assert!(becomes(|| !world.pings_once("a", "172.20.0.1")));
    let report = report(&mut router, &folder.path("out"));
    let source = &report["sources"][1];
    assert_eq!(
        (&source["source"], &source["prefixes"]),
        (&"bmp:127.0.0.1:11019".into(), &3.into()),
        "{report}"
    );
    assert!(source["stale_s"].is_null() && source["synced"] == true, "{report}");
    let bmp = &source["bmp"];
    assert_eq!((&bmp["routers"], &bmp["peers_up"], &bmp["peers_down"]), (&1.into(), &1.into(), &0.into()));
    let [own] = &bmp["peers"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&own["router_name"], &own["view"]), (&"edge".into(), &"loc-rib".into()), "{report}");
    assert_eq!((&own["up"], &own["routes"], &own["announced"]), (&true.into(), &3.into(), &3.into()));
    assert!(report["dropped"]["unresolved"].as_u64().unwrap() >= 2, "{report}");
}

#[test]
fn peers_of_bmp_go_up_and_down_and_everyone_is_told() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    let (one, two) = (Peer::new("10.9.0.1", 65_001), Peer::new("10.9.0.2", 65_002).post_policy());
    let up = [
        initiation("edge\n1"),
        one.up(false),
        one.announce(&["172.16.0.0/16", "172.17.0.0/16"], "10.0.2.2", &[65_001]),
        two.up(false),
        two.announce(&["172.20.0.0/16"], "10.0.2.2", &[65_002]),
    ]
    .concat();
    let arguments = "route ra rb --feed bmp:127.0.0.1:11019 --metrics 9464";
    let Some(mut router) = world.start(&folder, arguments, "waiting for all routes of bmp:") else { return };
    let mut sender = world.sender("11019", &up);
    let log = folder.path("log");
    let is_told = |router: &mut Router, text: &str| (0..4).any(|_| printed(&mut router.0, &log, text));
    let said = || std::fs::read_to_string(&log).unwrap();
    let source = "bmp:127.0.0.1:11019: 3 routes, 3 changes, 0 resyncs, 1 router, 2 peers up, 0 down\n";
    assert!(is_told(&mut router, source), "{}", said());
    send(&mut sender, &one.down());
    assert!(
        is_told(&mut router, "1 route, 5 changes, 0 resyncs, 1 router, 1 peer up, 1 down, 1 lost"),
        "{}",
        said()
    );
    let metrics = || {
        let script =
            "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())";
        let page = world.run("r", &["python3", "-c", script]).unwrap();
        ["routers", "peers_up", "peers_down", "peer_ups_total", "peer_downs_total"].map(|name| {
            let begin = format!("wirespeed_source_{name}{{source=\"bmp:127.0.0.1:11019\"}} ");
            let value = page.lines().find_map(|line| line.strip_prefix(&begin));
            value.unwrap_or_else(|| panic!("{name}: {page}")).parse::<f64>().unwrap()
        })
    };
    assert_eq!(metrics(), [1.0, 1.0, 1.0, 2.0, 1.0]);
    // The router is lost: its routes stay, and age.
    drop(sender);
    let ages = |seconds: u32| {
        said().contains(&format!(
            "0 routers, 0 peers up, 2 down, 2 lost since the start, stale for {seconds} s"
        ))
    };
    // A report that comes late leaves a second out.
    assert!(becomes(|| (1..60).any(ages)), "{}", said());
    assert_eq!(metrics(), [0.0, 0.0, 2.0, 2.0, 2.0]);
    let _sender = world.sender("11019", &up);
    assert!(
        is_told(&mut router, "1 resync, 1 router, 2 peers up, 0 down, 2 lost since the start\n"),
        "{}",
        said()
    );
    Command::new("kill").args(["-INT", &router.0.id().to_string()]).output().unwrap();
    assert_eq!(router.0.wait().unwrap().code(), Some(130));
    let summary = std::fs::read_to_string(folder.path("out")).unwrap();
    for (peer, told) in [
        ("10.9.0.1 AS65001 pre-policy", "2 routes, 2 announced, 0 withdrawn"),
        ("10.9.0.2 AS65002 post-policy", "1 route, 2 announced, 0 withdrawn"),
    ] {
        let begin = format!("peer      {peer} of 127.0.0.1 \"edge\\n1\": up for ");
        let line = summary.lines().find(|line| line.starts_with(&begin));
        assert!(line.is_some_and(|line| line.ends_with(told)), "{summary}");
    }
}

#[test]
fn a_replay_follows_a_router_of_bmp() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    let arguments =
        "replay --follow bmp:127.0.0.1:11019 --count 1000 --threads 1 --device cpu --seconds 60 --json";
    let Some(mut replay) = world.start(&folder, arguments, "waiting for all routes of bmp:") else { return };
    let _sender = world.sender("11019", &bmp(&[("172.16.0.0/16", "10.0.2.2")]));
    assert!((0..4).any(|_| printed(&mut replay.0, &folder.path("log"), "trace: ")));
    let report = report(&mut replay, &folder.path("out"));
    let bmp = &report["followed"]["bmp"];
    assert_eq!((&bmp["routers"], &bmp["ups"], &bmp["downs"]), (&1.into(), &1.into(), &0.into()), "{report}");
    assert_eq!(bmp["peers"][0]["routes"], 1, "{report}");
}

#[test]
fn a_file_gives_the_routes_behind_an_access_list() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    for address in ["172.16.0.1", "172.16.0.2", "172.20.0.1"] {
        world.ip("b", &format!("addr add {address}/32 dev lo"));
    }
    folder.write("fib", "172.16.0.0/12 10.0.2.2\n172.20.0.0/16 10.0.99.1\n172.21.0.0/16 rb\n");
    folder.write("rules", "dst=172.16.0.2/32 action=2\n");
    let arguments = "route ra rb --fib fib --app acl --rules rules --json";
    let Some(mut router) = world.start(&folder, arguments, "rb: ") else { return };
    assert!(world.pings("a", "172.16.0.1"));
    assert!(!world.pings_once("a", "172.16.0.2"));
    assert!(!world.pings_once("a", "172.20.0.1"), "no route leads to the next hop");
    assert!(world.pings("a", "10.0.2.2"));
    let report = report(&mut router, &folder.path("out"));
    assert_eq!((&report["app"], &report["dropped"]["denied"]), (&"acl".into(), &1.into()), "{report}");
    assert_eq!(report["dropped"]["unresolved"], 1, "{report}");
    assert!(report["frames_out"].as_u64().unwrap() >= 2, "{report}");
    // Files whose next hops say nothing of an address.
    for (text, expected) in
        [("10.0.0.0/8 7\n", "\"7\" is no address"), ("10.0.0.0/8 no_such0\n", "\"no_such0\"")]
    {
        folder.write("fib", text);
        refused(&world, &folder, "route ra rb --fib fib", expected);
    }
    world.ip("r", "rule add fwmark 7 lookup 100");
    refused(&world, &folder, "route ra rb", "IPv4 32765: from all fwmark 0x7 lookup 100");
}

/// A program in the router's namespace that ends with one line and the exit status 2.
fn refused(world: &World, folder: &Folder, arguments: &str, expected: &str) {
    let mut command = world.command("r", PROGRAM);
    command.args(arguments.split(' ')).current_dir(folder.path(""));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("lookupctl: ") && last.contains(expected), "{arguments}: {said}");
}

#[test]
fn vrfs_have_the_same_prefixes_and_do_not_mix() {
    let Some(world) = World::of(&["a", "b", "c", "d", "r"]) else { return };
    let folder = Folder::new();
    if let Err(error) = world.try_ip("r", "link add red type vrf table 10") {
        println!("skipped: no VRFs: {error}");
        return;
    }
    world.ip("r", "link add blue type vrf table 20");
    world.forward("r", true).unwrap();
    for (side, vrf, net) in [("a", "red", 1), ("b", "red", 2), ("c", "blue", 1), ("d", "blue", 2)] {
        world.ip("r", &format!("link add r{side} type veth peer name h{side} netns {}", world.name(side)));
        world.ip("r", &format!("link set {vrf} up"));
        world.ip("r", &format!("link set r{side} master {vrf}"));
        world.ip("r", &format!("addr add 10.0.{net}.1/24 dev r{side}"));
        world.ip("r", &format!("link set r{side} up"));
        world.ip(side, &format!("addr add 10.0.{net}.2/24 dev h{side}"));
        world.ip(side, &format!("link set h{side} up"));
        world.ip(side, &format!("route add default via 10.0.{net}.1"));
    }
    // Each VRF has a host that the other one has not, and one that both have.
    for (side, address) in
        [("b", "172.16.0.1"), ("d", "172.16.0.1"), ("b", "172.16.0.2"), ("d", "172.16.0.4")]
    {
        world.ip(side, &format!("addr add {address}/32 dev lo"));
    }
    world.ip("r", "route add 172.16.0.0/24 via 10.0.2.2 table 10");
    world.ip("r", "route add 172.16.0.0/24 via 10.0.2.2 table 20");
    let Some(mut router) = world.start(&folder, "route ra rb rc rd --json", "rd: ") else { return };
    for (side, both, own, other) in
        [("a", "172.16.0.1", "172.16.0.2", "172.16.0.4"), ("c", "172.16.0.1", "172.16.0.4", "172.16.0.2")]
    {
        assert!(world.pings(side, both) && world.pings(side, own), "{side}");
        assert!(!world.pings_once(side, other), "{side}");
    }
    world.ip("r", "route del 172.16.0.0/24 via 10.0.2.2 table 10");
    assert!(becomes(|| !world.pings_once("a", "172.16.0.1")));
    assert!(world.pings("c", "172.16.0.1"));
    // An interface joins the other VRF, whose routes it then has.
    world.ip("r", "link set ra master blue");
    world.ip("r", "route add 10.0.77.0/24 dev ra table 20");
    world.ip("a", "addr add 10.0.77.2/24 dev ha");
    // Not from the host whose address is that of another one there.
    assert!(world.pings("d", "10.0.77.2"));
    let report = report(&mut router, &folder.path("out"));
    assert!(report["frames_out"].as_u64().unwrap() >= 8, "{report}");
}

#[test]
fn a_replay_follows_the_kernel() {
    let Some(world) = World::new() else { return };
    let folder = Folder::new();
    let arguments = "replay --follow kernel --count 1000 --threads 1 --device cpu --seconds 60 --json";
    let Some(mut replay) = world.start(&folder, arguments, "trace: ") else { return };
    let batch: String = (0..50).map(|n| format!("route add 172.16.{n}.0/24 via 10.0.2.2\n")).collect();
    folder.write("batch", batch);
    world.ip("r", &format!("-batch {}", folder.path("batch").display()));
    std::thread::sleep(Duration::from_secs(2));
    let report = report(&mut replay, &folder.path("out"));
    // Others may come too, such as those of link-local addresses.
    assert!(report["updates"]["applied"].as_u64().unwrap() >= 50, "{report}");
    let source = &report["followed"];
    assert_eq!((&source["source"], &source["synced"]), (&"kernel".into(), &true.into()), "{report}");
    assert!(source["stale_s"].is_null() && source["changes"].as_u64().unwrap() > 50, "{report}");
    assert!(report["lookups"].as_u64().unwrap() > 0, "{report}");
}

#[test]
fn sources_that_do_not_go_together_are_refused() {
    let folder = Folder::new();
    folder.write("rules", "dst=10.0.0.0/8 action=2\n");
    for (arguments, expected) in [
        ("route lo --feed fpm:here", "--feed"),
        ("route lo --feed kernel", "--feed"),
        ("route --feed fpm:127.0.0.1:2620", "IF"),
        ("route lo --feed fpm:127.0.0.1:2620 --fib v4", "--fib"),
        ("route lo --app acl", "--rules"),
        ("route lo --rules rules", "--app acl"),
        ("route lo --app names --table names --feed fpm:127.0.0.1:2620", "--feed and --kernel-table"),
        ("route lo --kernel-table no", "--kernel-table"),
        ("route lo --kernel-table 0", "--kernel-table"),
        ("route lo --kernel-table 100 --fib v4", "--kernel-table"),
        ("route lo --kernel-table 100 --feed bmp:127.0.0.1:11019", "--kernel-table"),
        ("route lo --table names", "--table is for --app names"),
        ("route --kernel-table 100", "IF"),
        ("route lo --kernel-table 100", "lo: no Ethernet interface"),
        ("replay --follow nobody", "--follow"),
        ("replay --follow fpm:127.0.0.1", "--follow"),
        ("replay --follow kernel --fib v4", "--follow"),
        ("replay --follow kernel --updates synth:1", "--follow"),
    ] {
        folder.run(arguments).refused(&[expected]);
    }
}
