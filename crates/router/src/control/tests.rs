//! Tests of [`Control`]: VRFs, other sources of routes, rules. What the kernel would tell is made here.

use wirespeed::NextHop;
use wirespeed_feeds::{Hop as FeedHop, Link, Neighbour, NeighbourState, PathKind, Route as FeedRoute};
use wirespeed_image::rounds;

use super::*;
use crate::apps::Ip;
use crate::io::{Interface, Tags};
use crate::{App, Chunk, Memory, PortId, Reason, Verdict};

/// The first interface. No host has so many, so that its kernel is asked for nobody.
const FIRST: u32 = 1_000_000;
const RED: TableId = TableId(10);
const BLUE: TableId = TableId(20);

/// A router with some ports.
struct Router {
    control: Control,
    local: Vec<LocalAddresses>,
}

fn link(port: u32, vrf: Option<TableId>) -> Change {
    let [.., low] = port.to_be_bytes();
    Change::Link(Box::new(Link {
        index: FIRST + port,
        name: format!("p{port}"),
        mac: Some(wirespeed_feeds::Mac([2, 0, 0, 0, 0, low])),
        mtu: 1500,
        up: true,
        running: true,
        loopback: false,
        master: vrf.map(|table| FIRST + 100 + table.0),
        vrf,
    }))
}

fn neighbour(port: u32, address: &str, last: u8) -> Change {
    Change::Neighbour(Neighbour {
        interface: FIRST + port,
        address: address.parse().unwrap(),
        mac: Some(wirespeed_feeds::Mac([2, 0, 0, 0, 9, last])),
        state: NeighbourState::Reachable,
    })
}

fn route(table: TableId, prefix: &str, hops: &[(Option<&str>, Option<u32>)]) -> Change {
    let hop = |&(gateway, port): &(Option<&str>, Option<u32>)| FeedHop {
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        ..FeedHop::on_link(port.map_or(0, |port| FIRST + port))
    };
    let path = Arc::new(Path::unicast(hops.iter().map(hop).collect::<Vec<_>>()));
    Change::Route(FeedRoute { table, prefix: prefix.parse().unwrap(), path })
}

fn gone(table: TableId, prefix: &str) -> Change {
    Change::RouteGone { table, prefix: prefix.parse().unwrap() }
}

impl Router {
    fn new(ports: u32, source: Source, table: TableId) -> Self {
        let local: Vec<_> = (0..ports).map(|_| LocalAddresses::new()).collect();
        let of = (0..ports).map(|port| FIRST + port).zip(local.iter().cloned());
        Self { control: Control::new(of, Options { source, table, ..Options::default() }).unwrap(), local }
    }

    fn take(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.control.take(changes);
        self.control.publish().unwrap();
    }

    fn take_routes(&mut self, changes: impl IntoIterator<Item = Change>) {
        self.control.take_routes(changes);
        self.control.publish().unwrap();
    }

    /// The way of packets that come in at a port.
    fn at(&self, port: u16, address: &str) -> Option<Route> {
        let found = self.control.tables().readers()[usize::from(port)].lookup(address.parse().unwrap());
        (found != NextHop::NONE).then(|| self.control.routes().get(found).unwrap().clone())
    }

    /// The port that packets leave by, and the last byte of the next hop's address.
    fn out(&self, port: u16, address: &str) -> (u16, u8) {
        match self.at(port, address) {
            Some(Route::Via(hop)) => (hop.port().0, hop.to().0[5]),
            other => panic!("{address} at {port}: {other:?}"),
        }
    }
}

/// Ports 0 and 1 in the red VRF, 2 and 3 in the blue one, 4 outside; each VRF has the same prefixes.
fn two_vrfs() -> Router {
    let mut router = Router::new(5, Source::Kernel, TableId::MAIN);
    let vrfs = [Some(RED), Some(RED), Some(BLUE), Some(BLUE), None];
    router.take((0..).zip(vrfs).map(|(port, vrf)| link(port, vrf)));
    for (table, ports) in [(RED, [0, 1]), (BLUE, [2, 3]), (TableId::MAIN, [4, 4])] {
        router.take([
            route(table, "10.1.0.0/24", &[(None, Some(ports[0]))]),
            route(table, "10.2.0.0/24", &[(None, Some(ports[1]))]),
            route(table, "172.16.0.0/12", &[(Some("10.2.0.9"), Some(ports[1]))]),
            neighbour(ports[0], "10.1.0.2", 20 + u8::try_from(ports[0]).unwrap()),
            neighbour(ports[1], "10.2.0.9", 40 + u8::try_from(ports[1]).unwrap()),
        ]);
    }
    router
}

#[test]
fn each_vrf_has_its_own_routes() {
    let mut router = two_vrfs();
    assert_eq!(router.control.count_tables(), 3);
    for (port, hosts, gateway) in [(0, (0, 20), (1, 41)), (1, (0, 20), (1, 41)), (2, (2, 22), (3, 43))] {
        assert_eq!(router.out(port, "10.1.0.2"), hosts);
        assert_eq!(router.out(port, "10.2.0.9"), gateway);
        assert_eq!(router.out(port, "172.16.5.5"), gateway);
    }
    assert_eq!(router.out(4, "172.16.5.5"), (4, 44));
    // A route of one VRF is none of another, and a VRF without a route does not go on with the main table.
    router.take([
        gone(RED, "172.16.0.0/12"),
        route(TableId::MAIN, "0.0.0.0/0", &[(Some("10.2.0.9"), Some(4))]),
        route(BLUE, "203.0.113.0/24", &[(Some("10.2.0.9"), Some(3))]),
    ]);
    assert_eq!(router.at(0, "172.16.5.5"), None);
    assert_eq!(router.at(0, "203.0.113.1"), None);
    assert_eq!(router.out(2, "203.0.113.1"), (3, 43));
    assert_eq!(router.out(4, "203.0.113.1"), (4, 44));
    // A route that leaks names an interface of another VRF: the kernel allows it, and so it counts.
    router.take([route(RED, "198.51.100.0/24", &[(Some("10.2.0.9"), Some(3))])]);
    assert_eq!(router.out(0, "198.51.100.1"), (3, 43));
    // An unresolved next hop is the kernel's to find, in the VRF.
    router.take([route(RED, "198.51.101.0/24", &[(Some("10.2.0.77"), Some(1))])]);
    assert_eq!(router.at(0, "198.51.101.1"), Some(Route::Kernel));
}

#[test]
fn an_interface_moves_between_vrfs_while_packets_are_forwarded() {
    let mut router = two_vrfs();
    let (tables, routes, own) = (router.control.tables(), router.control.routes(), router.control.own());
    let mut app = Ip::of_ports(&tables, &routes, &own);
    let mut memory = Memory::new(16).unwrap();
    let mut forward = |port: u16, last: u8| {
        let mut chunk = Chunk::new(1);
        chunk.begin(PortId(port));
        chunk.frames.push(memory.copy_of(&frame([172, 16, 0, last])).unwrap());
        chunk.close();
        let pending = app.pre_shade(&mut chunk, &mut memory);
        app.post_shade(&mut chunk, &mut memory, pending);
        let (verdict, frame) = (chunk.verdicts()[0], chunk.frames.pop().unwrap());
        let to = memory.bytes(&frame)[5];
        memory.give(frame);
        chunk.made.drain(..).for_each(|(_, frame)| memory.give(frame));
        (verdict, to)
    };
    assert_eq!(forward(0, 1), (Verdict::Out(PortId(1)), 41));
    assert_eq!(forward(2, 1), (Verdict::Out(PortId(3)), 43));
    assert_eq!(forward(4, 1), (Verdict::Out(PortId(4)), 44));
    router.take([link(0, Some(BLUE))]);
    assert_eq!(tables.vrf(PortId(0)), Some(FIRST + 100 + BLUE.0));
    assert_eq!(forward(0, 2), (Verdict::Out(PortId(3)), 43));
    // The red VRF goes with its last port, and comes back with its routes.
    router.take([link(0, None), link(1, None)]);
    assert_eq!(router.control.count_tables(), 2);
    assert_eq!(forward(0, 3), (Verdict::Out(PortId(4)), 44));
    router.take([route(RED, "172.16.0.0/13", &[(Some("10.1.0.2"), Some(0))]), link(1, Some(RED))]);
    assert_eq!(forward(1, 4), (Verdict::Out(PortId(0)), 20));
    router.take([gone(RED, "172.16.0.0/13"), gone(RED, "172.16.0.0/12")]);
    assert_eq!(forward(1, 5).0, Verdict::Drop(Reason::NoRoute));
    assert_eq!(memory.free(), 16, "every buffer came back");
}

/// A frame with an IPv4 packet, to a port that has no hardware address.
fn frame(to: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 9];
    packet.extend(to);
    let sum = crate::checksum::checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0, 9, 0, 53, 0, 8, 0, 0]);
    [&[0; 12][..], &[8, 0], &packet].concat()
}

#[test]
fn addresses_are_the_routers_own_in_their_vrf_alone() {
    let mut router = two_vrfs();
    let address = |port, net: &str| {
        Change::Address(InterfaceAddress { interface: FIRST + port, net: net.parse().unwrap() })
    };
    router.take([address(0, "10.1.0.1/24"), address(2, "10.7.0.1/24"), address(4, "10.8.0.1/24")]);
    let loopback = Interface::open("lo").unwrap();
    let is_forwarded = |router: &Router, port: usize, to: [u8; 4]| {
        router.local[port].transit(&loopback, Tags::Kernel).forwards(&frame(to))
    };
    let all = |router: &Router, to: [u8; 4]| {
        let own = router.control.own();
        let is_source = |port| own.is_source(port, to.into());
        [0, 1, 2, 3, 4].map(|port| {
            let forwarded = is_forwarded(router, port, to);
            assert_eq!(is_source(port), !forwarded, "what is the router's own is no source");
            forwarded
        })
    };
    assert_eq!(all(&router, [10, 1, 0, 1]), [false, false, true, true, true]);
    assert_eq!(all(&router, [10, 7, 0, 1]), [true, true, false, false, true]);
    assert_eq!(all(&router, [10, 8, 0, 1]), [true, true, true, true, false]);
    router.take([link(0, Some(BLUE))]);
    assert_eq!(all(&router, [10, 1, 0, 1]), [false, true, false, false, true]);
}

#[test]
fn given_routes_take_the_kernels_place_and_find_their_next_hops() {
    let mut router = Router::new(2, Source::OneTable, TableId::MAIN);
    router.take([link(0, None), link(1, None)]);
    router.take([
        route(TableId::MAIN, "10.1.0.0/24", &[(None, Some(0))]),
        route(TableId::MAIN, "10.2.0.0/24", &[(None, Some(1))]),
        route(TableId::MAIN, "192.0.2.0/24", &[(Some("10.2.0.9"), Some(1))]),
    ]);
    let via = |prefix, gateway| route(TableId::MAIN, prefix, &[(Some(gateway), None)]);
    router.take_routes([via("172.16.0.0/12", "10.2.0.8"), via("172.20.0.0/16", "192.0.2.1")]);
    // Next hops on a link, and behind a router on it; nobody has found either.
    for address in ["172.16.0.1", "172.20.0.1"] {
        assert_eq!(router.at(0, address), Some(Route::Unresolved));
    }
    router.take([neighbour(1, "10.2.0.8", 8), neighbour(1, "10.2.0.9", 9)]);
    assert_eq!(router.out(0, "172.16.0.1"), (1, 8));
    assert_eq!(router.out(0, "172.20.0.1"), (1, 9));
    assert_eq!(router.out(0, "10.2.0.8"), (1, 8), "hosts of a link are reached without a given route");
    assert_eq!(router.at(0, "192.0.2.1"), None, "the kernel's routes lead to next hops alone");
    // A link-local next hop without an interface is nowhere.
    router.take([route(TableId::MAIN, "fe80::/64", &[(None, Some(1))]), neighbour(1, "fe80::9", 9)]);
    router.take_routes([via("2001:db8::/32", "fe80::9")]);
    assert_eq!(router.at(0, "2001:db8::1"), Some(Route::Unresolved));
    // The way to a next hop changes, and no route is touched.
    router.take([
        route(TableId::MAIN, "192.0.2.0/24", &[(Some("10.1.0.7"), Some(0))]),
        neighbour(0, "10.1.0.7", 7),
    ]);
    assert_eq!(router.out(0, "172.20.0.1"), (0, 7));
    router.take([gone(TableId::MAIN, "192.0.2.0/24")]);
    assert_eq!(router.at(0, "172.20.0.1"), Some(Route::Unresolved));
    // A neighbour that does not answer.
    router.take([Change::Neighbour(Neighbour {
        interface: FIRST + 1,
        address: "10.2.0.8".parse().unwrap(),
        mac: None,
        state: NeighbourState::Failed,
    })]);
    assert_eq!(router.at(0, "172.16.0.1"), Some(Route::Unreachable));
    router.take_routes([gone(TableId::MAIN, "172.16.0.0/12")]);
    assert_eq!(router.at(0, "172.16.0.1"), None);
}

#[test]
fn one_given_table_leaves_vrfs_to_the_kernel_and_all_tables_do_not() {
    for source in [Source::OneTable, Source::AllTables] {
        let mut router = Router::new(2, source, TableId::MAIN);
        router.take([
            link(0, None),
            link(1, Some(RED)),
            neighbour(0, "10.0.0.1", 1),
            neighbour(1, "10.0.0.1", 2),
        ]);
        let both = |gateway_of: fn(u32) -> u32| {
            [TableId::MAIN, RED].into_iter().zip(0..).map(move |(table, port)| {
                route(table, "172.16.0.0/12", &[(Some("10.0.0.1"), Some(gateway_of(port)))])
            })
        };
        router.take(both(|port| port));
        let is_all = source == Source::AllTables;
        assert_eq!(router.at(0, "172.16.0.1"), None);
        assert_eq!(router.at(1, "172.16.0.1").is_none(), is_all);
        // Given routes go out by the other port each.
        router.take_routes(both(|port| 1 - port));
        assert_eq!(router.out(0, "172.16.0.1"), (1, 2));
        assert_eq!(router.out(1, "172.16.0.1"), if is_all { (0, 1) } else { (1, 2) });
    }
}

#[test]
fn paths_that_differ_by_their_origin_share_an_index() {
    let mut router = Router::new(1, Source::OneTable, TableId::MAIN);
    router.take([link(0, None)]);
    let path = |origin_as| Path { origin_as, ..Path::unicast([FeedHop::via("10.0.0.1".parse().unwrap())]) };
    let routes = (0..200_u8).map(|n| {
        let prefix = format!("10.0.{n}.0/24").parse().unwrap();
        Change::Route(FeedRoute { table: TableId::MAIN, prefix, path: Arc::new(path(Some(n.into()))) })
    });
    router.take_routes(routes);
    let readers = router.control.tables().readers();
    let found = |n: u8| readers[0].lookup(IpAddr::from([10, 0, n, 1]));
    assert!((1..200).all(|n| found(n) == found(0) && found(n) != NextHop::NONE));
}

#[test]
fn another_table_is_looked_up_and_its_next_hops_are_asked_for() {
    let mut router = Router::new(2, Source::Kernel, TableId(100));
    router.take([
        link(0, None),
        link(1, None),
        route(TableId::MAIN, "172.16.0.0/12", &[(Some("10.0.0.1"), Some(0))]),
        route(TableId(100), "172.16.0.0/12", &[(Some("10.0.0.2"), Some(1))]),
        Change::Route(FeedRoute {
            table: TableId::LOCAL,
            prefix: "172.16.0.5/32".parse().unwrap(),
            path: Arc::new(Path { kind: PathKind::Local, ..Path::unicast([]) }),
        }),
    ]);
    // The kernel would look the packets up elsewhere.
    assert_eq!(router.at(0, "172.16.0.1"), Some(Route::Unresolved));
    router.take([neighbour(1, "10.0.0.2", 2)]);
    assert_eq!(router.out(0, "172.16.0.1"), (1, 2));
    assert_eq!(router.at(0, "172.16.0.5"), Some(Route::Kernel));
}

#[test]
fn rules_that_are_not_followed_are_named() {
    let rules = |router: &Router| -> Vec<String> {
        router.control.unfollowed_rules().map(ToString::to_string).collect()
    };
    let lookup = |priority, table| Rule::of_all(false, priority, RuleAction::Lookup(table));
    let mut of_vrf = lookup(1000, RED);
    of_vrf.came_by = Some("red".to_owned());
    let mut by_source = lookup(7, TableId(100));
    by_source.from = Some("10.0.0.0/8".parse().unwrap());
    let all = [
        lookup(0, TableId::LOCAL),
        lookup(32_766, TableId::MAIN),
        lookup(32_767, TableId(253)),
        Rule::of_all(true, 1000, RuleAction::LookupInVrf),
        of_vrf,
        by_source,
    ];
    for (source, table, expected) in [
        (
            Source::Kernel,
            TableId::MAIN,
            &["IPv4 7: from 10.0.0.0/8 lookup 100", "IPv4 1000: from all iif red lookup 10"][..],
        ),
        (Source::AllTables, TableId(100), &["IPv4 1000: from all iif red lookup 10"]),
        (Source::OneTable, TableId::MAIN, &[]),
    ] {
        let mut router = Router::new(1, source, table);
        router.take(all.iter().map(|rule| Change::Rule(Box::new(rule.clone()))));
        assert_eq!(rules(&router), expected);
        // A rule of a VRF by the name of its device is followed once the device is there.
        let mut device = Link { index: FIRST + 50, name: "red".to_owned(), ..some_link() };
        (device.vrf, device.master) = (Some(RED), None);
        router.take([Change::Link(Box::new(device)), Change::RuleGone(Box::new(all[5].clone()))]);
        assert_eq!(rules(&router), [""; 0]);
    }
}

fn some_link() -> Link {
    match link(0, None) {
        Change::Link(link) => *link,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_router_has_a_port() {
    let none: [(u32, LocalAddresses); 0] = [];
    assert!(Control::new(none, Options::default()).is_err());
}

/// Bytes of memory that the process has.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The kernel's changes about a VRF with one port: a link with an address, a gateway, and routes by it.
fn vrf(port: u32, routes: u32) -> Vec<Change> {
    let table = TableId(1000 + port);
    let [.., high, low] = port.to_be_bytes();
    let address: IpNet = format!("10.{high}.{low}.1/24").parse().unwrap();
    let gateway = format!("10.{high}.{low}.2");
    let mut changes = vec![
        link(port, Some(table)),
        Change::Address(InterfaceAddress { interface: FIRST + port, net: address }),
        route(table, &address.trunc().to_string(), &[(None, Some(port))]),
        neighbour(port, &gateway, low),
    ];
    let to = |n: u32| IpAddr::from(((20 << 24) + (n << 8)).to_be_bytes());
    changes
        .extend((0..routes).map(|n| route(table, &format!("{}/24", to(n)), &[(Some(&gateway), Some(port))])));
    changes
}

/// `WIRESPEED_TESTS=long` has a thousand VRFs with a thousand routes each.
#[test]
fn many_vrfs_start_soon_and_change_soon() {
    let (ports, routes) = if rounds::is_long() { (1000_u32, 1000) } else { (200, 20) };
    let mut router = Router::new(ports, Source::Kernel, TableId::MAIN);
    let before = resident();
    let start = Instant::now();
    let changes: Vec<Vec<Change>> = (0..ports).map(|port| vrf(port, routes)).collect();
    println!("made in {:.2} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    router.take(changes.into_iter().flatten());
    println!(
        "{ports} VRFs with {routes} routes: {:.2} s, {} MiB",
        start.elapsed().as_secs_f64(),
        (resident() - before) >> 20
    );
    assert_eq!(router.control.count_tables(), ports as usize);
    for port in [0, 1, ports - 1] {
        let [.., low] = port.to_be_bytes();
        let port = u16::try_from(port).unwrap();
        assert_eq!(router.out(port, "20.0.1.1"), (port, low));
    }
    // A change of a route, of a neighbour and of a link, each alone.
    let start = Instant::now();
    router.take([gone(TableId(1007), "20.0.1.0/24")]);
    let of_route = start.elapsed();
    assert_eq!(router.at(7, "20.0.1.1"), None);
    assert_eq!(router.out(8, "20.0.1.1"), (8, 8));
    let start = Instant::now();
    router.take([neighbour(7, "10.0.7.2", 77)]);
    let of_neighbour = start.elapsed();
    assert_eq!(router.out(7, "20.0.2.1"), (7, 77));
    let start = Instant::now();
    router.take([link(7, Some(TableId(1008)))]);
    let of_link = start.elapsed();
    assert_eq!(router.out(7, "20.0.1.1"), (8, 8));
    println!("a route {of_route:?}, a neighbour {of_neighbour:?}, a link {of_link:?}");
}
