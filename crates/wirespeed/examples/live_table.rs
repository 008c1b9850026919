//! Looks up while routes change: one thread takes updates from a channel, workers look up with readers of
//! their own.
//!
//! `cargo run --release -p wirespeed --example live_table [SECONDS]`
//!
//! Table, updates and addresses are synthetic and seeded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use wirespeed::fib::synth::rng::Rng;
use wirespeed::fib::synth::{self, TableSpec, UpdateSpec};
use wirespeed::prelude::*;
use wirespeed::{Family, Rib};

const BATCH: usize = 1024;
/// Updates that are applied at a time, at most: more would make each a little cheaper and come in later.
const TOGETHER: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2.0), |seconds| seconds.parse::<f64>())?;
    let fib = synth::fib(Some(&TableSpec { prefixes: 200_000, ..TableSpec::full(Family::V4) }), None)?;
    let spec = UpdateSpec { next_hops: u32::try_from(fib.next_hops.len())?, ..UpdateSpec::real(Family::V4) };
    let changes: Vec<Update<V4>> =
        synth::Updates::new(&fib.v4, &spec).take(100_000).map(|timed| timed.update).collect();
    let keys = inside(&fib.v4);

    let mut table = Ipv4Table::builder().rib(fib.v4).next_hops(spec.next_hops).build()?;
    println!("{} prefixes, engine {}, {} KiB", table.len(), table.engine(), table.memory_usage() >> 10);

    let (sender, receiver) = mpsc::sync_channel(4 * TOGETHER);
    let stop = &AtomicBool::new(false);
    let reader = table.reader();
    let (lookups, applied) = thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (reader, keys) = (reader.clone(), &keys);
                scope.spawn(move || work(&reader, keys, stop))
            })
            .collect();
        let table = &mut table;
        let writer = scope.spawn(move || write(table, &receiver));
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut feed = changes.iter().cycle();
        while Instant::now() < end {
            // A routing daemon's part.
            for &update in feed.by_ref().take(TOGETHER) {
                let _ = sender.send(update);
            }
        }
        drop(sender);
        stop.store(true, Ordering::Relaxed);
        let lookups: u64 = workers.into_iter().map(|worker| worker.join().unwrap_or_default()).sum();
        (lookups, writer.join())
    });
    let applied = applied.map_err(|_| "the writer panicked")??;
    println!("{lookups} lookups and {applied} updates in {seconds} s; {} prefixes now", table.len());
    Ok(())
}

/// Applies what comes, all that is waiting at once, until the channel closes; how many updates that were.
fn write(table: &mut Ipv4Table, incoming: &Receiver<Update<V4>>) -> Result<u64, wirespeed::Error> {
    let mut applied = 0;
    let mut together = Vec::with_capacity(TOGETHER);
    while let Ok(first) = incoming.recv() {
        together.clear();
        together.push(first);
        together.extend(incoming.try_iter().take(TOGETHER - 1));
        table.apply(&together)?;
        applied += together.len() as u64;
    }
    Ok(applied)
}

/// Looks up batch after batch; how many addresses that were.
fn work(reader: &Ipv4Reader, keys: &[V4], stop: &AtomicBool) -> u64 {
    let mut found = vec![NextHop::NONE; BATCH];
    let mut lookups = 0;
    for batch in keys.chunks(BATCH).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        reader.lookup_batch(batch, &mut found[..batch.len()]);
        lookups += batch.len() as u64;
    }
    lookups
}

/// Addresses inside the prefixes of a table, in random order.
fn inside(rib: &Rib<V4>) -> Vec<V4> {
    let mut keys: Vec<_> = rib.iter().map(|(prefix, _)| prefix.last()).collect();
    Rng::new(1).shuffle(&mut keys);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_was_sent_is_applied() {
        let spec = TableSpec { prefixes: 2000, ..TableSpec::full(Family::V4) };
        let mut rib = synth::table::<V4>(&spec).unwrap();
        let updates = UpdateSpec { next_hops: 62, ..UpdateSpec::real(Family::V4) };
        let updates: Vec<_> =
            synth::Updates::new(&rib, &updates).take(5000).map(|timed| timed.update).collect();
        let mut table = Ipv4Table::builder().rib(rib.clone()).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        let stop = &AtomicBool::new(false);
        let keys = inside(&rib);
        thread::scope(|scope| {
            let reader = table.reader();
            let worker = scope.spawn(|| work(&{ reader }, &keys, stop));
            let table = &mut table;
            let writer = scope.spawn(move || write(table, &receiver));
            updates.iter().for_each(|&update| sender.send(update).unwrap());
            drop(sender);
            assert_eq!(writer.join().unwrap().unwrap(), 5000);
            stop.store(true, Ordering::Relaxed);
            worker.join().unwrap();
        });
        for update in &updates {
            rib.apply(update);
        }
        assert!(table.routes().iter().eq(rib.iter()));
        let reader = table.reader();
        for key in keys {
            assert_eq!(reader.lookup(key), rib.longest_match(key).map_or(NextHop::NONE, |(_, n)| n), "{key}");
        }
    }
}
