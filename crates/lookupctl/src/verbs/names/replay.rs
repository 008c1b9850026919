//! `names replay`, the main job: a trace of names through an engine, with updates in flight.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use wirespeed::engine::{AnyLive, EngineName, Served};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::names::generate::{Churn, ChurnSpec};
use wirespeed::names::image_file::NameImageFile;
use wirespeed::names::read::{Labels, NameFib};
use wirespeed::names::{Match, NameBatch, NameRib, NameUpdate, Names};
use wirespeed_namelookup::{BuildOptions, NameDomain, NameModel};

use super::source::{BuildArguments, ReadArguments, TableArguments};
use super::trace::{self, MadeArguments, Trace};
use crate::Outcome;
use crate::engine::{self, Choice};
use crate::memory::check_room;
use crate::number::{counted, parse_positive, share};
use crate::refuse::{NOTHING_MADE, refuse};
use crate::stdin;
use crate::tables::cannot_build;
use crate::verbs::replay::place::{Lengths as Ask, Results};
use crate::verbs::replay::play::{Job, resume, say_built};
use crate::verbs::replay::report::{Lengths, Report};
use crate::verbs::replay::{DriveArguments, Updates};

/// Drives a trace of names through an engine, with updates in flight: rate, latency, hits, and a checksum of
/// the results.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(flatten)]
    table: TableArguments,

    /// A compiled table (see build), to start at once
    #[arg(long, value_name = "IMG", conflicts_with_all = ["table", "engine", "updates", "names", "aggregate", "memory_cap"])]
    image: Option<PathBuf>,

    /// The names to look up: a file (one a line, in any form), or those of the table's names to make a
    /// trace of: average (each as likely as any), heavy (the longest tenth), zipf:SKEW (by popularity)
    #[arg(long, value_name = "FILE|LOAD", default_value = "average", value_parser = trace::parser())]
    trace: Trace,

    /// Number of names of a trace that is made. The default is 1M
    #[arg(long, alias = "keys", value_name = "N", value_parser = parse_positive)]
    count: Option<usize>,

    #[command(flatten)]
    made: MadeArguments,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice::<NameDomain>())]
    engine: Choice,

    /// Ask for the matched lengths too, and tell their mean and sum. An aggregated table has those of the
    /// names that were left
    #[arg(long)]
    lengths: bool,

    #[command(flatten)]
    drive: DriveArguments,
    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names replay                       a synthetic table and its own trace
  lookupctl names replay --updates synth:1M    the same with updates in flight
  lookupctl names replay --table domains.txt.zst --paths urls.txt.zst --lenient
  lookupctl names replay --table fib.txt --trace requests.txt --updates updates.txt --rate 100k
  lookupctl names replay --table fib.txt --trace zipf:1.1 --misses 0.1 --threads 1 --json
  lookupctl names replay --table fib.txt --engine mata --trace heavy --lengths
  lookupctl names replay --image names.img --trace requests.txt
  lookupctl names replay --latency-bound 100us
  lookupctl names replay --device gpu --updates synth:1M
  lookupctl names replay --table fib.txt --aggregate

A trace that is made is of the table's names, each with a path after it. Every thread first looks up its part of the trace once to \
warm up, then batch after batch until the time is up. Latencies are of whole batches: from sending one to having its results, and \
with --latency-bound, where batches are offered at fixed times, from when it was due.
On a GPU each batch sees one state of the table, as on the CPU; where the GPU is lost in mid-run the CPU goes on. mata-nw is mata \
there: names travel as they are.
The checksum is the sum of the results of one pass over the trace after the last update, modulo 2^64: equal for every engine, device \
and number of threads, and with --aggregate.
matched counts, among the lookups done, those of names that a prefix matches in that pass.
Updates are lines such as 'A /com/parc 192.0.2.1' and 'W /com/parc'.
Ctrl-C or SIGTERM ends the replay: what was measured until then is told, and the exit status is 130 or 143. A second one ends it without a word.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    options.drive.check()?;
    options.check()?;
    stdin::at_most_one([
        ("the table", options.table.table.as_deref()),
        ("the trace", options.trace.file()),
        ("the paths", options.made.paths()),
        ("the updates", options.drive.updates_file()),
    ])?;
    let has_gpu = options.drive.device().has_gpu()?;
    let report = match &options.image {
        Some(path) => from_image(options, has_gpu, path)?,
        None => from_names(options, has_gpu)?,
    };
    report.show(options.drive.json)
}

impl Options {
    /// Refuses options for what is made where nothing is, and options for a table where none is read.
    fn check(&self) -> Result<()> {
        let [paths, misses] = self.made.given();
        self.trace.refuse_for_file(&[("count", self.count.is_some()), paths, misses])?;
        if self.image.is_none() {
            return Ok(());
        }
        self.read.refuse_without_table()?;
        refuse(&[("seed", self.made.has_seed() && !self.trace.is_made())], NOTHING_MADE)
    }

    /// The updates that were asked for, read or made.
    fn updates(&self, names: &NameRib, labels: &mut Labels) -> Result<Vec<NameUpdate>> {
        let count = match self.drive.updates()? {
            None => return Ok(Vec::new()),
            Some(Updates::File(from)) => return self.read.updates(from, labels),
            Some(Updates::Made(count)) => count,
        };
        check_room::<NameUpdate>(count, "updates")?;
        let results = u32::try_from(labels.len()).unwrap_or(u32::MAX).max(1);
        let spec = ChurnSpec { results, seed: self.made.seed(), ..ChurnSpec::default() };
        Ok(Churn::new(names, &spec)?.take(count).map(|timed| timed.update).collect())
    }

    /// Replays a trace on a live table, on GPUs too where there are some.
    fn replay(
        &self,
        has_gpu: bool,
        engine: EngineName,
        mut live: Box<dyn AnyLive<NameDomain>>,
        trace: Names<'_>,
        updates: &[NameUpdate],
    ) -> Result<Report> {
        let fleet = self.drive.open_gpus(self.gpus(has_gpu, trace))?;
        let offload = self.drive.offload(fleet.as_ref(), &mut *live, 0, trace)?;
        self.play(Job { drive: &self.drive, engine, live, offload, trace, updates })
    }

    fn play(&self, job: Job<'_, NameDomain>) -> Result<Report> {
        if !self.lengths {
            return Ok(job.play::<Results>()?.0);
        }
        let (report, place) = job.play::<Ask>()?;
        let lengths = lengths(place.trace, |names, matches| place.look_up(names, matches));
        Ok(Report { lengths: Some(lengths), ..report })
    }

    /// What GPUs are started with for a trace, if they are to look up.
    fn gpus(&self, has_gpu: bool, trace: Names<'_>) -> Option<GpuOptions> {
        // Of each name its bytes and its place. Some batches have longer names than others.
        let each = trace.bytes().len().div_ceil(trace.len().max(1)) + size_of::<u32>();
        let result_bytes = if self.lengths { size_of::<Match>() } else { size_of::<u32>() };
        has_gpu.then(|| self.drive.gpu_options(trace.len(), each + each / 4, result_bytes))
    }

    /// Makes or reads the trace.
    fn names(&self, names: &NameRib) -> Result<NameBatch> {
        let began = Instant::now();
        let trace = self.made.trace(&self.trace, names, self.count.unwrap_or(1_000_000), &self.read)?;
        eprintln!(
            "trace: {}, {}, {:.1} bytes each, ready in {:.2} s",
            self.trace,
            counted(trace.len(), "name"),
            share(trace.names().bytes().len() as u64, trace.len() as u64),
            began.elapsed().as_secs_f64()
        );
        Ok(trace)
    }
}

/// How much of the names of a trace matches.
fn lengths(trace: Names<'_>, look_up: impl Fn(Names<'_>, &mut [Match])) -> Lengths {
    const BATCH: usize = 1 << 12;
    let (mut sum, mut matched) = (0, 0);
    let mut matches = [Match::NONE; BATCH];
    for from in (0..trace.len()).step_by(BATCH) {
        let part = trace.part(from..trace.len().min(from + BATCH));
        let matches = &mut matches[..part.len()];
        look_up(part, matches);
        sum += matches.iter().map(|found| u64::from(found.length)).sum::<u64>();
        matched += matches.iter().filter(|found| found.is_some()).count() as u64;
    }
    Lengths { sum, mean: share(sum, matched) }
}

/// Builds a live table and replays on it.
fn from_names(options: &Options, has_gpu: bool) -> Result<Report> {
    let NameFib { names, mut labels } = options.table.load(&options.read, options.made.seed())?;
    let updates = options.updates(&names, &mut labels)?;
    let engine = options.engine.resolve::<NameDomain>(&names, false)?;
    let build = BuildOptions { seed: Some(options.made.seed()), ..options.build.options(2, labels.len()) };
    let trace = options.names(&names)?;
    let (began, count) = (Instant::now(), names.len());
    let model = NameModel::new(names, options.build.aggregate);
    let live = NameDomain::live(engine, model, build, ())?;
    let live = live.with_context(|| cannot_build(engine))?;
    say_built(engine, &*live, (count, "name"), began);
    options.replay(has_gpu, engine, live, trace.names(), &updates)
}

/// Takes a compiled table and replays on it.
fn from_image(options: &Options, has_gpu: bool, path: &Path) -> Result<Report> {
    let began = Instant::now();
    let image = NameImageFile::open(path)?.without_list()?;
    let (engine, opened) = (image.engine(), began.elapsed());
    // For the trace alone, and no part of loading.
    let names = match options.trace {
        Trace::File(_) => NameRib::new(),
        Trace::Made(_) => image.names()?.with_context(|| {
            format!("{}: the image holds no names to make a trace of; --trace FILE has one", path.display())
        })?,
    };
    let live = resume::<NameDomain>(engine, NameRib::new().into(), image.into_bare()?, (), "name", opened)?;
    let trace = options.names(&names)?;
    options.replay(has_gpu, engine, live, trace.names(), &[])
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use wirespeed::device;
    use wirespeed::gpu::dispatch::Use;
    use wirespeed::names::generate::{self, Load, Paths, TableSpec, TraceSpec};

    use super::*;
    use crate::on_host;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn results_and_lengths_of_a_gpu_are_those_of_the_cpu() {
        if wirespeed_image::rounds::leaves_to_ci() {
            return;
        }
        let Some((fleet, _)) = on_host::fleet::<NameDomain>() else { return };
        let names = generate::table(&TableSpec { names: 1000, results: 3, seed: 1 }).unwrap().names;
        let spec = TraceSpec { load: Load::Heavy, misses: 0.2, seed: 1 };
        let trace = generate::trace(&names, Paths::made(), &spec, 5000).unwrap();
        for arguments in ["", "--lengths", "--lengths --aggregate"] {
            let line = format!("replay --seconds 0.02 --batch 700 --device gpu {arguments}");
            let Arguments { options } = Arguments::parse_from(line.split_whitespace());
            let play = |is_on_gpu: bool| {
                let model = NameModel::new(names.clone(), options.build.aggregate);
                let (engine, trace) = (EngineName::Acta, trace.names());
                let mut live =
                    NameDomain::live(engine, model, options.build.options(2, 0), ()).unwrap().unwrap();
                let offload =
                    is_on_gpu.then(|| device::offload(&mut *live, &fleet, trace, 0, Use::Always, 1).unwrap());
                let job = Job { drive: &options.drive, engine, live, offload, trace, updates: &[] };
                let report = options.play(job).unwrap();
                (report.gpu.map(|gpu| gpu.share), report.checksum, report.lengths.map(|of| of.sum))
            };
            let ((on_gpu, sum, lengths), right) = (play(true), play(false));
            assert_eq!((on_gpu, right.0), (Some(1.0), None));
            assert_eq!((sum, lengths), (right.1, right.2));
            assert_eq!(lengths.is_some(), arguments.contains("lengths"));
        }
    }
}
