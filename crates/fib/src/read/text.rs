//! The common part of the text formats: lines, words, prefixes and next hops.

use std::net::IpAddr;

use wirespeed_input::{Input, Line};

use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, Place, Reason, SkipReason};
use super::report::{Ledger, Take};
use crate::address::{Family, V4};
use crate::prefix::{Prefix, PrefixError};

/// The most bytes of a next hop; a group of a hundred addresses fits.
const LONGEST_NEXT_HOP: usize = 4096;

/// Words that Linux writes before a route without a next hop. Each is a next hop of its own here.
pub(crate) const TYPES: [&str; 9] =
    ["blackhole", "unreachable", "prohibit", "throw", "local", "broadcast", "multicast", "anycast", "nat"];

/// Gives every line that is neither empty nor a comment to `take`, and the answer of `take` to the ledger.
/// Comments start with `#`.
pub fn each_line<F, R: Reason>(
    input: &mut Input<'_>,
    ledger: &mut Ledger<F, R>,
    take: impl FnMut(&[u8], Place, &mut Ledger<F, R>) -> Result<(), Fault<F, R>>,
) -> Result<(), End<F, R>> {
    each_line_except(input, ledger, |text| text[0] == b'#', take)
}

/// Gives every line that is neither empty nor a comment to `take`, as [`each_line`] does. `is_comment` gets a
/// line without blanks at its ends, of one byte at least.
pub fn each_line_except<F, R: Reason>(
    input: &mut Input<'_>,
    ledger: &mut Ledger<F, R>,
    mut is_comment: impl FnMut(&[u8]) -> bool,
    mut take: impl FnMut(&[u8], Place, &mut Ledger<F, R>) -> Result<(), Fault<F, R>>,
) -> Result<(), End<F, R>> {
    lines(input, ledger, &mut is_comment, &mut take)
}

#[inline(never)] // one copy for all crates
fn lines<F, R: Reason>(
    input: &mut Input<'_>,
    ledger: &mut Ledger<F, R>,
    is_comment: &mut dyn FnMut(&[u8]) -> bool,
    take: Take<'_, [u8], F, R>,
) -> Result<(), End<F, R>> {
    loop {
        let place = Place::Line(input.lines_read() + 1);
        let line = match input.next_line() {
            Ok(None) => return Ok(()),
            Ok(Some(Line::TooLong)) => {
                ledger.report.records += 1;
                ledger.fault(R::LINE_TOO_LONG.into(), place, "")?;
                continue;
            }
            Ok(Some(Line::Whole(line))) if place == Place::Line(1) => {
                line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
            }
            Ok(Some(Line::Whole(line))) => line,
            Err(error) => return ledger.broken(place, error),
        };
        match line.trim_ascii() {
            [] => ledger.pass(R::BLANK, place),
            text if is_comment(text) => ledger.pass(R::COMMENT, place),
            _ => {
                ledger.report.records += 1;
                if let Err(fault) = take(line, place, ledger) {
                    ledger.fault(fault, place, line)?;
                }
            }
        }
    }
}

/// The words of a line.
pub(super) fn words(line: &str) -> impl DoubleEndedIterator<Item = &str> {
    line.split_ascii_whitespace()
}

/// A line as text.
pub(super) fn utf8(line: &[u8]) -> Result<&str, SkipReason> {
    std::str::from_utf8(line).map_err(|_| SkipReason::NotText)
}

/// The first word of a line (empty if there is none), and the rest of the line.
#[inline]
pub fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(line.len());
    let line = &line[start..];
    line.split_at(line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len()))
}

/// A line without the comment at its end.
#[inline]
pub(super) fn uncomment(line: &[u8]) -> &[u8] {
    &line[..line.iter().position(|&b| b == b'#').unwrap_or(line.len())]
}

/// Checks that a word can be a next hop.
#[inline]
pub fn next_hop(word: &[u8]) -> Result<&str, SkipReason> {
    if word.is_empty() {
        return Err(SkipReason::NextHopMissing);
    }
    let is_fit = |&b: &u8| b > b' ' && b != b'#' && b != 0x7f;
    if word.len() > LONGEST_NEXT_HOP || !word.iter().all(is_fit) {
        return Err(SkipReason::NextHop);
    }
    std::str::from_utf8(word).map_err(|_| SkipReason::NextHop)
}

/// Parses a prefix of either family, with the reason if it is not valid. A bare address is a prefix of full
/// length.
pub(super) fn prefix_in_words(word: &[u8]) -> Result<AnyPrefix, PrefixError> {
    let text = std::str::from_utf8(word).map_err(|_| PrefixError::Address)?;
    if word.contains(&b':') { text.parse().map(AnyPrefix::V6) } else { text.parse().map(AnyPrefix::V4) }
}

/// Checks that a prefix is of the family that its place in the file says.
pub(super) fn prefix_family(prefix: AnyPrefix, wanted: Family) -> Result<AnyPrefix, SkipReason> {
    match prefix.family() {
        found if found == wanted => Ok(prefix),
        found => Err(PrefixError::WrongFamily { found, wanted }.into()),
    }
}

/// Parses `a.b.c.d/len` in its usual form; `None` for all other text.
#[inline]
fn v4_prefix(word: &[u8]) -> Option<Prefix<V4>> {
    let mut address = 0;
    let mut rest = word;
    for end in [b'.', b'.', b'.', b'/'] {
        let (octet, len) = decimal(rest)?;
        if octet > 255 || rest.get(len) != Some(&end) {
            return None;
        }
        address = address << 8 | octet;
        rest = &rest[len + 1..];
    }
    let (len, digits) = decimal(rest)?;
    if digits != rest.len() {
        return None;
    }
    Prefix::new(V4(address), u8::try_from(len).ok()?).ok()
}

/// Parses a number of one to three digits without leading zeros. Returns the number and its digits.
#[inline]
fn decimal(text: &[u8]) -> Option<(u32, usize)> {
    let digit = |at: usize| text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10).map(u32::from);
    let mut number = digit(0)?;
    let mut len = 1;
    while let Some(next) = digit(len) {
        if number == 0 || len == 3 {
            return None;
        }
        number = number * 10 + next;
        len += 1;
    }
    Some((number, len))
}

/// The first cell of a line of CSV, or the whole word if it is no CSV.
pub(super) fn first_cell(word: &str) -> &str {
    word.split([',', ';']).next().unwrap_or(word).trim_matches('"')
}

/// The length of a netmask. `None` if its ones are not all at the start.
pub(super) fn mask_len(mask: IpAddr) -> Option<u32> {
    let (bits, width) = match mask {
        IpAddr::V4(mask) => (u128::from(mask.to_bits()) << 96, 32),
        IpAddr::V6(mask) => (mask.to_bits(), 128),
    };
    let len = bits.leading_ones();
    (bits.count_ones() == len && len <= width).then_some(len)
}

/// Prefixes as a ledger takes them: with a length or a netmask, and with host bits cleared if that is asked
/// for.
impl Ledger {
    /// Parses a prefix of either family: `address/length`, `address/netmask`, or a bare address as a prefix
    /// of full length.
    #[inline]
    pub(super) fn prefix(&mut self, word: &[u8]) -> Result<AnyPrefix, SkipReason> {
        match v4_prefix(word) {
            Some(prefix) => Ok(AnyPrefix::V4(prefix)),
            None => self.prefix_in_words(word),
        }
    }

    /// Parses a prefix of either family, slower, with the reason if it is not valid.
    fn prefix_in_words(&mut self, word: &[u8]) -> Result<AnyPrefix, SkipReason> {
        let why = match prefix_in_words(word) {
            Ok(prefix) => return Ok(prefix),
            Err(why) => why,
        };
        let text = std::str::from_utf8(word).map_err(|_| why)?;
        let parts =
            text.split_once('/').and_then(|(address, len)| Some((address.parse::<IpAddr>().ok()?, len)));
        match (why, parts) {
            (PrefixError::HostBits, Some((address, len))) => {
                Ok(self.prefix_of_len(address, len.parse().map_err(|_| PrefixError::Length)?)?)
            }
            (PrefixError::Length, Some((address, mask))) => match mask.parse::<IpAddr>() {
                Ok(mask) if mask.is_ipv4() == address.is_ipv4() => {
                    Ok(self.prefix_of_len(address, mask_len(mask).ok_or(SkipReason::Mask)?)?)
                }
                _ if looks_like_csv(text) => Err(SkipReason::Csv),
                _ => Err(why.into()),
            },
            _ if looks_like_csv(text) => Err(SkipReason::Csv),
            _ => Err(why.into()),
        }
    }

    /// Parses a prefix of an address and a length that come apart.
    pub(super) fn prefix_of(&mut self, address: &str, len: &str) -> Result<AnyPrefix, PrefixError> {
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Address)?;
        if len.is_empty() || !len.bytes().all(|b| b.is_ascii_digit()) {
            return Err(PrefixError::Length);
        }
        self.prefix_of_len(address, len.parse().unwrap_or(u32::MAX))
    }

    /// Makes a prefix of an address and a length, both checked. Clears and counts host bits if that is asked
    /// for.
    pub(super) fn prefix_of_len(&mut self, address: IpAddr, len: u32) -> Result<AnyPrefix, PrefixError> {
        match AnyPrefix::from_ip(address, len) {
            Err(PrefixError::HostBits) if self.masks_host_bits => {
                self.report.masked += 1;
                AnyPrefix::around(address, len)
            }
            made => made,
        }
    }
}

/// Whether a word that is not a prefix is a line of CSV: prefixes contain no comma, and a CSV line has a
/// prefix before a semicolon.
fn looks_like_csv(word: &str) -> bool {
    let cell = first_cell(word);
    word.contains(',') || cell.len() < word.len() && prefix_in_words(cell.as_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_way_and_the_slow_way_agree() {
        let words = [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "255.255.255.255/32",
            "1.2.3.4",
            "1.2.3.4/",
            "1.2.3.4/33",
            "1.2.3.4/032",
            "1.2.3.4/31 ",
            "01.2.3.4/32",
            "1.2.3/24",
            "1.2.3.4.5/32",
            "256.0.0.0/8",
            "1.2.3.4/24",
            "10.0.0.0/+8",
            "10.0.0.0/256",
            "10.0.0.0/1000000000000",
            "::/0",
            "2001:db8::/129",
            "",
            "/",
            "/8",
            "\u{e9}",
        ];
        for word in words {
            let fast = v4_prefix(word.as_bytes()).map(AnyPrefix::V4);
            if let Some(fast) = fast {
                assert_eq!(Ok(fast), prefix_in_words(word.as_bytes()), "{word}");
            }
            let is_usual = matches!(word, "0.0.0.0/0" | "10.0.0.0/8" | "255.255.255.255/32");
            assert_eq!(fast.is_some(), is_usual, "{word}");
        }
    }

    #[test]
    fn netmasks_are_lengths_where_their_ones_come_first() {
        for (mask, len) in [
            ("0.0.0.0", Some(0)),
            ("255.0.0.0", Some(8)),
            ("255.255.254.0", Some(23)),
            ("255.255.255.255", Some(32)),
            ("0.255.255.255", None),
            ("255.0.255.0", None),
            ("0.0.0.1", None),
            ("::", Some(0)),
            ("ffff:fff8::", Some(29)),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Some(128)),
            ("ffff::1", None),
        ] {
            assert_eq!(mask_len(mask.parse().unwrap()), len, "{mask}");
        }
    }

    #[test]
    fn words_one_by_one() {
        assert_eq!(split_word(b"  one two "), (&b"one"[..], &b" two "[..]));
        assert_eq!(split_word(b"  "), (&b""[..], &b""[..]));
        assert_eq!(uncomment(b"one # two # three"), b"one ");
    }

    #[test]
    fn next_hops_have_no_blanks_or_comments_in_them() {
        assert_eq!(next_hop(b"192.0.2.1"), Ok("192.0.2.1"));
        assert_eq!(next_hop("caf\u{e9}".as_bytes()), Ok("caf\u{e9}"));
        assert_eq!(next_hop(b""), Err(SkipReason::NextHopMissing));
        for bad in [&b"a b"[..], b"a#b", b"a\x07", b"\xff", &[b'x'; LONGEST_NEXT_HOP + 1]] {
            assert_eq!(next_hop(bad), Err(SkipReason::NextHop));
        }
    }
}
