//! What hosts see through the forwarder: pings, TCP, and the kernel's own forwarding once it is gone.

use std::time::Duration;

use crate::part;
use crate::world::World;

/// Bytes of a TCP transfer.
const BYTES: usize = 8 << 20;

/// TTL of a ping that the forwarder carried, and of one that the kernel forwarded.
const OURS: Option<u32> = Some(64);
const KERNELS: Option<u32> = Some(63);

fn transfer(world: &World, address: &str) -> String {
    let server = world.start("right", &format!("serve 7000 {BYTES}"));
    let said = world.play("left", &format!("fetch {address}:7000 {BYTES}"));
    server.finish();
    said.lines().find(|line| line.contains("Mb/s")).expect("a rate").to_owned()
}

/// Pings in both families and sizes, and TCP in both families.
fn traffic(world: &World, driver: &str) {
    for address in ["10.0.2.2", "fd02::2"] {
        assert_eq!(world.ping(address, 10), (10, OURS), "{driver}: {address}");
        assert_eq!(world.ping_of(address, 3, 1400), (3, OURS), "{driver}: {address}, 1,400 bytes");
    }
    // The router itself answers, through its kernel.
    for address in ["10.0.1.1", "10.0.2.1", "fd01::1", "fd02::1"] {
        assert_eq!(world.ping(address, 3), (3, Some(64)), "{driver}: {address}");
    }
    for address in ["10.0.2.2", "[fd02::2]"] {
        println!("{driver}: TCP to {address}: {}", transfer(world, address));
    }
}

fn xdp(driver: &str) {
    let Some(world) = World::new() else { return };
    world.play("left", "offload hl checksum");
    world.play("right", "offload hr checksum");
    assert_eq!(world.ping("10.0.2.2", 2), (2, KERNELS), "before the forwarder starts");
    let forwarder = world.start("middle", &world.forwarder(driver));
    traffic(&world, driver);
    let said = forwarder.finish();
    println!("{driver}: {said}");
    assert_eq!(world.ping("10.0.2.2", 3), (3, KERNELS), "after it has ended");

    let forwarder = world.start("middle", &world.forwarder(driver));
    assert_eq!(world.ping("10.0.2.2", 3), (3, OURS), "it runs again");
    forwarder.kill();
    assert_eq!(world.ping("10.0.2.2", 3), (3, KERNELS), "after it was killed");
    println!("{driver}: TCP through the kernel, after the kill: {}", transfer(&world, "10.0.2.2"));
}

#[test]
fn af_xdp_forwards_and_fails_open() {
    xdp("native");
}

#[test]
fn af_xdp_behind_the_driver_forwards_and_fails_open() {
    xdp("skb");
}

fn packet(driver: &str) {
    let Some(world) = World::new() else { return };
    // Checksums stay on: the port finishes those that the hosts leave open.
    world.play("left", "offload hl segmentation");
    world.play("right", "offload hr segmentation");
    assert_eq!(world.ping("10.0.2.2", 2), (2, KERNELS), "before the forwarder starts");
    let forwarder = world.start("middle", &world.forwarder(driver));
    traffic(&world, driver);
    println!("{driver}: {}", forwarder.finish());
    for address in ["10.0.2.2", "fd02::2"] {
        assert_eq!(world.ping(address, 3), (3, KERNELS), "the kernel forwards again");
    }
}

#[test]
fn af_packet_forwards_and_finishes_checksums() {
    packet("packet");
}

#[test]
fn af_packet_forwards_without_queueing_discipline() {
    packet("packet-bypass");
}

#[test]
fn an_interface_goes_down_and_up_under_the_forwarder() {
    for driver in ["native", "packet"] {
        let Some(world) = World::new() else { return };
        let forwarder = world.start("middle", &world.forwarder(driver));
        assert_eq!(world.ping("10.0.2.2", 3), (3, OURS), "{driver}");
        world.ip("middle", "link set mr down");
        assert_eq!(world.ping("10.0.2.2", 3).0, 0, "{driver}: down");
        world.ip("middle", "link set mr up");
        // The address goes with the interface; frames don't need it. A neighbour asks for it again.
        let (came, ttl) = world.ping("10.0.2.2", 20);
        assert!(came >= 10 && ttl == OURS, "{driver}: {came} came");
        forwarder.finish();
    }
}

#[test]
fn no_frame_is_lost_below_saturation() {
    for driver in ["native", "skb", "packet"] {
        let Some(world) = World::new() else { return };
        let forwarder = world.start("middle", &world.forwarder(driver));
        let (from, to) = (world.mac("left", "hl"), world.mac("middle", "ml"));
        world.play("left", &format!("blast hl {from} {to} 1.0 10000"));
        std::thread::sleep(Duration::from_millis(200));
        let arrived = world.counter("right", "hr", "rx_packets");
        let (sent, said) = (world.counter("left", "hl", "tx_packets"), forwarder.finish());
        assert!(sent > 5000 && arrived.abs_diff(sent) < 20, "{driver}: {arrived} of {sent}: {said}");
        assert!(said.contains(" 0 dropped"), "{driver}: {said}");
    }
}

#[test]
fn tagged_frames_come_out_as_they_went_in() {
    for driver in ["native", "skb", "packet"] {
        let Some(world) = World::new() else { return };
        world.kernel_forwards(false);
        // The host at the right has an address that the test knows again.
        world.ip("right", "link set dev hr address 02:77:00:00:00:01");
        let capture = world.start("right", "capture hr 6");
        let forwarder = world.start("middle", &world.forwarder(driver));
        let (to, from) = (part::mac(&world.mac("middle", "ml")), [2, 0, 0, 0, 0, 9]);
        let untagged = part::blast_frame(from, to);
        let tags: [&[u8]; 6] = [
            &[],
            &[0x81, 0, 0xa0, 5],
            &[0x88, 0xa8, 0, 6],
            &[0x88, 0xa8, 0xf0, 6, 0x81, 0, 0x0f, 0xff],
            &[0x81, 0, 0, 6, 0x81, 0, 0, 1],
            &[0x81, 0, 0, 0], // a priority alone
        ];
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let frames = tags.map(|tags| [&untagged[..12], tags, &untagged[12..]].concat());
        let said = world.play("left", &format!("inject hl {}", frames.each_ref().map(|f| hex(f)).join(",")));
        assert!(said.contains("6 sent, 0 refused"), "{said}");
        let said = capture.join();
        let own = part::mac(&world.mac("middle", "mr"));
        for frame in &frames {
            let expected = [&[0x02, 0x77, 0, 0, 0, 1], &own[..], &frame[12..]].concat();
            assert!(said.contains(&format!("frame {}\n", hex(&expected))), "{driver}: {frame:02x?}:\n{said}");
        }
        forwarder.finish();
    }
}

#[test]
fn a_group_of_sockets_shares_flows() {
    let Some(world) = World::new() else { return };
    let receivers = world.start("middle", "fanout ml 1.5");
    let frame = part::blast_frame([2, 0, 0, 0, 0, 9], part::mac(&world.mac("middle", "ml")));
    let frames: Vec<String> = (0..60_u8)
        .map(|source| {
            let mut frame = frame.clone();
            frame[34..36].copy_from_slice(&[9, source]);
            frame.iter().map(|byte| format!("{byte:02x}")).collect()
        })
        .collect();
    world.play("left", &format!("inject hl {}", frames.join(",")));
    let said = receivers.join();
    let flows = said.lines().find_map(|line| line.strip_prefix("flows: ")).expect("numbers");
    let (first, second) = flows.split_once(" and ").expect("two numbers");
    let [first, second] = [first, second].map(|count| count.parse::<u32>().expect("a number"));
    assert!(first + second == 60 && first > 0 && second > 0, "{said}");
}

#[test]
fn programs_and_queues_are_taken_once() {
    let Some(world) = World::new() else { return };
    world.play("middle", "twice ml");
}

#[test]
fn errors_name_the_capability_that_is_missing() {
    let Some(world) = World::new() else { return };
    world.play("middle", "beggar ml");
}

#[test]
fn few_capabilities_are_enough() {
    let Some(world) = World::new() else { return };
    world.play("middle", "modest ml");
}

#[test]
fn frames_that_are_too_long_are_refused() {
    let Some(world) = World::new() else { return };
    let frame = |len: usize| "00".repeat(12) + "0800" + &"00".repeat(len - 14);
    let said = world.play("left", &format!("inject hl {},{}", frame(1514), frame(1515)));
    assert!(said.contains("1 sent, 1 refused"), "{said}");
}

#[test]
fn packets_go_to_the_kernel_by_tun() {
    let Some(world) = World::new() else { return };
    // Strict for all interfaces: the device has to be loose.
    for all in ["0", "1"] {
        world
            .run("middle", &["sh", "-c", &format!("echo {all} > /proc/sys/net/ipv4/conf/all/rp_filter")])
            .unwrap();
        let before = world.counter("right", "hr", "rx_packets");
        world.play("middle", "punt 10.0.2.2");
        // The kernel resolves the next hop, and the host there answers to who the packet says it is from.
        let requests = world.read("right", "/proc/net/snmp").unwrap();
        let echoes: Vec<&str> = requests.lines().filter(|line| line.starts_with("Icmp:")).collect();
        let (names, values) = (echoes[0].split(' '), echoes[1].split(' '));
        let seen = names.zip(values).find(|(name, _)| *name == "InEchos").expect("a counter").1;
        assert!(world.counter("right", "hr", "rx_packets") > before);
        assert_eq!(seen, if all == "0" { "1" } else { "2" }, "rp_filter {all}");
    }
}
