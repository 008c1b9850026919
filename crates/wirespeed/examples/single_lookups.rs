//! What it costs that the engine is chosen at run time: lookups through the façade beside the engine's own
//! type.
//!
//! `cargo run --release -p wirespeed --example single_lookups`
//!
//! A table of 200,000 synthetic IPv4 prefixes, a million random addresses; nanoseconds a lookup, the best of
//! 15 interleaved rounds.

use std::hint::black_box;
use std::time::Instant;

use wirespeed::fib::synth::rng::Rng;
use wirespeed::fib::synth::{self, TableSpec};
use wirespeed::fib::{BuildOptions, LiveTable, Lookup};
use wirespeed::prelude::*;
use wirespeed::{Address, Family};
use wirespeed_sail::SailL;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fib = synth::fib(Some(&TableSpec { prefixes: 200_000, ..TableSpec::full(Family::V4) }), None)?;
    let mut rng = Rng::new(7);
    let keys: Vec<V4> = (0..1_000_000).map(|_| V4::from_u128_low(rng.bits128())).collect();
    let std_keys: Vec<Ipv4Addr> = keys.iter().map(|&key| key.into()).collect();
    let ip_keys: Vec<IpAddr> = keys.iter().map(|key| key.to_ip()).collect();

    let typed = LiveTable::<V4, SailL>::new(fib.v4.clone(), BuildOptions::default())?;
    let typed = typed.reader();
    let four = Ipv4Table::builder().rib(fib.v4).engine("sail-l").build()?;
    let ip = IpTable::new(four, Ipv6Table::builder().build()?).reader();
    let facade = ip.v4();
    let labels = Labels::<u32>::new();
    for label in 0..200 {
        labels.intern(label)?;
    }

    let mut clock = Clock::default();
    for _ in 0..15 {
        clock.each("engine, a guard each", &keys, |key| typed.enter().lookup(key));
        clock.each("façade reader", &keys, |key| facade.lookup(key));
        clock.each("façade reader, IpAddr", &ip_keys, |key| ip.lookup(key));
        let guard = typed.enter();
        clock.each("engine, a guard for all", &keys, |key| guard.lookup(key));
        drop(guard);
        let guard = facade.enter();
        clock.each("façade, a guard for all", &keys, |key| guard.lookup(key));
        drop(guard);
        clock.batches("engine, batches of 1,024", &keys, |keys, found| {
            typed.enter().lookup_batch(keys, found);
        });
        clock.batches("façade, batches of V4", &keys, |keys, found| facade.lookup_batch(keys, found));
        clock.batches("façade, batches of Ipv4Addr", &std_keys, |keys, found| {
            facade.lookup_batch(keys, found);
        });
        clock.batches("façade, batches of IpAddr", &ip_keys, |keys, found| ip.lookup_batch(keys, found));
        let known = labels.enter();
        clock.each("LabelsGuard::get", &keys, |key| known.get(NextHop(1 + key.0 % 200)));
        clock.each("Labels::get", &keys, |key| labels.get(NextHop(1 + key.0 % 200)).is_some());
        clock.next_round();
    }
    for (name, nanoseconds) in clock.best {
        println!("{name:<28} {nanoseconds:6.2} ns");
    }
    Ok(())
}

/// The best time of each thing that is timed, nanoseconds a key.
#[derive(Default)]
struct Clock {
    best: Vec<(&'static str, f64)>,
    at: usize,
}

impl Clock {
    /// Times a lookup, key by key.
    fn each<K: Copy, R>(&mut self, name: &'static str, keys: &[K], lookup: impl Fn(K) -> R) {
        self.time(name, keys.len(), || {
            for &key in keys {
                black_box(lookup(key));
            }
        });
    }

    /// Times batches of 1,024.
    fn batches<K>(&mut self, name: &'static str, keys: &[K], lookup: impl Fn(&[K], &mut [NextHop])) {
        let mut found = [NextHop::NONE; 1024];
        self.time(name, keys.len(), || {
            for keys in keys.chunks(1024) {
                lookup(keys, &mut found[..keys.len()]);
                black_box(&found);
            }
        });
    }

    fn time(&mut self, name: &'static str, keys: usize, run: impl FnOnce()) {
        let began = Instant::now();
        run();
        let nanoseconds = began.elapsed().as_secs_f64() * 1e9 / keys as f64;
        match self.best.get_mut(self.at) {
            Some((_, best)) => *best = best.min(nanoseconds),
            None => self.best.push((name, nanoseconds)),
        }
        self.at += 1;
    }

    fn next_round(&mut self) {
        self.at = 0;
    }
}
