//! Follows the kernel's routes, and prints what changes and what addresses lead to.
//!
//! `cargo run --release -p wirespeed-feeds --example follow_kernel [NAMESPACE [SECONDS [ADDRESS…]]]`
//!
//! `-` is the namespace of the process.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_feeds::{LiveTable, kernel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let options = match arguments.next().as_deref() {
        None | Some("-") => kernel::Options::default(),
        Some(name) => kernel::Options::in_namespace(name),
    };
    let seconds = arguments.next().map_or(Ok(3.0), |seconds| seconds.parse::<f64>())?;
    let addresses = arguments.map(|address| address.parse()).collect::<Result<Vec<IpAddr>, _>>()?;

    let start = Instant::now();
    let feed = kernel::follow(options)?;
    let mut live = LiveTable::of(&feed, Duration::from_secs(60))?;
    println!("{} prefixes after {:.3} s", live.table().len(), start.elapsed().as_secs_f64());
    let reader = live.reader();
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        let known = live.labels().enter();
        for &address in &addresses {
            match known.get(reader.lookup(address)) {
                Some(path) => println!("{address}: {path}"),
                None => println!("{address}: no route"),
            }
        }
        drop(known);
        let mut changed = 0;
        while changed == 0 && Instant::now() < end {
            changed = live.follow(&feed, Duration::from_millis(200))?;
        }
        if changed == 0 {
            break;
        }
        println!("{changed} updates, {} prefixes", live.table().len());
    }
    let status = feed.status();
    println!("{} messages, {} resyncs, {} overruns", status.messages, status.resyncs, status.overruns);
    Ok(())
}
