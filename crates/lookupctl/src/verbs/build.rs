//! `build`: compiles a table to an image file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use wirespeed::engine::Addresses;
use wirespeed::image_file;
use wirespeed_fib::{Family, Fib, V4, V6};

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

An image holds the compiled table of one family, its prefixes, and the texts of its next hops: lookup and replay \
need nothing else.";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let fib = options.read.load(&options.fib)?;
    let busy = Busy::with("building");
    let report = match family::choose(options.family.wanted(), &fib) {
        Family::V4 => build::<V4>(options, &fib)?,
        Family::V6 => build::<V6>(options, &fib)?,
    };
    drop(busy);
    report.show(options.json, &[])?;
    Ok(Outcome::Done)
}

fn build<A: Addresses>(options: &Options, fib: &Fib) -> Result<ImageReport<Routes>> {
    let (build, rib) = (options.table.build_options(1), A::rib(fib));
    let engine = options.engine.resolve_with::<A>(rib, false, &build.strides)?;
    let compiled = tables::compile::<A>(engine, rib, &build)?;
    let image = image_file::save(compiled.table.image(), rib, &fib.next_hops, &options.output)?;
    let routes = Routes { family: number_of(A::FAMILY), prefixes: rib.len() };
    let entries = Entries { count: rib.len() as u64, one: "prefix" };
    Ok(ImageReport::new(&options.output, &compiled, &image, entries, routes))
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
