//! `build`: compiles a table to an image file.

use std::ffi::OsString;
use std::fmt;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::{Addresses, Compiled};
use wirespeed::image_file::{self, NumberedRoutes};
use wirespeed_fib::{Family, Fib, Rib, V4, V6};
use wirespeed_image::Image;

use crate::Outcome;
use crate::busy::Busy;
use crate::engine::BothFamilies;
use crate::family::{self, number_of};
use crate::made::{Entries, ImageArguments, ImageReport};
use crate::merged::{self, MergeSource};
use crate::number::counted;
use crate::output::is_no_input;
use crate::source::{FamilyArgument, ReadArguments, TableArguments};
use crate::tables;

/// Compiles a table to an image file. lookup and replay open it with --image, without compiling
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input, builtin:bogons the special-purpose prefixes of IANA
    #[arg(long, value_name = "FILE", required_unless_present = "merge", conflicts_with = "merge")]
    fib: Option<OsString>,

    /// Sources to merge to one table, each by an option of its own, the first one that counts most. A field
    /// that a prefix lacks comes from the shorter prefixes around it. NAME is the field of values without
    /// names and of lists; COLUMN,... are the columns to take
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE", value_parser = MergeSource::parse)]
    merge: Vec<MergeSource>,

    #[command(flatten)]
    image: ImageArguments<BothFamilies>,

    /// Compile a table whose lookups give the matched prefix, too, for IpReader::lookup_prefix of the
    /// library. It is larger and slower, and lookupctl looks it up on the CPU only
    #[arg(long)]
    prefix_lookups: bool,

    #[command(flatten)]
    family: FamilyArgument,
    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl build --fib rib.mrt.bz2 -o fib.img
  lookupctl build --fib fib.txt --family 6 --engine sail-l -o six.img
  lookupctl build --fib fib.txt --prefix-lookups -o prefixes.img
  lookupctl build --merge own=networks.csv --merge country:country.iso_code=geo.mmdb --merge bogon:name=builtin:bogons -o all.img
  lookupctl replay --image fib.img --trace capture.pcap
  lookupctl lookup --image fib.img 192.0.2.1

An image holds the compiled table of each family that has prefixes, or of --family, with its prefixes and the texts \
of its next hops: lookup and replay need nothing else. For a table of both families build reports two tables in one file.";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let inputs = options.fib.iter().chain(options.merge.iter().map(MergeSource::file));
    is_no_input(Some(&options.image.output), inputs)?;
    let fib = match &options.fib {
        Some(fib) => options.read.load(fib)?,
        None => merged::load(&options.read, &options.merge)?,
    };
    let busy = Busy::with("building");
    let reports = match family::wanted(options.family.wanted(), &fib) {
        Some(Family::V4) => vec![build::<V4>(options, &fib)?],
        Some(Family::V6) => vec![build::<V6>(options, &fib)?],
        None => build_both(options, &fib)?,
    };
    drop(busy);
    reports.iter().try_for_each(|report| report.show(options.image.json, &[]))?;
    Ok(Outcome::Done)
}

fn build<A: Addresses>(options: &Options, fib: &Fib) -> Result<ImageReport<Routes>> {
    let built = Built::<A>::of(options, fib)?;
    let image = image_file::save(built.image(), built.routes(), &fib.next_hops, &options.image.output)?;
    Ok(built.report(options, (&image, image.bytes())))
}

fn build_both(options: &Options, fib: &Fib) -> Result<Vec<ImageReport<Routes>>> {
    let hint = "the table has both families, and --family takes one";
    let v4 = Built::<V4>::of(options, fib).context(hint)?;
    let v6 = Built::<V6>::of(options, fib).context(hint)?;
    let (four, six) = ((v4.image(), v4.routes()), (v6.image(), v6.routes()));
    let ([four, six], bytes) = image_file::save_both(four, six, &fib.next_hops, &options.image.output)?;
    Ok(vec![v4.report(options, (&four, bytes)), v6.report(options, (&six, bytes))])
}

/// A compiled table, with the routes that it was compiled from.
struct Built<'f, A: Addresses> {
    compiled: Compiled<A>,
    rib: &'f Rib<A>,
    /// The routes of a table for prefix lookups.
    numbered: Option<NumberedRoutes<A>>,
}

impl<'f, A: Addresses> Built<'f, A> {
    fn of(options: &Options, fib: &'f Fib) -> Result<Self> {
        let (build, rib) = (options.table.build_options(1), A::rib(fib));
        let numbered = options.prefix_lookups.then(|| NumberedRoutes::new(rib)).transpose()?;
        let source = numbered.as_ref().map_or(rib, NumberedRoutes::source);
        let engine = options.image.engine.resolve_with::<A>(source, false, &build.strides)?;
        let compiled = tables::compile::<A>(engine, source, &build)?;
        Ok(Self { compiled, rib, numbered })
    }

    fn image(&self) -> &Image {
        self.compiled.table.image()
    }

    fn routes(&self) -> wirespeed::Routes<'_, A> {
        self.numbered.as_ref().map_or_else(|| self.rib.into(), NumberedRoutes::routes)
    }

    fn report(&self, options: &Options, image: (&Image, u64)) -> ImageReport<Routes> {
        let (prefixes, prefix_lookups) = (self.rib.len(), options.prefix_lookups);
        let routes = Routes { family: number_of(A::FAMILY), prefixes, prefix_lookups };
        let entries = Entries { count: prefixes as u64, one: "prefix" };
        ImageReport::new(&options.image.output, &self.compiled, image, entries, routes)
    }
}

/// The routes that were compiled.
#[derive(Debug, Serialize)]
struct Routes {
    family: u8,
    prefixes: usize,
    prefix_lookups: bool,
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_prefixes = if self.prefix_lookups { ", for prefix lookups" } else { "" };
        write!(f, "IPv{}, {}{of_prefixes}", self.family, counted(self.prefixes, "prefix"))
    }
}
