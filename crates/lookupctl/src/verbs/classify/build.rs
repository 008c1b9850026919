//! `classify build`: a set of rules compiled to an image file.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use wirespeed::classify::image_file::save;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::Ipv4Tuple;

use super::actions::labelled;
use super::doubt;
use super::source::{BuildArguments, Raw, ReadArguments};
use crate::Outcome;
use crate::engine::{self, Choice};
use crate::made::{Entries, ImageReport};
use crate::number::counted;
use crate::tables;

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
    visit(raw.tuple(), Job { options, raw })?;
    Ok(Outcome::Done)
}

/// What was compiled.
#[derive(Debug, Serialize)]
struct Rules {
    tuple: &'static str,
    rules: usize,
    patterns: u64,
    /// Rules left out that could change answers: lookup says of which.
    left_out: usize,
    /// Rules that are wider than their file says: lookup says which answers that makes uncertain.
    widened: usize,
    /// What was assumed of packets, and decided something.
    assuming: Vec<String>,
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&counted(self.rules, &format!("{} rule", self.tuple)))
    }
}

struct Job<'a> {
    options: &'a Options,
    raw: Raw,
}

impl TupleVisitor for Job<'_> {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let Self { options, raw } = self;
        let beside = labelled(raw.load::<T>(&options.read)?)?;
        let rules = &beside.rules;
        let engine = options.engine.resolve::<T>(rules, false)?;
        let compiled = tables::compile::<T>(engine, rules, &options.build.options(1, options.seed))?;
        let with = (&beside.doubts, &beside.lines);
        let image = save(compiled.table.image(), rules, &beside.labels, with, &options.output)?;
        let of = Rules {
            tuple: T::NAME,
            rules: rules.len(),
            patterns: rules.entries_len(),
            left_out: doubt::lines(&beside.doubts).len(),
            widened: beside.doubts.widened().len(),
            assuming: doubt::assuming(&beside.doubts),
        };
        let (entries, remarks) = (Entries { count: rules.len() as u64, one: "rule" }, of.remarks());
        ImageReport::new(&options.output, &compiled, &image, entries, of).show(options.json, &remarks)
    }
}

impl Rules {
    /// What lookups will say.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(assumed) = doubt::assumed(&self.assuming) {
            remarks.push(format!("{assumed}: lookup repeats it"));
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "rule");
            remarks
                .push(format!("not whole, without {left_out}; lookup says which answers that could change"));
        }
        if self.widened > 0 {
            let are = if self.widened == 1 { "is" } else { "are" };
            let widened = counted(self.widened, "rule");
            remarks.push(format!(
                "{widened} {are} wider than said; lookup says which answers that makes uncertain"
            ));
        }
        remarks
    }
}
