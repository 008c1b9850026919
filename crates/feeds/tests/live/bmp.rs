//! Senders of BMP of our own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use wirespeed_feeds::bmp::{self, Peers};
use wirespeed_feeds::{Change, Monitored, Reason, Skip};

use crate::follower::Follower;
use crate::senders::bmp::{LOC_RIB, Peer, initiation};

fn listen() -> (Follower, Peers) {
    listen_with(|_| {})
}

fn listen_with(set: impl FnOnce(&mut bmp::Options)) -> (Follower, Peers) {
    let mut options = bmp::Options::default();
    options.address.set_port(0);
    options.quiet = Duration::from_millis(300);
    set(&mut options);
    let (feed, peers) = bmp::listen(options).unwrap();
    (Follower::new(feed), peers)
}

fn connect(follower: &Follower, messages: &[Vec<u8>]) -> TcpStream {
    let mut sender = TcpStream::connect(follower.feed.address().unwrap()).unwrap();
    sender.write_all(&messages.concat()).unwrap();
    sender
}

#[test]
fn two_routers_are_told_apart() {
    let (mut follower, peers) = listen();
    let peer = Peer::new("10.0.0.1", 65_001);
    let one = connect(
        &follower,
        &[initiation("one"), peer.up(false), peer.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001])],
    );
    let _two = connect(
        &follower,
        &[initiation("two"), LOC_RIB.announce(&["198.51.100.0/24"], "10.0.0.2", &[65_001])],
    );
    follower.until("both", |follower| follower.model.routes.len() == 2);
    std::thread::sleep(Duration::from_millis(700));
    let list = peers.list();
    let names: Vec<_> = list.iter().map(|peer| (peer.router_name.as_str(), peer.up, peer.routes)).collect();
    assert_eq!(names, [("one", true, 1), ("two", true, 1)]);

    // One router goes, and comes back with another route. The other one is not touched.
    drop(one);
    follower.until("Stale", |follower| matches!(follower.seen.last(), Some(Change::Stale(_))));
    assert_eq!(follower.model.routes.len(), 2);
    let _one = connect(
        &follower,
        &[initiation("one"), peer.up(false), peer.announce(&["203.0.113.0/24"], "10.0.0.1", &[65_001])],
    );
    follower.until("Resynced", |follower| follower.seen.contains(&Change::Resynced(Reason::Reconnected)));
    let prefixes: Vec<&str> = follower.model.routes.keys().map(String::as_str).collect();
    assert_eq!(prefixes, ["198.51.100.0/24", "203.0.113.0/24"]);
    assert_eq!(follower.feed.status().stale_since, None);
}

#[test]
fn nonsense_ends_one_connection() {
    let (mut follower, _) = listen();
    let _good =
        connect(&follower, &[initiation("good"), LOC_RIB.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001])]);
    for nonsense in [b"\x02nonsense".to_vec(), LOC_RIB.up(false), vec![3, 0, 0, 0, 1, 0]] {
        let before = follower.feed.status().violations;
        let _bad = connect(&follower, &[nonsense]);
        follower.until("a violation", |follower| follower.feed.status().violations > before);
    }
    assert_eq!(follower.model.routes.len(), 1);
    assert_eq!(follower.feed.status().stale_since, None);
}

#[test]
fn silent_connections_take_no_place_for_long() {
    let (mut follower, _) = listen_with(|options| options.first_message = Duration::from_millis(500));
    // A router that was there before, and says no more, stays.
    let _good =
        connect(&follower, &[initiation("good"), LOC_RIB.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001])]);
    follower.until("a route", |follower| follower.model.routes.len() == 1);
    // All other places. One sender has begun a message.
    let mut silent: Vec<_> = (0..63).map(|_| connect(&follower, &[])).collect();
    silent[0].write_all(&initiation("half")[..7]).unwrap();
    follower.until("all", |follower| follower.feed.status().connections == 64);
    follower.until("their end", |follower| follower.feed.status().violations == 63);
    assert!(is_ended(&mut silent[0]));
    let status = follower.feed.status();
    assert_eq!((status.violations, status.connections, status.stale_since), (63, 64, None));
}

/// Whether the other side ends a connection.
fn is_ended(sender: &mut TcpStream) -> bool {
    sender.read(&mut [0]).unwrap_or(0) == 0
}

#[test]
fn the_oldest_silent_connection_gives_way_to_a_router() {
    let (mut follower, _) = listen();
    let named =
        |name: &str, prefix: &str| [initiation(name), LOC_RIB.announce(&[prefix], "10.0.0.1", &[65_001])];
    let _good = connect(&follower, &named("good", "192.0.2.0/24"));
    follower.until("a route", |follower| follower.model.routes.len() == 1);
    let mut silent: Vec<_> = (0..63).map(|_| connect(&follower, &[])).collect();
    follower.until("all", |follower| follower.feed.status().connections == 64);
    assert_eq!(follower.feed.status().violations, 0);

    let _late = connect(&follower, &named("late", "198.51.100.0/24"));
    follower.until("both routes", |follower| follower.model.routes.len() == 2);
    assert!(is_ended(&mut silent[0]));
    silent[1].set_nonblocking(true).unwrap();
    let waits = silent[1].read(&mut [0]).unwrap_err();
    assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock, "one had to go");
    let status = follower.feed.status();
    assert_eq!((status.violations, status.connections, status.stale_since), (1, 65, None));

    // A flood of them, with a router in its middle.
    let mut flood: Vec<_> = (0..100).map(|_| connect(&follower, &[])).collect();
    let _last = connect(&follower, &named("last", "203.0.113.0/24"));
    flood.extend((0..40).map(|_| connect(&follower, &[])));
    follower.until("all routes", |follower| follower.model.routes.len() == 3);
    assert_eq!(
        (follower.feed.status().monitored.unwrap().routers, follower.feed.status().stale_since),
        (3, None)
    );
}

#[test]
fn peers_that_go_down_are_told_and_counted() {
    let (mut follower, peers) = listen();
    let (one, two) = (Peer::new("10.0.0.1", 65_001), Peer::new("10.0.0.2", 65_002));
    let up = [
        initiation("r"),
        one.up(false),
        one.announce(&["192.0.2.0/24", "198.51.100.0/24"], "10.0.0.1", &[65_001]),
        two.up(false),
        two.announce(&["203.0.113.0/24"], "10.0.0.2", &[65_002]),
    ];
    let counts = |follower: &Follower| {
        let Monitored { routers, peers_up, peers_down, ups, downs, .. } =
            follower.feed.status().monitored.unwrap_or_default();
        [routers, peers_up, peers_down, ups, downs]
    };
    let mut sender = connect(&follower, &up);
    follower.until("both", |follower| counts(follower) == [1, 2, 0, 2, 0]);
    sender.write_all(&[one.down(), one.down()].concat()).unwrap();
    follower.until("one", |follower| counts(follower) == [1, 1, 1, 2, 1]);
    follower.until("its routes", |follower| follower.model.routes.len() == 1);
    assert_eq!(follower.feed.status().skipped[&Skip::UnknownPeer], 1, "it was down already");
    let is_told = || {
        let list: Vec<_> =
            peers.list().into_iter().map(|peer| (peer.asn, peer.up, peer.active, peer.routes)).collect();
        list == [(65_002, true, true, 1), (65_001, false, false, 0)]
    };
    follower.until("the list", |_| is_told());
    // The router is lost: its other peer's routes stay.
    drop(sender);
    follower.until("its loss", |follower| counts(follower) == [0, 0, 2, 2, 2]);
    assert_eq!(follower.model.routes.len(), 1);
    let _sender = connect(&follower, &up);
    follower.until("its return", |follower| counts(follower) == [1, 2, 0, 4, 2]);
    follower.until("all routes", |follower| follower.model.routes.len() == 3);
}
