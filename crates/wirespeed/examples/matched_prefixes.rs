//! What the matched prefix costs: lookups of next hops beside lookups of next hops with prefix lengths.
//!
//! `cargo run --release -p wirespeed --example matched_prefixes -- [FILE OF ROUTES]…`
//!
//! Without a file it takes full synthetic tables of both families. Keys are two million distinct addresses,
//! random ones and ones drawn by prefix, in batches of 1,024 on one core. Rates are in M lookups/s, the
//! median and the best of 15 interleaved rounds. All answers are compared with the routes first.

use std::hint::black_box;
use std::time::Instant;

use wirespeed::engine::Addresses;
use wirespeed::fib::read::{ReadOptions, Source, read_fib};
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::fib::trace::{TraceKind, keys};
use wirespeed::{Family, Fib, NextHop, Prefix, Rib, Table};

const KEYS: usize = 2_000_000;
const BATCH: usize = 1024;
const ROUNDS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    println!("| table | traffic | engines | next hops | of a table with prefixes | with lengths | share |");
    println!("|---|---|---|---|---|---|---|");
    if files.is_empty() {
        let fib = synth::fib(Some(&TableSpec::full(Family::V4)), Some(&TableSpec::full(Family::V6)))?;
        return measure("synthetic", fib);
    }
    for file in files {
        let (fib, _) = read_fib(&Source::Path(file.clone().into()), &ReadOptions::default())?;
        measure(&file.to_string_lossy(), fib)?;
    }
    Ok(())
}

fn measure(name: &str, fib: Fib) -> Result<(), Box<dyn std::error::Error>> {
    family(&format!("{name}, IPv4"), fib.v4)?;
    family(&format!("{name}, IPv6"), fib.v6)
}

fn family<A: Addresses>(name: &str, rib: Rib<A>) -> Result<(), Box<dyn std::error::Error>> {
    if rib.is_empty() {
        return Ok(());
    }
    let plain = Table::builder().rib(rib.clone()).build()?;
    let with = Table::builder().rib(rib.clone()).prefix_lookups().build()?;
    for (traffic, kind) in [("random", TraceKind::Random), ("by prefix", TraceKind::Prefix)] {
        let keys = keys(&rib, kind, KEYS, 7)?;
        let (reader, of_pairs) = (plain.reader(), with.reader());
        let (mut next_hops, mut lengths) = (vec![NextHop::NONE; BATCH], vec![0; BATCH]);
        for &key in keys.iter().step_by(97) {
            let right = rib.longest_match(key);
            assert_eq!(of_pairs.lookup_prefix(key)?, right);
            of_pairs.lookup_prefixes(&[key], &mut next_hops[..1], &mut lengths[..1])?;
            let found = next_hops[0].is_some().then(|| (Prefix::around(key, lengths[0]), next_hops[0]));
            assert_eq!((found, reader.lookup(key)), (right, right.map_or(NextHop::NONE, |(_, n)| n)));
        }
        let mut rates = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            rates[0].push(rate(&keys, |keys| reader.lookup_batch(keys, &mut next_hops[..keys.len()])));
            rates[1].push(rate(&keys, |keys| of_pairs.lookup_batch(keys, &mut next_hops[..keys.len()])));
            rates[2].push(rate(&keys, |keys| {
                let (next_hops, lengths) = (&mut next_hops[..keys.len()], &mut lengths[..keys.len()]);
                of_pairs.lookup_prefixes(keys, next_hops, lengths).expect("the table gives prefixes");
            }));
            black_box((&next_hops, &lengths));
        }
        let [plain_rate, pairs_rate, lengths_rate] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            (rates[ROUNDS / 2], rates[ROUNDS - 1])
        });
        let cell = |(median, best): (f64, f64)| format!("{median:.0} ({best:.0})");
        let engines = format!("{}, {}", plain.engine(), with.engine());
        let share = lengths_rate.0 / plain_rate.0;
        println!(
            "| {name} | {traffic} | {engines} | {} | {} | {} | {share:.2} |",
            cell(plain_rate),
            cell(pairs_rate),
            cell(lengths_rate)
        );
    }
    Ok(())
}

/// The rate of a pass over all keys, in M lookups/s, after a shorter pass that brings the table into the
/// caches.
fn rate<A>(keys: &[A], mut lookup: impl FnMut(&[A])) -> f64 {
    keys[..keys.len() / 4].chunks(BATCH).for_each(&mut lookup);
    let began = Instant::now();
    keys.chunks(BATCH).for_each(&mut lookup);
    keys.len() as f64 / began.elapsed().as_secs_f64() / 1e6
}
