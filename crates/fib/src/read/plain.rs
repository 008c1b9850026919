//! Plain tables: `prefix next-hop`, one route on each line, `#` comments. The next hop is an address, a
//! number or a word, kept unchanged. Every table can be written in this format and read back.
//!
//! A table may also be a list of prefixes without next hops. The first line decides. Each prefix then has the
//! next hop [`MEMBER`]. A prefix is `address/length`, or has a netmask, which may be a column of its own:
//!
//! ```text
//! 10.0.0.0/8 192.0.2.1                 10.0.0.0/255.0.0.0 192.0.2.1                10.0.0.0 255.0.0.0 192.0.2.1
//! 10.0.0.0/8                           10.0.0.0/255.0.0.0                          10.0.0.0 255.0.0.0
//! ```
//!
//! A second column is a netmask if the first column is an IPv4 address without a length, and the second is an
//! address whose ones come first, other than 0.0.0.0, which is a netmask only after 0.0.0.0. No router has
//! such an address as a next hop. An address that starts like a mask and is none (0.255.255.255, 255.0.255.0)
//! is refused.

use std::net::{IpAddr, Ipv4Addr};

use wirespeed_input::Input;

use super::MEMBER;
use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, SkipReason};
use super::report::Ledger;
use super::table::{Table, no_more};
use super::text::{each_line, mask_len, split_word, uncomment};

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    let mut has_next_hops = None;
    each_line(input, ledger, |line, _, ledger| route(line, &mut has_next_hops, table, ledger))
}

#[inline]
fn route(
    line: &[u8],
    has_next_hops: &mut Option<bool>,
    table: &mut Table,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    let (prefix, rest) = destination(uncomment(line), ledger)?;
    let (hop, rest) = split_word(rest);
    no_more(rest)?;
    let next_hop = match (*has_next_hops, hop.is_empty()) {
        (Some(false), false) => return Err(SkipReason::NextHopUnexpected.into()),
        (Some(false) | None, true) => table.hop(MEMBER.as_bytes())?,
        (Some(true), _) | (None, false) => table.hop(hop)?,
    };
    if has_next_hops.is_none() {
        *has_next_hops = Some(!hop.is_empty());
        ledger.report.is_list = hop.is_empty();
    }
    table.insert(prefix, next_hop, ledger);
    Ok(())
}

/// The prefix at the start of a line, and the rest of the line.
#[inline]
fn destination<'l>(line: &'l [u8], ledger: &mut Ledger) -> Result<(AnyPrefix, &'l [u8]), Fault> {
    let (word, rest) = split_word(line);
    if word.contains(&b'/') {
        return Ok((ledger.prefix(word)?, rest));
    }
    let (second, after) = split_word(rest);
    match v4(word).zip(v4(second)).map(|(address, second)| (address, second, mask_len(second.into()))) {
        Some((address, mask, Some(len))) if !mask.is_unspecified() || address.is_unspecified() => {
            Ok((ledger.prefix_of_len(IpAddr::V4(address), len)?, after))
        }
        Some((_, mask, None)) if matches!(mask.octets()[0], 0 | 255) => Err(SkipReason::Mask.into()),
        _ => Ok((ledger.prefix(word)?, rest)),
    }
}

fn v4(word: &[u8]) -> Option<Ipv4Addr> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::address::Family;
    use crate::prefix::PrefixError;
    use crate::read::tests::{bad_line, lenient, read_with, strict, text_of};
    use crate::read::{Format, ReadOptions, SkipReason};

    #[test]
    fn reads_routes_of_both_families_with_comments() {
        let text =
            "# table\n10.0.0.0/8 192.0.2.1\n\n 10.9.0.0/16\t64500 # why\r\n::/0 fe80::1%eth0\n10.1.1.1 core";
        let (fib, report) = strict(Format::Plain, text);
        assert_eq!((fib.len(Family::V4), fib.len(Family::V6), fib.next_hops.len()), (3, 1, 4));
        assert_eq!((report.records, report.routes, report.repeated), (4, 4, 0));
        assert_eq!(report.skipped_for(SkipReason::Comment), 1);
        let hop = fib.v4.get("10.9.0.0/16".parse().unwrap()).unwrap();
        assert_eq!(fib.next_hops.text(hop), Some("64500"));
    }

    #[test]
    fn of_two_routes_for_a_prefix_the_last_stays() {
        let (fib, report) = strict(Format::Plain, "10.0.0.0/8 a\n10.0.0.0/8 b\n");
        assert_eq!((report.routes, report.repeated, fib.v4.len()), (2, 1, 1));
        assert_eq!(fib.next_hops.text(fib.v4.iter().next().unwrap().1), Some("b"));
    }

    #[test]
    fn the_first_bad_line_is_the_error() {
        let too_long = |len, family| SkipReason::Prefix(PrefixError::TooLong { len, family });
        for (line, reason) in [
            ("10.0.0.0/33 a", too_long(33, Family::V4)),
            ("::/129 a", too_long(129, Family::V6)),
            ("10.0.0.0/99999999999 a", too_long(u32::MAX, Family::V4)),
            ("10.0.0.1/8 a", SkipReason::Prefix(PrefixError::HostBits)),
            ("2001:db8::1/64 a", SkipReason::Prefix(PrefixError::HostBits)),
            ("10.0.0/8 a", SkipReason::Prefix(PrefixError::Address)),
            ("10.0.0.0/x a", SkipReason::Prefix(PrefixError::Length)),
            ("one two", SkipReason::Prefix(PrefixError::Address)),
            ("10.0.0.0/8", SkipReason::NextHopMissing),
            ("10.0.0.0/8 # a", SkipReason::NextHopMissing),
            ("10.0.0.0/8 a b", SkipReason::TooManyColumns),
            ("10.0.0.0/8,a", SkipReason::Csv),
            ("10.0.0.0,a", SkipReason::Csv),
            ("10.0.0.0/8;a", SkipReason::Csv),
            ("\"10.0.0.0/8\",\"a\"", SkipReason::Csv),
            ("prefix,asn", SkipReason::Csv),
            ("10.0.0.0/255.0.255.0 a", SkipReason::Mask),
            ("10.0.0.0/0.255.255.255 a", SkipReason::Mask),
            ("10.0.0.0 0.255.255.255 a", SkipReason::Mask),
            ("10.0.0.0 0.255.255.255", SkipReason::Mask),
            ("10.0.0.0 255.0.255.0", SkipReason::Mask),
            ("10.0.0.1/255.0.0.0 a", SkipReason::Prefix(PrefixError::HostBits)),
            ("10.0.0.1 255.0.0.0 a", SkipReason::Prefix(PrefixError::HostBits)),
            ("10.0.0.0 255.0.0.0 a b", SkipReason::TooManyColumns),
            ("10.0.0.0 255.0.0.0", SkipReason::NextHopMissing),
            ("10.0.0.0/8 a\u{1}", SkipReason::NextHop),
        ] {
            let text = format!("1.0.0.0/8 a\n{line}\n2.0.0.0/8 b\n");
            bad_line(Format::Plain, &text, 2, reason);
            let (fib, report) = lenient(Format::Plain, &text);
            assert_eq!((fib.v4.len(), report.skipped_for(reason)), (2, 1), "{line}");
        }
    }

    #[test]
    fn a_list_of_prefixes_is_a_table_of_members() {
        for text in [
            "10.0.0.0/8\n2001:db8::/32 # why\n\n192.0.2.7\n",
            "10.0.0.0 255.0.0.0\n2001:db8::/ffff:ffff::\n192.0.2.7/255.255.255.255\n",
        ] {
            let (fib, report) = read_with(text.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(text_of(&fib), "10.0.0.0/8 member\n192.0.2.7/32 member\n2001:db8::/32 member\n");
            assert_eq!((report.format, report.is_list, fib.next_hops.len()), (Format::Plain, true, 1));
        }
        let text = "10.0.0.0/8\n11.0.0.0/8 a\n12.0.0.0/8\n";
        bad_line(Format::Plain, text, 2, SkipReason::NextHopUnexpected);
        let (fib, report) = lenient(Format::Plain, text);
        assert_eq!((fib.v4.len(), report.skipped_for(SkipReason::NextHopUnexpected)), (2, 1));
        bad_line(Format::Plain, "10.0.0.0/8 a\n11.0.0.0/8\n", 2, SkipReason::NextHopMissing);
    }

    #[test]
    fn netmasks_in_either_form() {
        let text = "10.0.0.0/255.0.0.0 a\n10.1.0.0 255.255.0.0 b\n0.0.0.0 0.0.0.0 c\n2001:db8::/ffff:ffff:: d\n\
                    192.0.2.7 0.0.0.0\n192.0.2.8 192.0.2.1\n192.0.2.9 255.255.255.255 e\n";
        let (fib, _) = strict(Format::Plain, text);
        assert_eq!(
            text_of(&fib),
            "0.0.0.0/0 c\n10.0.0.0/8 a\n10.1.0.0/16 b\n192.0.2.7/32 0.0.0.0\n192.0.2.8/32 192.0.2.1\n192.0.2.9/32 e\n\
             2001:db8::/32 d\n"
        );
    }

    #[test]
    fn host_bits_are_masked_where_that_is_asked_for() {
        let text =
            "10.1.2.3/8 a\n10.1.2.3 255.255.0.0 b\n10.1.2.3/255.255.255.0 c\n2001:db8::1/32 d\n192.0.2.7 e\n";
        let options = ReadOptions { mask_host_bits: true, ..ReadOptions::default() };
        let (fib, report) = read_with(text.as_bytes(), &options).unwrap();
        assert_eq!(
            text_of(&fib),
            "10.0.0.0/8 a\n10.1.0.0/16 b\n10.1.2.0/24 c\n192.0.2.7/32 e\n2001:db8::/32 d\n"
        );
        assert_eq!((report.masked, report.faults()), (4, 0));
        assert!(report.to_string().contains("4 of them with host bits that were masked"), "{report}");
        assert!(read_with(b"10.0.0.1/33 a\n", &options).is_err());
    }
}
