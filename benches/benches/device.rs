//! Keys that are in a GPU's memory already, on the first GPU of this machine: addresses of both families,
//! names and tuples, through the façade, through the runtime, and by bare launches of the fastest program and
//! shape.
//!
//! All look up the same keys in the same kind of table, and are given lookup after lookup in one stream; the
//! time ends when the stream is done. A second copy of the runtime's table tells what its place makes.
//! Answers are held against the CPU's before. Without a GPU nothing is measured.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wirespeed::engine::{Addresses, EngineName, Served};
use wirespeed::on_device::{DeviceKeys, Wanted};
use wirespeed::{Classifier, DeviceTable, Fleet, NameTable, Table};
use wirespeed_benches::classify;
use wirespeed_benches::data::sources;
use wirespeed_benches::gpu::Device;
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::in_form::{InForm, kernel_rates};
use wirespeed_benches::names;
use wirespeed_benches::report::median;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::{Ipv4Tuple, kernel::result_bytes};
use wirespeed_fib::trace::{TraceKind, keys};
use wirespeed_fib::{BuildOptions, Engine, InFib, Lookup, NextHop, Strides, V4, V6};
use wirespeed_fold::{FoldHot, FoldV6};
use wirespeed_gpu::ip::{KeyBytes, pack};
use wirespeed_gpu::runtime::{Form, Gpu, GpuOptions};
use wirespeed_image::device::OnDevice;
use wirespeed_namelookup::{Acta, NameDomain};

/// Keys of a lookup.
const BATCHES: [usize; 4] = [1 << 16, 1 << 20, 1 << 22, 1 << 24];
/// The most names and tuples of a lookup.
const MOST: usize = 1 << 22;
/// Names of the table, and its results.
const NAMES: usize = 300_000;
/// The rules.
const RULES: &str = "acl1_10k";
/// Launches by which a shape is judged, and lookups of a turn.
const ROUNDS: usize = 20;
/// Turns of the ways.
const TURNS: usize = 25;
const SEED: u64 = 1;

fn device_resident(criterion: &mut Criterion) {
    let bench = match Bench::open() {
        Ok(bench) => bench,
        Err(why) => return println!("no GPU, nothing is measured: {why}"),
    };
    let gpu = Gpu::start(Device::Gpu.open().expect("it was opened before"), GpuOptions::default())
        .expect("the GPU starts");
    let mut sides = Sides { criterion, bench, gpu };
    sides.addresses::<V4, FoldHot>(EngineName::FoldHot).expect("IPv4");
    sides.addresses::<V6, FoldV6>(EngineName::Fold).expect("IPv6");
    sides.names().expect("names");
    sides.rules().expect("rules");
}

/// The sides that are measured in turn.
struct Sides<'c> {
    criterion: &'c mut Criterion,
    bench: Bench,
    gpu: Gpu,
}

/// A lookup of all keys, put into the bench's stream.
type LookUp<'l> = dyn Fn(&mut Bench) -> Result<()> + 'l;

/// A domain's keys: their bytes in a form, and the right results.
type Laid = (Vec<u8>, Form, Vec<u32>);

impl Sides<'_> {
    fn fleet(&self) -> Result<Fleet> {
        Ok(Fleet::new(vec![self.gpu.clone()])?)
    }

    fn addresses<A: Addresses + InFib, E: Engine<A, Table: OnDevice>>(
        &mut self,
        engine: EngineName,
    ) -> Result<()> {
        let source = sources().into_iter().find(|source| source.family == A::FAMILY).context("a table")?;
        let (rib, _) = source.rib::<A>()?;
        let options = BuildOptions { strides: Strides::FastestOnGpu, ..BuildOptions::default() };
        let (_, table) = E::build(&rib, &options)?;
        // Building it finds the fastest launches of this GPU: for the table above, too.
        let builder = Table::<A>::builder().rib(rib.clone()).engine(engine);
        let built = builder.device(wirespeed::Device::Gpu).fleet(self.fleet()?).build()?;
        let on_gpu = built.reader().on_device(0)?;
        let whole = |there: &InForm| DeviceKeys::<A>::whole(there.keys, there.form.count());
        for batch in BATCHES {
            let trace = keys(&rib, TraceKind::Prefix, batch, SEED)?;
            let mut right = vec![NextHop::NONE; batch];
            table.lookup_batch(&trace, &mut right);
            let mut bytes = vec![0; size_of_val(&trace[..])];
            let form = pack(&trace, KeyBytes::whole(A::FAMILY), &mut bytes).context("room")?;
            let right = bytemuck::cast_slice(&right).to_vec();
            self.compare(&format!("{}/prefix", source.name), &table, &on_gpu, (bytes, form, right), whole)?;
        }
        Ok(())
    }

    fn names(&mut self) -> Result<()> {
        let source = names::data::small(NAMES)?;
        let (_, table) = Acta::build(&source.names, &BuildOptions::default())?;
        let entries = source.names.iter().map(|(name, result)| (name, NextHop(result)));
        let builder = NameTable::builder().names(entries).engine(EngineName::Acta);
        let built = builder.device(wirespeed::Device::Gpu).fleet(self.fleet()?).build()?;
        let on_gpu = built.reader().on_device(0)?;
        let packed = |there: &InForm| {
            DeviceKeys::<NameDomain>::packed(Wanted::Results, there.keys, there.second(), there.form.count())
        };
        let trace = names::data::Trace::draw(
            &source.names,
            names::data::Kind::Average,
            &names::data::paths()?,
            MOST,
            SEED,
        )?;
        for batch in BATCHES.into_iter().filter(|&batch| batch <= MOST) {
            let names = trace.names.names().part(0..batch);
            let mut bytes = vec![0; wirespeed_gpu::names::bytes_of(names)];
            let form = wirespeed_gpu::names::pack(names, Wanted::Results, &mut bytes).context("room")?;
            let laid = (bytes, form, trace.expected[..batch].to_vec());
            self.compare(&format!("{}/average", source.name), &table, &on_gpu, laid, packed)?;
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<()> {
        let set = classify::data::set(RULES)?;
        let (_, table) = Quilt::<Ipv4Tuple>::build(&set.rules, &BuildOptions::default())?;
        let builder =
            Classifier::<Ipv4Tuple>::builder().rule_set(set.rules.clone()).engine(EngineName::Quilt);
        let built = builder.device(wirespeed::Device::Gpu).fleet(self.fleet()?).build()?;
        let on_gpu = built.reader().on_device(0)?;
        let tuples =
            |there: &InForm| DeviceKeys::<Ipv4Tuple>::tuples(there.keys, there.second(), there.form.count());
        let trace = wirespeed_classify::drawn::tuples(&set.rules, MOST, 1.0, SEED);
        let mut right = vec![0; MOST];
        table.lookup_batch(&trace, &mut right);
        for batch in BATCHES.into_iter().filter(|&batch| batch <= MOST) {
            let mut bytes = vec![0; wirespeed_gpu::classify::bytes_of::<Ipv4Tuple>(batch)];
            let width = result_bytes(set.rules.len() as u64);
            let form = wirespeed_gpu::classify::pack(&trace[..batch], width, &mut bytes).context("room")?;
            let laid = (bytes, form, right[..batch].to_vec());
            self.compare(&format!("{}/drawn", set.name), &table, &on_gpu, laid, tuples)?;
        }
        Ok(())
    }

    /// Measures the ways with the same keys, whose results are known.
    #[allow(clippy::cast_precision_loss)] // rates
    fn compare<D: Served>(
        &mut self,
        name: &str,
        table: &impl OnDevice,
        on_gpu: &DeviceTable<D>,
        (bytes, form, right): Laid,
        keys: impl Fn(&InForm) -> DeviceKeys<D>,
    ) -> Result<()> {
        let Self { criterion, bench, gpu } = self;
        // Two copies: their places alone tell them apart.
        let [handle, other] = [
            gpu.upload(table.image(), |sections| table.programs(sections)),
            gpu.upload(table.image(), |sections| table.programs(sections)),
        ];
        let (handle, other) = (handle?, other?);
        let uploaded = bench.upload(table)?;
        let there = bench.in_form(&bytes, form)?;
        let best = kernel_rates(bench, &uploaded, &there, &right, ROUNDS)?.into_iter().next();
        let best = best.context("a table has a program")?;
        let program = &uploaded.programs[best.program];
        let lane = Lane { there, keys };
        for way in [Way::Facade(on_gpu), Way::Runtime(gpu, &handle)] {
            let result_bytes = lane.enqueue(bench, way)?;
            bench.check_in_form(bench.stream, &lane.there, result_bytes, &right)?;
        }

        let batch = right.len();
        let bare = |bench: &mut Bench| bench.launch_in_form(program, &lane.there, best.shape);
        let facade = |bench: &mut Bench| lane.enqueue(bench, Way::Facade(on_gpu)).map(drop);
        let runtime = |bench: &mut Bench| lane.enqueue(bench, Way::Runtime(gpu, &handle)).map(drop);
        let other = |bench: &mut Bench| lane.enqueue(bench, Way::Runtime(gpu, &other)).map(drop);
        let ways: [&LookUp; 4] = [&facade, &runtime, &other, &bare];
        let mut group = criterion.benchmark_group(format!("{name}/device"));
        group.throughput(Throughput::Elements(batch as u64));
        for (way, look_up) in ["facade", "runtime", "other copy", "kernel"].into_iter().zip(ways) {
            group.bench_function(BenchmarkId::new(way, batch), |bencher| {
                bencher.iter_custom(|rounds| timed(bench, rounds, look_up));
            });
        }
        group.finish();
        // In turns, because the device's clocks change.
        let mut seconds = [const { Vec::new() }; 4];
        for _ in 0..TURNS {
            for (seconds, look_up) in seconds.iter_mut().zip(ways) {
                // A thread of the runtime that slept while others had their turn wakes up.
                timed(bench, 2, look_up);
                seconds.push(timed(bench, ROUNDS as u64, look_up).as_secs_f64() / ROUNDS as f64);
            }
        }
        let [facade, runtime, other, kernel] = seconds.map(|seconds| median(&seconds));
        println!(
            "{name}: {batch} keys: the façade {:.2} G/s, {:.3} of the runtime, {:.3} of the bare kernel; another copy {:.3} \
             of the runtime; results of {} bytes",
            batch as f64 / facade / 1e9,
            runtime / facade,
            kernel / facade,
            runtime / other,
            on_gpu.result_bytes(),
        );
        bench.drop_in_form(&lane.there)?;
        bench.forget(&uploaded)
    }
}

/// The time of so many lookups in the bench's stream.
fn timed(bench: &mut Bench, rounds: u64, look_up: &LookUp) -> Duration {
    let began = Instant::now();
    (0..rounds).for_each(|_| look_up(bench).expect("the GPU looks up"));
    bench.driver.synchronize(bench.stream).expect("it is done");
    began.elapsed()
}

/// A way to look keys up that are on the GPU.
#[derive(Clone, Copy)]
enum Way<'a, D: Served> {
    Facade(&'a DeviceTable<D>),
    Runtime(&'a Gpu, &'a wirespeed_gpu::runtime::TableHandle),
}

/// Keys and memory for results, as a job on the GPU has them.
struct Lane<K> {
    there: InForm,
    keys: K,
}

#[allow(unsafe_code)] // plays a job with memory on the GPU
impl<K> Lane<K> {
    /// Puts a lookup into the bench's stream. Returns the bytes of a result.
    fn enqueue<D: Served>(&self, bench: &Bench, way: Way<'_, D>) -> Result<usize>
    where
        K: Fn(&InForm) -> DeviceKeys<D>,
    {
        let memory = self.there.memory();
        // SAFETY: both blocks are of the first GPU, which the table is on, and of its primary context, and as
        // long as stated; only the bench's stream uses them, and they are freed after it was waited for.
        let enqueued = unsafe {
            match way {
                Way::Facade(table) => table.lookup_on(bench.stream, (self.keys)(&self.there), memory)?,
                Way::Runtime(gpu, table) => {
                    gpu.lookup_on(table, bench.stream, self.there.device_keys(), memory)?
                }
            }
        };
        Ok(enqueued.result_bytes)
    }
}

criterion_group! {
    name = device;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    targets = device_resident
}
criterion_main!(device);
