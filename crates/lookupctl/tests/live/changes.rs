//! Hosts that talk while something changes: a route, a neighbour, an interface, the router itself.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::traffic::{Sender, Sink, transfer};
use crate::world::{DRIVERS, World, drivers};

#[test]
fn hosts_talk_in_both_families_and_metrics_agree_with_the_report() {
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b"]) else { return };
        let options = format!("{driver} --busy-poll --cores {}", allowed_core());
        let Some(router) = world.router(&options) else { return };
        let said = router.said();
        let expected = if driver.ends_with("packet") { "no busy polling" } else { "napi_defer_hard_irqs" };
        assert!(said.contains(expected), "{said}");
        // Nobody has spoken yet, so each neighbour has to be resolved.
        for (from, to) in [("a", ("b", "10.0.2.2")), ("b", ("a", "fd01::2"))] {
            transfer(&world, from, to, 150_000);
            transfer(&world, from, (to.0, if to.1.contains(':') { "10.0.1.2" } else { "fd02::2" }), 150_000);
        }
        assert!(World::until(|| world.metric("frames_out_total") > 200), "{driver}: forwarded here");
        // Once no frame is under way the last page says what the report will.
        let page = settled(&world);
        check(&page, &router.stop());
    }
}

#[test]
fn a_neighbour_that_an_administrator_set_stays() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let Some(world) = World::new(&["a", "b"]) else { return };
    let mac = world.mac("b", "hb").unwrap();
    world.ip("r", &format!("neigh replace 10.0.2.2 lladdr {mac} dev rb nud permanent"));
    let Some(router) = world.router("") else { return };
    let sink = Sink::start(&world, "b", "10.0.2.2");
    let sender = Sender::start(&world, "a", "10.0.2.2", 500);
    assert!(sink.gets(20), "{}", router.said());
    // Longer than two rounds in which the kernel is asked for next hops.
    thread::sleep(Duration::from_millis(2500));
    let seen = world.ip("r", "neigh show 10.0.2.2 dev rb");
    assert!(seen.contains("PERMANENT"), "{seen}");
    assert!(sink.gets(20), "{}", router.said());
    sender.finish();
    sink.finish();
    router.stop();
}

/// Two routers at one interface would send each packet twice, and the first that ends would let the kernel
/// forward again.
#[test]
fn an_interface_is_one_routers_and_routes_that_are_not_followed_are_told() {
    let Some(world) = World::new(&["a", "b"]) else { return };
    world.ip("r", "route add 10.9.0.0/16 tos 0x10 via 10.0.2.2");
    world.ip("r", "route add 10.8.0.0/16 via 10.0.2.2 mtu lock 1300");
    for driver in drivers() {
        let Some(router) = world.router(driver) else { return };
        let said = router.said();
        assert!(said.contains("(`tos`, `from`)") && said.contains("(`mtu`)"), "{said}");
        for second in DRIVERS {
            let second = world
                .command("r", env!("CARGO_BIN_EXE_lookupctl"))
                .args(["route", "--seconds", "1"])
                .args(second.split_whitespace())
                .args(["rb", "ra"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&second.stderr);
            assert_eq!(second.status.code(), Some(2), "{said}");
            assert!(said.contains("rb: another program of this kind forwards here already"), "{said}");
        }
        transfer(&world, "a", ("b", "10.0.2.2"), 50_000);
        router.stop();
    }
}

/// The page of a router that has nothing to do any more: it stays as it is for three reports.
fn settled(world: &World) -> BTreeMap<String, f64> {
    let mut page = world.metrics();
    loop {
        thread::sleep(Duration::from_millis(300));
        let next = world.metrics();
        if next == page {
            return page;
        }
        page = next;
    }
}

/// Checks that a page and a report say the same.
fn check(page: &BTreeMap<String, f64>, report: &Value) {
    let is = |name: &str, value: &Value| {
        let found = page.get(&format!("wirespeed_{name}")).copied().unwrap_or_default();
        let expected = value.as_f64().unwrap_or_default();
        assert!((found - expected).abs() < 0.5, "{name}: {found} and {expected}: {report}");
    };
    for name in ["frames_in", "frames_out"] {
        is(&format!("{name}_total"), &report[name]);
    }
    is("frames_to_kernel_total", &report["to_kernel"]);
    is("frames_to_controller_total", &report["to_controller"]);
    for (reason, count) in report["dropped"].as_object().unwrap() {
        is(&format!("frames_dropped_total{{reason=\"{reason}\"}}"), count);
    }
    for (port, counts) in report["ports"].as_object().unwrap() {
        for name in ["received", "sent", "missed", "refused"] {
            is(&format!("port_frames_{name}_total{{port=\"{port}\"}}"), &counts[name]);
        }
    }
    is("chunk_frames_count{device=\"cpu\"}", &report["chunks"]["cpu"]);
}

/// A core that this process may use.
pub(crate) fn allowed_core() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}

#[test]
fn a_changed_route_is_followed_at_once_and_never_left_again() {
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b", "c"]) else { return };
        for side in ["b", "c"] {
            world.ip(side, "addr add 10.9.0.1/32 dev lo");
        }
        let via = |gateway| world.ip("r", &format!("route replace 10.9.0.0/16 via {gateway}"));
        via("10.0.2.2");
        let Some(router) = world.router(driver) else { return };
        let sinks = ["b", "c"].map(|side| Sink::start(&world, side, "10.9.0.1"));
        let sender = Sender::start(&world, "a", "10.9.0.1", 800);
        assert!(sinks[0].gets(50), "{driver}: {}", router.said());
        // When the first one comes by the new next hop, and how many had come by the old one.
        for (gateway, sink) in [("10.0.3.2", 1), ("10.0.2.2", 0), ("10.0.3.2", 1), ("10.0.2.2", 0)] {
            via(gateway);
            assert!(sinks[sink].gets(50), "{driver}: {gateway}");
        }
        let sent = sender.finish();
        assert!(World::until(|| sinks[0].count() + sinks[1].count() >= sent * 9 / 10), "{driver}");
        let report = router.stop();
        let [b, c] = sinks.map(Sink::finish);
        // Each number came by one next hop, and the changes are as many as the routes': a stale one among
        // those of the next hop after it would be another two.
        let mut all: Vec<(u64, char)> =
            b.iter().map(|&n| (n, 'b')).chain(c.iter().map(|&n| (n, 'c'))).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0].0 < pair[1].0), "{driver}: each came once");
        let changes = all.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        assert_eq!(changes, 4, "{driver}: {report}");
        assert!(report["frames_out"].as_u64().unwrap() > 100, "{driver}: {report}");
    }
}

#[test]
fn a_neighbour_that_moved_is_found_again() {
    for (driver, to) in drivers().zip(["10.0.2.2", "fd02::2"]) {
        let Some(world) = World::new(&["a", "b"]) else { return };
        let Some(router) = world.router(driver) else { return };
        let sink = Sink::start(&world, "b", to);
        let sender = Sender::start(&world, "a", to, 1000);
        assert!(sink.gets(50), "{driver}: {}", router.said());
        // The kernel forgets it: it has to be asked for again.
        world.ip("r", &format!("neigh del {to} dev rb"));
        assert!(sink.gets(50), "{driver}: after it was forgotten: {}", router.said());
        let out = world.metric("frames_out_total");
        world.ip("b", "link set hb address 02:77:00:00:00:0b");
        world.ip("r", &format!("neigh del {to} dev rb"));
        assert!(sink.gets(50), "{driver}: at another address: {}", router.said());
        assert!(World::until(|| world.metric("frames_out_total") > out + 20), "{driver}: forwarded here");
        sender.finish();
        router.stop();
        sink.finish();
    }
}

#[test]
fn interfaces_go_down_and_up_and_change_their_addresses() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    for driver in drivers() {
        let Some(world) = World::new(&["a", "b"]) else { return };
        let Some(router) = world.router(driver) else { return };
        let sink = Sink::start(&world, "b", "10.0.2.2");
        let sender = Sender::start(&world, "a", "10.0.2.2", 1000);
        assert!(sink.gets(50), "{driver}: {}", router.said());
        world.ip("r", "link set rb down");
        let before = (sender.sent(), sink.count());
        assert!(World::until(|| sender.sent() > before.0 + 50));
        // Those that were under way may still come.
        assert!(sink.count() < before.1 + 50, "{driver}: nothing comes through an interface that is down");
        world.ip("r", "link set rb up");
        assert!(sink.gets(50), "{driver}: up again: {}", router.said());
        // The router's own address changes. Frames to the old one are none of its business any more.
        let ours = || world.metric("frames_out_total");
        for address in ["02:77:00:00:00:0a", "02:77:00:00:01:0a"] {
            world.ip("r", &format!("link set ra address {address}"));
            world.ip("a", "neigh flush dev ha");
            assert!(sink.gets(50), "{driver}: at {address}: {}", router.said());
            let out = ours();
            assert!(World::until(|| ours() > out + 50), "{driver}: forwarded here, at {address}");
        }
        sender.finish();
        router.stop();
        sink.finish();
    }
}

#[test]
fn the_kernel_goes_on_when_the_router_is_killed() {
    let Some(world) = World::new(&["a", "b"]) else { return };
    for driver in drivers() {
        let Some(router) = world.router(driver) else { return };
        if router.said().contains("forwards neither") {
            println!("skipped: {driver} switches the kernel's forwarding off before Linux 6.6");
            continue;
        }
        let sink = Sink::start(&world, "b", "10.0.2.2");
        let sender = Sender::start(&world, "a", "10.0.2.2", 800);
        assert!(sink.gets(100), "{driver}: {}", router.said());
        router.kill();
        assert!(sink.gets(200), "{driver}: the kernel forwards");
        println!("{driver}: {} of {} came", sink.count(), sender.finish());
        sink.finish();
    }
}

#[test]
fn a_gateway_that_went_silent_is_found_out() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let Some(world) = World::new(&["a", "b", "c"]) else { return };
    for side in ["b", "c"] {
        world.ip(side, "addr add 10.9.0.1/32 dev lo");
        world.ip(side, "addr add 10.9.0.2/32 dev lo");
    }
    // The kernel doubts neighbours soon, and asks them for a short time.
    let times = [("base_reachable_time_ms", 300), ("delay_first_probe_time", 0), ("retrans_time_ms", 200)];
    for (interface, (name, value)) in ["rb", "rc"].iter().flat_map(|&of| times.map(|time| (of, time))) {
        let path = format!("/proc/sys/net/ipv4/neigh/{interface}/{name}");
        world.run("r", &["sh", "-c", &format!("echo {value} > {path}")]).unwrap();
    }
    world.ip("r", "route add 10.9.0.1/32 via 10.0.2.2");
    world.ip("r", "route add 10.9.0.2/32 nexthop via 10.0.2.2 nexthop via 10.0.3.2");
    let Some(router) = world.router("--driver xdp") else { return };
    let one = Sink::start(&world, "b", "10.9.0.1");
    let both = ["b", "c"].map(|side| Sink::start(&world, side, "10.9.0.2"));
    let senders: Vec<Sender> = (0..16).map(|_| Sender::start(&world, "a", "10.9.0.2", 50)).collect();
    let alone = Sender::start(&world, "a", "10.9.0.1", 200);
    assert!(one.gets(50) && both.iter().all(|sink| sink.gets(50)), "{}", router.said());
    // What the kernel sent itself while it resolved them is long ago: it would leave them stale.
    thread::sleep(Duration::from_millis(1500));
    // The host is there, and says nothing any more: its link stays up.
    world.ip("b", "link set hb arp off");
    world.ip("b", "link set hb address 02:77:00:00:00:0b");
    // The kernel gives it up, and asks for it again with the next packet for it.
    let has_no_address = || !world.ip("r", "neigh show 10.0.2.2 dev rb").contains("lladdr");
    assert!(World::until(has_no_address), "{}", world.ip("r", "neigh show"));
    // Packets whose only next hop it was go to the kernel, which tells the sender.
    let to_kernel = world.metric("frames_to_kernel_total");
    assert!(World::until(|| world.metric("frames_to_kernel_total") > to_kernel + 50), "{}", router.said());
    // Every flow of the other route has the next hop that is left.
    let settled = |sink: &Sink, senders: &[Sender]| {
        let (came, sent) = (sink.count(), senders.iter().map(Sender::sent).sum::<u64>());
        World::until(|| senders.iter().map(Sender::sent).sum::<u64>() > sent + 400);
        sink.count() - came
    };
    assert!(settled(&both[1], &senders) > 360, "{}", router.said());
    // It speaks again, and is asked before long.
    world.ip("b", "link set hb arp on");
    assert!(one.gets(50), "{}", router.said());
    senders.into_iter().chain([alone]).for_each(|sender| _ = sender.finish());
    router.stop();
    both.into_iter().chain([one]).for_each(|sink| drop(sink.finish()));
}
