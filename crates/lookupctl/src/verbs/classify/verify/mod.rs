//! `classify verify`: engines of rules against an independent method.

mod subject;
mod truth;

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use subject::{OnCpu, OnGpu, Subject};
use truth::Truth;
use wirespeed::GpuError;
use wirespeed::classify::device;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::{EngineName, RuleTuple};
use wirespeed::gpu::classify::Remote;
use wirespeed::gpu::runtime::Fleet;
use wirespeed_classify::read::{Doubts, RuleFile};
use wirespeed_classify::{BuildError, BuildOptions, Ipv4Tuple, Lookup, RuleSet, RuleUpdate};

use super::compiled::{Compiled, cannot_upload};
use super::doubt;
use super::live;
use super::source::{BuildArguments, Raw, ReadArguments};
use super::trace;
use crate::Outcome;
use crate::device::On;
use crate::engine::{self, Selection};
use crate::number::{Grouped, counted_u64, grouped};
use crate::output::{Output, progress};
use crate::stdin::at_most_one;
use crate::threads::{self, all_cores, share_out};
use crate::verdict::{self, Line};

/// Holds engines of rules against an independent method: at the edges of rules, beside them, at random, and
/// on a trace.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The rules; - is standard input
    #[arg(long, value_name = "FILE")]
    rules: OsString,

    /// A trace to check beside the tuples that are made
    #[arg(long, value_name = "FILE")]
    trace: Option<OsString>,

    /// An engine, all that are of use, or every one
    #[arg(long, value_name = "NAME", default_value = "all", value_parser = engine::selection_of::<Ipv4Tuple>())]
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
  lookupctl classify verify --rules acl.rules --trace acl.trace
  lookupctl classify verify --rules acl.rules --updates updates.txt
  lookupctl classify verify --rules flows.txt --engine bloom --json
  lookupctl classify verify --rules flows.txt --device gpu

Each tuple is looked up alone, in a small batch and in a large one; on a GPU in batches small and large. The right answers come from a \
map for each mask, and for some tuples from a scan of all rules, too.
Where --lenient left rules out, every engine can be right and the firewall still do something else: told is how many of the answers a \
rule that was left out could change. So are answers that are a rule which is wider than its file says: a filter of ClassBench with TCP flags.
Exit status 1 says that an engine is wrong; the first wrong answers are shown. An engine that can't hold the rules says so, and is not \
wrong.";

/// Updates that readers see appear at once.
const GROUP: usize = 1024;

pub(super) fn run(options: &Options) -> Result<Outcome> {
    at_most_one([
        ("the rules", Some(options.rules.as_os_str())),
        ("the sets", options.read.ipset.as_deref()),
        ("the trace", options.trace.as_deref()),
        ("the updates", options.updates.as_deref()),
    ])?;
    let raw = options.read.open(&options.rules)?;
    visit(raw.tuple(), Verify { options, raw })
}

struct Verify<'a> {
    options: &'a Options,
    raw: Raw,
}

impl TupleVisitor for Verify<'_> {
    type Output = Result<Outcome>;

    fn visit<T: RuleTuple>(self) -> Result<Outcome> {
        let Self { options, raw } = self;
        let fleet = options.device.open(&device::options::<T>())?;
        let RuleFile { rules, doubts, .. } = raw.load::<T>(&options.read)?;
        let updates = match &options.updates {
            Some(updates) => options.read.updates(updates, &rules)?,
            None => Vec::new(),
        };
        let trace = match &options.trace {
            Some(trace) => trace::file(trace, &options.read)?,
            None => Vec::new(),
        };
        let threads = options.threads.unwrap_or_else(all_cores);
        let after = (!updates.is_empty()).then(|| -> Result<_> {
            let mut after = rules.clone();
            for update in &updates {
                after.apply(update)?;
            }
            Truth::of(&after, &doubts, &trace, threads)
        });
        let job = Job {
            before: Truth::of(&rules, &doubts, &trace, threads)?,
            after: after.transpose()?,
            build: options.build.options(if updates.is_empty() { 1 } else { 2 }, None),
            rules,
            updates: &updates,
            beside: Beside::of(&doubts),
            fleet,
            threads,
        };
        let engines = options.engine.engines::<T>(&job.rules)?;
        verdict::tell::<_, _, BuildError>(&engines, options.json, |engine| job.check(engine))
    }
}

/// What every engine has to pass.
struct Job<'a, T: RuleTuple> {
    rules: RuleSet<T>,
    updates: &'a [RuleUpdate<T>],
    before: Truth<T>,
    after: Option<Truth<T>>,
    beside: Beside,
    fleet: Option<Fleet>,
    threads: usize,
    build: BuildOptions,
}

/// What was left out, and what was assumed.
#[derive(Debug)]
struct Beside {
    left_out: usize,
    /// They, in words.
    because: String,
    /// Rules that are wider than said.
    widened: usize,
    assuming: Vec<String>,
}

impl Beside {
    fn of<T>(doubts: &Doubts<T>) -> Self {
        let (left_out, because) = (doubt::lines(doubts).len(), doubt::left_out(doubts));
        Self { left_out, because, widened: doubts.widened().len(), assuming: doubt::assuming(doubts) }
    }
}

/// What one engine came to in one state.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    device: &'static str,
    rules: usize,
    updates: usize,
    tuples: u64,
    mismatches: u64,
    /// Tuples whose answer a rule that was left out could change, or is a rule that is wider than said.
    uncertain: u64,
    /// Rules left out.
    left_out: usize,
    /// Rules that are wider than their file says.
    widened: usize,
    /// They, in words.
    #[serde(skip)]
    because: String,
    /// What was assumed, and decided something.
    assuming: Vec<String>,
    seconds: f64,
    first: Vec<Mismatch>,
}

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Mismatch {
    tuple: String,
    right: u32,
    found: u32,
    /// Whether it was looked up in a batch, or alone.
    lookup: &'static str,
}

impl<T: RuleTuple> Job<'_, T> {
    /// One engine, in each state.
    fn check(&self, engine: EngineName) -> Result<Vec<Report>> {
        match &self.after {
            None => self.compiled(engine),
            Some(after) => self.live(engine, after),
        }
    }

    fn compiled(&self, engine: EngineName) -> Result<Vec<Report>> {
        let began = Instant::now();
        let compiled =
            Compiled::build(engine, &self.rules, &self.build)?.context("the rules can't be held")?;
        let upload = |fleet| compiled.table.upload(fleet).with_context(|| cannot_upload(engine));
        let remote = self.fleet.as_ref().map(upload).transpose()?;
        let state = State { engine, truth: &self.before, updates: 0, began };
        Ok(vec![self.report(state, compiled.table.lookups(), remote.as_ref())?])
    }

    /// Checks, applies the updates, checks again.
    fn live(&self, engine: EngineName, after: &Truth<T>) -> Result<Vec<Report>> {
        let began = Instant::now();
        let mut live = live::build(engine, self.rules.clone(), self.build.clone())?;
        let upload = |fleet| live.upload(fleet).with_context(|| cannot_upload(engine));
        let remote = self.fleet.as_ref().map(upload).transpose()?;
        let state = State { engine, truth: &self.before, updates: 0, began };
        let mut reports = Vec::new();
        live.with(&mut |table, _| reports.push(self.report(state, table, remote.as_ref())));
        let began = Instant::now();
        for group in self.updates.chunks(GROUP) {
            live.take(group)?;
        }
        let state = State { engine, truth: after, updates: self.updates.len(), began };
        live.with(&mut |table, _| reports.push(self.report(state, table, remote.as_ref())));
        reports.into_iter().collect()
    }

    /// Checks a table, on GPUs where it is there.
    fn report(
        &self,
        state: State<'_, T>,
        table: &dyn Lookup<T>,
        remote: Option<&Remote<T>>,
    ) -> Result<Report> {
        let State { engine, truth, updates, began } = state;
        let bar = progress(truth.parts() as u64, engine.as_str());
        let verdict = match remote {
            None => check(&OnCpu(table), truth, self.threads, &bar),
            Some(remote) => check_on_gpu(remote, truth, self.threads, &bar)
                .with_context(|| format!("{engine} on the GPU"))?,
        };
        bar.finish_and_clear();
        let Beside { left_out, because, widened, assuming } = &self.beside;
        Ok(Report {
            engine: engine.as_str(),
            device: if remote.is_some() { On::Gpu } else { On::Cpu }.name(),
            rules: truth.rules,
            updates,
            tuples: verdict.checked,
            mismatches: verdict.mismatches,
            uncertain: truth.uncertain,
            left_out: *left_out,
            widened: *widened,
            because: because.clone(),
            assuming: assuming.clone(),
            seconds: began.elapsed().as_secs_f64(),
            first: verdict.first,
        })
    }
}

/// An engine in a state.
#[derive(Clone, Copy)]
struct State<'a, T> {
    engine: EngineName,
    truth: &'a Truth<T>,
    updates: usize,
    began: Instant,
}

/// Checks a table on GPUs.
fn check_on_gpu<T: RuleTuple>(
    remote: &Remote<T>,
    truth: &Truth<T>,
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
fn check<T: RuleTuple>(
    table: &dyn Subject<T>,
    truth: &Truth<T>,
    threads: usize,
    bar: &ProgressBar,
) -> Verdict {
    Verdict::sum(share_out(truth.parts(), threads, Verdict::default, |verdict, part| {
        let (tuples, right) = truth.part(part);
        check_part(verdict, table, tuples, right);
        bar.inc(1);
    }))
}

fn check_part<T: RuleTuple>(verdict: &mut Verdict, table: &dyn Subject<T>, tuples: &[T], right: &[u32]) {
    verdict.checked += tuples.len() as u64;
    for (at, way) in table.ways().iter().enumerate() {
        // What a lookup doesn't write is no answer.
        let mut found = vec![u32::MAX; tuples.len()];
        let size = way.tuples.min(tuples.len()).max(1);
        for (tuples, found) in tuples.chunks(size).zip(found.chunks_mut(size)) {
            table.look_up(at, tuples, found);
        }
        for ((tuple, &right), &found) in tuples.iter().zip(right).zip(&found) {
            if right != found {
                verdict.wrong(|| Mismatch { tuple: tuple.to_string(), right, found, lookup: way.name });
            }
        }
    }
}

impl Report {
    /// Words that go with "all right": assumptions, and doubts as rules were left out.
    fn aside(&self) -> String {
        let assumed =
            doubt::assumed(&self.assuming).map_or_else(String::new, |assumed| format!(", {assumed}"));
        let wide = |and| match self.widened {
            0 => String::new(),
            1 => format!("{and}1 rule that is wider than said"),
            count => format!("{and}{} rules that are wider than said", grouped(count)),
        };
        let (start, why) = match (self.left_out, self.widened) {
            (0, 0) => return assumed,
            (0, _) => ("", wide("")),
            (_, _) => ("the set is not whole: ", format!("{}{}", self.because, wide(", and of "))),
        };
        let (uncertain, answers) = (Grouped(self.uncertain), counted_u64(self.tuples, "answer"));
        let are = if self.uncertain == 1 { "is" } else { "are" };
        format!("{assumed}, but {start}{uncertain} of {answers} {are} uncertain because of {why}")
    }
}

impl verdict::Report for Report {
    fn mismatches(&self) -> u64 {
        self.mismatches
    }

    fn print(&self, output: &mut Output) -> Result<()> {
        let line = Line {
            engine: self.engine,
            is_on_gpu: self.device == On::Gpu.name(),
            key_bytes: None,
            table: (self.rules, "rules"),
            updates: self.updates,
            keys: (self.tuples, "tuples"),
            mismatches: self.mismatches,
            seconds: self.seconds,
        };
        output.line(format_args!("{line}{}", self.aside()))?;
        for Mismatch { tuple, right, found, lookup } in &self.first {
            output.line(format_args!("  {tuple}: rule {found}, right is {right} ({lookup})"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use wirespeed::engine::of_domain;
    use wirespeed_classify::generate::{Kind, churn, classbench};
    use wirespeed_classify::{Ipv4Tuple, OpenFlowTuple, Step};

    use super::*;
    use crate::on_host;

    /// A table that is right but for one rule, and there in one way of looking up.
    struct Wrong<'a>(&'a dyn Lookup<Ipv4Tuple>, u32, bool);

    impl Lookup<Ipv4Tuple> for Wrong<'_> {
        fn lookup(&self, tuple: &Ipv4Tuple) -> u32 {
            let right = self.0.lookup(tuple);
            if right == self.1 && !self.2 { right + 1 } else { right }
        }

        fn lookup_batch(&self, tuples: &[Ipv4Tuple], results: &mut [u32]) {
            self.0.lookup_batch(tuples, results);
            results.iter_mut().filter(|right| self.2 && **right == self.1).for_each(|right| *right = 0);
        }

        fn explain(&self, _: &Ipv4Tuple) -> Vec<Step> {
            Vec::new()
        }
    }

    fn job<T: RuleTuple>(fleet: Option<Fleet>, updates: &[RuleUpdate<T>]) -> Job<'_, T> {
        let rules = classbench::<T>(Kind::Firewall, 60, 1);
        let mut after = rules.clone();
        assert!(updates.iter().all(|update| after.apply(update).is_ok()));
        Job {
            before: Truth::of(&rules, &Doubts::none(), &[], 2).unwrap(),
            after: (!updates.is_empty()).then(|| Truth::of(&after, &Doubts::none(), &[], 2).unwrap()),
            beside: Beside::of(&Doubts::<T>::none()),
            rules,
            updates,
            fleet,
            threads: 2,
            build: BuildOptions::default(),
        }
    }

    #[test]
    fn one_wrong_answer_is_found() {
        let job = job::<Ipv4Tuple>(None, &[]);
        let compiled = Compiled::build(EngineName::Quilt, &job.rules, &job.build).unwrap().unwrap();
        let bar = ProgressBar::hidden();
        for in_batches in [false, true] {
            let wrong = Wrong(compiled.table.lookups(), 7, in_batches);
            let verdict = check(&OnCpu(&wrong), &job.before, 2, &bar);
            assert!(verdict.mismatches > 0 && verdict.first.len() <= verdict::SHOWN, "{verdict:?}");
            assert!(verdict.first.iter().all(|wrong| wrong.right == 7), "{verdict:?}");
            assert!(
                verdict.first.iter().all(|wrong| (wrong.lookup != "single") == in_batches),
                "{verdict:?}"
            );
        }
        assert_eq!(check(&OnCpu(compiled.table.lookups()), &job.before, 2, &bar).mismatches, 0);
    }

    fn kernels_are_right_for<T: RuleTuple>(fleet: &Fleet) {
        let updates = churn(&classbench::<T>(Kind::Firewall, 60, 1), 40, 2);
        for engine in of_domain::<Ipv4Tuple>() {
            for report in job::<T>(Some(fleet.clone()), &updates).check(engine).unwrap() {
                assert_eq!((report.mismatches, report.device), (0, On::Gpu.name()), "{report:?}");
                assert!(report.tuples > 5_000, "{report:?}");
            }
        }
    }

    #[test]
    fn kernels_are_right() {
        let Some((fleet, switch)) = on_host::fleet_of_rules() else { return };
        kernels_are_right_for::<OpenFlowTuple>(&fleet);
        let job = job::<OpenFlowTuple>(Some(fleet), &[]);
        let other = Compiled::build(EngineName::Bloom, &RuleSet::<OpenFlowTuple>::new(), &job.build)
            .unwrap()
            .unwrap();
        let (remote, bar) = (other.table.upload(job.fleet.as_ref().unwrap()).unwrap(), ProgressBar::hidden());
        let verdict = check_on_gpu(&remote, &job.before, 2, &bar).unwrap();
        assert!(verdict.mismatches > 0 && verdict.first.iter().all(|wrong| wrong.found == 0), "{verdict:?}");
        switch.store(true, Ordering::Relaxed);
        assert!(check_on_gpu(&remote, &job.before, 2, &bar).is_err(), "no answer is no right answer");
    }
}
