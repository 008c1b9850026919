//! `--merge`: several sources as one table whose labels are records.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use wirespeed_fib::Fib;
use wirespeed_fib::merge::Merge;
use wirespeed_fib::read::ReadReport;
use wirespeed_input::plural;

use crate::busy::Busy;
use crate::number::{Bytes, counted, counted_u64, grouped};
use crate::source::{Loaded, ReadArguments};

/// A source on the command line: `NAME=FILE` or `NAME:COLUMN,COLUMN=FILE`.
#[derive(Clone, Debug)]
pub(crate) struct MergeSource {
    /// The field of values without a name, and of lists.
    name: String,
    /// The columns to take; all if there are none.
    columns: Vec<String>,
    file: OsString,
}

impl MergeSource {
    /// Parses a source.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (before, file) =
            text.split_once('=').ok_or("a source is NAME=FILE or NAME:COLUMN,COLUMN=FILE")?;
        let (name, columns) = match before.split_once(':') {
            Some((name, columns)) => (name, columns.split(',').map(str::to_owned).collect()),
            None => (before, Vec::new()),
        };
        if name.is_empty() || file.is_empty() || columns.iter().any(String::is_empty) {
            return Err("a source has a name, a file, and columns with names".to_owned());
        }
        Ok(Self { name: name.to_owned(), columns, file: file.into() })
    }

    /// The file.
    pub(crate) fn file(&self) -> &OsString {
        &self.file
    }

    /// Reads the source, and adds it after those before.
    fn add(&self, read: &ReadArguments, merge: &mut Merge) -> Result<ReadReport> {
        let shown = Path::new(&self.file).display();
        let Loaded { fib, report, .. } = match self.columns.is_empty() {
            true => read.load_one_of(&self.file)?,
            false => read.with_values(&self.columns).load_one_of(&self.file)?,
        };
        if !self.columns.is_empty() && !report.format.has_fields() {
            bail!("{shown}: {} has no columns: name the source without them", report.format);
        }
        let added = if report.is_list {
            merge.add_members(&fib, &self.name)
        } else if report.names_fields {
            merge.add_fields(&fib)
        } else if report.format.has_fields() {
            // One column alone: the source names it.
            merge.add_values(&fib, &self.name)
        } else {
            merge.add_table(&fib, &self.name)
        };
        added.with_context(|| shown.to_string())?;
        Ok(report)
    }
}

/// Reads sources in order of precedence as one table. Returns it with the number of lines that lenient
/// reading left out.
pub(crate) fn load(read: &ReadArguments, sources: &[MergeSource]) -> Result<(Fib, u64)> {
    let mut merge = Merge::new();
    let reports: Vec<ReadReport> =
        sources.iter().map(|source| source.add(read, &mut merge)).collect::<Result<_>>()?;
    read.check(&reports.iter().collect::<Vec<_>>(), None)?;
    let (prefixes, bytes, began) = (merge.len(), merge.memory_usage(), Instant::now());
    let busy = Busy::with("merging");
    let merged = merge.build()?;
    drop(busy);
    let fib = merged.fib;
    eprintln!(
        "merged {}, {} {} of all, in {:.2} s and {}: {} IPv4 and {} IPv6 {}, {}",
        counted(sources.len(), "source"),
        grouped(prefixes),
        plural(prefixes as u64, "prefix"),
        began.elapsed().as_secs_f64(),
        Bytes(bytes as u64),
        grouped(fib.v4.len()),
        grouped(fib.v6.len()),
        plural(fib.v6.len() as u64, "prefix"),
        counted(merged.records.len(), "record"),
    );
    if merged.empty > 0 {
        eprintln!("  {} without any field, which have no route", counted_u64(merged.empty, "prefix"));
    }
    Ok((fib, reports.iter().map(ReadReport::faults).sum()))
}
