//! IPv6 tables that grow: the rate by prefix on synthetic tables of several sizes, measured in turns, with
//! either kind of rounds that a batch can be looked up in; the bytes of each step of the table, and how much
//! of it keys touch.
//!
//! `cargo bench -p wirespeed-fold --bench growth -- [--rates] [PREFIXES | FIB …]`, by default with 250,000,
//! 500,000, 1,000,000 and 2,000,000 prefixes. A file is read as a table. With `--rates` what keys touch is
//! not counted.

use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use wirespeed_fib::read::{ReadOptions, Source, read_fib};
use wirespeed_fib::synth::{self, TableSpec};
use wirespeed_fib::trace::{Generator, TraceKind};
use wirespeed_fib::{BuildOptions, Engine, Family, InFib, Lookup, NextHop, Rib, V6, VectorLevel};
use wirespeed_fold::v6::layout::Rounds;
use wirespeed_fold::{FoldTableV6, FoldV6};
use wirespeed_image::{HugeVec, Table, WORD};

/// Distinct keys of a table.
const KEYS: usize = 2_000_000;
/// Keys of a batch.
const BATCH: usize = 1024;
/// Rounds; each table is timed once in each.
const ROUNDS: usize = 61;
/// Keys that a table looks up in a round, and half as many untimed before.
const STRETCH: usize = 1 << 20;
/// Kinds of rounds, in this order in every list.
const KINDS: [Rounds; 2] = [Rounds::Near, Rounds::Far];

/// Options for real files, which have lines that no router would take.
fn lenient() -> ReadOptions {
    ReadOptions { lenient: true, ..ReadOptions::default() }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let only_rates = arguments.iter().any(|argument| argument == "--rates");
    let mut wanted: Vec<&str> =
        arguments.iter().filter(|argument| *argument != "--rates").map(String::as_str).collect();
    if wanted.is_empty() {
        wanted = vec!["250000", "500000", "1000000", "2000000"];
    }
    println!("vectors: {:?}", VectorLevel::best());
    let mut tables = Vec::new();
    for wanted in wanted {
        let grown = Grown::new(wanted)?;
        if !only_rates {
            grown.describe();
        }
        tables.push(grown);
    }
    for _ in 0..ROUNDS {
        for table in &mut tables {
            for (at, kind) in KINDS.into_iter().enumerate() {
                table.run(kind, STRETCH / 2);
                let rate = table.run(kind, STRETCH);
                table.rates[at].push(rate);
            }
        }
    }
    println!("\n prefixes      MB  built s  near M/s   far M/s  far by near (quartiles)");
    for table in &tables {
        let [near, far] = [0, 1].map(|at| quartiles(&table.rates[at])[1] / 1e6);
        let pairs = table.rates[0].iter().zip(&table.rates[1]);
        let [low, ratio, high] = quartiles(&pairs.map(|(near, far)| far / near).collect::<Vec<_>>());
        let (prefixes, seconds) = (table.prefixes, table.seconds);
        let megabytes = table.table.image().bytes() as f64 / 1e6;
        println!(
            "{prefixes:9}  {megabytes:6.1}  {seconds:7.2}  {near:8.1}  {far:8.1}  {ratio:.2} ({low:.2} to {high:.2})"
        );
    }
    Ok(())
}

/// The quartiles of some numbers, the median in the middle.
fn quartiles(numbers: &[f64]) -> [f64; 3] {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| sorted[(sorted.len() - 1) * quarter / 4])
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
    /// Rates, by kind of rounds.
    rates: [Vec<f64>; KINDS.len()],
}

impl Grown {
    /// A table of so many prefixes or from a file, its answers held against the routes.
    fn new(wanted: &str) -> Result<Self, Box<dyn Error>> {
        let rib: Rib<V6> = match wanted.parse() {
            Ok(prefixes) => synth::table(&TableSpec { prefixes, ..TableSpec::full(Family::V6) })?,
            Err(_) => V6::into_rib(read_fib(&Source::Path(PathBuf::from(wanted)), &lenient())?.0).0,
        };
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
        for kind in KINDS {
            table.lookup_batch_in(kind, &keys, &mut found);
            for (&key, &found) in keys.iter().zip(&found) {
                let right = rib.longest_match(key).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
                assert_eq!(found, right, "{key}, {kind:?}");
            }
        }
        found.truncate(BATCH);
        Ok(Self { prefixes: rib.len(), seconds, table, keys, found, place: 0, rates: Default::default() })
    }

    /// Looks keys up; keys a second.
    fn run(&mut self, kind: Rounds, count: usize) -> f64 {
        let (start, mut done) = (Instant::now(), 0);
        while done < count {
            let end = KEYS.min(self.place + BATCH);
            let keys = &self.keys[self.place..end];
            self.table.lookup_batch_in(kind, keys, &mut self.found[..keys.len()]);
            black_box(&self.found);
            done += keys.len();
            self.place = if end == KEYS { 0 } else { end };
        }
        done as f64 / start.elapsed().as_secs_f64()
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
