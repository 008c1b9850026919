//! Options for reading a table of names, and the reading.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use wirespeed::names::generate::{self, TableSpec};
use wirespeed::names::lists::{Answers, Counts, Entries, Resolved, Scope};
use wirespeed::names::merge::read_sources;
use wirespeed::names::read::lists::{
    DomainList, ListError, ListFormat, ListOptions, ListReport, TableOrList, TableOrListError,
    read_table_or_list,
};
use wirespeed::names::read::{
    Labels, NameColumns, NameFib, NameFormat, NameReason, ReadError, ReadOptions, ReadReport, Source,
    read_table, read_updates,
};
use wirespeed::names::{NameBatch, NameUpdate};
use wirespeed_fib::merge::MergeSource;
use wirespeed_namelookup::BuildOptions;

use crate::busy::Busy;
use crate::number::{counted, counted_u64, grouped, parse_positive};
use crate::refuse::{Given, NO_TABLE, refuse};
use crate::skipped::Skipped;
use crate::source::{MemoryArgument, unless_image};

/// Options for reading a table.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(super) struct ReadArguments {
    /// Form of the table's names, or format of a list of domains: hosts, adblock, dnsmasq, rpz or psl, which
    /// build, info, lookup and verify read. By default recognised by content. Domains in another script
    /// become ASCII (UTS 46), in tables and queries alike. Except in lists, *.example.com matches example.com
    /// and all names beneath it
    #[arg(long, value_name = "FORMAT", value_parser = table_format_parser())]
    format: Option<TableFormat>,

    /// Column of CSV with the names. By default found by usual names (domain, fqdn, host, url, name, ...)
    #[arg(long, value_name = "NAME")]
    name_column: Option<String>,

    /// Columns of CSV that are the result, by name. Several make one: category=ads,risk=3. By default all but
    /// that of the names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    value_columns: Vec<String>,

    /// Read only the ICANN section of the Public Suffix List
    #[arg(long, requires = "table")]
    icann: bool,

    /// Pass over wrong lines, count them by reason and go on. By default the file is refused
    #[arg(long)]
    lenient: bool,
}

/// Sources in place of a table.
#[derive(Clone, Debug, Args)]
pub(super) struct MergeArguments {
    /// Source of a table that is merged of several, each by an option of its own, instead of --table. Each
    /// field of a name comes from the longest name that has it, of all sources, and where several have it at
    /// one name, from the first of them. NAME is the field of values without names, of lists and of a single
    /// column; COLUMN,... are the columns of CSV to take
    #[arg(long, value_name = "NAME[:COLUMN,...]=FILE", conflicts_with = "table")]
    pub(super) merge: Vec<MergeSource>,
}

impl MergeArguments {
    /// The files of the sources.
    pub(super) fn files(&self) -> impl Iterator<Item = &OsString> {
        self.merge.iter().map(|source| &source.file)
    }
}

/// The message for a list that should be aggregated.
pub(super) const NOT_AGGREGATED: &str =
    "--aggregate is for tables: the answers of a list depend on the matched length, which it changes";

/// A form of names, or a format of lists.
#[derive(Clone, Copy, Debug)]
enum TableFormat {
    Names(NameFormat),
    List(ListFormat),
}

/// The parser of a table's format.
fn table_format_parser() -> impl TypedValueParser<Value = TableFormat> {
    let names = NameFormat::ALL.map(|format| (format.name(), TableFormat::Names(format)));
    let lists = ListFormat::ALL.map(|format| (format.name(), TableFormat::List(format)));
    let all: Vec<_> = names.into_iter().chain(lists).collect();
    PossibleValuesParser::new(all.clone().into_iter().map(|(name, _)| name)).map(move |name| {
        let found = all.iter().find(|(format, _)| *format == name);
        found.expect("one of the possible values").1
    })
}

/// The parser of a name's form.
pub(super) fn format_parser() -> impl TypedValueParser<Value = NameFormat> {
    PossibleValuesParser::new(NameFormat::ALL.map(NameFormat::name))
        .try_map(|name| name.parse::<NameFormat>())
}

/// A table as it was read, or a list as the table that it becomes.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The names. Results of a list are numbers of answers, and labels are the texts of its values.
    pub(super) fib: NameFib,
    pub(super) report: Report,
    /// The reports of what was read before, into the same list or table.
    before: Vec<Report>,
    /// The answers of a list.
    pub(super) list: Option<OfList>,
    seconds: f64,
}

/// What a list has beside its names.
#[derive(Clone, Debug)]
pub(super) struct OfList {
    pub(super) answers: Answers,
    pub(super) counts: Counts,
}

/// The report of reading a table or a list.
#[derive(Debug)]
pub(super) enum Report {
    Table(ReadReport),
    List(ListReport),
}

impl Report {
    /// The file, the format, the number of records, and those that were passed over.
    pub(super) fn parts(&self) -> (&str, String, u64, Vec<Skipped>) {
        fn parts<F: fmt::Display>(
            report: &wirespeed_fib::read::ReadReport<F, NameReason>,
        ) -> (&str, String, u64, Vec<Skipped>) {
            let skipped = report.skipped.iter();
            let skipped = skipped.map(|skipped| Skipped::new(&skipped.reason, skipped.count)).collect();
            (&report.name, report.format.to_string(), report.records, skipped)
        }
        match self {
            Self::Table(report) => parts(report),
            Self::List(report) => parts(report),
        }
    }
}

impl Loaded {
    /// The table. Fails for a list, because `what` needs a table's results.
    pub(super) fn without_list(self, what: &str) -> Result<NameFib> {
        match self.list {
            None => Ok(self.fib),
            Some(_) => bail!("{}: {what}", self.report.parts().0),
        }
    }

    fn of_list(read: DomainList, report: ListReport, before: Vec<ListReport>, seconds: f64) -> Self {
        let counts = read.list.counts();
        let Resolved { names, answers } = read.list.resolve();
        let fib = NameFib { names, labels: read.labels };
        let list = Some(OfList { answers, counts });
        let before = before.into_iter().map(Report::List).collect();
        Self { fib, report: Report::List(report), before, list, seconds }
    }
}

impl ReadArguments {
    /// No options but lenience: the format is recognised by content.
    pub(super) const fn by_content(lenient: bool) -> Self {
        Self { format: None, name_column: None, value_columns: Vec::new(), icann: false, lenient }
    }

    /// The columns of CSV that are named.
    fn columns(&self) -> NameColumns {
        NameColumns { name: self.name_column.clone(), values: self.value_columns.clone() }
    }

    /// Refuses columns for lists of domains, which have none.
    fn check_columns(&self, is_of_lists: bool) -> Result<()> {
        match is_of_lists && self.columns().is_given() {
            true => {
                bail!("--name-column and --value-columns are for tables in CSV, not for lists of domains")
            }
            false => Ok(()),
        }
    }

    /// Refuses options for a table where none is read.
    pub(super) fn refuse_without_table(&self) -> Result<()> {
        refuse(&self.given().map(|(option, is_given)| (option, is_given && option != "lenient")), NO_TABLE)
    }

    /// Each of the options.
    pub(super) fn given(&self) -> [Given<'static>; 5] {
        [
            ("format", self.format.is_some()),
            ("name-column", self.name_column.is_some()),
            ("value-columns", !self.value_columns.is_empty()),
            ("icann", self.icann),
            ("lenient", self.lenient),
        ]
    }

    /// Whether wrong lines are passed over.
    pub(super) fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Reads a table, and prints its description and the lines that were passed over. Lists are refused.
    pub(super) fn load(&self, from: &OsStr) -> Result<NameFib> {
        if let Some(TableFormat::List(format)) = self.format {
            bail!("{format} is a format of lists of domains: build, info, lookup and verify read them");
        }
        if self.icann {
            bail!("--icann is for the Public Suffix List");
        }
        let began = Instant::now();
        let source = Source::from_arg(from);
        let busy = Busy::with(format!("reading {source}"));
        let (fib, report) =
            read_table(&source, &self.of_table()).map_err(|error| unless_image(from, error))?;
        drop(busy);
        let report = Report::Table(report);
        let seconds = began.elapsed().as_secs_f64();
        let loaded = Loaded { fib, report, before: Vec::new(), list: None, seconds };
        eprintln!("{loaded}");
        Ok(loaded.fib)
    }

    /// Reads a table or a list, and prints its description and the lines that were passed over.
    pub(super) fn load_any(&self, from: &OsStr) -> Result<Loaded> {
        self.load_any_with(from, |_| {})
    }

    /// Reads like [`load_any`](Self::load_any). `see` gets the entries of a list before they become a table.
    pub(super) fn load_any_with(&self, from: &OsStr, see: impl FnOnce(&Entries)) -> Result<Loaded> {
        let loaded = self.read_any(from, see)?;
        eprintln!("{loaded}");
        Ok(loaded)
    }

    /// Reads lists of domains into one, in order, so that of equal entries the last stays; or a table or a
    /// list alone. Prints the description, and the lines that were passed over.
    ///
    /// `see` gets the entries of a list before they become a table.
    pub(super) fn load_all(&self, from: &[OsString], see: impl FnOnce(&Entries)) -> Result<Loaded> {
        let [before @ .., last] = from else { bail!("no table") };
        if before.is_empty() {
            return self.load_any_with(last, see);
        }
        self.check_columns(true)?;
        if let Some(TableFormat::Names(format)) = self.format {
            bail!(
                "--format {format} is for a table, and several are read as one if all are lists of domains"
            );
        }
        let began = Instant::now();
        let (mut read, mut reports) = (DomainList::default(), Vec::new());
        for from in from {
            let source = Source::from_arg(from);
            let _busy = Busy::with(format!("reading {source}"));
            let report = read.add(&source, &self.of_list()).map_err(|error| match error {
                error @ ListError::UnknownFormat { .. } => anyhow!(
                    "{error}; several tables are read as one if all are lists of domains: {}",
                    ListFormat::ALL.map(ListFormat::name).join(", ")
                ),
                error => error.into(),
            });
            reports.push(report.map_err(|error| unless_image(from, error))?);
        }
        if let Some(report) = reports.iter().find(|report| self.icann && report.format != ListFormat::Psl) {
            bail!("{}: --icann is for the Public Suffix List", report.name);
        }
        let seconds = began.elapsed().as_secs_f64();
        let report = reports.pop().expect("there is a last list");
        see(&read.list);
        let loaded = Loaded::of_list(read, report, reports, seconds);
        eprintln!("{loaded}");
        Ok(loaded)
    }

    /// Reads sources in order of precedence as one table. Prints the report of each, and the merged table's.
    pub(super) fn load_merged(&self, sources: &[MergeSource]) -> Result<Loaded> {
        if let Some(TableFormat::List(format)) = self.format {
            bail!("--format {format} is a format of lists of domains, and tables are merged");
        }
        if self.icann {
            bail!("--icann is for the Public Suffix List");
        }
        let began = Instant::now();
        let busy = Busy::with("reading and merging");
        let (merged, reports) = read_sources(sources, &self.of_table())?;
        drop(busy);
        let mut reports: Vec<_> = reports.into_iter().map(Report::Table).collect();
        let report = reports.pop().context("no source")?;
        let seconds = began.elapsed().as_secs_f64();
        let loaded = Loaded { fib: merged.fib, report, before: reports, list: None, seconds };
        eprintln!("{loaded}");
        if merged.empty > 0 {
            eprintln!("  {} without any field, which are left out", counted_u64(merged.empty, "name"));
        }
        if loaded.fib.names.is_empty() {
            bail!("no name of the sources has a field");
        }
        Ok(loaded)
    }

    /// Reads a table or a list.
    pub(super) fn load_quietly(&self, from: &OsStr) -> Result<Loaded> {
        self.read_any(from, |_| {})
    }

    fn read_any(&self, from: &OsStr, see: impl FnOnce(&Entries)) -> Result<Loaded> {
        self.check_columns(matches!(self.format, Some(TableFormat::List(_))))?;
        let began = Instant::now();
        let source = Source::from_arg(from);
        let busy = Busy::with(format!("reading {source}"));
        let read =
            read_table_or_list(&source, &self.of_table(), &self.of_list()).map_err(|error| match error {
                TableOrListError::Table(error) => unless_image(from, error),
                error => unless_image(from, error),
            })?;
        let loaded = match read {
            TableOrList::List(read, report) => {
                see(&read.list);
                Loaded::of_list(read, report, Vec::new(), began.elapsed().as_secs_f64())
            }
            TableOrList::Table(fib, report) => {
                let report = Report::Table(report);
                let seconds = began.elapsed().as_secs_f64();
                Loaded { fib, report, before: Vec::new(), list: None, seconds }
            }
        };
        drop(busy);
        let is_of_suffixes = loaded.list.as_ref().is_some_and(|list| list.answers.is_of_suffixes());
        if self.icann && !is_of_suffixes {
            bail!("{source}: --icann is for the Public Suffix List");
        }
        Ok(loaded)
    }

    /// Options for reading a list.
    fn of_list(&self) -> ListOptions {
        let format = match self.format {
            Some(TableFormat::List(format)) => Some(format),
            _ => None,
        };
        ListOptions { format, lenient: self.lenient, icann_only: self.icann }
    }

    /// Options for reading a table.
    fn of_table(&self) -> ReadOptions {
        let format = match self.format {
            Some(TableFormat::Names(format)) => Some(format),
            _ => None,
        };
        ReadOptions { format, lenient: self.lenient, columns: self.columns() }
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
        ReadOptions { lenient: self.lenient, ..ReadOptions::default() }
    }
}

impl Loaded {
    /// Lines that lenient reading left out.
    pub(super) fn left_out(&self) -> u64 {
        let faults = |report: &Report| match report {
            Report::Table(report) => report.faults(),
            Report::List(report) => report.faults(),
        };
        faults(&self.report) + self.before.iter().map(faults).sum::<u64>()
    }

    /// Whether the names are NDN URIs.
    pub(super) fn is_ndn(&self) -> bool {
        matches!(&self.report, Report::Table(report) if report.format == NameFormat::Ndn)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(report) => report.fmt(f),
            Self::List(report) => report.fmt(f),
        }
    }
}

impl fmt::Display for OfList {
    /// The entries by scope, and the exceptions among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = Scope::ALL.into_iter().zip(self.counts.by_scope).filter(|&(_, count)| count > 0);
        let counts: Vec<_> = counts.map(|(scope, count)| format!("{} {scope}", grouped(count))).collect();
        let exceptions = counted(self.counts.exceptions, "exception");
        write!(f, "entries by scope: {}; {exceptions} among them", counts.join(", "))
    }
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fib, report, before, list, seconds } = self;
        before.iter().try_for_each(|report| writeln!(f, "{report}"))?;
        write!(
            f,
            "{report}\n  {} of {}, {}, read in {seconds:.2} s",
            counted(fib.names.len(), "name"),
            counted(fib.names.node_count() - 1, "component"),
            match fib.labels.lines() {
                0 if list.is_some() => counted(fib.labels.len(), "value"),
                0 => counted(fib.labels.len(), "result"),
                _ => "each its own result, the number of its line".to_owned(),
            },
        )?;
        list.as_ref().map_or(Ok(()), |list| write!(f, "\n  {list}"))
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
    /// Each of the options.
    pub(super) fn given(self) -> [Given<'static>; 2] {
        [("aggregate", self.aggregate), self.memory.given()]
    }

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
