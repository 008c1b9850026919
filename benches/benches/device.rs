//! Keys that are in a GPU's memory already, on the first GPU of this machine: through the façade, through the
//! runtime, and by bare launches of the fastest program and shape.
//!
//! All three look up the same keys in the same kind of table, and are given lookup after lookup in one
//! stream; the time ends when the stream is done. Answers are held against the CPU's before. Without a GPU
//! nothing is measured.

use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed::engine::EngineName;
use wirespeed::on_device::{DeviceKeys, DeviceMemory, MOST_RESULT_BYTES};
use wirespeed::{DeviceTable, Fleet, Table};
use wirespeed_benches::data::sources;
use wirespeed_benches::gpu::Device;
use wirespeed_benches::gpu::bench::{Bench, Keys, Uploaded};
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{BuildOptions, Engine, Family, Lookup, NextHop, V4};
use wirespeed_fold::FoldHot;
use wirespeed_gpu::driver::{DevicePtr, Shape};
use wirespeed_gpu::runtime::{self, Enqueued, Gpu, GpuOptions, TableHandle};
use wirespeed_image::Table as _;
use wirespeed_image::device::{OnDevice, Program};

/// Keys of a lookup.
const BATCHES: [usize; 4] = [1 << 16, 1 << 20, 1 << 22, 1 << 24];
/// Bytes of a key: the whole address.
const KEY_BYTES: usize = 4;
/// Launches by which a shape is judged.
const ROUNDS: usize = 20;

fn device_resident(criterion: &mut Criterion) {
    let mut bench = match Bench::open() {
        Ok(bench) => bench,
        Err(why) => return println!("no GPU, nothing is measured: {why}"),
    };
    let source =
        sources().into_iter().find(|source| source.family == Family::V4).expect("there is always one");
    let (rib, _) = source.rib::<V4>().expect("the table is read");
    let (_, table) = FoldHot::build(&rib, &BuildOptions::default()).expect("the table is built");
    let gpu = Gpu::start(Device::Gpu.open().expect("it was opened before"), GpuOptions::default())
        .expect("the GPU starts");
    let handle = gpu.upload(table.image(), |sections| table.programs(sections)).expect("it is uploaded");
    // Building it finds the fastest launches of this GPU: for the table above, too.
    let builder = Table::builder().rib(rib.clone()).engine(EngineName::FoldHot);
    let fleet = Fleet::new(vec![gpu.clone()]).expect("one at least");
    let built = builder.device(wirespeed::Device::Gpu).fleet(fleet).build().expect("the table is built");
    let on_gpu = built.reader().on_device(0).expect("it is on the GPU");
    let uploaded = bench.upload(&table).expect("it is uploaded");

    let mut group = criterion.benchmark_group(format!("{}/prefix/device", source.name));
    for batch in BATCHES {
        let trace = keys(&rib, TraceKind::Prefix, batch, 1).expect("the table has prefixes");
        let mut right = vec![NextHop::NONE; batch];
        table.lookup_batch(&trace, &mut right);
        let lane = Lane::new(&mut bench, &trace);
        let runtime = |lane: &Lane| lane.by_runtime(&gpu, &handle);
        let facade = |lane: &Lane| lane.by_facade(&on_gpu);
        lane.check(&mut bench, runtime(&lane), &right);
        lane.check(&mut bench, facade(&lane), &right);
        let on_bench = bench.keys(&trace, KEY_BYTES).expect("there is memory");
        let (program, shape) = fastest(&mut bench, &uploaded, &on_bench, &right);

        group.throughput(Throughput::Elements(batch as u64));
        let mut seconds = [f64::NAN; 3];
        group.bench_function(BenchmarkId::new("facade", batch), |bencher| {
            bencher.iter_custom(|rounds| timed(&mut bench, rounds, &mut seconds[0], |_| _ = facade(&lane)));
        });
        group.bench_function(BenchmarkId::new("runtime", batch), |bencher| {
            bencher.iter_custom(|rounds| timed(&mut bench, rounds, &mut seconds[1], |_| _ = runtime(&lane)));
        });
        group.bench_function(BenchmarkId::new("kernel", batch), |bencher| {
            bencher.iter_custom(|rounds| {
                timed(&mut bench, rounds, &mut seconds[2], |bench| {
                    bench.launch(program, &on_bench, shape).expect("it is launched");
                })
            });
        });
        let [facade, runtime, kernel] = seconds;
        #[allow(clippy::cast_precision_loss)] // a rate
        let rate = batch as f64 / facade / 1e9;
        println!(
            "{batch} keys: the façade {rate:.1} G/s, {:.3} of the runtime, {:.3} of the bare kernel; results of {} \
             bytes, of {} there",
            runtime / facade,
            kernel / facade,
            on_gpu.result_bytes(),
            program.result_bytes
        );
        bench.drop_keys(&on_bench).expect("it is given back");
        bench.free(&[lane.keys]).expect("it is given back");
        bench.free(&[lane.results]).expect("it is given back");
    }
    group.finish();
}

/// The time of so many lookups in the bench's stream, and the least time of one so far.
fn timed(bench: &mut Bench, rounds: u64, least: &mut f64, look_up: impl Fn(&mut Bench)) -> Duration {
    let began = Instant::now();
    (0..rounds).for_each(|_| look_up(bench));
    bench.driver.synchronize(bench.stream).expect("it is done");
    let took = began.elapsed();
    #[allow(clippy::cast_precision_loss)] // a time
    let each = took.as_secs_f64() / rounds as f64;
    *least = each.min(*least);
    took
}

/// The fastest program and shape for bare launches, whose answers are right.
fn fastest<'t>(
    bench: &mut Bench,
    table: &'t Uploaded,
    keys: &Keys,
    right: &[NextHop],
) -> (&'t Program, Shape) {
    let mut best: Option<(f64, &Program, Shape)> = None;
    for program in &table.programs {
        for shape in bench.shapes(program, KEY_BYTES).expect("the device is there") {
            let rate = bench.rate(program, keys, shape, ROUNDS).expect("it is launched");
            if best.is_none_or(|(most, ..)| rate > most) {
                best = Some((rate, program, shape));
            }
        }
    }
    let (_, program, shape) = best.expect("a table has a program");
    bench.spoil(keys).expect("it is copied");
    bench.launch(program, keys, shape).expect("it is launched");
    assert_eq!(bench.differing(program, keys, right).expect("it is copied"), 0, "answers of bare launches");
    (program, shape)
}

/// Keys and memory for results, as a job on the GPU has them.
struct Lane {
    stream: wirespeed_gpu::driver::Stream,
    keys: DevicePtr,
    results: DevicePtr,
    count: usize,
}

#[allow(unsafe_code)] // plays a job with memory on the GPU
impl Lane {
    fn new(bench: &mut Bench, trace: &[V4]) -> Self {
        let keys = bench.fill(bytemuck::cast_slice(trace)).expect("there is memory");
        let results = bench.fill(&vec![0xff; MOST_RESULT_BYTES * trace.len()]).expect("there is memory");
        Self { stream: bench.stream, keys, results, count: trace.len() }
    }

    fn memory(&self) -> DeviceMemory {
        DeviceMemory { at: self.results, bytes: MOST_RESULT_BYTES * self.count }
    }

    fn by_facade(&self, table: &DeviceTable<V4>) -> Enqueued {
        let keys = DeviceKeys::whole(self.keys, self.count);
        // SAFETY: both blocks are of the first GPU, which the table is on, and of its primary context, and as
        // long as stated; only the bench's stream uses them, and they are freed after it was waited for.
        unsafe { table.lookup_on(self.stream, keys, self.memory()) }.expect("the GPU looks up")
    }

    fn by_runtime(&self, gpu: &Gpu, table: &TableHandle) -> Enqueued {
        let keys = runtime::DeviceKeys::bytes(KEY_BYTES, self.keys, None, self.count);
        // SAFETY: as above.
        unsafe { gpu.lookup_on(table, self.stream, keys, self.memory()) }.expect("the GPU looks up")
    }

    /// Holds the results of a lookup against the right ones, and overwrites them.
    fn check(&self, bench: &mut Bench, enqueued: Enqueued, right: &[NextHop]) {
        let mut bytes = vec![0; self.count * enqueued.result_bytes];
        // SAFETY: the destination lives until the copy is waited for.
        unsafe { bench.driver.copy_out(self.stream, bytes.as_mut_ptr(), self.results, bytes.len()) }
            .expect("it is copied");
        bench.driver.synchronize(self.stream).expect("it is done");
        let mut found = vec![0; self.count];
        enqueued.unpack(&bytes, &mut found);
        let differ = found.iter().zip(right).filter(|(found, right)| **found != right.0).count();
        assert_eq!(differ, 0, "results that differ from the CPU's");
        bench.put(self.results, &vec![0xff; bytes.len()]).expect("it is copied");
    }
}

criterion_group! {
    name = device;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = device_resident
}
criterion_main!(device);
