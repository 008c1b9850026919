//! `replay`, the main job: a trace through an engine, with updates in flight.

mod arguments;
mod both;
mod bound;
mod choose;
pub(in crate::verbs) mod drive;
pub(in crate::verbs) mod feed;
mod follow;
mod latency;
mod options;
mod paced;
pub(in crate::verbs) mod place;
mod plan;
pub(in crate::verbs) mod play;
mod ready;
pub(in crate::verbs) mod report;

pub(in crate::verbs) use arguments::{DriveArguments, Updates, parse_seconds, parse_time};
pub(crate) use options::Options;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use follow::Following;
use options::Families;
use ready::{Changes, Ready, replay_both};
use report::Report;
use wirespeed::engine::Addresses;
use wirespeed::image_file::ImageFile;
use wirespeed_fib::read::ReadReport;
use wirespeed_fib::{BuildOptions, Family, Fib, Rib, V4, V6};

use crate::Outcome;
use crate::device::Device;
use crate::several;
use crate::stdin;
use crate::trace::{AnyKeys, Keys, Trace};

pub(crate) fn run(options: Options) -> Result<Outcome> {
    let tables = options.fib.iter().chain(options.merge.iter().map(|source| &source.file));
    let tables = tables.map(|file| ("the table", Some(&**file)));
    let beside = [("the trace", options.trace.file()), ("the updates", options.drive.updates_file())];
    stdin::at_most_one(tables.chain(beside))?;
    if options.fib.len() > 1 {
        if options.drive.device() == Device::Gpu {
            bail!(
                "--device gpu: several FIBs are looked up on the CPU only; --device cpu or auto does it there"
            );
        }
        if let Some(option) = options.drive.gpu_option() {
            bail!("{option} is for a GPU: several FIBs are looked up on the CPU only");
        }
    }
    options.drive.check()?;
    options.check()?;
    let has_gpu = options.fib.len() < 2 && options.drive.device().has_gpu()?;
    let report = match &options.image {
        Some(path) => from_image(&options, has_gpu, path)?,
        None if options.follow.is_some() => from_source(&options, has_gpu)?,
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
            let (fib, reports) = options.load()?;
            let reports: Vec<_> = reports.iter().collect();
            match options.families(fib.v4.len(), fib.v6.len())? {
                (Families::One(Family::V4), trace) => {
                    from_routes::<V4>(&options, has_gpu, fib, &reports, trace)?
                }
                (Families::One(Family::V6), trace) => {
                    from_routes::<V6>(&options, has_gpu, fib, &reports, trace)?
                }
                (Families::Both, trace) => from_routes_of_both(&options, has_gpu, fib, &reports, trace)?,
            }
        }
    };
    report.show(options.drive.json)
}

fn from_routes<A: Addresses>(
    options: &Options,
    has_gpu: bool,
    mut fib: Fib,
    tables: &[&ReadReport],
    read: Option<AnyKeys>,
) -> Result<Report> {
    let updates = options.updates::<A>(&mut fib, tables)?;
    let (rib, next_hops) = A::into_rib(fib);
    let Keys { keys, other_family } = options.keys_read(&rib, read)?;
    let table = Ready::build(options, has_gpu, rib, next_hops.len())?;
    let report = table.replay(options, has_gpu, &keys, Changes::Updates(&updates))?;
    Ok(Report { other_family: Some(other_family), ..report })
}

fn from_routes_of_both(
    options: &Options,
    has_gpu: bool,
    mut fib: Fib,
    tables: &[&ReadReport],
    read: Option<AnyKeys>,
) -> Result<Report> {
    let updates = options.updates_of_both(&mut fib, tables)?;
    let Fib { v4, v6, next_hops } = fib;
    let (fours, sixes) = options.keys_of_both((&v4, &v6), (v4.len(), v6.len()), read)?;
    let hint = "the table has both families, and --family takes one";
    let v4 = Ready::build(options, has_gpu, v4, next_hops.len()).context(hint)?;
    let v6 = Ready::build(options, has_gpu, v6, next_hops.len()).context(hint)?;
    replay_both(options, has_gpu, (v4, v6), (&fours, &sixes), Changes::Updates(&updates))
}

/// Replays on the routes of a source that is followed while lookups run.
fn from_source(options: &Options, has_gpu: bool) -> Result<Report> {
    options.read.check(&[], None)?;
    let source = options.follow.context("a source is named")?;
    let (mut following, Fib { v4, v6, .. }) = Following::open(source)?;
    let paths = following.paths();
    match options.families(v4.len(), v6.len())? {
        (Families::One(Family::V4), trace) => from_source_of(options, has_gpu, v4, following, trace),
        (Families::One(Family::V6), trace) => from_source_of(options, has_gpu, v6, following, trace),
        (Families::Both, trace) => {
            let (fours, sixes) = options.keys_of_both((&v4, &v6), (v4.len(), v6.len()), trace)?;
            let v4 = Ready::build(options, has_gpu, v4, paths)?;
            let v6 = Ready::build(options, has_gpu, v6, paths)?;
            let changes = Changes::Followed(&mut following);
            replay_both(options, has_gpu, (v4, v6), (&fours, &sixes), changes)
        }
    }
}

fn from_source_of<A: Addresses>(
    options: &Options,
    has_gpu: bool,
    rib: Rib<A>,
    mut following: Following,
    read: Option<AnyKeys>,
) -> Result<Report> {
    let Keys { keys, other_family } = options.keys_read(&rib, read)?;
    let table = Ready::build(options, has_gpu, rib, following.paths())?;
    let report = table.replay(options, has_gpu, &keys, Changes::Followed(&mut following))?;
    Ok(Report { other_family: Some(other_family), ..report })
}

/// Takes the compiled tables of an image and replays on them.
fn from_image(options: &Options, has_gpu: bool, path: &Path) -> Result<Report> {
    options.read.check(&[], None)?;
    let began = Instant::now();
    let images = ImageFile::open_all(path)?;
    let prefixes = |image: &ImageFile| usize::try_from(image.image().entries()).unwrap_or(usize::MAX);
    let (families, trace) = match (options.family.wanted(), &*images) {
        (Some(family), _) => (Families::One(family), None),
        (None, [v4, v6]) if matches!(options.trace, Trace::File(_)) => {
            options.families_of_both(prefixes(v4), prefixes(v6))?
        }
        (None, [v4, v6]) => options.families(prefixes(v4), prefixes(v6))?,
        (None, images) => (Families::One(images.first().map_or(Family::V4, ImageFile::family)), None),
    };
    match families {
        Families::Both => {
            let images = <[ImageFile; 2]>::try_from(images);
            let [v4, v6] = images.expect("both families are taken of two tables only");
            let ((v4, fours), (v6, sixes)) = (Ready::open(v4, began)?, Ready::open(v6, began)?);
            let prefixes = (v4.prefixes, v6.prefixes);
            let (fours, sixes) = options.keys_of_both((&fours, &sixes), prefixes, trace)?;
            replay_both(options, has_gpu, (v4, v6), (&fours, &sixes), Changes::Updates(&[]))
        }
        Families::One(family) => {
            let image = images.into_iter().find(|image| image.family() == family);
            let image = image.with_context(|| format!("{}: no {family} table", path.display()))?;
            match family {
                Family::V4 => from_image_of::<V4>(options, has_gpu, image, trace, began),
                Family::V6 => from_image_of::<V6>(options, has_gpu, image, trace, began),
            }
        }
    }
}

fn from_image_of<A: Addresses>(
    options: &Options,
    has_gpu: bool,
    image: ImageFile,
    read: Option<AnyKeys>,
    began: Instant,
) -> Result<Report> {
    let (table, rib) = Ready::<A>::open(image, began)?;
    let Keys { keys, other_family } = options.keys_read(&rib, read)?;
    let report = table.replay(options, has_gpu, &keys, Changes::Updates(&[]))?;
    Ok(Report { other_family: Some(other_family), ..report })
}

/// Replays on several FIBs.
fn from_several<A: Addresses>(
    options: &Options,
    mut fibs: Vec<Fib>,
    tables: &[&ReadReport],
    read: Option<AnyKeys>,
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
