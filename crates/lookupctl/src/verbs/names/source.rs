//! Options for reading a table of names, and the reading.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::names::generate::{self, TableSpec};
use wirespeed::names::read::{
    Labels, NameFib, NameFormat, ReadError, ReadOptions, ReadReport, Source, read_table, read_updates,
};
use wirespeed::names::{NameBatch, NameUpdate};
use wirespeed_namelookup::BuildOptions;

use crate::busy::Busy;
use crate::number::{counted, parse_positive};
use crate::source::{MemoryArgument, unless_image};

/// Options for reading a table.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct ReadArguments {
    /// Form of the table's names. By default recognised by content. Domains in another script become ASCII
    /// (UTS 46), in tables and queries alike. *.example.com matches example.com and all names beneath it
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<NameFormat>,

    /// Pass over wrong lines, count them by reason and go on. By default the file is refused
    #[arg(long)]
    lenient: bool,
}

/// The parser of a name's form.
pub(super) fn format_parser() -> impl TypedValueParser<Value = NameFormat> {
    PossibleValuesParser::new(NameFormat::ALL.map(NameFormat::name))
        .try_map(|name| name.parse::<NameFormat>())
}

/// A table as it was read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) fib: NameFib,
    pub(super) report: ReadReport,
    seconds: f64,
}

impl ReadArguments {
    /// Whether wrong lines are passed over.
    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Reads a table, and prints its description and the lines that were passed over.
    pub(super) fn load(&self, from: &OsStr) -> Result<NameFib> {
        let loaded = self.load_quietly(from)?;
        eprintln!("{loaded}");
        Ok(loaded.fib)
    }

    /// Reads a table.
    pub(super) fn load_quietly(&self, from: &OsStr) -> Result<Loaded> {
        let began = Instant::now();
        let source = Source::from_arg(from);
        let busy = Busy::with(format!("reading {source}"));
        let options = ReadOptions { format: self.format, lenient: self.lenient };
        let (fib, report) = read_table(&source, &options).map_err(|error| unless_image(from, error))?;
        drop(busy);
        Ok(Loaded { fib, report, seconds: began.elapsed().as_secs_f64() })
    }

    /// Reads updates. New results are numbered after those of the table.
    pub(super) fn updates(&self, from: &OsStr, labels: &mut Labels) -> Result<Vec<NameUpdate>> {
        let mut updates = Vec::new();
        let report = read_updates(&Source::from_arg(from), &self.beside(), labels, |timed| {
            updates.push(timed.update);
            ControlFlow::Continue(())
        })?;
        eprintln!("{report}");
        Ok(updates)
    }

    /// Reads names, and prints how many were passed over.
    pub(super) fn names(
        &self,
        from: &OsStr,
        read: impl Fn(&Source, &ReadOptions) -> Result<(NameBatch, ReadReport), ReadError>,
    ) -> Result<NameBatch> {
        let (names, report) = read(&Source::from_arg(from), &self.beside())?;
        if report.faults() > 0 || report.truncated.is_some() {
            eprintln!("{report}");
        }
        Ok(names)
    }

    /// Options for reading data beside a table: the given format is the table's.
    fn beside(&self) -> ReadOptions {
        ReadOptions { format: None, lenient: self.lenient }
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fib, report, seconds } = self;
        write!(
            f,
            "{report}\n  {} of {}, {}, read in {seconds:.2} s",
            counted(fib.names.len(), "name"),
            counted(fib.names.node_count() - 1, "component"),
            match fib.labels.lines() {
                0 => counted(fib.labels.len(), "result"),
                _ => "each its own result, the number of its line".to_owned(),
            },
        )
    }
}

/// Options for compiling a table.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct BuildArguments {
    /// Compile only the names that results need: a name is left out if the nearest name above it has the same
    /// result. Updates compile names again when results need them
    #[arg(long)]
    pub(super) aggregate: bool,

    #[command(flatten)]
    memory: MemoryArgument,
}

impl BuildArguments {
    /// Build options for a table with this number of results and copies.
    pub(super) fn options(self, copies: u64, results: usize) -> BuildOptions {
        BuildOptions {
            memory_cap: self.memory.cap(copies),
            results: u32::try_from(results).unwrap_or(u32::MAX),
            ..BuildOptions::default()
        }
    }
}

/// A table that is read or generated.
#[derive(Debug, Args)]
pub(super) struct TableArguments {
    /// The table; - is standard input. By default a synthetic table of realistic shape
    #[arg(long, value_name = "FILE")]
    pub(super) table: Option<OsString>,

    /// Number of names of a synthetic table
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive, conflicts_with = "table")]
    names: usize,
}

/// The default number of results of a generated table.
pub(super) const RESULTS: u32 = 62;

impl TableArguments {
    /// Loads the table.
    pub(super) fn load(&self, read: &ReadArguments, seed: u64) -> Result<NameFib> {
        if let Some(table) = &self.table {
            return read.load(table);
        }
        let began = Instant::now();
        let fib = generate::table(&TableSpec { names: self.names, results: RESULTS, seed })?;
        eprintln!(
            "synthetic table: {} of {}, {}, seed {seed}, made in {:.2} s",
            counted(fib.names.len(), "name"),
            counted(fib.names.node_count() - 1, "component"),
            counted(fib.labels.len(), "result"),
            began.elapsed().as_secs_f64()
        );
        Ok(fib)
    }
}
