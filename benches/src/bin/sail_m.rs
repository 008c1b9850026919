//! SAIL_M against the number of FIBs, as in the paper's Figure 12: lookup rate for prefix and random traffic from 1 to 12
//! FIBs, and memory beside that of as many SAIL_L tables. Every key has a FIB of its own, drawn evenly.
//!
//! The paper's FIBs are those of twelve route collectors. Here they are made from one full table (the first IPv4 table that
//! there is): each lacks a share of its prefixes and has other next hops for another share, drawn by the seed, as tables
//! of one day differ from router to router.

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use wirespeed_benches::data;
use wirespeed_benches::machine::{self, Machine};
use wirespeed_benches::report::median;
use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{Address, BuildOptions, Engine, Family, InFib, Lpm, NextHop, Rib, V4, V6};
use wirespeed_image::{Element, Image, SectionId, Table};
use wirespeed_sail::{FibId, Fibs, SailL, SailLTable, SailM, SailMTable};

/// Measures SAIL_M with 1 FIB, 2 FIBs and so on.
#[derive(Parser)]
struct Options {
    /// Most FIBs
    #[arg(long, default_value_t = 12)]
    fibs: u16,
    /// The table that the FIBs are made from: the first whose name contains this
    #[arg(long, default_value = "")]
    table: String,
    /// Share of prefixes that a FIB lacks
    #[arg(long, default_value_t = 0.05)]
    withdrawn: f64,
    /// Share of prefixes that have another next hop in a FIB
    #[arg(long, default_value_t = 0.2)]
    changed: f64,
    /// Keys of a trace
    #[arg(long, default_value_t = 1 << 22)]
    keys: usize,
    /// Keys a call
    #[arg(long, default_value_t = 1024)]
    batch: usize,
    /// Seed of FIBs and traces
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds of each measurement; the median is printed
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The core to measure on [default: the last]
    #[arg(long)]
    core: Option<usize>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batch > 0 && options.rounds > 0 && options.fibs > 0 && options.keys > 0, "at least 1");
    let machine = Machine::here();
    machine::pin(options.core.unwrap_or_else(machine::last_core))?;
    eprint!("{}", machine.describe());
    let source = data::sources().into_iter().find(|source| source.name.contains(&options.table));
    let source = source.context("no table of that name")?;
    println!(
        "{}, a FIB lacks {} of its prefixes and has other next hops for {}; {} keys, batches of {}, seed {}",
        source.name, options.withdrawn, options.changed, options.keys, options.batch, options.seed
    );
    match source.family {
        Family::V4 => measure::<V4>(&options, &source.rib()?.0),
        Family::V6 => measure::<V6>(&options, &source.rib()?.0),
    }
}

fn measure<A: InFib>(options: &Options, rib: &Rib<A>) -> Result<()> {
    println!("{:>24} {:>8} {:>16} | {:^15} | {:^15}", "", "", "MB", "SAIL_M, M/s", "SAIL_L, M/s");
    println!(
        "{:>4} {:>10} {:>8} {:>8} {:>8} {:>7} | {:>7} {:>7} | {:>7} {:>7}",
        "FIBs", "routes", "arrays", "built s", "SAIL_M", "SAIL_L", "prefix", "random", "prefix", "random"
    );
    let build = BuildOptions::default();
    let (mut fibs, mut apart) = (Fibs::new(), Vec::<SailLTable<A>>::new());
    for count in 1..=options.fibs {
        let own = if count == 1 { rib.clone() } else { variation(rib, options, count) };
        apart.push(SailL::build(&own, &build)?.1);
        fibs.add(own)?;
        let began = Instant::now();
        let (_, table) = SailM::overlay(&fibs, &build)?;
        let built = began.elapsed().as_secs_f64();
        let mut rates = Vec::new();
        for kind in [TraceKind::Prefix, TraceKind::Random] {
            let trace = Trace::draw(rib, kind, options, count)?;
            trace.check(&fibs, &table)?;
            rates.push(trace.race(&table, &apart, options));
        }
        println!(
            "{count:>4} {:>10} {:>8} {built:>8.3} {:>8.1} {:>7.1} | {:>7.1} {:>7.1} | {:>7.1} {:>7.1}",
            table.image().entries(),
            arrays(table.image()),
            megabytes(table.image().bytes()),
            megabytes(apart.iter().map(|table| table.image().bytes()).sum()),
            rates[0].0,
            rates[1].0,
            rates[0].1,
            rates[1].1,
        );
    }
    Ok(())
}

/// The table as another router might have it.
fn variation<A: Address>(rib: &Rib<A>, options: &Options, which: u16) -> Rib<A> {
    let mut rng = Rng::stream(options.seed, which.into());
    let most = u64::from(rib.max_next_hop().0);
    let mut other = || {
        let lacks = rng.chance(options.withdrawn);
        let next_hop = rng.chance(options.changed).then(|| rng.below(most) + 1);
        (lacks, next_hop.and_then(|next_hop| u32::try_from(next_hop).ok()))
    };
    let keep = |(prefix, next_hop)| {
        let (lacks, changed) = other();
        (!lacks).then_some((prefix, changed.map_or(next_hop, NextHop)))
    };
    rib.iter().filter_map(keep).collect()
}

/// Keys, each with its FIB.
struct Trace<A> {
    keys: Vec<A>,
    fibs: Vec<FibId>,
}

impl<A: Address> Trace<A> {
    fn draw(rib: &Rib<A>, kind: TraceKind, options: &Options, fibs: u16) -> Result<Self> {
        let mut rng = Rng::stream(options.seed, 0);
        let keys = keys(rib, kind, options.keys, options.seed)?;
        let mut fib = || u16::try_from(rng.below(fibs.into())).unwrap_or(0);
        let fibs = keys.iter().map(|_| FibId(fib())).collect();
        Ok(Self { keys, fibs })
    }

    /// Holds every answer against the routes.
    fn check(&self, fibs: &Fibs<A>, table: &SailMTable<A>) -> Result<()> {
        let mut found = vec![NextHop::NONE; self.keys.len()];
        table.lookup_mixed(&self.fibs, &self.keys, &mut found);
        for ((&key, &id), &found) in self.keys.iter().zip(&self.fibs).zip(&found) {
            let matched = fibs.rib(id).and_then(|rib| rib.longest_match(key));
            let right = matched.map_or(NextHop::NONE, |(_, next_hop)| next_hop);
            ensure!(found == right, "{key} in FIB {id} has next hop {right}, the table says {found}");
        }
        Ok(())
    }

    /// Million keys a second through SAIL_M in batches, and one by one through the SAIL_L table of each key's FIB;
    /// medians of rounds in turns.
    fn race(&self, together: &SailMTable<A>, apart: &[SailLTable<A>], options: &Options) -> (f64, f64) {
        let mut found = vec![NextHop::NONE; options.batch];
        let mut rates = (Vec::new(), Vec::new());
        for _ in 0..=options.rounds {
            rates.0.push(self.rate(options.batch, |fibs, keys| {
                together.lookup_mixed(fibs, keys, &mut found[..keys.len()]);
                black_box(&mut found);
            }));
            rates.1.push(self.rate(options.batch, |fibs, keys| {
                for ((&fib, &key), found) in fibs.iter().zip(keys).zip(&mut found) {
                    *found = apart[fib.index()].lookup(key);
                }
                black_box(&mut found);
            }));
        }
        // The first round warms up.
        (median(&rates.0[1..]), median(&rates.1[1..]))
    }

    #[allow(clippy::cast_precision_loss)] // a rate
    fn rate(&self, batch: usize, mut each: impl FnMut(&[FibId], &[A])) -> f64 {
        let began = Instant::now();
        for (fibs, keys) in self.fibs.chunks(batch).zip(self.keys.chunks(batch)) {
            each(fibs, keys);
        }
        self.keys.len() as f64 / began.elapsed().as_secs_f64() / 1e6
    }
}

/// Distinct next-hop arrays in a table, of elements that lead on and of head room too.
fn arrays(image: &Image) -> usize {
    fn of<T: Element + std::hash::Hash>(image: &Image) -> usize {
        let sections = || {
            (0..).map(SectionId).zip(image.memory_usage()).filter(|(_, usage)| usage.name.starts_with('n'))
        };
        let slots = sections().find(|(_, usage)| usage.name == "n16").map_or(1, |(_, usage)| usage.len >> 16);
        let slots = usize::try_from(slots).unwrap_or(1).max(1);
        let all: HashSet<&[T]> =
            sections().flat_map(|(id, _)| image.section::<T>(id).chunks_exact(slots)).collect();
        all.len()
    }
    match image.find("n16").and_then(|id| image.width(id)) {
        Some(1) => of::<u8>(image),
        Some(2) => of::<u16>(image),
        _ => of::<u32>(image),
    }
}

#[allow(clippy::cast_precision_loss)] // for reading
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
