//! What can go wrong while reading, and where: one enum for the caller, and the small ones that the parsers
//! use.
//!
//! Readers of other things than routes have formats `F` and reasons `R` of their own; without these the types
//! are those of routes.

use std::fmt::{self, Debug, Display};
use std::io;

use wirespeed_input::{OpenError, plural};

use super::format::Format;
use crate::next_hop::TooManyNextHops;
use crate::prefix::PrefixError;

/// A place in a file. Displays as what follows the file's name in a message.
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

/// Why a line was passed over, as a [`Ledger`](super::parts::Ledger) counts it.
pub trait Reason: Copy + PartialEq + Debug + Display {
    /// Nothing on the line.
    const BLANK: Self;
    /// A line that is a comment.
    const COMMENT: Self;
    /// A line longer than any that is read.
    const LINE_TOO_LONG: Self;

    /// Whether it is a fault of the file, which strict reading refuses, rather than something to pass over.
    fn is_fault(self) -> bool;

    /// Whether two are counted together: the same but for the numbers in them.
    fn same_kind(self, other: Self) -> bool {
        self == other
    }
}

/// Why a line, entry or record did not become a route or an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// Nothing on the line.
    #[error("blank")]
    Blank,
    /// A line that starts with `#`.
    #[error("a comment")]
    Comment,
    /// An entry of a peer that was not chosen.
    #[error("of another peer")]
    OtherPeer,
    /// A further path of the chosen peer for the same prefix (add-path).
    #[error("another path of the same peer")]
    OtherPath,
    /// Neither IPv4 nor IPv6 unicast.
    #[error("neither IPv4 nor IPv6 unicast")]
    OtherFamily,
    /// A record of a kind that holds no route or update.
    #[error("a record of another kind")]
    OtherRecord,
    /// A route of another table, or one that does not go by the destination alone.
    #[error("of another routing table")]
    OtherTable,
    /// A route of another VRF than the one that is read.
    #[error("of another VRF")]
    OtherVrf,
    /// A route that the router does not forward by.
    #[error("not selected and installed")]
    NotInstalled,
    /// Where a prefix should be there is none.
    #[error("{0}")]
    Prefix(#[from] PrefixError),
    /// No next hop where one is needed.
    #[error("next hop missing")]
    NextHopMissing,
    /// A next hop in a list of prefixes, whose first line has none.
    #[error("a next hop, where the lines before it have none")]
    NextHopUnexpected,
    /// A mask whose ones do not all come first.
    #[error(
        "not a netmask: its ones have to come first (a prefix is written as address/length or address/netmask)"
    )]
    Mask,
    /// A line whose columns are separated by commas or semicolons.
    #[error("looks like CSV: columns are to be separated by blanks, and no heading before them")]
    Csv,
    /// A next hop with a blank, a `#` or a control character in it, or an overlong one.
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
    /// Not a number, or one out of range.
    #[error("not a number in range")]
    Number,
    /// A peer address or AS that is none.
    #[error("not a peer address and AS number")]
    BadPeer,
    /// Bytes that are not UTF-8 text.
    #[error("not text")]
    NotText,
    /// A line longer than any real one.
    #[error("an overlong line")]
    LineTooLong,
    /// JSON of another shape than the format's.
    #[error("not a route object")]
    Shape,
    /// An indented line with nothing above that it continues.
    #[error("a continuation of no route")]
    Continuation,
    /// A record whose content does not fit its length.
    #[error("a malformed record")]
    Record,
    /// A record longer than any real one.
    #[error("an overlong record")]
    RecordTooLong,
    /// A table entry that names a peer the file has not introduced.
    #[error("a peer that is not in the peer table")]
    UnknownPeer,
}

impl SkipReason {
    /// Whether it is a fault of the file, which strict reading refuses, rather than something to pass over.
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
                | Self::NotInstalled
        )
    }
}

impl Reason for SkipReason {
    const BLANK: Self = Self::Blank;
    const COMMENT: Self = Self::Comment;
    const LINE_TOO_LONG: Self = Self::LineTooLong;

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

/// Why a file could not be read. Displays as one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError<F = Format, R = SkipReason> {
    /// The operating system refused.
    #[error("{name}: {source}")]
    Io {
        /// The file.
        name: String,
        /// What it said.
        source: io::Error,
    },
    /// A line, entry or record is no good (strict reading only).
    #[error("{name}{place}: {reason}{detail}")]
    Bad {
        /// The file.
        name: String,
        /// Where in it.
        place: Place,
        /// What is wrong.
        reason: R,
        /// Empty, or what was there, from `: ` on.
        detail: String,
    },
    /// The file ends in the middle of something, or cannot be decoded from here on (strict reading only).
    #[error("{name}{place}: {reason}; {records} whole {} before it{}", plural(*.records, "record"), with_routes(*.routes))]
    CutOff {
        /// The file.
        name: String,
        /// Where it ends.
        place: Place,
        /// How it shows.
        reason: String,
        /// Whole lines, entries or records before it.
        records: u64,
        /// Routes or updates taken from them so far; none while a file with many peers is only looked over.
        routes: u64,
    },
    /// None of the known formats.
    #[error("{name}: unknown format; it starts with {start}")]
    UnknownFormat {
        /// The file.
        name: String,
        /// Its first bytes, escaped.
        start: String,
    },
    /// A table where updates are wanted, or updates where a table is wanted.
    #[error("{name}: {format} holds no {wanted}")]
    WrongKind {
        /// The file.
        name: String,
        /// The format it is in.
        format: F,
        /// What was to be read.
        wanted: &'static str,
    },
    /// A format that this build leaves out.
    #[error("{name}: {format} needs a build with the feature `{feature}`")]
    LeftOut {
        /// The file.
        name: String,
        /// The format it is in.
        format: F,
        /// The cargo feature that reads it.
        feature: &'static str,
    },
    /// Nothing of what was to be read (strict reading only).
    #[error("no {wanted} in {name}{}", passed_over(*.records))]
    Nothing {
        /// The file.
        name: String,
        /// What was to be read.
        wanted: &'static str,
        /// Records that there were instead.
        records: u64,
    },
    /// The peer asked for is not there.
    #[error("{name}: no peer {peer}; there are {known}")]
    NoSuchPeer {
        /// The file.
        name: String,
        /// What was asked for.
        peer: String,
        /// The peers that there are, or the first few.
        known: String,
    },
    /// Routes of several VRFs, and none of them was asked for.
    #[error("{name}: several VRFs: choose one with --vrf: {known}")]
    SeveralVrfs {
        /// The file.
        name: String,
        /// The VRFs that there are, or the first few.
        known: String,
    },
    /// The VRF asked for is not there.
    #[error("{name}: no VRF {vrf}; there are {known}")]
    NoSuchVrf {
        /// The file.
        name: String,
        /// What was asked for.
        vrf: String,
        /// The VRFs that there are, or the first few.
        known: String,
    },
    /// More distinct next hops than an index can tell apart.
    #[error("{name}{place}: {source}")]
    TooManyNextHops {
        /// The file.
        name: String,
        /// Where in it.
        place: Place,
        /// What is wrong.
        source: TooManyNextHops,
    },
}

impl<F, R> From<OpenError> for ReadError<F, R> {
    fn from(OpenError { name, source }: OpenError) -> Self {
        Self::Io { name, source }
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

/// What a parser of one line, entry or record may answer instead of a result.
#[derive(Debug)]
pub enum Fault<F = Format, R = SkipReason> {
    /// Is counted and passed over, or ends a strict reading.
    Skip(R),
    /// Ends every reading.
    Full(TooManyNextHops),
    /// The caller has had enough.
    Stop,
    /// The chosen peer is not known before the whole file has been looked over.
    NeedSurvey,
    /// An earlier fault has ended the reading.
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

/// How a reading ends before the end of its input.
#[derive(Debug)]
pub enum End<F = Format, R = SkipReason> {
    /// An error ended it.
    Error(ReadError<F, R>),
    /// The caller has had enough.
    Stop,
    /// The chosen peer is not known before the whole file has been looked over.
    NeedSurvey,
}

impl<F, R> From<ReadError<F, R>> for End<F, R> {
    fn from(error: ReadError<F, R>) -> Self {
        Self::Error(error)
    }
}
