//! `verify`: engines against the oracle.

mod truth;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::{Engines, OnDevice, Visitor, visit};
use wirespeed_fib::{Address, BuildOptions, Engine, Family, Fib, Lpm, Rib, Update, V4, V6};

use crate::Outcome;
use crate::engine::{self, Selection};
use crate::family::{self, number_of};
use crate::number::{Grouped, grouped};
use crate::output::{Output, progress};
use crate::source::{FamilyArgument, ReadArguments, TableArguments};
use crate::threads::{self, all_cores};
use truth::{Mismatch, Truth, Verdict, probes};

/// Holds engines against an independent method: at the ends of every prefix and at random, or at every address.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    fib: OsString,

    /// Walk all 2^32 IPv4 addresses
    #[arg(long)]
    exhaustive: bool,

    /// An engine, or all
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection())]
    engine: Selection,

    /// Updates to apply to the live table, which is then checked again
    #[arg(long, value_name = "FILE")]
    updates: Option<OsString>,

    /// Threads; by default one a core
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// One JSON object for each engine and state
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl verify --fib rib.mrt.bz2          ends of prefixes, and random
  lookupctl verify --fib fib.txt --exhaustive all 2^32 IPv4 addresses
  lookupctl verify --fib fib.txt --updates updates.txt
  lookupctl verify --fib fib.txt --engine sail-l --json

The right answers come from the sorted prefixes as ranges of addresses, without any lookup.
Exit status 1 says that an engine is wrong; the first wrong answers are shown.";

/// Updates that readers see appear at once.
const GROUP: usize = 1024;

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let fib = options.read.load(&options.fib)?;
    match family::choose(options.family.wanted(), &fib) {
        Family::V4 => verify::<V4>(&options, fib),
        Family::V6 => verify::<V6>(&options, fib),
    }
}

fn verify<A: Engines>(options: &Options, mut fib: Fib) -> Result<Outcome> {
    if options.exhaustive && A::BITS > 32 {
        bail!("--exhaustive is for IPv4: nobody can walk 2^{} addresses", A::BITS);
    }
    let updates = match &options.updates {
        Some(updates) => options.read.updates(updates, &mut fib.next_hops)?,
        None => Vec::new(),
    };
    let (rib, next_hops) = A::into_rib(fib);
    let engines = options.engine.engines(&rib, &options.table.build_options(1).strides)?;
    let job = Job {
        before: Expected::of(&rib, options.exhaustive, &[]),
        after: (!updates.is_empty()).then(|| {
            let mut after = rib.clone();
            for update in &updates {
                after.apply(update);
            }
            Expected::of(&after, options.exhaustive, &updates)
        }),
        rib,
        updates: &updates,
        threads: options.threads.unwrap_or_else(all_cores),
        build: BuildOptions {
            next_hops: u32::try_from(next_hops.len()).unwrap_or(u32::MAX),
            ..options.table.build_options(if updates.is_empty() { 1 } else { 2 })
        },
    };
    let mut output = Output::new();
    let mut outcome = Outcome::Done;
    for engine in engines {
        let reports = visit(engine, &job)?.with_context(|| format!("{engine} can't be built"))?;
        for report in reports {
            if report.mismatches > 0 {
                outcome = Outcome::Differs;
            }
            if options.json { output.json(&report)? } else { report.print(&mut output)? }
        }
    }
    output.finish()?;
    Ok(outcome)
}

/// One state of a table: what is right, and where to look.
struct Expected<A> {
    prefixes: usize,
    truth: Truth<A>,
    /// `None` for everywhere.
    probes: Option<Vec<A>>,
}

impl<A: Address> Expected<A> {
    fn of(rib: &Rib<A>, everywhere: bool, changed: &[Update<A>]) -> Self {
        let prefixes = || rib.iter().map(|(prefix, _)| prefix).chain(changed.iter().map(Update::prefix));
        Self { prefixes: rib.len(), truth: Truth::of(rib), probes: (!everywhere).then(|| probes(prefixes())) }
    }

    fn check<T: Lpm<A>>(&self, table: &T, threads: usize, what: &'static str) -> Verdict {
        let total = self.probes.as_ref().map_or(1 << 32, |probes| probes.len() as u64);
        let bar = progress(total, what);
        let verdict = match &self.probes {
            Some(probes) => self.truth.check(table, probes, threads, &bar),
            None => self.truth.check_all(table, threads, &bar),
        };
        bar.finish_and_clear();
        verdict
    }
}

/// What every engine has to pass.
struct Job<'a, A: Address> {
    rib: Rib<A>,
    updates: &'a [Update<A>],
    before: Expected<A>,
    after: Option<Expected<A>>,
    threads: usize,
    build: BuildOptions,
}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    family: u8,
    prefixes: usize,
    updates: usize,
    addresses: u64,
    mismatches: u64,
    seconds: f64,
    first: Vec<Mismatch>,
}

impl<A: Engines> Visitor<A> for &Job<'_, A> {
    type Output = Result<Vec<Report>>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Self::Output {
        let report = |updates, expected: &Expected<A>, began: Instant, verdict: Verdict| Report {
            engine: E::NAME,
            family: number_of(A::FAMILY),
            prefixes: expected.prefixes,
            updates,
            addresses: verdict.addresses,
            mismatches: verdict.mismatches,
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        };
        let began = Instant::now();
        let Some(after) = &self.after else {
            let (_, table) = E::build(&self.rib, &self.build)?;
            let verdict = self.before.check(&table, self.threads, E::NAME);
            return Ok(vec![report(0, &self.before, began, verdict)]);
        };
        let mut live = wirespeed_fib::LiveTable::<A, E>::new(self.rib.clone(), self.build.clone())?;
        let reader = live.reader();
        let verdict = self.before.check(&*reader.enter(), self.threads, E::NAME);
        let before = report(0, &self.before, began, verdict);
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.apply(group)?;
        }
        let verdict = after.check(&*reader.enter(), self.threads, E::NAME);
        Ok(vec![before, report(self.updates.len(), after, began, verdict)])
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { engine, family, prefixes, updates, addresses, mismatches, seconds, .. } = self;
        let state = match updates {
            0 => String::new(),
            _ => format!(" after {} updates", grouped(*updates)),
        };
        let verdict = match mismatches {
            0 => "all right".to_owned(),
            _ => format!("{} WRONG", Grouped(*mismatches)),
        };
        output.line(format_args!(
            "{engine}: IPv{family}, {} prefixes{state}, {} addresses: {verdict} ({seconds:.1} s)",
            grouped(*prefixes),
            Grouped(*addresses),
        ))?;
        for Mismatch { address, right, found, lookup, .. } in &self.first {
            output.line(format_args!("  {address}: next hop {found}, right is {right} ({lookup})"))?;
        }
        Ok(())
    }
}
