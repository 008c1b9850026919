//! `names verify`: engines of names against an independent method.

mod subject;
mod truth;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use subject::{OnCpu, OnGpu, Subject, Way};
use truth::Truth;
use wirespeed::GpuError;
use wirespeed::engine::{OnDevice, Visitor, visit};
use wirespeed::gpu::names::Remote;
use wirespeed::gpu::runtime::Fleet;
use wirespeed::names::device;
use wirespeed::names::read::NameFib;
use wirespeed::names::{Match, NameRib, NameUpdate, Names};
use wirespeed_namelookup::{BuildError, BuildOptions, Engine, LiveNames, NameDomain, NameModel};

use super::engines::engines;
use super::source::{BuildArguments, ReadArguments};
use crate::Outcome;
use crate::device::On;
use crate::engine::{self, Selection};
use crate::output::{Output, progress};
use crate::stdin;
use crate::threads::{self, all_cores, share_out};
use crate::verdict::{self, Line};

/// Holds engines of names against an independent method: at every entry, at names near it, and at random
/// ones.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    table: OsString,

    /// An engine, all that are of use, or every one
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection_of::<NameDomain>())]
    engine: Selection,

    /// Updates to apply to the live table, which is then checked again
    #[arg(long, value_name = "FILE")]
    updates: Option<OsString>,

    /// What looks up: the engines on this machine's cores, or their kernels on its GPUs
    #[arg(long, default_value = "cpu")]
    device: On,

    /// Threads; by default one a core
    #[arg(long, value_name = "N", value_parser = threads::parser())]
    threads: Option<usize>,

    /// One JSON object for each engine and state
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names verify --table domains.txt.zst
  lookupctl names verify --table fib.txt --updates updates.txt
  lookupctl names verify --table fib.txt --engine mata --json
  lookupctl names verify --table fib.txt --updates updates.txt --aggregate
  lookupctl names verify --table fib.txt --device gpu

Each name is looked up alone, in a batch, and in a batch that tells the matched length; on a GPU in batches large and small, with the \
length and without. The right answers come from the sorted names, without any lookup; with --aggregate the right results are those of \
all names, and the right lengths those of the names that are left.
Exit status 1 says that an engine is wrong; the first wrong answers are shown. An engine that can't hold the table says so, and is \
not wrong.";

/// Updates that readers see appear at once.
const GROUP: usize = 1024;
/// Words on a table that an engine refuses as it was read.
const CANNOT: &str = "the table can't be built";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let fleet = options.device.open(&device::options())?;
    stdin::at_most_one([("the table", Some(&*options.table)), ("the updates", options.updates.as_deref())])?;
    let NameFib { names, mut labels } = options.read.load(&options.table)?;
    let updates = match &options.updates {
        Some(updates) => options.read.updates(updates, &mut labels)?,
        None => Vec::new(),
    };
    let job = Job {
        before: Truth::of(&names, options.build.aggregate),
        after: (!updates.is_empty()).then(|| {
            let mut after = names.clone();
            for update in &updates {
                after.apply(update);
            }
            Truth::of(&after, options.build.aggregate)
        }),
        names,
        updates: &updates,
        threads: options.threads.unwrap_or_else(all_cores),
        is_aggregated: options.build.aggregate,
        build: options.build.options(if updates.is_empty() { 1 } else { 2 }, labels.len()),
        fleet,
    };
    let engines = engines(options.engine, &job.names)?;
    verdict::tell::<_, _, BuildError>(&engines, options.json, |engine| visit(engine, &job)?)
}

/// What every engine has to pass.
struct Job<'a> {
    names: NameRib,
    updates: &'a [NameUpdate],
    before: Truth,
    after: Option<Truth>,
    fleet: Option<Fleet>,
    threads: usize,
    is_aggregated: bool,
    build: BuildOptions,
}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    device: &'static str,
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

impl Visitor<NameDomain> for &Job<'_> {
    type Output = Result<Vec<Report>>;

    fn visit<E: Engine<NameDomain, Table: OnDevice>>(self) -> Self::Output {
        match &self.after {
            None => self.compiled::<E>(),
            Some(after) => self.live::<E>(after),
        }
    }
}

impl Job<'_> {
    fn compiled<E: Engine<NameDomain, Table: OnDevice>>(&self) -> Result<Vec<Report>> {
        let began = Instant::now();
        let (_, table) = E::build(self.model().compiled(), &self.build).context(CANNOT)?;
        let remote = self.upload::<E>(&table)?;
        Ok(vec![self.check::<E>(&table, remote.as_ref(), &self.before, 0, began)?])
    }

    /// The names, reduced where that is asked for.
    fn model(&self) -> NameModel {
        NameModel::new(self.names.clone(), self.is_aggregated)
    }

    /// Checks, applies the updates, checks again.
    fn live<E: Engine<NameDomain, Table: OnDevice>>(&self, after: &Truth) -> Result<Vec<Report>> {
        let began = Instant::now();
        let mut live = LiveNames::<E>::new(self.model(), self.build.clone()).context(CANNOT)?;
        let reader = live.reader();
        let remote = self.upload::<E>(&reader.enter())?;
        if let Some(remote) = &remote {
            live.follow(|_| Ok::<_, anyhow::Error>(remote.follower()))?;
        }
        let before = self.check::<E>(&reader.enter(), remote.as_ref(), &self.before, 0, began)?;
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.apply(group).context("the updated table can't be built")?;
        }
        let after = self.check::<E>(&reader.enter(), remote.as_ref(), after, self.updates.len(), began)?;
        Ok(vec![before, after])
    }

    /// Brings a table to the GPUs, where these are to look up.
    fn upload<E: Engine<NameDomain, Table: OnDevice>>(&self, table: &E::Table) -> Result<Option<Remote>> {
        let Some(fleet) = &self.fleet else { return Ok(None) };
        let (sample, _) = self.before.part(0);
        let remote = Remote::upload(fleet, table, sample.names());
        remote.map(Some).with_context(|| format!("{} can't be brought to the GPU", E::NAME))
    }

    /// Checks a table, on GPUs where it is there.
    fn check<E: Engine<NameDomain>>(
        &self,
        table: &E::Table,
        remote: Option<&Remote>,
        truth: &Truth,
        updates: usize,
        began: Instant,
    ) -> Result<Report> {
        let bar = progress(truth.parts() as u64, E::NAME);
        let verdict = match remote {
            None => check(&OnCpu(table), truth, self.threads, &bar),
            Some(remote) => check_on_gpu(remote, truth, self.threads, &bar)
                .with_context(|| format!("{} on the GPU", E::NAME))?,
        };
        bar.finish_and_clear();
        Ok(Report {
            engine: E::NAME,
            device: if remote.is_some() { On::Gpu } else { On::Cpu }.name(),
            entries: truth.len(),
            updates,
            names: verdict.checked,
            mismatches: verdict.mismatches,
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        })
    }
}

/// Checks a table on GPUs.
fn check_on_gpu(
    remote: &Remote,
    truth: &Truth,
    threads: usize,
    bar: &ProgressBar,
) -> Result<Verdict, GpuError> {
    let subject = OnGpu::new(remote);
    let verdict = check(&subject, truth, threads, bar);
    subject.failure().map_or(Ok(verdict), Err)
}

/// What a check came to.
type Verdict = verdict::Verdict<Mismatch>;

/// Checks a table in each way of looking up.
fn check<S: Subject>(table: &S, truth: &Truth, threads: usize, bar: &ProgressBar) -> Verdict {
    Verdict::sum(share_out(truth.parts(), threads, Verdict::default, |verdict, part| {
        let (batch, right) = truth.part(part);
        check_part(verdict, table, batch.names(), &right);
        bar.inc(1);
    }))
}

fn check_part<S: Subject>(verdict: &mut Verdict, table: &S, names: Names<'_>, right: &[Match]) {
    verdict.checked += names.len() as u64;
    for (at, way) in S::WAYS.iter().enumerate() {
        // What a lookup doesn't write is no answer.
        let mut found = vec![Match { result: u32::MAX, length: u32::MAX }; names.len()];
        let size = way.names.min(names.len()).max(1);
        for (batch, found) in found.chunks_mut(size).enumerate() {
            table.look_up(at, names.part(batch * size..batch * size + found.len()), found);
        }
        compare(verdict, way, names, right, &found);
    }
}

fn compare(verdict: &mut Verdict, way: &Way, names: Names<'_>, right: &[Match], found: &[Match]) {
    let length = |of: &Match| way.has_lengths.then_some(of.length);
    for ((name, right), found) in names.iter().zip(right).zip(found) {
        if (right.result, length(right)) != (found.result, length(found)) {
            verdict.wrong(|| Mismatch {
                name: name.to_string(),
                right: right.result,
                found: found.result,
                right_length: length(right),
                found_length: length(found),
                lookup: way.name,
            });
        }
    }
}

impl verdict::Report for Report {
    fn mismatches(&self) -> u64 {
        self.mismatches
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        output.line(Line {
            engine: self.engine,
            is_on_gpu: self.device == On::Gpu.name(),
            key_bytes: None,
            table: (self.entries, "entries"),
            updates: self.updates,
            keys: (self.names, "names"),
            mismatches: self.mismatches,
            seconds: self.seconds,
        })?;
        for Mismatch { name, right, found, right_length, found_length, lookup } in &self.first {
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
    use wirespeed::engine::{EngineName, of_domain};
    use wirespeed::names::generate::{TableSpec, table};
    use wirespeed::names::{Name, NameBuf};
    use wirespeed_fib::Step;
    use wirespeed_namelookup::Lookup;

    use super::*;
    use crate::on_host;

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

    impl Lookup<NameDomain> for Wrong<'_> {
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

    fn job(fleet: Fleet, updates: &[NameUpdate], aggregate: bool) -> Job<'_> {
        let names = table(&TableSpec { names: 300, results: 3, seed: 1 }).unwrap().names;
        let mut after = names.clone();
        updates.iter().for_each(|update| assert!(after.apply(update)));
        Job {
            before: Truth::of(&names, aggregate),
            after: (!updates.is_empty()).then(|| Truth::of(&after, aggregate)),
            names,
            updates,
            fleet: Some(fleet),
            threads: 2,
            is_aggregated: aggregate,
            build: BuildOptions::default(),
        }
    }

    #[test]
    fn kernels_are_right() {
        let Some((fleet, _)) = on_host::fleet_of_names() else { return };
        let name = |text: &str| NameBuf::new(text).unwrap();
        let updates =
            [("/com/parc", 7), ("/com", 300), ("/", 2)].map(|(at, to)| NameUpdate::Insert(name(at), to));
        for engine in of_domain::<NameDomain>() {
            for (updates, aggregate) in [(&updates[..0], true), (&updates[..], engine == EngineName::Acta)] {
                let reports = visit(engine, &job(fleet.clone(), updates, aggregate)).unwrap().unwrap();
                assert_eq!(reports.len(), if updates.is_empty() { 1 } else { 2 });
                for report in reports {
                    assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                    assert!(report.names > 50_000, "{report:?}");
                }
            }
        }
    }

    #[test]
    fn a_table_of_other_names_is_found_out() {
        let Some((fleet, switch)) = on_host::fleet_of_names() else { return };
        let (job, bar) = (job(fleet.clone(), &[], false), ProgressBar::hidden());
        let mut other = job.names.clone();
        other.insert(Name::new("/com").unwrap(), 9);
        let (_, table) = wirespeed_namelookup::Acta::build(&other, &job.build).unwrap();
        let remote = Remote::upload(&fleet, &table, job.before.part(0).0.names()).unwrap();
        let verdict = check_on_gpu(&remote, &job.before, 2, &bar).unwrap();
        assert!(verdict.mismatches > 0 && verdict.first.iter().all(|m| m.found == 9), "{verdict:?}");
        switch.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(check_on_gpu(&remote, &job.before, 2, &bar).is_err(), "no answer is no right answer");
    }

    #[test]
    fn one_wrong_answer_is_found() {
        let mut names = table(&TableSpec { names: 300, results: 9, seed: 1 }).unwrap().names;
        names.insert(Name::new("/com/parc").unwrap(), 3);
        let (truth, bar) = (Truth::of(&names, false), ProgressBar::hidden());
        for (name, lookups) in
            [("/com/parc", 1), ("/com/parc/x", 1), ("/com/parcx", 1), ("/com/nothing/like/it", 0)]
        {
            for lookup in ["single", "batch", "match batch"] {
                let wrong = Wrong(&names, NameBuf::new(name).unwrap(), lookup);
                let verdict = check(&OnCpu(&wrong), &truth, 2, &bar);
                assert_eq!(verdict.mismatches, lookups, "{name}: {verdict:?}");
                assert!(verdict.first.iter().all(|wrong| wrong.name == name && wrong.lookup == lookup));
            }
        }
    }
}
