//! Updates of every engine and rival: the real trace where there is one, a synthetic one otherwise, over and
//! over.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed_benches::data::{Source, sources};
use wirespeed_benches::lineup::Lineup;
use wirespeed_fib::{Family, V4, V6};

/// Updates a call.
const BATCH: usize = 256;

fn updates(criterion: &mut Criterion) {
    #[cfg(feature = "dpdk")]
    wirespeed_benches::dpdk::start(wirespeed_benches::machine::last_core()).expect("DPDK starts");
    for family in [Family::V4, Family::V6] {
        let Some(source) = sources().into_iter().find(|source| source.family == family) else { continue };
        match family {
            Family::V4 => on::<V4>(criterion, &source),
            Family::V6 => on::<V6>(criterion, &source),
        }
    }
}

fn on<A: Lineup>(criterion: &mut Criterion, source: &Source) {
    let (rib, mut next_hops) = source.rib::<A>().expect("the table is read");
    let updates = source.updates::<A>(&rib, &mut next_hops).expect("the updates are read");
    let batches: Vec<_> = updates.chunks_exact(BATCH).collect();
    let mut group = criterion.benchmark_group(format!("{}/update", source.name));
    group.throughput(Throughput::Elements(BATCH as u64));
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    for entry in A::updates() {
        let mut lane = None;
        group.bench_function(BenchmarkId::from_parameter(&entry.name), |bencher| {
            let lane = lane.get_or_insert_with(|| entry.build(&rib).expect("the table is built"));
            lane.select();
            let mut at = 0;
            bencher.iter_custom(|rounds| {
                let start = Instant::now();
                for _ in 0..rounds {
                    lane.update(batches[at % batches.len()]);
                    at += 1;
                }
                start.elapsed()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, updates);
criterion_main!(benches);
