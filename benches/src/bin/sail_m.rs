//! SAIL_M against the number of FIBs, as in the paper's Figure 12: lookup rate for prefix and random traffic
//! from 1 to 12 FIBs, and memory and rate beside those of as many SAIL_L tables. Every key has a FIB of its
//! own, drawn evenly, or every batch has.
//!
//! The paper's FIBs are those of twelve route collectors. Here they are made from one full table (the first
//! IPv4 table that there is): each lacks a share of its prefixes and has other next hops for another share,
//! drawn by the seed, as tables of one day differ from router to router.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use wirespeed_benches::data;
use wirespeed_benches::machine::{self, Machine};
use wirespeed_benches::report::median;
use wirespeed_fib::synth::rng::Rng;
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{Address, BuildOptions, Engine, Family, InFib, Lookup, NextHop, Rib, V4, V6};
use wirespeed_image::Table;
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
    println!("{:41} | {:^29} | {:^29}", "", "keys mixed, M/s", "a batch, a FIB, M/s");
    println!(
        "{:>25} {:>15} | {:^14} {:^14} | {:^14} {:^14}",
        "", "MB", "SAIL_M", "SAIL_L apart", "SAIL_M", "SAIL_L apart"
    );
    let (head, kinds) = (["FIBs", "routes", "built s", "SAIL_M", "SAIL_L"], ["prefix", "random"]);
    let [fibs, routes, built, one, apart] = head;
    let kinds = kinds.map(|kind| format!("{kind:>6}")).join(" ");
    println!("{fibs:>4} {routes:>10} {built:>9} {one:>7} {apart:>7} | {kinds}  {kinds}  | {kinds}  {kinds}");
    let build = BuildOptions::default();
    let (mut fibs, mut apart) = (Fibs::new(), Vec::<SailLTable<A>>::new());
    for count in 1..=options.fibs {
        let own = if count == 1 { rib.clone() } else { variation(rib, options, count) };
        apart.push(SailL::build(&own, &build)?.1);
        fibs.add(own)?;
        let began = Instant::now();
        let (_, table) = SailM::overlay(&fibs, &build)?;
        let built = began.elapsed().as_secs_f64();
        let mut rates = [[0.0; 4]; 2];
        for (kind, rates) in [TraceKind::Prefix, TraceKind::Random].into_iter().zip(&mut rates) {
            let trace = Trace::draw(rib, kind, options, count)?;
            trace.check(&fibs, &table)?;
            *rates = trace.race(&table, &apart, options);
        }
        let [prefix, random]: [[f64; 4]; 2] = rates;
        let rates: Vec<_> =
            (0..4).map(|what| format!("{:>6.1} {:>6.1}", prefix[what], random[what])).collect();
        println!(
            "{count:>4} {:>10} {built:>9.3} {:>7.1} {:>7.1} | {}  {}  | {}  {}",
            table.image().entries(),
            megabytes(table.image().bytes()),
            megabytes(apart.iter().map(|table| table.image().bytes()).sum()),
            rates[0],
            rates[1],
            rates[2],
            rates[3],
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

    /// Million keys a second, medians of rounds in turns: through SAIL_M with a FIB a key, and one by one
    /// through the SAIL_L table of each key's FIB; then in batches of one FIB each, through SAIL_M and
    /// through that FIB's SAIL_L.
    fn race(&self, together: &SailMTable<A>, apart: &[SailLTable<A>], options: &Options) -> [f64; 4] {
        let mut found = vec![NextHop::NONE; options.batch];
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..=options.rounds {
            rates[0].push(self.rate(options.batch, |fibs, keys| {
                together.lookup_mixed(fibs, keys, &mut found[..keys.len()]);
                black_box(&mut found);
            }));
            rates[1].push(self.rate(options.batch, |fibs, keys| {
                for ((&fib, &key), found) in fibs.iter().zip(keys).zip(&mut found) {
                    *found = apart[fib.index()].lookup(key);
                }
                black_box(&mut found);
            }));
            rates[2].push(self.rate(options.batch, |fibs, keys| {
                together.lookup_batch_in(fibs[0], keys, &mut found[..keys.len()]);
                black_box(&mut found);
            }));
            rates[3].push(self.rate(options.batch, |fibs, keys| {
                apart[fibs[0].index()].lookup_batch(keys, &mut found[..keys.len()]);
                black_box(&mut found);
            }));
        }
        // The first round warms up.
        rates.map(|rates| median(&rates[1..]))
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

#[allow(clippy::cast_precision_loss)] // for reading
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
