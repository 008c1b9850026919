//! The kernel's routes, next-hop objects, links, addresses and neighbours.

use std::net::IpAddr;

use wirespeed_feeds::{Change, Mac, Neighbour, Reason, TableId, kernel};

use crate::follower::Follower;
use crate::namespace::Namespace;

fn follow(namespace: &Namespace) -> Follower {
    Follower::synced(kernel::follow(namespace.options()).unwrap())
}

#[test]
fn routes_are_added_changed_and_deleted() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    namespace.ip("route add 192.0.2.0/24 via 10.9.0.2");
    namespace.ip("route add 192.0.2.0/24 via 10.9.0.3 metric 10");
    namespace.ip("route add blackhole 203.0.113.0/24 table 1000");
    let mut follower = follow(&namespace);
    let a0 = follower.link("a0").unwrap().index;
    let via = |gateway: &str| Some(format!("via {gateway} interface {a0}"));
    let path = |gateway| via(gateway).unwrap();
    assert_eq!(follower.model.path("192.0.2.0/24"), via("10.9.0.2").as_deref());
    assert_eq!(follower.model.path("10.9.0.0/24"), Some(format!("on link interface {a0}").as_str()));
    assert_eq!(
        follower.model.path("255 10.9.0.1/32"),
        Some(format!("local on link interface {a0}").as_str())
    );
    assert_eq!(follower.model.path("1000 203.0.113.0/24"), Some("blackhole"));

    namespace.ip("route del 192.0.2.0/24 metric 0");
    follower.until_path("192.0.2.0/24", Some(&path("10.9.0.3")));
    namespace.ip("route replace 192.0.2.0/24 nexthop via 10.9.0.4 weight 2 nexthop via 10.9.0.5");
    let group = format!("{} weight 2, {}", path("10.9.0.4"), path("10.9.0.5"));
    follower.until_path("192.0.2.0/24", Some(&group));
    namespace.ip("route del 192.0.2.0/24 metric 0");
    follower.until_path("192.0.2.0/24", Some(&path("10.9.0.3")));
    namespace.ip("route del 192.0.2.0/24");
    follower.until_path("192.0.2.0/24", None);
    namespace.ip("route add 192.0.2.0/24 via inet6 2001:db8:9::2 dev a0");
    follower.until_path("192.0.2.0/24", Some(&path("2001:db8:9::2")));

    namespace.ip("-6 route add 2001:db8:1::/48 via 2001:db8:9::2");
    follower.until_path("2001:db8:1::/48", Some(&path("2001:db8:9::2")));
    namespace.ip("-6 route append 2001:db8:1::/48 via 2001:db8:9::3");
    let group = format!("{}, {}", path("2001:db8:9::2"), path("2001:db8:9::3"));
    follower.until_path("2001:db8:1::/48", Some(&group));
    namespace.ip("-6 route del 2001:db8:1::/48 via 2001:db8:9::2");
    follower.until_path("2001:db8:1::/48", Some(&path("2001:db8:9::3")));
    namespace.ip("-6 route del 2001:db8:1::/48");
    follower.until_path("2001:db8:1::/48", None);
    let status = follower.feed.status();
    assert_eq!((status.overruns, status.resyncs), (0, 0));
}

#[test]
fn next_hop_objects_change_their_routes() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    if namespace.try_ip("nexthop add id 1 via 10.9.0.2 dev a0").is_err() {
        println!("skipped: the kernel or `ip` has no next-hop objects");
        return;
    }
    namespace.ip("nexthop add id 2 via 10.9.0.3 dev a0");
    namespace.ip("nexthop add id 10 group 1,3/2,1");
    namespace.ip("route add 192.0.2.0/24 nhid 10");
    let mut follower = follow(&namespace);
    let a0 = follower.link("a0").unwrap().index;
    let group = |second: &str| format!("via 10.9.0.2 interface {a0} weight 3, via {second} interface {a0}");
    assert_eq!(follower.model.path("192.0.2.0/24"), Some(group("10.9.0.3").as_str()));
    namespace.ip("route add 198.51.100.0/24 nhid 2");
    follower.until_path("198.51.100.0/24", Some(&format!("via 10.9.0.3 interface {a0}")));
    namespace.ip("nexthop replace id 2 via 10.9.0.7 dev a0");
    follower.until_path("198.51.100.0/24", Some(&format!("via 10.9.0.7 interface {a0}")));
    follower.until_path("192.0.2.0/24", Some(&group("10.9.0.7")));
    // The kernel deletes the routes of an object without a word.
    namespace.ip("nexthop del id 2");
    follower.until_path("198.51.100.0/24", None);
    follower.until_path("192.0.2.0/24", Some(&format!("via 10.9.0.2 interface {a0} weight 3")));
    namespace.ip("nexthop del id 10");
    follower.until_path("192.0.2.0/24", None);
}

#[test]
fn links_addresses_and_neighbours_come_and_go() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    let mut follower = follow(&namespace);
    let a0 = follower.link("a0").unwrap().clone();
    assert_eq!((a0.mac, a0.mtu), (Some(Mac([2, 0, 0, 0, 0, 0xa0])), 1500));
    assert!(a0.up && follower.link("lo").unwrap().loopback);
    for address in ["10.9.0.1/24", "2001:db8:9::1/64", "127.0.0.1/8"] {
        assert!(follower.addresses.iter().any(|other| other == address), "{:?}", follower.addresses);
    }
    namespace.ip("neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev a0");
    let neighbour: IpAddr = "10.9.0.2".parse().unwrap();
    follower.until("a neighbour", |follower| {
        follower.neighbours.get(&neighbour).and_then(Neighbour::usable) == Some(Mac([2, 0, 0, 0, 0, 2]))
    });
    namespace.ip("link set a0 mtu 9000");
    follower.until("the MTU", |follower| follower.link("a0").is_some_and(|link| link.mtu == 9000));
    namespace.ip("addr add 10.9.1.1/24 dev a0");
    follower.until("an address", |follower| follower.addresses.contains(&"10.9.1.1/24".to_owned()));
    namespace.ip("neigh del 10.9.0.2 dev a0");
    follower.until("its end", |follower| !follower.neighbours.contains_key(&neighbour));

    namespace.ip("route add 192.0.2.0/24 via 10.9.0.2");
    follower.until("a route", |follower| follower.model.path("192.0.2.0/24").is_some());
    namespace.ip("link set a0 down");
    follower.until("the link down", |follower| !follower.link("a0").unwrap().up);
    follower.until("the route's end", |follower| follower.model.path("192.0.2.0/24").is_none());
    assert!(follower.feed.status().resyncs > 0 || follower.seen.contains(&Change::Resynced(Reason::Silence)));
    namespace.ip("link del a0");
    follower.until("the link's end", |follower| follower.link("a0").is_none());
    follower.until("its address's end", |follower| !follower.addresses.contains(&"10.9.0.1/24".to_owned()));
}

#[test]
fn a_hop_dies_and_revives_with_its_link() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    namespace.ip("link add c0 type veth peer name c1");
    namespace.ip("addr add 10.10.0.1/24 dev c0");
    namespace.ip("link set c0 up");
    namespace.ip("link set c1 up");
    namespace.ip("route add 192.0.2.0/24 nexthop via 10.9.0.2 nexthop via 10.10.0.2");
    let mut follower = follow(&namespace);
    let [a0, c0] = ["a0", "c0"].map(|name| follower.link(name).unwrap().index);
    let path = |dead| format!("via 10.9.0.2 interface {a0}{dead}, via 10.10.0.2 interface {c0}");
    assert_eq!(follower.model.path("192.0.2.0/24"), Some(path("").as_str()));
    // The kernel tells neither.
    namespace.ip("link set a0 down");
    follower.until_path("192.0.2.0/24", Some(&path(" dead")));
    namespace.ip("link set a0 up");
    follower.until_path("192.0.2.0/24", Some(&path("")));
}

#[test]
fn a_neighbour_that_answers_is_learned() {
    let (Some(one), Some(two)) = (Namespace::new(), Namespace::new()) else { return };
    one.ip(&format!("link add a0 type veth peer name b0 netns {}", two.name));
    two.ip("link set b0 address 02:00:00:00:00:b0");
    one.ip("addr add 10.9.0.1/24 dev a0");
    two.ip("addr add 10.9.0.2/24 dev b0");
    one.ip("link set a0 up");
    two.ip("link set b0 up");
    let mut follower = follow(&one);
    one.inside(|| std::net::UdpSocket::bind("10.9.0.1:0").unwrap().send_to(b"who", "10.9.0.2:9").unwrap());
    let neighbour: IpAddr = "10.9.0.2".parse().unwrap();
    follower.until("the neighbour", |follower| {
        follower.neighbours.get(&neighbour).and_then(Neighbour::usable) == Some(Mac([2, 0, 0, 0, 0, 0xb0]))
    });
}

#[test]
fn a_vrf_is_told_with_its_members() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    if namespace.try_ip("link add red type vrf table 77").is_err() {
        println!("skipped: the kernel has no VRFs");
        return;
    }
    namespace.ip("link set red up");
    namespace.ip("link set a0 master red");
    let follower = follow(&namespace);
    let red = follower.link("red").unwrap();
    assert_eq!(red.vrf, Some(TableId(77)));
    let a0 = follower.link("a0").unwrap();
    assert_eq!((a0.master, a0.vrf), (Some(red.index), Some(TableId(77))));
    assert!(follower.model.routes.contains_key("77 10.9.0.0/24"));
}

#[test]
fn a_namespace_that_is_not_there_ends_the_feed() {
    let feed = kernel::follow(kernel::Options::in_namespace("no such namespace")).unwrap();
    let error = feed.recv().unwrap_err().to_string();
    assert!(error.contains("no such namespace"), "{error}");
}

#[test]
fn rules_come_and_go() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.ip("rule add from 10.0.0.0/8 iif a0 lookup 300");
    let mut follower = follow(&namespace);
    let rules = |follower: &Follower| -> Vec<String> {
        let of = |change: &Change| match change {
            Change::Rule(rule) => Some(rule.to_string()),
            Change::RuleGone(rule) => Some(format!("gone {rule}")),
            _ => None,
        };
        follower.seen.iter().filter_map(of).collect()
    };
    let first = rules(&follower);
    assert!(first.contains(&"IPv4 32765: from 10.0.0.0/8 iif a0 lookup 300".to_owned()), "{first:?}");
    assert!(first.contains(&"IPv6 32766: from all lookup main".to_owned()), "{first:?}");
    namespace.ip("-6 rule add to 2001:db8::/32 prohibit pref 7");
    namespace.ip("rule del from 10.0.0.0/8 iif a0 lookup 300");
    let expected =
        ["IPv6 7: from all to 2001:db8::/32 prohibit", "gone IPv4 32765: from 10.0.0.0/8 iif a0 lookup 300"];
    follower.until("both", |follower| rules(follower) == expected);
}
