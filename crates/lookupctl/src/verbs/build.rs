//! `build`: compiles a table to an image file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::{Addresses, Compiled};
use wirespeed::image_file;
use wirespeed_fib::{Family, Fib, Rib, V4, V6};
use wirespeed_image::Image;

use crate::Outcome;
use crate::busy::Busy;
use crate::engine::{self, Choice};
use crate::family::{self, number_of};
use crate::made::{Entries, ImageReport};
use crate::number::counted;
use crate::source::{FamilyArgument, ReadArguments, TableArguments};
use crate::tables;

/// Compiles a table to an image file. lookup and replay open it with --image, without compiling
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    fib: OsString,

    /// Output file. An existing file is replaced completely or not at all
    #[arg(short, long, value_name = "IMG")]
    output: PathBuf,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice())]
    engine: Choice,

    /// One JSON object
    #[arg(long)]
    json: bool,

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
  lookupctl replay --image fib.img --trace capture.pcap
  lookupctl lookup --image fib.img 192.0.2.1

An image holds the compiled table of each family that has prefixes, or of --family, with its prefixes and the texts \
of its next hops: lookup and replay need nothing else. For a table of both families build reports two tables in one file.";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let fib = options.read.load(&options.fib)?;
    let busy = Busy::with("building");
    let reports = match family::wanted(options.family.wanted(), &fib) {
        Some(Family::V4) => vec![build::<V4>(options, &fib)?],
        Some(Family::V6) => vec![build::<V6>(options, &fib)?],
        None => build_both(options, &fib)?,
    };
    drop(busy);
    reports.iter().try_for_each(|report| report.show(options.json, &[]))?;
    Ok(Outcome::Done)
}

fn build<A: Addresses>(options: &Options, fib: &Fib) -> Result<ImageReport<Routes>> {
    let (compiled, rib) = (compile::<A>(options, fib)?, A::rib(fib));
    let image = image_file::save(compiled.table.image(), rib, &fib.next_hops, &options.output)?;
    Ok(report(options, &compiled, rib, (&image, image.bytes())))
}

fn build_both(options: &Options, fib: &Fib) -> Result<Vec<ImageReport<Routes>>> {
    let hint = "the table has both families, and --family takes one";
    let (v4, v6) = (compile::<V4>(options, fib).context(hint)?, compile::<V6>(options, fib).context(hint)?);
    let (four, six) = ((v4.table.image(), &fib.v4), (v6.table.image(), &fib.v6));
    let ([four, six], bytes) = image_file::save_both(four, six, &fib.next_hops, &options.output)?;
    let four = report(options, &v4, &fib.v4, (&four, bytes));
    Ok(vec![four, report(options, &v6, &fib.v6, (&six, bytes))])
}

fn compile<A: Addresses>(options: &Options, fib: &Fib) -> Result<Compiled<A>> {
    let (build, rib) = (options.table.build_options(1), A::rib(fib));
    let engine = options.engine.resolve_with::<A>(rib, false, &build.strides)?;
    tables::compile::<A>(engine, rib, &build)
}

fn report<A: Addresses>(
    options: &Options,
    compiled: &Compiled<A>,
    rib: &Rib<A>,
    image: (&Image, u64),
) -> ImageReport<Routes> {
    let routes = Routes { family: number_of(A::FAMILY), prefixes: rib.len() };
    let entries = Entries { count: rib.len() as u64, one: "prefix" };
    ImageReport::new(&options.output, compiled, image, entries, routes)
}

/// The routes that were compiled.
#[derive(Debug, Serialize)]
struct Routes {
    family: u8,
    prefixes: usize,
}

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IPv{}, {}", self.family, counted(self.prefixes, "prefix"))
    }
}
