//! IPv6 tables that grow: the rate by prefix on synthetic tables of several sizes, measured in turns, the
//! bytes of each step of the table, and how much of it keys touch.
//!
//! `cargo bench -p wirespeed-fold --bench growth -- [--rates] [PREFIXES…]`, by default with 250,000, 500,000,
//! 1,000,000 and 2,000,000 prefixes. With `--rates` what keys touch is not counted.

use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use wirespeed_fib::synth::{self, TableSpec};
use wirespeed_fib::trace::{Generator, TraceKind};
use wirespeed_fib::{BuildOptions, Engine, Family, Lookup, NextHop, Rib, V6};
use wirespeed_fold::{FoldTableV6, FoldV6};
use wirespeed_image::{HugeVec, Table, WORD};

/// Distinct keys of a table.
const KEYS: usize = 2_000_000;
/// Keys of a batch.
const BATCH: usize = 1024;
/// Rounds; each table is timed once in each.
const ROUNDS: usize = 15;
/// Keys that a table looks up in a round, and half as many untimed before.
const STRETCH: usize = 8_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let only_rates = arguments.iter().any(|argument| argument == "--rates");
    let mut sizes = Vec::new();
    for argument in arguments.iter().filter(|argument| *argument != "--rates") {
        sizes.push(argument.parse()?);
    }
    if sizes.is_empty() {
        sizes = vec![250_000, 500_000, 1_000_000, 2_000_000];
    }
    let mut tables = Vec::new();
    for prefixes in sizes {
        let grown = Grown::new(prefixes)?;
        if !only_rates {
            grown.describe();
        }
        tables.push(grown);
    }
    for _ in 0..ROUNDS {
        for table in &mut tables {
            table.run(STRETCH / 2);
            let rate = table.run(STRETCH);
            table.rates.push(rate);
        }
    }
    println!("\n prefixes      MB  built s     M/s  by the first");
    let first = tables[0].median();
    for table in &mut tables {
        let (prefixes, seconds, rate) = (table.prefixes, table.seconds, table.median());
        let megabytes = table.table.image().bytes() as f64 / 1e6;
        println!("{prefixes:9}  {megabytes:6.1}  {seconds:7.2}  {:6.1}  {:12.2}", rate / 1e6, rate / first);
    }
    Ok(())
}

/// A table, its keys, and what was measured.
struct Grown {
    prefixes: usize,
    seconds: f64,
    table: FoldTableV6,
    keys: HugeVec<V6>,
    found: Vec<NextHop>,
    /// The next key.
    place: usize,
    rates: Vec<f64>,
}

impl Grown {
    /// A table of so many prefixes, its answers held against the routes.
    fn new(prefixes: usize) -> Result<Self, Box<dyn Error>> {
        let rib: Rib<V6> = synth::table(&TableSpec { prefixes, ..TableSpec::full(Family::V6) })?;
        let start = Instant::now();
        let (_, table) = FoldV6::build(&rib, &BuildOptions::default())?;
        let seconds = start.elapsed().as_secs_f64();
        let mut generator = Generator::new(&rib, TraceKind::Prefix, 1)?;
        let mut seen = HashSet::with_capacity(KEYS);
        let mut keys = HugeVec::with_capacity(KEYS);
        while keys.len() < KEYS {
            let key = generator.draw();
            if seen.insert(key) {
                keys.push(key);
            }
        }
        let mut found = vec![NextHop::NONE; KEYS];
        table.lookup_batch(&keys, &mut found);
        for (&key, &found) in keys.iter().zip(&found) {
            let right = rib.longest_match(key).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            assert_eq!(found, right, "{key}");
        }
        found.truncate(BATCH);
        Ok(Self { prefixes, seconds, table, keys, found, place: 0, rates: Vec::new() })
    }

    /// Looks keys up; keys a second.
    fn run(&mut self, count: usize) -> f64 {
        let (start, mut done) = (Instant::now(), 0);
        while done < count {
            let end = KEYS.min(self.place + BATCH);
            let keys = &self.keys[self.place..end];
            self.table.lookup_batch(keys, &mut self.found[..keys.len()]);
            black_box(&self.found);
            done += keys.len();
            self.place = if end == KEYS { 0 } else { end };
        }
        done as f64 / start.elapsed().as_secs_f64()
    }

    fn median(&mut self) -> f64 {
        self.rates.sort_unstable_by(f64::total_cmp);
        self.rates[self.rates.len() / 2]
    }

    /// Prints what each step takes and what keys touch of it.
    fn describe(&self) {
        const LINE: u64 = 64;
        let steps = self.table.strides().len();
        let usage = self.table.image().memory_usage();
        let (mut reads, mut lines) = (vec![0usize; steps], vec![HashSet::new(); steps]);
        for &key in self.keys.iter() {
            for (step, read) in self.table.explain(key).into_iter().enumerate() {
                reads[step] += 1;
                lines[step].insert(read.index * WORD as u64 / LINE);
            }
        }
        println!("\n{} prefixes, elements of {} bytes", self.prefixes, self.table.entry_width());
        println!("step  stride       KB  reads a lookup  KB of lines that keys touch");
        for (step, &stride) in self.table.strides().iter().enumerate().filter(|&(step, _)| reads[step] > 0) {
            let (section, bytes) = (format!("t{step}"), usage[step].bytes / 1000);
            let (share, touched) = (reads[step] as f64 / KEYS as f64, lines[step].len() as u64 * LINE / 1000);
            println!("{section:4}  {stride:6}  {bytes:7}  {share:14.3}  {touched:8}");
        }
    }
}
