//! [`ReadArguments`]: options for reading a set of rules, and the reading.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::classify::TupleName;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::{
    Assumption, Assumptions, Input, Line, ReadOptions, RuleFile, RuleFormat, RuleReport, Source, open,
    read_rules_of,
};
use wirespeed_image::Image;

use super::doubt::listed;
use super::tuple;
use crate::number::counted;
use crate::refuse::refuse;

/// Advice in the error for rules of both families.
const CHOOSE_TUPLE: &str = "choose one with --tuple ipv4 or --tuple ipv6";

/// Options for reading rules.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArguments {
    /// Format of the rules. By default recognised by content
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    pub format: Option<RuleFormat>,

    /// Fields that the rules test: ipv4 and ipv6 are 5-tuples, openflow has 12 fields, openflow13 those of
    /// OpenFlow 1.3, for rules in words. By default recognised by content; a file of both IPv4 and IPv6, and
    /// one for openflow13, needs the option. A synthetic set has ipv4 by default, with --set classes openflow
    #[arg(long, value_name = "TUPLE", value_parser = tuple::parser())]
    pub tuple: Option<TupleName>,

    /// Fact about all packets that header fields don't hold, such as ct=new (every packet begins a
    /// connection) or in=eth0 (every packet comes in by that interface). It decides rules that test the fact.
    /// Repeat the option for several facts
    #[arg(long, value_name = "KEY=VALUE")]
    pub assume: Vec<Assumption>,

    /// Chain to read from iptables-save (the default is INPUT) or from nft (needed if several chains have a
    /// hook); security groups, by ids or names with commas between; or the network policy, by NAME or
    /// NAMESPACE/NAME
    #[arg(long, value_name = "NAME")]
    pub chain: Option<String>,

    /// Table to read from iptables-save (the default is filter) or from nft (needed if several tables have
    /// such a chain); ingress (the default) or egress of security groups and network policies
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,

    /// The name of the option for the table. A verb may have another --table.
    #[arg(skip = "table")]
    pub table_option: &'static str,

    /// Sets that rules of iptables-save name, in the format of ipset save
    #[arg(long, value_name = "FILE")]
    pub ipset: Option<OsString>,

    /// Table to read from ovs-ofctl dump-flows (the default is 0)
    #[arg(long, value_name = "N")]
    pub flow_table: Option<u8>,

    /// Leave out rules that header fields can't decide, and wrong lines. By default a file with such rules or
    /// lines is refused. The output lists the rules that were left out, and marks each answer that they could
    /// change
    #[arg(long)]
    pub lenient: bool,
}

fn format_parser() -> impl TypedValueParser<Value = RuleFormat> {
    PossibleValuesParser::new(RuleFormat::ALL.map(RuleFormat::name))
        .try_map(|name| name.parse::<RuleFormat>())
}

/// A file of rules before its tuple is known to the compiler.
pub struct Raw {
    name: String,
    input: Input<'static>,
    tuple: TupleName,
}

/// Rules as they were read.
#[derive(Debug)]
pub struct Loaded<T: RuleTuple> {
    /// The rules.
    pub file: RuleFile<T>,
    /// Counts of rules, and those that were left out.
    pub report: RuleReport,
    seconds: f64,
}

impl ReadArguments {
    /// No options but lenience: format and tuple are recognised by content.
    pub const fn by_content(lenient: bool) -> Self {
        Self {
            format: None,
            tuple: None,
            assume: Vec::new(),
            chain: None,
            table: None,
            table_option: "table",
            ipset: None,
            flow_table: None,
            lenient,
        }
    }

    /// Opens a file, and recognises the tuple of its rules.
    pub fn open(&self, from: &OsStr) -> Result<Raw> {
        /// The number of bytes by which the tuple is recognised.
        const START: usize = 1 << 16;
        let source = Source::from_arg(from);
        let mut input = open(&source)?;
        let name = source.to_string();
        let (start, _) = input.look_ahead(START);
        if Image::is_start(start) {
            bail!("{name}: a compiled image, not a file of rules");
        }
        let tuple = match self.tuple {
            Some(tuple) => tuple,
            None => TupleName::recognise(&String::from_utf8_lossy(start)),
        };
        Ok(Raw { name, input, tuple })
    }

    /// Refuses options for reading rules if an image or a generated set is used.
    pub fn refuse_beside(&self, what: &str) -> Result<()> {
        let given = [
            ("format", self.format.is_some()),
            ("assume", !self.assume.is_empty()),
            ("chain", self.chain.is_some()),
            (self.table_option, self.table.is_some()),
            ("ipset", self.ipset.is_some()),
            ("flow-table", self.flow_table.is_some()),
        ];
        refuse(&given, format_args!("is for rules from a file, not for {what}"))
    }

    /// Refuses options that the format of the rules does not use.
    fn refuse_in(&self, name: &str, format: RuleFormat) -> Result<()> {
        let has_chains = format.has_chains();
        let given = [
            ("chain", self.chain.is_some() && !has_chains),
            (self.table_option, self.table.is_some() && !has_chains),
            ("ipset", self.ipset.is_some() && format != RuleFormat::Iptables),
            ("flow-table", self.flow_table.is_some() && format != RuleFormat::Ovs),
        ];
        let why = format_args!("does not apply to rules in the format {format}");
        refuse(&given, why).with_context(|| name.to_owned())
    }
}

impl Raw {
    /// The tuple of the rules.
    pub fn tuple(&self) -> TupleName {
        self.tuple
    }

    /// Reads the rules. Fails if there are none.
    pub fn parse<T: RuleTuple>(self, read: &ReadArguments) -> Result<Loaded<T>> {
        let began = Instant::now();
        let options = ReadOptions {
            format: read.format,
            lenient: read.lenient,
            chain: read.chain.clone(),
            table_name: read.table.clone(),
            table: read.flow_table.unwrap_or_default(),
            assume: Assumptions::new(read.assume.iter().cloned())?,
            sets: read.sets()?,
            ..ReadOptions::default()
        };
        let Self { name, input, .. } = self;
        let (file, report) = read_rules_of(input, &options)?;
        read.refuse_in(&name, report.format)?;
        if file.rules.is_empty() {
            let why = report.left_out.first();
            let why = why.map_or_else(String::new, |one| format!(" that can be expressed; {one}"));
            let helps = helps(&report)
                .map_or_else(String::new, |helps| format!(": state what they ask for, as by {helps}"));
            bail!("{name}: no rules{why}{helps}");
        }
        Ok(Loaded { file, report, seconds: began.elapsed().as_secs_f64() })
    }

    /// Reads the rules, and prints their number and the rules that were left out. Fails if any were left out,
    /// unless --lenient is given.
    #[inline(never)] // one copy for all crates
    pub fn load<T: RuleTuple>(self, read: &ReadArguments) -> Result<RuleFile<T>> {
        let name = self.name.clone();
        let loaded = self.parse(read)?;
        if read.tuple.is_none() && !read.lenient {
            loaded.report.refuse_other_family(CHOOSE_TUPLE)?;
        }
        if !read.lenient && !loaded.is_whole() {
            bail!("{name}: {}", loaded.refusal());
        }
        tell!("{loaded}");
        for unused in read.assume.iter().filter(|one| !loaded.file.doubts.assumed.contains(one)) {
            tell!("  --assume {unused} decides nothing: no rule asks for it");
        }
        Ok(loaded.file)
    }
}

impl ReadArguments {
    /// The sets that rules name.
    fn sets(&self) -> Result<Option<String>> {
        let Some(from) = &self.ipset else { return Ok(None) };
        let source = Source::from_arg(from);
        let (mut input, mut text) = (open(&source)?, String::new());
        while let Some(line) = input.next_line().with_context(|| source.to_string())? {
            let Line::Whole(line) = line else {
                bail!("{source}:{}: the line is too long", input.lines_read())
            };
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        Ok(Some(text))
    }
}

/// Options that would decide rules that were left out. `None` if there are none.
fn helps(report: &RuleReport) -> Option<String> {
    let all = report.would_help.iter().map(|key| format!("--assume {}", key.example()));
    let all: Vec<_> = all.collect();
    (!all.is_empty()).then(|| all.join(" "))
}

impl<T: RuleTuple> Loaded<T> {
    /// Whether no rule was left out that could change an answer.
    pub fn is_whole(&self) -> bool {
        self.report.left_out.is_empty() && self.file.doubts.uncertain.is_empty()
    }

    /// The reason why a file that is not whole is refused: the first rules that were left out, and advice.
    fn refusal(&self) -> String {
        /// The most rules that are named.
        const SHOWN: usize = 3;
        let left_out = &self.report.left_out;
        let all: Vec<_> = left_out.iter().map(ToString::to_string).collect();
        let state = helps(&self.report)
            .map_or_else(String::new, |helps| format!("state what they ask for, as by {helps}, or "));
        format!(
            "{} can't be decided by a packet's header fields, and could change answers: {}: {state}go on with --lenient, which says \
             of each answer what could change it",
            counted(all.len(), "rule"),
            listed(&all, SHOWN)
        )
    }
}

impl<T: RuleTuple> fmt::Display for Loaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {} tuples, read in {:.2} s", self.report, T::NAME, self.seconds)
    }
}
