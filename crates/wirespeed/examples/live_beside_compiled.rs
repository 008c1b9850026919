//! What it costs that a table takes updates: lookups in a live table beside lookups in a compiled one.
//!
//! `cargo run --release -p wirespeed --example live_beside_compiled -- [FILE OF ROUTES]… [--names FILE…]`
//!
//! Without a file it takes full synthetic tables of both families. Keys are two million distinct addresses,
//! random ones and ones drawn by prefix; or two million names, each of the table with another component
//! behind it. Batches of 1,024 on one core, M lookups/s, the median and the best of 30 interleaved rounds.
//! Both answers are the same.

use std::hint::black_box;
use std::time::Instant;

use wirespeed::engine::{Addresses, Served};
use wirespeed::fib::BuildOptions;
use wirespeed::fib::read::{ReadOptions, Source, read_fib};
use wirespeed::fib::synth::rng::Rng;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::fib::trace::{TraceKind, keys};
use wirespeed::names::NameDomain;
use wirespeed::names::read::{ReadOptions as NameOptions, read_table};
use wirespeed::prelude::*;
use wirespeed::{Family, Fib, Rib, Table};

const KEYS: usize = 2_000_000;
const BATCH: usize = 1024;
const ROUNDS: usize = 30;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    println!("| table | traffic | engine | live | compiled | share |");
    println!("|---|---|---|---|---|---|");
    let (mut files, mut are_names) = (std::env::args().skip(1).peekable(), false);
    if files.peek().is_none() {
        let fib = synth::fib(Some(&TableSpec::full(Family::V4)), Some(&TableSpec::full(Family::V6)))?;
        return both("synthetic", fib);
    }
    for file in files {
        if file == "--names" {
            are_names = true;
        } else if are_names {
            names(&file)?;
        } else {
            both(&file, read_fib(&Source::Path((&file).into()), &ReadOptions::default())?.0)?;
        }
    }
    Ok(())
}

fn both(name: &str, fib: Fib) -> Result<(), Error> {
    routes(&format!("{name}, IPv4"), fib.v4)?;
    routes(&format!("{name}, IPv6"), fib.v6)
}

fn routes<A: Addresses>(name: &str, rib: Rib<A>) -> Result<(), Error> {
    if rib.is_empty() {
        return Ok(());
    }
    let live = Table::builder().rib(rib.clone()).build()?;
    let (compiled, reader) =
        (A::compile(live.engine(), &rib, &BuildOptions::default())??.table, live.reader());
    for (traffic, kind) in [("random", TraceKind::Random), ("by prefix", TraceKind::Prefix)] {
        let keys = keys(&rib, kind, KEYS, 7)?;
        let batches = |found: &mut [NextHop], look_up: &dyn Fn(&[A], &mut [NextHop])| {
            keys.chunks(BATCH).zip(found.chunks_mut(BATCH)).for_each(|(keys, found)| look_up(keys, found));
        };
        let share = measure(
            keys.len(),
            |found| batches(found, &|keys, found| reader.lookup_batch(keys, found)),
            |found| batches(found, &|keys, found| compiled.lookup_batch(keys, A::results(found))),
        );
        println!("| {name} | {traffic} | {} | {share} |", live.engine());
    }
    Ok(())
}

fn names(file: &str) -> Result<(), Error> {
    let (fib, _) =
        read_table(&Source::Path(file.into()), &NameOptions { lenient: true, ..NameOptions::default() })?;
    let all: Vec<NameBuf> = fib.names.iter().map(|(name, _)| name.to_owned()).collect();
    let live = NameTable::builder().rib(fib.names.clone()).build()?;
    let options = BuildOptions::default();
    let (compiled, reader) =
        (NameDomain::compile(live.engine(), &fib.names, &options)??.table, live.reader());
    let mut rng = Rng::new(7);
    let mut batches = Vec::new();
    for _ in 0..KEYS / BATCH {
        let mut batch = NameBatch::new();
        for _ in 0..BATCH {
            batch.push(&NameBuf::new(&format!("{}/q{}", all[rng.index(all.len())], rng.index(1000)))?)?;
        }
        batches.push(batch);
    }
    let each = |found: &mut [NextHop], look_up: &dyn Fn(&NameBatch, &mut [NextHop])| {
        batches.iter().zip(found.chunks_mut(BATCH)).for_each(|(batch, found)| look_up(batch, found));
    };
    let share = measure(
        batches.len() * BATCH,
        |found| each(found, &|batch, found| reader.lookup_batch(batch, found)),
        |found| each(found, &|batch, found| compiled.lookup_batch(batch.into(), NameDomain::results(found))),
    );
    println!("| {file} | names of the table | {} | {share} |", live.engine());
    Ok(())
}

/// The rates of both in cells of a table, and the share of the one in the other.
fn measure(keys: usize, live: impl Fn(&mut [NextHop]), compiled: impl Fn(&mut [NextHop])) -> String {
    let mut found = [vec![NextHop::NONE; keys], vec![NextHop::NONE; keys]];
    let mut rates = [const { Vec::new() }; 2];
    for round in 0..ROUNDS {
        for (at, look_up) in [&live as &dyn Fn(&mut [NextHop]), &compiled].into_iter().enumerate() {
            let began = Instant::now();
            // Each writes to both pieces of memory in turns: one may lie better than the other.
            look_up(black_box(&mut found[(at + round) % 2]));
            rates[at].push(keys as f64 / began.elapsed().as_secs_f64() / 1e6);
        }
        assert!(found[0] == found[1], "both give the same answers");
    }
    let [live, compiled] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        (rates[ROUNDS / 2], rates[ROUNDS - 1])
    });
    let cell = |(median, best): (f64, f64)| format!("{median:.1} ({best:.1})");
    format!("{} | {} | {:.2} ({:.2})", cell(live), cell(compiled), live.0 / compiled.0, live.1 / compiled.1)
}
