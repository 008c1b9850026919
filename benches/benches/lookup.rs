//! Batched and single lookups of every engine and rival on full tables, and the bare gathers that bound them.
//!
//! What criterion measures one after the other drifts with the machine; `cargo xtask record` interleaves and
//! is what records are made with. Here is what to look at while working on an engine:
//! `cargo bench --bench lookup -- sail`.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed_benches::batch::Batch;
use wirespeed_benches::contest::{check, expected};
use wirespeed_benches::data::{Source, sources};
use wirespeed_benches::gather;
use wirespeed_benches::lineup::{Entry, Lineup};
use wirespeed_benches::table::Mode;
use wirespeed_benches::trace::Trace;
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{Family, Rib, V4, V6};

/// Keys of a trace, all distinct.
const KEYS: usize = 1 << 22;
/// Keys a call.
const BATCH: usize = 1024;
const SEED: u64 = 1;

fn lookups(criterion: &mut Criterion) {
    #[cfg(feature = "dpdk")]
    wirespeed_benches::dpdk::start(wirespeed_benches::machine::last_core()).expect("DPDK starts");
    // One table of each family: the first that there is.
    for family in [Family::V4, Family::V6] {
        let Some(source) = sources().into_iter().find(|source| source.family == family) else { continue };
        match family {
            Family::V4 => on::<V4>(criterion, &source, gather::lookups),
            Family::V6 => on::<V6>(criterion, &source, Vec::new),
        }
    }
}

fn on<A: Lineup>(criterion: &mut Criterion, source: &Source, ceiling: fn() -> Vec<Entry<A>>) {
    let (rib, _) = source.rib::<A>().expect("the table is read");
    for kind in [TraceKind::Random, TraceKind::Prefix] {
        let trace = Trace::draw(&rib, kind, KEYS, SEED).expect("the table has prefixes");
        for (what, mode) in [("batch", Mode::Batch(BATCH)), ("single", Mode::Single)] {
            let group = format!("{}/{kind}/{what}", source.name);
            let entries = A::lookups(false);
            race(criterion, &group, entries, &rib, &trace, mode, true);
            if kind == TraceKind::Random && what == "batch" {
                race(criterion, &group, ceiling(), &rib, &trace, mode, false);
            }
        }
    }
}

fn race<A: Lineup>(
    criterion: &mut Criterion,
    group: &str,
    entries: Vec<Entry<A>>,
    rib: &Rib<A>,
    trace: &Trace<A>,
    mode: Mode,
    is_lookup: bool,
) {
    let mut group = criterion.benchmark_group(group);
    group.throughput(Throughput::Elements(BATCH as u64));
    for entry in entries {
        let mut lane = None;
        group.bench_function(BenchmarkId::from_parameter(&entry.name), |bencher| {
            // Built only where the filter lets it run, and held against the Rib before it is timed.
            let lane = lane.get_or_insert_with(|| {
                let lane = entry.build(rib).expect("the table is built");
                if is_lookup {
                    check(lane.as_ref(), mode, trace, &expected(rib, trace))
                        .unwrap_or_else(|wrong| panic!("{wrong}"));
                }
                lane
            });
            lane.select();
            let mut at = 0;
            bencher.iter_custom(|rounds| {
                let mut time = Duration::ZERO;
                for _ in 0..rounds {
                    let start = Instant::now();
                    lane.run(mode, trace.all().part(at..at + BATCH));
                    time += start.elapsed();
                    at = (at + BATCH) % (trace.len() - BATCH);
                }
                time
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = lookups
}
criterion_main!(benches);
