//! Messages of BMP.

use wirespeed_feeds::{Recorded, Skip, bmp};

use crate::model::Model;
use crate::senders::bmp::{LOC_RIB, Peer, announced, initiation, withdrawn};

struct Router {
    recorded: Recorded,
    model: Model,
}

impl Router {
    fn new(options: bmp::Options) -> Self {
        let mut router = Self { recorded: Recorded::bmp(options), model: Model::default() };
        router.say(&initiation("r1"));
        router
    }

    fn say(&mut self, message: &[u8]) -> usize {
        let changes = self.recorded.read(message).unwrap();
        self.model.apply(&changes);
        changes.len()
    }
}

#[test]
fn the_shortest_as_path_then_the_lowest_peer_wins() {
    let mut router = Router::new(bmp::Options::default());
    let (one, two) = (Peer::new("10.0.0.1", 65_001), Peer::new("10.0.0.2", 65_002));
    router.say(&[one.up(false), two.up(false)].concat());
    router.say(&two.announce(&["192.0.2.0/24"], "10.0.0.2", &[65_002, 65_009]));
    router.say(&one.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001, 65_003, 65_009]));
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.2, AS65009"));
    router.say(&one.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001, 65_009]));
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.1, AS65009"));
    router.say(&one.down());
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.2, AS65009"));
    router.say(&two.withdraw(&["192.0.2.0/24"]));
    assert!(router.model.routes.is_empty());
}

#[test]
fn the_better_view_counts() {
    let mut router = Router::new(bmp::Options::default());
    let peer = Peer::new("2001:db8::1", 65_001);
    router.say(&peer.up(false));
    router.say(&peer.announce(&["2001:db8:1::/48", "2001:db8:2::/48"], "2001:db8::1", &[65_001]));
    assert_eq!(router.model.routes.len(), 2);
    router.say(&peer.post_policy().announce(&["2001:db8:2::/48"], "2001:db8::9", &[65_001]));
    assert_eq!(router.model.path("2001:db8:2::/48"), Some("via 2001:db8::9, AS65001"));
    assert_eq!(router.model.routes.len(), 1);
    // GoBGP sends its choice without a Peer Up.
    router.say(&LOC_RIB.announce(&["2001:db8:3::/48"], "2001:db8::7", &[65_001]));
    assert_eq!(router.model.path("2001:db8:3::/48"), Some("via 2001:db8::7, AS65001"));
    assert_eq!(router.model.routes.len(), 1);
    router.say(&LOC_RIB.down());
    assert_eq!(router.model.path("2001:db8:2::/48"), Some("via 2001:db8::9, AS65001"));
    router.say(&peer.down());
    assert!(router.model.routes.is_empty());
}

#[test]
fn path_identifiers_are_read_where_they_are_agreed_on() {
    let mut router = Router::new(bmp::Options::default());
    let peer = Peer::new("10.0.0.1", 65_001);
    router.say(&peer.up(true));
    for (identifier, as_path) in [(1, &[65_001, 65_009][..]), (2, &[65_001])] {
        router.say(&peer.routes(&announced(&["192.0.2.0/24"], Some(identifier), "10.0.0.1", as_path)));
    }
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.1, AS65001"));
    router.say(&peer.routes(&withdrawn(&["192.0.2.0/24"], Some(2))));
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.1, AS65009"));
    router.say(&peer.routes(&withdrawn(&["192.0.2.0/24"], Some(1))));
    assert!(router.model.routes.is_empty());
}

#[test]
fn path_identifiers_are_found_where_nobody_told_of_them() {
    for identifier in [0, 1, 7, 255, 256, 65_535] {
        let mut router = Router::new(bmp::Options::default());
        let routes = ["192.0.2.0/24", "10.0.0.0/8", "0.0.0.0/0", "198.51.100.77/32"];
        router.say(&LOC_RIB.up(false));
        router.say(&LOC_RIB.routes(&announced(&routes, Some(identifier), "10.0.0.1", &[65_001])));
        assert_eq!(router.model.routes.len(), 4, "{identifier}");
        router.say(&LOC_RIB.routes(&withdrawn(&routes, Some(identifier))));
        assert!(router.model.routes.is_empty(), "{identifier}");
    }
}

#[test]
fn a_default_route_without_an_identifier_stays_one() {
    let mut router = Router::new(bmp::Options::default());
    router.say(&LOC_RIB.announce(&["0.0.0.0/0"], "10.0.0.1", &[65_001]));
    router.say(&LOC_RIB.announce(&["10.0.0.0/8", "10.1.0.0/16"], "10.0.0.1", &[65_001]));
    assert_eq!(router.model.routes.len(), 3);
}

#[test]
fn ipv4_routes_may_have_ipv6_next_hops_and_no_as() {
    let mut router = Router::new(bmp::Options::default());
    router.say(&LOC_RIB.announce(&["192.0.2.0/24"], "2001:db8::1", &[]));
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 2001:db8::1, AS64496"));
}

#[test]
fn a_selected_peer_or_view_is_the_only_one() {
    let mut options = bmp::Options::default();
    options.peer = Some("10.0.0.2".parse().unwrap());
    options.view = Some(bmp::View::PostPolicy);
    let mut router = Router::new(options);
    let (one, two) = (Peer::new("10.0.0.1", 65_001), Peer::new("10.0.0.2", 65_002));
    // The header of Peer Up says nothing of views; routers leave its flag as it is.
    router.say(&[one.up(false), two.up(false)].concat());
    router.say(&one.post_policy().announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001]));
    router.say(&two.announce(&["192.0.2.0/24"], "10.0.0.3", &[65_002]));
    assert!(router.model.routes.is_empty());
    router.say(&two.post_policy().announce(&["192.0.2.0/24"], "10.0.0.2", &[65_002]));
    assert_eq!(router.model.path("192.0.2.0/24"), Some("via 10.0.0.2, AS65002"));
}

#[test]
fn what_does_not_come_again_goes() {
    let mut router = Router::new(bmp::Options::default());
    let (one, two) = (Peer::new("10.0.0.1", 65_001), Peer::new("10.0.0.2", 65_002));
    router.say(&[one.up(false), two.up(false)].concat());
    router.say(&one.announce(&["10.1.0.0/16", "10.2.0.0/16"], "10.0.0.1", &[65_001]));
    router.say(&two.announce(&["10.3.0.0/16"], "10.0.0.2", &[65_002]));
    router.recorded.restart();
    assert_eq!(router.say(&one.up(false)), 0);
    assert_eq!(router.say(&one.announce(&["10.2.0.0/16"], "10.0.0.1", &[65_001])), 0);
    let changes = router.recorded.whole();
    router.model.apply(&changes);
    assert_eq!(router.model.routes.keys().collect::<Vec<_>>(), ["10.2.0.0/16"]);
}

#[test]
fn malformed_updates_are_counted_and_routes_over_the_cap() {
    let mut options = bmp::Options::default();
    options.cap = 1;
    let mut router = Router::new(options);
    let mut update = LOC_RIB.announce(&["192.0.2.0/24"], "10.0.0.1", &[65_001]);
    let last = update.len() - 4;
    update[last] = 33; // a prefix of 33 bits
    router.say(&update);
    router.say(&LOC_RIB.announce(&["10.1.0.0/16", "10.2.0.0/16"], "10.0.0.1", &[65_001]));
    let status = router.recorded.status();
    assert_eq!((status.skipped[&Skip::Malformed], status.skipped[&Skip::OverCap]), (1, 1));
    assert_eq!(status.prefixes, 1);
}

#[test]
fn violations_are_told() {
    for (bytes, reason) in [
        (&[4][..], "version"),
        (&[3, 0, 0, 0, 5, 0], "shorter than its header"),
        (&[3, 255, 0, 0, 0, 0], "mebibyte"),
        (&[3, 0, 0, 0, 7, 0, 0], "too early"),
    ] {
        let error = Recorded::bmp(bmp::Options::default()).read(bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
