//! FRR and GoBGP in namespaces, where they are installed.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use wirespeed_feeds::{bmp, fpm};
use wirespeed_netns::Daemon;

use crate::follower::Follower;
use crate::namespace::Namespace;

#[test]
fn frr_sends_its_routes_by_fpm() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    let Some(mut frr) = namespace.frr() else { return };
    let mut options = fpm::Options::default();
    options.first_quiet = Duration::from_secs(2);
    // FRR connects within the namespace: listen there, and first.
    let feed = namespace.inside(move || fpm::listen(options)).unwrap();
    let mut follower = Follower::new(feed);
    frr.start("zebra", &["-M", "dplane_fpm_nl"], "fpm address 127.0.0.1 port 2620\n").unwrap();
    frr.start(
        "staticd",
        &[],
        "ip route 192.0.2.0/24 10.9.0.2\n\
         ip route 198.51.100.0/24 10.9.0.2\n\
         ip route 198.51.100.0/24 10.9.0.3\n\
         ip route 203.0.113.0/24 blackhole\n\
         ipv6 route 2001:db8:1::/48 2001:db8:9::2\n",
    )
    .unwrap();
    let a0 = namespace.inside(|| fs::read_to_string("/proc/self/net/dev")).is_ok();
    assert!(a0);
    follower.until("FRR's routes", |follower| {
        ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8:1::/48"]
            .iter()
            .all(|prefix| follower.model.path(prefix).is_some())
    });
    let path = |follower: &Follower, prefix| follower.model.path(prefix).unwrap_or_default().to_owned();
    assert!(path(&follower, "192.0.2.0/24").starts_with("via 10.9.0.2 interface "));
    assert_eq!(path(&follower, "198.51.100.0/24").matches("via 10.9.0.").count(), 2);
    assert_eq!(path(&follower, "203.0.113.0/24"), "blackhole");
    follower.until("Synced", |follower| follower.feed.status().synced);

    // zebra is killed: its routes stay. A new one knows no static routes.
    frr.stop();
    follower.until("Stale", |follower| follower.feed.status().stale_since.is_some());
    assert!(follower.model.path("192.0.2.0/24").is_some());
    // `-r` keeps the routes in the kernel, without it zebra sweeps those of the old one.
    frr.start("zebra", &["-M", "dplane_fpm_nl"], "fpm address 127.0.0.1 port 2620\n").unwrap();
    follower.until("Resynced", |follower| follower.feed.status().resyncs > 0);
    assert_eq!(follower.model.path("198.51.100.0/24"), None);
    assert!(follower.model.path("10.9.0.0/24").is_some());
    let status = follower.feed.status();
    assert_eq!((status.violations, status.stale_since), (0, None), "{status:?}");
}

#[test]
fn frr_and_gobgp_send_their_routes_by_bmp() {
    let (Some(one), Some(two)) = (Namespace::new(), Namespace::new()) else { return };
    if Command::new("gobgpd").arg("--version").output().is_err() {
        println!("skipped: GoBGP is not installed");
        return;
    }
    let Some(mut frr) = one.frr() else { return };
    one.ip(&format!("link add a0 type veth peer name b0 netns {}", two.name));
    one.ip("addr add 10.9.0.1/24 dev a0");
    two.ip("addr add 10.9.0.2/24 dev b0");
    one.ip("link set a0 up");
    two.ip("link set b0 up");
    let listen = || {
        let (feed, peers) = bmp::listen(bmp::Options::default()).unwrap();
        (Follower::new(feed), peers)
    };
    let (mut of_frr, frr_peers) = one.inside(listen);
    let (mut of_gobgp, gobgp_peers) = two.inside(listen);

    frr.start("zebra", &[], "").unwrap();
    frr.start(
        "bgpd",
        &["-M", "bmp", "-l", "10.9.0.1"],
        "router bgp 64496\n bgp router-id 10.9.0.1\n no bgp ebgp-requires-policy\n \
         neighbor 10.9.0.2 remote-as 64497\n bmp targets t\n  \
         bmp connect 127.0.0.1 port 11019 min-retry 500 max-retry 1000\n  \
         bmp monitor ipv4 unicast post-policy\n exit\nexit\n",
    )
    .unwrap();
    let file = frr.folder().join("gobgpd.toml");
    fs::write(
        &file,
        "[global.config]\nas = 64497\nrouter-id = \"10.9.0.2\"\n\
         [[neighbors]]\n[neighbors.config]\nneighbor-address = \"10.9.0.1\"\npeer-as = 64496\n\
         [[bmp-servers]]\n[bmp-servers.config]\naddress = \"127.0.0.1\"\nport = 11019\n\
         route-monitoring-policy = \"all\"\n",
    )
    .unwrap();
    let mut gobgpd = two.command("gobgpd");
    let gobgpd = Daemon::start(gobgpd.args(["-t", "toml", "-f"]).arg(&file)).unwrap();
    let gobgp = |arguments: &str| {
        let end = Instant::now() + Duration::from_secs(20);
        while !two.command("gobgp").args(arguments.split(' ')).output().unwrap().status.success() {
            assert!(Instant::now() < end, "gobgp {arguments}");
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    gobgp("global rib add 100.64.0.0/16 origin igp aspath 65001,65002");
    gobgp("global rib add 100.65.0.0/16");
    gobgp("global rib add -a ipv6 2001:db8:1::/48 nexthop 2001:db8::2");

    of_frr.until_path("100.64.0.0/16", Some("via 10.9.0.2, AS65002"));
    of_frr.until_path("100.65.0.0/16", Some("via 10.9.0.2, AS64497"));
    of_gobgp.until_path("100.64.0.0/16", Some("via 0.0.0.0, AS65002"));
    of_gobgp.until_path("2001:db8:1::/48", Some("via 2001:db8::2, AS64497"));
    gobgp("global rib del 100.65.0.0/16");
    of_frr.until_path("100.65.0.0/16", None);
    of_gobgp.until_path("100.65.0.0/16", None);
    std::thread::sleep(Duration::from_millis(700));
    let views = |peers: &bmp::Peers| -> Vec<_> {
        peers
            .list()
            .iter()
            .filter(|peer| peer.active)
            .map(|peer| (peer.view, peer.up, peer.malformed))
            .collect()
    };
    assert_eq!(views(&frr_peers), [(bmp::View::PostPolicy, true, 0)]);
    assert_eq!(views(&gobgp_peers), [(bmp::View::LocRib, true, 0)]);

    // The session ends, and FRR tells that its peer is down.
    two.ip("link set b0 down");
    drop(gobgpd);
    of_frr.until_path("100.64.0.0/16", None);
    assert_eq!(of_frr.feed.status().violations, 0);
}
