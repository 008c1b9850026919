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
    #[error(transparent)]
    Name(#[from] NameError),
    /// Not an NDN URI.
    #[error(transparent)]
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
    #[error(
        "looks like a line of a hosts file, which is another format (hosts): in a table of names a name comes first, alone or with its result"
    )]
    HostsFile,
    /// Columns that are separated by commas or semicolons.
    #[error(
        "looks like CSV, whose first line must name its columns, the one of names as domain, host, name or url; or separate columns by blanks"
    )]
    Csv,
    /// A cell of CSV whose quotes do not fit: one that nothing closes, or text beside them.
    #[error("quotes that don't fit: a cell is either within quotes, with quotes in it doubled, or has none")]
    Quotes,
    /// Bytes that are not UTF-8 text.
    #[error("not text")]
    NotText,
    /// Fewer cells than the first line of CSV has.
    #[error("too few columns")]
    TooFewColumns,
    /// A rule or heading of a filter list, such as `||example.com^`.
    #[error("looks like a line of a filter list (Adblock)")]
    Filter,
    /// An IPv6 host that is not valid.
    #[error("not an IPv6 address in brackets")]
    Ipv6,
    /// A path with two slashes in a row.
    #[error("slashes in a row")]
    RepeatedSlash,
    /// A backslash in a URL.
    #[error("a backslash, which no URL has")]
    Backslash,
    /// A user before the host, without a scheme: an e-mail address, or a URL of another kind.
    #[error("a user without a scheme such as https://: an e-mail address is no URL")]
    User,
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
    /// A line of a hosts file that gives an address its own text as name, as block lists have for 0.0.0.0.
    #[error("an address as its own name")]
    OwnAddress,
    /// A line of a list that must start with an address.
    #[error("not an address")]
    NotAnAddress,
    /// An address without a name in a hosts file.
    #[error("an address without a name")]
    NoName,
    /// A rule of a filter list for the look of a page.
    #[error("a rule for elements of a page (cosmetic), not for a domain")]
    Cosmetic,
    /// A rule of a filter list with a modifier that is not understood, so that nobody knows what it covers.
    #[error("a modifier ($…) that is not understood: only $important is")]
    Modifier,
    /// A rule of a filter list with a regular expression.
    #[error("a regular expression, not a domain")]
    Regex,
    /// A rule of a filter list for a part of a site.
    #[error("a rule for a URL or a port, not for a whole domain")]
    Path,
    /// A rule of a filter list that may start or end within a label.
    #[error(
        "a rule that may match a part of a label: a domain is written ||example.com^, |example.com^ or example.com"
    )]
    Unanchored,
    /// An instruction to the program that reads a filter list.
    #[error("an instruction (!#…) that is not understood")]
    Instruction,
    /// An option of dnsmasq that gives no value to domains.
    #[error("an option that is not read: address, server and local with domains (/example.com/) are")]
    OtherOption,
    /// An RPZ rule for addresses or name servers.
    #[error("a trigger other than the name of a query (rpz-ip, rpz-client-ip, rpz-nsip, rpz-nsdname)")]
    Trigger,
    /// A record of a zone for the zone itself.
    #[error("a record of the zone itself")]
    ZoneRecord,
    /// A record of a kind that no RPZ rule has.
    #[error("a record of a kind that is not known to rules")]
    OtherRecord,
    /// A target of an RPZ rule that names no action.
    #[error("an action that is not known: rpz-passthru., rpz-drop. and rpz-tcp-only. are (with the dot)")]
    Action,
    /// A name in a zone file that is not in its zone.
    #[error("a name outside of the zone (a dot at its end makes it absolute)")]
    OutOfZone,
    /// A line of a zone file that is no record.
    #[error("not a record of a zone: name, TTL, class, type and data, on one line except for SOA")]
    Record,
    /// A rule of another section of the Public Suffix List.
    #[error("of a section that is not wanted")]
    OtherSection,
}

impl Reason for NameReason {
    const BLANK: Self = Self::Blank;
    const COMMENT: Self = Self::Comment;
    const LINE_TOO_LONG: Self = Self::LineTooLong;
    const QUOTES: Self = Self::Quotes;
    const NOT_TEXT: Self = Self::NotText;

    fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::Blank | Self::Comment | Self::OwnAddress | Self::ZoneRecord | Self::OtherSection
        )
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
