//! Tables of scattered prefixes, the worst that a routing table can be: build time, memory and rate of one
//! core.
//!
//! ```sh
//! cargo run --release -p wirespeed --example scattered_routes -- 1000000 128
//! ```
//!
//! Arguments: number of routes; their length, of IPv6 unless `--v4` follows; the engine (`auto` where none is
//! given). Routes are random within 2000::/3 (IPv4: anywhere). Keys are half addresses of routes and half
//! random ones of the same range, four million of them, looked up in batches of 1,024. `resident` is the
//! growth of the process by the table, `peak` the largest that it was while it was built (both from Linux).

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use wirespeed::engine::Addresses;
use wirespeed::fib::{Prefix, Update, V4, V6};
use wirespeed::prelude::*;

const KEYS: usize = 4 << 20;
const BATCH: usize = 1_024;
const CALLS: u64 = 200;
const UPDATES: u64 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let v4 = arguments.iter().position(|argument| argument == "--v4").map(|at| arguments.remove(at));
    let count = arguments.first().map_or(Ok(1_000_000), |text| text.parse())?;
    let length = arguments.get(1).map_or(Ok(if v4.is_some() { 32 } else { 128 }), |text| text.parse())?;
    let engine = arguments.get(2).map_or("auto", String::as_str);
    match v4 {
        Some(_) => run::<V4>(count, length, engine, |n| V4((mixed(n) >> 32) as u32)),
        None => run::<V6>(count, length, engine, |n| {
            V6(u128::from(mixed(n) >> 3 | 1 << 61) << 64 | u128::from(mixed(n ^ 1 << 40)))
        }),
    }
}

fn run<A: Addresses>(
    count: u64,
    length: u8,
    engine: &str,
    address: impl Fn(u64) -> A + Copy,
) -> Result<(), Box<dyn Error>> {
    let route = |n| Prefix::around(address(n), length);
    let hop = |n| NextHop(1 + u32::try_from(n % 200).unwrap_or(0));
    let before = kilobytes("VmRSS:");
    let start = Instant::now();
    let routes = (0..count).map(|n| (route(n), hop(n)));
    let mut table = wirespeed::Table::<A>::builder().routes(routes).engine(engine).build()?;
    let seconds = start.elapsed().as_secs_f64();
    let resident = kilobytes("VmRSS:").saturating_sub(before);
    let peak = kilobytes("VmHWM:").saturating_sub(before);
    println!(
        "{count} random /{length} of {}, {}: built in {seconds:.2} s, {:.1} MB held, {:.1} MB resident, {:.1} MB at the peak",
        A::FAMILY,
        table.engine(),
        table.memory_usage() as f64 / 1e6,
        resident as f64 * 1.024e-3,
        peak as f64 * 1.024e-3,
    );

    let reader = table.reader();
    // In an order that has nothing to do with that of the routes.
    let key = |n: u64| match n % 2 {
        0 => address(mixed(n) % count),
        _ => address(n | 1 << 50),
    };
    let keys: Vec<A> = (0..KEYS as u64).map(key).collect();
    let mut found = vec![NextHop::NONE; KEYS];
    let mut rates = Vec::new();
    for _ in 0..7 {
        let start = Instant::now();
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            reader.enter().lookup_batch(black_box(keys), found);
        }
        rates.push(KEYS as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    for (key, &found) in keys.iter().zip(&found).step_by(61) {
        let expected = table.routes().longest_match(*key).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
        assert_eq!(found, expected, "{key}");
    }
    rates.sort_by(f64::total_cmp);
    let hits = found.iter().filter(|found| found.is_some()).count();
    println!(
        "{KEYS} keys, {hits} with a route, in batches of {BATCH}: {:.1} M/s (median of 7, best {:.1})",
        rates[3], rates[6]
    );

    let start = Instant::now();
    for call in 0..CALLS {
        let changes: Vec<_> = (call * UPDATES..(call + 1) * UPDATES)
            .map(|n| match n % 2 {
                0 => Update::withdraw(route(mixed(n) % count)),
                _ => Update::announce(route(n | 1 << 45), hop(n)),
            })
            .collect();
        table.apply(&changes)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{} updates, {UPDATES} a call: {:.2} M/s, {} rebuilds",
        CALLS * UPDATES,
        (CALLS * UPDATES) as f64 / seconds / 1e6,
        table.rebuilds()
    );
    Ok(())
}

/// A number that looks random (SplitMix64's mixing).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// A line of what Linux says of this process; 0 elsewhere.
fn kilobytes(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|text| text.strip_prefix(line));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
