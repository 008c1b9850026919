//! `classify info`: the content of sets of rules, and the tables that engines make of them.

mod census;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;

use anyhow::Result;
use census::Census;
use clap::Args;
use serde::Serialize;
use wirespeed::classify::Facts;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::{AnyTable, RuleTuple};
use wirespeed_classify::{Ipv4Tuple, read};
use wirespeed_commands::rules::{
    Known, Loaded, Raw, ReadArguments,
    doubt::{assumed, assuming, not_whole, widened},
    of_image,
};

use super::source::BuildArguments;
use crate::Outcome;
use crate::made::{EngineReport, Entries, InfoArguments, More};
use crate::number::{Grouped, counted_u64, share};
use crate::output::Output;
use crate::refuse::{IMAGE, refuse};
use crate::source::is_image;
use crate::stdin::at_most_one;

/// Shows the content of sets of rules: counts, fields, ranges, classes, rules that could not be expressed,
/// and memory, load and build time of engines
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Options {
    /// Sets of rules, or images (see build); - is standard input
    #[arg(value_name = "RULES|IMG", required = true)]
    files: Vec<OsString>,

    #[command(flatten)]
    info: InfoArguments<Ipv4Tuple>,

    #[command(flatten)]
    build: BuildArguments,
    #[command(flatten)]
    read: ReadArguments,
}

const EXAMPLES: &str = "\
Examples:
  lookupctl classify info acl.rules
  iptables-save | lookupctl classify info -
  nft -j list ruleset | lookupctl classify info - --chain forward
  lookupctl classify info flows.txt --engine bloom
  lookupctl classify info acl.img --sections
  lookupctl classify info acl.rules --json | jq '.engines[] | {engine, bytes_per_rule, loads}'

A rule with ranges stands for a pattern (a value under a mask) for each combination of the prefixes that its ranges are made of. The \
patterns of one mask are a class (GSwitch paper, section 4.2): tuple and Bloom search have a table for each.
Expected false positives are the share of tuples that pass the filter of a class without matching it, by the formula \
(1 - e^(-kn/m))^k with k = 2 (section 4.3), on average over the classes.";

pub(super) fn run(options: &Options) -> Result<Outcome> {
    let mut inputs: Vec<_> = options.files.iter().map(|file| ("a set of rules", Some(&**file))).collect();
    inputs.push(("the sets that they name", options.read.ipset.as_deref()));
    at_most_one(inputs)?;
    if options.files.iter().all(|file| is_image(file)) {
        let lenient = ("lenient", options.read.lenient);
        refuse(&[options.build.given(), lenient], IMAGE)?;
    }
    let mut output = Output::new();
    for (at, file) in options.files.iter().enumerate() {
        if at > 0 && !options.info.json {
            output.line("")?;
        }
        let path = PathBuf::from(file);
        if is_image(file) {
            options.read.refuse_beside("an image, which holds what was assumed")?;
            let image = RuleImageFile::open(&path)?;
            visit(image.tuple(), OfImage { options, image, output: &mut output })?;
        } else {
            let raw = options.read.open(file)?;
            visit(raw.tuple(), OfRules { options, raw, output: &mut output })?;
        }
    }
    output.finish()?;
    Ok(Outcome::Done)
}

/// A message for a set of which rules were left out.
const NOT_WHOLE: &str = "  not whole: rules were left out that could change answers; the other verbs refuse it, unless --assume states the \
                         missing facts or --lenient goes on without these rules";

/// The report of a set.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    format: String,
    tuple: &'static str,
    records: u64,
    /// Rules of other chains and tables.
    elsewhere: u64,
    /// Rules and blocks of addresses of the other family.
    other_family: u64,
    /// Rules that are wider than their file says. Answers by these rules are uncertain.
    widened: u64,
    /// Whether no rule was left out that could change an answer.
    whole: bool,
    /// Assumptions about packets that decided a rule.
    assuming: Vec<String>,
    /// Rules of the file that can't be expressed.
    left_out: Vec<LeftOut>,
    #[serde(flatten)]
    census: Option<Census>,
    engines: Vec<EngineReport<OfTable>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct LeftOut {
    line: u64,
    /// The number of the rule or element in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<NonZeroU64>,
    why: String,
    text: String,
}

impl LeftOut {
    fn of(one: &read::LeftOut) -> Self {
        let read::Place { line, entry } = one.place;
        Self { line, entry, why: one.why.clone(), text: one.text.clone() }
    }
}

/// Further facts about a table of rules.
#[derive(Debug, Serialize)]
struct OfTable {
    /// The load of its arrays.
    loads: Vec<Load>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_false_positives: Option<f64>,
}

impl OfTable {
    fn new<T: RuleTuple>(table: &dyn AnyTable<T>) -> Self {
        let load = |load: wirespeed_classify::Load| Load {
            what: load.what,
            places: load.places,
            taken: load.taken,
            load: share(load.taken, load.places),
        };
        Self {
            loads: table.loads().into_iter().map(load).collect(),
            expected_false_positives: table.expected_false_positives(),
        }
    }
}

impl More for OfTable {
    fn line(&self) -> Option<String> {
        let load =
            |load: &Load| format!("{:.1} % of {} {}", 100.0 * load.load, Grouped(load.places), load.what);
        let loads: Vec<_> = self.loads.iter().map(load).collect();
        (!loads.is_empty()).then(|| format!("taken: {}", loads.join(", ")))
    }
}

#[derive(Debug, Serialize)]
struct Load {
    what: &'static str,
    places: u64,
    taken: u64,
    load: f64,
}

struct OfRules<'a> {
    options: &'a Options,
    raw: Raw,
    output: &'a mut Output,
}

impl TupleVisitor for OfRules<'_> {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let Self { options, raw, output } = self;
        let loaded = raw.parse::<T>(&options.read)?;
        let rules = &loaded.file.rules;
        if !options.info.json {
            output.line(&loaded)?;
            if !loaded.is_whole() {
                output.line(NOT_WHOLE)?;
            }
            output.flush()?;
        }
        let census = Census::of(rules);
        if !options.info.json {
            census.print(output)?;
            output.flush()?;
        }
        let mut report = Report::of_rules(&loaded, census);
        let build = options.build.options(1, None);
        for engine in options.info.engine.engines::<T>(rules)? {
            let (live, entries) =
                ((rules.clone(), Facts::None), Entries { count: rules.len() as u64, one: "rule" });
            let engine = EngineReport::of(engine, rules, live, &build, entries, OfTable::new::<T>)?;
            options.info.print(&engine, output)?;
            report.engines.push(engine);
        }
        if options.info.json { output.json(&report) } else { Ok(()) }
    }
}

struct OfImage<'a> {
    options: &'a Options,
    image: RuleImageFile,
    output: &'a mut Output,
}

impl TupleVisitor for OfImage<'_> {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let Self { options, image, output } = self;
        let (file, count) = (image.path().display().to_string(), image.len());
        let Known { rules, doubts, .. } = of_image::<T>(&image)?;
        let engine = image.engine();
        let (table, entries) = (image.into_table::<T>()?, Entries { count, one: "rule" });
        let engine = EngineReport::of_table(engine, &*table, None, entries, OfTable::new::<T>);
        let census = rules.map(|rules| Census::of(&rules));
        if options.info.json {
            let (format, tuple) = ("image".to_owned(), T::NAME);
            let left_out = doubts.uncertain.iter().map(|one| LeftOut::of(&one.why));
            let left_out: BTreeSet<_> = left_out.collect();
            let engines = vec![engine];
            return output.json(&Report {
                file,
                format,
                tuple,
                records: count,
                elsewhere: 0,
                other_family: 0,
                widened: doubts.widened().len() as u64,
                whole: doubts.uncertain.is_empty(),
                assuming: assuming(&doubts),
                left_out: left_out.into_iter().collect(),
                census,
                engines,
            });
        }
        output.line(format_args!(
            "{file}: image of {} for {} tuples",
            counted_u64(count, "rule"),
            T::NAME
        ))?;
        if let Some(assumed) = assumed(&assuming(&doubts)) {
            output.line(format_args!("  {assumed}"))?;
        }
        for told in [not_whole(&doubts), widened(&doubts)].iter().flatten() {
            output.line(format_args!("  {told}"))?;
        }
        census.iter().try_for_each(|census| census.print(output))?;
        engine.print(options.info.sections, output)
    }
}

impl Report {
    /// The report without the engines.
    fn of_rules<T: RuleTuple>(loaded: &Loaded<T>, census: Census) -> Self {
        let read = &loaded.report;
        let left_out = read.left_out.iter();
        Self {
            file: read.name.clone(),
            format: read.format.to_string(),
            tuple: T::NAME,
            records: read.records,
            elsewhere: read.elsewhere,
            other_family: read.other_family,
            widened: read.widened,
            whole: loaded.is_whole(),
            assuming: assuming(&loaded.file.doubts),
            left_out: left_out.map(LeftOut::of).collect(),
            census: Some(census),
            engines: Vec::new(),
        }
    }
}
