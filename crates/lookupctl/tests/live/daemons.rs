//! FRR and GoBGP that give the router its routes, where they are installed.

use std::{fs, thread};

use wirespeed_netns::{Daemon, Frr};

use crate::world::{Router, World};

/// A router between the hosts, which nobody else forwards for. Its source of routes starts once it listens at
/// a port, which is given as the kernel writes it.
fn router(world: &World, feed: &str, port: &str, start: impl FnOnce()) -> Option<Router> {
    let router = thread::scope(|scope| {
        let router = scope.spawn(|| world.router(&format!("--feed {feed}")));
        let listens = || world.read("r", "/proc/net/tcp").unwrap().contains(port);
        // A router that may not forward ends instead.
        World::until(|| listens() || router.is_finished());
        start();
        router.join().unwrap()
    })?;
    world.forward("r", false).unwrap();
    Some(router)
}

fn pings(world: &World, address: &str) -> bool {
    world.pings("a", address).unwrap()
}

/// A host behind `b`, and the routes to it: one comes and one goes while the router runs.
fn follows(world: &World, router: Router, source: &str, announce: impl Fn(), withdraw: impl Fn()) {
    assert!(World::until(|| pings(world, "172.16.0.1")), "{}", router.said());
    assert!(!pings(world, "172.20.0.1"), "nobody told such a route");
    announce();
    assert!(World::until(|| pings(world, "172.20.0.1")), "{}", router.said());
    withdraw();
    assert!(World::until(|| !pings(world, "172.16.0.1")), "{}", router.said());
    assert!(pings(world, "172.20.0.1"), "{}", router.said());
    let report = router.stop();
    let state = &report["sources"][1];
    assert_eq!((&state["source"], &state["violations"]), (&source.into(), &0.into()), "{report}");
    assert!(state["stale_s"].is_null() && state["synced"] == true, "{report}");
    assert!(report["frames_out"].as_u64().unwrap() >= 6, "{report}");
}

fn world() -> Option<World> {
    let world = World::new(&["a", "b"])?;
    for address in ["172.16.0.1", "172.20.0.1"] {
        world.ip("b", &format!("addr add {address}/32 dev lo"));
    }
    Some(world)
}

#[test]
fn frr_gives_the_routes_by_fpm() {
    let Some(world) = world() else { return };
    let Some(mut frr) = Frr::or_skip(&world, "r") else { return };
    let start = || {
        let fpm = "fpm address 127.0.0.1 port 2620\n";
        frr.start("zebra", &["-M", "dplane_fpm_nl"], fpm).unwrap();
        frr.start("staticd", &[], "ip route 172.16.0.0/16 10.0.2.2\n").unwrap();
    };
    let source = "fpm:127.0.0.1:2620";
    let Some(router) = router(&world, source, ":0A3C ", start) else { return };
    let tell = |line: &str| drop(frr.tell(&["configure terminal", line]).unwrap());
    let announce = || tell("ip route 172.20.0.0/16 10.0.2.2");
    follows(&world, router, source, announce, || tell("no ip route 172.16.0.0/16 10.0.2.2"));
}

#[test]
fn gobgp_gives_the_routes_by_bmp() {
    let Some(world) = world() else { return };
    if World::bare_with(&[], &["gobgpd", "gobgp"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gobgpd.toml");
    let configuration = "[global.config]\nas = 64497\nrouter-id = \"10.0.2.1\"\n\
        [[bmp-servers]]\n[bmp-servers.config]\naddress = \"127.0.0.1\"\nport = 11019\n\
        route-monitoring-policy = \"all\"\n";
    fs::write(&file, configuration).unwrap();
    let tell = |words: &str| {
        let words: Vec<&str> = ["gobgp", "global", "rib"].into_iter().chain(words.split(' ')).collect();
        assert!(World::until(|| world.run("r", &words).is_ok()), "{words:?}");
    };
    let mut gobgpd = None;
    let start = || {
        let mut command = world.command("r", "gobgpd");
        gobgpd = Some(Daemon::start(command.args(["-t", "toml", "-f"]).arg(&file)).unwrap());
        tell("add 172.16.0.0/16 nexthop 10.0.2.2");
    };
    let source = "bmp:127.0.0.1:11019";
    let Some(router) = router(&world, source, ":2B0B ", start) else { return };
    let of = |name: &str| world.metrics()[&format!("wirespeed_source_{name}{{source=\"{source}\"}}")];
    assert_eq!((of("routers"), of("peers_up")), (1.0, 1.0));
    let announce = || tell("add 172.20.0.0/16 nexthop 10.0.2.2");
    follows(&world, router, source, announce, || tell("del 172.16.0.0/16"));
    drop(gobgpd);
}
