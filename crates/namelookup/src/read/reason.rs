//! [`NameReason`]: why a line did not become a name, an entry or an update.

use wirespeed_fib::read::SkipReason;
use wirespeed_fib::read::parts::Reason;

use crate::name::NameError;
use crate::tlv::UriError;

/// Why a line did not become a name, an entry or an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameReason {
    /// Nothing on the line.
    #[error("blank")]
    Blank,
    /// A line that starts with `#`.
    #[error("a comment")]
    Comment,
    /// A line longer than any real one.
    #[error("an overlong line")]
    LineTooLong,
    /// Not a name.
    #[error("{0}")]
    Name(#[from] NameError),
    /// Not an NDN URI.
    #[error("{0}")]
    Uri(#[from] UriError),
    /// A domain with two dots in a row, or none at all.
    #[error("a label is empty")]
    EmptyLabel,
    /// A domain with a character that none has: a slash, a colon, `@`, `?` or `#`.
    #[error("not a domain alone")]
    NotADomain,
    /// A domain with a byte in a label that is neither a letter, a digit, `-` nor `_`.
    #[error("a character that no domain has")]
    Character,
    /// A domain beyond ASCII that is no internationalised one.
    #[error("not an internationalised domain (UTS 46)")]
    Idna,
    /// A `*` elsewhere than before the first dot.
    #[error(
        "a * that is not the whole first label: only *.example.com is read, which is example.com and all beneath it"
    )]
    Wildcard,
    /// An IP address where a domain is wanted.
    #[error("an IP address, not a domain")]
    Address,
    /// An address and a name, as hosts files have them.
    #[error("looks like a line of a hosts file: a name has to come first, and alone or with its result")]
    HostsFile,
    /// Columns that are separated by commas or semicolons.
    #[error("looks like CSV: columns are to be separated by blanks")]
    Csv,
    /// A rule or heading of a filter list, such as `||example.com^`.
    #[error("looks like a line of a filter list (Adblock)")]
    Filter,
    /// An IPv6 host that is none.
    #[error("not an IPv6 address in brackets")]
    Ipv6,
    /// A path with two slashes in a row.
    #[error("slashes in a row")]
    RepeatedSlash,
    /// A port that is none.
    #[error("not a port")]
    Port,
    /// No result in a table whose first line has one, or in an update.
    #[error("result missing")]
    ResultMissing,
    /// A result with a `#` or a control character in it, one that isn't text, or an overlong one.
    #[error("not a result")]
    Result,
    /// More columns than the format has, or than the first line of the table.
    #[error("too many columns")]
    TooManyColumns,
    /// An update that neither inserts nor removes.
    #[error("neither an insertion (A) nor a removal (W)")]
    UpdateKind,
    /// Not a number of seconds.
    #[error("not a time in seconds")]
    Time,
}

impl Reason for NameReason {
    const BLANK: Self = Self::Blank;
    const COMMENT: Self = Self::Comment;
    const LINE_TOO_LONG: Self = Self::LineTooLong;

    fn is_fault(self) -> bool {
        !matches!(self, Self::Blank | Self::Comment)
    }

    fn same_kind(self, other: Self) -> bool {
        match (self, other) {
            (Self::Name(one), Self::Name(other)) => {
                std::mem::discriminant(&one) == std::mem::discriminant(&other)
            }
            (Self::Uri(one), Self::Uri(other)) => {
                std::mem::discriminant(&one) == std::mem::discriminant(&other)
            }
            _ => self == other,
        }
    }
}

/// What a word is as a result of a table.
pub(super) fn result_word(word: &[u8]) -> Result<&str, NameReason> {
    wirespeed_fib::read::parts::next_hop(word).map_err(|reason| match reason {
        SkipReason::NextHopMissing => NameReason::ResultMissing,
        _ => NameReason::Result,
    })
}
