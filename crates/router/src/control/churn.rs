//! Tests of [`Control`] with many routes: a hundred thousand changes a second while packets are forwarded,
//! each checked for its next hop, and a million routes at once.
//!
//! `WIRESPEED_SOAK=SECONDS` makes the first last longer, at that rate; `WIRESPEED_TESTS=long` sends the whole
//! million.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread;

use wirespeed_feeds::{Link, Neighbour, NeighbourState, fpm, kernel};
use wirespeed_netns::Namespaces;

use super::*;
use crate::apps::Ip;
use crate::frames::Datagram;
use crate::io::{Port, PortCounts};
use crate::{Frame, Mac, Memory, Published, Settings, Worker};

/// The first interface. No host has so many, so that its kernel is asked for nobody.
const FIRST: u32 = 1_000_000;
/// Routes that change in a round.
const ROUTES: u32 = 5_000;
/// Next hops, which rounds take in turns.
const GATEWAYS: u32 = 200;
/// Changes a second of the long test: a fifth more than have to be held.
const RATE: u32 = 120_000;

fn prefix(route: u32) -> Ipv4Addr {
    Ipv4Addr::from((20 << 24) + (route << 8))
}

/// A frame of FPM with one message of netlink: its fixed part, and attributes of four bytes.
fn message(kind: u16, fixed: &[u8], attributes: &[(u16, [u8; 4])]) -> Vec<u8> {
    let length = 16 + u16::try_from(fixed.len() + 8 * attributes.len()).unwrap();
    let mut frame = vec![1, 1];
    frame.extend((length + 4).to_be_bytes());
    frame.extend(u32::from(length).to_ne_bytes());
    frame.extend(kind.to_ne_bytes());
    frame.extend([0; 10]);
    frame.extend(fixed);
    for (number, value) in attributes {
        frame.extend(8_u16.to_ne_bytes());
        frame.extend(number.to_ne_bytes());
        frame.extend(value);
    }
    frame
}

/// The next-hop object of a gateway, with the gateway's number.
fn object(gateway: u32) -> Vec<u8> {
    let to = (10 << 24 | 2 << 8) + 1 + gateway;
    let (id, interface) = ((1 + gateway).to_ne_bytes(), (FIRST + 1).to_ne_bytes());
    message(104, &[2, 0, 0, 0, 0, 0, 0, 0], &[(1, id), (5, interface), (6, to.to_be_bytes())])
}

/// A route by the next-hop object of a gateway.
fn route(route: u32, gateway: u32) -> Vec<u8> {
    let (to, id) = (prefix(route).octets(), (1 + gateway).to_ne_bytes());
    message(24, &[2, 24, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0], &[(1, to), (30, id)])
}

/// All routes by the gateway of a round.
fn round(number: u32) -> Vec<u8> {
    (0..ROUTES).flat_map(|n| route(n, number % GATEWAYS)).collect()
}

/// A control with two ports, and the gateways behind the second. Their hardware addresses end in their
/// number.
fn control() -> Control {
    let ports = (0..2).map(|port| (FIRST + port, LocalAddresses::new()));
    let options = Options { source: Source::AllTables, ..Options::default() };
    let mut control = Control::new(ports, options).unwrap();
    let link = |port: u8| {
        Change::Link(Box::new(Link {
            index: FIRST + u32::from(port),
            name: format!("p{port}"),
            mac: Some(wirespeed_feeds::Mac([2, 0, 0, 0, 0, port])),
            mtu: 1500,
            up: true,
            running: true,
            loopback: false,
            master: None,
            vrf: None,
        }))
    };
    control.take((0..2).map(link));
    control.take((0..GATEWAYS).map(|gateway| {
        let [.., low] = gateway.to_be_bytes();
        Change::Neighbour(Neighbour {
            interface: FIRST + 1,
            address: Ipv4Addr::new(10, 0, 2, 1 + low).into(),
            mac: Some(wirespeed_feeds::Mac([2, 0, 0, 0, 9, low])),
            state: NeighbourState::Reachable,
        })
    }));
    control.publish().unwrap();
    control
}

/// The feed of FRR, and a connection that is FRR's.
fn frr() -> (Feed, TcpStream) {
    let mut options = fpm::Options::default();
    options.address.set_port(0);
    options.quiet = Duration::from_millis(100);
    let feed = fpm::listen(options).unwrap();
    let stream = TcpStream::connect(feed.address().unwrap()).unwrap();
    (feed, stream)
}

/// The round of the last route of all rounds, if it has a next hop.
fn published(control: &Control) -> Option<u32> {
    let found = control.tables().readers()[0].lookup(prefix(ROUTES - 1).into());
    match control.routes().get(found).as_deref() {
        Some(Route::Via(hop)) => Some(u32::from(hop.to().0[5])),
        _ => None,
    }
}

/// Frames to all routes in turns, each with the newest round that had been published when it came.
struct Asker {
    frames: Vec<Vec<u8>>,
    next: usize,
    newest: Arc<AtomicU32>,
    asked: Arc<AtomicU64>,
    counts: PortCounts,
}

/// Checks that no frame leaves by an older next hop than that of its round.
struct Checker {
    stale: Arc<AtomicU64>,
    counts: PortCounts,
}

/// Where the round lies in a frame: at the start of the datagram's payload.
const ROUND: std::ops::Range<usize> = 42..46;

impl Port for Asker {
    fn name(&self) -> &'static str {
        "asker"
    }

    fn receive(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>, most: usize) -> Result<usize, Error> {
        let newest = self.newest.load(Acquire);
        let before = frames.len();
        // Few at once: the other threads of a small machine have work, too.
        for _ in 0..most.min(64) {
            let Some(frame) = memory.copy_of(&self.frames[self.next]) else { break };
            memory.bytes_mut(&frame)[ROUND].copy_from_slice(&newest.to_be_bytes());
            self.next = (self.next + 1) % self.frames.len();
            frames.push(frame);
        }
        self.counts.received += (frames.len() - before) as u64;
        self.asked.store(self.counts.received, Relaxed);
        thread::yield_now();
        Ok(frames.len() - before)
    }

    fn send(&mut self, _: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        assert!(frames.is_empty(), "no route leads back");
        Ok(0)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

impl Port for Checker {
    fn name(&self) -> &'static str {
        "checker"
    }

    fn receive(&mut self, _: &mut Memory, _: &mut Vec<Frame>, _: usize) -> Result<usize, Error> {
        Ok(0)
    }

    fn send(&mut self, memory: &mut Memory, frames: &mut Vec<Frame>) -> Result<usize, Error> {
        let count = frames.len();
        for frame in frames.drain(..) {
            let bytes = memory.bytes(&frame);
            let least = u32::from_be_bytes(*bytes[ROUND].first_chunk().unwrap());
            let gateway = u32::from(bytes[5]);
            // Rounds go round: a newer one is less than half of them ahead.
            let ahead = (gateway + GATEWAYS - least % GATEWAYS) % GATEWAYS;
            self.stale.fetch_add(u64::from(ahead >= GATEWAYS / 2), Relaxed);
            memory.give(frame);
        }
        self.counts.sent += count as u64;
        Ok(count)
    }

    fn held(&self) -> usize {
        0
    }

    fn close(&mut self, _: &mut Memory) {}

    fn counts(&self) -> PortCounts {
        self.counts
    }
}

#[test]
fn no_packet_takes_a_next_hop_that_its_route_left() {
    let soak = std::env::var("WIRESPEED_SOAK").ok().and_then(|text| text.parse::<u32>().ok());
    let rounds = soak.map_or(8, |seconds| seconds * RATE / ROUTES);
    let (feed, mut sender) = frr();
    let mut control = control();
    let begin: Vec<u8> = (0..GATEWAYS).flat_map(object).chain(round(0)).collect();
    sender.write_all(&begin).unwrap();
    while !control.first_routes(&feed, Duration::from_secs(10)).unwrap() {}
    assert_eq!(published(&control), Some(0));

    let frame = |route: u32| {
        let to = prefix(route).octets();
        let addresses = (IpAddr::from([10, 0, 1, 2]), IpAddr::from([to[0], to[1], to[2], 7]));
        let (to, from) = (Mac([2, 0, 0, 0, 0, 0]), Mac([2, 0, 0, 0, 1, 2]));
        Datagram { to, from, addresses, ports: (7, 7), hops: 64, bytes: 64 }.to_bytes()
    };
    let (newest, stale) = (Arc::<AtomicU32>::default(), Arc::<AtomicU64>::default());
    let asked = Arc::<AtomicU64>::default();
    let asker = Asker {
        // Routes that are apart in the order of their changes follow each other.
        frames: (0..ROUTES).map(|n| frame(n * 1_999 % ROUTES)).collect(),
        next: 0,
        newest: Arc::clone(&newest),
        asked: Arc::clone(&asked),
        counts: PortCounts::default(),
    };
    let checker = Checker { stale: Arc::clone(&stale), counts: PortCounts::default() };
    let (tables, routes, own, used) = (control.tables(), control.routes(), control.own(), control.used());
    let (stop, start) = (AtomicBool::new(false), Instant::now());
    let stats = thread::scope(|scope| {
        let work = || {
            let app = Ip::of_ports(&tables, &routes, &own).noting(&used);
            let ports: Vec<Box<dyn Port>> = vec![Box::new(asker), Box::new(checker)];
            let mut worker = Worker::new(app, Memory::new(4096).unwrap(), ports, Settings::default());
            worker.run(&stop, &Published::default()).unwrap()
        };
        let worker = scope.spawn(work);
        let changes = scope.spawn(move || {
            for number in 1..=rounds {
                let round = round(number);
                if soak.is_some() {
                    let due = Duration::from_secs(1) * number / (RATE / ROUTES);
                    thread::sleep(due.saturating_sub(start.elapsed()));
                }
                sender.write_all(&round).unwrap();
            }
            sender
        });
        while newest.load(Relaxed) < rounds {
            control.follow_routes(&feed).unwrap();
            control.publish().unwrap();
            // All routes of a round were told before its last one.
            let now = published(&control).expect("a next hop that is resolved");
            let before = newest.load(Relaxed);
            let ahead = (now + GATEWAYS - before % GATEWAYS) % GATEWAYS;
            assert!(ahead < GATEWAYS / 2, "{now} after {before}");
            newest.store(before + ahead, Release);
            thread::sleep(Duration::from_millis(if ahead == 0 { 2 } else { 0 }));
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{:.0} changes a second for {seconds:.1} s",
            f64::from(rounds) * f64::from(ROUTES) / seconds
        );
        if soak.is_some() {
            // They are sent at that rate, and the last ones are there soon.
            assert!(seconds < f64::from(rounds * ROUTES / RATE) + 1.0, "{seconds} s");
        }
        drop(changes.join().unwrap());
        // On a busy machine the changes may be done first.
        while asked.load(Relaxed) < u64::from(ROUTES) {
            thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Relaxed);
        worker.join().unwrap()
    });
    println!("{} packets", stats.frames_in);
    assert_eq!(stats.frames_in, stats.frames_out, "none is lost: {:?}", stats.dropped);
    assert_eq!(stale.load(Relaxed), 0, "of {}", stats.frames_out);
}

/// The number of routes that come at once.
fn many() -> u32 {
    if std::env::var("WIRESPEED_TESTS").as_deref() == Ok("long") { 1_000_000 } else { 20_000 }
}

/// The most time that they may take from when the first is sent. The kernel takes them as fast as `ip` sends
/// them, which takes longer than all that follows.
const SOON: Duration = Duration::from_secs(120);

/// Follows until so many routes are published. Returns how long that took.
fn until(routes: u32, control: &mut Control, mut follow: impl FnMut(&mut Control)) -> Duration {
    let start = Instant::now();
    while control.len() < routes as usize {
        follow(control);
        assert!(start.elapsed() < SOON, "{} of {routes}", control.len());
    }
    start.elapsed()
}

#[test]
fn many_routes_of_frr_are_published_soon() {
    let (feed, mut sender) = frr();
    let mut control = control();
    let start: Vec<u8> = (0..GATEWAYS).flat_map(object).chain(route(0, 0)).collect();
    sender.write_all(&start).unwrap();
    while !control.first_routes(&feed, Duration::from_secs(10)).unwrap() {}
    let routes = many();
    let all: Vec<u8> = (0..routes).flat_map(|n| route(n, n % GATEWAYS)).collect();
    let begin = Instant::now();
    let writer = thread::spawn(move || {
        sender.write_all(&all).unwrap();
        (sender, Instant::now())
    });
    until(routes, &mut control, |control| {
        control.follow_routes(&feed).unwrap();
        control.publish().unwrap();
    });
    let end = Instant::now();
    let (_, sent) = writer.join().unwrap();
    println!(
        "{routes} routes of FRR: published {:.2} s after the first was sent, {:.2} s after the last",
        (end - begin).as_secs_f64(),
        end.saturating_duration_since(sent).as_secs_f64()
    );
}

#[test]
fn many_routes_of_the_kernel_are_published_soon() {
    use std::fmt::Write as _;

    let Some(all) = Namespaces::or_skip(&["r"], &[]) else { return };
    all.ip("r", "link add p0 type veth peer name p1");
    for (port, address) in [("p0", "10.0.1.1/24"), ("p1", "10.0.2.1/24")] {
        all.ip("r", &format!("addr add {address} dev {port}"));
        all.ip("r", &format!("link set {port} up"));
    }
    let index = |name: &str| -> u32 {
        all.read("r", &format!("/sys/class/net/{name}/ifindex")).unwrap().parse().unwrap()
    };
    let ports = ["p0", "p1"].map(|name| (index(name), LocalAddresses::new()));
    let mut control = Control::new(ports, Options::default()).unwrap();
    let feed = kernel::follow(kernel::Options::in_namespace(&all.name("r"))).unwrap();
    assert!(control.first(&feed, Duration::from_secs(10)).unwrap());
    let routes = many();
    let mut lines = String::new();
    for n in 0..routes {
        writeln!(lines, "route add {}/24 via 10.0.2.{}", prefix(n), 2 + n % GATEWAYS).unwrap();
    }
    let begin = Instant::now();
    let sent = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            all.batch("r", &lines, false).unwrap();
            Instant::now()
        });
        until(routes, &mut control, |control| control.follow(&feed, Duration::from_millis(20)).unwrap());
        writer.join().unwrap()
    });
    let end = Instant::now();
    println!(
        "{routes} routes of the kernel: published {:.2} s after the first was sent, {:.2} s after the last; {} \
         overruns",
        (end - begin).as_secs_f64(),
        end.saturating_duration_since(sent).as_secs_f64(),
        feed.status().overruns
    );
}
