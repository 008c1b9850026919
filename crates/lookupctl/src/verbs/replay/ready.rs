//! [`Ready`]: a table of a family that is built or loaded, and its way to a report, alone or with the table
//! of the other family.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wirespeed::engine::{Addresses, AnyLive, AnyReader, AnyTable, EngineName, of_kind};
use wirespeed::gpu::offload::Offload;
use wirespeed::gpu::runtime::Fleet;
use wirespeed::image_file::{ImageFile, bytes_of_table};
use wirespeed_fib::{AnyUpdate, BuildOptions, Rib, Update, V4, V6};
use wirespeed_table::Model;

use super::both::{InBoth, OfFamily, OnCpu};
use super::feed::LiveBoth;
use super::follow::Following;
use super::options::Options;
use super::place::{InTable, Results};
use super::play::{Job, feeder, play, resume, say_built, say_bytes};
use super::report::{FamilyReport, Report};
use crate::device::Device;
use crate::engine::Choice;
use crate::tables::cannot_build;

/// Changes of a table while lookups run.
pub(super) enum Changes<'c, U> {
    /// Updates of the command line; maybe none.
    Updates(&'c [U]),
    /// Changes that a source tells.
    Followed(&'c mut Following),
}

/// A table that is ready for lookups.
pub(super) struct Ready<A: Addresses> {
    /// The engine that the table was built with.
    engine: EngineName,
    /// Whether updates may bring another engine.
    is_auto: bool,
    table: Table<A>,
    /// The number of prefixes.
    pub(super) prefixes: usize,
    /// The number of leading bits of an address that lookups depend on.
    reach: u8,
}

enum Table<A: Addresses> {
    Live(Box<dyn AnyLive<A>>),
    /// The table of an image for prefix lookups. Its results are taken apart on the CPU.
    ForPrefixes(Box<dyn AnyTable<A>>),
}

impl<A: Addresses> Ready<A> {
    /// Builds a live table with head room for this number of next hops.
    pub(super) fn build(options: &Options, has_gpu: bool, rib: Rib<A>, next_hops: usize) -> Result<Self> {
        let build = BuildOptions {
            results: u32::try_from(next_hops).unwrap_or(u32::MAX),
            ..options.table.build_options(2)
        };
        let engine = options.engine.resolve_with::<A>(&rib, has_gpu, &build.strides)?;
        let strides = if has_gpu { build.strides.on_gpu() } else { build.strides };
        let build = BuildOptions { strides, ..build };
        let (began, prefixes) = (Instant::now(), rib.len());
        let is_auto = options.engine == Choice::Auto;
        let live = if is_auto { A::live_auto(rib, build, ()) } else { A::live(engine, rib, build, ())? };
        let live = live.with_context(|| cannot_build(engine))?;
        say_built(engine, &*live, (prefixes, "prefix"), began);
        Ok(Self { engine, is_auto, reach: live.reach(), table: Table::Live(live), prefixes })
    }

    /// Takes the table of an image. Returns its routes, too; none if the image has none.
    pub(super) fn open(image: ImageFile, began: Instant) -> Result<(Self, Rib<A>)> {
        let (engine, rib) = (image.engine(), image.routes::<A>()?.unwrap_or_default());
        let prefixes = usize::try_from(image.image().entries()).unwrap_or(usize::MAX);
        // Without its routes all bits of an address may matter.
        let reach = if rib.is_empty() { A::BITS } else { Model::<A>::reach(&rib) };
        let table = if image.has_prefix_lookups() {
            let table = image.into_table::<A>()?;
            let bytes = bytes_of_table(table.image());
            say_bytes(engine.as_str(), bytes, (prefixes, "prefix"), "loaded", began.elapsed());
            Table::ForPrefixes(table)
        } else {
            let bare = image.into_bare()?;
            Table::Live(resume::<A>(engine, Rib::new(), bare, (), "prefix", began.elapsed())?)
        };
        Ok((Self { engine, is_auto: false, table, prefixes, reach }, rib))
    }

    /// Replays a trace.
    pub(super) fn replay(
        self,
        options: &Options,
        has_gpu: bool,
        trace: &[A],
        changes: Changes<'_, Update<A>>,
    ) -> Result<Report> {
        let (engines, drive) = (self.engines(), &options.drive);
        let Self { engine, table, reach, .. } = self;
        match table {
            Table::Live(mut live) => {
                let fleet = drive.open_gpus(options.gpus::<A>(has_gpu, trace.len()))?;
                let offload = drive.offload(fleet.as_ref(), &mut *live, reach, trace)?;
                let report = match changes {
                    Changes::Updates(updates) => {
                        Job { drive, engine, live, offload, trace, updates }.play::<Results>()?.0
                    }
                    Changes::Followed(following) => {
                        let reader = live.reader();
                        let place = InTable { trace, ask: PhantomData::<Results>, reader, offload };
                        let feeder = following.feeder(live, A::update);
                        let report = play(drive, engine.as_str(), &place, Some(feeder))?;
                        Report { followed: Some(following.state()), ..report }
                    }
                };
                let (engine, began_with) = engines.at_the_end();
                let began_with = began_with.map(|engine| engine.as_str().to_owned());
                Ok(Report { engine: engine.as_str().to_owned(), began_with, ..report })
            }
            Table::ForPrefixes(table) => {
                on_cpu_only(options)?;
                let place =
                    OfFamily { keys: trace, cpu: OnCpu::ForPrefixes(Arc::from(table)), offload: None };
                play(drive, engine.as_str(), &place, None)
            }
        }
    }

    /// The engines of the table, from now on.
    fn engines(&self) -> Engines<A> {
        let reader = match &self.table {
            Table::Live(live) if self.is_auto => Some(live.reader()),
            Table::Live(_) | Table::ForPrefixes(_) => None,
        };
        Engines { first: self.engine, reader }
    }

    /// Copies the table to GPUs, if these look up.
    fn offload(
        &mut self,
        options: &Options,
        fleet: Option<&Fleet>,
        trace: &[A],
    ) -> Result<Option<Offload<A::Remote>>> {
        match &mut self.table {
            Table::Live(live) => options.drive.offload(fleet, &mut **live, self.reach, trace),
            Table::ForPrefixes(_) => on_cpu_only(options).map(|()| None),
        }
    }

    /// The table on the CPU, and the live table if it takes updates.
    fn on_cpu(self) -> (OnCpu<A>, Option<Box<dyn AnyLive<A>>>) {
        match self.table {
            Table::Live(live) => (OnCpu::Live(live.reader()), Some(live)),
            Table::ForPrefixes(table) => (OnCpu::ForPrefixes(Arc::from(table)), None),
        }
    }
}

/// The engine that a table began with, and a reader of a table that may get another one.
struct Engines<A: Addresses> {
    first: EngineName,
    reader: Option<Arc<dyn AnyReader<A>>>,
}

impl<A: Addresses> Engines<A> {
    /// The engine now, and the first one if it was another.
    fn at_the_end(&self) -> (EngineName, Option<EngineName>) {
        let now = |reader: &Arc<dyn AnyReader<A>>| of_kind::<A>(reader.enter().table.image().kind());
        let last = self.reader.as_ref().and_then(now).unwrap_or(self.first);
        (last, (last != self.first).then_some(self.first))
    }
}

/// Replays a trace of both families.
pub(super) fn replay_both(
    options: &Options,
    has_gpu: bool,
    (mut v4, mut v6): (Ready<V4>, Ready<V6>),
    (fours, sixes): (&[V4], &[V6]),
    changes: Changes<'_, AnyUpdate>,
) -> Result<Report> {
    let drive = &options.drive;
    // IPv6 addresses are longer: slots for them hold keys of both families.
    let fleet = drive.open_gpus(options.gpus::<V6>(has_gpu, fours.len() + sixes.len()))?;
    let offloads = (v4.offload(options, fleet.as_ref(), fours)?, v6.offload(options, fleet.as_ref(), sixes)?);
    // A device looks up both families or none, so that its share of the keys is known.
    let (offload4, offload6) = match offloads {
        (Some(v4), Some(v6)) => (Some(v4), Some(v6)),
        _ => (None, None),
    };
    let (engines4, engines6) = (v4.engines(), v6.engines());
    let ((cpu4, live4), (cpu6, live6)) = (v4.on_cpu(), v6.on_cpu());
    let place = InBoth {
        v4: OfFamily { keys: fours, cpu: cpu4, offload: offload4 },
        v6: OfFamily { keys: sixes, cpu: cpu6, offload: offload6 },
    };
    let live = live4.zip(live6).map(|(v4, v6)| LiveBoth { v4, v6 });
    let report = match (changes, live) {
        (Changes::Followed(following), Some(live)) => {
            let feeder = following.feeder(live, |update| Some(*update));
            let report = play(drive, "", &place, Some(feeder))?;
            Report { followed: Some(following.state()), ..report }
        }
        (Changes::Updates(updates), Some(live)) => play(drive, "", &place, feeder(drive, live, updates))?,
        (_, None) => play(drive, "", &place, None)?,
    };
    let ((last4, first4), (last6, first6)) = (engines4.at_the_end(), engines6.at_the_end());
    let both = |v4: EngineName, v6: EngineName| match v4 == v6 {
        true => v4.to_string(),
        false => format!("{v4}+{v6}"),
    };
    let has_changed = first4.is_some() || first6.is_some();
    let of = |family, engine: EngineName, began_with: Option<EngineName>, keys| {
        let began_with = began_with.map(EngineName::as_str);
        FamilyReport { family, engine: engine.as_str(), began_with, keys }
    };
    Ok(Report {
        engine: both(last4, last6),
        began_with: has_changed.then(|| both(engines4.first, engines6.first)),
        families: vec![of(4, last4, first4, fours.len()), of(6, last6, first6, sixes.len())],
        other_family: Some(0),
        ..report
    })
}

/// Refuses GPUs for an image for prefix lookups.
fn on_cpu_only(options: &Options) -> Result<()> {
    match options.drive.device() {
        Device::Gpu => bail!("--device gpu: an image for prefix lookups is looked up on the CPU only"),
        Device::Auto | Device::Cpu | Device::IfAny => Ok(()),
    }
}
