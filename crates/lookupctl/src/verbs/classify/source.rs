//! Options that say how to read a set of rules and how much of it to take, and the reading.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::classify::TupleName;
use wirespeed_classify::read::{
    Input, ReadOptions, RuleFile, RuleFormat, RuleReport, Source, read_rules_from, read_updates,
};
use wirespeed_classify::{BuildOptions, RuleSet, RuleUpdate, Tuple};
use wirespeed_image::Image;

use super::tuple;
use crate::number::grouped;
use crate::source::MemoryArgument;

/// How rules are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct ReadArguments {
    /// Format of the rules; recognised by content where none is given
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<RuleFormat>,

    /// Fields that the rules look at: ipv4 and ipv6 are 5-tuples, openflow has 12; where it isn't given by content, and of a set that is
    /// made ipv4, of --set classes openflow
    #[arg(long, value_name = "TUPLE", value_parser = tuple::parser())]
    pub(super) tuple: Option<TupleName>,

    /// Chain to read of iptables-save (INPUT where it isn't given) or of nft (the first with a hook)
    #[arg(long, value_name = "NAME")]
    chain: Option<String>,

    /// Table to read of ovs-ofctl dump-flows
    #[arg(long, value_name = "N", default_value_t = 0)]
    flow_table: u8,

    /// Pass over what is wrong in a file, tell it and go on, where it would else be refused
    #[arg(long)]
    lenient: bool,
}

fn format_parser() -> impl TypedValueParser<Value = RuleFormat> {
    PossibleValuesParser::new(RuleFormat::ALL.map(RuleFormat::name))
        .try_map(|name| name.parse::<RuleFormat>())
}

/// A file of rules before its tuple is known to the compiler.
pub(super) struct Raw {
    name: String,
    /// As they are in the file, compressed or not.
    bytes: Vec<u8>,
    tuple: TupleName,
}

/// Rules as they were read.
#[derive(Debug)]
pub(super) struct Loaded<T: Tuple> {
    pub(super) file: RuleFile<T>,
    pub(super) report: RuleReport,
    seconds: f64,
}

impl ReadArguments {
    /// Takes a file into memory, and finds out which fields its rules look at.
    pub(super) fn open(&self, from: &OsStr) -> Result<Raw> {
        /// Bytes by which that is found out.
        const START: usize = 1 << 16;
        let name = Source::from_arg(from).to_string();
        let mut bytes = Vec::new();
        let read = match Source::from_arg(from) {
            Source::Stdin => std::io::stdin().lock().read_to_end(&mut bytes),
            Source::Path(path) => File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
        };
        read.with_context(|| name.clone())?;
        if Image::is_start(&bytes) {
            bail!("{name}: a compiled image, and no file of rules");
        }
        let tuple = match self.tuple {
            Some(tuple) => tuple,
            None => {
                let mut input = Input::new(Box::new(&bytes[..]), name.clone())?;
                tuple::recognise(&String::from_utf8_lossy(input.look_ahead(START).0))
            }
        };
        Ok(Raw { name, bytes, tuple })
    }

    /// Reads what lies beside rules: the format asked for is that of the rules.
    pub(super) fn beside(&self) -> ReadOptions {
        ReadOptions { lenient: self.lenient, ..ReadOptions::default() }
    }

    /// Reads updates of a set, each about a number: a rule that comes after all others has the number that it gets the first time, so
    /// that applying all of them again leads to the same set.
    pub(super) fn updates<T: Tuple>(&self, from: &OsStr, rules: &RuleSet<T>) -> Result<Vec<RuleUpdate<T>>> {
        let source = Source::from_arg(from);
        let (mut updates, report) = read_updates(&source, &self.beside())?;
        if updates.is_empty() {
            bail!("{source}: no updates");
        }
        let mut last = rules.last_number();
        for update in &mut updates {
            match update {
                RuleUpdate::Insert(rule) => {
                    last = last.checked_add(1).context("all numbers of rules are spent")?;
                    *update = RuleUpdate::Set(last, rule.clone());
                }
                RuleUpdate::Set(number, _) => last = last.max(*number),
                RuleUpdate::Remove(_) => {}
            }
        }
        eprintln!("{source}: {} updates", grouped(updates.len()));
        report.left_out.iter().take(10).for_each(|one| eprintln!("  left out {one}"));
        Ok(updates)
    }
}

impl Raw {
    /// The fields that its rules look at.
    pub(super) fn tuple(&self) -> TupleName {
        self.tuple
    }

    /// Reads the rules, of which there has to be one.
    pub(super) fn parse<T: Tuple>(&self, read: &ReadArguments) -> Result<Loaded<T>> {
        let began = Instant::now();
        let options = ReadOptions {
            format: read.format,
            lenient: read.lenient,
            chain: read.chain.clone(),
            table: read.flow_table,
            ..ReadOptions::default()
        };
        let (file, report) = read_rules_from(&self.bytes[..], &self.name, &options)?;
        if file.rules.is_empty() {
            let why = report.left_out.first();
            let why = why.map_or_else(String::new, |one| format!(" that can be expressed; {one}"));
            bail!("{}: no rules{why}", self.name);
        }
        Ok(Loaded { file, report, seconds: began.elapsed().as_secs_f64() })
    }

    /// Reads the rules, and says what they were and what was left out.
    pub(super) fn load<T: Tuple>(&self, read: &ReadArguments) -> Result<RuleFile<T>> {
        let loaded = self.parse(read)?;
        eprintln!("{loaded}");
        Ok(loaded.file)
    }
}

impl<T: Tuple> fmt::Display for Loaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {} tuples, read in {:.2} s", self.report, T::NAME, self.seconds)
    }
}

/// What a compiled set is to be like.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct BuildArguments {
    #[command(flatten)]
    memory: MemoryArgument,
}

impl BuildArguments {
    /// What is asked of a table of which there will be so many copies.
    pub(super) fn options(self, copies: u64, seed: Option<u64>) -> BuildOptions {
        BuildOptions { memory_cap: self.memory.cap(copies), seed, ..BuildOptions::default() }
    }
}
