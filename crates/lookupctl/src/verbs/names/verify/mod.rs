//! `names verify`: engines of names against an independent method.

mod truth;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use wirespeed::names::engine::{Visitor, visit};
use wirespeed::names::read::NameFib;
use wirespeed::names::{Match, NameRib, NameUpdate, Names};
use wirespeed_namelookup::{BuildOptions, LiveNames, NameEngine, NameLpm};

use super::engine::{self, Selection};
use super::source::ReadArguments;
use crate::Outcome;
use crate::number::{Grouped, grouped};
use crate::output::{Output, progress};
use crate::source::MemoryArgument;
use crate::threads::{self, all_cores, share_out};
use truth::Truth;

/// Holds engines of names against an independent method: at every entry, at names near it, and at random ones.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    table: OsString,

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
    memory: MemoryArgument,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names verify --table domains.txt.zst
  lookupctl names verify --table fib.txt --updates updates.txt
  lookupctl names verify --table fib.txt --engine mata --json

Each name is looked up alone, in a batch, and in a batch that tells the matched length. The right answers come from the sorted names, \
without any lookup.
Exit status 1 says that an engine is wrong; the first wrong answers are shown. An engine that can't hold the table says so, and is \
not wrong.";

/// Updates that readers see appear at once.
const GROUP: usize = 1024;
/// Mismatches that are shown.
const SHOWN: usize = 10;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let NameFib { names, mut labels } = options.read.load(&options.table)?;
    let updates = match &options.updates {
        Some(updates) => options.read.updates(updates, &mut labels)?,
        None => Vec::new(),
    };
    let job = Job {
        before: Truth::of(&names),
        after: (!updates.is_empty()).then(|| {
            let mut after = names.clone();
            for update in &updates {
                after.apply(update);
            }
            Truth::of(&after)
        }),
        names,
        updates: &updates,
        threads: options.threads.unwrap_or_else(all_cores),
        build: BuildOptions {
            memory_cap: options.memory.cap(if updates.is_empty() { 1 } else { 2 }),
            results: u32::try_from(labels.len()).unwrap_or(u32::MAX),
            ..BuildOptions::default()
        },
    };
    let mut output = Output::new();
    let mut outcome = Outcome::Done;
    let engines = options.engine.engines(&job.names);
    let is_only = engines.len() == 1;
    for engine in engines {
        let reports = match visit(engine, &job) {
            // Of all engines some are for small tables.
            Err(error) if !is_only => {
                eprintln!("{engine}: not checked: {error:#}");
                continue;
            }
            reports => reports?,
        };
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

/// What every engine has to pass.
struct Job<'a> {
    names: NameRib,
    updates: &'a [NameUpdate],
    before: Truth,
    after: Option<Truth>,
    threads: usize,
    build: BuildOptions,
}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    entries: usize,
    updates: usize,
    names: u64,
    mismatches: u64,
    seconds: f64,
    first: Vec<Mismatch>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Mismatch {
    name: String,
    right: u32,
    found: u32,
    /// Bytes that matched, where the lookup tells.
    right_length: Option<u32>,
    found_length: Option<u32>,
    /// Whether it was looked up in a batch, or alone.
    lookup: &'static str,
}

impl Visitor for &Job<'_> {
    type Output = Result<Vec<Report>>;

    fn visit<E: NameEngine>(self) -> Self::Output {
        let cannot = || "the table can't be built";
        let began = Instant::now();
        let Some(after) = &self.after else {
            let (_, table) = E::build(&self.names, &self.build).with_context(cannot)?;
            return Ok(vec![self.check::<E>(&table, &self.before, 0, began)]);
        };
        let mut live = LiveNames::<E>::new(self.names.clone(), self.build.clone()).with_context(cannot)?;
        let reader = live.reader();
        let before = self.check::<E>(&*reader.enter(), &self.before, 0, began);
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.apply(group).context("the updated table can't be built")?;
        }
        let after = self.check::<E>(&*reader.enter(), after, self.updates.len(), began);
        Ok(vec![before, after])
    }
}

impl Job<'_> {
    fn check<E: NameEngine>(
        &self,
        table: &E::Table,
        truth: &Truth,
        updates: usize,
        began: Instant,
    ) -> Report {
        let bar = progress(truth.parts() as u64, E::NAME);
        let verdict = check(table, truth, self.threads, &bar);
        bar.finish_and_clear();
        Report {
            engine: E::NAME,
            entries: truth.len(),
            updates,
            names: verdict.names,
            mismatches: verdict.mismatches,
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        }
    }
}

/// What a check came to.
#[derive(Debug, Default)]
struct Verdict {
    names: u64,
    mismatches: u64,
    first: Vec<Mismatch>,
}

/// Checks a table in each way of looking up.
fn check(table: &impl NameLpm, truth: &Truth, threads: usize, bar: &ProgressBar) -> Verdict {
    let states = share_out(truth.parts(), threads, Verdict::default, |verdict, part| {
        let (batch, right) = truth.part(part);
        verdict.part(table, batch.names(), &right);
        bar.inc(1);
    });
    let mut sum = states.into_iter().fold(Verdict::default(), |mut sum, part| {
        sum.names += part.names;
        sum.mismatches += part.mismatches;
        sum.first.extend(part.first);
        sum
    });
    sum.first.sort();
    sum.first.truncate(SHOWN);
    sum
}

impl Verdict {
    fn part(&mut self, table: &impl NameLpm, names: Names<'_>, right: &[Match]) {
        self.names += names.len() as u64;
        // What a lookup doesn't write is no answer.
        let none = Match { result: u32::MAX, length: u32::MAX };
        let mut matches = vec![none; names.len()];
        table.match_batch(names, &mut matches);
        self.compare("match batch", names, right, matches.iter().copied());
        let mut results = vec![none.result; names.len()];
        table.lookup_batch(names, &mut results);
        let lengths = right.iter().map(|right| right.length);
        let found = results.iter().zip(lengths).map(|(&result, length)| Match { result, length });
        self.compare("batch", names, right, found);
        self.compare("single", names, right, names.iter().map(|name| table.lookup(name)));
    }

    fn compare(
        &mut self,
        lookup: &'static str,
        names: Names<'_>,
        right: &[Match],
        found: impl Iterator<Item = Match>,
    ) {
        for ((name, right), found) in names.iter().zip(right).zip(found) {
            if *right == found {
                continue;
            }
            self.mismatches += 1;
            if self.first.len() < SHOWN {
                let length = |of: Match| (lookup != "batch").then_some(of.length);
                self.first.push(Mismatch {
                    name: name.to_string(),
                    right: right.result,
                    found: found.result,
                    right_length: length(*right),
                    found_length: length(found),
                    lookup,
                });
            }
        }
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { engine, entries, updates, names, mismatches, seconds, first } = self;
        let state = match updates {
            0 => String::new(),
            _ => format!(" after {} updates", grouped(*updates)),
        };
        let verdict = match mismatches {
            0 => "all right".to_owned(),
            _ => format!("{} WRONG", Grouped(*mismatches)),
        };
        output.line(format_args!(
            "{engine}: {} entries{state}, {} names: {verdict} ({seconds:.1} s)",
            grouped(*entries),
            Grouped(*names),
        ))?;
        for Mismatch { name, right, found, right_length, found_length, lookup } in first {
            let bytes = |length: &Option<u32>| {
                length.map_or_else(String::new, |length| format!(" by {length} bytes"))
            };
            output.line(format_args!(
                "  {name}: result {found}{}, right is {right}{} ({lookup})",
                bytes(found_length),
                bytes(right_length)
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::names::generate::{TableSpec, table};
    use wirespeed::names::{Name, NameBuf};
    use wirespeed_fib::Step;

    use super::*;

    /// A table that is right but for one name, and there in one way of looking up.
    struct Wrong<'a>(&'a NameRib, NameBuf, &'static str);

    impl Wrong<'_> {
        fn find(&self, name: &Name, lookup: &'static str) -> Match {
            let right = self.0.lookup(name);
            match *name == *self.1 && lookup == self.2 {
                true => Match { result: right.result ^ 1, ..right },
                false => right,
            }
        }
    }

    impl NameLpm for Wrong<'_> {
        fn lookup(&self, name: &Name) -> Match {
            self.find(name, "single")
        }

        fn lookup_batch(&self, names: Names<'_>, results: &mut [u32]) {
            names.iter().zip(results).for_each(|(name, to)| *to = self.find(name, "batch").result);
        }

        fn match_batch(&self, names: Names<'_>, matches: &mut [Match]) {
            names.iter().zip(matches).for_each(|(name, to)| *to = self.find(name, "match batch"));
        }

        fn explain(&self, _: &Name) -> Vec<Step> {
            Vec::new()
        }
    }

    #[test]
    fn one_wrong_answer_is_found() {
        let mut names = table(&TableSpec { names: 300, results: 9, seed: 1 }).unwrap().names;
        names.insert(Name::new("/com/parc").unwrap(), 3);
        let (truth, bar) = (Truth::of(&names), ProgressBar::hidden());
        for (name, lookups) in
            [("/com/parc", 1), ("/com/parc/x", 1), ("/com/parcx", 1), ("/com/nothing/like/it", 0)]
        {
            for lookup in ["single", "batch", "match batch"] {
                let verdict = check(&Wrong(&names, NameBuf::new(name).unwrap(), lookup), &truth, 2, &bar);
                assert_eq!(verdict.mismatches, lookups, "{name}: {verdict:?}");
                assert!(verdict.first.iter().all(|wrong| wrong.name == name && wrong.lookup == lookup));
            }
        }
    }
}
