//! `replay`, the main job: a trace through an engine, with updates in flight.

mod arguments;
mod bound;
pub(in crate::verbs) mod drive;
pub(in crate::verbs) mod feed;
mod latency;
pub(in crate::verbs) mod place;
pub(in crate::verbs) mod play;
pub(in crate::verbs) mod report;
mod worker;

pub(in crate::verbs) use arguments::{DriveArguments, Updates};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use place::Results;
use play::{Job, say_bytes};
use report::Report;
use wirespeed::Error;
use wirespeed::engine::Addresses;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::image_file::ImageFile;
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::synth::{self, TableSpec};
use wirespeed_fib::{BuildOptions, Family, Fib, NextHop, Rib, Update, V4, V6};
use wirespeed_input::plural;
use wirespeed_sail::Fibs;
use wirespeed_table::Model;

use crate::Outcome;
use crate::device::Device;
use crate::engine::{self, Choice};
use crate::family;
use crate::memory::check_room;
use crate::number::{counted, grouped, parse_positive};
use crate::several;
use crate::source::{FamilyArgument, ReadArguments, TableArguments};
use crate::stdin;
use crate::trace::{self, EitherKeys, Keys, Trace};
use crate::verbs::generate;

/// Drives a trace through an engine, with updates in flight: rate, latency, hits, and a checksum of the
/// results.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input. The default is a synthetic one as large as today's full IPv4 table.
    /// Several tables are the FIBs of virtual routers: keys go to each in turn, updates to the first
    #[arg(long, value_name = "FILE")]
    fib: Vec<OsString>,

    /// A compiled table (see build), to start at once
    #[arg(long, value_name = "IMG", conflicts_with_all = ["fib", "engine", "strides", "updates"])]
    image: Option<PathBuf>,

    /// What to look up: a file of addresses (one a line, or .bin), a capture (pcap, pcapng), or a kind of
    /// trace to make: random (all over the space), prefix (a prefix at random, then an address inside),
    /// zipf:SKEW (prefixes by popularity), deepest (the addresses that take most steps)
    #[arg(long, value_name = "FILE|KIND", default_value = "prefix", value_parser = trace::parser())]
    trace: Trace,

    /// Number of keys of a trace that is made
    #[arg(long, alias = "keys", value_name = "N", default_value = "4M", value_parser = parse_positive)]
    count: usize,

    /// Seed of all that is made
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice())]
    engine: Choice,

    #[command(flatten)]
    drive: DriveArguments,
    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl replay                        a synthetic table and its own trace
  lookupctl replay --updates synth:1M     the same with updates in flight
  lookupctl replay --fib rib.mrt.bz2 --trace capture.pcap
  lookupctl replay --fib fib.txt --updates updates.mrt.gz --rate 100k
  lookupctl replay --fib fib.txt --trace zipf:1.1 --threads 1 --batch 256 --json
  lookupctl replay --image fib.img --trace addresses.bin
  lookupctl replay --fib red.txt --fib blue.txt --engine sail-m
  lookupctl replay --device gpu --updates synth:1M
  lookupctl replay --device gpu --latency-bound 100us

Every thread first looks up its part of the trace once to warm up, then batch after batch until the time is up. \
Latencies are of whole batches: from sending one to having its results, and with --latency-bound, where batches are \
offered at fixed times, from when it was due.
On a GPU each batch sees one state of the table, as on the CPU; where the GPU is lost in mid-run the CPU goes on.
The checksum is the sum of the results (next-hop numbers) of one pass over the trace after the last update, modulo \
2^64: equal for every engine, device and number of threads.
matched counts, among the lookups done, those of keys that a prefix matches in that pass.
Updates are read from plain text, bgpdump -m and MRT; those of one peer are taken, the table's where the file has any of it (--peer).
Addresses of a trace that are of the other family than the table are passed over and counted; a table with both families is asked for \
IPv4 where the trace has any, and for IPv6 where it has no other.
Ctrl-C ends the replay: what was measured until then is told, and the exit status is 130. A second one ends it without a word.";

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let tables = options.fib.iter().map(|fib| ("the table", Some(&**fib)));
    let trace = if let Trace::File(name) = &options.trace { Some(&**name) } else { None };
    let beside = [("the trace", trace), ("the updates", options.drive.updates_file())];
    stdin::at_most_one(tables.chain(beside))?;
    if options.fib.len() > 1 && options.drive.device() == Device::Gpu {
        bail!("--device gpu: several FIBs are looked up on the CPU only; --device cpu or auto does it there");
    }
    options.drive.check()?;
    let has_gpu = options.fib.len() < 2 && options.drive.device().has_gpu()?;
    let report = match &options.image {
        Some(path) => {
            let began = Instant::now();
            let (image, trace) = options.image_and_trace(path)?;
            match image.family() {
                Family::V4 => from_image::<V4>(&options, has_gpu, image, trace, began)?,
                Family::V6 => from_image::<V6>(&options, has_gpu, image, trace, began)?,
            }
        }
        None if options.fib.len() > 1 => {
            several::check_engine(options.engine, options.fib.len())?;
            let loaded = several::load(&options.read, &options.fib)?;
            let (fibs, reports): (Vec<_>, Vec<_>) =
                loaded.into_iter().map(|loaded| (loaded.fib, loaded.report)).unzip();
            let reports: Vec<_> = reports.iter().collect();
            let (family, trace) = options.family_and_trace(&fibs[0])?;
            match family {
                Family::V4 => from_several::<V4>(&options, fibs, &reports, trace)?,
                Family::V6 => from_several::<V6>(&options, fibs, &reports, trace)?,
            }
        }
        None => {
            let (fib, report) = options.load()?;
            let reports: Vec<_> = report.iter().collect();
            let (family, trace) = options.family_and_trace(&fib)?;
            match family {
                Family::V4 => from_routes::<V4>(&options, has_gpu, fib, &reports, trace)?,
                Family::V6 => from_routes::<V6>(&options, has_gpu, fib, &reports, trace)?,
            }
        }
    };
    report.show(options.drive.json)
}

impl Options {
    /// The table that was asked for, or a synthetic one.
    fn load(&self) -> Result<(Fib, Option<ReadReport>)> {
        if let Some(fib) = self.fib.first() {
            let loaded = self.read.load_one_of(fib)?;
            return Ok((loaded.fib, Some(loaded.report)));
        }
        let began = Instant::now();
        let family = self.family.wanted().unwrap_or(Family::V4);
        let spec = TableSpec { seed: self.seed, ..TableSpec::full(family) };
        let fib = generate::make(family, &spec)?;
        eprintln!(
            "synthetic table: {} {family} {}, {}, seed {}, made in {:.2} s",
            grouped(spec.prefixes),
            plural(spec.prefixes as u64, "prefix"),
            counted(fib.next_hops.len(), "next hop"),
            self.seed,
            began.elapsed().as_secs_f64()
        );
        Ok((fib, None))
    }

    /// The table of an image: of the given family, or of the trace's family if the file has both. The keys
    /// of the trace are then read already.
    fn image_and_trace(&self, path: &Path) -> Result<(ImageFile, Option<EitherKeys>)> {
        let mut images = ImageFile::open_all(path)?;
        let mut trace = None;
        let family = match (self.family.wanted(), &*images) {
            (Some(family), _) => family,
            (None, [image]) => image.family(),
            (None, _) => {
                trace = self.trace.of_either_family()?;
                let family = trace.as_ref().map_or(Family::V4, EitherKeys::family);
                eprintln!(
                    "the image has tables of both families: taking {family} (--family takes the other)"
                );
                family
            }
        };
        match images.iter().position(|image| image.family() == family) {
            Some(at) => Ok((images.swap_remove(at), trace)),
            None => bail!("{}: no {family} table", path.display()),
        }
    }

    /// The family to replay. A table with both is asked for what a trace from a file has; the keys of that
    /// are then read already.
    fn family_and_trace(&self, fib: &Fib) -> Result<(Family, Option<EitherKeys>)> {
        if self.family.wanted().is_some() || fib.v4.is_empty() || fib.v6.is_empty() {
            return Ok((family::choose(self.family.wanted(), fib), None));
        }
        let Some(trace) = self.trace.of_either_family()? else {
            return Ok((family::choose(None, fib), None));
        };
        let family = trace.family();
        eprintln!(
            "the table has routes of both families: taking {family}, as the trace has it (--family takes the other)"
        );
        Ok((family, Some(trace)))
    }

    /// What GPUs are started with for a trace of so many keys, if they are to look up.
    fn gpus<A: Addresses>(&self, has_gpu: bool, keys: usize) -> Option<GpuOptions> {
        let options = || self.drive.gpu_options(keys, usize::from(A::BITS / 8), size_of::<NextHop>());
        has_gpu.then(options)
    }

    /// The keys to look up, at least one. They may be read already.
    fn keys_read<A: Addresses>(&self, rib: &Rib<A>, read: Option<EitherKeys>) -> Result<Keys<A>> {
        let began = Instant::now();
        let keys = match read.and_then(EitherKeys::into_keys) {
            Some(keys) => keys,
            None => self.trace.keys(rib, self.count, self.seed)?,
        };
        eprintln!(
            "trace: {}, {} {} {}, ready in {:.2} s",
            self.trace,
            grouped(keys.keys.len()),
            A::FAMILY,
            plural(keys.keys.len() as u64, "key"),
            began.elapsed().as_secs_f64()
        );
        Ok(keys)
    }

    /// The updates that were asked for, read or made.
    fn updates<A: Addresses>(&self, fib: &mut Fib, tables: &[&ReadReport]) -> Result<Vec<Update<A>>> {
        let count = match self.drive.updates()? {
            Some(Updates::File(from)) => return self.read.updates(from, &mut fib.next_hops, tables),
            Some(Updates::Made(count)) => Some(count),
            None => None,
        };
        self.read.check(tables, None)?;
        let Some(count) = count else { return Ok(Vec::new()) };
        check_room::<Update<A>>(count, "updates")?;
        let spec = generate::update_spec::<A>(fib, self.seed);
        Ok(synth::Updates::new(A::rib(fib), &spec).take(count).map(|timed| timed.update).collect())
    }

    /// The keys to look up in several FIBs in turn: of a trace that is made, each FIB's turns are its own
    /// trace.
    fn keys_in_turn<A: Addresses>(&self, fibs: &Fibs<A>, read: Option<EitherKeys>) -> Result<Keys<A>> {
        let kind = match &self.trace {
            Trace::Made(kind) => *kind,
            Trace::File(_) => return self.keys_read(&Rib::new(), read),
        };
        let share = self.count.div_ceil(fibs.len());
        let mut own = Vec::new();
        for (seed, (id, rib)) in (self.seed..).zip(fibs.iter()) {
            own.push(trace::made(kind, rib, share, seed).with_context(|| format!("FIB {id}"))?);
        }
        let turn = |key: usize| own[key % own.len()][key / own.len()];
        Ok(Keys { keys: (0..self.count).map(turn).collect(), other_family: 0 })
    }
}

fn from_routes<A: Addresses>(
    options: &Options,
    has_gpu: bool,
    mut fib: Fib,
    tables: &[&ReadReport],
    read: Option<EitherKeys>,
) -> Result<Report> {
    let updates = options.updates::<A>(&mut fib, tables)?;
    let (rib, next_hops) = A::into_rib(fib);
    let Keys { keys: trace, other_family } = options.keys_read(&rib, read)?;
    let build = BuildOptions {
        results: u32::try_from(next_hops.len()).unwrap_or(u32::MAX),
        ..options.table.build_options(2)
    };
    let engine = options.engine.resolve_with::<A>(&rib, has_gpu, &build.strides)?;
    let strides = if has_gpu { build.strides.on_gpu() } else { build.strides };
    let build = BuildOptions { strides, ..build };
    let (began, prefixes) = (Instant::now(), rib.len());
    let mut live = A::live(engine, rib, build, ())?.with_context(|| format!("{engine} can't be built"))?;
    let bytes = live.reader().enter().table.image().bytes();
    say_bytes(engine.as_str(), bytes, (prefixes, "prefix"), "built", began);
    let (drive, gpus, reach) = (&options.drive, options.gpus::<A>(has_gpu, trace.len()), live.reach());
    let offload = drive.offload(gpus, &mut *live, reach, &trace)?;
    let job = Job { drive, engine, live, offload, trace: &*trace, updates: &updates };
    Ok(Report { other_family: Some(other_family), ..job.play::<Results>()?.0 })
}

/// Takes a compiled table and replays on it.
fn from_image<A: Addresses>(
    options: &Options,
    has_gpu: bool,
    image: ImageFile,
    read: Option<EitherKeys>,
    began: Instant,
) -> Result<Report> {
    let (engine, rib) = (image.engine(), image.routes::<A>()?.unwrap_or_default());
    let (path, image) = image.into_bare()?;
    let (bytes, count) = (image.bytes(), usize::try_from(image.entries()).unwrap_or(usize::MAX));
    // Without its routes all bits of an address may matter.
    let reach = if rib.is_empty() { A::BITS } else { Model::<A>::reach(&rib) };
    let resumed = A::resume(engine, Rib::new(), image, BuildOptions::default(), ())?;
    let mut live = resumed.map_err(|source| Error::Image { path, source })?;
    say_bytes(engine.as_str(), bytes, (count, "prefix"), "loaded", began);
    let Keys { keys: trace, other_family } = options.keys_read(&rib, read)?;
    let (drive, gpus) = (&options.drive, options.gpus::<A>(has_gpu, trace.len()));
    let offload = drive.offload(gpus, &mut *live, reach, &trace)?;
    let job = Job { drive, engine, live, offload, trace: &*trace, updates: &[] };
    Ok(Report { other_family: Some(other_family), ..job.play::<Results>()?.0 })
}

/// Replays on several FIBs.
fn from_several<A: Addresses>(
    options: &Options,
    mut fibs: Vec<Fib>,
    tables: &[&ReadReport],
    read: Option<EitherKeys>,
) -> Result<Report> {
    let updates = options.updates::<A>(&mut fibs[0], tables)?;
    let next_hops = fibs.iter().map(|fib| fib.next_hops.len()).max().unwrap_or(0);
    let fibs = several::routes::<A>(&fibs)?;
    let Keys { keys: trace, other_family } = options.keys_in_turn(&fibs, read)?;
    let build = BuildOptions {
        results: u32::try_from(next_hops).unwrap_or(u32::MAX),
        ..options.table.build_options(2)
    };
    let report = play::from_several(options, fibs, build, &trace, &updates)?;
    Ok(Report { other_family: Some(other_family), ..report })
}
