//! Rates through the kernel and through each driver, in one run.

use crate::world::World;

/// Seconds of each measurement.
const SECONDS: f64 = 1.6;

/// Measurements of each driver.
const ROUNDS: usize = 3;

/// The drivers: the kernel's forwarding, ours, and those of DPDK's testpmd.
const DRIVERS: [&str; 7] =
    ["kernel", "native", "skb", "packet", "packet-bypass", "testpmd-af_packet", "testpmd-af_xdp"];

/// Frames a second that arrive at the right, and what the sender says.
fn rate(world: &World) -> (f64, String) {
    let (from, to) = (world.mac("left", "hl"), world.mac("middle", "ml"));
    let counter = world.start("right", &format!("count hr {}", SECONDS - 0.6));
    let sender = world.start("left", &format!("blast hl {from} {to} {SECONDS} 0"));
    let counted = counter.join();
    let counted = counted.lines().find_map(|line| line.strip_prefix("frames a second: "));
    let arrived: f64 = counted.expect("a rate").parse().expect("a number");
    let said = sender.finish();
    let sent = said.lines().find(|line| line.starts_with("sent")).expect("a rate").to_owned();
    (arrived, sent)
}

/// Prints the rates of the kernel and of every driver: rounds in turns, since a machine's speed drifts, and
/// the medians.
#[test]
fn rates_of_the_kernel_and_of_each_driver() {
    if std::env::var("WIRESPEED_TESTS").as_deref() != Ok("long") {
        println!("skipped: rates are measured with WIRESPEED_TESTS=long");
        return;
    }
    let mut rates = DRIVERS.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (driver, rates) in DRIVERS.into_iter().zip(&mut rates) {
            let Some(mut world) = World::new() else { return };
            world.is_urgent = true;
            rates.extend(measured(&world, driver));
        }
    }
    for (driver, mut rates) in DRIVERS.into_iter().zip(rates) {
        rates.sort_by(f64::total_cmp);
        let Some(median) = rates.get(rates.len() / 2) else { continue };
        println!("{driver}: median {:.3} Mpps of {} rounds", median / 1e6, rates.len());
    }
}

/// The rate of a driver in a world of its own. `None`, and says so, if it can't be had here.
fn measured(world: &World, driver: &str) -> Option<f64> {
    let right = world.mac("right", "hr");
    world.ip("middle", &format!("neigh add 10.0.2.99 lladdr {right} dev mr"));
    // The program leaves nothing to the kernel here. Sockets of packets do.
    world.kernel_forwards(matches!(driver, "kernel" | "native" | "skb"));
    let forwarder = match driver.strip_prefix("testpmd-") {
        _ if driver == "kernel" => None,
        Some(kind) => {
            let testpmd = world.testpmd(kind);
            if testpmd.is_none() {
                println!("skipped: {driver}: DPDK's testpmd is not installed, or does not start");
                return None;
            }
            testpmd
        }
        None => Some(world.start("middle", &world.forwarder(driver))),
    };
    let (arrived, sent) = rate(world);
    assert!(arrived > 0.0 || driver.starts_with("testpmd"), "{driver}: nothing arrived");
    let said = forwarder.map(crate::world::Part::finish).unwrap_or_default();
    let last = said.lines().rfind(|line| line.starts_with("forwarded")).unwrap_or_default();
    println!("{driver}: {:.3} Mpps arrived ({sent}) {last}", arrived / 1e6);
    Some(arrived)
}
