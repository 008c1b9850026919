//! Forwarding while thousands of routes change each second: memory stays flat, and no frame is lost track of.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::traffic::{Sender, Sink};
use crate::world::World;

/// Routes that change in a round.
const ROUTES: u32 = 4000;
/// Rounds of the quick test: two before memory is looked at, and the others after that.
const ROUNDS: u32 = 5;
/// Bytes that memory may grow: allocators keep some of what they get.
const GROWTH: u64 = 24 << 20;

/// Commands that give all routes this next hop.
fn all_via(gateway: &str) -> String {
    let mut lines = String::new();
    for route in 0..ROUTES {
        let (high, low) = (route / 250, route % 250);
        writeln!(lines, "route replace 10.{}.{low}.0/24 via {gateway}", 100 + high).unwrap();
    }
    lines
}

#[test]
fn routes_change_by_the_thousand_and_memory_stays_flat() {
    let soak =
        std::env::var("WIRESPEED_SOAK").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let Some(world) = World::new(&["a", "b", "c"]) else { return };
    let Some(router) = world.router("") else { return };
    let sinks = [("b", "10.0.2.2"), ("c", "fd03::2")].map(|(at, to)| Sink::start(&world, at, to));
    let senders = ["10.0.2.2", "fd03::2"].map(|to| Sender::start(&world, "a", to, 800));
    // Until a neighbour is resolved, which takes a second if its first answer is lost, datagrams are, too.
    assert!(sinks.iter().all(|sink| sink.gets(20)), "{}", router.said());
    let before: u64 = senders.iter().map(Sender::sent).sum();
    let start = Instant::now();
    let (mut rounds, mut settled, mut highest) = (0, 0, 0);
    while rounds < ROUNDS || soak.is_some_and(|soak| start.elapsed() < soak) {
        world.batch("r", &all_via(if rounds % 2 == 0 { "10.0.2.2" } else { "10.0.3.2" }));
        for (at, sink) in sinks.iter().enumerate() {
            assert!(sink.gets(20), "round {rounds}: host {at} gets nothing: {}", router.said());
        }
        rounds += 1;
        if rounds == 2 {
            settled = router.resident();
        }
        highest = highest.max(router.resident());
    }
    let seconds = start.elapsed().as_secs_f64();
    let changes = f64::from(rounds * ROUTES) / seconds;
    println!(
        "{changes:.0} changes a second for {seconds:.1} s, memory {} MiB, then {} MiB at most",
        settled >> 20,
        highest >> 20
    );
    assert!(highest < settled + GROWTH, "memory grew from {settled} to {highest} bytes");
    let sent: u64 = senders.map(Sender::finish).iter().sum();
    let came = || sinks.iter().map(Sink::count).sum::<u64>();
    // Datagrams are lost where the machine is too busy to take them, in the kernel before the router or
    // behind it.
    let least = (sent - before) * 9 / 10;
    assert!(World::until(|| came() >= least), "{} of {sent}, {before} of them before", came());
    let report = router.stop();
    println!("{} of {sent} datagrams came: {report}", came());
    assert!(report["frames_out"].as_u64().unwrap() >= least, "{report}");
}
