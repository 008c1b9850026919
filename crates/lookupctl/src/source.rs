//! Options that say how to read a table and how much of it to take, and the reading.

use std::ffi::OsStr;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed_fib::read::{Format, PeerChoice, ReadOptions, ReadReport, Source, read_fib, read_updates};
use wirespeed_fib::{BuildOptions, Family, Fib, InFib, NextHops, Update};

use crate::family;
use crate::memory;
use crate::number::{grouped, parse_size};
use crate::strides::StridesArgument;

/// How a table is read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadArguments {
    /// Format of the table; recognised by content where none is given
    #[arg(long, value_name = "FORMAT", value_parser = format_parser(Format::holds_routes))]
    format: Option<Format>,

    /// Peer whose routes to take from MRT or bgpdump; by default the one with most prefixes
    #[arg(long, value_name = "NUMBER|ADDRESS|AS")]
    peer: Option<PeerChoice>,

    /// Pass over what is wrong in a file, count it and go on, where it would else be refused
    #[arg(long)]
    lenient: bool,
}

/// `--format NAME`, of the formats that will do.
pub(crate) fn format_parser(will_do: fn(Format) -> bool) -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.into_iter().filter(move |&format| will_do(format)).map(Format::name);
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Format>())
}

/// A table as it was read.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) fib: Fib,
    pub(crate) report: ReadReport,
    seconds: f64,
}

impl ReadArguments {
    /// Reads a table, and says what it was and what was passed over.
    pub(crate) fn load(&self, from: &OsStr) -> Result<Fib> {
        let loaded = self.load_quietly(from)?;
        eprintln!("{loaded}");
        Ok(loaded.fib)
    }

    /// Reads a table.
    pub(crate) fn load_quietly(&self, from: &OsStr) -> Result<Loaded> {
        let began = Instant::now();
        let options = ReadOptions { format: self.format, peer: self.peer, lenient: self.lenient };
        let (fib, report) = read_fib(&Source::from_arg(from), &options)?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(Loaded { fib, report, seconds })
    }

    /// Reads updates of one family; new next hops get the numbers after those of the table.
    pub(crate) fn updates<A: InFib>(&self, from: &OsStr, next_hops: &mut NextHops) -> Result<Vec<Update<A>>> {
        // The format asked for is the table's.
        let options = ReadOptions { format: None, peer: self.peer, lenient: self.lenient };
        let (mut own, mut others) = (Vec::new(), 0);
        let report = read_updates(&Source::from_arg(from), &options, next_hops, |update| {
            match A::update(&update.update) {
                Some(update) => own.push(update),
                None => others += 1,
            }
            ControlFlow::Continue(())
        })?;
        eprintln!("{report}");
        if own.is_empty() && others > 0 {
            bail!(
                "{}: all of its {} updates are of the other family, not {}",
                report.name,
                grouped(others),
                A::FAMILY
            );
        }
        Ok(own)
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fib, report, seconds } = self;
        write!(
            f,
            "{report}\n  {} IPv4 and {} IPv6 prefixes, {} next hops, read in {seconds:.2} s",
            grouped(fib.v4.len()),
            grouped(fib.v6.len()),
            grouped(fib.next_hops.len()),
        )
    }
}

/// Which family.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FamilyArgument {
    /// Address family, 4 or 6; by default the one that the table has, IPv4 where it has both
    #[arg(long, value_name = "4|6", value_parser = family::parse)]
    family: Option<Family>,
}

impl FamilyArgument {
    /// The family asked for.
    pub(crate) fn wanted(self) -> Option<Family> {
        self.family
    }
}

/// How much memory.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct MemoryArgument {
    /// Most memory that a compiled table and its copies may take; by default 80 % of what is left
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory_cap: Option<u64>,
}

impl MemoryArgument {
    /// What is asked of a table of which there will be so many copies.
    pub(crate) fn build_options(self, copies: u64) -> BuildOptions {
        BuildOptions { memory_cap: self.cap(copies), ..BuildOptions::default() }
    }

    /// Most bytes of a table of which there will be so many copies.
    pub(crate) fn cap(self, copies: u64) -> Option<u64> {
        let cap = self.memory_cap.or_else(memory::default_cap);
        cap.map(|cap| cap / copies)
    }
}

/// What a table is to be like.
#[derive(Clone, Debug, Args)]
pub(crate) struct TableArguments {
    #[command(flatten)]
    memory: MemoryArgument,
    #[command(flatten)]
    strides: StridesArgument,
}

impl TableArguments {
    /// What is asked of a table of which there will be so many copies.
    pub(crate) fn build_options(&self, copies: u64) -> BuildOptions {
        BuildOptions { strides: self.strides.strides.clone(), ..self.memory.build_options(copies) }
    }
}
