//! Sets of rules that are read or generated.

use std::ffi::OsString;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::classify::TupleName;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::generate::{self, Kind, Shape, Synthetic};
use wirespeed_classify::read::RuleFile;
use wirespeed_classify::{Rule, RuleSet};
use wirespeed_commands::rules::{Raw, ReadArguments};

use crate::memory::check_room;
use crate::number::{counted, counted_u64, parse_positive};

/// A set that is read or generated.
#[derive(Debug, Args)]
pub(super) struct SetArguments {
    /// The rules; - is standard input. By default a synthetic set
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "set_count", "classes", "full", "matching"])]
    pub(super) rules: Option<OsString>,

    /// Number of rules of a synthetic set
    #[arg(long, alias = "size", value_name = "N", default_value = RULES, value_parser = parse_positive)]
    #[arg(help_heading = "Synthetic sets")]
    set_count: usize,

    #[command(flatten)]
    made: MadeArguments,
}

/// The default number of rules of a generated set.
pub(super) const RULES: &str = "10k";

/// The kind of a generated set.
#[derive(Debug, Args)]
#[command(next_help_heading = "Synthetic sets")]
pub(super) struct MadeArguments {
    /// acl (access list), fw (firewall) and ipc (between both) follow ClassBench. classes has a given number
    /// of rules in a given number of classes, like the sets of the GSwitch paper
    #[arg(long, value_name = "KIND", default_value = "acl", value_parser = kind_parser())]
    set: Made,

    /// Number of classes with --set classes: 64, or the number of rules if there are fewer
    #[arg(long, value_name = "C", value_parser = parse_positive)]
    classes: Option<usize>,

    /// Number of classes with --set classes that share the rules evenly. Every other class has one rule. The
    /// default is all classes
    #[arg(long, value_name = "F", value_parser = parse_positive)]
    full: Option<usize>,

    /// Number of classes with --set classes that a tuple of the trace matches. The default is 1
    #[arg(long, value_name = "C_m", value_parser = parse_positive)]
    matching: Option<usize>,
}

/// A kind of generated set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A set in the style of ClassBench.
    Like(Kind),
    /// A set of the GSwitch paper.
    Classes,
}

impl Made {
    const CLASSES: &'static str = "classes";

    const fn name(self) -> &'static str {
        match self {
            Self::Like(kind) => kind.name(),
            Self::Classes => Self::CLASSES,
        }
    }
}

fn kind_parser() -> impl TypedValueParser<Value = Made> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name).into_iter().chain([Made::CLASSES]))
        .map(|name| name.parse().map_or(Made::Classes, Made::Like))
}

/// Rules, and the data that a generated trace needs beside them.
pub(super) struct Set<T: RuleTuple> {
    pub(super) file: RuleFile<T>,
    pub(super) synthetic: Option<Synthetic<T>>,
}

impl SetArguments {
    /// Reads the given file into memory, if there is one.
    pub(super) fn open(&self, read: &ReadArguments) -> Result<Origin<'_>> {
        match &self.rules {
            Some(rules) => read.open(rules).map(Origin::Read),
            None => {
                read.refuse_beside("a set that is made")?;
                Ok(Origin::Made(&self.made, self.set_count, self.made.tuple(read.tuple)))
            }
        }
    }
}

/// The origin of rules, before their tuple is known to the compiler.
pub(super) enum Origin<'a> {
    Read(Raw),
    /// A generated set with this number of rules.
    Made(&'a MadeArguments, usize, TupleName),
}

impl Origin<'_> {
    /// The tuple of the rules.
    pub(super) fn tuple(&self) -> TupleName {
        match self {
            Self::Read(raw) => raw.tuple(),
            Self::Made(_, _, tuple) => *tuple,
        }
    }

    /// Loads the rules, and prints a description.
    pub(super) fn load<T: RuleTuple>(self, read: &ReadArguments, seed: u64) -> Result<Set<T>> {
        match self {
            Self::Read(raw) => Ok(Set { file: raw.load(read)?, synthetic: None }),
            Self::Made(made, count, _) => {
                let began = Instant::now();
                let set = made.make::<T>(count, seed)?;
                eprintln!(
                    "synthetic set ({}): {} of {}, {} tuples, seed {seed}, made in {:.2} s",
                    made.set.name(),
                    counted(set.file.rules.len(), "rule"),
                    counted_u64(set.file.rules.entries_len(), "pattern"),
                    T::NAME,
                    began.elapsed().as_secs_f64()
                );
                Ok(set)
            }
        }
    }
}

impl MadeArguments {
    /// The given tuple, or the usual tuple of such sets.
    pub(super) fn tuple(&self, wanted: Option<TupleName>) -> TupleName {
        let usual = match self.set {
            Made::Like(_) => TupleName::Ipv4,
            Made::Classes => TupleName::OpenFlow,
        };
        wanted.unwrap_or(usual)
    }

    /// Generates a set of `size` rules.
    pub(super) fn make<T: RuleTuple>(&self, size: usize, seed: u64) -> Result<Set<T>> {
        check_room::<Rule<T>>(size, "rules")?;
        let mut file = RuleFile::default();
        match self.set {
            Made::Like(kind) => {
                let given = [("classes", self.classes), ("full", self.full), ("matching", self.matching)];
                if let Some((name, _)) = given.iter().find(|(_, given)| given.is_some()) {
                    bail!("--{name} is for --set {}", Made::CLASSES);
                }
                file.rules = generate::classbench(kind, size, seed);
                Ok(Set { file, synthetic: None })
            }
            Made::Classes => {
                let classes = self.classes.unwrap_or(size.min(64));
                let full = self.full.unwrap_or(classes);
                let shape = Shape { rules: size, classes, full, matching: self.matching.unwrap_or(1) };
                let mut synthetic = Synthetic::new(shape, seed)?;
                file.rules = std::mem::replace(&mut synthetic.rules, RuleSet::new());
                Ok(Set { file, synthetic: Some(synthetic) })
            }
        }
    }
}
