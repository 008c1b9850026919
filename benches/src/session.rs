//! What every binary that measures shares: its options, the core it runs on, rows that are printed as they
//! come and kept.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use wirespeed_fib::{Address, NextHop, NextHops, Rib};

use crate::contest::{self, Plan};
use crate::data::Source;
use crate::lineup::Entry;
use crate::machine::{self, Machine};
use crate::report::{self, Row, Setting, ratio};
use crate::table::{Contested, Lane, Mode};
use crate::trace::Trace;

/// Options of a measurement: its subjects, time, cores, and the place of the figures.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Keys of a trace
    #[arg(long, default_value_t = 1 << 22)]
    pub keys: usize,
    /// Seed of the traces
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 9)]
    pub rounds: usize,
    /// Milliseconds of a lane in a round
    #[arg(long, default_value_t = 40)]
    pub slice: u64,
    /// The core to measure on [default: the last]
    #[arg(long)]
    pub core: Option<usize>,
    /// The folder of records; nothing is written with --dry
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/record"))]
    pub out: PathBuf,
    /// Print, and write no record
    #[arg(long)]
    pub dry: bool,
}

impl Options {
    /// Describes the machine and goes to the core.
    pub fn start(&self) -> Result<Machine> {
        // Before the pin, after which there is one core.
        let machine = Machine::here();
        let core = self.core.unwrap_or_else(machine::last_core);
        machine::pin(core)?;
        #[cfg(feature = "dpdk")]
        crate::dpdk::start(core)?;
        eprint!("{}", machine.describe());
        Ok(machine)
    }

    /// The length and the number of rounds.
    pub fn plan(&self) -> Plan {
        let slice = Duration::from_millis(self.slice);
        Plan { rounds: self.rounds, slice, warm_up: slice / 2 }
    }
}

/// The announcement of a run, before it starts.
#[derive(Clone, Copy, Debug)]
pub struct Announcement<'a> {
    /// The things that are measured.
    pub measures: &'a str,
    /// The tables, by name.
    pub tables: &'a [&'a str],
    /// Whether they are real ones.
    pub is_real: bool,
    /// Measurements of lookups: engines and rivals, traces, sizes of a batch.
    pub lookups: usize,
    /// The most time that the measurements of updates take.
    pub updates: Duration,
}

impl Options {
    /// Says what a run needs, what it measures and how long that takes.
    pub fn announce(&self, run: &Announcement<'_>) {
        let Announcement { measures, tables, is_real, lookups, updates } = run;
        let plan = self.plan();
        let rounds = u32::try_from(plan.rounds).unwrap_or(u32::MAX);
        let each = (plan.slice + plan.warm_up) * rounds;
        let lookups_take = each * u32::try_from(*lookups).unwrap_or(u32::MAX);
        let minutes = |time: Duration| (time.as_secs_f64() / 60.0).ceil();
        eprintln!("measures: {measures}");
        eprintln!("on: {}", tables.join(", "));
        let folder = crate::data::directory();
        let folder = folder.display();
        if *is_real {
            eprintln!("needs: the real tables in {folder}, which are there");
        } else {
            eprintln!(
                "needs: nothing; no real tables are in {folder} (set WIRESPEED_DATA), so these are made"
            );
            eprintln!("       their figures don't compare with records of real ones");
        }
        eprintln!(
            "takes: {} min for {lookups} measurements of lookups, up to {} min for updates; building tables, checking answers comes on top",
            minutes(lookups_take),
            minutes(*updates)
        );
        if self.dry {
            eprintln!("writes: nothing");
        } else {
            eprintln!("writes: a record in {}", self.out.display());
        }
        eprintln!("Rates are of an idle machine only: stop what else runs.\n");
    }
}

/// The rows so far, and what their ratios are to.
pub struct Session {
    plan: Plan,
    is_reference: fn(&str) -> bool,
    rows: Vec<Row>,
}

impl Session {
    /// A session without rows. Ratios are to the first lane of those measured together that is a reference by
    /// its name.
    pub fn new(options: &Options, is_reference: fn(&str) -> bool) -> Self {
        Self { plan: options.plan(), is_reference, rows: Vec::new() }
    }

    /// All rows, with their ratios.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Shows what it cost to build lanes.
    pub fn show_builds<D: Contested>(&mut self, setting: &Setting, lanes: &[Box<dyn Lane<D>>]) {
        self.show(lanes.iter().map(|lane| {
            let costs = lane.costs();
            let seconds = vec![costs.build_seconds];
            Row::of(setting, costs, "build", 0, seconds, "s")
        }));
    }

    /// Races lanes over a trace and shows what came out, in a unit of keys.
    pub fn race<D: Contested>(
        &mut self,
        setting: &Setting,
        lanes: &mut [Box<dyn Lane<D>>],
        mode: Mode,
        keys: D::Keys<'_>,
        unit: &'static str,
    ) {
        let (what, batch) = match mode {
            Mode::Single => ("single", 1),
            Mode::Batch(batch) => ("batch", batch),
        };
        let rates = contest::race(lanes, mode, keys, self.plan);
        let measured = lanes.iter().zip(rates);
        self.show(measured.map(|(lane, rates)| Row::of(setting, lane.costs(), what, batch, rates, unit)));
    }

    /// Sets the ratios of rows that were measured together, prints them and keeps them.
    pub fn show(&mut self, measured: impl IntoIterator<Item = Row>) {
        let mut measured: Vec<Row> = measured.into_iter().collect();
        let reference = measured.iter().find(|row| (self.is_reference)(&row.engine));
        if let Some(reference) = reference.map(|row| row.rounds.clone()) {
            for row in &mut measured {
                row.ratio = Some(ratio(&row.rounds, &reference));
            }
        }
        println!("{}", report::table(&measured));
        self.rows.append(&mut measured);
    }
}

/// A table without a trace.
pub fn setting<A: Address>(source: &Source, rib: &Rib<A>, next_hops: &NextHops) -> Setting {
    Setting::of_table(&source.name, rib.len(), next_hops.len())
}

/// A table with a trace and its right answers.
pub fn setting_on<A: Address>(setting: &Setting, trace: &Trace<A>, expected: &[NextHop]) -> Setting {
    setting.on_trace(&trace.name, trace.seed, expected.iter().map(|next_hop| next_hop.0))
}

/// Builds what can be built; says what can't.
pub fn build<D: Contested>(
    source: &D::Source,
    entries: impl Iterator<Item = Entry<D>>,
) -> Vec<Box<dyn Lane<D>>> {
    let build = |entry: Entry<D>| {
        entry.build(source).inspect_err(|error| eprintln!("{}: left out: {error:#}", entry.name)).ok()
    };
    entries.filter_map(build).collect()
}

/// Drops every lane that is wrong, batched or one by one; says for how many keys.
pub fn keep_right<A: Address>(
    lanes: &mut Vec<Box<dyn Lane<A>>>,
    batch: usize,
    trace: &Trace<A>,
    expected: &[NextHop],
) {
    for mode in [Mode::Batch(batch), Mode::Single] {
        lanes.retain(|lane| {
            let checked = contest::check(lane.as_ref(), mode, trace, expected);
            checked.inspect_err(|wrong| eprintln!("{wrong}")).is_ok()
        });
    }
}
