//! Applications between interfaces that take more than transit: a switch, gateways of tunnels, names.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use wirespeed_netns::Link;
use wirespeed_router::Memory;
use wirespeed_router::io::{Interface, PacketOptions, PacketPort, Port};

use crate::traffic::{Sender, transfer};
use crate::world::{DRIVERS, World, drivers};

/// Hosts of one subnet, each behind an interface of `r`, which is the last side: `a` is at 10.0.5.1 and
/// fd05::1, `b` at 10.0.5.2 and fd05::2, and so on.
pub(crate) fn subnet(sides: &[&str]) -> Option<World> {
    let world = World::bare(sides)?;
    for (last, &side) in (1..sides.len()).zip(sides) {
        let peer = format!("h{side} netns {}", world.name(side));
        world.ip("r", &format!("link add r{side} type veth peer name {peer}"));
        world.ip("r", &format!("link set r{side} up"));
        world.ip(side, &format!("addr add 10.0.5.{last}/24 dev h{side}"));
        world.ip(side, &format!("addr add fd05::{last}/64 dev h{side} nodad"));
        world.ip(side, &format!("link set h{side} up"));
        world.without_offloads(side, &format!("h{side}"));
    }
    Some(world)
}

/// Two hosts of one subnet, behind two interfaces of `r`.
fn one_subnet() -> Option<World> {
    subnet(&["a", "b", "r"])
}

/// The packets of all flows of a switch, as it tells a controller: the numbers of ports that flows are of are
/// their priorities here.
fn packets_of_flows(world: &World) -> Vec<(u16, u64)> {
    let ask = || {
        let mut stream = TcpStream::connect("127.0.0.1:6653").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
        let mut request = vec![4, 18, 0, 56, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0];
        // Of any port and any group; any cookie; a match of nothing.
        request.extend([0xff; 8]);
        request.extend([0; 20]);
        request.extend([0, 1, 0, 4, 0, 0, 0, 0]);
        stream.write_all(&request).unwrap();
        loop {
            let mut header = [0; 8];
            stream.read_exact(&mut header).unwrap();
            let mut body = vec![0; usize::from(u16::from_be_bytes([header[2], header[3]])) - 8];
            stream.read_exact(&mut body).unwrap();
            if header[1] == 19 {
                return body;
            }
            assert!([0, 2].contains(&header[1]), "a message of type {}", header[1]);
        }
    };
    let body = world.inside("r", ask).join().unwrap();
    let mut entries = &body[8..];
    let mut flows = Vec::new();
    while let Some(length) = entries.first_chunk::<2>() {
        let (entry, rest) = entries.split_at(u16::from_be_bytes(*length).into());
        let priority = u16::from_be_bytes(*entry[12..].first_chunk().unwrap());
        flows.push((priority, u64::from_be_bytes(*entry[32..].first_chunk().unwrap())));
        entries = rest;
    }
    flows.sort_unstable();
    flows
}

#[test]
fn hosts_talk_through_a_switch_as_its_flows_say() {
    for driver in drivers() {
        let Some(world) = one_subnet() else { return };
        // It belongs to the switch whose frames they are, so nobody has this address.
        world.ip("r", "addr add 10.0.5.9/24 dev ra");
        let folder = tempfile::tempdir().unwrap();
        let flows = folder.path().join("flows");
        std::fs::write(
            &flows,
            "priority=1,in_port=1 actions=output:2\npriority=2,in_port=2 actions=output:1\n",
        )
        .unwrap();
        let options = format!("{driver} --app openflow --flows {} --listen 127.0.0.1:6653", flows.display());
        let Some(router) = world.router_at("r", &options, &["ra", "rb"]) else { return };
        transfer(&world, "a", ("b", "10.0.5.2"), 150_000);
        transfer(&world, "b", ("a", "fd05::1"), 150_000);
        let flows = packets_of_flows(&world);
        assert!(flows.len() == 2 && flows.iter().all(|&(_, packets)| packets > 100), "{driver}: {flows:?}");
        let sender = Sender::start(&world, "a", "10.0.5.9", 100);
        thread::sleep(Duration::from_millis(300));
        sender.finish();
        let seen = world.ip("a", "neigh show 10.0.5.9 dev ha");
        assert!(!seen.contains("lladdr"), "{driver}: {seen}");
        // A port without a link takes nothing.
        world.ip("b", "link set hb down");
        world.ip("b", "link set hb up");
        transfer(&world, "a", ("b", "10.0.5.2"), 20_000);
        let report = router.stop();
        let received: u64 =
            ["ra", "rb"].iter().map(|port| report["ports"][port]["received"].as_u64().unwrap()).sum();
        assert_eq!(report["frames_in"].as_u64().unwrap(), received, "{driver}: {report}");
        assert!(report["frames_out"].as_u64().unwrap() > 200, "{driver}: {report}");
    }
}

#[test]
fn the_host_of_a_switch_talks_by_its_port_local() {
    for driver in drivers() {
        let Some(world) = one_subnet() else { return };
        let folder = tempfile::tempdir().unwrap();
        let flows = folder.path().join("flows");
        let lines = ["priority=1,in_port=1 actions=LOCAL", "priority=2,in_port=LOCAL actions=output:1"];
        std::fs::write(&flows, lines.join("\n")).unwrap();
        let options = format!("{driver} --app openflow --local sw0 --flows {}", flows.display());
        let Some(router) = world.router_at("r", &options, &["ra", "rb"]) else { return };
        world.ip("r", "addr add 10.0.5.9/24 dev sw0");
        transfer(&world, "a", ("r", "10.0.5.9"), 50_000);
        transfer(&world, "r", ("a", "10.0.5.1"), 50_000);
        let report = router.stop();
        assert!(report["ports"]["sw0"]["received"].as_u64().unwrap() > 20, "{driver}: {report}");
        assert!(report["ports"]["sw0"]["sent"].as_u64().unwrap() > 20, "{driver}: {report}");
        // The device is gone with its switch.
        assert!(!world.ip("r", "-o link show").contains("sw0"));
    }
}

/// Keys of a gateway: `near` and `far` are the ends of its tunnel.
fn keys(file: &Path, near: &str, far: &str, (mine, theirs): (&str, &str), spis: (u16, u16)) {
    let suite = "aead 'rfc4106(gcm(aes))' 0x00112233445566778899aabbccddeeff01020304 128";
    let state = |from: &str, to: &str, spi: u16| {
        format!("ip xfrm state add src {from} dst {to} proto esp spi {spi} reqid 1 mode tunnel {suite}\n")
    };
    let policy = |src: &str, dst: &str, dir: &str, from: &str, to: &str| {
        format!(
            "ip xfrm policy add src {src} dst {dst} dir {dir} tmpl src {from} dst {to} proto esp reqid 1 mode \
             tunnel\n"
        )
    };
    let lines = [
        state(near, far, spis.0),
        state(far, near, spis.1),
        policy(mine, theirs, "out", near, far),
        policy(theirs, mine, "in", far, near),
    ];
    std::fs::write(file, lines.concat()).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn hosts_talk_through_a_tunnel_between_two_gateways() {
    let Some(world) = World::bare(&["a", "b", "r", "s"]) else { return };
    for (router, near, host, far, net) in [("r", "ra", "a", "ha", 1), ("s", "sb", "b", "hb", 2)] {
        world.link(Link { router: (router, near), host: (host, far), net, queues: 2 }).unwrap();
        world.without_offloads(host, far);
        if let Err(error) = world.forward(router, true) {
            println!("skipped: forwarding can't be switched on: {error}");
            return;
        }
    }
    world.ip("r", &format!("link add rs type veth peer name sr netns {}", world.name("s")));
    for (side, interface, last, net) in [("r", "rs", 1, 2), ("s", "sr", 2, 1)] {
        world.ip(side, &format!("addr add 10.0.9.{last}/24 dev {interface}"));
        world.ip(side, &format!("addr add fd09::{last}/64 dev {interface} nodad"));
        world.ip(side, &format!("link set {interface} up"));
        world.ip(side, &format!("route add 10.0.{net}.0/24 via 10.0.9.{}", 3 - last));
        world.ip(side, &format!("route add fd0{net}::/64 via fd09::{}", 3 - last));
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (mine, theirs) = ("10.0.1.0/24", "10.0.2.0/24");
    keys(&file("r"), "10.0.9.1", "10.0.9.2", (mine, theirs), (0x1000, 0x2000));
    keys(&file("s"), "10.0.9.2", "10.0.9.1", (theirs, mine), (0x2000, 0x1000));
    let options = |driver: &str, name: &str| format!("{driver} --app esp --sad {}", file(name).display());
    // One takes frames by AF_XDP, and the other one by AF_PACKET.
    let with_device = format!("{} --host-device esp0", options(DRIVERS[0], "r"));
    let Some(r) = world.router_at("r", &with_device, &["ra", "rs"]) else { return };
    let Some(s) = world.router_at("s", &options(DRIVERS[1], "s"), &["sb", "sr"]) else { return };
    transfer(&world, "a", ("b", "10.0.2.2"), 150_000);
    transfer(&world, "b", ("a", "10.0.1.2"), 150_000);
    // The gateway itself sends into the tunnel, by its device, and nothing in the clear.
    world.ip("r", "route add 10.0.2.2/32 dev esp0 src 10.0.1.1");
    world.ip("r", "route add 10.0.77.0/24 dev esp0 src 10.0.1.1");
    transfer(&world, "r", ("b", "10.0.2.2"), 50_000);
    let sender = Sender::start(&world, "r", "10.0.77.1", 100);
    thread::sleep(Duration::from_millis(300));
    sender.finish();
    // What no policy protects goes in the clear, and what is for a gateway itself is its kernel's.
    transfer(&world, "a", ("b", "fd02::2"), 20_000);
    transfer(&world, "a", ("r", "10.0.1.1"), 20_000);
    transfer(&world, "s", ("r", "10.0.9.1"), 20_000);
    for (name, router) in [("r", r), ("s", s)] {
        let said = router.said();
        let report = router.stop();
        let counter = |counter: &str| report["counters"][counter].as_u64().unwrap();
        assert!(
            counter("esp_sealed") > 100 && counter("esp_opened") > 100,
            "{name}: {report}, and it said {said}"
        );
        let dropped = |reason: &str| report["dropped"][reason].as_u64().unwrap_or(0);
        assert_eq!((dropped("esp_no_sa"), dropped("esp_policy") > 10), (0, name == "r"), "{name}: {report}");
    }
}

/// A frame with an Interest whose name is of these components, and that has a hop limit.
fn interest(to: [u8; 6], components: &[&str]) -> Vec<u8> {
    let component = |text: &&str| [&[8, u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    let name: Vec<u8> = components.iter().flat_map(component).collect();
    let length = u8::try_from(name.len()).unwrap();
    let packet = [&[5, length + 2 + 6 + 3, 7, length][..], &name, &[10, 4, 1, 2, 3, 4, 0x22, 1, 9]].concat();
    [&to[..], &[2, 0, 0, 0, 0, 9], &[0x86, 0x24], &packet].concat()
}

#[test]
fn data_goes_back_to_who_asked_for_it() {
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b"]) else { return };
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("names");
        std::fs::write(&table, "/x rb\n").unwrap();
        let options = format!("{driver} --app names --pending 1k --table {}", table.display());
        let Some(router) = world.router(&options) else { return };
        let [ra, rb] = ["ra", "rb"].map(|interface| mac(&world, "r", interface));
        let mut data = interest(rb, &["x", "1"]);
        data[14] = 6;
        let sink = receive(&world, "a", "ha", 3);
        let asking = send(&world, "a", "ha", vec![interest(ra, &["x", "1"])]);
        send(&world, "b", "hb", vec![data.clone(), data.clone()]).join().unwrap();
        asking.join().unwrap();
        let got = sink.join().unwrap();
        // From where the Interest went, to where it came from.
        data.copy_within(6..12, 0);
        data[6..12].copy_from_slice(&ra);
        let said = router.said();
        assert!(got.len() >= 3 && got.iter().all(|frame| frame.starts_with(&data)), "{driver}: {said}");
        let report = router.stop();
        let answered = report["counters"]["data"].as_u64().unwrap();
        assert!((3..=20).contains(&answered), "{driver}: {report}");
        assert_eq!(report["dropped"]["unsolicited"], 40 - answered, "{driver}: {report}");
    }
}

/// The type of NDN's frames.
const NDN: [u8; 2] = [0x86, 0x24];

/// Sends frames by an interface again and again until the flag of `until` is set.
fn send(world: &World, side: &str, interface: &str, frames: Vec<Vec<u8>>) -> thread::JoinHandle<()> {
    let interface = interface.to_owned();
    world.inside(side, move || {
        let interface = Interface::open(&interface).unwrap();
        let mut port = PacketPort::open(&interface, &PacketOptions::default()).unwrap();
        let mut memory = Memory::new(256).unwrap();
        for _ in 0..20 {
            let mut waiting: Vec<_> = frames.iter().map(|frame| memory.copy_of(frame).unwrap()).collect();
            while !waiting.is_empty() {
                port.send(&mut memory, &mut waiting).unwrap();
            }
            thread::sleep(Duration::from_millis(20));
        }
        port.close(&mut memory);
    })
}

/// The frames of NDN that come at an interface within some seconds, up to a number.
fn receive(world: &World, side: &str, interface: &str, most: usize) -> thread::JoinHandle<Vec<Vec<u8>>> {
    let interface = interface.to_owned();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = world.inside(side, move || {
        let interface = Interface::open(&interface).unwrap();
        let mut options = PacketOptions::default();
        options.promiscuous = true;
        let mut port = PacketPort::open(&interface, &options).unwrap();
        let mut memory = Memory::new(256).unwrap();
        ready.send(()).unwrap();
        let (start, mut found, mut frames) = (Instant::now(), Vec::new(), Vec::new());
        while found.len() < most && start.elapsed() < Duration::from_secs(5) {
            port.receive(&mut memory, &mut frames, 64).unwrap();
            for frame in frames.drain(..) {
                let bytes = memory.bytes(&frame);
                if bytes.get(12..14) == Some(&NDN) {
                    found.push(bytes.to_vec());
                }
                memory.give(frame);
            }
            thread::sleep(Duration::from_millis(1));
        }
        port.close(&mut memory);
        found
    });
    is_ready.recv().unwrap();
    thread
}

/// A hardware address as bytes.
fn mac(world: &World, side: &str, interface: &str) -> [u8; 6] {
    let text = world.mac(side, interface).unwrap();
    text.parse::<wirespeed_router::Mac>().unwrap().0
}

#[test]
fn interests_go_by_their_names_and_the_rest_is_the_kernels() {
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b", "c"]) else { return };
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("names");
        let text = format!("/x/b rb\n/x/c {}%rc\n", world.mac("c", "hc").unwrap());
        std::fs::write(&table, text).unwrap();
        let options = format!("{driver} --app names --table {}", table.display());
        let Some(router) = world.router(&options) else { return };
        let [ours, group] = [mac(&world, "r", "ra"), [1, 0, 0x5e, 0, 0x17, 0xaa]];
        let sinks = [("b", "hb"), ("c", "hc")].map(|(side, interface)| receive(&world, side, interface, 20));
        let mut data = interest(ours, &["x", "b", "1"]);
        data[14] = 6;
        let frames = vec![
            interest(ours, &["x", "b", "1"]),
            interest(group, &["x", "c", "2"]),
            interest(ours, &["y", "3"]),
            interest([2, 0, 0, 0, 0, 77], &["x", "b", "4"]),
            data,
        ];
        send(&world, "a", "ha", frames).join().unwrap();
        let [b, c] = sinks.map(|sink| sink.join().unwrap());
        assert_eq!((b.len(), c.len()), (20, 20), "{driver}: {}", router.said());
        let expected = |to: [u8; 6], from: &str, components: &[&str]| {
            let mut frame = interest(to, components);
            frame[6..12].copy_from_slice(&mac(&world, "r", from));
            *frame.last_mut().unwrap() -= 1;
            frame
        };
        let (to_b, to_c) = (
            expected(group, "rb", &["x", "b", "1"]),
            expected(mac(&world, "c", "hc"), "rc", &["x", "c", "2"]),
        );
        // Short frames may be padded on their way.
        assert!(b.iter().all(|frame| frame.starts_with(&to_b)), "{driver}: {:02x?}", b[0]);
        assert!(c.iter().all(|frame| frame.starts_with(&to_c)), "{driver}: {:02x?}", c[0]);
        transfer(&world, "a", ("b", "10.0.2.2"), 20_000);
        transfer(&world, "b", ("c", "fd03::2"), 20_000);
        let report = router.stop();
        assert_eq!(
            (&report["frames_in"], &report["frames_out"], &report["dropped"]["no_route"]),
            (&60.into(), &40.into(), &20.into()),
            "{driver}: {report}"
        );
    }
}
