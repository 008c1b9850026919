//! `names gen`: generates synthetic tables, traces and updates of names from a seed.

use std::ffi::OsString;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use wirespeed::names::generate::{Churn, ChurnSpec, Load, TableSpec, extend};
use wirespeed::names::read::NameFib;
use wirespeed::names::write::{write_table, write_trace, write_updates};

use super::source::{RESULTS, ReadArguments, TableArguments};
use super::trace::MadeArguments;
use crate::Outcome;
use crate::busy::Busy;
use crate::number::{parse_count, parse_positive};
use crate::output::is_no_input;
use crate::stdin;
use crate::verbs::generate::Common;

/// Generates synthetic tables, traces and updates of names; equal options give equal data on every machine
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(super) enum What {
    Names(NamesOptions),
    Trace(TraceOptions),
    Updates(UpdatesOptions),
}

const EXAMPLES: &str = "\
Examples:
  lookupctl names gen names > table.txt                 a million names that look like real domains
  lookupctl names gen names --count 10M --table domains.txt.zst -o ten.txt
  lookupctl names gen trace --table table.txt --load heavy --paths urls.txt -o heavy.txt
  lookupctl names gen updates --table table.txt --count 100k > updates.txt";

/// A table whose names look like real domains: lengths, depths, characters, and shared parents
#[derive(Debug, Args)]
pub(super) struct NamesOptions {
    /// Number of names
    #[arg(long, alias = "names", value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    /// Number of results. With 0 each name has a result of its own, and lines have no second column
    #[arg(long, value_name = "N", default_value_t = RESULTS.into(), value_parser = parse_count)]
    results: u64,

    /// Table to start with; - is standard input. Generated names are added up to --count
    #[arg(long, value_name = "FILE")]
    table: Option<OsString>,

    #[command(flatten)]
    read: ReadArguments,
    #[command(flatten)]
    common: Common,
}

/// Names to look up in a table
#[derive(Debug, Args)]
pub(super) struct TraceOptions {
    /// Names to draw: average (all equally likely), heavy (the longest tenth), zipf:SKEW (by popularity)
    #[arg(long, value_name = "LOAD", default_value = "average")]
    load: Load,

    /// Number of names to look up
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    made: MadeArguments,
    #[command(flatten)]
    read: ReadArguments,

    /// Output file. The default is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,
}

/// Updates of a table: equal shares of new names, removed names, names that come back, and changed results
#[derive(Debug, Args)]
pub(super) struct UpdatesOptions {
    /// Number of updates
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_positive)]
    count: usize,

    /// Updates a second, for the times. By default there are no times
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    rate: Option<usize>,

    #[command(flatten)]
    table: TableArguments,
    #[command(flatten)]
    read: ReadArguments,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(what: &What) -> Result<Outcome> {
    match what {
        What::Names(options) => options.run(),
        What::Trace(options) => options.run(),
        What::Updates(options) => options.run(),
    }?;
    Ok(Outcome::Done)
}

impl NamesOptions {
    fn run(&self) -> Result<()> {
        self.common.over_no_input(&self.table)?;
        let mut fib = match &self.table {
            Some(table) => self.read.load(table)?,
            None => NameFib::default(),
        };
        let results = u32::try_from(self.results).context("--results is over 4294967295")?;
        let busy = Busy::with("making names");
        extend(&mut fib, &TableSpec { names: self.count, results, seed: self.common.seed() })?;
        drop(busy);
        self.common.write(|to| Ok(write_table(&fib.names, &fib.labels, to)?))
    }
}

impl TraceOptions {
    fn run(&self) -> Result<()> {
        stdin::at_most_one([("the table", self.table.table.as_deref()), ("the paths", self.made.paths())])?;
        is_no_input(self.output.as_deref(), &self.table.table)?;
        let fib = self.table.load(&self.read, self.made.seed())?;
        let busy = Busy::with("making a trace");
        let trace = self.made.made(self.load, &fib.names, self.count, &self.read)?;
        drop(busy);
        Common::write_to(self.output.as_deref(), |to| Ok(write_trace(trace.names(), to)?))
    }
}

impl UpdatesOptions {
    fn run(&self) -> Result<()> {
        self.common.over_no_input(&self.table.table)?;
        let fib = self.table.load(&self.read, self.common.seed())?;
        let results = u32::try_from(fib.labels.len()).unwrap_or(u32::MAX).max(1);
        #[allow(clippy::cast_precision_loss)] // a rate
        let rate = self.rate.map(|rate| rate as f64);
        let spec = ChurnSpec { results, rate, seed: self.common.seed(), ..ChurnSpec::default() };
        let mut updates = Churn::new(&fib.names, &spec)?.take(self.count);
        self.common.write(|to| updates.try_for_each(|update| Ok(write_updates([&update], &fib.labels, to)?)))
    }
}
