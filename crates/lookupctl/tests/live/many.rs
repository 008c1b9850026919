//! Many routes at once, and many changes while packets go: from the kernel and by FPM, through the program.
//!
//! `WIRESPEED_TESTS=long` sends a million of IPv4 and a quarter of a million of IPv6, and
//! `WIRESPEED_SOAK=SECONDS` 120,000 changes a second for that long.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use wirespeed_image::rounds;

use crate::traffic::{Sender, Sink};
use crate::world::{Router, World};

/// Changes a second.
const RATE: u32 = 100_000;
/// Routes that change in a round.
const ROUND: u32 = 5000;

/// The routes of IPv4 that come at once, and of IPv6.
fn many() -> [u32; 2] {
    if rounds::is_long() { [1_000_000, 250_000] } else { [20_000, 5000] }
}

/// The network of a route: 20.0.0.0/24 and those after it, or 2001::/48.
fn network(is_v6: bool, route: u32) -> IpAddr {
    if is_v6 {
        Ipv6Addr::from((0x2001 << 112) + (u128::from(route) << 80)).into()
    } else {
        Ipv4Addr::from((20 << 24) + (route << 8)).into()
    }
}

/// The first host of a route's network.
fn host(is_v6: bool, route: u32) -> String {
    match network(is_v6, route) {
        IpAddr::V4(network) => Ipv4Addr::from(u32::from(network) + 1).to_string(),
        IpAddr::V6(network) => Ipv6Addr::from(u128::from(network) + 1).to_string(),
    }
}

/// A message of netlink about an IPv4 route by a gateway, in a frame of FPM.
fn frame(route: u32, gateway: [u8; 4]) -> [u8; 48] {
    let mut frame = [0; 48];
    frame[..4].copy_from_slice(&[1, 1, 0, 48]);
    frame[4..8].copy_from_slice(&44_u32.to_ne_bytes());
    frame[8..10].copy_from_slice(&24_u16.to_ne_bytes());
    frame[20..28].copy_from_slice(&[2, 24, 0, 0, 254, 186, 0, 1]);
    for (at, kind, value) in [
        (32, 1_u16, ((20 << 24) + (route << 8)).to_be_bytes()),
        (40, 5, u32::from_be_bytes(gateway).to_be_bytes()),
    ] {
        frame[at..at + 2].copy_from_slice(&8_u16.to_ne_bytes());
        frame[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        frame[at + 4..at + 8].copy_from_slice(&value);
    }
    frame
}

/// Frames of FPM about the first routes, by a gateway.
fn frames(routes: u32, gateway: [u8; 4]) -> Vec<u8> {
    (0..routes).flat_map(|route| frame(route, gateway)).collect()
}

/// FRR, which tells its routes by FPM: bytes that are given it are sent, and it says when they were.
struct Frr {
    bytes: mpsc::Sender<Vec<u8>>,
    sent: mpsc::Receiver<Instant>,
}

impl Frr {
    /// Connects as soon as the router listens, and sends a route.
    fn start(world: &World) -> Self {
        let ((bytes, to_send), (done, sent)) = (mpsc::channel::<Vec<u8>>(), mpsc::channel());
        bytes.send(frames(1, [10, 0, 2, 2])).unwrap();
        let connect = || TcpStream::connect("127.0.0.1:2620").ok();
        world.inside("r", move || {
            let start = Instant::now();
            let mut stream = loop {
                match connect() {
                    Some(stream) => break stream,
                    None if start.elapsed() > Duration::from_secs(30) => return,
                    None => thread::sleep(Duration::from_millis(20)),
                }
            };
            for bytes in to_send {
                // A router that ended needs no more routes.
                let (Ok(()), Ok(())) = (stream.write_all(&bytes), done.send(Instant::now())) else { return };
            }
        });
        Self { bytes, sent }
    }

    /// Sends bytes, and waits until they are.
    fn send(&self, bytes: Vec<u8>) -> Instant {
        self.bytes.send(bytes).unwrap();
        self.sent.recv().unwrap()
    }
}

/// The router alone forwards: what it leaves to the kernel gets lost. Its neighbours are known.
fn alone(world: &World, addresses: &[(&str, &str)]) {
    world.forward("r", false).unwrap();
    for (at, address) in addresses {
        assert!(World::until(|| world.pings(at, address).unwrap()), "{at}: {address}");
    }
}

/// Sends to a host until a datagram comes, and tells when it did.
fn until_it_comes(world: &World, router: &Router, address: &str) -> Instant {
    let sink = Sink::start(world, "b", address);
    let sender = Sender::start(world, "a", address, 500);
    assert!(sink.gets(1), "{address}: {}", router.said());
    let came = Instant::now();
    sender.finish();
    sink.finish();
    came
}

#[test]
fn many_routes_of_the_kernel_carry_packets_soon() {
    let Some(world) = World::new(&["a", "b"]) else { return };
    let Some(router) = world.router("") else { return };
    alone(&world, &[("a", "10.0.1.1"), ("b", "10.0.2.1"), ("a", "fd01::1"), ("b", "fd02::1")]);
    for (is_v6, routes) in [false, true].into_iter().zip(many()) {
        let (length, gateway, nodad) = if is_v6 { (48, "fd02::2", " nodad") } else { (24, "10.0.2.2", "") };
        let mut lines = String::new();
        for route in 0..routes {
            writeln!(lines, "route add {}/{length} via {gateway}", network(is_v6, route)).unwrap();
        }
        let last = host(is_v6, routes - 1);
        world.ip("b", &format!("addr add {last} dev lo{nodad}"));
        let begin = Instant::now();
        world.batch("r", &lines);
        let sent = Instant::now();
        let came = until_it_comes(&world, &router, &last);
        println!(
            "{routes} routes of the kernel: {:.2} s after the first was sent, {:.2} s after the last",
            (came - begin).as_secs_f64(),
            (came - sent).as_secs_f64()
        );
        // Others than the last one are there as well.
        for route in [0, routes / 3, routes / 2] {
            let address = host(is_v6, route);
            world.ip("b", &format!("addr add {address} dev lo{nodad}"));
            until_it_comes(&world, &router, &address);
        }
    }
    let routes = world.metrics()["wirespeed_source_routes{source=\"kernel\"}"];
    assert!(routes >= f64::from(many().iter().sum::<u32>()), "{routes}");
    println!("memory {} MiB", router.resident() >> 20);
    router.stop();
}

#[test]
fn many_routes_of_frr_carry_packets_soon_and_change_while_they_do() {
    let soak = std::env::var("WIRESPEED_SOAK").ok().and_then(|text| text.parse::<u32>().ok());
    let Some(world) = World::new(&["a", "b", "c"]) else { return };
    let frr = Frr::start(&world);
    let Some(router) = world.router("--feed fpm:127.0.0.1:2620") else { return };
    frr.sent.recv().unwrap();
    alone(&world, &[("a", "10.0.1.1"), ("b", "10.0.2.1"), ("c", "10.0.3.1")]);
    let [routes, _] = many();
    let last = host(false, routes - 1);
    world.ip("b", &format!("addr add {last} dev lo"));
    let bytes = frames(routes, [10, 0, 2, 2]);
    let begin = Instant::now();
    let sent = frr.send(bytes);
    let came = until_it_comes(&world, &router, &last);
    println!(
        "{routes} routes of FRR: {:.2} s after the first was sent, {:.2} s after the last",
        (came - begin).as_secs_f64(),
        (came - sent).as_secs_f64()
    );

    // Changes, each round to the other gateway, while a route of the last ones carries datagrams.
    // A fifth more than have to be held, where that is measured.
    let rate = if soak.is_some() { RATE / 5 * 6 } else { RATE } / ROUND;
    let rounds = soak.map_or(20, |seconds| seconds * rate);
    let through = host(false, ROUND - 1);
    let sinks = ["b", "c"].map(|side| {
        world.ip(side, &format!("addr add {through} dev lo"));
        Sink::start(&world, side, &through)
    });
    let gateways = [[10, 0, 2, 2], [10, 0, 3, 2]].map(|gateway| frames(ROUND, gateway));
    let sender = Sender::start(&world, "a", &through, 1000);
    assert!(sinks[0].gets(20), "{}", router.said());
    // Changes would be too few: of a route that changes twice in what is read at once, the last one is told.
    let messages = || world.metrics()["wirespeed_source_messages_total{source=\"fpm:127.0.0.1:2620\"}"];
    // Datagrams that came before their route, as soon as the metrics have all of them.
    thread::sleep(Duration::from_millis(300));
    let dropped = world.metric("frames_dropped_total{reason=\"no_route\"}");
    let (before, start) = (messages(), Instant::now());
    for round in 1..=rounds {
        let due = Duration::from_secs(1) * round / rate;
        thread::sleep(due.saturating_sub(start.elapsed()));
        frr.send(gateways[round as usize % 2].clone());
    }
    let all = f64::from(rounds * ROUND);
    let (mut seen, made) = (0.0, || messages() - before);
    while !World::until(|| made() >= all) {
        let now = made();
        assert!(now > seen, "{now} of {all}, and no more come");
        seen = now;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.0} changes a second for {seconds:.1} s", all / seconds);
    // Rounds end with the first gateway, which gets all from now on.
    assert_eq!(rounds % 2, 0);
    let mut other = 0;
    let mut goes_by_the_first = || {
        other = sinks[1].count();
        sinks[0].gets(200) && sinks[1].count() == other
    };
    // What was read last may have to be published yet.
    assert!(goes_by_the_first() || goes_by_the_first(), "a route that was left: {}", router.said());
    let sent = sender.finish();
    assert!(World::until(|| sinks.iter().map(Sink::count).sum::<u64>() == sent), "datagrams are lost");
    assert!(other > 0, "no datagram went by the second gateway");
    let mut numbers: Vec<u64> = sinks.into_iter().flat_map(Sink::finish).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..sent), "each once");
    println!("{sent} datagrams, memory {} MiB", router.resident() >> 20);
    let report = router.stop();
    assert_eq!(report["dropped"]["no_route"].as_u64().unwrap_or_default(), dropped, "{report}");
    assert!(report["dropped"].as_object().unwrap().len() < 2, "{report}");
}
