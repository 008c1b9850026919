//! Traces of tuples by name: a file, or a kind that is generated from a set.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::TypedValueParser;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::RuleSet;
use wirespeed_classify::generate;
use wirespeed_classify::read::{Source, read_trace};
use wirespeed_commands::rules::ReadArguments;
use wirespeed_fib::synth::rng::Rng;

use super::set::Set;
use super::source::beside;
use crate::memory::check_room;
use crate::number::counted;
use crate::trace;

/// The source of the tuples of a replay.
pub(super) type Trace = trace::Trace<Kind>;

/// `--trace FILE|KIND`.
pub(super) fn parser() -> impl TypedValueParser<Value = Trace> {
    trace::parser_of("flows:")
}

/// A kind of generated trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A tuple of a random rule each time.
    Rules,
    /// Tuples of rules, each repeated this many times in a row on average.
    Flows(f64),
    /// Random tuples.
    Random,
}

/// Text that is not a kind of trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownKind(String);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no kind of trace: rules, flows:N (N from 1 on) and random are", self.0)
    }
}

impl std::error::Error for UnknownKind {}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        match (text, text.strip_prefix("flows:").map(str::parse)) {
            ("rules", _) => Ok(Self::Rules),
            ("random", _) => Ok(Self::Random),
            (_, Some(Ok(packets))) if (1.0..=1e6).contains(&packets) => Ok(Self::Flows(packets)),
            _ => Err(UnknownKind(text.to_owned())),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules => f.write_str("rules"),
            Self::Flows(packets) => write!(f, "flows:{packets}"),
            Self::Random => f.write_str("random"),
        }
    }
}

/// The order of a trace.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct OrderArguments {
    /// Shuffle the trace, so that packets of a flow no longer follow each other
    #[arg(long)]
    pub(super) shuffle: bool,

    /// Seed of all generated or shuffled data. The default is 1
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Kind {
    /// Generates `count` tuples. Tuples of the paper's sets match as many classes as --matching says.
    pub(super) fn make<T: RuleTuple>(self, set: &Set<T>, count: usize, seed: u64) -> Result<Vec<T>> {
        check_room::<T>(count, "tuples")?;
        let rules = &set.file.rules;
        Ok(match (self, &set.synthetic) {
            (Self::Rules, Some(synthetic)) => synthetic.trace(count, seed),
            (Self::Rules, None) => generate::tuples(rules, count, 1.0, seed),
            (Self::Flows(packets), _) => generate::tuples(rules, count, packets, seed),
            (Self::Random, _) => generate::tuples(&RuleSet::new(), count, 1.0, seed),
        })
    }
}

impl OrderArguments {
    /// The seed of all generated or shuffled data.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// Whether a seed is given.
    pub(super) const fn has_seed(&self) -> bool {
        self.seed.is_some()
    }

    /// The tuples of a trace, at least one, in their order. Prints a description.
    pub(super) fn trace<T: RuleTuple>(
        &self,
        trace: &Trace,
        set: &Set<T>,
        count: usize,
        read: &ReadArguments,
    ) -> Result<Vec<T>> {
        let began = Instant::now();
        let mut tuples = match trace {
            Trace::Made(kind) => kind.make(set, count, self.seed())?,
            Trace::File(name) => file(name, read)?,
        };
        if self.shuffle {
            Rng::new(self.seed()).shuffle(&mut tuples);
        }
        eprintln!(
            "trace: {trace}{}, {}, ready in {:.2} s",
            if self.shuffle { ", shuffled" } else { "" },
            counted(tuples.len(), &format!("{} tuple", T::NAME)),
            began.elapsed().as_secs_f64()
        );
        Ok(tuples)
    }
}

/// The tuples of a file, at least one.
pub(super) fn file<T: RuleTuple>(name: &OsString, read: &ReadArguments) -> Result<Vec<T>> {
    let source = Source::from_arg(name);
    let (tuples, report) = read_trace(&source, &beside(read))?;
    report.left_out.iter().take(10).for_each(|one| eprintln!("{source}: left out {one}"));
    if tuples.is_empty() {
        bail!("{source}: no tuples");
    }
    Ok(tuples)
}
