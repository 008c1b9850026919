//! Takes a table to a report: made live, driven, passed over once more.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use wirespeed::device::beside;
use wirespeed::engine::{Addresses, OnDevice, Visitor};
use wirespeed::gpu::ip;
use wirespeed::gpu::offload::{Offload, RemoteTable};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::image_file::{ImageFile, bytes_of_table};
use wirespeed::{Fleet, GpuError};
use wirespeed_fib::{Address, BuildOptions, Engine, LiveTable, Lookup, NextHop, Rib, Update};
use wirespeed_image::Table;
use wirespeed_image::live::{Reader, Writer};
use wirespeed_sail::{Fibs, LiveFibs};

use super::drive::Feeder;
use super::either::{OnEither, RemoteKeys};
use super::erased::AnyPlace;
use super::feed::{Live, Pace};
use super::place::{GpuState, Mixed, OnCpu};
use super::report::{BoundReport, GpuReport, Report, UpdatesReport};
use super::{DriveArguments, Options};
use crate::device::Device;
use crate::interrupt::{Measuring, is_interrupted};
use crate::number::{Bytes, counted, share};
use crate::several;
use crate::trace::Keys;

/// Builds a live table and replays on it.
pub(in crate::verbs) struct FromRoutes<'a, A: Address> {
    pub(in crate::verbs) options: &'a Options,
    pub(in crate::verbs) has_gpu: bool,
    pub(in crate::verbs) rib: Rib<A>,
    pub(in crate::verbs) build: BuildOptions,
    pub(in crate::verbs) trace: &'a [A],
    pub(in crate::verbs) updates: &'a [Update<A>],
}

impl<A: Addresses> Visitor<A> for FromRoutes<'_, A> {
    type Output = Result<Report>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Result<Report> {
        let Self { options, has_gpu, rib, build, trace, updates } = self;
        let (began, prefixes) = (Instant::now(), rib.len());
        let mut live =
            LiveTable::<A, E>::new(rib, build).with_context(|| format!("{} can't be built", E::NAME))?;
        let reader = live.reader();
        say_table(E::NAME, &*reader.enter(), prefixes, "built", began);
        let bits = live.reach();
        let offload = options.offload(has_gpu, trace.len(), bits, |make| live.follow(make))?;
        play_on_either(&options.drive, E::NAME, trace, reader, offload, feeder(&options.drive, live, updates))
    }
}

/// Builds a live table of several FIBs and replays on it; key by key each FIB gets its turn.
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
    say_table(several::ENGINE, &*reader.enter(), prefixes, "built", began);
    let place = OnCpu { trace: Mixed { fibs: &turns, keys: trace }, reader };
    play(&options.drive, several::ENGINE, &place, feeder(&options.drive, live, updates))
}

/// What feeds updates to a live table, if there are any.
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

/// Takes a compiled table and replays on it.
pub(in crate::verbs) struct FromImage<'a> {
    pub(in crate::verbs) options: &'a Options,
    pub(in crate::verbs) has_gpu: bool,
    pub(in crate::verbs) image: ImageFile,
    pub(in crate::verbs) began: Instant,
}

impl<A: Addresses> Visitor<A> for FromImage<'_> {
    type Output = Result<Report>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Result<Report> {
        let rib = self.image.routes::<A>()?.unwrap_or_default();
        let table = self.image.into_table::<E::Table>()?;
        let count = usize::try_from(table.image().entries()).unwrap_or(usize::MAX);
        say_table(E::NAME, &table, count, "loaded", self.began);
        let Keys { keys: trace, other_family } = self.options.keys(&rib)?;
        let mut writer = Writer::new(table);
        // Without its routes all bits of an address may matter.
        let bits = if rib.is_empty() { A::BITS } else { longest(&rib) };
        let offload = self.options.offload(self.has_gpu, trace.len(), bits, |make| writer.follow(make))?;
        let report = play_on_either(&self.options.drive, E::NAME, &*trace, writer.reader(), offload, None)?;
        Ok(Report { other_family: Some(other_family), ..report })
    }
}

/// The length of the longest prefix.
fn longest<A: Address>(rib: &Rib<A>) -> u8 {
    rib.iter().map(|(prefix, _)| prefix.len()).max().unwrap_or(0)
}

impl Options {
    /// Brings a table to the GPUs that were asked for, where lookups depend on so many first bits of a key.
    fn offload<A: Address, T: OnDevice + Lookup<A>>(
        &self,
        has_gpu: bool,
        keys: usize,
        bits: u8,
        follow: impl FnOnce(Make<'_, T, ip::Remote<A>>) -> Result<(), GpuError>,
    ) -> Result<Option<Offload<ip::Remote<A>>>> {
        if !has_gpu {
            return Ok(None);
        }
        let drive = &self.drive;
        let gpus = drive.gpu_options(keys, usize::from(A::BITS / 8), size_of::<NextHop>());
        let (by, threads) = (drive.device().by(drive.latency_bound), drive.threads(true));
        offload(drive.device(), &gpus, |fleet, table: &T| beside(fleet, table, bits, by, threads), follow)
    }
}

/// Makes what follows a table.
pub(in crate::verbs) type Make<'m, T, R> =
    Box<dyn FnOnce(&T) -> Result<<R as RemoteTable>::Follower, GpuError> + 'm>;

/// Starts GPUs and brings a table there: `follow` makes what follows it of the table as it is.
pub(in crate::verbs) fn offload<T, R: RemoteTable>(
    device: Device,
    gpus: &GpuOptions,
    beside: impl FnOnce(&Fleet, &T) -> Result<Offload<R>, GpuError>,
    follow: impl FnOnce(Make<'_, T, R>) -> Result<(), GpuError>,
) -> Result<Option<Offload<R>>> {
    let Some(fleet) = device.open(gpus)? else { return Ok(None) };
    let began = Instant::now();
    let mut offload = None;
    let make = |table: &T| Ok(offload.insert(beside(&fleet, table)?).remote().follower());
    let followed = follow(Box::new(make));
    if device.unless_missing(followed)?.is_none() {
        return Ok(None);
    }
    eprintln!(
        "{}: the table is there and measured after {:.2} s",
        fleet.gpus().iter().map(|gpu| gpu.properties().name.as_str()).collect::<Vec<_>>().join(", "),
        began.elapsed().as_secs_f64()
    );
    Ok(offload)
}

/// Replays on GPUs too, where there are some.
pub(in crate::verbs) fn play_on_either<K: RemoteKeys<T>, T: Table>(
    options: &DriveArguments,
    engine: &'static str,
    trace: K,
    reader: Reader<T>,
    offload: Option<Offload<K::Remote>>,
    feeder: Option<Feeder<'_>>,
) -> Result<Report> {
    match offload {
        None => play(options, engine, &OnCpu { trace, reader }, feeder),
        Some(offload) => {
            let place = OnEither { trace, reader, offload, in_flight: options.in_flight };
            play(options, engine, &place, feeder)
        }
    }
}

/// Drives a trace through a place, passes over it once more for the checksum, and reports.
pub(in crate::verbs) fn play(
    options: &DriveArguments,
    engine: &'static str,
    place: &dyn AnyPlace,
    feeder: Option<Feeder<'_>>,
) -> Result<Report> {
    let measuring = Measuring::begin();
    let before = place.gpu_state();
    let plan = options.plan(place.count(), before.is_some());
    let (plan, driven, latency_bound) = match options.latency_bound {
        None => (plan, plan.drive(place, feeder)?, None),
        Some(bound) => {
            let threads = options.thread_counts(before.is_some());
            let (held, driven) = plan.hold(place, bound, &options.sizes(place.count()), &threads, feeder)?;
            let report = BoundReport { us: bound.as_secs_f64() * 1e6, mlookups_per_s: held.rate / 1e6 };
            (held.plan, driven, Some(report))
        }
    };
    let pass = plan.pass(place);
    drop(measuring);
    let (lookups, matched) = plan.totals(&driven, &pass);
    let updates = driven.fed.map_or_else(UpdatesReport::default, |fed| UpdatesReport {
        applied: fed.applied,
        per_s: per_second(fed.applied, fed.seconds),
        rebuilds: fed.rebuilds,
    });
    let gpu = before.zip(place.gpu_state()).map(|(before, after)| GpuReport::between(&before, after));
    Ok(Report {
        engine,
        device: if gpu.is_some() { options.device().name() } else { "cpu" },
        gpu,
        threads: plan.threads,
        batch: plan.batch,
        keys: plan.len,
        lookups,
        matched,
        hit_share: share(pass.matched(), plan.len as u64),
        uncertain: None,
        assuming: None,
        seconds: driven.seconds,
        mlookups_per_s: per_second(lookups, driven.seconds) / 1e6,
        latency_us: driven.latencies.percentiles(),
        latency_bound,
        updates,
        checksum: pass.checksum,
        other_family: None,
        interrupted: is_interrupted(),
        lengths: None,
    })
}

impl GpuReport {
    fn between(before: &GpuState, after: GpuState) -> Self {
        let gpu = after.counts.gpu - before.counts.gpu;
        let cpu = after.counts.cpu - before.counts.cpu;
        Self { name: after.name, devices: after.devices, share: share(gpu, gpu + cpu), lost: after.out }
    }
}

fn say_table<T: Table>(engine: &str, table: &T, prefixes: usize, how: &str, began: Instant) {
    say_bytes(engine, bytes_of_table(table.image()), (prefixes, "prefixes", "prefix"), how, began);
}

/// Says the size of a table of so many entries, and what its entries are called, many and one.
pub(in crate::verbs) fn say_bytes(
    engine: &str,
    bytes: u64,
    (count, _, entry): (usize, &str, &str),
    how: &str,
    began: Instant,
) {
    eprintln!(
        "{engine}: {} in {} ({:.1} B a {entry}), {how} in {:.3} s",
        counted(count, entry),
        Bytes(bytes),
        share(bytes, count as u64),
        began.elapsed().as_secs_f64()
    );
}

#[allow(clippy::cast_precision_loss)] // a rate
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
