//! Readers of tables and updates in many formats.
//!
//! ```text
//! Source ─► open: decompress ─► recognise the format ─► its reader ─► Fib + ReadReport
//!                                                             └────► TimedUpdate, one by one
//! ```
//!
//! All readers stream: none holds a file in memory. By default they are strict: the first wrong line, or a
//! truncated file, is an error with its place. With [`ReadOptions::lenient`] wrong lines are passed over and
//! counted by reason, and the whole part of a truncated file is taken. Lines that are always passed over
//! (comments, entries of other peers, families other than IPv4 and IPv6 unicast) are counted in both modes.
//!
//! ```
//! use wirespeed_fib::read::{self, ReadOptions};
//!
//! let table = "10.0.0.0/8 192.0.2.1\n2001:db8::/32 fe80::1%eth0\n";
//! let (fib, report) = read::read_fib_from(table.as_bytes(), "table.txt", &ReadOptions::default())?;
//! assert_eq!((fib.v4.len(), fib.v6.len(), report.records), (1, 1, 2));
//!
//! let error = read::read_fib_from(&b"10.0.0.1/8 a\n"[..], "table.txt", &ReadOptions::default()).unwrap_err();
//! assert_eq!(error.to_string(), "table.txt:1: host bits are set: \"10.0.0.1/8 a\"");
//! # Ok::<(), read::ReadError>(())
//! ```

pub(crate) mod any_prefix;
mod bgpdump;
mod built_in;
mod cloud;
mod csv;
mod delegated;
mod error;
mod field_type;
mod fields;
mod format;
mod frr;
mod ip_route;
mod ip_route_json;
mod ipset;
mod json;
mod kernel;
mod members;
#[cfg(feature = "mmdb")]
mod mmdb;
mod mmdb_marker;
#[cfg(feature = "mrt")]
mod mrt;
pub(crate) mod mrt_header;
mod nft_sets;
mod number;
mod peers;
pub(crate) mod pfx2as;
mod plain;
mod recognise;
pub mod record;
mod report;
mod starts;
mod stated;
pub(crate) mod table;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod text;
mod updates;
mod vrfs;
mod vrps;
mod vrps_header;

use std::borrow::Cow;
use std::io::Read;
use std::ops::ControlFlow;

/// The building blocks of readers, for other domains: lines with their places, strict and lenient reading,
/// reports.
///
/// A reader has its own formats `F` and reasons `R`. It opens a [`Ledger`] on an [`Input`], and gives the
/// [`Fault`] of each line to the ledger through [`each_line`](parts::each_line).
///
/// ```
/// use wirespeed_fib::read::parts::{Ledger, each_line, split_word};
/// use wirespeed_fib::read::{Format, Input, SkipReason};
///
/// let mut input = Input::new(Box::new(&b"# ports\n80\nhttp\n"[..]), "ports".into())?;
/// let mut ledger: Ledger = Ledger::new(&input, Format::Plain, true);
/// let mut ports = Vec::new();
/// each_line(&mut input, &mut ledger, |line, _, _| {
///     let port = std::str::from_utf8(split_word(line).0).ok().and_then(|word| word.parse::<u16>().ok());
///     ports.push(port.ok_or(SkipReason::Number)?);
///     Ok(())
/// })
/// .expect("lenient");
/// assert_eq!((ports, ledger.report.faults()), (vec![80], 1));
/// # Ok::<(), wirespeed_fib::read::ReadError>(())
/// ```
pub mod parts {
    pub use super::error::{End, Fault, Reason};
    pub use super::report::Ledger;
    pub use super::text::{each_line, each_line_except, next_hop, split_word};
    pub use super::updates::time;

    /// CSV and TSV: records, their cells, the columns of the first line, and cells as the text of a label.
    pub mod csv {
        pub use super::super::csv::cells::{BadQuotes, Cells, Separator};
        pub use super::super::csv::header::{column, listed, usual_column};
        pub use super::super::csv::label::write as write_label;
        pub use super::super::csv::record::each_record;
    }
}

pub use built_in::is_built_in;
pub use csv::{Columns, PrefixColumns};
pub use error::{Place, ReadError, SkipReason};
pub use field_type::{FieldType, FieldTypes, NoFieldType, SeveralTypes};
pub use format::{Format, UnknownFormat};
pub use number::address_of_number;
pub use peers::{NoPeer, PeerChoice};
pub use report::{Loss, MEMBER, Peer, ReadReport, Skipped};
pub use stated::{BadOption, Unheeded};
pub use updates::TimedUpdate;
pub use wirespeed_input::{Again, Compression, Input, Line, OpenError, Source, open};

use crate::fib::Fib;
use crate::next_hop::NextHops;
use crate::rpki::Vrps;
use error::{End, Fault};
use peers::PeerBook;
use report::Ledger;
use table::Table;
use updates::Updates;

/// The most bytes by which a format is recognised.
const LOOK_AHEAD: usize = 64 << 10;

/// The next hop of a record of CSV whose values are all empty. Such a record hides those of wider prefixes.
pub const NO_VALUE: &str = "-";

/// Options for reading. [`ReadOptions::state`] takes one by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format. By default recognised by content.
    pub format: Option<Format>,
    /// Whether to pass over wrong lines and a truncated end, instead of refusing the file.
    pub lenient: bool,
    /// The peer whose routes are taken from a file with several peers. The default is one peer for each
    /// family: for a table the peer with most prefixes; for updates the table's peer
    /// ([`peers_of_table`](Self::peers_of_table)), or the peer with most updates if the table has none.
    pub peer: Option<PeerChoice>,
    /// The peers of the table, for reading its updates: [`ReadReport::peer_by_family`] of the table.
    pub peers_of_table: [Option<Peer>; 2],
    /// The VRF whose routes are taken from a file with several VRFs (FRR). Without it such a file is refused.
    pub vrf: Option<String>,
    /// The set whose members are taken from a file with several sets (ipset, nft). Without it such a file is
    /// refused.
    pub set: Option<String>,
    /// Whether to clear host bits of prefixes and count the prefixes, instead of refusing them. Bits after
    /// the prefix in MRT are always ignored.
    pub mask_host_bits: bool,
    /// The columns of CSV, or the fields of another format that has fields ([`Format::has_fields`]) as its
    /// values. A table for which columns are named is of such a format, if no format is given.
    pub columns: Columns,
    /// Whether routes and updates of MRT and bgpdump get the origin of their AS path in place of their next
    /// hop: an AS number, or a set as `{1,2}`. A route with an empty path is of its peer's AS.
    pub origins: bool,
    /// Whether a prefix of pfx2as with several origins gets all of them, as `30_10_20`. By default it gets
    /// the first, the most frequent one.
    pub all_origins: bool,
}

/// Reads a table. The path `builtin:bogons` names the table that is built in ([`bogons`](crate::bogons)), of
/// CSV with the columns `name` and `rfc`.
///
/// A file with several peers is read twice, unless [`ReadOptions::peer`] makes that unnecessary: the first
/// pass finds the peer with most prefixes. Standard input is kept for the second pass, in memory up to 64 MiB
/// and then in a temporary file.
pub fn read_fib(source: &Source, options: &ReadOptions) -> Result<(Fib, ReadReport), ReadError> {
    match built_in::of(source)? {
        Some(table) => {
            let options = ReadOptions { format: Some(Format::Csv), ..options.clone() };
            read_fib_from(table.csv.as_bytes(), &table.name, &options)
        }
        None => read_table(&Again::new(source)?, options),
    }
}

/// Reads a table from a stream of bytes. `name` is for messages.
pub fn read_fib_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Fib, ReadReport), ReadError> {
    read_table(&Again::from_reader(reader, name.to_owned()), options)
}

/// Reads validated ROA payloads.
pub fn read_vrps(source: &Source, options: &ReadOptions) -> Result<(Vrps, ReadReport), ReadError> {
    read_payloads(&Again::new(source)?, options)
}

/// Reads validated ROA payloads from a stream of bytes. `name` is for messages.
pub fn read_vrps_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
) -> Result<(Vrps, ReadReport), ReadError> {
    read_payloads(&Again::from_reader(reader, name.to_owned()), options)
}

/// Reads updates and gives each to `give`, until `give` ends the reading. Next hops get their indexes in
/// `next_hops`: pass those of the table if the updates are for one.
///
/// A file with several peers is read twice, like a table, unless [`ReadOptions::peer`] makes that
/// unnecessary.
pub fn read_updates(
    source: &Source,
    options: &ReadOptions,
    next_hops: &mut NextHops,
    mut give: impl FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    stream_updates(&Again::new(source)?, options, next_hops, &mut give)
}

/// Reads updates from a stream of bytes. `name` is for messages.
pub fn read_updates_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    next_hops: &mut NextHops,
    mut give: impl FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    stream_updates(&Again::from_reader(reader, name.to_owned()), options, next_hops, &mut give)
}

/// Reads all updates of a source.
pub fn collect_updates(
    source: &Source,
    options: &ReadOptions,
    next_hops: &mut NextHops,
) -> Result<(Vec<TimedUpdate>, ReadReport), ReadError> {
    let mut updates = Vec::new();
    let report = read_updates(source, options, next_hops, |update| {
        updates.push(update);
        ControlFlow::Continue(())
    })?;
    Ok((updates, report))
}

/// Reads all updates of a stream of bytes. `name` is for messages.
pub fn collect_updates_from(
    reader: impl Read + Send,
    name: &str,
    options: &ReadOptions,
    next_hops: &mut NextHops,
) -> Result<(Vec<TimedUpdate>, ReadReport), ReadError> {
    let mut updates = Vec::new();
    let report = read_updates_from(reader, name, options, next_hops, |update| {
        updates.push(update);
        ControlFlow::Continue(())
    })?;
    Ok((updates, report))
}

fn read_table(again: &Again<'_>, options: &ReadOptions) -> Result<(Fib, ReadReport), ReadError> {
    let mut book = PeerBook::of_table(options.peer);
    let (table, ledger) = loop {
        let (mut input, mut ledger) = start(again.open()?, options, Format::holds_routes, "routes")?;
        let mut table = Table::new(options.origins, options.all_origins);
        if !ledger.report.format.names_peers() || book.is_decided() {
            again.last_time();
        }
        match pass(&mut input, &mut ledger, &mut table, &mut book, options) {
            Ok(()) if book.is_survey() => book.end_survey(),
            Ok(()) => break (table, ledger),
            Err(End::NeedSurvey) => book.start_survey(),
            Err(End::Error(error)) => return Err(error),
            Err(End::Stop) => break (table, ledger),
        }
    };
    let mut report = ledger.report;
    report.peers = book.close(&report.name)?;
    finish(report, options, "routes").map(|report| (table.fib, report))
}

/// Reads a table once from start to end.
fn pass(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    book: &mut PeerBook,
    options: &ReadOptions,
) -> Result<(), End> {
    match ledger.report.format {
        Format::Plain => plain::read(input, ledger, table),
        Format::Pfx2as => pfx2as::read(input, ledger, table),
        Format::Bgpdump => bgpdump::read(input, ledger, table, book),
        Format::IpRoute => ip_route::read(input, ledger, table),
        Format::IpRouteJson => ip_route_json::read(input, ledger, table),
        Format::FrrJson => frr::read(input, ledger, table, options.vrf.as_deref()),
        Format::Csv => csv::read(input, ledger, table, &options.columns),
        Format::Ipset => ipset::read(input, ledger, table, options.set.as_deref()),
        Format::NftSets => nft_sets::read(input, ledger, table, options.set.as_deref()),
        Format::Delegated => delegated::read(input, ledger, table, &options.columns),
        Format::Aws | Format::Gcp | Format::Azure | Format::Oracle | Format::Cloudflare => {
            cloud::read(input, ledger, table, &options.columns)
        }
        #[cfg(feature = "mrt")]
        Format::Mrt => mrt::read(input, ledger, table, book),
        #[cfg(feature = "mmdb")]
        Format::Mmdb => mmdb::read(input, ledger, table, &options.columns),
        // `start` has refused these formats.
        #[cfg(not(feature = "mmdb"))]
        Format::Mmdb => Ok(()),
        #[cfg(not(feature = "mrt"))]
        Format::Mrt => Ok(()),
        Format::Updates | Format::VrpJson | Format::VrpCsv => Ok(()),
    }
}

fn read_payloads(again: &Again<'_>, options: &ReadOptions) -> Result<(Vrps, ReadReport), ReadError> {
    again.last_time();
    let (mut input, mut ledger) = start(again.open()?, options, Format::holds_vrps, "VRPs")?;
    let vrps = match vrps::read(&mut input, &mut ledger) {
        Ok(vrps) => vrps,
        Err(End::Error(error)) => return Err(error),
        // The reader asks for neither.
        Err(End::Stop | End::NeedSurvey) => Vrps::default(),
    };
    finish(ledger.report, options, "VRPs").map(|report| (vrps, report))
}

fn stream_updates(
    again: &Again<'_>,
    options: &ReadOptions,
    next_hops: &mut NextHops,
    give: &mut dyn FnMut(TimedUpdate) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    let mut book = PeerBook::of_updates(options.peer, options.peers_of_table);
    let ledger = loop {
        let (mut input, mut ledger) = start(again.open()?, options, Format::holds_updates, "updates")?;
        if !ledger.report.format.names_peers() || book.is_decided() {
            again.last_time();
        }
        let mut updates = Updates::new(next_hops, &mut book, options.origins, give);
        let end = match ledger.report.format {
            Format::Bgpdump => bgpdump::read_updates(&mut input, &mut ledger, &mut updates),
            #[cfg(feature = "mrt")]
            Format::Mrt => mrt::read_updates(&mut input, &mut ledger, &mut updates),
            _ => updates::read(&mut input, &mut ledger, &mut updates),
        };
        match end {
            Ok(()) if book.is_survey() => book.end_survey(),
            Ok(()) | Err(End::Stop) => break ledger,
            Err(End::NeedSurvey) => book.start_survey(),
            Err(End::Error(error)) => return Err(error),
        }
    };
    let mut report = ledger.report;
    report.peers = book.close(&report.name)?;
    finish(report, options, "updates")
}

/// Finds the format of an input, and opens its ledger.
fn start<'i>(
    mut input: Input<'i>,
    options: &ReadOptions,
    fits: fn(Format) -> bool,
    wanted: &'static str,
) -> Result<(Input<'i>, Ledger), ReadError> {
    let format = match options.format {
        Some(format) => format,
        None if options.columns.is_given() && wanted == "routes" => of_fields(&mut input),
        None => recognise(&mut input, options, wanted)?,
    };
    if !fits(format) {
        return Err(ReadError::WrongKind { name: input.name().to_owned(), format, wanted });
    }
    if let Some(feature) = format.missing_feature() {
        return Err(ReadError::LeftOut { name: input.name().to_owned(), format, feature });
    }
    let mut ledger = Ledger::new(&input, format, options.lenient);
    ledger.masks_host_bits = options.mask_host_bits;
    Ok((input, ledger))
}

/// The label that fields make.
pub(crate) fn label_text(is_one: bool, fields: &[(String, String)]) -> String {
    let mut text = String::new();
    csv::label::write(&mut text, is_one, fields.iter().map(|(name, value)| (&**name, &**value)));
    text
}

/// The fields that a label stands for. `None` if it is none of several columns.
pub(crate) fn label_fields(text: &str) -> Option<Vec<(String, String)>> {
    csv::label::fields(text)
}

/// The value that a label of one column stands for.
pub(crate) fn label_value(text: &str) -> Option<String> {
    csv::label::unescaped(text)
}

/// Whether a reader of CSV takes a column of this name, after one named `prefix`, for a value.
pub(crate) fn is_csv_value(name: &str) -> bool {
    csv::header::is_value(name)
}

/// A cell of CSV with the text, in quotes if it needs them.
pub(crate) fn quoted_in_csv(text: &str) -> Cow<'_, str> {
    csv::cells::quoted(text)
}

/// The format of a file with columns to choose. What is recognised as no other format with fields is CSV.
fn of_fields(input: &mut Input<'_>) -> Format {
    let format = Format::recognise(input.look_ahead(LOOK_AHEAD).0);
    format.filter(|format| format.has_fields()).unwrap_or(Format::Csv)
}

fn recognise(
    input: &mut Input<'_>,
    options: &ReadOptions,
    wanted: &'static str,
) -> Result<Format, ReadError> {
    const SHOWN: usize = 40;
    let name = input.name().to_owned();
    let default = if wanted == "updates" { Format::Updates } else { Format::Plain };
    let (first, ends) = input.look_ahead(LOOK_AHEAD);
    if !first.split(|&b| b == b'\n').any(is_significant) {
        // There is no line to recognise. The reader reports the rest, also an error.
        return match ends && !options.lenient {
            true => Err(ReadError::Nothing { name, wanted, records: 0 }),
            false => Ok(default),
        };
    }
    Format::recognise(first).ok_or_else(|| {
        let start = format!("\"{}\"", first[..first.len().min(SHOWN)].escape_ascii());
        ReadError::UnknownFormat { name, start }
    })
}

/// Whether a line is neither blank nor a comment.
fn is_significant(line: &[u8]) -> bool {
    !matches!(line.trim_ascii().first(), None | Some(b'#'))
}

/// Makes the report of a successful reading. Strict reading fails if it found nothing.
fn finish(report: ReadReport, options: &ReadOptions, wanted: &'static str) -> Result<ReadReport, ReadError> {
    if report.routes == 0 && !options.lenient {
        let ReadReport { name, records, .. } = report;
        return Err(ReadError::Nothing { name, wanted, records });
    }
    Ok(report)
}
