//! Measures every engine, every rival and the ceiling on every table, in one run, and records what came out.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed_benches::contest;
use wirespeed_benches::data::{self, Source};
use wirespeed_benches::gather;
use wirespeed_benches::lineup::{Entry, Lineup};
use wirespeed_benches::report::{self, Row, Setting};
use wirespeed_benches::session::{self, Announcement, Session, build, setting_on};
use wirespeed_benches::table::Mode;
use wirespeed_benches::trace::Trace;
use wirespeed_fib::trace::TraceKind;
use wirespeed_fib::{Family, NextHops, Rib, V4, V6};

/// Measures engines, rivals and the ceiling side by side and writes MACHINE/DATE.csv.
#[derive(Parser)]
struct Options {
    /// Tables to measure on: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    tables: Vec<String>,
    /// Engines and rivals: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Traces: random, prefix, zipf:SKEW, deepest
    #[arg(long, value_delimiter = ',', default_values = ["random", "prefix"])]
    traces: Vec<TraceKind>,
    /// Keys a call
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024])]
    batches: Vec<usize>,
    /// Updates a call
    #[arg(long, default_value_t = 256)]
    update_batch: usize,
    /// Include rivals that take minutes to build
    #[arg(long)]
    slow: bool,
    /// Skip the measurements of updates
    #[arg(long)]
    no_updates: bool,
    #[command(flatten)]
    session: session::Options,
}

impl Options {
    fn wants(words: &[String], name: &str) -> bool {
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    }

    fn wanted<A: Lineup>(&self, entries: Vec<Entry<A>>) -> usize {
        entries.iter().filter(|entry| Self::wants(&self.engines, &entry.name)).count()
    }

    /// Says what will be measured, and how long that takes.
    fn announce(&self, sources: &[Source]) {
        let (mut lookups, mut updating) = (0, 0);
        for source in sources {
            let (engines, ceiling, of_updates) = match source.family {
                Family::V4 => (
                    self.wanted(V4::lookups(self.slow)),
                    self.wanted(gather::lookups()),
                    self.wanted(V4::updates()),
                ),
                Family::V6 => (self.wanted(V6::lookups(self.slow)), 0, self.wanted(V6::updates())),
            };
            let random = self.traces.iter().filter(|&&kind| kind == TraceKind::Random).count();
            lookups += engines * self.traces.len() * (self.batches.len() + 1);
            lookups += ceiling * random * self.batches.len();
            updating += if !self.no_updates && source.has_updates() { of_updates } else { 0 };
        }
        let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        self.session.announce(&Announcement {
            measures: "IP engines beside their rivals and bare reads, lookups and updates, on one core",
            tables: &names,
            is_real: sources.iter().any(Source::is_real),
            lookups,
            updates: UPDATES_LIMIT * u32::try_from(updating).unwrap_or(u32::MAX),
        });
    }
}

/// What an engine may take for its updates of a table.
const UPDATES_LIMIT: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batches.iter().all(|&batch| batch > 0), "a batch has at least one key");
    let mut sources = data::sources();
    sources.retain(|source| Options::wants(&options.tables, &source.name));
    options.announce(&sources);
    let machine = options.session.start()?;
    let mut session = Session::new(&options.session, is_reference);
    for source in sources {
        match source.family {
            Family::V4 => measure::<V4>(&options, &source, gather::lookups, &mut session)?,
            Family::V6 => measure::<V6>(&options, &source, Vec::new, &mut session)?,
        }
    }
    if options.session.dry {
        return Ok(());
    }
    let csv = report::csv(session.rows(), &machine);
    let path = report::write(&options.session.out, &machine, &report::date(), &csv)?;
    eprintln!("\nwritten to {}", path.display());
    Ok(())
}

/// All measurements on one table.
fn measure<A: Lineup>(
    options: &Options,
    source: &Source,
    ceiling: fn() -> Vec<Entry<A>>,
    session: &mut Session,
) -> Result<()> {
    let (rib, mut next_hops) = source.rib::<A>()?;
    let wanted = |entry: &Entry<A>| Options::wants(&options.engines, &entry.name);
    let setting = session::setting(source, &rib, &next_hops);
    let timing = &options.session;

    let mut lanes = build(&rib, A::lookups(options.slow).into_iter().filter(wanted));
    session.show(
        lanes
            .iter()
            .map(|lane| Row::of(&setting, lane.costs(), "build", 0, vec![lane.costs().build_seconds], "s")),
    );
    for &kind in &options.traces {
        let trace = Trace::draw(&rib, kind, timing.keys, timing.seed)?;
        let expected = contest::expected(&rib, &trace);
        let setting = setting_on(&setting, &trace, &expected);
        let batch = options.batches.iter().copied().max().unwrap_or(1);
        session::keep_right(&mut lanes, batch, &trace, &expected);
        let ceiling = if kind == TraceKind::Random { ceiling() } else { Vec::new() };
        let ceiling = build(&rib, ceiling.into_iter().filter(wanted));
        let looking_up = lanes.len();
        lanes.extend(ceiling);
        for mode in options.batches.iter().map(|&batch| Mode::Batch(batch)) {
            session.race(&setting, &mut lanes, mode, trace.all(), "keys/s");
        }
        lanes.truncate(looking_up);
        session.race(&setting, &mut lanes, Mode::Single, trace.all(), "keys/s");
    }
    drop(lanes);
    if !options.no_updates {
        updates(options, source, &rib, &mut next_hops, &setting, session)?;
    }
    Ok(())
}

fn updates<A: Lineup>(
    options: &Options,
    source: &Source,
    rib: &Rib<A>,
    next_hops: &mut NextHops,
    setting: &Setting,
    session: &mut Session,
) -> Result<()> {
    let updates = source.updates::<A>(rib, next_hops)?;
    if updates.is_empty() {
        return Ok(());
    }
    let wanted = |entry: &Entry<A>| Options::wants(&options.engines, &entry.name);
    let mut lanes = build(rib, A::updates().into_iter().filter(wanted));
    let (rounds, batch) = (options.session.rounds, options.update_batch);
    let results = contest::race_updates(&mut lanes, &updates, batch, rounds, UPDATES_LIMIT);

    let mut after = rib.clone();
    for update in &updates {
        after.apply(update);
    }
    let (keys, seed) = (options.session.keys / 4, options.session.seed);
    let trace = Trace::draw(&after, TraceKind::Prefix, keys, seed)?;
    let expected = contest::expected(&after, &trace);
    let setting = Setting {
        trace: "updates".to_owned(),
        items: updates.len(),
        checksum: setting_on(setting, &trace, &expected).checksum,
        ..setting.clone()
    };
    let mut measured = Vec::new();
    for (lane, result) in lanes.into_iter().zip(results) {
        let name = lane.costs().name.to_owned();
        if result.applied < updates.len() {
            eprintln!("{name}: stopped after {} of {} updates", result.applied, updates.len());
        } else if let Err(wrong) = contest::check(lane.as_ref(), Mode::Batch(1024), &trace, &expected) {
            eprintln!("after updates: {wrong}");
            continue;
        }
        measured.push(Row::of(&setting, lane.costs(), "update", batch, result.rates, "updates/s"));
    }
    session.show(measured);
    Ok(())
}

/// What ratios are to: DPDK's AVX-512 lookup over two-byte next hops, over four-byte ones where the table has
/// too many; the first of them in the lineup.
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
