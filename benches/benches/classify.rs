//! Engines of rules and their rivals by batch size, on a set of ClassBench, and whole trips on a GPU where
//! there is one.
//!
//! `cargo xtask record classify` interleaves and is what records are made with. Here is what to look at while
//! working on an engine: `cargo bench --bench classify -- quilt`.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed_benches::batch::Batch;
use wirespeed_benches::classify::contest::{Lane, keep_right};
use wirespeed_benches::classify::data::{self, Set};
use wirespeed_benches::classify::lineup;
use wirespeed_benches::classify::trace::Trace;
use wirespeed_benches::gpu::Device;
use wirespeed_benches::gswitch_paper::Scale;
use wirespeed_benches::gswitch_paper::device::Rig;
use wirespeed_benches::gswitch_paper::subject::methods;
use wirespeed_benches::table::Mode;

/// Large enough that a scan is of no use, and the set of a firewall rather than of a backbone.
const SET: &str = "acl1_10k";
const SEED: u64 = 1;
const BATCHES: [usize; 4] = [1, 16, 256, 1024];
/// Tuples of a batch on a GPU.
const GPU_BATCHES: [usize; 3] = [1 << 12, 1 << 15, 1 << 17];

fn classify(criterion: &mut Criterion) {
    // rte_acl needs DPDK to be started, which is done once for a process.
    #[cfg(feature = "dpdk")]
    wirespeed_benches::dpdk::start(wirespeed_benches::machine::last_core()).expect("DPDK starts");
    let set = data::set(SET).expect("the set is read or made");
    on_cpu(criterion, &set);
    on_gpu(criterion, &set);
}

fn on_cpu(criterion: &mut Criterion, set: &Set) {
    let (tuples, right) = set.shuffled(SEED);
    let trace = Trace::new("shuffled", SEED, tuples, right);
    for entry in lineup::lookups() {
        let mut group = criterion.benchmark_group(format!("{}/shuffled/{}", set.name, entry.name));
        let mut lane: Option<Lane> = None;
        for batch in BATCHES {
            group.throughput(Throughput::Elements(batch as u64));
            let mut at = 0;
            group.bench_function(BenchmarkId::from_parameter(batch), |bencher| {
                // Built only where the filter lets it run, and held against the truth before it is timed.
                let lane = lane.get_or_insert_with(|| {
                    let mut lanes = vec![entry.build(&set.rules).expect("the table is built")];
                    keep_right(&mut lanes, 1024, &trace);
                    lanes.pop().expect("its numbers are right")
                });
                let mode = if batch == 1 { Mode::Single } else { Mode::Batch(batch) };
                bencher.iter_custom(|rounds| {
                    let start = Instant::now();
                    for _ in 0..rounds {
                        at = if at + batch > trace.len() { 0 } else { at };
                        lane.run(mode, trace.tuples().part(at..at + batch));
                        at += batch;
                    }
                    start.elapsed()
                });
            });
        }
        group.finish();
    }
}

fn on_gpu(criterion: &mut Criterion, set: &Set) {
    let most = GPU_BATCHES.into_iter().max().unwrap_or(1);
    let scale = Scale {
        rules: set.rules.len(),
        tuples: most,
        batch: GPU_BATCHES[0],
        trip: most,
        in_flight: 8,
        seconds: 0.02,
        rounds: 5,
        cores: vec![1],
        large: Vec::new(),
    };
    let mut rig = match Rig::open(Device::Gpu, &scale) {
        Ok(rig) => rig,
        Err(why) => return eprintln!("the GPU's side is skipped: {why:#}"),
    };
    let (tuples, right) = set.shuffled(SEED);
    let (tuples, right): (Vec<_>, Vec<_>) = tuples.into_iter().zip(right).cycle().take(most).unzip();
    for method in methods(&set.rules).iter().filter(|method| !method.is_scan()) {
        let handle = method.send(&rig.gpu, &tuples).expect("there is memory");
        let mut group = criterion.benchmark_group(format!("{}/shuffled/gpu-{}", set.name, method.name()));
        for batch in GPU_BATCHES {
            group.throughput(Throughput::Elements(batch as u64));
            group.bench_function(BenchmarkId::from_parameter(batch), |bencher| {
                bencher.iter_custom(|rounds| {
                    let trips = rig.trips(&handle, (&tuples, &right), batch, scale.in_flight, scale.seconds);
                    let rate = trips.expect("the GPU answers").travelled.rate;
                    #[allow(clippy::cast_precision_loss)] // a time
                    Duration::from_secs_f64(rounds as f64 * batch as f64 / rate)
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = classify
}
criterion_main!(benches);
