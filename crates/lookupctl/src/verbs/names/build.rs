//! `names build`: compiles a table to an image file, or writes it for other programs.

mod to;

use std::ffi::OsString;
use std::fmt;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::image_file::with_left_out;
use wirespeed::names::image_file;
use wirespeed::names::lists::{Entries as ListEntries, Resolved};
use wirespeed_namelookup::{BuildOptions, NameDomain, NameModel};

use self::to::{To, to_parser};
use super::source::{BuildArguments, Loaded, MergeArguments, NOT_AGGREGATED, OfList, ReadArguments};
use crate::Outcome;
use crate::busy::Busy;
use crate::engine::Choice;
use crate::made::{Entries, ImageArguments, ImageReport};
use crate::number::{Grouped, counted};
use crate::output::{self, is_no_input};
use crate::refuse::refuse;
use crate::stdin;
use crate::tables;
use crate::verbs::lookup::is_none_left_out;

/// Compiles a table of names to an image file. lookup and replay open it with --image, without compiling. Or
/// writes it for other programs (--to)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input. Several lists of domains, each by an option of its own, are one list,
    /// in which the last of equal entries counts
    #[arg(long, value_name = "FILE", required_unless_present = "merge", conflicts_with = "merge")]
    table: Vec<OsString>,

    #[command(flatten)]
    merged: MergeArguments,

    /// Format of the output: an image, names (/com/example) or domains with their results, or a list of
    /// domains. -o - writes all but images to standard output
    #[arg(id = "to", long, value_name = "FORMAT", default_value = "image", value_parser = to_parser())]
    format: To,

    #[command(flatten)]
    image: ImageArguments<NameDomain>,

    /// Seed of engines that hash, for images that are equal byte for byte. The default is random, so that
    /// nobody who chooses names can know it
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names build --table fib.txt -o names.img
  lookupctl names build --table domains.txt.zst --engine mata -o mata.img
  lookupctl names build --table domains.txt.zst --aggregate -o small.img
  lookupctl names build --table filter.txt --lenient -o blocked.img          a list of domains: hosts, adblock, dnsmasq, rpz, psl
  lookupctl names build --table ads.hosts --table filter.txt -o blocked.img
  lookupctl names build --table domains.csv --value-columns category -o categories.img
  lookupctl names build --merge own=own.csv --merge blocked=list.txt -o all.img
  lookupctl names build --table filter.txt --to rpz -o blocked.zone
  lookupctl names lookup --image names.img /com/parc/www
  lookupctl names replay --image names.img --trace requests.txt

An image holds the compiled table, the texts of its results, and all its names, also with --aggregate: lookup and replay \
need nothing else.
A list that is written (--to hosts, adblock, dnsmasq, rpz, psl) answers as the one that was read, which is checked: what a format can't say is \
refused. An entry of a table covers its name and all names beneath it, so it becomes no line of a hosts file; in a table without results names are blocked.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let files = || options.table.iter().chain(options.merged.files());
    stdin::at_most_one(files().map(|file| ("a list", Some(&**file))))?;
    if options.format != To::Image {
        is_no_input(Some(&options.image.output), files())?;
        return write(options).map(|()| Outcome::Done);
    }
    options.image.check_output(files())?;
    let loaded = load(options, |_| {})?;
    let left_out = loaded.left_out();
    let Loaded { fib, list, .. } = loaded;
    if list.is_some() && options.build.aggregate {
        bail!(NOT_AGGREGATED);
    }
    let busy = Busy::with("building");
    let build = BuildOptions { seed: options.seed, ..options.build.options(1, 0) };
    let engine = options.image.engine.resolve::<NameDomain>(&fib.names, false)?;
    let model = NameModel::new(fib.names, options.build.aggregate);
    let compiled = tables::compile::<NameDomain>(engine, model.compiled(), &build)?;
    drop(busy);
    let (names, table) = (model.names(), compiled.table.image());
    let table = &*with_left_out(table, left_out, &options.image.output)?;
    let image = match list {
        None => {
            image_file::save(engine, table, names, &fib.labels, model.is_aggregated(), &options.image.output)?
        }
        Some(OfList { answers, .. }) => {
            let list = Resolved { names: names.clone(), answers };
            image_file::save_list(engine, table, &list, &fib.labels, &options.image.output)?
        }
    };
    let of = Names {
        names: names.len(),
        left_out,
        compiled: model.is_aggregated().then(|| compiled.table.image().entries()),
    };
    let entries = Entries { count: names.len() as u64, one: "name" };
    ImageReport::new(&options.image.output, &compiled, (&image, image.bytes()), entries, of)
        .show(options.image.json, &[])?;
    Ok(Outcome::Done)
}

/// Reads the tables. `see` gets the entries of a list.
fn load(options: &Options, see: impl FnOnce(&ListEntries)) -> Result<Loaded> {
    match &*options.merged.merge {
        [] => options.read.load_all(&options.table, see),
        sources => options.read.load_merged(sources),
    }
}

/// Writes the table for other programs.
fn write(options: &Options) -> Result<()> {
    let to = options.format.name();
    if options.image.engine != Choice::Auto {
        bail!("--engine is for images, and --to {to} writes none");
    }
    let mut given = options.build.given().to_vec();
    given.extend([("seed", options.seed.is_some()), ("json", options.image.json)]);
    refuse(&given, "is for images, and --to names another format")?;
    let mut entries = None;
    let loaded = load(options, |list| entries = Some(list.clone()))?;
    options.format.write(&loaded.fib, entries.as_ref(), output::file(Some(&options.image.output)))
}

/// The names that were compiled.
#[derive(Debug, Serialize)]
struct Names {
    names: usize,
    /// The number of compiled names, if some are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    compiled: Option<u64>,
    /// Lines that lenient reading left out.
    #[serde(skip_serializing_if = "is_none_left_out")]
    left_out: u64,
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.names, "name"))?;
        self.compiled.map_or(Ok(()), |compiled| write!(f, ", {} of them compiled", Grouped(compiled)))
    }
}
