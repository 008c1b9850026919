//! Readers of lists of domains whose entries have scopes and exceptions: hosts files, Adblock filter lists,
//! dnsmasq configurations, response policy zones, and the Public Suffix List.
//!
//! ```text
//! Source ─► open: decompress ─► recognise the format ─► a line at a time ─► DomainList { Entries, Labels } + ListReport
//! ```
//!
//! Domains get the form of [`NameFormat::Domains`](super::NameFormat::Domains): lower case, and ASCII by UTS
//! 46. What lines mean, and which entry wins, is the format's; [`ListFormat`] says it for each. Several lists
//! can be read into one [`DomainList`], in order: of equal entries the last stays. But several addresses that
//! one list has for a name are all its value, in order, each once: `192.0.2.1,2001:db8::1`.
//!
//! The value of an entry is a text. Lists that block use an unspecified or a loopback address for it, which
//! becomes the value [`BLOCKED`] in every format; other addresses stay.
//!
//! Reading is strict, as for names: the first line that is not understood is an error with its place. With
//! [`ListOptions::lenient`] such lines are passed over and counted by reason. Memory is that of the list, and
//! a line of 256 KiB.
//!
//! ```
//! use wirespeed_namelookup::list::{Scope, Verdict};
//! use wirespeed_namelookup::read::lists::{BLOCKED, ListOptions, read_list_from};
//! use wirespeed_namelookup::NameBuf;
//!
//! let text = "! Title: mine\n||ads.example^\n@@||good.ads.example^\n0.0.0.0 tracker.example\n";
//! let (read, _) = read_list_from(text.as_bytes(), "list", &ListOptions::default())?;
//! let list = read.list.resolve();
//!
//! let blocked = Verdict::value(read.labels.find(BLOCKED).expect("in use"));
//! let answer = |domain: &str| list.lookup(&NameBuf::from_domain(domain.as_bytes()).expect("a domain"));
//! assert_eq!(answer("a.ads.example").map(|found| found.verdict), blocked);
//! assert_eq!(answer("x.good.ads.example").map(|found| found.verdict), Some(Verdict::Exception));
//! assert_eq!(answer("tracker.example").map(|found| found.scope), Some(Scope::Exact));
//! assert_eq!(answer("www.tracker.example"), None);
//!
//! let error = read_list_from(&b"||ads.example^$script\n"[..], "list", &ListOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "list:1: a modifier ($…) that is not understood: only $important is: \"||ads.example^$script\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adblock;
mod dnsmasq;
mod format;
mod hosts;
mod psl;
mod recognise;
mod rpz;
mod several;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::net::IpAddr;

use wirespeed_fib::read::parts::{self, each_line, each_line_except};

pub use format::{ListFormat, UnknownListFormat};
use several::Several;

use super::host::plain_domain;
use super::{Input, Labels, NameFib, NameReason, Place, ReadError, ReadOptions, ReadReport, Source, open};
use crate::list::{Entries, Precedence, Scope, Verdict};
use crate::name::{Name, NameError};

/// The report of reading a list.
pub type ListReport = wirespeed_fib::read::ReadReport<ListFormat, NameReason>;
/// The reason why a list could not be read.
pub type ListError = wirespeed_fib::read::ReadError<ListFormat, NameReason>;

type Ledger = parts::Ledger<ListFormat, NameReason>;
type Fault = parts::Fault<ListFormat, NameReason>;
type End = parts::End<ListFormat, NameReason>;

/// The value of names whose address in a list is unspecified or loopback, and of Adblock rules.
pub const BLOCKED: &str = "blocked";

/// The most bytes by which a format is recognised.
const LOOK_AHEAD: usize = 64 << 10;

/// Options for reading a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// The format. By default recognised by content.
    pub format: Option<ListFormat>,
    /// Whether to pass over wrong lines and a truncated end, instead of refusing the file.
    pub lenient: bool,
    /// Whether to read only the ICANN section of the Public Suffix List. By default the private section is
    /// read, too.
    pub icann_only: bool,
}

/// The entries of lists, and the texts of their values.
#[derive(Clone, Debug, Default)]
pub struct DomainList {
    /// The entries.
    pub list: Entries,
    /// The values, from 1.
    pub labels: Labels,
    /// Names with several addresses in the list that is read.
    several: Several,
}

/// Reads a list.
///
/// ```
/// use wirespeed_namelookup::read::Source;
/// use wirespeed_namelookup::read::lists::{ListFormat, ListOptions, read_list};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("hosts");
/// std::fs::write(&path, "192.0.2.1 www.example.com www\n")?;
/// let (read, report) = read_list(&Source::Path(path), &ListOptions::default())?;
/// assert_eq!((report.format, report.routes, read.list.len()), (ListFormat::Hosts, 2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_list(source: &Source, options: &ListOptions) -> Result<(DomainList, ListReport), ListError> {
    let mut list = DomainList::default();
    let report = list.add(source, options)?;
    Ok((list, report))
}

/// Reads a list from a stream of bytes. `name` is for messages.
pub fn read_list_from(
    reader: impl Read + Send,
    name: &str,
    options: &ListOptions,
) -> Result<(DomainList, ListReport), ListError> {
    let mut list = DomainList::default();
    let report = list.add_from(reader, name, options)?;
    Ok((list, report))
}

/// A table of names, or a list.
#[derive(Clone, Debug)]
pub enum TableOrList {
    /// A table, whose entries all cover their name and all names beneath it.
    Table(NameFib, ReadReport),
    /// A list.
    List(DomainList, ListReport),
}

/// The reason why a file could be read neither as a table nor as a list.
#[derive(Debug, thiserror::Error)]
pub enum TableOrListError {
    /// A table could not be read, or the format is not known.
    #[error(transparent)]
    Table(#[from] ReadError),
    /// A list could not be read.
    #[error(transparent)]
    List(#[from] ListError),
}

/// The format of a list that a file is recognised as. `None` if it may be something else: a table of names.
pub fn recognise_list(source: &Source) -> Result<Option<ListFormat>, wirespeed_fib::read::OpenError> {
    let mut input = open(source)?;
    let (first, ends) = input.look_ahead(LOOK_AHEAD);
    Ok(ListFormat::recognise(first, ends))
}

/// Reads a table of names or a list. If neither of the options names a format, the content decides: a list
/// where [`ListFormat::recognise`] knows it, otherwise a table. A format of a list goes before one of a
/// table.
///
/// ```
/// use wirespeed_namelookup::read::lists::{ListOptions, TableOrList, read_table_or_list_from};
/// use wirespeed_namelookup::read::ReadOptions;
///
/// let read = |text: &'static str| {
///     read_table_or_list_from(text.as_bytes(), "file", &ReadOptions::default(), &ListOptions::default())
/// };
/// assert!(matches!(read("0.0.0.0 ads.example\n")?, TableOrList::List(..)));
/// assert!(matches!(read("ads.example 7\n")?, TableOrList::Table(..)));
/// # Ok::<(), wirespeed_namelookup::read::lists::TableOrListError>(())
/// ```
pub fn read_table_or_list(
    source: &Source,
    table: &ReadOptions,
    list: &ListOptions,
) -> Result<TableOrList, TableOrListError> {
    let input = open(source).map_err(ReadError::from)?;
    table_or_list(input, super::size_of_file(source), table, list)
}

/// Reads a table of names or a list from a stream of bytes. `name` is for messages.
pub fn read_table_or_list_from(
    reader: impl Read + Send,
    name: &str,
    table: &ReadOptions,
    list: &ListOptions,
) -> Result<TableOrList, TableOrListError> {
    let input = Input::new(Box::new(reader), name.to_owned()).map_err(ReadError::from)?;
    table_or_list(input, None, table, list)
}

fn table_or_list(
    mut input: Input<'_>,
    size: Option<u64>,
    table: &ReadOptions,
    list: &ListOptions,
) -> Result<TableOrList, TableOrListError> {
    let format = list.format.or_else(|| {
        let (first, ends) = input.look_ahead(LOOK_AHEAD);
        let is_open = table.format.is_none() && !table.columns.is_given();
        ListFormat::recognise(first, ends).filter(|_| is_open)
    });
    if format.is_none() {
        let (fib, report, _) = super::table_of(input, size, table)?;
        return Ok(TableOrList::Table(fib, report));
    }
    let mut read = DomainList::default();
    let report = read.add_input(input, &ListOptions { format, ..*list })?;
    Ok(TableOrList::List(read, report))
}

impl DomainList {
    /// Adds the entries of a list. After an error the entries before it stay.
    pub fn add(&mut self, source: &Source, options: &ListOptions) -> Result<ListReport, ListError> {
        self.add_input(open(source)?, options)
    }

    /// Adds the entries of a list in a stream of bytes. `name` is for messages.
    pub fn add_from(
        &mut self,
        reader: impl Read + Send,
        name: &str,
        options: &ListOptions,
    ) -> Result<ListReport, ListError> {
        self.add_input(Input::new(Box::new(reader), name.to_owned())?, options)
    }

    fn add_input(&mut self, mut input: Input<'_>, options: &ListOptions) -> Result<ListReport, ListError> {
        let format = match options.format {
            Some(format) => format,
            None => recognise(&mut input)?,
        };
        let mut ledger = Ledger::new(&input, format, options.lenient);
        self.list.start_reading();
        let end = match format {
            ListFormat::Hosts => hosts::read(&mut input, &mut ledger, self),
            ListFormat::Adblock => adblock::read(&mut input, &mut ledger, self),
            ListFormat::Dnsmasq => dnsmasq::read(&mut input, &mut ledger, self),
            ListFormat::Rpz => rpz::read(&mut input, &mut ledger, self),
            ListFormat::Psl => psl::read(&mut input, &mut ledger, self, options.icann_only),
        };
        let joined = self.several.join_all(&mut self.list, &mut self.labels);
        if let Err(End::Error(error)) = end {
            return Err(error);
        }
        let report = ledger.report;
        if let Err(cause) = joined {
            let place = Place::Line(input.lines_read());
            return Err(ListError::TooManyNextHops { name: report.name, place, cause });
        }
        if report.routes == 0 && !options.lenient {
            let ListReport { name, records, .. } = report;
            return Err(ListError::Nothing { name, wanted: "entries", records });
        }
        Ok(report)
    }

    /// Inserts an entry that was read.
    fn insert(
        &mut self,
        name: &Name,
        scope: Scope,
        precedence: Precedence,
        rule: Rule<'_>,
        ledger: &mut Ledger,
    ) -> Result<(), Fault> {
        let verdict = match rule {
            Rule::Exception => Verdict::Exception,
            Rule::Value(text) | Rule::OneOf(text) => {
                Verdict::value(self.labels.intern(text)?).expect("results start at 1")
            }
        };
        let before = self.list.replace(name, scope, precedence, verdict);
        if let Some(before) = before {
            let joins = matches!(rule, Rule::OneOf(_));
            self.several.meet((name, scope), before, (precedence, verdict), joins);
        }
        ledger.report.routes += 1;
        ledger.report.repeated += u64::from(before.is_some());
        Ok(())
    }
}

/// What a line says about its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule<'t> {
    Value(&'t str),
    /// A value, beside others that the list has for the name.
    OneOf(&'t str),
    Exception,
}

fn recognise(input: &mut Input<'_>) -> Result<ListFormat, ListError> {
    const SHOWN: usize = 40;
    let name = input.name().to_owned();
    let (first, ends) = input.look_ahead(LOOK_AHEAD);
    ListFormat::recognise(first, ends).ok_or_else(|| {
        let start = format!("\"{}\"", first[..first.len().min(SHOWN)].escape_ascii());
        ListError::UnknownFormat { name, start }
    })
}

/// Converts domains to names, in the same memory.
#[derive(Default)]
struct Domains {
    text: Vec<u8>,
}

impl Domains {
    /// The name of a domain that has no sign before it.
    fn name(&mut self, domain: &[u8]) -> Result<&Name, NameReason> {
        self.text.clear();
        plain_domain(domain, &mut self.text)?;
        if self.text.len() > Name::MAX_LEN {
            let (found, limit) = (self.text.len(), Name::MAX_LEN);
            return Err(NameError::TooLong { found, limit }.into());
        }
        Ok(Name::new_unchecked(&self.text))
    }
}

/// The value of an address: [`BLOCKED`] for one where no service is, or the address.
fn value_of(address: IpAddr, text: &str) -> &str {
    if address.is_unspecified() || address.is_loopback() { BLOCKED } else { text }
}

/// A word that is an address, perhaps with a zone.
fn address(word: &[u8]) -> Option<(IpAddr, &str)> {
    let text = std::str::from_utf8(word).ok()?;
    let address = match text.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && zone.bytes().all(|b| b.is_ascii_graphic()) => {
            IpAddr::V6(address.parse().ok()?)
        }
        _ => text.parse().ok()?,
    };
    Some((address, text))
}
