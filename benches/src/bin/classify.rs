//! Measures engines of rules and their rivals in one run on one core, and records what came out: see
//! [`wirespeed_benches::classify`].

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use wirespeed::classify::Facts;
use wirespeed::engine::EngineName;
use wirespeed_benches::beside::busy;
use wirespeed_benches::classify::contest::{Lane, is_right, keep_right};
use wirespeed_benches::classify::data::{self, Set};
use wirespeed_benches::classify::lineup::{self, Entry, REFERENCES, is_scan};
use wirespeed_benches::classify::trace::Trace;
use wirespeed_benches::classify::update::Turn;
use wirespeed_benches::engines::Live;
use wirespeed_benches::report::Row;
use wirespeed_benches::session::{self, Announcement, Session};
use wirespeed_benches::table::Mode;
use wirespeed_benches::{machine, report};
use wirespeed_classify::Ipv4Tuple;

/// Measures engines of rules and their rivals side by side and writes MACHINE/DATE-classify.csv.
#[derive(Parser)]
struct Options {
    /// Sets of ClassBench, by the name of their files; one that isn't at hand is made
    #[arg(long, value_delimiter = ',', default_values = ["acl1_1k", "fw1_1k", "ipc1_1k", "acl1_10k", "fw1_10k", "ipc1_10k", "acl1_100k", "fw1_100k", "ipc1_100k"])]
    sets: Vec<String>,
    /// Engines and rivals: those whose name contains one of these words
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Tuples a call
    #[arg(long, value_delimiter = ',', default_values_t = [256, 1024])]
    batches: Vec<usize>,
    /// The most rules that go and come back in a turn of updates
    #[arg(long, default_value_t = 1 << 15)]
    updates: usize,
    /// Updates a call
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64, 4096])]
    calls: Vec<usize>,
    /// Skip the measurements of updates
    #[arg(long)]
    no_updates: bool,
    #[command(flatten)]
    session: session::Options,
}

fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.batches.iter().chain(&options.calls).all(|&call| call > 0), "a call has something in it");
    // Before this thread goes to one core, and those that it starts with it.
    rayon::ThreadPoolBuilder::new().build_global()?;
    let sets: Vec<Set> = options.sets.iter().map(|name| data::set(name)).collect::<Result<_>>()?;
    options.announce(&sets);
    let core = options.session.core.unwrap_or_else(machine::last_core);
    let machine = options.session.start()?;
    let session = Session::new(&options.session, |name| name == reference());
    let mut run = Run { options: &options, core, session };
    for set in &sets {
        run.lookups(set);
        if !options.no_updates {
            run.updates(set)?;
        }
    }
    if options.session.dry {
        return Ok(());
    }
    let csv = report::csv(run.session.rows(), &machine);
    let path = report::write(&options.session.out, &machine, &format!("{}-classify", report::date()), &csv)?;
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
    fn announce(&self, sets: &[Set]) {
        let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
        // Each engine has its slice, of each of four ways of updates, in each round.
        let turns = if self.no_updates {
            0
        } else {
            self.wanted(lineup::updates()) * 4 * self.calls.len() * sets.len()
        };
        let each = Duration::from_millis(self.session.slice)
            * u32::try_from(self.session.rounds).unwrap_or(u32::MAX);
        self.session.announce(&Announcement {
            measures: "engines of rules beside their rivals, lookups and updates, on one core",
            tables: &names,
            is_real: sets.iter().any(|set| !set.name.starts_with("made-")),
            lookups: self.wanted(lineup::lookups()) * 2 * (self.batches.len() + 1) * sets.len(),
            updates: each * u32::try_from(turns).unwrap_or(u32::MAX),
        });
    }
}

/// What ratios are to in this build.
fn reference() -> &'static str {
    REFERENCES[usize::from(!cfg!(feature = "dpdk"))]
}

/// What a run goes by, and its rows.
struct Run<'o> {
    options: &'o Options,
    /// The core that lookups are measured on.
    core: usize,
    session: Session,
}

impl Run<'_> {
    /// Builds those of a lineup that are wanted; says what can't be built.
    fn build(&self, entries: Vec<Entry>, set: &Set) -> Vec<Lane> {
        let words = &self.options.engines;
        let is_wanted =
            |entry: &Entry| words.is_empty() || words.iter().any(|word| entry.name.contains(word.as_str()));
        let build = |entry: Entry| {
            entry.build(&set.rules).inspect_err(|why| eprintln!("{}: left out: {why:#}", entry.name)).ok()
        };
        entries.into_iter().filter(is_wanted).filter_map(build).collect()
    }

    fn lookups(&mut self, set: &Set) {
        let options = self.options;
        let of_set = set.setting();
        let mut lanes = self.build(lineup::lookups(), set);
        self.session.show_builds(&of_set, &lanes);
        let seed = options.session.seed;
        let (shuffled, right) = set.shuffled(seed);
        let traces = [
            Trace::new("in-order", 0, set.trace.clone(), set.right.clone()),
            Trace::new("shuffled", seed, shuffled, right),
        ];
        keep_right(&mut lanes, options.batches.iter().copied().max().unwrap_or(1), &traces[0]);
        for trace in &traces {
            let setting = trace.setting(&of_set);
            let batched = options.batches.iter().map(|&batch| Mode::Batch(batch));
            for mode in batched.chain([Mode::Single]) {
                self.session.race(&setting, &mut lanes, mode, trace.tuples(), "tuples/s");
            }
        }
    }

    fn updates(&mut self, set: &Set) -> Result<()> {
        let options = self.options;
        let of_set = set.setting();
        let whole = Trace::new("in-order", 0, set.trace.clone(), set.right.clone()).spread(1 << 13);
        let mut lanes = self.build(lineup::updates(), set);
        let turns =
            [Turn::returns, Turn::changes].map(|of| of(&set.rules, options.updates, options.session.seed));
        for turn in &turns {
            let right = data::right(&turn.applied(&set.rules), whole.tuples().tuples);
            let after = Trace::new("in-order", 0, whole.tuples().tuples.to_vec(), right);
            let [forth, back] = &turn.ways;
            // Untimed first, and seen to be right on the way and at the end of it.
            lanes.retain_mut(|lane| {
                let mode = Mode::Batch(1024);
                lane.update(forth)
                    && is_right(&**lane, mode, &after)
                    && lane.update(back)
                    && is_right(&**lane, mode, &whole)
            });
            for &call in &options.calls {
                self.race_updates(&of_set, &mut lanes, turn, call);
            }
            for lane in &lanes {
                ensure!(
                    is_right(&**lane, Mode::Batch(1024), &whole),
                    "{} after {}",
                    lane.costs().name,
                    turn.names[0]
                );
            }
        }
        drop(lanes);
        self.busy(EngineName::Quilt, set, &turns[0])
    }

    /// Lookups of an engine beside updates.
    fn busy(&mut self, engine: EngineName, set: &Set, turn: &Turn) -> Result<()> {
        let words = &self.options.engines;
        if !words.is_empty() && !words.iter().any(|word| engine.as_str().contains(word.as_str())) {
            return Ok(());
        }
        let (plan, (batch, call)) = (self.options.session.plan(), (1024, 256));
        let (shuffled, right) = set.shuffled(self.options.session.seed);
        let trace = Trace::new("shuffled", self.options.session.seed, shuffled, right);
        let rounds = (plan.rounds, 4 * plan.slice);
        let live = Live::<Ipv4Tuple>::build(engine, set.rules.clone(), Facts::None)?;
        let calls = turn.ways.iter().flat_map(|way| way.chunks(call)).cycle();
        let measured = busy(live, trace.tuples().tuples, batch, calls, rounds, self.core)?;
        let Some((beside, rebuilds, memory)) = measured else { return Ok(()) };
        eprintln!("{engine}: built anew {rebuilds} times");
        let setting = trace.setting(&set.setting());
        let rows = beside.rows(&setting, &format!("{engine}-live"), (batch, call), "tuples/s", memory);
        self.session.show(rows);
        Ok(())
    }

    /// Each lane in each round.
    fn race_updates(&mut self, of_set: &report::Setting, lanes: &mut [Lane], turn: &Turn, call: usize) {
        /// Updates of a turn with one a call, which makes a patch of each, and of a table that is gone
        /// through for each.
        const FEW: usize = 1 << 11;
        let options = self.options;
        let few = |way: &Vec<_>| way[..way.len().min(FEW)].to_vec();
        let short = Turn { names: turn.names, ways: [&turn.ways[0], &turn.ways[1]].map(few) };
        let time = Duration::from_millis(options.session.slice);
        let mut rates = vec![[Vec::new(), Vec::new()]; lanes.len()];
        for _ in 0..options.session.rounds {
            for (lane, rates) in lanes.iter_mut().zip(&mut rates) {
                let turn = if call == 1 || is_scan(lane.costs().name) { &short } else { turn };
                for (rates, rate) in rates.iter_mut().zip(turn.rates(lane, call, time).into_iter().flatten())
                {
                    rates.push(rate);
                }
            }
        }
        for (way, name) in turn.names.into_iter().enumerate() {
            let setting =
                report::Setting { trace: name.to_owned(), items: turn.ways[way].len(), ..of_set.clone() };
            let measured = lanes.iter().zip(&rates).filter(|(_, rates)| !rates[way].is_empty());
            self.session.show(measured.map(|(lane, rates)| {
                Row::of(&setting, lane.costs(), "update", call, rates[way].clone(), "updates/s")
            }));
        }
    }
}
