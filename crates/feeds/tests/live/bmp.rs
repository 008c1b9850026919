//! Senders of BMP of our own.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use wirespeed_feeds::bmp::{self, Peers};
use wirespeed_feeds::{Change, Reason};

use crate::follower::Follower;
use crate::senders::bmp::{LOC_RIB, Peer, initiation};

fn listen() -> (Follower, Peers) {
    let mut options = bmp::Options::default();
    options.address.set_port(0);
    options.quiet = Duration::from_millis(300);
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
