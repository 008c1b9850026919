//! Batches that are filled in place: threads make keys, as a thread that parses packets does, and sum the
//! results where they come back. Prints what a thread feeds, for the CPU and, if there is one, for a GPU.
//!
//! ```sh
//! cargo run --release -p wirespeed --features synth,compression --example in_place -- [FILE] [SECONDS] [N] [TABLE]
//! ```
//!
//! Without a file, or with `-`, addresses are looked up in a synthetic table of full size. Names and rules
//! are synthetic: 300,000 names, and 10,000 rules over IPv4 tuples. A thread has 4 batches under way at once,
//! or N; what the GPU has no slot for is looked up by the CPU, and the share tells. TABLE is one of IPv4,
//! IPv6, names and rules. Rows of the device `Stated` are of a GPU and a table that states its longest prefix
//! (`Builder::longest_prefix`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wirespeed::classify::generate as made_rules;
use wirespeed::engine::{Addresses, Served};
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::names::generate::{self as made_names, Load, Paths, TraceSpec};
use wirespeed::prelude::*;
use wirespeed::{Batch, Batches, Counts, Family, Numbers, Reader, Rib, Table};

/// Batch sizes to measure.
const SIZES: [u32; 5] = [1 << 14, 1 << 16, 1 << 17, 1 << 18, 1 << 20];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (file, seconds, at_once) = (arguments.next(), arguments.next(), arguments.next());
    let only = arguments.next();
    let is_asked = |table: &str| only.as_ref().is_none_or(|only| only == table);
    let time = Duration::from_secs_f64(seconds.map_or(Ok(1.0), |seconds| seconds.parse())?);
    let run = Run { time, at_once: at_once.map_or(Ok(4), |batches| batches.parse())? };
    let (v4, v6) = match file.filter(|file| file != "-") {
        Some(file) => {
            let table = IpTable::builder().file(file, &Labels::<String>::new()).build()?;
            (table.v4().routes().iter().collect(), table.v6().routes().iter().collect())
        }
        None => (synth::table(&TableSpec::full(Family::V4))?, synth::table(&TableSpec::full(Family::V6))?),
    };
    println!("table device keys threads batch Gkeys/s/thread Gkeys/s share-of-GPU p99-us");
    if is_asked("IPv4") {
        measure::<V4>(v4, run)?;
    }
    if is_asked("IPv6") {
        measure::<V6>(v6, run)?;
    }
    if is_asked("names") {
        measure_names(run)?;
    }
    if is_asked("rules") {
        measure_rules(run)?;
    }
    Ok(())
}

/// The measurement of a row.
#[derive(Clone, Copy)]
struct Run {
    time: Duration,
    /// Batches of a thread that are under way at once.
    at_once: usize,
}

fn measure<A: Addresses + Cheap>(rib: Rib<A>, run: Run) -> Result<(), Box<dyn std::error::Error>> {
    if rib.is_empty() {
        return Ok(());
    }
    let longest = rib.iter().map(|(prefix, _)| prefix.len()).max().unwrap_or(0);
    println!("{} longest-prefix {longest}", A::FAMILY);
    for on in [On::Cpu, On::Gpu, On::Stated] {
        let builder = Table::builder().rib(rib.clone());
        let builder = match on {
            On::Cpu => builder.device(Device::Cpu),
            On::Gpu => builder.device(Device::Gpu),
            On::Stated => builder.device(Device::Gpu).longest_prefix(longest),
        };
        let table = match builder.build() {
            Ok(table) => table,
            Err(why) => {
                println!("{why}");
                continue;
            }
        };
        let reader: Reader<A> = table.reader();
        let block: Vec<A> = (0..BLOCK).map(|n| A::cheap(n.wrapping_mul(0x9e37_79b1))).collect();
        let what = format!("{} {on:?}", A::FAMILY);
        rows(
            &format!("{what} Made"),
            run,
            || reader.batches(),
            || table.lookups(),
            |thread| {
                let mut next = thread << 24;
                move |batch: &mut Batch<A>, size| {
                    batch.extend((0..size).map(|n| A::cheap(next.wrapping_add(n))));
                    next = next.wrapping_add(size);
                }
            },
        );
        rows(
            &format!("{what} Copied"),
            run,
            || reader.batches(),
            || table.lookups(),
            |_| |batch: &mut Batch<A>, _| while batch.extend_from(&block) == block.len() {},
        );
    }
    Ok(())
}

fn measure_names(run: Run) -> Result<(), Box<dyn std::error::Error>> {
    let spec = made_names::TableSpec { names: 300_000, results: 200, seed: 1 };
    let fib = made_names::table(&spec)?;
    for on in [On::Cpu, On::Gpu] {
        let builder = NameTable::builder().rib(fib.names.clone()).device(on.device());
        let table = match builder.build() {
            Ok(table) => table,
            Err(why) => {
                println!("{why}");
                continue;
            }
        };
        let spec = TraceSpec { load: Load::Average, misses: 0.1, seed: 1 };
        let keys = made_names::trace(&fib.names, Paths::made(), &spec, KEYS)?;
        let (names, reader) = (keys.names(), table.reader());
        let (batches, counts) = (|| reader.batches(), || table.lookups());
        rows_of(
            &format!("names {on:?}"),
            run,
            batches,
            counts,
            |count| names.part(0..count),
            |at| names.name(at),
        );
    }
    Ok(())
}

fn measure_rules(run: Run) -> Result<(), Box<dyn std::error::Error>> {
    let rules = made_rules::classbench::<Ipv4Tuple>(made_rules::Kind::Acl, 10_000, 1);
    let keys = made_rules::tuples(&rules, KEYS, 1.0, 1);
    for on in [On::Cpu, On::Gpu] {
        let table = match Classifier::builder().rule_set(rules.clone()).device(on.device()).build() {
            Ok(table) => table,
            Err(why) => {
                println!("{why}");
                continue;
            }
        };
        let (keys, reader) = (&keys[..], table.reader());
        let (batches, counts) = (|| reader.batches(), || table.lookups());
        rows_of(&format!("rules {on:?}"), run, batches, counts, |count| &keys[..count], |at| &keys[at]);
    }
    Ok(())
}

/// Measures batches of `KEYS` keys in turn: added one at a time, and by slices.
fn rows_of<'k, D: Served>(
    what: &str,
    run: Run,
    batches: impl Fn() -> Batches<D> + Sync,
    counts: impl Fn() -> Option<Counts>,
    first: impl Fn(usize) -> D::Keys<'k> + Sync,
    key: impl Fn(usize) -> D::Key<'k> + Sync,
) {
    let push = |_| {
        let (key, mut at) = (&key, 0);
        move |batch: &mut Batch<D>, size| {
            for _ in 0..size {
                batch.push(key(at)).expect("there is room");
                at = (at + 1) % KEYS;
            }
        }
    };
    rows(&format!("{what} Pushed"), run, &batches, &counts, push);
    let copy = |_| {
        |batch: &mut Batch<D>, size| {
            for from in (0..size as usize).step_by(KEYS) {
                batch.extend_from(first(KEYS.min(size as usize - from)));
            }
        }
    };
    rows(&format!("{what} Copied"), run, &batches, &counts, copy);
}

/// Measures a way to fill batches, for numbers of threads and sizes. `fill` makes a thread's function that
/// fills a batch with so many keys.
fn rows<D: Served, F: FnMut(&mut Batch<D>, u32)>(
    what: &str,
    run: Run,
    batches: impl Fn() -> Batches<D> + Sync,
    counts: impl Fn() -> Option<Counts>,
    fill: impl Fn(u32) -> F + Sync,
) {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for threads in [1u32, 2, 5, 8, 15].into_iter().filter(|&threads| threads as usize <= cores.max(2)) {
        for size in SIZES {
            let before = counts();
            let (rate, p99) = rate(threads, |thread| feed(batches(), size, run, fill(thread)));
            let share = before.zip(counts()).map_or(0.0, |(before, after)| {
                let (cpu, gpu) = (after.cpu - before.cpu, after.gpu - before.gpu);
                gpu as f64 / (cpu + gpu).max(1) as f64
            });
            let of_thread = rate / f64::from(threads);
            println!("{what} {threads} {size} {of_thread:.3} {rate:.3} {share:.2} {p99:.0}");
        }
    }
}

/// The device of a table.
#[derive(Clone, Copy, Debug)]
enum On {
    Cpu,
    Gpu,
    /// A GPU, and the table states its longest prefix.
    Stated,
}

impl On {
    const fn device(self) -> Device {
        match self {
            Self::Cpu => Device::Cpu,
            Self::Gpu | Self::Stated => Device::Gpu,
        }
    }
}

/// Addresses of the block that is copied: it stays in the first-level cache.
const BLOCK: u32 = 1024;

/// Names and tuples that are looked up in turn.
const KEYS: usize = 1 << 16;

/// Billions of keys a second that all threads together look up, and the microseconds from the submission of a
/// batch to its results that one in a hundred batches takes longer than.
fn rate(threads: u32, feed: impl Fn(u32) -> Fed + Sync) -> (f64, f64) {
    let began = Instant::now();
    let feed = &feed;
    let fed: Vec<Fed> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || feed(thread))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let keys: u64 = fed.iter().map(|fed| fed.keys).sum();
    let rate = keys as f64 / began.elapsed().as_secs_f64() / 1e9;
    let mut took: Vec<Duration> = fed.into_iter().flat_map(|fed| fed.took).collect();
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).map_or(0.0, |took| took.as_secs_f64() * 1e6);
    (rate, p99)
}

/// What a thread did.
struct Fed {
    keys: u64,
    /// The time of each batch from its submission to its results.
    took: Vec<Duration>,
}

/// Fills batches and sums their results until the time is over.
fn feed<D: Served>(
    batches: Batches<D>,
    size: u32,
    Run { time, at_once }: Run,
    mut fill: impl FnMut(&mut Batch<D>, u32),
) -> Fed {
    let batches = batches.at_once(at_once);
    let (mut under_way, mut keys, mut sum, mut took) = (VecDeque::new(), 0, 0, Vec::new());
    let end = Instant::now() + time;
    while Instant::now() < end {
        while let Some(mut batch) = batches.batch(size as usize) {
            fill(&mut batch, size);
            under_way.push_back((Instant::now(), batch.submit()));
        }
        let Some((submitted, oldest)) = under_way.pop_front() else { break };
        let answers = oldest.wait();
        took.push(submitted.elapsed());
        keys += answers.len() as u64;
        sum += match answers.numbers() {
            // Sums of a few narrow numbers are narrow: vectors hold more of them.
            Numbers::U8(numbers) => {
                numbers.chunks(128).map(|few| u64::from(few.iter().map(|&n| u16::from(n)).sum::<u16>())).sum()
            }
            Numbers::U16(numbers) => numbers
                .chunks(4096)
                .map(|few| u64::from(few.iter().map(|&n| u32::from(n)).sum::<u32>()))
                .sum(),
            Numbers::U32(numbers) => numbers.iter().map(|&number| u64::from(number)).sum::<u64>(),
        };
    }
    std::hint::black_box(sum);
    Fed { keys, took }
}

/// A key that takes an instruction or two to make, from all over the space.
trait Cheap {
    fn cheap(n: u32) -> Self;
}

impl Cheap for V4 {
    #[inline]
    fn cheap(n: u32) -> Self {
        Self(n ^ n << 16)
    }
}

impl Cheap for V6 {
    /// Keys are in 2000::/3, where routes are.
    #[inline]
    fn cheap(n: u32) -> Self {
        Self(u128::from(0x2000_0000 | (n ^ n << 16) >> 3) << 96 | u128::from(n) << 64)
    }
}
