//! `classify build`: a set of rules compiled to an image file.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::Ipv4Tuple;

use super::actions::labelled;
use super::compiled::{Compiled, cannot_build};
use super::doubt;
use super::source::{BuildArguments, Raw, ReadArguments};
use crate::Outcome;
use crate::engine::{self, Choice};
use crate::number::{Bytes, counted, share};
use crate::output::Output;
use crate::section::{Section, sections};

/// Compiles a set of rules to an image file, which lookup and replay take with --image and start at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The rules; - is standard input
    #[arg(long, value_name = "FILE")]
    rules: OsString,

    /// File that the image goes to. One that is there is replaced, whole or not at all
    #[arg(short, long, value_name = "IMG")]
    output: PathBuf,

    /// The engine
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = engine::choice_of::<Ipv4Tuple>())]
    engine: Choice,

    /// Seed of engines that hash, for images that are equal byte for byte. The default is a random one, which
    /// nobody who chooses rules can know
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
  lookupctl classify build --rules acl.rules -o acl.img
  lookupctl classify build --rules flows.txt --engine bloom -o flows.img
  lookupctl classify lookup --image acl.img src=10.0.0.1 dst=192.0.2.7 tcp
  lookupctl classify replay --image acl.img --trace acl.trace

An image holds the compiled set, its rules, what their actions are called, what was assumed, and what was left out: lookup and replay \
need nothing else.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let raw = options.read.open(&options.rules)?;
    let report = visit(raw.tuple(), Job { options, raw })?;
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
    tuple: &'static str,
    rules: usize,
    patterns: u64,
    /// Bytes of the file: the compiled table and what is kept beside it.
    file_bytes: u64,
    /// Bytes of the compiled table.
    bytes: u64,
    bytes_per_rule: f64,
    build_seconds: f64,
    /// Rules left out that could change answers: lookup says of which.
    left_out: usize,
    /// Rules that are wider than their file says: lookup says which answers that makes uncertain.
    widened: usize,
    /// What was assumed of packets, and decided something.
    assuming: Vec<String>,
    sections: Vec<Section>,
}

struct Job<'a> {
    options: &'a Options,
    raw: Raw,
}

impl TupleVisitor for Job<'_> {
    type Output = Result<Report>;

    fn visit<T: RuleTuple>(self) -> Result<Report> {
        let Self { options, raw } = self;
        let beside = labelled(raw.load::<T>(&options.read)?)?;
        let rules = &beside.rules;
        let engine = options.engine.resolve::<T>(rules, false)?;
        let build = options.build.options(1, options.seed);
        let compiled = Compiled::build(engine, rules, &build)?.with_context(|| cannot_build(engine))?;
        let bytes = compiled.table.image().bytes();
        let image = compiled.table.save(&beside, &options.output)?;
        Ok(Report {
            image: options.output.display().to_string(),
            engine: engine.as_str(),
            tuple: T::NAME,
            rules: rules.len(),
            patterns: rules.entries_len(),
            file_bytes: image.bytes(),
            bytes,
            bytes_per_rule: share(bytes, rules.len() as u64),
            build_seconds: compiled.build_time.as_secs_f64(),
            left_out: doubt::lines(&beside.doubts).len(),
            widened: beside.doubts.widened().len(),
            assuming: doubt::assuming(&beside.doubts),
            sections: sections(&image),
        })
    }
}

impl Report {
    fn print(&self, output: &mut Output) -> Result<()> {
        let Self { image, engine, tuple, rules, bytes, bytes_per_rule, build_seconds, .. } = self;
        output.line(format_args!(
            "{image}: {engine}, {}, {} ({bytes_per_rule:.1} B a rule), built in {build_seconds:.3} s; a file of {}",
            counted(*rules, &format!("{tuple} rule")),
            Bytes(*bytes),
            Bytes(self.file_bytes),
        ))?;
        if let Some(assumed) = doubt::assumed(&self.assuming) {
            output.line(format_args!("  {assumed}: lookup repeats it"))?;
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "rule");
            output.line(format_args!(
                "  not whole, without {left_out}; lookup says which answers that could change"
            ))?;
        }
        if self.widened > 0 {
            let are = if self.widened == 1 { "is" } else { "are" };
            let widened = counted(self.widened, "rule");
            output.line(format_args!(
                "  {widened} {are} wider than said; lookup says which answers that makes uncertain"
            ))?;
        }
        self.sections.iter().try_for_each(|section| output.line(format_args!("  {section}")))
    }
}
