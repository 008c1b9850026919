//! CAIDA's pfx2as: address, length and origin AS, separated by tabs. `30_10_20` are several origins, most
//! frequent first. The first is taken, or all are, by [`ReadOptions::all_origins`](super::ReadOptions).
//! `a,b` is a set and is kept.

use wirespeed_input::Input;

use super::error::{End, Fault, SkipReason};
use super::report::Ledger;
use super::table::Table;
use super::text::{each_line, utf8, words};

pub(super) fn read(input: &mut Input<'_>, ledger: &mut Ledger, table: &mut Table) -> Result<(), End> {
    each_line(input, ledger, |line, _, ledger| route(line, table, ledger))
}

fn route(line: &[u8], table: &mut Table, ledger: &mut Ledger) -> Result<(), Fault> {
    let mut columns = words(utf8(line)?);
    let (Some(address), Some(len)) = (columns.next(), columns.next()) else {
        return Err(SkipReason::TooFewColumns.into());
    };
    let prefix = ledger.prefix_of(address, len)?;
    let origins = columns.next().ok_or(SkipReason::NextHopMissing)?;
    if columns.next().is_some() {
        return Err(SkipReason::TooManyColumns.into());
    }
    let first = origins.split('_').next().unwrap_or(origins);
    let taken = if table.all_origins { origins } else { first };
    if !taken.split('_').all(is_origin) {
        return Err(SkipReason::Number.into());
    }
    let next_hop = table.hop(taken.as_bytes())?;
    table.insert(prefix, next_hop, ledger);
    Ok(())
}

/// Whether a word is an AS number or a set of them.
pub(crate) fn is_origin(word: &str) -> bool {
    word.split(',').all(|asn| asn.bytes().all(|b| b.is_ascii_digit()) && asn.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use crate::prefix::PrefixError;
    use crate::read::tests::{bad_line, read_with, strict, text_of};
    use crate::read::{Format, ReadOptions, SkipReason};

    #[test]
    fn takes_the_first_of_several_origins_and_keeps_sets() {
        let text =
            "1.0.0.0\t24\t13335\n1.1.0.0\t16\t30_10_20\n2001:db8::\t32\t64500,64501\n2.0.0.0\t8\t7,8_9\n";
        let (fib, report) = strict(Format::Pfx2as, text);
        assert_eq!(report.routes, 4);
        assert_eq!(
            text_of(&fib),
            "1.0.0.0/24 13335\n1.1.0.0/16 30\n2.0.0.0/8 7,8\n2001:db8::/32 64500,64501\n"
        );
    }

    #[test]
    fn all_origins_are_kept_where_they_are_wanted() {
        let options = ReadOptions { all_origins: true, ..ReadOptions::default() };
        let text = "1.0.0.0\t24\t13335\n1.1.0.0\t16\t30_10_7,8\n";
        let (fib, _) = read_with(text.as_bytes(), &options).unwrap();
        assert_eq!(text_of(&fib), "1.0.0.0/24 13335\n1.1.0.0/16 30_10_7,8\n");
        assert!(read_with(b"1.0.0.0\t24\t1_x\n", &options).is_err());
    }

    #[test]
    fn bad_lines() {
        for (line, reason) in [
            ("1.0.0.0\t24", SkipReason::NextHopMissing),
            ("1.0.0.0", SkipReason::TooFewColumns),
            ("1.0.0.0\t24\t1\t2", SkipReason::TooManyColumns),
            ("1.0.0.0\t24\tx", SkipReason::Number),
            ("1.0.0.0\t24\t99999999999", SkipReason::Number),
            ("1.0.0.0\t24\t_1", SkipReason::Number),
            ("1.0.0.1\t24\t1", SkipReason::Prefix(PrefixError::HostBits)),
            ("1.0.0\t24\t1", SkipReason::Prefix(PrefixError::Address)),
            ("1.0.0.0\t-1\t1", SkipReason::Prefix(PrefixError::Length)),
        ] {
            bad_line(Format::Pfx2as, &format!("1.0.0.0\t8\t1\n{line}\n"), 2, reason);
        }
    }
}
