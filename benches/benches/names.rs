//! Engines of names and their rivals by batch size, on real domains where there are any, and whole trips on a
//! GPU where there is one.
//!
//! `cargo xtask record names` interleaves and is what records are made with. Here is what to look at while
//! working on an engine: `cargo bench --bench names -- acta`.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::mata_paper::pipeline::Pipeline;
use wirespeed_benches::mata_paper::subject::Placed;
use wirespeed_benches::names::contest::{Lane, keep_right};
use wirespeed_benches::names::data::{self, Kind, Table, Trace};
use wirespeed_benches::names::lineup;
use wirespeed_benches::table::Mode;
use wirespeed_namelookup::stt::Stt;
use wirespeed_namelookup::{Acta, BuildOptions, Engine};

/// Names of the table: enough to be out of most caches, few enough to be built in seconds.
const NAMES: usize = 1_000_000;
/// Names of the trace.
const TRACE: usize = 1 << 19;
const BATCHES: [usize; 4] = [1, 16, 256, 1024];
/// Names of a batch on a GPU.
const GPU_BATCHES: [usize; 3] = [1 << 12, 1 << 15, 1 << 18];

fn names(criterion: &mut Criterion) {
    let paths = data::paths().expect("paths are read or made");
    let table = data::small(NAMES).expect("names are read or made");
    let trace = Trace::draw(&table.names, Kind::Average, &paths, TRACE, 1).expect("the table has names");
    on_cpu(criterion, &table, &trace);
    match Bench::open() {
        Ok(bench) => on_gpu(criterion, bench, &table, &trace),
        Err(why) => eprintln!("the GPU's side is skipped: {why}"),
    }
}

fn on_cpu(criterion: &mut Criterion, table: &Table, trace: &Trace) {
    let names = trace.names.names();
    // A state transition table is refused at this size.
    for entry in lineup::lookups().into_iter().filter(|entry| entry.name != Stt::NAME) {
        let mut group = criterion.benchmark_group(format!("{}/average/{}", table.name, entry.name));
        let mut lane: Option<Lane> = None;
        for batch in BATCHES {
            group.throughput(Throughput::Elements(batch as u64));
            let mut at = 0;
            group.bench_function(BenchmarkId::from_parameter(batch), |bencher| {
                // Built only where the filter lets it run, and held against the table before it is timed.
                let lane = lane.get_or_insert_with(|| {
                    let mut lanes = vec![entry.build(&table.names).expect("the table is built")];
                    keep_right(&mut lanes, 1024, trace);
                    lanes.pop().expect("its results are right")
                });
                let mode = if batch == 1 { Mode::Single } else { Mode::Batch(batch) };
                bencher.iter_custom(|rounds| {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        at = if at + batch > names.len() { 0 } else { at };
                        lane.run(mode, names.part(at..at + batch));
                        at += batch;
                    }
                    start.elapsed()
                });
            });
        }
        group.finish();
    }
}

fn on_gpu(criterion: &mut Criterion, mut bench: Bench, table: &Table, trace: &Trace) {
    let (_, built) = Acta::build(&table.names, &BuildOptions::default()).expect("the table is built");
    let placed = Placed::of(&mut bench, Acta::NAME, &built).expect("the table is placed");
    for method in placed.methods() {
        let mut group = criterion.benchmark_group(format!("{}/average/gpu-{}", table.name, method.name));
        for batch in GPU_BATCHES {
            let names = trace.names.names().part(0..batch);
            let best = method.best(&mut bench, names, &trace.expected).expect("results are right");
            let pipeline = Pipeline::new(&mut bench, method.layout, names, 4).expect("there is memory");
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(BenchmarkId::from_parameter(batch), |bencher| {
                bencher.iter_custom(|rounds| {
                    let timing =
                        pipeline.run(&mut bench, Some((best.0, best.1)), 0.02).expect("the GPU answers");
                    #[allow(clippy::cast_precision_loss)] // a time
                    Duration::from_secs_f64(rounds as f64 * timing.batch_seconds)
                });
            });
            pipeline.forget(&mut bench).expect("the GPU answers");
        }
        group.finish();
    }
    placed.forget(&mut bench).expect("the GPU answers");
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = names
}
criterion_main!(benches);
