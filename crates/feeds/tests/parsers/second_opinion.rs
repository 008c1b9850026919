//! Messages that another library writes: `netlink-packet-route`.

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{NetlinkHeader, NetlinkMessage};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState as TheirState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteNextHop, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use wirespeed_feeds::{Change, Hop, Mac, NeighbourState, PathKind, Recorded};

fn changes_of(message: RouteNetlinkMessage) -> Vec<Change> {
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), message.into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut recorded = Recorded::netlink(100);
    let changes = recorded.read(&bytes).unwrap();
    assert!(recorded.status().skipped.is_empty(), "{:?}", recorded.status());
    changes
}

#[test]
fn routes_with_groups_are_read_alike() {
    let mut message = RouteMessage::default();
    message.header.address_family = AddressFamily::Inet;
    message.header.destination_prefix_length = 24;
    message.header.table = 254;
    message.header.kind = RouteType::Unicast;
    let hop = |interface, hops, gateway| {
        let mut hop = RouteNextHop::default();
        (hop.interface_index, hop.hops) = (interface, hops);
        hop.attributes = vec![gateway];
        hop
    };
    message.attributes = vec![
        RouteAttribute::Destination(RouteAddress::Inet("192.0.2.0".parse().unwrap())),
        RouteAttribute::Priority(7),
        RouteAttribute::MultiPath(vec![
            hop(3, 9, RouteAttribute::Gateway(RouteAddress::Inet(Ipv4Addr::new(10, 0, 0, 1)))),
            hop(4, 0, RouteAttribute::Via(RouteVia::Inet6("fe80::1".parse().unwrap()))),
        ]),
    ];
    let changes = changes_of(RouteNetlinkMessage::NewRoute(message));
    let [Change::Route(route)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((route.table.0, route.prefix.to_string().as_str()), (254, "192.0.2.0/24"));
    assert_eq!(route.path.kind, PathKind::Unicast);
    let via = |gateway: &str, interface, weight| Hop {
        interface,
        weight,
        ..Hop::via(gateway.parse::<IpAddr>().unwrap())
    };
    assert_eq!(*route.path.hops, [via("10.0.0.1", 3, 10), via("fe80::1", 4, 1)]);
}

#[test]
fn links_addresses_and_neighbours_are_read_alike() {
    let mut link = LinkMessage::default();
    link.header.index = 5;
    link.header.link_layer_type = LinkLayerType::Ether;
    link.header.flags = LinkFlags::Up | LinkFlags::Running;
    link.attributes = vec![
        LinkAttribute::IfName("eth0".to_owned()),
        LinkAttribute::Mtu(9_000),
        LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1]),
        LinkAttribute::Controller(9),
    ];
    let changes = changes_of(RouteNetlinkMessage::NewLink(link));
    let [Change::Link(link)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((link.index, link.name.as_str(), link.mtu), (5, "eth0", 9_000));
    assert_eq!((link.mac, link.master, link.vrf), (Some(Mac([2, 0, 0, 0, 0, 1])), Some(9), None));
    assert!(link.up && link.running && !link.loopback);

    let mut address = AddressMessage::default();
    address.header.family = AddressFamily::Inet6;
    (address.header.prefix_len, address.header.index) = (64, 5);
    address.attributes = vec![AddressAttribute::Address("2001:db8::1".parse().unwrap())];
    let changes = changes_of(RouteNetlinkMessage::NewAddress(address));
    let [Change::Address(address)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((address.interface, address.net.to_string().as_str()), (5, "2001:db8::1/64"));

    let mut neighbour = NeighbourMessage::default();
    neighbour.header.family = AddressFamily::Inet;
    (neighbour.header.ifindex, neighbour.header.state) = (5, TheirState::Stale);
    neighbour.attributes = vec![
        NeighbourAttribute::Destination(NeighbourAddress::Inet(Ipv4Addr::new(10, 0, 0, 2))),
        NeighbourAttribute::LinkLayerAddress(vec![2, 0, 0, 0, 0, 2]),
    ];
    let changes = changes_of(RouteNetlinkMessage::NewNeighbour(neighbour));
    let [Change::Neighbour(neighbour)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(neighbour.usable(), Some(Mac([2, 0, 0, 0, 0, 2])));
    assert_eq!((neighbour.interface, neighbour.state), (5, NeighbourState::Stale));
}
