//! One image on the CPU and on a GPU, by batch size: whole trips, transfers counted, on the first GPU of this
//! machine.
//!
//! Beside each GPU figure it prints its share of what the bus gives for the same bytes, measured just before,
//! and for both devices the seconds of CPU time that a billion lookups take, with those of the system.
//! Without a GPU there is the CPU's side alone. `cargo xtask record gpu` makes the figures that are recorded.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use wirespeed_benches::data::sources;
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::ceiling;
use wirespeed_benches::gpu::trip::{Trip, fill, start, travel, upload};
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{BuildOptions, Engine, Family, Lookup, NextHop, V4};
use wirespeed_fold::FoldHot;
use wirespeed_gpu::ip::KeyBytes;
use wirespeed_gpu::runtime::SlotSize;

/// Keys of a trace.
const KEYS: usize = 1 << 22;
/// Keys of a batch.
const BATCHES: [usize; 6] = [1 << 8, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
/// Keys that the CPU's cost is measured by.
const BY_CPU: usize = 1 << 24;
/// Batches under way.
const IN_FLIGHT: usize = 6;

fn batches(criterion: &mut Criterion) {
    let source =
        sources().into_iter().find(|source| source.family == Family::V4).expect("there is always one");
    let (rib, _) = source.rib::<V4>().expect("the table is read");
    let trace = keys(&rib, TraceKind::Prefix, KEYS, 1).expect("the table has prefixes");
    let (_, table) = FoldHot::build(&rib, &BuildOptions::default()).expect("the table is built");
    let bits = rib.by_length().iter().rposition(|&count| count > 0).unwrap_or(0);
    let key = KeyBytes::for_bits(Family::V4, u8::try_from(bits).expect("a length"));
    let mut bench = Bench::open().map_err(|why| eprintln!("the GPU's side is skipped: {why}")).ok();

    let mut group = criterion.benchmark_group(format!("{}/prefix/trip", source.name));
    for batch in BATCHES {
        group.throughput(Throughput::Elements(batch as u64));
        let mut found = vec![NextHop::NONE; batch];
        group.bench_function(BenchmarkId::new("cpu", batch), |bencher| {
            let mut parts = trace.chunks_exact(batch).cycle();
            bencher.iter(|| table.lookup_batch(parts.next().expect("a cycle"), &mut found));
        });
        let (before, rounds) = (cpu_seconds(), (BY_CPU / batch).max(1));
        for part in trace.chunks_exact(batch).cycle().take(rounds) {
            table.lookup_batch(part, &mut found);
        }
        println!(
            "batches of {batch}: {:.2} s of CPU time a billion on the CPU",
            cost(before, rounds * batch)
        );
        let Some(bench) = &mut bench else { continue };
        let gpu = start(0, key, &[SlotSize { slots: IN_FLIGHT, keys: batch }]).expect("the GPU starts");
        let handle = upload(&gpu, &table, key).expect("the table is uploaded");
        let trip = Trip { batch, in_flight: IN_FLIGHT, way: None, time: Duration::from_millis(100) };
        let mut filled = Some(fill(&gpu, &handle, &table, &trace, key, &trip).expect("answers are right"));
        let (mut rate, mut taken) = (0.0, 0.0);
        group.bench_function(BenchmarkId::new("gpu", batch), |bencher| {
            bencher.iter_custom(|rounds| {
                let before = cpu_seconds();
                let (travelled, back) =
                    travel(&handle, filled.take().expect("filled"), &trip).expect("the GPU answers");
                filled = Some(back);
                rate = travelled.rate;
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
                let keys = (rate * trip.time.as_secs_f64()) as usize;
                taken = cost(before, keys);
                #[allow(clippy::cast_precision_loss)] // a time
                Duration::from_secs_f64(rounds as f64 * batch as f64 / travelled.rate)
            });
        });
        let bus = ceiling::bus(bench, key.count(), handle.result_bytes(), batch, IN_FLIGHT, 0.1)
            .expect("it is copied");
        println!(
            "batches of {batch}: {:.3} of what the bus gives ({:.2} G keys/s); {taken:.2} s of CPU time a billion",
            rate / bus,
            bus / 1e9
        );
    }
    group.finish();
}

/// Seconds of CPU time that all threads of this program have taken, with those of the system for them.
#[allow(clippy::cast_precision_loss)] // a time
fn cpu_seconds() -> f64 {
    let taken = clock_gettime(ClockId::ProcessCPUTime);
    taken.tv_sec as f64 + taken.tv_nsec as f64 / 1e9
}

/// Seconds of CPU time since `before` for a billion of so many lookups.
#[allow(clippy::cast_precision_loss)] // a rate
fn cost(before: f64, lookups: usize) -> f64 {
    (cpu_seconds() - before) * 1e9 / lookups.max(1) as f64
}

criterion_group! {
    name = gpu;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = batches
}
criterion_main!(gpu);
