//! What hot blocks do for a table: the share of keys that a GPU answers from shared memory, when the table is
//! built and after updates; with time to build, size, and rate of updates beside FOLD's other IPv4 engine.
//!
//! `cargo bench -p wirespeed-fold --bench hot_share -- FIB [UPDATES]`

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wirespeed_fib::read::{ReadOptions, Source, collect_updates, read_fib};
use wirespeed_fib::{Address, BuildOptions, Engine, Fib, InFib, Lookup, NextHop, Prefix, Rib, Update, V4};
use wirespeed_fold::hot::layout::{C16, HOT};
use wirespeed_fold::{FoldHot, FoldHotTable, FoldV4};
use wirespeed_image::Table;

/// Prefixes that change at once.
const AT_ONCE: usize = 100;
/// Keys of a batch.
const BATCH: usize = 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).filter(|arg| arg != "--bench").map(PathBuf::from);
    let path = arguments.next().ok_or("a FIB is wanted")?;
    let (mut fib, _) = read_fib(&Source::Path(path), &ReadOptions::default())?;
    let updates = match arguments.next() {
        Some(path) => collect_updates(&Source::Path(path), &ReadOptions::default(), &mut fib.next_hops)?.0,
        None => Vec::new(),
    };
    let updates: Vec<Update<V4>> = updates.iter().filter_map(|timed| V4::update(&timed.update)).collect();
    engine::<FoldV4>(&fib, &updates, |_, _| String::new())?;
    engine::<FoldHot>(&fib, &updates, |table, rib| {
        if table.hot() == 0 {
            return ", no hot blocks".into();
        }
        let [by_prefix, random] = on_chip(table, rib);
        format!(", answered on chip: {by_prefix:.4} by prefix, {random:.4} random")
    })
}

fn engine<E: Engine<V4>>(
    fib: &Fib,
    updates: &[Update<V4>],
    about: impl Fn(&E::Table, &Rib<V4>) -> String,
) -> Result<(), Box<dyn Error>> {
    let mut rib = V4::rib(fib).clone();
    let options = BuildOptions::default();
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        E::build(&rib, &options)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let (mut engine, mut table) = E::build(&rib, &options)?;
    let bytes = table.image().bytes();
    println!(
        "{}: built in {:?}, {bytes} bytes, {:.2} a prefix, {} more to update{}",
        E::NAME,
        times[2],
        per(bytes, rib.len() as u64),
        engine.memory_usage(),
        about(&table, &rib),
    );
    let keys = keys_by_prefix(&rib);
    for (kind, keys) in [("by prefix", &keys), ("random", &random_keys(keys.len()))] {
        let mut found = vec![NextHop::NONE; BATCH];
        let mut rates: Vec<Duration> = Vec::new();
        for _ in 0..5 {
            let start = Instant::now();
            for keys in keys.chunks_exact(BATCH) {
                table.lookup_batch(keys, &mut found);
            }
            rates.push(start.elapsed());
        }
        rates.sort_unstable();
        println!("  {kind}: {:.0} M lookups/s", keys.len() as f64 / 1e6 / rates[2].as_secs_f64());
    }
    let (mut spent, mut done, mut rebuilt, mut writes) = (Duration::ZERO, 0u64, 0, 0);
    for updates in updates.chunks(AT_ONCE) {
        let changed: Vec<Prefix<V4>> =
            updates.iter().filter(|update| rib.apply(update)).map(Update::prefix).collect();
        let start = Instant::now();
        match engine.update(&table, &rib, &changed) {
            Ok(patch) => {
                table.apply(&patch)?;
                writes += patch.writes().len() as u64;
            }
            Err(why) => {
                println!("  built anew: {why:?}");
                (engine, table) = E::build(&rib, &options)?;
                rebuilt += 1;
            }
        }
        spent += start.elapsed();
        done += changed.len() as u64;
    }
    if done > 0 {
        let rate = done as f64 / 1e3 / spent.as_secs_f64();
        let writes = per(writes, done);
        let now = about(&table, &rib);
        println!("  {done} updates: {rate:.0} k/s, {writes:.2} writes each, built anew {rebuilt} times{now}");
        let fresh = about(&E::build(&rib, &options)?.1, &rib);
        if !fresh.is_empty() {
            println!("  built anew now{fresh}");
        }
    }
    Ok(())
}

/// Shares of keys drawn by prefix and of all addresses whose next hop c16 or a hot block has.
fn on_chip(table: &FoldHotTable, rib: &Rib<V4>) -> [f64; 2] {
    let (slots, blocks) = (table.image().section::<u16>(C16), table.image().section::<u64>(HOT));
    let is_known = |address: V4| {
        let slot = slots[(address.0 >> 16) as usize];
        let Some(chunk) = u32::from(slot).checked_sub(table.base()) else { return true };
        let Some(&block) = blocks.get(chunk as usize) else { return false };
        let [b1, b2, b3, _, values @ ..] = block.to_le_bytes();
        let octet = address.octet(2);
        values[[b1, b2, b3].into_iter().filter(|&boundary| octet >= boundary).count()] != u8::MAX
    };
    let share =
        |keys: &[V4]| per(keys.iter().filter(|&&key| is_known(key)).count() as u64, keys.len() as u64);
    let all: Vec<V4> = (0..1 << 24).map(|first| V4(first << 8)).collect();
    [share(&keys_by_prefix(rib)), share(&all)]
}

/// Four million keys: each prefix as often as any other, and any address of it.
fn keys_by_prefix(rib: &Rib<V4>) -> Vec<V4> {
    let prefixes: Vec<Prefix<V4>> = rib.iter().map(|(prefix, _)| prefix).collect();
    let key = |random: V4| {
        let prefix = prefixes[mix(random.0) as usize % prefixes.len()];
        let within = u32::MAX.checked_shr(prefix.len().into()).unwrap_or(0);
        V4(prefix.address().0 | random.0 & within)
    };
    random_keys(1 << 22).into_iter().map(key).collect()
}

fn random_keys(count: usize) -> Vec<V4> {
    (0..u32::MAX).take(count).map(|at| V4(mix(at.wrapping_mul(0x9e37_79b9)))).collect()
}

/// Every bit of the result depends on every bit of what is given, and no two give the same.
fn mix(mut bits: u32) -> u32 {
    bits = (bits ^ bits >> 16).wrapping_mul(0x7feb_352d);
    bits = (bits ^ bits >> 15).wrapping_mul(0x846c_a68b);
    bits ^ bits >> 16
}

fn per(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}
