//! Rates through the kernel and through each driver, in one run.

use std::time::{Duration, Instant};

use crate::world::World;

/// Seconds of each measurement.
const SECONDS: f64 = 2.0;

/// Frames a second that arrive at the right: sent ones too.
fn rate(world: &World) -> (f64, String) {
    let (from, to) = (world.mac("left", "hl"), world.mac("middle", "ml"));
    let sender = world.start("left", &format!("blast hl {from} {to} {SECONDS}"));
    // The first moments, in which queues fill, are left out.
    std::thread::sleep(Duration::from_millis(300));
    let (before, start) = (world.counter("right", "hr", "rx_packets"), Instant::now());
    std::thread::sleep(Duration::from_secs_f64(SECONDS - 0.6));
    let arrived = world.counter("right", "hr", "rx_packets") - before;
    let arrived = arrived as f64 / start.elapsed().as_secs_f64();
    let said = sender.finish();
    let sent = said.lines().find(|line| line.starts_with("sent")).expect("a rate").to_owned();
    (arrived, sent)
}

/// Prints the rates of the kernel and of every driver, thrice in turns.
#[test]
fn rates_of_the_kernel_and_of_each_driver() {
    if std::env::var("WIRESPEED_TESTS").as_deref() != Ok("long") {
        println!("skipped: rates are measured with WIRESPEED_TESTS=long");
        return;
    }
    for round in 0..3 {
        for driver in ["kernel", "native", "skb", "packet", "packet-bypass"] {
            let Some(world) = World::new() else { return };
            let right = world.mac("right", "hr");
            world.ip("middle", &format!("neigh add 10.0.2.99 lladdr {right} dev mr"));
            world.kernel_forwards(!driver.starts_with("packet"));
            let forwarder = (driver != "kernel").then(|| world.start("middle", &world.forwarder(driver)));
            let (arrived, sent) = rate(&world);
            assert!(arrived > 0.0, "{driver}: nothing arrived");
            println!("round {round}: {driver}: {:.3} Mpps arrived ({sent})", arrived / 1e6);
            if let Some(forwarder) = forwarder {
                let said = forwarder.finish();
                let last = said.lines().rfind(|line| line.starts_with("forwarded")).unwrap_or_default();
                println!("round {round}: {driver}: {last}");
            }
        }
    }
}
