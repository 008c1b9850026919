//! Errors of reading, with their places: one enum for the caller, and the small enums that parsers use.
//!
//! Readers of other domains have their own formats `F` and reasons `R`. The default types are those of
//! routes.

use std::fmt::{self, Debug, Display};
use std::io;

use wirespeed_input::{OpenError, plural};

use super::format::Format;
use crate::next_hop::TooManyNextHops;
use crate::prefix::PrefixError;

/// A place in a file. Displays as the text after the file's name in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, from 1.
    Line(u64),
    /// A line and column of JSON, from 1.
    Column(u64, u64),
    /// A line of JSON and the entry that ends there, both from 1.
    Entry(u64, u64),
    /// A byte of binary data, from 0, counted after decompression.
    Byte(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Column(line, column) => write!(f, ":{line}:{column}"),
            Self::Entry(line, entry) => write!(f, ":{line}, entry {entry}"),
            Self::Byte(offset) => write!(f, ", byte {offset}"),
        }
    }
}

/// The reason why a line was passed over, as a [`Ledger`](super::parts::Ledger) counts it.
pub trait Reason: Copy + PartialEq + Debug + Display {
    /// An empty line.
    const BLANK: Self;
    /// A comment line.
    const COMMENT: Self;
    /// A line that is too long to be read.
    const LINE_TOO_LONG: Self;
    /// A cell of CSV whose quotes do not fit.
    const QUOTES: Self;
    /// Bytes that are not text.
    const NOT_TEXT: Self;

    /// Whether the reason is an error in the file, which strict reading refuses.
    fn is_fault(self) -> bool;

    /// Whether two reasons are counted together: they differ in numbers only.
    fn same_kind(self, other: Self) -> bool {
        self == other
    }
}

/// The reason why a line, entry or record did not become a route or an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// An empty line.
    #[error("blank")]
    Blank,
    /// A line that starts with `#`.
    #[error("a comment")]
    Comment,
    /// An entry of a peer that was not chosen.
    #[error("of another peer")]
    OtherPeer,
    /// A second path of the chosen peer for a prefix (add-path).
    #[error("another path of the same peer")]
    OtherPath,
    /// Neither IPv4 nor IPv6 unicast.
    #[error("neither IPv4 nor IPv6 unicast")]
    OtherFamily,
    /// A record of a kind that holds no route or update.
    #[error("a record of another kind")]
    OtherRecord,
    /// A route of another table, or a route that does not depend on the destination only.
    #[error("of another routing table")]
    OtherTable,
    /// A route of a VRF that is not read.
    #[error("of another VRF")]
    OtherVrf,
    /// A route that the router does not use for forwarding.
    #[error("not selected and installed")]
    NotInstalled,
    /// Another way in a MaxMind DB to the networks of IPv4.
    #[error("an alias of the IPv4 networks")]
    Alias,
    /// A record that has none of the fields that are named, or no field.
    #[error("a record without the fields that are named")]
    NoField,
    /// There is no valid prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// A next hop is missing.
    #[error("next hop missing")]
    NextHopMissing,
    /// A next hop in a list of prefixes whose first line has none.
    #[error("a next hop, but the lines before have none")]
    NextHopUnexpected,
    /// An object of JSON with a key twice.
    #[error("a key twice in an object")]
    KeyTwice,
    /// A mask whose ones are not all at the start.
    #[error("not a netmask: its ones must come first (write a prefix as address/length or address/netmask)")]
    Mask,
    /// A line whose columns are separated by commas or semicolons.
    #[error(
        "looks like CSV, whose first line must name its columns (--format csv reads it so); or separate columns by blanks"
    )]
    Csv,
    /// A cell of CSV whose quotes do not fit: one that nothing closes, or text beside them.
    #[error("quotes that don't fit: a cell is either within quotes, with quotes in it doubled, or has none")]
    Quotes,
    /// A longest length of a VRP that is shorter than its prefix, or longer than an address.
    #[error("not a longest length: it is a number from the prefix's length to the address's")]
    MaxLength,
    /// A range of addresses that is none.
    #[error("not a range: its ends are of two families, or the last address is before the first")]
    Range,
    /// Digits that are not the number of an address, or a number beside an address in dots or colons.
    #[error(
        "not the number of an address: it is decimal, without a leading zero, and up to 4294967295 for IPv4"
    )]
    AddressNumber,
    /// A number where addresses are, of a family that nothing tells.
    #[error(
        "a number, whose family has to be stated unless it is in a range of columns like ip_from and ip_to"
    )]
    NumberFamily,
    /// A next hop with a blank, a `#` or a control character, or a next hop that is too long.
    #[error("not a next hop")]
    NextHop,
    /// More columns than the format has.
    #[error("too many columns")]
    TooManyColumns,
    /// Fewer columns than the format has.
    #[error("too few columns")]
    TooFewColumns,
    /// An update that neither announces nor withdraws.
    #[error("neither an announcement (A) nor a withdrawal (W)")]
    UpdateKind,
    /// Not a number of seconds.
    #[error("not a time in seconds")]
    Time,
    /// Not a number, or a number out of range.
    #[error("not a number in range")]
    Number,
    /// A peer address or AS number that is not valid.
    #[error("not a peer address and AS number")]
    BadPeer,
    /// A path of AS numbers that is none, where the origin of a route is wanted.
    #[error("not an AS path")]
    Path,
    /// Bytes that are not UTF-8 text.
    #[error("not text")]
    NotText,
    /// A line that is longer than any real line.
    #[error("an overlong line")]
    LineTooLong,
    /// JSON of another shape than the format has.
    #[error("not a route object")]
    Shape,
    /// A member of a JSON object that the format does not have, so that nobody knows what it asks for.
    #[error("a member of the object that is not known")]
    Member,
    /// A word that the format does not have.
    #[error("a word that is not known")]
    Word,
    /// An element of a set that was not chosen, or that holds more than addresses.
    #[error("of another set")]
    OtherSet,
    /// An element of a set that the file does not create, or whose options are not known.
    #[error("an element of a set that is not known")]
    UnknownSet,
    /// A set that rules add elements to.
    #[error("a set that rules may change")]
    Dynamic,
    /// An element that ends by itself after some time.
    #[error("an element with a timeout, which ends by itself")]
    Timeout,
    /// An answer that tells of an error in place of its result.
    #[error("an answer that tells of an error")]
    Failure,
    /// An indented line that continues no route.
    #[error("a continuation of no route")]
    Continuation,
    /// A record whose content does not fit its length.
    #[error("a malformed record")]
    Record,
    /// A record that is longer than any real record.
    #[error("an overlong record")]
    RecordTooLong,
    /// A table entry whose peer is not in the peer table.
    #[error("a peer that is not in the peer table")]
    UnknownPeer,
}

impl SkipReason {
    /// Whether the reason is an error in the file, which strict reading refuses.
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Blank
                | Self::Comment
                | Self::OtherPeer
                | Self::OtherPath
                | Self::OtherFamily
                | Self::OtherRecord
                | Self::OtherTable
                | Self::OtherVrf
                | Self::OtherSet
                | Self::NotInstalled
                | Self::Alias
                | Self::NoField
        )
    }
}

impl Reason for SkipReason {
    const BLANK: Self = Self::Blank;
    const COMMENT: Self = Self::Comment;
    const LINE_TOO_LONG: Self = Self::LineTooLong;
    const QUOTES: Self = Self::Quotes;
    const NOT_TEXT: Self = Self::NotText;

    fn is_fault(self) -> bool {
        Self::is_fault(self)
    }

    fn same_kind(self, other: Self) -> bool {
        use PrefixError::{TooLong, WrongFamily};
        match (self, other) {
            (Self::Prefix(TooLong { .. }), Self::Prefix(TooLong { .. }))
            | (Self::Prefix(WrongFamily { .. }), Self::Prefix(WrongFamily { .. })) => true,
            _ => self == other,
        }
    }
}

/// The reason why a file could not be read. Displays as one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError<F = Format, R = SkipReason> {
    /// An error of the operating system.
    #[error("{name}: {cause}")]
    Io {
        /// The file.
        name: String,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A line, entry or record is wrong (strict reading only).
    #[error("{name}{place}: {reason}{detail}")]
    Bad {
        /// The file.
        name: String,
        /// The place in the file.
        place: Place,
        /// The reason.
        reason: R,
        /// Empty, or the wrong text, starting with `: `.
        detail: String,
    },
    /// The file ends too early, or can't be decoded from here on (strict reading only).
    #[error("{name}{place}: {reason}; {records} whole {} before it{}", plural(*.records, "record"), with_routes(*.routes))]
    CutOff {
        /// The file.
        name: String,
        /// The place where it ends.
        place: Place,
        /// The reason.
        reason: String,
        /// The number of whole lines, entries or records before the end.
        records: u64,
        /// The number of routes or updates taken so far. 0 while the peers of a file are counted.
        routes: u64,
    },
    /// No table of such a name is built in.
    #[error("{name}: no such table is built in; there is builtin:bogons")]
    NotBuiltIn {
        /// The name, `builtin:` and all.
        name: String,
    },
    /// The format is not known.
    #[error("{name}: unknown format; it starts with {start}")]
    UnknownFormat {
        /// The file.
        name: String,
        /// Its first bytes, escaped.
        start: String,
    },
    /// The file holds a table instead of updates, or updates instead of a table.
    #[error("{name}: {format} holds no {wanted}")]
    WrongKind {
        /// The file.
        name: String,
        /// The format of the file.
        format: F,
        /// The wanted content.
        wanted: &'static str,
    },
    /// The build leaves the format out.
    #[error("{name}: {format} needs a build with the feature `{feature}`")]
    LeftOut {
        /// The file.
        name: String,
        /// The format of the file.
        format: F,
        /// The cargo feature that reads it.
        feature: &'static str,
    },
    /// The file holds nothing of the wanted content (strict reading only).
    #[error("no {wanted} in {name}{}", passed_over(*.records))]
    Nothing {
        /// The file.
        name: String,
        /// The wanted content.
        wanted: &'static str,
        /// The number of other records.
        records: u64,
    },
    /// The first line of a CSV file does not name the columns that are wanted.
    #[error("{name}{place}: {what}")]
    Columns {
        /// The file.
        name: String,
        /// The place of the first line.
        place: Place,
        /// The column that is missing, or there twice, and the names of the columns, or the first few.
        what: Box<str>,
    },
    /// The file has no such peer.
    #[error("{name}: no peer {peer}; there are {known}")]
    NoSuchPeer {
        /// The file.
        name: String,
        /// The given peer.
        peer: String,
        /// The peers of the file, or the first few.
        known: String,
    },
    /// The file has routes of several VRFs, and none was chosen.
    #[error("{name}: several VRFs: choose one with lookupctl build --vrf: {known}")]
    SeveralVrfs {
        /// The file.
        name: String,
        /// The VRFs of the file, or the first few.
        known: String,
    },
    /// The file has no such VRF.
    #[error("{name}: no VRF {vrf}; there are {known}")]
    NoSuchVrf {
        /// The file.
        name: String,
        /// The given VRF.
        vrf: String,
        /// The VRFs of the file, or the first few.
        known: String,
    },
    /// The file has several sets of addresses, and none was chosen.
    #[error("{name}: several sets: choose one with lookupctl build --set: {known}")]
    SeveralSets {
        /// The file.
        name: String,
        /// The sets of the file, or the first few.
        known: String,
    },
    /// The file has no such set of addresses.
    #[error("{name}: no set {set} of addresses; there are {known}")]
    NoSuchSet {
        /// The file.
        name: String,
        /// The given set.
        set: String,
        /// The sets of the file, or the first few.
        known: String,
    },
    /// There are more distinct next hops than indexes.
    #[error("{name}{place}: {cause}")]
    TooManyNextHops {
        /// The file.
        name: String,
        /// The place in the file.
        place: Place,
        /// The error.
        cause: TooManyNextHops,
    },
}

impl<F, R> From<OpenError> for ReadError<F, R> {
    fn from(OpenError { name, cause }: OpenError) -> Self {
        Self::Io { name, cause }
    }
}

fn with_routes(routes: u64) -> String {
    if routes == 0 { String::new() } else { format!(", {routes} taken") }
}

fn passed_over(records: u64) -> String {
    if records == 0 {
        String::new()
    } else {
        format!(" ({records} {} of other kinds)", plural(records, "record"))
    }
}

/// The answer of a parser that has no result for a line, entry or record.
#[derive(Debug)]
pub enum Fault<F = Format, R = SkipReason> {
    /// The line is counted and passed over, or ends a strict reading.
    Skip(R),
    /// There are too many next hops; this ends every reading.
    Full(TooManyNextHops),
    /// The caller wants no more.
    Stop,
    /// The chosen peer is known only after a pass over the whole file.
    NeedSurvey,
    /// An earlier error has ended the reading.
    Ended(Box<ReadError<F, R>>),
}

impl<F, R> From<End<F, R>> for Fault<F, R> {
    fn from(end: End<F, R>) -> Self {
        match end {
            End::Error(error) => Self::Ended(Box::new(error)),
            End::Stop => Self::Stop,
            End::NeedSurvey => Self::NeedSurvey,
        }
    }
}

impl<F, R: Reason> From<R> for Fault<F, R> {
    fn from(reason: R) -> Self {
        Self::Skip(reason)
    }
}

impl From<PrefixError> for Fault {
    fn from(reason: PrefixError) -> Self {
        Self::Skip(reason.into())
    }
}

impl<F, R> From<TooManyNextHops> for Fault<F, R> {
    fn from(full: TooManyNextHops) -> Self {
        Self::Full(full)
    }
}

/// The reason why a reading ends before its input.
#[derive(Debug)]
pub enum End<F = Format, R = SkipReason> {
    /// An error ended it.
    Error(ReadError<F, R>),
    /// The caller wants no more.
    Stop,
    /// The chosen peer is known only after a pass over the whole file.
    NeedSurvey,
}

impl<F, R> From<ReadError<F, R>> for End<F, R> {
    fn from(error: ReadError<F, R>) -> Self {
        Self::Error(error)
    }
}
