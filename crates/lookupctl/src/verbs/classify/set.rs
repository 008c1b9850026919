//! Sets of rules that are read, or made.

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

use super::source::{Raw, ReadArguments};
use crate::memory::check_room;
use crate::number::{counted, counted_u64, parse_positive};

/// A set that is read, or made.
#[derive(Debug, Args)]
pub(super) struct SetArguments {
    /// The rules; - is standard input; by default a synthetic set
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "set_count", "classes", "full", "matching"])]
    pub(super) rules: Option<OsString>,

    /// Rules of a synthetic set
    #[arg(long, alias = "size", value_name = "N", default_value = RULES, value_parser = parse_positive)]
    #[arg(help_heading = "Synthetic sets")]
    set_count: usize,

    #[command(flatten)]
    made: MadeArguments,
}

/// Rules of a set that is made, where nothing else is said.
pub(super) const RULES: &str = "10k";

/// What a set that is made is like.
#[derive(Debug, Args)]
#[command(next_help_heading = "Synthetic sets")]
pub(super) struct MadeArguments {
    /// acl (access list), fw (firewall) and ipc (in between) are after the manner of ClassBench. classes has
    /// so many rules in so many classes, as the sets of the GSwitch paper
    #[arg(long, value_name = "KIND", default_value = "acl", value_parser = kind_parser())]
    set: Made,

    /// Classes, of --set classes: 64, or as many as rules
    #[arg(long, value_name = "C", value_parser = parse_positive)]
    classes: Option<usize>,

    /// Classes of --set classes that share the rules evenly. Each other class has one rule. The default is
    /// all of them
    #[arg(long, value_name = "F", value_parser = parse_positive)]
    full: Option<usize>,

    /// Classes of --set classes that a tuple of the trace matches. The default is 1
    #[arg(long, value_name = "C_m", value_parser = parse_positive)]
    matching: Option<usize>,
}

/// A kind of set that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    /// A set made after the manner of ClassBench.
    Like(Kind),
    /// The paper's.
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

/// Rules, and what makes a trace of them that the rules don't say.
pub(super) struct Set<T: RuleTuple> {
    pub(super) file: RuleFile<T>,
    pub(super) synthetic: Option<Synthetic<T>>,
}

impl SetArguments {
    /// Takes the file that was asked for into memory, if one was.
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

/// Where rules come from, before their tuple is known to the compiler.
pub(super) enum Origin<'a> {
    Read(Raw),
    /// So many rules.
    Made(&'a MadeArguments, usize, TupleName),
}

impl Origin<'_> {
    /// The fields that its rules look at.
    pub(super) fn tuple(&self) -> TupleName {
        match self {
            Self::Read(raw) => raw.tuple(),
            Self::Made(_, _, tuple) => *tuple,
        }
    }

    /// The rules, and says what they are.
    pub(super) fn load<T: RuleTuple>(&self, read: &ReadArguments, seed: u64) -> Result<Set<T>> {
        match self {
            Self::Read(raw) => Ok(Set { file: raw.load(read)?, synthetic: None }),
            Self::Made(made, count, _) => {
                let began = Instant::now();
                let set = made.make::<T>(*count, seed)?;
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
    /// The tuple that was asked for, or the one that such sets are of by rights.
    pub(super) fn tuple(&self, wanted: Option<TupleName>) -> TupleName {
        let usual = match self.set {
            Made::Like(_) => TupleName::Ipv4,
            Made::Classes => TupleName::OpenFlow,
        };
        wanted.unwrap_or(usual)
    }

    /// A set of so many rules.
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
