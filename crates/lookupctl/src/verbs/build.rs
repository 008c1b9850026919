//! `build`: a table compiled to an image file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::{Addresses, OnDevice, Visitor};
use wirespeed::image_file;
use wirespeed_fib::{Address, BuildOptions, Engine, Family, Fib, NextHops, Rib, V4, V6};
use wirespeed_image::Table;

use crate::Outcome;
use crate::busy::Busy;
use crate::engine::{self, Choice};
use crate::family::{self, number_of};
use crate::number::{Bytes, counted, share};
use crate::output::Output;
use crate::section::{Section, sections};
use crate::source::{FamilyArgument, ReadArguments, TableArguments};

/// Compiles a table to an image file, which `lookup` and `replay` take with --image and start at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    fib: OsString,

    /// File that the image goes to. One that is there is replaced, whole or not at all
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

An image holds the compiled table of one family, what its next hops are called, and its prefixes: lookup and replay \
need nothing else.";

pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let fib = options.read.load(&options.fib)?;
    let busy = Busy::with("building");
    let report = match family::choose(options.family.wanted(), &fib) {
        Family::V4 => build::<V4>(options, &fib)?,
        Family::V6 => build::<V6>(options, &fib)?,
    };
    drop(busy);
    let mut output = Output::new();
    if options.json {
        output.json(&report)?;
    } else {
        report.print(&mut output)?;
    }
    output.finish()?;
    Ok(Outcome::Done)
}

fn build<A: Addresses>(options: &Options, fib: &Fib) -> Result<Report> {
    let build = options.table.build_options(1);
    let rib = A::rib(fib);
    let strides = build.strides.clone();
    options.engine.visit(
        rib,
        &strides,
        Compile { rib, next_hops: &fib.next_hops, build, to: &options.output },
    )?
}

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    image: String,
    engine: &'static str,
    family: u8,
    prefixes: usize,
    /// Bytes of the file: the compiled table and what is kept beside it.
    file_bytes: u64,
    /// Bytes of the compiled table.
    bytes: u64,
    bytes_per_prefix: f64,
    build_seconds: f64,
    sections: Vec<Section>,
}

struct Compile<'a, A: Address> {
    rib: &'a Rib<A>,
    next_hops: &'a NextHops,
    build: BuildOptions,
    to: &'a Path,
}

impl<A: Addresses> Visitor<A> for Compile<'_, A> {
    type Output = Result<Report>;

    fn visit<E: Engine<A, Table: OnDevice>>(self) -> Result<Report> {
        let began = Instant::now();
        let (_, table) =
            E::build(self.rib, &self.build).with_context(|| format!("{} can't be built", E::NAME))?;
        let build_seconds = began.elapsed().as_secs_f64();
        let bytes = table.image().bytes();
        let image = image_file::save(&table, self.rib, self.next_hops, self.to)?;
        Ok(Report {
            image: self.to.display().to_string(),
            engine: E::NAME,
            family: number_of(A::FAMILY),
            prefixes: self.rib.len(),
            file_bytes: image.bytes(),
            bytes,
            bytes_per_prefix: share(bytes, self.rib.len() as u64),
            build_seconds,
            sections: sections(&image),
        })
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { image, engine, family, prefixes, bytes, bytes_per_prefix, build_seconds, .. } = self;
        output.line(format_args!(
            "{image}: {engine}, IPv{family}, {}, {} ({bytes_per_prefix:.1} B a prefix), built in \
             {build_seconds:.3} s; a file of {}",
            counted(*prefixes, "prefix"),
            Bytes(*bytes),
            Bytes(self.file_bytes),
        ))?;
        self.sections.iter().try_for_each(|section| output.line(format_args!("  {section}")))
    }
}
