//! `classify build`: compiles a set of rules to an image file.

use std::ffi::OsString;
use std::fmt;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use wirespeed::classify::image_file::save;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::Ipv4Tuple;
use wirespeed_commands::rules::{Raw, ReadArguments, doubt};

use super::labelled::labelled;
use super::source::BuildArguments;
use crate::Outcome;
use crate::made::{Entries, ImageArguments, ImageReport};
use crate::number::counted;
use crate::tables;

/// Compiles a set of rules to an image file. lookup and replay open it with --image, without compiling
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// The rules; - is standard input
    #[arg(long, value_name = "FILE")]
    rules: OsString,

    #[command(flatten)]
    image: ImageArguments<Ipv4Tuple>,

    /// Seed of engines that hash, for images that are equal byte for byte. The default is random, so that
    /// nobody who chooses rules can know it
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

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

An image holds the compiled set, its rules, the names of their actions, the assumptions, and the rules that were left out: lookup and replay \
need nothing else.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    options.image.check_output([&options.rules])?;
    let raw = options.read.open(&options.rules)?;
    visit(raw.tuple(), Job { options, raw })?;
    Ok(Outcome::Done)
}

/// The rules that were compiled.
#[derive(Debug, Serialize)]
struct Rules {
    tuple: &'static str,
    rules: usize,
    patterns: u64,
    /// Rules left out that could change answers. lookup names these answers.
    left_out: usize,
    /// Rules that are wider than their file says. lookup names the answers that are uncertain.
    widened: usize,
    /// Assumptions about packets that decided a rule.
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
        let engine = options.image.engine.resolve::<T>(rules, false)?;
        let compiled = tables::compile::<T>(engine, rules, &options.build.options(1, options.seed))?;
        let with = (&beside.doubts, &beside.lines);
        let image = save(compiled.table.image(), rules, &beside.labels, with, &options.image.output)?;
        let of = Rules {
            tuple: T::NAME,
            rules: rules.len(),
            patterns: rules.entries_len(),
            left_out: doubt::lines(&beside.doubts).len(),
            widened: beside.doubts.widened().len(),
            assuming: doubt::assuming(&beside.doubts),
        };
        let (entries, remarks) = (Entries { count: rules.len() as u64, one: "rule" }, of.remarks());
        ImageReport::new(&options.image.output, &compiled, (&image, image.bytes()), entries, of)
            .show(options.image.json, &remarks)
    }
}

impl Rules {
    /// Remarks on the answers of lookups.
    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(assumed) = doubt::assumed(&self.assuming) {
            remarks.push(format!("{assumed}: lookup repeats it"));
        }
        if self.left_out > 0 {
            let left_out = counted(self.left_out, "rule");
            remarks
                .push(format!("not whole, without {left_out}; lookup says which answers they could change"));
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
