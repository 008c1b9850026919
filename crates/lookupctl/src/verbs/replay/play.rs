//! Takes a live table to a report: brought to GPUs, driven, passed over once more.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use wirespeed::device;
use wirespeed::engine::{AnyLive, EngineName, Served, Wanted};
use wirespeed::gpu::offload::{Answers, Offload, RemoteTable};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::{Error, Fleet};
use wirespeed_fib::{Address, BuildOptions, Update};
use wirespeed_image::{Image, Table};
use wirespeed_sail::{Fibs, LiveFibs};
use wirespeed_table::Keys;

use super::arguments::DriveArguments;
use super::bound::{self, Held};
use super::choose;
use super::drive::Feeder;
use super::feed::{Live, Pace};
use super::options::Options;
use super::place::{Ask, GpuState, InFibs, InTable, Place};
use super::plan::Beside;
use super::report::{BesideReport, BoundReport, GpuReport, Report, UpdatesReport};
use crate::interrupt::{Running, is_interrupted};
use crate::number::{Bytes, counted, share};
use crate::several;

/// Keys of a trace that are enough to measure GPUs with.
const SAMPLE: usize = 1 << 20;

/// A live table, with the trace and the updates of its replay.
pub(in crate::verbs) struct Job<'a, D: Served> {
    pub(in crate::verbs) drive: &'a DriveArguments,
    pub(in crate::verbs) engine: EngineName,
    pub(in crate::verbs) live: Box<dyn AnyLive<D>>,
    /// The table on GPUs, if these look up.
    pub(in crate::verbs) offload: Option<Offload<D::Remote>>,
    pub(in crate::verbs) trace: D::Keys<'a>,
    pub(in crate::verbs) updates: &'a [D::Update],
}

impl<'a, D: Served<Update: Sync>> Job<'a, D> {
    /// Replays the trace with the answers of `Q`. Returns the report and the place of the lookups.
    pub(in crate::verbs) fn play<Q: Ask<D>>(self) -> Result<(Report, InTable<'a, D, Q>)>
    where
        D::Remote: Answers<Q::Found>,
    {
        let Self { drive, engine, live, offload, trace, updates } = self;
        let place = InTable { trace, ask: PhantomData, reader: live.reader(), offload };
        let report = play(drive, engine.as_str(), &place, feeder(drive, live, updates))?;
        Ok((report, place))
    }
}

impl DriveArguments {
    /// Starts the GPUs. `None` if no GPU looks up.
    pub(in crate::verbs) fn open_gpus(&self, gpus: Option<GpuOptions>) -> Result<Option<Fleet>> {
        match gpus {
            None => Ok(None),
            Some(gpus) => self.device().open(&gpus),
        }
    }

    /// Uploads a table whose lookups depend on the first `reach` bits of a key. `None` if no GPU looks up.
    pub(in crate::verbs) fn offload<D: Served>(
        &self,
        fleet: Option<&Fleet>,
        live: &mut dyn AnyLive<D>,
        reach: u8,
        trace: D::Keys<'_>,
    ) -> Result<Option<Offload<D::Remote>>> {
        let (Some(fleet), device) = (fleet, self.device()) else { return Ok(None) };
        let (began, sample) = (Instant::now(), trace.part(0..trace.len().min(SAMPLE)));
        let (by, threads) = (device.by(self.latency_bound), self.threads(true));
        let offload = device::offload(live, fleet, sample, reach, by, threads);
        let Some(offload) = device.unless_missing(offload)? else { return Ok(None) };
        eprintln!(
            "{}: the table is there and measured after {:.2} s",
            fleet.gpus().iter().map(|gpu| gpu.properties().name.as_str()).collect::<Vec<_>>().join(", "),
            began.elapsed().as_secs_f64()
        );
        if self.explain {
            eprint!("{}", offload.remote().copies().calibration());
        }
        Ok(Some(offload))
    }
}

/// Builds a live table of several FIBs and replays the trace on it. The keys go to the FIBs in turn.
pub(in crate::verbs) fn from_several<A: Address>(
    options: &Options,
    fibs: Fibs<A>,
    build: BuildOptions,
    trace: &[A],
    updates: &[Update<A>],
) -> Result<Report> {
    let ids: Vec<_> = fibs.iter().map(|(id, _)| id).collect();
    let turns: Vec<_> = ids.into_iter().cycle().take(trace.len()).collect();
    let (began, prefixes) = (Instant::now(), fibs.iter().map(|(_, rib)| rib.len()).sum());
    let live = LiveFibs::new(fibs, build).with_context(|| format!("{} can't be built", several::ENGINE))?;
    let reader = live.reader();
    say_bytes(
        several::ENGINE,
        reader.enter().image().bytes(),
        (prefixes, "prefix"),
        "built",
        began.elapsed(),
    );
    let place = InFibs { fibs: &turns, keys: trace, reader };
    play(&options.drive, several::ENGINE, &place, feeder(&options.drive, live, updates))
}

/// Makes the feeder of a live table, if there are updates.
pub(in crate::verbs) fn feeder<'a, L: Live<Update: Sync> + Send + 'a>(
    options: &DriveArguments,
    mut live: L,
    updates: &'a [L::Update],
) -> Option<Feeder<'a>> {
    (!updates.is_empty()).then(|| {
        let pace = options.pace();
        Feeder {
            to_its_end: matches!(pace, Pace::Over(_)),
            feed: Box::new(move |start: Instant, stop: &AtomicBool| {
                pace.feed(&mut live, updates, start, stop)
            }),
        }
    })
}

/// Drives a trace through a place, makes one more pass for the checksum, and reports.
pub(in crate::verbs) fn play(
    options: &DriveArguments,
    engine: &str,
    place: &dyn Place,
    feeder: Option<Feeder<'_>>,
) -> Result<Report> {
    let running = Running::begin();
    let plans = options.plans(place.len(), place.gpu().is_some());
    let plans = match place.gpu() {
        None => plans,
        Some(gpu) => options.fitting(plans, |keys| gpu.room(keys))?,
    };
    let (plan, before, driven, latency_bound) = match options.latency_bound {
        None => {
            let plan = choose::best(&plans, place, options.explain)?;
            let before = place.gpu();
            (plan, before, plan.drive(place, feeder)?, None)
        }
        Some(bound) => {
            let before = place.gpu();
            let (held, driven) = bound::hold(place, bound, &plans, feeder)?;
            let Held { plan, rate, is_held } = held;
            let report =
                BoundReport { us: bound.as_secs_f64() * 1e6, mlookups_per_s: rate / 1e6, held: is_held };
            (plan, before, driven, Some(report))
        }
    };
    let passes: Vec<_> = plan.teams().map(|(team, _)| team.pass(place)).collect();
    let pass = &passes[0];
    drop(running);
    let (lookups, matched) = plan.totals(&driven, &passes);
    let updates = driven.fed.map_or_else(UpdatesReport::default, |fed| UpdatesReport {
        applied: fed.applied,
        per_s: per_second(fed.applied, fed.seconds),
        rebuilds: fed.rebuilds,
    });
    let gpu = before.zip(place.gpu()).map(|(before, after)| {
        let feeding = plan.batches_by_team(&driven.batches).next();
        let feeding = feeding.map_or(0, |(team, batches)| team.lookups(batches));
        GpuReport::between(&before, after, share(feeding, lookups))
    });
    let in_flight = gpu.is_some().then_some(plan.in_flight);
    Ok(Report {
        engine: engine.to_owned(),
        began_with: None,
        device: if gpu.is_some() { options.device().name() } else { "cpu" },
        gpu,
        threads: plan.threads,
        beside: plan.beside.map(|Beside { threads, batch, .. }| BesideReport { threads, batch }),
        batch: plan.batch,
        in_flight,
        plan: in_flight.map(|_| plan.to_string()),
        keys: plan.len,
        lookups,
        matched,
        hit_share: share(pass.matched(), plan.len as u64),
        uncertain: None,
        assuming: None,
        seconds: driven.seconds,
        mlookups_per_s: per_second(lookups, driven.seconds) / 1e6,
        cpu_s_per_glookups: (lookups > 0).then(|| driven.cpu_seconds * 1e9 / lookups as f64),
        latency_us: driven.latencies.percentiles(),
        latency_bound,
        updates,
        followed: None,
        checksum: pass.checksum,
        other_family: None,
        families: Vec::new(),
        interrupted: is_interrupted(),
        lengths: None,
    })
}

impl GpuReport {
    /// What GPUs did between two moments, where threads with this part of the keys could feed them.
    fn between(before: &GpuState, after: GpuState, feeding: f64) -> Self {
        let counts = after.counts.since(before.counts);
        let share = share(counts.gpu, counts.gpu + counts.cpu) * feeding;
        Self { name: after.name, devices: after.devices, share, why_cpu: counts.why_cpu, lost: after.out }
    }
}

/// Prints the size of a live table that was built.
pub(in crate::verbs) fn say_built<D: Served>(
    engine: EngineName,
    live: &dyn AnyLive<D>,
    entries: (usize, &str),
    began: Instant,
) {
    let bytes = live.reader().enter().table.image().bytes();
    say_bytes(engine.as_str(), bytes, entries, "built", began.elapsed());
}

/// Makes a live table of an image, and prints its size. `entry` is the name of an entry, `opened` the time
/// that opening the file took.
pub(in crate::verbs) fn resume<D: Served>(
    engine: EngineName,
    model: D::Model,
    (path, image): (PathBuf, Image),
    wanted: Wanted<D>,
    entry: &str,
    opened: Duration,
) -> Result<Box<dyn AnyLive<D>>> {
    let began = Instant::now();
    let (bytes, count) = (image.bytes(), usize::try_from(image.entries()).unwrap_or(usize::MAX));
    let resumed = D::resume(engine, model, image, BuildOptions::default(), wanted)?;
    let live = resumed.map_err(|cause| Error::Image { path, cause })?;
    say_bytes(engine.as_str(), bytes, (count, entry), "loaded", opened + began.elapsed());
    Ok(live)
}

/// Prints the size of a table of `count` entries; `entry` is their name.
pub(in crate::verbs) fn say_bytes(
    engine: &str,
    bytes: u64,
    (count, entry): (usize, &str),
    how: &str,
    time: Duration,
) {
    eprintln!(
        "{engine}: {} in {} ({:.1} B a {entry}), {how} in {:.3} s",
        counted(count, entry),
        Bytes(bytes),
        share(bytes, count as u64),
        time.as_secs_f64()
    );
}

#[allow(clippy::cast_precision_loss)] // a rate
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
