//! Names on a GPU: kernels alone and whole trips, each layout beside the bus, results held against the CPU's.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use wirespeed_benches::data;
use wirespeed_benches::gpu;
use wirespeed_benches::gpu::bench::Bench;
use wirespeed_benches::gpu::ceiling;
use wirespeed_benches::gpu::in_form::kernel_rates;
use wirespeed_benches::gpu::names::{self, Layout};
use wirespeed_benches::gpu::trip::{Trip, travels};
use wirespeed_benches::report::Sheet;
use wirespeed_gpu::runtime::Way;
use wirespeed_image::device::OnDevice;
use wirespeed_namelookup::generate::{Domains, Load, Paths, TraceSpec, trace};
use wirespeed_namelookup::read::{ReadOptions, Source, read_entries, read_paths};
use wirespeed_namelookup::{BuildOptions, Engine, Lookup, Name, NameBatch, NameDomain, NameTable, Names};

/// Measures names on the first GPU of this machine.
#[derive(Parser)]
struct Options {
    /// Names of each table: the real domains, and made ones beyond
    #[arg(long, value_delimiter = ',', default_values_t = [3_000_000, 10_000_000])]
    tables: Vec<usize>,
    /// Results to tell apart: up to 255 take one byte
    #[arg(long, default_value_t = 200)]
    results: u32,
    /// Engines
    #[arg(long, value_delimiter = ',', default_value = "acta,mata")]
    engines: Vec<String>,
    /// Names of the trace that lies on the device
    #[arg(long, default_value_t = 1 << 22)]
    names: usize,
    /// Share of names that no entry matches
    #[arg(long, default_value_t = 0.1)]
    misses: f64,
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
    for &size in &options.tables {
        let began = Instant::now();
        let table = table(size, options.results)?;
        println!("\n{} names in a table, made in {:.1} s", table.len(), began.elapsed().as_secs_f64());
        let traces = traces(&table, &options)?;
        for engine in &options.engines {
            match engine.as_str() {
                "acta" => measure::<wirespeed_namelookup::Acta>(
                    &table,
                    &traces,
                    &[Layout::Packed, Layout::Ends],
                    &options,
                )?,
                "mata" => {
                    let layouts = [Layout::Ends, Layout::Packed, Layout::Rows(4)];
                    measure::<wirespeed_namelookup::mata::Mata>(&table, &traces, &layouts, &options)?;
                }
                "ata" => {
                    let layouts = [Layout::Ends, Layout::Rows(1)];
                    measure::<wirespeed_namelookup::ata::Ata>(&table, &traces, &layouts, &options)?;
                }
                other => println!("no engine {other}"),
            }
        }
    }
    Ok(())
}

/// The real domains, where they are, and made ones up to a size.
fn table(size: usize, results: u32) -> Result<NameTable> {
    let mut table = NameTable::new();
    let mut add = |name: &Name| {
        let result = 1 + u32::try_from(table.len()).unwrap_or(0).wrapping_mul(0x9e37_79b1) % results;
        if table.result(name) == 0 {
            table.insert(name, result);
        }
        table.len() < size
    };
    let domains = data::directory().join("names/domains-3.6m.txt.zst");
    if domains.is_file() {
        let give =
            |name: &Name, _| if add(name) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        read_entries(&Source::Path(domains), &ReadOptions { lenient: true, ..ReadOptions::default() }, give)?;
    } else {
        println!("no real domains in {}: made ones instead", data::directory().display());
    }
    let mut made = Domains::new(1);
    if size > 0 {
        while add(made.draw()) {}
    }
    Ok(table)
}

/// Names to look up, as they come and sorted.
fn traces(table: &NameTable, options: &Options) -> Result<[(&'static str, NameBatch); 2]> {
    let urls = data::directory().join("names/urls-300k.txt.zst");
    let lenient = ReadOptions { lenient: true, ..ReadOptions::default() };
    let paths = match urls.is_file() {
        true => Paths::from(read_paths(&Source::Path(urls), &lenient)?.0),
        false => Paths::made(),
    };
    let spec = TraceSpec { load: Load::Average, misses: options.misses, seed: 1 };
    let random = trace(table, paths, &spec, options.names)?;
    let mut sorted: Vec<&Name> = random.names().iter().collect();
    sorted.sort_unstable();
    let sorted = sorted.into_iter().collect();
    Ok([("random", random), ("sorted", sorted)])
}

fn measure<E: Engine<NameDomain, Table: OnDevice>>(
    names: &NameTable,
    traces: &[(&'static str, NameBatch)],
    layouts: &[Layout],
    options: &Options,
) -> Result<()> {
    let began = Instant::now();
    let (_, table) = E::build(names, &BuildOptions::default())?;
    let seconds = began.elapsed().as_secs_f64();
    let bytes =
        wirespeed_image::Table::image(&table).memory_usage().iter().map(|usage| usage.bytes).sum::<u64>();
    println!(
        "\n{}: built in {seconds:.2} s, {:.1} MB; {}",
        E::NAME,
        float(bytes) / 1e6,
        table.shape().unwrap_or_default()
    );
    let mut right = Vec::new();
    for (_, trace) in traces {
        let mut results = vec![0; trace.len()];
        table.par_lookup_batch(trace.names(), &mut results);
        right.push(results);
    }
    kernels::<E>(&table, traces, &right, layouts, options)?;
    if !options.gpu.batches(traces[0].1.len()).is_empty() {
        for &layout in layouts {
            trips::<E>(&table, traces[0].1.names(), &right[0], layout, options)?;
        }
    }
    Ok(())
}

fn kernels<E: Engine<NameDomain, Table: OnDevice>>(
    table: &E::Table,
    traces: &[(&'static str, NameBatch)],
    right: &[Vec<u32>],
    layouts: &[Layout],
    options: &Options,
) -> Result<()> {
    let mut bench = Bench::open()?;
    let uploaded = bench.upload(table)?;
    let mut sheet = Sheet {
        title: format!("{}: kernel alone, {} names", E::NAME, options.names),
        columns: &[
            "layout",
            "trace",
            "bytes_a_name",
            "shared",
            "blocks",
            "threads",
            "gnames_per_s",
            "gb_per_s",
        ],
        rows: Vec::new(),
    };
    for &layout in layouts {
        for ((trace_name, trace), right) in traces.iter().zip(right) {
            let there = bench.names(layout, trace.names())?;
            let rates = kernel_rates(&mut bench, &uploaded, &there, right, options.gpu.rounds)?;
            let each = float(there.form.bytes()) / float(there.form.count());
            for rate in rates.iter().take(options.gpu.told(2)) {
                sheet.rows.push(vec![
                    layout.name().into(),
                    (*trace_name).into(),
                    format!("{each:.1}"),
                    rate.shared.to_string(),
                    rate.shape.blocks.to_string(),
                    rate.shape.threads.to_string(),
                    format!("{:.2}", rate.rate / 1e9),
                    format!("{:.0}", rate.rate * each / 1e9),
                ]);
            }
            bench.drop_in_form(&there)?;
        }
    }
    bench.forget(&uploaded)?;
    println!("{sheet}");
    Ok(())
}

fn trips<E: Engine<NameDomain, Table: OnDevice>>(
    table: &E::Table,
    trace: Names<'_>,
    right: &[u32],
    layout: Layout,
    options: &Options,
) -> Result<()> {
    let mut bench = Bench::open()?;
    let mut sheet = Sheet {
        title: format!("{}: whole trips, {}", E::NAME, layout.name()),
        columns: &[
            "way",
            "batch",
            "in_flight",
            "gnames_per_s",
            "p50_us",
            "p99_us",
            "max_us",
            "gb_per_s",
            "bus_gnames_per_s",
            "by_bus",
        ],
        rows: Vec::new(),
    };
    let mut packing = 0.0;
    for batch in options.gpu.batches(trace.len()) {
        let most = options.gpu.most_in_flight();
        // The longest batch needs the room.
        let starts = (0..most).map(|at| at * batch % (trace.len() - batch + 1));
        let room = starts.map(|from| layout.room(trace.part(from..from + batch))).max().context("a batch")?;
        let gpu = names::start(most, batch, room)?;
        let handle = names::upload(&gpu, table, layout, trace)?;
        let mut slot = gpu.batch(batch)?;
        packing = names::packing_rate(layout, trace.part(0..batch), slot.keys_mut(), 9)?;
        drop(slot);
        for &in_flight in &options.gpu.in_flight {
            let bytes = layout.pack(trace.part(0..batch), &mut vec![0; room]).context("room")?.bytes();
            let result_bytes = handle.result_bytes();
            let bus =
                ceiling::bus(&mut bench, bytes, batch * result_bytes, 1, in_flight, options.gpu.seconds)?;
            let bus = bus * float(batch);
            for way in Way::ALL {
                let time = Duration::from_secs_f64(options.gpu.seconds);
                let trip = Trip { batch, in_flight, way: Some(way), time };
                let filled = names::fill(&gpu, &handle, layout, trace, right, &trip)?;
                let (travelled, _) = travels(&handle, filled, &trip, 3)?;
                let rate = travelled.rate;
                sheet.rows.push(vec![
                    way.name().into(),
                    batch.to_string(),
                    in_flight.to_string(),
                    format!("{:.3}", rate / 1e9),
                    format!("{:.1}", travelled.p50),
                    format!("{:.1}", travelled.p99),
                    format!("{:.1}", travelled.max),
                    format!("{:.1}", rate * float(bytes) / float(batch) / 1e9),
                    format!("{:.3}", bus / 1e9),
                    format!("{:.2}", rate / bus),
                ]);
            }
        }
    }
    println!("{sheet}");
    println!("packing by one thread, {}: {:.1} GB/s", layout.name(), packing / 1e9);
    Ok(())
}

/// A count as a number to divide by.
#[allow(clippy::cast_precision_loss)] // a rate
fn float(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(0) as f64
}
