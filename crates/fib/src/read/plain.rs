//! Plain tables: `prefix next-hop`, one route a line, `#` comments. The next hop is an address, a number or a word,
//! kept as it is written. The format in which everything else can be written down and read back.

use wirespeed_input::Input;

use super::error::{End, Fault};
use super::report::Ledger;
use super::table::{Table, no_more};
use super::text::{each_line, prefix, split_word, uncomment};

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    each_line(input, ledger, |line, _, ledger| route(line, table, ledger))
}

#[inline]
fn route(line: &[u8], table: &mut Table, ledger: &mut Ledger) -> Result<(), Fault> {
    let (prefix_word, rest) = split_word(uncomment(line));
    let prefix = prefix(prefix_word)?;
    let (hop, rest) = split_word(rest);
    no_more(rest)?;
    let next_hop = table.hop(hop)?;
    table.insert(prefix, next_hop, ledger);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::address::Family;
    use crate::prefix::PrefixError;
    use crate::read::tests::{bad_line, lenient, strict};
    use crate::read::{Format, SkipReason};

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
            ("10.0.0.0/8 a\u{1}", SkipReason::NextHop),
        ] {
            let text = format!("1.0.0.0/8 a\n{line}\n2.0.0.0/8 b\n");
            bad_line(Format::Plain, &text, 2, reason);
            let (fib, report) = lenient(Format::Plain, &text);
            assert_eq!((fib.v4.len(), report.skipped_for(reason)), (2, 1), "{line}");
        }
    }
}
