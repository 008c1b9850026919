//! Measures engines of names and their rivals in one run on one core, and records what came out: see
//! [`wirespeed_benches::names`].

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed::engine::EngineName;
use wirespeed_benches::beside::busy;
use wirespeed_benches::contest::Updates;
use wirespeed_benches::engines::Live;
use wirespeed_benches::machine;
use wirespeed_benches::names::contest::{self, Lane, keep_right};
use wirespeed_benches::names::data::{self, Kind, Table, Trace};
use wirespeed_benches::names::lineup::{self, Entry, REFERENCE};
use wirespeed_benches::names::update::{Part, Stream};
use wirespeed_benches::report::{self, Row, Setting};
use wirespeed_benches::session::{self, Announcement, Session};
use wirespeed_benches::table::Mode;
use wirespeed_namelookup::generate::Paths;
use wirespeed_namelookup::{NameDomain, NameTable, NameUpdate};

/// Measures engines of names and their rivals side by side and writes MACHINE/DATE-names.csv.
#[derive(Parser)]
struct Options {
    /// Tables
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["small", "large"])]
    tables: Vec<Size>,
    /// Names of the large table; the small one has no more
    #[arg(long, default_value_t = data::TEN_MILLION)]
    names: usize,
    /// Engines and rivals: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Traces
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["average", "heavy", "misses"])]
    traces: Vec<Kind>,
    /// Names a call
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024])]
    batches: Vec<usize>,
    /// Updates of each stream
    #[arg(long, default_value_t = 1 << 18)]
    updates: usize,
    /// New names by which tables grow
    #[arg(long, default_value_t = 1 << 20)]
    growth: usize,
    /// Updates a call
    #[arg(long, value_delimiter = ',', default_values_t = [1, 256, 4096])]
    calls: Vec<usize>,
    /// Include rivals that take minutes to build
    #[arg(long)]
    slow: bool,
    /// Seconds that an engine may take for a stream of updates; after that it gets no more
    #[arg(long, default_value_t = 10)]
    limit: u64,
    /// Skip the measurements of updates
    #[arg(long)]
    no_updates: bool,
    #[command(flatten)]
    session: session::Options,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Size {
    /// Real domains; as many made ones where there are none
    Small,
    /// Real domains, and made names up to ten million
    Large,
    /// 200,000 made names, to try things out
    Tiny,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batches.iter().chain(&options.calls).all(|&call| call > 0), "a call has something in it");
    // Before this thread goes to one core, and those that it starts with it.
    rayon::ThreadPoolBuilder::new().build_global()?;
    options.announce();
    let core = options.session.core.unwrap_or_else(machine::last_core);
    let machine = options.session.start()?;
    let session = Session::new(&options.session, |name| name == REFERENCE);
    let mut run = Run { options: &options, core, paths: data::paths()?, session };
    for size in &options.tables {
        let table = match size {
            Size::Small => data::small(options.names)?,
            Size::Large => data::large(options.names)?,
            Size::Tiny => data::made(200_000)?,
        };
        run.lookups(&table)?;
        if !options.no_updates {
            run.updates(&table)?;
        }
    }
    if options.session.dry {
        return Ok(());
    }
    let csv = report::csv(run.session.rows(), &machine);
    let path = report::write(&options.session.out, &machine, &format!("{}-names", report::date()), &csv)?;
    eprintln!("\nwritten to {}", path.display());
    Ok(())
}

impl Options {
    fn wanted(&self, entries: Vec<Entry>) -> usize {
        let is_wanted = |entry: &&Entry| {
            self.engines.is_empty() || self.engines.iter().any(|word| entry.name.contains(word.as_str()))
        };
        entries.iter().filter(is_wanted).count()
    }

    /// Says what will be measured, and how long that takes.
    fn announce(&self) {
        let names = self.tables.iter().map(|size| match size {
            Size::Small => "3.6 million domains",
            Size::Large => "10 million names",
            Size::Tiny => "200,000 made names",
        });
        let names: Vec<&str> = names.collect();
        // The limit holds for each stream: four at each size of a call, and one of growth.
        let streams = if self.no_updates { 0 } else { (4 * self.calls.len() + 1) * names.len() };
        let updating = self.wanted(lineup::updates()) * streams;
        self.session.announce(&Announcement {
            measures: "engines of names beside their rivals, lookups and updates, on one core",
            tables: &names,
            is_real: data::is_real(),
            lookups: self.wanted(lineup::lookups())
                * self.traces.len()
                * (self.batches.len() + 1)
                * names.len(),
            updates: Duration::from_secs(self.limit) * u32::try_from(updating).unwrap_or(u32::MAX),
        });
    }
}

/// What a run goes by, and its rows.
struct Run<'o> {
    options: &'o Options,
    /// The core that lookups are measured on.
    core: usize,
    paths: Paths,
    session: Session,
}

impl Run<'_> {
    fn wants(&self, name: &str) -> bool {
        let words = &self.options.engines;
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Builds those of a lineup that are wanted; says what can't be built.
    fn build(&self, entries: Vec<Entry>, names: &NameTable) -> Vec<Lane> {
        let build = |entry: Entry| {
            entry.build(names).inspect_err(|error| eprintln!("{}: left out: {error:#}", entry.name)).ok()
        };
        let wanted = |entry: &Entry| {
            let in_time = self.options.slow || names.len() <= entry.most;
            if self.wants(&entry.name) && !in_time {
                eprintln!("{}: left out: slow to build; --slow includes it", entry.name);
            }
            self.wants(&entry.name) && in_time
        };
        entries.into_iter().filter(wanted).filter_map(build).collect()
    }

    fn trace(&self, names: &NameTable, kind: Kind) -> Result<Trace> {
        Trace::draw(names, kind, &self.paths, self.options.session.keys, self.options.session.seed)
    }

    fn lookups(&mut self, table: &Table) -> Result<()> {
        let options = self.options;
        let of_table = table.setting();
        let mut lanes = self.build(lineup::lookups(), &table.names);
        self.session.show_builds(&of_table, &lanes);
        for &kind in &options.traces {
            let trace = self.trace(&table.names, kind)?;
            let setting = trace.setting(&of_table);
            eprintln!("{}: {:.1} bytes a name", trace.name, trace.bytes_a_name());
            keep_right(&mut lanes, options.batches.iter().copied().max().unwrap_or(1), &trace);
            let batched = options.batches.iter().map(|&batch| Mode::Batch(batch));
            for mode in batched.chain([Mode::Single]) {
                self.session.race(&setting, &mut lanes, mode, trace.names.names(), "names/s");
            }
        }
        Ok(())
    }

    fn updates(&mut self, table: &Table) -> Result<()> {
        let (options, results) = (self.options, u32::try_from(table.next_hops)?);
        let (rounds, seed) = (options.session.rounds, options.session.seed);
        let mut lanes = self.build(lineup::updates(), &table.names);
        let mut names = table.names.clone();
        let steady = (0..).zip(&options.calls).map(|(part, &call)| {
            // One at a time makes an engine a patch of each.
            let count = if call == 1 { options.updates / 16 } else { options.updates };
            (seed + part, call, count, &Stream::STEADY[..], 25)
        });
        let largest = options.calls.iter().copied().max().unwrap_or(1);
        let growth = (seed + 50, largest, options.growth, &[Stream::Growth][..], 0);
        for (seed, call, count, streams, warm_up) in steady.chain([growth]) {
            let parts = Stream::rounds(streams, &names, results, seed, (rounds, count))?;
            let limit = Duration::from_secs(options.limit * streams.len() as u64);
            let outcomes = contest::race_updates(&mut lanes, &parts, call, warm_up, limit);
            parts.iter().for_each(|part| {
                names.apply_all(&part.updates);
            });
            for &stream in streams {
                let is_it = |part: &&Part| part.stream == stream;
                let items = parts.iter().filter(is_it).map(|part| part.updates.len()).sum();
                let setting = Setting { trace: stream.name().into(), items, seed, ..table.setting() };
                let measured = lanes.iter().zip(&outcomes).map(|(lane, outcomes)| {
                    let of_it = parts.iter().zip(outcomes).filter(|(part, _)| is_it(part));
                    let rates = of_it.flat_map(|(_, outcome)| outcome.rates.clone()).collect();
                    Row::of(&setting, lane.costs(), "update", call, rates, "updates/s")
                });
                self.session.show(measured.filter(|row| !row.rounds.is_empty()));
            }
            let all: usize = parts.iter().map(|part| part.updates.len()).sum();
            let done =
                |outcomes: &Vec<Updates>| outcomes.iter().map(|outcome| outcome.applied).sum::<usize>();
            let mut kept = Vec::new();
            for (lane, outcomes) in lanes.into_iter().zip(&outcomes) {
                if done(outcomes) < all {
                    eprintln!("{}: stopped after {} of {all} updates", lane.costs().name, done(outcomes));
                    continue;
                }
                ensure!(contest::agrees_after(&*lane, &names, &parts), "{} after updates", lane.costs().name);
                kept.push(lane);
            }
            lanes = kept;
        }
        let updates = Stream::Mixed.draw(&names, results, seed + 99, 8 * options.updates)?;
        drop(lanes);
        self.busy(EngineName::Acta, table, &names, &updates)
    }

    /// Lookups of an engine beside updates.
    fn busy(
        &mut self,
        engine: EngineName,
        table: &Table,
        names: &NameTable,
        updates: &[NameUpdate],
    ) -> Result<()> {
        if !self.wants(engine.as_str()) {
            return Ok(());
        }
        let (plan, batch, call) = (self.options.session.plan(), 1024, 256);
        let trace = self.trace(names, Kind::Average)?;
        let rounds = (plan.rounds, 4 * plan.slice);
        let live = Live::<NameDomain>::build(engine, names.clone().into(), ())?;
        let measured = busy(live, trace.names.names(), batch, updates.chunks(call), rounds, self.core)?;
        let Some((beside, rebuilds, memory)) = measured else { return Ok(()) };
        eprintln!("{engine}: built anew {rebuilds} times");
        let setting = trace.setting(&table.setting());
        let rows = beside.rows(&setting, &format!("{engine}-live"), (batch, call), "names/s", memory);
        self.session.show(rows);
        Ok(())
    }
}
