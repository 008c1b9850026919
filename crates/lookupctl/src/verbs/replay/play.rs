//! From a table to a report: made live, driven, passed over once more.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use wirespeed::engine::{Engines, OnDevice, Visitor};
use wirespeed::image_file::{ImageFile, bytes_of_table};
use wirespeed_fib::{Address, BuildOptions, Engine, LiveTable, Rib, Update};
use wirespeed_image::Table;
use wirespeed_image::live::{Reader, Writer};
use wirespeed_sail::{Fibs, LiveFibs};

use super::Options;
use super::drive::{Driven, Feeder, KeysOf, Mixed, Plan};
use super::feed::{Fed, Live, Pace};
use super::report::{Report, UpdatesReport};
use crate::number::{Bytes, grouped, share};
use crate::several;

/// Builds a live table and replays on it.
pub(super) struct FromRoutes<'a, A: Address> {
    pub(super) options: &'a Options,
    pub(super) rib: Rib<A>,
    pub(super) build: BuildOptions,
    pub(super) trace: &'a [A],
    pub(super) updates: &'a [Update<A>],
}

impl<A: Engines> Visitor<A> for FromRoutes<'_, A> {
    type Output = Result<Report>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Result<Report> {
        let Self { options, rib, build, trace, updates } = self;
        let (began, prefixes) = (Instant::now(), rib.len());
        let live =
            LiveTable::<A, E>::new(rib, build).with_context(|| format!("{} can't be built", E::NAME))?;
        let reader = live.reader();
        say_table(E::NAME, &*reader.enter(), prefixes, "built", began);
        let plan = options.plan(trace);
        finish(E::NAME, &plan, &reader, plan.drive(&reader, feeder(options, live, updates))?)
    }
}

/// Builds a live table of several FIBs and replays on it; key by key each FIB gets its turn.
pub(super) fn from_several<A: Address>(
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
    let plan = options.plan(Mixed { fibs: &turns, keys: trace });
    finish(several::ENGINE, &plan, &reader, plan.drive(&reader, feeder(options, live, updates))?)
}

/// What feeds updates to a live table, if there are any.
fn feeder<'a, A: Address>(
    options: &Options,
    mut live: impl Live<A> + Send + 'a,
    updates: &'a [Update<A>],
) -> Option<Feeder<impl FnOnce(Instant, &AtomicBool) -> Result<Fed> + Send + 'a>> {
    (!updates.is_empty()).then(|| {
        let pace = options.rate.unwrap_or(Pace::Over(options.seconds.as_secs_f64()));
        Feeder {
            to_its_end: matches!(pace, Pace::Over(_)),
            feed: move |start: Instant, stop: &AtomicBool| pace.feed(&mut live, updates, start, stop),
        }
    })
}

/// Takes a compiled table and replays on it.
pub(super) struct FromImage<'a> {
    pub(super) options: &'a Options,
    pub(super) image: ImageFile,
    pub(super) began: Instant,
}

impl<A: Engines> Visitor<A> for FromImage<'_> {
    type Output = Result<Report>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Result<Report> {
        let rib = self.image.routes::<A>()?.unwrap_or_default();
        let table = self.image.into_table::<E::Table>()?;
        let count = usize::try_from(table.image().entries()).unwrap_or(usize::MAX);
        say_table(E::NAME, &table, count, "loaded", self.began);
        let trace = self.options.keys(&rib)?;
        let reader = Writer::new(table).reader();
        let plan = self.options.plan(&trace[..]);
        let driven = plan.drive(&reader, None::<Feeder<fn(Instant, &AtomicBool) -> Result<Fed>>>)?;
        finish(E::NAME, &plan, &reader, driven)
    }
}

fn say_table<T: Table>(engine: &str, table: &T, prefixes: usize, how: &str, began: Instant) {
    let bytes = bytes_of_table(table.image());
    eprintln!(
        "{engine}: {} prefixes in {} ({:.1} B a prefix), {how} in {:.3} s",
        grouped(prefixes),
        Bytes(bytes),
        share(bytes, prefixes as u64),
        began.elapsed().as_secs_f64()
    );
}

/// The pass for the checksum, and all that is reported.
fn finish<K: KeysOf<T>, T: Table>(
    engine: &'static str,
    plan: &Plan<K>,
    reader: &Reader<T>,
    driven: Driven<Fed>,
) -> Result<Report> {
    let pass = plan.pass(reader);
    let (lookups, matched) = plan.totals(&driven, &pass);
    let updates = driven.fed.map_or_else(UpdatesReport::default, |fed| UpdatesReport {
        applied: fed.applied,
        per_s: per_second(fed.applied, fed.seconds),
        rebuilds: fed.rebuilds,
    });
    Ok(Report {
        engine,
        device: "cpu",
        threads: plan.threads,
        batch: plan.batch,
        keys: plan.trace.len(),
        lookups,
        matched,
        hit_share: share(pass.matched(), plan.trace.len() as u64),
        seconds: driven.seconds,
        mlookups_per_s: per_second(lookups, driven.seconds) / 1e6,
        latency_us: driven.latencies.percentiles(),
        updates,
        checksum: pass.checksum,
    })
}

#[allow(clippy::cast_precision_loss)] // a rate
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
