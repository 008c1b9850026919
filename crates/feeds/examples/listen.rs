//! Listens for FRR's routes (FPM) or for routers (BMP), and prints what changes.
//!
//! `cargo run --release -p wirespeed-feeds --example listen fpm|bmp [SECONDS [ADDRESS:PORT]]`

use std::time::{Duration, Instant};

use wirespeed_feeds::{Change, Route, bmp, fpm};

/// Changes that are printed of a batch.
const SHOWN: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let protocol = arguments.next();
    let seconds = arguments.next().map_or(Ok(10.0), |seconds| seconds.parse::<f64>())?;
    let address = arguments.next().map(|address| address.parse()).transpose()?;
    let (feed, peers) = match protocol.as_deref() {
        Some("bmp") => {
            let mut options = bmp::Options::default();
            options.address = address.unwrap_or(options.address);
            let (feed, peers) = bmp::listen(options)?;
            (feed, Some(peers))
        }
        _ => {
            let mut options = fpm::Options::default();
            options.address = address.unwrap_or(options.address);
            (fpm::listen(options)?, None)
        }
    };
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        let Some(batch) = feed.recv_timeout(Duration::from_millis(200))? else { continue };
        for change in batch.iter().take(SHOWN) {
            match change {
                Change::Route(Route { table, prefix, path }) => {
                    println!("table {}: {prefix} {path}", table.0);
                }
                Change::RouteGone { table, prefix } => println!("table {}: {prefix} gone", table.0),
                other => println!("{other:?}"),
            }
        }
        if batch.len() > SHOWN {
            println!("and {} more", batch.len() - SHOWN);
        }
    }
    println!("{:?}", feed.status());
    for peer in peers.iter().flat_map(bmp::Peers::list) {
        println!("{peer:?}");
    }
    Ok(())
}
