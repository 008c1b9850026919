//! `classify replay`, the main job: a trace of tuples through an engine, with updates of the rules in flight.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use wirespeed::classify::Facts;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::{AnyLive, AnyReader, EngineName, RuleTuple};
use wirespeed_classify::read::{Doubts, RuleFile};
use wirespeed_classify::{Ipv4Tuple, RuleSet, RuleUpdate, generate};
use wirespeed_commands::rules::{ReadArguments, doubt};

use super::set::{Origin, Set, SetArguments};
use super::source::{BuildArguments, updates};
use super::trace::{self, OrderArguments, Trace};
use super::uncertain;
use crate::Outcome;
use crate::engine::{self, Choice};
use crate::memory::check_room;
use crate::number::parse_positive;
use crate::refuse::{NOTHING_MADE, refuse};
use crate::stdin::at_most_one;
use crate::tables::cannot_build;
use crate::verbs::replay::place::Results;
use crate::verbs::replay::play::{Job, resume, say_built};
use crate::verbs::replay::report::Report;
use crate::verbs::replay::{DriveArguments, Updates};

/// Drives a trace of tuples through an engine, with updates of the rules in flight: rate, latency, hits, and
/// a checksum of the results.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    rules: SetArguments,

    /// A compiled set (see build), to start at once
    #[arg(long, value_name = "IMG", conflicts_with_all = ["rules", "set", "set_count", "engine", "updates", "memory_cap", "tuple"])]
    image: Option<PathBuf>,

    /// The tuples to look up: a file (as ClassBench writes traces, or in words), or a kind of trace to
    /// make: rules (each tuple of a rule at random), flows:N (like rules, each tuple N times in a row on
    /// average), random (anything)
    #[arg(long, value_name = "FILE|KIND", default_value = "rules", value_parser = trace::parser())]
    trace: Trace,

    /// Number of tuples of a trace that is made. The default is 1M
    #[arg(long, alias = "keys", value_name = "N", value_parser = parse_positive)]
    count: Option<usize>,

    #[command(flatten)]
    order: OrderArguments,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice::<Ipv4Tuple>())]
    engine: Choice,

    #[command(flatten)]
    drive: DriveArguments,
    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl classify replay                       a synthetic set and its own trace
  lookupctl classify replay --updates synth:1M    the same with updates in flight
  lookupctl classify replay --rules acl.rules --trace acl.trace
  lookupctl classify replay --rules acl.rules --trace acl.trace --shuffle --threads 1 --json
  lookupctl classify replay --rules flows.txt --engine bloom --updates updates.txt --rate 100k
  lookupctl classify replay --set classes --set-count 16384 --classes 64 --device gpu
  lookupctl classify replay --image acl.img --trace flows:20
  lookupctl classify replay --latency-bound 100us

Every thread first looks up its part of the trace once to warm up, then batch after batch until the time is up. Latencies are of whole \
batches: from sending one to having its results, and with --latency-bound, where batches are offered at fixed times, from when it was \
due.
On a GPU each batch sees one state of the rules, as on the CPU; where the GPU is lost in mid-run the CPU goes on.
The checksum is the sum of the results (numbers of rules, from 1) of one pass over the trace after the last update, modulo 2^64: equal \
for every engine, device and number of threads.
matched counts, among the lookups done, those of tuples that a rule matches in that pass; uncertain those of its answers that a rule \
which --lenient left out could change, or that are a rule which is wider than its file says.
Updates are lines such as 'A number=7 src=10.0.0.0/8 priority=3' (rule 7 is that from now on), 'A udp priority=1' (after all others) \
and 'W number=7'.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    options.drive.check()?;
    options.check()?;
    at_most_one([
        ("the rules", options.rules.rules.as_deref()),
        ("the sets", options.read.ipset.as_deref()),
        ("the trace", options.trace.file()),
        ("the updates", options.drive.updates_file()),
    ])?;
    let has_gpu = options.drive.device().has_gpu()?;
    let report = match &options.image {
        Some(path) => {
            options.read.refuse_beside("an image, which holds what was assumed")?;
            let began = Instant::now();
            let image = RuleImageFile::open(path)?;
            visit(image.tuple(), FromImage { options, has_gpu, image, began })?
        }
        None => {
            let origin = options.rules.open(&options.read)?;
            visit(origin.tuple(), FromRules { options, has_gpu, origin })?
        }
    };
    report.show(options.drive.json)
}

impl Options {
    /// Refuses options for what is made where nothing is.
    fn check(&self) -> Result<()> {
        self.trace.refuse_for_file(&[("count", self.count.is_some())])?;
        let is_vain = self.image.is_some() && !self.trace.is_made() && !self.order.shuffle;
        refuse(&[("seed", self.order.has_seed() && is_vain)], NOTHING_MADE)
    }

    /// The number of tuples of a trace that is made.
    fn count(&self) -> usize {
        self.count.unwrap_or(1_000_000)
    }

    /// The updates that were asked for, read or made.
    fn updates<T: RuleTuple>(&self, rules: &RuleSet<T>) -> Result<Vec<RuleUpdate<T>>> {
        match self.drive.updates()? {
            None => Ok(Vec::new()),
            Some(Updates::File(from)) => updates(&self.read, from, rules),
            Some(Updates::Made(count)) => {
                check_room::<RuleUpdate<T>>(count, "updates")?;
                Ok(generate::churn(rules, count, self.order.seed()))
            }
        }
    }

    /// Replays a trace on a live table, on GPUs too where there are some.
    fn play<T: RuleTuple>(
        &self,
        engine: EngineName,
        has_gpu: bool,
        trace: &[T],
        mut live: Box<dyn AnyLive<T>>,
        updates: &[RuleUpdate<T>],
        beside: Beside<T>,
    ) -> Result<Report> {
        let drive = &self.drive;
        let gpus = has_gpu.then(|| drive.gpu_options(trace.len(), T::PACKED, size_of::<u32>()));
        let fleet = drive.open_gpus(gpus)?;
        let offload = drive.offload(fleet.as_ref(), &mut *live, 0, trace)?;
        let reader = live.reader();
        let (mut report, _) = Job { drive, engine, live, offload, trace, updates }.play::<Results>()?;
        report.assuming = Some(doubt::assuming(&beside.doubts));
        report.uncertain = Some(beside.uncertain(trace, updates, &*reader, drive.threads(false))?);
        Ok(report)
    }
}

/// Doubts about answers, and the rules that these come from: none are needed if nothing is in doubt.
struct Beside<T: RuleTuple> {
    doubts: Doubts<T>,
    rules: RuleSet<T>,
}

impl<T: RuleTuple> Beside<T> {
    fn of(doubts: &Doubts<T>, rules: &RuleSet<T>) -> Self {
        let rules = if doubts.is_empty() { RuleSet::new() } else { rules.clone() };
        Self { doubts: doubts.clone(), rules }
    }

    /// How many answers of a pass over a trace are uncertain, after the updates.
    fn uncertain(
        mut self,
        trace: &[T],
        updates: &[RuleUpdate<T>],
        reader: &dyn AnyReader<T>,
        threads: usize,
    ) -> Result<u64> {
        if self.doubts.is_empty() {
            return Ok(0);
        }
        updates.iter().try_for_each(|update| self.rules.apply(update).map(drop))?;
        let mut found = vec![0; trace.len()];
        reader.enter().table.lookup_batch(trace, &mut found);
        Ok(uncertain::count(&self.doubts, &self.rules, (trace, &found), threads))
    }
}

/// Builds a live table and replays on it.
struct FromRules<'a> {
    options: &'a Options,
    has_gpu: bool,
    origin: Origin<'a>,
}

impl TupleVisitor for FromRules<'_> {
    type Output = Result<Report>;

    fn visit<T: RuleTuple>(self) -> Result<Report> {
        let Self { options, has_gpu, origin } = self;
        let seed = options.order.seed();
        let set = origin.load::<T>(&options.read, seed)?;
        let updates = options.updates(&set.file.rules)?;
        let trace = options.order.trace(&options.trace, &set, options.count(), &options.read)?;
        let (rules, doubts) = (set.file.rules, set.file.doubts);
        let beside = Beside::of(&doubts, &rules);
        let engine = options.engine.resolve::<T>(&rules, has_gpu)?;
        let (began, count) = (Instant::now(), rules.len());
        let live = T::live(engine, rules, options.build.options(2, Some(seed)), Facts::None)?;
        let live = live.with_context(|| cannot_build(engine))?;
        say_built(engine, &*live, (count, "rule"), began);
        options.play(engine, has_gpu, &trace, live, &updates, beside)
    }
}

/// Takes a compiled set and replays on it.
struct FromImage<'a> {
    options: &'a Options,
    has_gpu: bool,
    image: RuleImageFile,
    began: Instant,
}

impl TupleVisitor for FromImage<'_> {
    type Output = Result<Report>;

    fn visit<T: RuleTuple>(self) -> Result<Report> {
        let Self { options, has_gpu, image, began } = self;
        let opened = began.elapsed();
        let doubts = image.doubts::<T>()?;
        // For the trace and what is in doubt, and no part of loading.
        let rules = match options.trace {
            Trace::File(_) if doubts.is_empty() => RuleSet::new(),
            Trace::File(_) => image.rules::<T>()?,
            Trace::Made(_) => {
                image.rules::<T>().context("there are no rules to make a trace of; --trace FILE has one")?
            }
        };
        doubt::say(&doubts);
        let beside = Beside::of(&doubts, &rules);
        let engine = image.engine();
        let live = resume::<T>(engine, RuleSet::new(), image.into_bare()?, Facts::None, "rule", opened)?;
        let set = Set { file: RuleFile { rules, ..RuleFile::default() }, synthetic: None };
        let trace = options.order.trace(&options.trace, &set, options.count(), &options.read)?;
        options.play(engine, has_gpu, &trace, live, &[], beside)
    }
}
