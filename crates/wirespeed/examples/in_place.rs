//! Batches that are filled in place: threads make keys, as a thread that parses packets does, and sum the
//! results where they come back. Prints what a thread feeds, for the CPU and, if there is one, for a GPU.
//!
//! ```sh
//! cargo run --release -p wirespeed --features synth,compression --example in_place -- [FILE] [SECONDS] [N]
//! ```
//!
//! Without a file, or with `-`, the table is a synthetic one of full size. A thread has 4 batches under way
//! at once, or N; what the GPU has no slot for is looked up by the CPU, and the share tells. Rows of the
//! device `Stated` are of a GPU and a table that states its longest prefix (`Builder::longest_prefix`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use wirespeed::engine::Addresses;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::prelude::*;
use wirespeed::{Family, Numbers, Reader, Rib, Table};

/// Batch sizes to measure.
const SIZES: [u32; 5] = [1 << 14, 1 << 16, 1 << 17, 1 << 18, 1 << 20];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (file, seconds, at_once) = (arguments.next(), arguments.next(), arguments.next());
    let time = Duration::from_secs_f64(seconds.map_or(Ok(1.0), |seconds| seconds.parse())?);
    let run = Run { time, at_once: at_once.map_or(Ok(4), |batches| batches.parse())? };
    let (v4, v6) = match file.filter(|file| file != "-") {
        Some(file) => {
            let table = IpTable::builder().file(file, &Labels::<String>::new()).build()?;
            (table.v4().routes().iter().collect(), table.v6().routes().iter().collect())
        }
        None => (synth::table(&TableSpec::full(Family::V4))?, synth::table(&TableSpec::full(Family::V6))?),
    };
    println!("family device keys threads batch Gkeys/s/thread Gkeys/s share-of-GPU p99-us");
    measure::<V4>(v4, run)?;
    measure::<V6>(v6, run)
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
    let cores = std::thread::available_parallelism()?.get();
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
        let reader = table.reader();
        let threads = [1u32, 2, 5, 8, 15].into_iter().filter(|&threads| threads as usize <= cores.max(2));
        for (threads, keys) in threads.flat_map(|threads| [(threads, Keys::Made), (threads, Keys::Copied)]) {
            for size in SIZES {
                let before = table.lookups();
                let (rate, p99) = rate(&reader, threads, (keys, size), run);
                let share = before.zip(table.lookups()).map_or(0.0, |(before, after)| {
                    let (cpu, gpu) = (after.cpu - before.cpu, after.gpu - before.gpu);
                    gpu as f64 / (cpu + gpu).max(1) as f64
                });
                println!(
                    "{} {on:?} {keys:?} {threads} {size} {:.2} {rate:.2} {share:.2} {p99:.0}",
                    A::FAMILY,
                    rate / f64::from(threads)
                );
            }
        }
    }
    Ok(())
}

/// The device of a table.
#[derive(Clone, Copy, Debug)]
enum On {
    Cpu,
    Gpu,
    /// A GPU, and the table states its longest prefix.
    Stated,
}

/// Where keys come from.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// Each is computed.
    Made,
    /// They are copied from a block in the first-level cache.
    Copied,
}

/// Keys of the block.
const BLOCK: u32 = 1024;

/// Billions of keys a second that all threads together look up, and the microseconds from the submission of a
/// batch to its results that one in a hundred batches takes longer than.
fn rate<A: Addresses + Cheap>(reader: &Reader<A>, threads: u32, batch: (Keys, u32), run: Run) -> (f64, f64) {
    let began = Instant::now();
    let fed: Vec<Fed> = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || feed(reader, thread, batch, run))).collect();
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

/// Makes keys and sums their results until the time is over.
fn feed<A: Addresses + Cheap>(
    reader: &Reader<A>,
    thread: u32,
    (from, size): (Keys, u32),
    Run { time, at_once }: Run,
) -> Fed {
    let block: Vec<A> = (0..BLOCK).map(|n| A::cheap(n.wrapping_mul(0x9e37_79b1))).collect();
    let batches = reader.batches().at_once(at_once);
    let (mut under_way, mut keys, mut sum, mut took) = (VecDeque::new(), 0, 0, Vec::new());
    let (end, mut next) = (Instant::now() + time, thread << 24);
    while Instant::now() < end {
        while let Some(mut batch) = batches.batch(size as usize) {
            match from {
                Keys::Made => {
                    batch.extend((0..size).map(|n| A::cheap(next.wrapping_add(n))));
                }
                Keys::Copied => while batch.extend_from(&block) == block.len() {},
            }
            next = next.wrapping_add(size);
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
