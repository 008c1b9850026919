//! [`NameReason`]: the reason why a line did not become a name, an entry or an update.

use wirespeed_fib::read::SkipReason;
use wirespeed_fib::read::parts::Reason;

use crate::name::NameError;
use crate::tlv::UriError;

/// The reason why a line did not become a name, an entry or an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameReason {
    /// An empty line.
    #[error("blank")]
    Blank,
    /// A line that starts with `#`.
    #[error("a comment")]
    Comment,
    /// A line that is longer than any real line.
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
    /// A domain with a character of a URL or address: a slash, a colon, `@`, `?` or `#`.
    #[error("not a domain alone")]
    NotADomain,
    /// A domain with a byte in a label that is neither a letter, a digit, `-` nor `_`.
    #[error("a character that no domain has")]
    Character,
    /// A domain with other letters than ASCII that is not a valid internationalised domain.
    #[error("not an internationalised domain (UTS 46)")]
    Idna,
    /// A `*` that is not the whole first label.
    #[error(
        "a * that is not the whole first label: only *.example.com is read, for example.com and all names beneath it"
    )]
    Wildcard,
    /// An IP address instead of a domain.
    #[error("an IP address, not a domain")]
    Address,
    /// An address and a name, as hosts files have them.
    #[error("looks like a line of a hosts file: a name must come first, alone or with its result")]
    HostsFile,
    /// Columns that are separated by commas or semicolons.
    #[error("looks like CSV: separate columns by blanks")]
    Csv,
    /// A rule or heading of a filter list, such as `||example.com^`.
    #[error("looks like a line of a filter list (Adblock)")]
    Filter,
    /// An IPv6 host that is not valid.
    #[error("not an IPv6 address in brackets")]
    Ipv6,
    /// A path with two slashes in a row.
    #[error("slashes in a row")]
    RepeatedSlash,
    /// A port that is not valid.
    #[error("not a port")]
    Port,
    /// A missing result in an update, or in a table whose first line has one.
    #[error("result missing")]
    ResultMissing,
    /// A result with a `#` or a control character, a result that is not text, or a result that is too long.
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

/// Checks that a word can be a result of a table.
pub(super) fn result_word(word: &[u8]) -> Result<&str, NameReason> {
    wirespeed_fib::read::parts::next_hop(word).map_err(|reason| match reason {
        SkipReason::NextHopMissing => NameReason::ResultMissing,
        _ => NameReason::Result,
    })
}
