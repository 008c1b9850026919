//! Section 6.3 and 6.4: figures 21 to 24, how a table's speed, memory, latency and update rates grow with it.
//!
//! A table is cut into five parts, every fifth name a part; the k-th table of five has the first k of them.
//! Update rates are those of an engine with its names and one image, in calls of 256; the paper's are one by
//! one, on a CPU too. So that there can be updates each table has the head room of a live one, which its
//! memory shows; section 6.1 is of tables without.

use std::time::Instant;

use anyhow::Result;
use rayon::prelude::*;
use wirespeed_image::Table as _;
use wirespeed_image::device::OnDevice;
use wirespeed_namelookup::generate::{Domains, Paths};
use wirespeed_namelookup::mata::Mata;
use wirespeed_namelookup::{Acta, Engine, Lookup, NameDomain, NameTable, NameUpdate};

use super::pipeline::Pipeline;
use super::subject::{BATCH, Placed, batch_of};
use crate::gpu::bench::Bench;
use crate::names::OfNames;
use crate::names::data::{Kind, Table, Trace};
use crate::names::lineup::Alone;
use crate::report::{Sheet, median};
use crate::table::Contestant;

/// Parts of a table.
const PARTS: usize = 5;
/// Updates a call.
const CALL: usize = 256;
/// Updates of each kind.
const UPDATES: usize = 1 << 15;
/// Names of a trace.
const TRACE: usize = 1 << 19;
/// Names a call on the CPU.
const CPU_BATCH: usize = 1024;
/// Streams of a batch of 16 MB.
const STREAMS: usize = 64;
/// Cores with which tables of all sizes are built at once.
const MANY_CORES: usize = 8;
const SEED: u64 = 1;

/// The columns of the sheet that the figures are cut from.
const COLUMNS: &[&str] = &[
    "table",
    "method",
    "names",
    "bytes",
    "bytes_a_name",
    "build_seconds",
    "cpu_mnames_per_s",
    "insertions_per_s",
    "deletions_per_s",
    "kernel_mnames_per_s",
    "trip_mnames_per_s",
    "latency_us",
    "p99_us",
];

/// A figure: its number, what it is called, and the columns after names.
const FIGURES: [(u32, &str, &[&str]); 4] = [
    (
        21,
        "throughput",
        &["table", "method", "names", "trip_mnames_per_s", "kernel_mnames_per_s", "cpu_mnames_per_s"],
    ),
    (22, "memory", &["table", "method", "names", "bytes", "bytes_a_name", "build_seconds"]),
    (23, "latency", &["table", "method", "names", "latency_us", "p99_us"]),
    (24, "update rates", &["table", "method", "names", "insertions_per_s", "deletions_per_s"]),
];

/// A table of so many parts, with what is done to it.
struct Part {
    /// The whole table's name.
    table: String,
    names: NameTable,
    trace: Trace,
    insertions: Vec<NameUpdate>,
    deletions: Vec<NameUpdate>,
}

impl Part {
    fn new(table: &Table, paths: &Paths, parts: usize) -> Result<Self> {
        let entries = table.names.iter().enumerate().filter(|(at, _)| at % PARTS < parts);
        let names: NameTable = match parts == PARTS {
            true => table.names.clone(),
            false => entries.map(|(_, entry)| entry).collect(),
        };
        // Few enough that the table doesn't outgrow itself.
        let count = UPDATES.min(names.len() / 32);
        let mut made = Domains::new(SEED);
        let fresh = std::iter::repeat_with(|| made.draw().to_owned()).filter(|name| names.result(name) == 0);
        let insertions = fresh.take(count).map(|name| NameUpdate::Insert(name, 1)).collect();
        let present = names.iter().step_by(names.len() / count.max(1));
        let deletions = present.take(count).map(|(name, _)| NameUpdate::Remove(name)).collect();
        let trace = Trace::draw(&names, Kind::Average, paths, TRACE, SEED)?;
        Ok(Self { table: table.name.clone(), trace, insertions, deletions, names })
    }
}

/// An engine with a part's names.
struct Built<E: Engine<NameDomain>> {
    seconds: f64,
    alone: Alone<E>,
}

/// Figures 21 to 24, and the sheet that they are cut from. Without a GPU its columns have no numbers.
pub fn figures(
    mut bench: Option<&mut Bench>,
    tables: &[&Table],
    paths: &Paths,
    seconds: f64,
) -> Result<Vec<(u32, Sheet)>> {
    let mut sheet = Sheet { title: "Growth".into(), columns: COLUMNS, rows: Vec::new() };
    let all: Vec<(&Table, usize)> =
        tables.iter().flat_map(|&table| (1..=PARTS).map(move |parts| (table, parts))).collect();
    // All at once where there are cores for that, and then memory; otherwise one by one.
    let at_once = if rayon::current_num_threads() >= MANY_CORES { all.len() } else { 1 };
    for all in all.chunks(at_once) {
        let part = |&(table, parts): &(&Table, usize)| Part::new(table, paths, parts);
        let began = Instant::now();
        let parts = all.par_iter().map(part).collect::<Result<Vec<_>>>()?;
        say("parts of tables, traces and updates", began);
        rows::<Mata>(bench.as_deref_mut(), &parts, seconds, &mut sheet)?;
        rows::<Acta>(bench.as_deref_mut(), &parts, seconds, &mut sheet)?;
    }
    Ok(FIGURES.map(|(number, what, columns)| (number, cut(&sheet, number, what, columns))).into())
}

fn rows<E: Engine<NameDomain, Table: OnDevice>>(
    mut bench: Option<&mut Bench>,
    parts: &[Part],
    seconds: f64,
    sheet: &mut Sheet,
) -> Result<()> {
    let build = |part: &Part| -> Result<Built<E>> {
        let start = Instant::now();
        let alone = Alone::build(&part.names)?;
        Ok(Built { seconds: start.elapsed().as_secs_f64(), alone })
    };
    let began = Instant::now();
    let built = parts.par_iter().map(build).collect::<Result<Vec<_>>>()?;
    say(&format!("{} built", E::NAME), began);
    for (part, mut built) in parts.iter().zip(built) {
        let began = Instant::now();
        // Before updates change it.
        let image = built.alone.table().image().bytes();
        let on_gpu = match &mut bench {
            Some(bench) => on_gpu::<E>(bench, built.alone.table(), &part.trace, seconds)?,
            None => vec![(E::NAME, vec!["-".to_owned(); 4])],
        };
        say("on a GPU", began);
        let cpu = cpu_rate(built.alone.table(), &part.trace);
        say("CPU rate", began);
        let insertions = update_rate(&mut built.alone, &part.insertions)?;
        let deletions = update_rate(&mut built.alone, &part.deletions)?;
        say(&format!("{}, {} names, {}", part.table, part.names.len(), E::NAME), began);
        #[allow(clippy::cast_precision_loss)] // a ratio
        let each = image as f64 / part.names.len() as f64;
        for (method, figures) in on_gpu {
            let cells = [
                part.table.clone(),
                method.to_owned(),
                part.names.len().to_string(),
                image.to_string(),
                format!("{each:.1}"),
                format!("{:.2}", built.seconds),
                format!("{:.2}", cpu / 1e6),
                format!("{insertions:.0}"),
                format!("{deletions:.0}"),
            ];
            sheet.rows.push(cells.into_iter().chain(figures).collect());
        }
    }
    Ok(())
}

/// The kernel's rate by method, and the rate and latencies of whole trips.
fn on_gpu<E: Engine<NameDomain, Table: OnDevice>>(
    bench: &mut Bench,
    table: &E::Table,
    trace: &Trace,
    seconds: f64,
) -> Result<Vec<(&'static str, Vec<String>)>> {
    let placed = Placed::of(bench, E::NAME, table)?;
    let names = batch_of(trace, BATCH);
    let mut rows = Vec::new();
    for method in placed.methods() {
        let (program, shape, rate) = method.best(bench, names, &trace.expected)?;
        let pipeline = Pipeline::new(bench, method.layout, names, STREAMS)?;
        let timing = pipeline.run(bench, Some((program, shape)), seconds)?;
        pipeline.forget(bench)?;
        let figures = [rate / 1e6, timing.rate / 1e6, timing.p50, timing.p99];
        rows.push((method.name, figures.map(|figure| format!("{figure:.1}")).to_vec()));
    }
    placed.forget(bench)?;
    Ok(rows)
}

/// Names a second by one core, the median of some rounds.
pub fn cpu_rate<T: Lookup<NameDomain>>(table: &T, trace: &Trace) -> f64 {
    let names = trace.names.names();
    let mut results = vec![0; CPU_BATCH];
    let mut round = || {
        let start = Instant::now();
        let count = names.len().min(1 << 17);
        for from in (0..count).step_by(CPU_BATCH) {
            let part = names.part(from..count.min(from + CPU_BATCH));
            table.lookup_batch(part, &mut results[..part.len()]);
        }
        #[allow(clippy::cast_precision_loss)] // a rate
        let done = count as f64;
        done / start.elapsed().as_secs_f64()
    };
    median(&[(); 5].map(|()| round()))
}

fn update_rate(table: &mut impl Contestant<OfNames>, updates: &[NameUpdate]) -> Result<f64> {
    let start = Instant::now();
    for call in updates.chunks(CALL) {
        anyhow::ensure!(table.update(call), "an engine takes updates");
    }
    #[allow(clippy::cast_precision_loss)] // a rate
    Ok(updates.len() as f64 / start.elapsed().as_secs_f64())
}

/// A figure of a sheet: some of its columns.
fn cut(sheet: &Sheet, number: u32, what: &str, columns: &'static [&'static str]) -> Sheet {
    let places: Vec<usize> =
        columns.iter().filter_map(|name| sheet.columns.iter().position(|column| column == name)).collect();
    let rows = sheet.rows.iter().map(|row| places.iter().map(|&at| row[at].clone()).collect()).collect();
    Sheet { title: format!("Figure {number}: growth of {what}"), columns, rows }
}

/// What was done, and in which time.
fn say(what: &str, began: Instant) {
    eprintln!("growth: {what}: {:.1} s", began.elapsed().as_secs_f64());
}
