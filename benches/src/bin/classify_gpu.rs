//! Packet classification on a GPU: kernels alone and whole trips beside the bus, numbers held against the
//! CPU's.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use wirespeed_benches::classify::data;
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::in_form::kernel_rates;
use wirespeed_benches::gpu::trip::{Trip, travels};
use wirespeed_benches::gpu::{self, Device, ceiling, tuples};
use wirespeed_benches::report::Sheet;
use wirespeed_classify::bloom::BloomSearch;
use wirespeed_classify::generate::{Shape, Synthetic};
use wirespeed_classify::linear::Linear;
use wirespeed_classify::quilt::Quilt;
use wirespeed_classify::tuple_search::TupleSearch;
use wirespeed_classify::{BuildOptions, Engine, Lookup, OpenFlowTuple, RuleSet, Tuple};
use wirespeed_gpu::classify::bytes_of;
use wirespeed_gpu::runtime::Way;
use wirespeed_image::Table;
use wirespeed_image::device::OnDevice;

/// Seed of the order in which a trace is shuffled.
const SEED: u64 = 1;

/// Measures packet classification on the first GPU of this machine.
#[derive(Parser)]
struct Options {
    /// Synthetic sets of 12 fields: rules:classes
    #[arg(long, value_delimiter = ',', default_values_t = [String::from("1024:16"), "16384:64".into(), "131072:512".into()])]
    synthetic: Vec<String>,
    /// ClassBench sets, by the name of their files
    #[arg(long, value_delimiter = ',', default_values_t = [String::from("acl1_10k"), "fw1_10k".into(), "ipc1_10k".into()])]
    classbench: Vec<String>,
    /// Engines
    #[arg(long, value_delimiter = ',', default_value = "linear,tuple,bloom,quilt")]
    engines: Vec<String>,
    /// Linear search goes through at most so many entries
    #[arg(long, default_value_t = 4096)]
    linear_most: u64,
    /// Look up traces of ClassBench in the order of their files, and not shuffled
    #[arg(long)]
    in_order: bool,
    /// Tuples of the trace that lies on the device
    #[arg(long, default_value_t = 1 << 22)]
    tuples: usize,
    #[command(flatten)]
    gpu: gpu::options::Options,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let properties = Bench::open()?.properties().clone();
    println!(
        "{}, {} multiprocessors, L2 {} MiB",
        properties.name,
        properties.multiprocessors,
        properties.l2 >> 20
    );
    for shape in options.synthetic.iter().filter(|shape| !shape.is_empty()) {
        let (rules, classes) = shape.split_once(':').context("rules:classes")?;
        let set = Synthetic::<OpenFlowTuple>::new(Shape::even(rules.parse()?, classes.parse()?), 1)?;
        let trace = set.trace(options.tuples, 2);
        measure_set(&format!("synthetic {shape}"), &set.rules, &trace, &options)?;
    }
    for name in options.classbench.iter().filter(|name| !name.is_empty()) {
        let set = data::set(name)?;
        // In the order of its file equal tuples come in bursts, which threads that run together read once.
        let trace = if options.in_order { set.trace } else { set.shuffled(SEED).0 };
        let trace: Vec<_> = trace.iter().cycle().take(options.tuples).copied().collect();
        measure_set(&set.name, &set.rules, &trace, &options)?;
    }
    Ok(())
}

/// All engines with a set.
fn measure_set<T: Tuple>(what: &str, rules: &RuleSet<T>, trace: &[T], options: &Options) -> Result<()> {
    println!("\n{what}: {} rules, {} entries", rules.len(), rules.entries_len());
    let [packing, copying] = tuples::packing_rates(&trace[..trace.len().min(1 << 16)], 9)?;
    println!("packing by one thread: {:.1} GB/s, copying {:.1} GB/s", packing / 1e9, copying / 1e9);
    // The right ones, by the fastest of the paper's engines on CPUs.
    let (_, table) = BloomSearch::<T>::build(rules, &BuildOptions::default())?;
    let mut right = vec![0; trace.len()];
    table.par_lookup_batch(trace, &mut right);
    for engine in &options.engines {
        match engine.as_str() {
            "linear" if rules.entries_len() > options.linear_most => {}
            "linear" => measure::<T, Linear<T>>(what, rules, trace, &right, options)?,
            "tuple" => measure::<T, TupleSearch<T>>(what, rules, trace, &right, options)?,
            "bloom" => measure::<T, BloomSearch<T>>(what, rules, trace, &right, options)?,
            "quilt" => measure::<T, Quilt<T>>(what, rules, trace, &right, options)?,
            other => println!("no engine {other}"),
        }
    }
    Ok(())
}

fn measure<T: Tuple, E: Engine<T, Table: OnDevice>>(
    what: &str,
    rules: &RuleSet<T>,
    trace: &[T],
    right: &[u32],
    options: &Options,
) -> Result<()> {
    let began = Instant::now();
    let (_, table) = E::build(rules, &BuildOptions::default())?;
    let seconds = began.elapsed().as_secs_f64();
    let bytes = table.image().memory_usage().iter().map(|usage| usage.bytes).sum::<u64>();
    println!(
        "\n{}, {what}: built in {seconds:.2} s, {:.1} MB; {}",
        E::NAME,
        float(bytes) / 1e6,
        table.shape().unwrap_or_default()
    );
    kernels::<T, E>(what, &table, trace, right, options)?;
    trips::<T, E>(what, &table, trace, right, options)
}

fn kernels<T: Tuple, E: Engine<T, Table: OnDevice>>(
    what: &str,
    table: &E::Table,
    trace: &[T],
    right: &[u32],
    options: &Options,
) -> Result<()> {
    let mut bench = Bench::open()?;
    let uploaded = bench.upload(table)?;
    let mut sheet = Sheet {
        title: format!("{}, {what}: kernel alone, {} tuples", E::NAME, trace.len()),
        columns: &["bytes_a_tuple", "result_bytes", "shared", "blocks", "threads", "gtuples_per_s"],
        rows: Vec::new(),
    };
    let result_bytes = uploaded.programs.first().context("a program")?.result_bytes;
    let there = bench.tuples(trace, result_bytes)?;
    let rates = kernel_rates(&mut bench, &uploaded, &there, right, options.gpu.rounds)?;
    for rate in rates.iter().take(options.gpu.told(3)) {
        sheet.rows.push(vec![
            T::PACKED.to_string(),
            result_bytes.to_string(),
            rate.shared.to_string(),
            rate.shape.blocks.to_string(),
            rate.shape.threads.to_string(),
            format!("{:.3}", rate.rate / 1e9),
        ]);
    }
    bench.drop_in_form(&there)?;
    bench.forget(&uploaded)?;
    println!("{sheet}");
    Ok(())
}

fn trips<T: Tuple, E: Engine<T, Table: OnDevice>>(
    what: &str,
    table: &E::Table,
    trace: &[T],
    right: &[u32],
    options: &Options,
) -> Result<()> {
    let mut bench = Bench::open()?;
    let mut sheet = Sheet {
        title: format!("{}, {what}: whole trips", E::NAME),
        columns: &[
            "way",
            "batch",
            "in_flight",
            "gtuples_per_s",
            "p50_us",
            "p99_us",
            "max_us",
            "bus_gtuples_per_s",
            "by_bus",
        ],
        rows: Vec::new(),
    };
    for batch in options.gpu.batches(trace.len()) {
        let most = options.gpu.most_in_flight();
        let gpu = tuples::start(Device::Gpu, most, &[batch], bytes_of::<T>(batch).div_ceil(batch))?;
        let handle = tuples::upload(&gpu, table, trace)?;
        for &in_flight in &options.gpu.in_flight {
            let out = batch * handle.result_bytes();
            let bus = ceiling::bus(&mut bench, bytes_of::<T>(batch), out, 1, in_flight, options.gpu.seconds)?;
            let bus = bus * float(batch as u64);
            for way in Way::ALL {
                let time = Duration::from_secs_f64(options.gpu.seconds);
                let trip = Trip { batch, in_flight, way: Some(way), time };
                let filled = tuples::fill(&gpu, &handle, trace, right, &trip)?;
                let (travelled, _) = travels(&handle, filled, &trip, 3)?;
                sheet.rows.push(vec![
                    way.name().into(),
                    batch.to_string(),
                    in_flight.to_string(),
                    format!("{:.3}", travelled.rate / 1e9),
                    format!("{:.1}", travelled.p50),
                    format!("{:.1}", travelled.p99),
                    format!("{:.1}", travelled.max),
                    format!("{:.3}", bus / 1e9),
                    format!("{:.2}", travelled.rate / bus),
                ]);
            }
        }
    }
    if !sheet.rows.is_empty() {
        println!("{sheet}");
    }
    Ok(())
}

/// A count as a number to divide by.
#[allow(clippy::cast_precision_loss)] // a rate
fn float(count: u64) -> f64 {
    count as f64
}
