//! Readers of tables, traces and updates of names.
//!
//! ```text
//! Source ─► open: decompress ─► recognise the form of the names ─► a line at a time ─► NameFib + ReadReport
//!                                                                            ├───────► NameBatch (a trace)
//!                                                                            └───────► TimedUpdate, one by one
//! ```
//!
//! A line of a table is a name, and then its result or nothing. Results are numbered from 1 by first
//! appearance, and [`Labels`] have their texts. In a table without a second column each name has its line
//! number as result. The first line decides between the two kinds. A trace has one name on each line, with
//! anything after it. Updates are `A name result` and `W name`, with an optional time in seconds before them.
//! Lines that start with `#` are comments, and so is text that starts with `#`.
//!
//! A file whose first line names columns is CSV or TSV: one column has the names, and the others their
//! results, see [`NameColumns`].
//!
//! Hosts files, lines of CSV without names of columns and filter lists are refused, with the line and the
//! kind of file, because their words are not domains. [`lists`] reads hosts files, filter lists and other
//! lists whose entries have scopes.
//!
//! All names of a file have one [`NameFormat`]. By default it is recognised by content.
//!
//! Reading is strict, as for routes: the first wrong line is an error with its place. With
//! [`ReadOptions::lenient`] wrong lines are passed over and counted by reason. If a name occurs twice the
//! later line stays.
//!
//! ```
//! use wirespeed_namelookup::Name;
//! use wirespeed_namelookup::read::{self, ReadOptions};
//!
//! let (fib, report) = read::read_table_from(&b"www.parc.com 192.0.2.1\nparc.com core\n"[..], "table", &ReadOptions::default())?;
//! let found = fib.names.lookup(Name::new("/com/parc/www/index.html")?);
//! assert_eq!((found.result, found.length, report.records), (1, 13, 2));
//! assert_eq!(fib.labels.label(1).expect("the first result").to_string(), "192.0.2.1");
//!
//! let error = read::read_table_from(&b"/com/parc\n/com//www\n"[..], "table", &ReadOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "table:2: component 2 is empty: \"/com//www\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod csv;
mod foreign;
mod form;
mod format;
mod host;
mod labels;
pub mod lists;
mod reason;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod trace;
mod updates;
mod url;

use std::io::Read;
use std::ops::ControlFlow;

pub use wirespeed_fib::read::{Compression, Input, OpenError, Place, Source, open};
use wirespeed_fib::read::{MEMBER, parts};

pub use csv::NameColumns;
pub use form::Former;
pub use format::{NameFormat, UnknownFormat};
pub use labels::{Label, Labels};
pub use reason::NameReason;
pub use updates::TimedUpdate;

use crate::name::Name;
use crate::names::NameBatch;
use crate::table::NameTable;

/// The report of a reading.
pub type ReadReport = wirespeed_fib::read::ReadReport<NameFormat, NameReason>;
/// The reason why a file could not be read.
pub type ReadError = wirespeed_fib::read::ReadError<NameFormat, NameReason>;

type Ledger = parts::Ledger<NameFormat, NameReason>;
type Fault = parts::Fault<NameFormat, NameReason>;
type End = parts::End<NameFormat, NameReason>;

/// The most bytes by which a format is recognised.
const LOOK_AHEAD: usize = 64 << 10;

/// Options for reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The form of names. By default recognised by content.
    pub format: Option<NameFormat>,
    /// Whether to pass over wrong lines and a truncated end, instead of refusing the file.
    pub lenient: bool,
    /// The columns of a table in CSV. A table for which columns are named is CSV.
    pub columns: NameColumns,
}

/// A table of names, and the texts of its results.
#[derive(Clone, Debug, Default)]
pub struct NameFib {
    /// The names, with their results.
    pub names: NameTable,
    /// The results, from 1.
    pub labels: Labels,
}

impl NameFib {
    /// Gives all names of a list without results one result, whose text is `member`, as routes without next
    /// hops have it. A table with results stays as it is.
    ///
    /// ```
    /// use wirespeed_namelookup::read::{ReadOptions, read_table_from};
    ///
    /// let fib = read_table_from(&b"ads.example\nmore.example\n"[..], "list", &ReadOptions::default())?.0;
    /// assert_eq!(fib.labels.label(2).map(|line| line.to_string()).as_deref(), Some("2"));
    /// let labels = fib.with_members()?.labels;
    /// assert_eq!((labels.len(), labels.find("member")), (1, Some(1)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_members(self) -> Result<Self, wirespeed_fib::TooManyNextHops> {
        if self.labels.lines() == 0 {
            return Ok(self);
        }
        let mut labels = Labels::new();
        let member = labels.intern(MEMBER)?;
        Ok(Self { names: self.names.iter().map(|(name, _)| (name, member)).collect(), labels })
    }
}

/// Reads a table.
///
/// ```
/// use wirespeed_namelookup::read::{ReadOptions, Source, read_table};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("table.txt");
/// std::fs::write(&path, "/com/parc 3\n")?;
/// let (fib, report) = read_table(&Source::Path(path), &ReadOptions::default())?;
/// assert_eq!((fib.names.len(), report.routes), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_table(source: &Source, options: &ReadOptions) -> Result<(NameFib, ReadReport), ReadError> {
    read_source(source, options).map(|(fib, report, _)| (fib, report))
}

/// Reads a table, and tells whether it is CSV.
pub(crate) fn read_source(
    source: &Source,
    options: &ReadOptions,
) -> Result<(NameFib, ReadReport, bool), ReadError> {
    table_of(open(source)?, size_of_file(source), options)
}

/// Reads a table from a stream of bytes. `name` is for messages.
pub fn read_table_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(NameFib, ReadReport), ReadError> {
    let read = table_of(Input::new(Box::new(reader), name.to_owned())?, None, options);
    read.map(|(fib, report, _)| (fib, report))
}

/// Reads a table and gives each name with its result to `give`, until `give` ends the reading, for callers
/// that don't use a [`NameTable`]. A name may occur several times; the last time counts.
///
/// ```
/// use std::ops::ControlFlow;
/// use wirespeed_namelookup::read::{ReadOptions, read_entries_from};
///
/// let mut longest = 0;
/// let (labels, _) = read_entries_from(&b"www.parc.com\nnet\n"[..], "list", &ReadOptions::default(), |name, _result| {
///     longest = longest.max(name.len());
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((longest, labels.len()), (13, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_entries_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    give: impl FnMut(&Name, u32) -> ControlFlow<()>,
) -> Result<(Labels, ReadReport), ReadError> {
    stream_entries(Input::new(Box::new(reader), name.to_owned())?, options, give)
}

/// Reads a file or standard input like [`read_entries_from`], and gives each name with its result to `give`.
pub fn read_entries(
    source: &Source,
    options: &ReadOptions,
    give: impl FnMut(&Name, u32) -> ControlFlow<()>,
) -> Result<(Labels, ReadReport), ReadError> {
    stream_entries(open(source)?, options, give)
}

/// Reads a trace: names to look up, in order.
///
/// ```
/// use wirespeed_namelookup::read::{ReadOptions, Source, read_trace};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("trace.txt");
/// std::fs::write(&path, "/com/parc/www\n/com/parc\n")?;
/// let (trace, _report) = read_trace(&Source::Path(path), &ReadOptions::default())?;
/// assert_eq!(trace.names().name(1).to_string(), "/com/parc");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_trace(source: &Source, options: &ReadOptions) -> Result<(NameBatch, ReadReport), ReadError> {
    trace_of(open(source)?, options)
}

/// Reads a trace from a stream of bytes. `name` is for messages.
pub fn read_trace_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(NameBatch, ReadReport), ReadError> {
    trace_of(Input::new(Box::new(reader), name.to_owned())?, options)
}

/// Reads the paths of URLs, without hosts, in the form of names, for generating traces. Names in other forms
/// are taken whole. URLs without a path are passed over.
pub fn read_paths(source: &Source, options: &ReadOptions) -> Result<(NameBatch, ReadReport), ReadError> {
    paths_of(open(source)?, options)
}

/// Reads paths from a stream of bytes. `name` is for messages.
pub fn read_paths_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(NameBatch, ReadReport), ReadError> {
    paths_of(Input::new(Box::new(reader), name.to_owned())?, options)
}

/// Reads updates and gives each to `give`, until `give` ends the reading. Results get their numbers in
/// `labels`: pass the table's labels if the updates are for one.
///
/// ```
/// use std::ops::ControlFlow;
/// use wirespeed_namelookup::read::{Labels, ReadOptions, read_updates_from};
///
/// let text = "A /com/parc 192.0.2.1\n17.5 W /com/parc\n";
/// let mut names = wirespeed_namelookup::NameTable::new();
/// read_updates_from(text.as_bytes(), "updates", &ReadOptions::default(), &mut Labels::new(), |timed| {
///     names.apply(&timed.update);
///     ControlFlow::Continue(())
/// })?;
/// assert!(names.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_updates(
    source: &Source,
    options: &ReadOptions,
    labels: &mut Labels,
    give: impl FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    stream_updates(open(source)?, options, labels, give)
}

/// Reads updates from a stream of bytes. `name` is for messages.
pub fn read_updates_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    labels: &mut Labels,
    give: impl FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    stream_updates(Input::new(Box::new(reader), name.to_owned())?, options, labels, give)
}

/// Reads all updates of a source.
pub fn collect_updates(
    source: &Source,
    options: &ReadOptions,
    labels: &mut Labels,
) -> Result<(Vec<TimedUpdate>, ReadReport), ReadError> {
    collected(|give| read_updates(source, options, labels, give))
}

/// Reads all updates of a stream of bytes. `name` is for messages.
pub fn collect_updates_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    labels: &mut Labels,
) -> Result<(Vec<TimedUpdate>, ReadReport), ReadError> {
    collected(|give| read_updates_from(reader, name, options, labels, give))
}

fn collected(
    read: impl FnOnce(&mut dyn FnMut(TimedUpdate) -> ControlFlow<()>) -> Result<ReadReport, ReadError>,
) -> Result<(Vec<TimedUpdate>, ReadReport), ReadError> {
    let mut updates = Vec::new();
    let report = read(&mut |update| {
        updates.push(update);
        ControlFlow::Continue(())
    })?;
    Ok((updates, report))
}

fn table_of(
    input: Input<'_>,
    size: Option<u64>,
    options: &ReadOptions,
) -> Result<(NameFib, ReadReport, bool), ReadError> {
    let mut input = input;
    let mut fib = NameFib::default();
    fib.names.reserve(expected_names(&mut input, size));
    let NameFib { names, labels } = &mut fib;
    let (report, is_csv) = entries(input, options, labels, |name, result, ledger| {
        ledger.report.repeated += u64::from(names.insert(name, result) != 0);
        Ok(())
    })?;
    Ok((fib, report, is_csv))
}

/// Reads the names of a table with their results, from lines or CSV, and tells which.
fn entries(
    mut input: Input<'_>,
    options: &ReadOptions,
    labels: &mut Labels,
    give: impl FnMut(&Name, u32, &mut Ledger) -> Result<(), Fault>,
) -> Result<(ReadReport, bool), ReadError> {
    let Some(form) = csv::form_of(&mut input, &options.columns) else {
        let (mut input, mut ledger) = start(input, options, Wanted::Names)?;
        let end = table::read(&mut input, &mut ledger, labels, give);
        return Ok((finish(end, ledger, options, Wanted::Names)?, false));
    };
    let mut ledger = Ledger::new(&input, options.format.unwrap_or(form), options.lenient);
    let end = csv::read(&mut input, &mut ledger, labels, &options.columns, give);
    Ok((finish(end, ledger, options, Wanted::Names)?, true))
}

/// The form of the names of a table in CSV by its first bytes; `ends` says that they are the whole file.
/// `None` if its first line does not name columns, of which one has a usual name for names.
///
/// ```
/// use wirespeed_namelookup::read::{NameFormat, recognise_csv};
///
/// assert_eq!(recognise_csv(b"url,why\na.example/b,ads\n", true), Some(NameFormat::Urls));
/// assert_eq!(recognise_csv(b"a.example,ads\n", true), None);
/// ```
pub fn recognise_csv(start: &[u8], ends: bool) -> Option<NameFormat> {
    csv::recognise(start, ends, &NameColumns::default())
}

fn stream_entries(
    input: Input<'_>,
    options: &ReadOptions,
    mut give: impl FnMut(&Name, u32) -> ControlFlow<()>,
) -> Result<(Labels, ReadReport), ReadError> {
    let mut labels = Labels::new();
    let (report, _) = entries(input, options, &mut labels, |name, result, _| match give(name, result) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Fault::Stop),
    })?;
    Ok((labels, report))
}

/// The size of a file in bytes.
fn size_of_file(source: &Source) -> Option<u64> {
    match source {
        Source::Path(path) => path.metadata().ok().filter(std::fs::Metadata::is_file).map(|data| data.len()),
        Source::Stdin => None,
    }
}

/// Estimates the number of names in a file by its first lines. Too large an estimate only reserves memory
/// that is never touched.
fn expected_names(input: &mut Input<'_>, size: Option<u64>) -> usize {
    /// The factor by which lists of names shrink when compressed, at least.
    const COMPRESSED: u64 = 3;
    /// The largest size of a list of names: larger files rather hold something else.
    const MOST: u64 = 1 << 26;
    let factor = if input.compression() == Compression::None { 1 } else { COMPRESSED };
    let (start, _) = input.look_ahead(LOOK_AHEAD);
    let lines = start.iter().filter(|&&b| b == b'\n').count() as u64;
    let names = size.unwrap_or(0).saturating_mul(factor * lines) / (start.len() as u64).max(1);
    usize::try_from(names.min(MOST)).unwrap_or(0)
}

fn trace_of(input: Input<'_>, options: &ReadOptions) -> Result<(NameBatch, ReadReport), ReadError> {
    let (mut input, mut ledger) = start(input, options, Wanted::Names)?;
    let mut batch = NameBatch::new();
    let end = trace::read(&mut input, &mut ledger, &mut batch);
    finish(end, ledger, options, Wanted::Names).map(|report| (batch, report))
}

fn paths_of(input: Input<'_>, options: &ReadOptions) -> Result<(NameBatch, ReadReport), ReadError> {
    let (mut input, mut ledger) = start(input, options, Wanted::Names)?;
    let mut batch = NameBatch::new();
    let end = trace::read_paths(&mut input, &mut ledger, &mut batch);
    finish(end, ledger, options, Wanted::Names).map(|report| (batch, report))
}

fn stream_updates(
    input: Input<'_>,
    options: &ReadOptions,
    labels: &mut Labels,
    mut give: impl FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    let (mut input, mut ledger) = start(input, options, Wanted::Updates)?;
    let end = updates::read(&mut input, &mut ledger, labels, &mut give);
    finish(end, ledger, options, Wanted::Updates)
}

/// The kind of data to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Names,
    Updates,
}

impl Wanted {
    const fn text(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Updates => "updates",
        }
    }
}

/// Finds the form of an input's names, and opens its ledger.
fn start<'i>(
    mut input: Input<'i>,
    options: &ReadOptions,
    wanted: Wanted,
) -> Result<(Input<'i>, Ledger), ReadError> {
    let format = match options.format {
        Some(format) => format,
        None => recognise(&mut input, options, wanted)?,
    };
    let ledger = Ledger::new(&input, format, options.lenient);
    Ok((input, ledger))
}

fn recognise(input: &mut Input<'_>, options: &ReadOptions, wanted: Wanted) -> Result<NameFormat, ReadError> {
    const SHOWN: usize = 40;
    let name = input.name().to_owned();
    let (first, ends) = input.look_ahead(LOOK_AHEAD);
    let lines = format::significant_lines(first, ends);
    if lines.clone().next().is_none() {
        // There is no line to recognise. The reader reports the rest, also an error.
        return match ends && !options.lenient {
            true => Err(ReadError::Nothing { name, wanted: wanted.text(), records: 0 }),
            false => Ok(NameFormat::Names),
        };
    }
    let format = match wanted {
        Wanted::Names if lines.clone().all(|line| updates::name_of(line).is_some()) => None,
        Wanted::Names => NameFormat::recognise(lines.map(|line| parts::split_word(line).0)),
        Wanted::Updates => NameFormat::recognise(lines.filter_map(updates::name_of)),
    };
    format.ok_or_else(|| {
        let start = format!("\"{}\"", first[..first.len().min(SHOWN)].escape_ascii());
        ReadError::UnknownFormat { name, start }
    })
}

/// Makes the report of a successful reading. Strict reading fails if it found nothing.
fn finish(
    end: Result<(), End>,
    ledger: Ledger,
    options: &ReadOptions,
    wanted: Wanted,
) -> Result<ReadReport, ReadError> {
    if let Err(End::Error(error)) = end {
        return Err(error);
    }
    let report = ledger.report;
    if report.routes == 0 && !options.lenient {
        let ReadReport { name, records, .. } = report;
        return Err(ReadError::Nothing { name, wanted: wanted.text(), records });
    }
    Ok(report)
}
