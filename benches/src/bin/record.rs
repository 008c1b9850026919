//! Measures every engine, every rival and the ceiling on every table, in one run, and records what came out.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed_benches::contest::{self, Plan};
use wirespeed_benches::data::{self, Source};
use wirespeed_benches::gather;
use wirespeed_benches::lineup::{Entry, Lineup};
use wirespeed_benches::machine::{self, Machine};
use wirespeed_benches::report::{self, Row, Setting, ratio};
use wirespeed_benches::table::{Lane, Mode};
use wirespeed_benches::trace::Trace;
use wirespeed_fib::{Address, Family, NextHops, Rib, V4, V6};

/// Measures engines, rivals and the ceiling side by side and writes MACHINE/DATE.csv.
#[derive(Parser)]
struct Options {
    /// Tables to measure on: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    tables: Vec<String>,
    /// Engines and rivals: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Traces
    #[arg(long, value_delimiter = ',', default_values = ["random", "prefix"])]
    traces: Vec<String>,
    /// Keys a call
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024])]
    batches: Vec<usize>,
    /// Updates a call
    #[arg(long, default_value_t = 256)]
    update_batch: usize,
    /// Keys of a trace
    #[arg(long, default_value_t = 1 << 22)]
    keys: usize,
    /// Seed of the traces
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Milliseconds of a lane in a round
    #[arg(long, default_value_t = 40)]
    slice: u64,
    /// The core to measure on [default: the last]
    #[arg(long)]
    core: Option<usize>,
    /// Include rivals that take minutes to build
    #[arg(long)]
    slow: bool,
    /// Skip the measurements of updates
    #[arg(long)]
    no_updates: bool,
    /// Where records go; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    dry: bool,
}

impl Options {
    fn plan(&self) -> Plan {
        let slice = Duration::from_millis(self.slice);
        Plan { rounds: self.rounds, slice, warm_up: slice / 2 }
    }

    fn wants(words: &[String], name: &str) -> bool {
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batches.iter().all(|&batch| batch > 0), "a batch has at least one key");
    // Before the pin, after which there is one core.
    let machine = Machine::here();
    let core = options.core.unwrap_or_else(machine::last_core);
    machine::pin(core)?;
    #[cfg(feature = "dpdk")]
    wirespeed_benches::dpdk::start(core)?;
    eprint!("{}", machine.describe());

    let mut rows = Vec::new();
    for source in data::sources() {
        if !Options::wants(&options.tables, &source.name) {
            continue;
        }
        match source.family {
            Family::V4 => measure::<V4>(&options, &source, gather::lookups, &mut rows)?,
            Family::V6 => measure::<V6>(&options, &source, Vec::new, &mut rows)?,
        }
    }
    if options.dry {
        return Ok(());
    }
    let path = report::write(&options.out, &rows, &machine)?;
    eprintln!("\nwritten to {}", path.display());
    Ok(())
}

/// All measurements on one table.
fn measure<A: Lineup>(
    options: &Options,
    source: &Source,
    ceiling: fn() -> Vec<Entry<A>>,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let (rib, mut next_hops) = source.rib::<A>()?;
    let wanted = |entry: &Entry<A>| Options::wants(&options.engines, &entry.name);
    let setting = Setting {
        table: source.name.clone(),
        prefixes: rib.len(),
        next_hops: next_hops.len(),
        trace: String::new(),
        items: 0,
        seed: 0,
        checksum: None,
    };

    let mut lanes = build(&rib, A::lookups(options.slow).into_iter().filter(wanted));
    show(
        rows,
        lanes.iter().map(|lane| row(&setting, lane.as_ref(), "build", 0, vec![lane.build_seconds()], "s")),
    );
    for name in &options.traces {
        let trace = match name.as_str() {
            "random" => Trace::random(options.keys, options.seed),
            "prefix" => Trace::by_prefix(&rib, options.keys, options.seed),
            other => anyhow::bail!("no trace is called {other}"),
        };
        let expected = contest::expected(&rib, &trace);
        let setting = Setting {
            trace: trace.name.to_owned(),
            items: trace.len(),
            seed: trace.seed,
            checksum: Some(contest::checksum(&expected)),
            ..setting.clone()
        };
        let batch = options.batches.iter().copied().max().unwrap_or(1);
        for mode in [Mode::Batch(batch), Mode::Single] {
            lanes.retain_mut(|lane| match contest::check(lane.as_mut(), mode, &trace, &expected) {
                Ok(()) => true,
                Err(wrong) => {
                    eprintln!("{wrong}");
                    false
                }
            });
        }
        let ceiling = if trace.name == "random" { ceiling() } else { Vec::new() };
        let ceiling = build(&rib, ceiling.into_iter().filter(wanted));
        let looking_up = lanes.len();
        lanes.extend(ceiling);
        for mode in options.batches.iter().map(|&batch| Mode::Batch(batch)) {
            race(options, &setting, &mut lanes, mode, &trace, rows);
        }
        lanes.truncate(looking_up);
        race(options, &setting, &mut lanes, Mode::Single, &trace, rows);
    }
    drop(lanes);
    if !options.no_updates {
        updates(options, source, &rib, &mut next_hops, &setting, rows)?;
    }
    Ok(())
}

/// Builds what can be built.
fn build<A: Address>(rib: &Rib<A>, entries: impl Iterator<Item = Entry<A>>) -> Vec<Box<dyn Lane<A>>> {
    let build = |entry: Entry<A>| {
        entry.build(rib).inspect_err(|error| eprintln!("{}: left out: {error}", entry.name)).ok()
    };
    entries.filter_map(build).collect()
}

fn race<A: Address>(
    options: &Options,
    setting: &Setting,
    lanes: &mut [Box<dyn Lane<A>>],
    mode: Mode,
    trace: &Trace<A>,
    rows: &mut Vec<Row>,
) {
    let (what, batch) = match mode {
        Mode::Single => ("single", 1),
        Mode::Batch(batch) => ("batch", batch),
    };
    let rates = contest::race(lanes, mode, trace, options.plan());
    let measured = lanes.iter().zip(rates);
    show(rows, measured.map(|(lane, rates)| row(setting, lane.as_ref(), what, batch, rates, "keys/s")));
}

fn updates<A: Lineup>(
    options: &Options,
    source: &Source,
    rib: &Rib<A>,
    next_hops: &mut NextHops,
    setting: &Setting,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let updates = source.updates::<A>(next_hops)?;
    if updates.is_empty() {
        return Ok(());
    }
    let wanted = |entry: &Entry<A>| Options::wants(&options.engines, &entry.name);
    let mut lanes = build(rib, A::updates().into_iter().filter(wanted));
    let limit = Duration::from_secs(10);
    let results = contest::race_updates(&mut lanes, &updates, options.update_batch, options.rounds, limit);

    let mut after = rib.clone();
    for update in &updates {
        after.apply(update);
    }
    let trace = Trace::by_prefix(&after, options.keys / 4, options.seed);
    let expected = contest::expected(&after, &trace);
    let setting = Setting {
        trace: "updates".to_owned(),
        items: updates.len(),
        checksum: Some(contest::checksum(&expected)),
        ..setting.clone()
    };
    let mut measured = Vec::new();
    for (mut lane, result) in lanes.into_iter().zip(results) {
        let name = lane.name().to_owned();
        if result.applied < updates.len() {
            eprintln!("{name}: stopped after {} of {} updates", result.applied, updates.len());
        } else if let Err(wrong) = contest::check(lane.as_mut(), Mode::Batch(1024), &trace, &expected) {
            eprintln!("after updates: {wrong}");
            continue;
        }
        measured.push(row(
            &setting,
            lane.as_ref(),
            "update",
            options.update_batch,
            result.rates,
            "updates/s",
        ));
    }
    show(rows, measured.into_iter());
    Ok(())
}

fn row<A: Address>(
    setting: &Setting,
    lane: &dyn Lane<A>,
    what: &'static str,
    batch: usize,
    rounds: Vec<f64>,
    unit: &'static str,
) -> Row {
    Row {
        setting: setting.clone(),
        engine: lane.name().to_owned(),
        what,
        batch,
        rounds,
        unit,
        memory: lane.memory(),
        build_seconds: lane.build_seconds(),
        ratio: None,
    }
}

/// Sets the ratios of rows that were measured together, prints them and keeps them.
fn show(rows: &mut Vec<Row>, measured: impl Iterator<Item = Row>) {
    let mut measured: Vec<Row> = measured.collect();
    let reference = measured.iter().find(|row| is_reference(&row.engine)).map(|row| row.rounds.clone());
    if let Some(reference) = reference {
        for row in &mut measured {
            row.ratio = Some(ratio(&row.rounds, &reference));
        }
    }
    println!("{}", report::table(&measured));
    rows.append(&mut measured);
}

/// What ratios are to: DPDK's AVX-512 lookup over two-byte next hops, over four-byte ones where the table has too many; the
/// first of them in the lineup.
fn is_reference(name: &str) -> bool {
    [
        "rte_fib-2B-avx512",
        "rte_fib-4B-avx512",
        "rte_fib6-2B-avx512",
        "rte_fib6-4B-avx512",
        "rte_fib-2B",
        "rte_fib6-4B",
    ]
    .contains(&name)
}
