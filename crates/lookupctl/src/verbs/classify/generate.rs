//! `classify gen`: generates sets of rules, traces and updates from a seed.

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use wirespeed::classify::TupleName;
use wirespeed::classify::tuple_name::{TupleVisitor, visit};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::RuleFormat;
use wirespeed_classify::write::{WriteError, write_classbench, write_rules, write_trace, write_updates};
use wirespeed_classify::{RuleUpdate, generate};
use wirespeed_commands::rules::{ReadArguments, tuple_parser};
use wirespeed_fib::synth::rng::Rng;

use super::set::{MadeArguments, Origin, RULES, SetArguments};
use super::trace::Kind;

use crate::Outcome;
use crate::memory::check_room;
use crate::number::parse_positive;
use crate::verbs::generate::Common;

/// Generates sets of rules, traces and updates; equal options give equal data on every machine
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum What {
    Rules(RulesOptions),
    Trace(TraceOptions),
    Updates(UpdatesOptions),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl classify gen rules --set fw --count 1k > fw.rules
  lookupctl classify gen rules --set fw --tuple ipv6 --to classbench -o fw6.rules
  lookupctl classify gen rules --set classes --count 16384 --classes 64 --full 8 -o flows.rules
  lookupctl classify gen trace --rules fw.rules --kind flows:20 -o fw.trace
  lookupctl classify gen trace --set classes --set-count 16384 --classes 64 --matching 8 -o flows.trace
  lookupctl classify gen updates --rules fw.rules --count 100k > updates.txt

Without --rules, traces and updates are for the set that gen rules makes with the same options.";

/// A set of rules in the style of ClassBench or of the GSwitch paper
#[derive(Debug, Args)]
pub(super) struct RulesOptions {
    /// Number of rules
    #[arg(long, alias = "size", value_name = "N", default_value = RULES, value_parser = parse_positive)]
    count: usize,

    #[command(flatten)]
    made: MadeArguments,

    /// Fields that the rules test: ipv4 and ipv6 are 5-tuples, openflow has 12 fields. The default is ipv4,
    /// with --set classes openflow
    #[arg(long, value_name = "TUPLE", value_parser = tuple_parser())]
    tuple: Option<TupleName>,

    /// plain: rules as text, with priorities; classbench: filters, of which the first match wins
    #[arg(long, value_name = "FORMAT", default_value = "plain", value_parser = to_parser())]
    to: RuleFormat,

    #[command(flatten)]
    common: Common,
}

fn to_parser() -> impl TypedValueParser<Value = RuleFormat> {
    PossibleValuesParser::new([RuleFormat::Plain, RuleFormat::ClassBench].map(RuleFormat::name))
        .try_map(|name| name.parse::<RuleFormat>())
}

/// Tuples to look up in a set
#[derive(Debug, Args)]
pub(super) struct TraceOptions {
    /// rules (each tuple of a rule at random), flows:N (like rules, each tuple N times in a row on average)
    /// or random (anything)
    #[arg(long, value_name = "KIND", default_value = "rules")]
    kind: Kind,

    /// Number of tuples
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    /// Shuffle it, so that packets of a flow no longer follow each other
    #[arg(long)]
    shuffle: bool,

    #[command(flatten)]
    rules: SetArguments,
    #[command(flatten)]
    read: ReadArguments,
    #[command(flatten)]
    common: Common,
}

/// Updates of a set: a quarter each of new rules, removed rules, rules that come back, and changed rules
#[derive(Debug, Args)]
pub(super) struct UpdatesOptions {
    /// Number of updates
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    #[command(flatten)]
    rules: SetArguments,
    #[command(flatten)]
    read: ReadArguments,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(what: &What) -> Result<Outcome> {
    match what {
        What::Rules(options) => visit(options.made.tuple(options.tuple), options),
        What::Trace(options) => {
            options.common.over_no_input(&options.rules.rules)?;
            let origin = options.rules.open(&options.read)?;
            visit(origin.tuple(), Of(options, origin))
        }
        What::Updates(options) => {
            options.common.over_no_input(&options.rules.rules)?;
            let origin = options.rules.open(&options.read)?;
            visit(origin.tuple(), Of(options, origin))
        }
    }?;
    Ok(Outcome::Done)
}

impl TupleVisitor for &RulesOptions {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let rules = self.made.make::<T>(self.count, self.common.seed())?.file.rules;
        self.common.write(|to| match self.to {
            RuleFormat::ClassBench => written(write_classbench(&rules, to)),
            _ => written(write_rules(&rules, to)),
        })
    }
}

/// Converts the result of writing rules. An error of the operating system is kept, so that a closed pipe is
/// recognised.
fn written(written: Result<(), WriteError>) -> Result<()> {
    written.map_err(|error| match error {
        WriteError::Io(error) => error.into(),
        error => error.into(),
    })
}

/// A job for a set.
struct Of<'a, O>(&'a O, Origin<'a>);

impl TupleVisitor for Of<'_, TraceOptions> {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let Self(options, origin) = self;
        let seed = options.common.seed();
        let set = origin.load::<T>(&options.read, seed)?;
        let mut tuples = options.kind.make(&set, options.count, seed)?;
        if options.shuffle {
            Rng::new(seed).shuffle(&mut tuples);
        }
        options.common.write(|to| Ok(write_trace(&tuples, to)?))
    }
}

impl TupleVisitor for Of<'_, UpdatesOptions> {
    type Output = Result<()>;

    fn visit<T: RuleTuple>(self) -> Result<()> {
        let Self(options, origin) = self;
        let seed = options.common.seed();
        check_room::<RuleUpdate<T>>(options.count, "updates")?;
        let set = origin.load::<T>(&options.read, seed)?;
        let updates = generate::churn(&set.file.rules, options.count, seed);
        options.common.write(|to| Ok(write_updates(&updates, to)?))
    }
}
