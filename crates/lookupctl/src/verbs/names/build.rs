//! `names build`: a table compiled to an image file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use wirespeed::engine::{OnDevice, Visitor, visit};
use wirespeed::names::image_file;
use wirespeed::names::read::NameFib;
use wirespeed_image::Table;
use wirespeed_namelookup::{Aggregated, BuildOptions, Engine, NameDomain};

use super::source::{BuildArguments, ReadArguments};
use crate::Outcome;
use crate::busy::Busy;
use crate::engine::{self, Choice};
use crate::number::{Bytes, Grouped, counted, share};
use crate::output::Output;
use crate::section::{Section, sections};

/// Compiles a table of names to an image file, which lookup and replay take with --image and start at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The table; - is standard input
    #[arg(long, value_name = "FILE")]
    table: OsString,

    /// File that the image goes to. One that is there is replaced, whole or not at all
    #[arg(short, long, value_name = "IMG")]
    output: PathBuf,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice_of::<NameDomain>())]
    engine: Choice,

    /// Seed of engines that hash, for images that are equal byte for byte. The default is a random one, which
    /// nobody who chooses names can know
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// One JSON object
    #[arg(long)]
    json: bool,

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
  lookupctl names lookup --image names.img /com/parc/www
  lookupctl names replay --image names.img --trace requests.txt

An image holds the compiled table, what its results are called, and its names, all of them with --aggregate, too: lookup and replay \
need nothing else.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let fib = options.read.load(&options.table)?;
    let busy = Busy::with("building");
    let build = BuildOptions { seed: options.seed, ..options.build.options(1, 0) };
    let engine = options.engine.resolve::<NameDomain>(&fib.names, false)?;
    let report = visit(
        engine,
        Compile { fib: &fib, build, is_aggregated: options.build.aggregate, to: &options.output },
    )??;
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

/// What was written.
#[derive(Debug, Serialize)]
struct Report {
    image: String,
    engine: &'static str,
    names: usize,
    /// How many of them are compiled, where not all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    compiled: Option<u64>,
    /// Bytes of the file: the compiled table and what is kept beside it.
    file_bytes: u64,
    /// Bytes of the compiled table.
    bytes: u64,
    bytes_per_name: f64,
    build_seconds: f64,
    sections: Vec<Section>,
}

struct Compile<'a> {
    fib: &'a NameFib,
    build: BuildOptions,
    is_aggregated: bool,
    to: &'a Path,
}

impl Visitor<NameDomain> for Compile<'_> {
    type Output = Result<Report>;

    fn visit<E: Engine<NameDomain, Table: OnDevice>>(self) -> Result<Report> {
        let (began, names) = (Instant::now(), &self.fib.names);
        let aggregated = self.is_aggregated.then(|| Aggregated::new(names.clone()));
        let compiled = aggregated.as_ref().map_or(names, Aggregated::reduced);
        let (_, table) =
            E::build(compiled, &self.build).with_context(|| format!("{} can't be built", E::NAME))?;
        let build_seconds = began.elapsed().as_secs_f64();
        let bytes = table.image().bytes();
        let image = image_file::save::<E>(&table, names, &self.fib.labels, aggregated.is_some(), self.to)?;
        Ok(Report {
            image: self.to.display().to_string(),
            engine: E::NAME,
            names: names.len(),
            compiled: aggregated.is_some().then(|| table.image().entries()),
            file_bytes: image.bytes(),
            bytes,
            bytes_per_name: share(bytes, names.len() as u64),
            build_seconds,
            sections: sections(&image),
        })
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { image, engine, names, bytes, bytes_per_name, build_seconds, .. } = self;
        output.line(format_args!(
            "{image}: {engine}, {}{}, {} ({bytes_per_name:.1} B a name), built in {build_seconds:.3} s; a file of {}",
            counted(*names, "name"),
            self.compiled.map_or_else(String::new, |compiled| format!(", {} of them compiled", Grouped(compiled))),
            Bytes(*bytes),
            Bytes(self.file_bytes),
        ))?;
        self.sections.iter().try_for_each(|section| output.line(format_args!("  {section}")))
    }
}
