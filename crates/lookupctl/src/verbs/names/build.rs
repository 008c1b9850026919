//! `names build`: compiles a table to an image file.

use std::ffi::OsString;
use std::fmt;

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use wirespeed::image_file::with_left_out;
use wirespeed::names::image_file;
use wirespeed::names::lists::Resolved;
use wirespeed_namelookup::{BuildOptions, NameDomain, NameModel};

use super::source::{BuildArguments, Loaded, NOT_AGGREGATED, OfList, ReadArguments};
use crate::Outcome;
use crate::busy::Busy;
use crate::made::{Entries, ImageArguments, ImageReport};
use crate::number::{Grouped, counted};
use crate::stdin;
use crate::tables;
use crate::verbs::lookup::is_none_left_out;

/// Compiles a table of names to an image file. lookup and replay open it with --image, without compiling
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input. Several lists of domains, each by an option of its own, are one list,
    /// in which the last of equal entries counts
    #[arg(long, value_name = "FILE", required = true)]
    table: Vec<OsString>,

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
  lookupctl names lookup --image names.img /com/parc/www
  lookupctl names replay --image names.img --trace requests.txt

An image holds the compiled table, the texts of its results, and all its names, also with --aggregate: lookup and replay \
need nothing else.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    options.image.check_output(&options.table)?;
    stdin::at_most_one(options.table.iter().map(|table| ("a list", Some(&**table))))?;
    let loaded = options.read.load_all(&options.table)?;
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
