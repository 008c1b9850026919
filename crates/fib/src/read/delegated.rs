//! Delegations of the regional registries (`delegated-ripencc-extended-latest` and the like), in the exchange
//! format that they have agreed on, with opaque ids or without.
//!
//! ```text
//! 2|ripencc|1700000000|4|19830705|20231114|+0100     version|registry|serial|records|start|end|UTC offset
//! ripencc|*|ipv4|*|2|summary
//! ripencc|FR|ipv4|2.0.0.0|1048576|20100712|allocated|8f3c…   registry|country|type|start|value|date|status[|id]
//! ripencc|FR|ipv6|2001:660::|32|19991011|allocated|8f3c…
//! ripencc|FR|asn|1712|1|19930901|allocated|8f3c…
//! ```
//!
//! The value of IPv4 is a number of addresses, which need be no power of two: the range becomes its fewest
//! prefixes. That of IPv6 is a length. AS numbers are counted as other records. The fields of a label are
//! `registry`, `country`, `date`, `status` and `opaque_id`, without those that are empty.
//!
//! The summaries and the first line tell how many records there are. A file with others has lost lines, or
//! has too many: it is refused, or noted by lenient reading like a file that is cut off.

use wirespeed_input::Input;

use super::csv::Columns;
use super::error::{End, Fault, Place, ReadError, SkipReason};
use super::fields::Labels;
use super::report::Ledger;
use super::starts::REGISTRIES;
use super::table::Table;
use super::text::{each_line, utf8};
use crate::address::V4;

const FIELDS: [&str; 5] = ["registry", "country", "date", "status", "opaque_id"];
/// Types of records, in the order of the counts.
const TYPES: [&str; 3] = ["asn", "ipv4", "ipv6"];
const STATES: [&str; 5] = ["allocated", "assigned", "available", "reserved", "ianapool"];
/// The columns of a record without an opaque id, and with one and what the common file of all registries
/// adds.
const COLUMNS: std::ops::RangeInclusive<usize> = 7..=9;
/// The extensions in the common file of all registries, and in that of IANA.
const EXTENSIONS: [&str; 2] = ["e-stats", "iana"];

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: &Columns,
) -> Result<(), End> {
    let mut labels = Labels::new(&FIELDS, wanted, ledger)?;
    let mut counts: Option<Counts> = None;
    each_line(input, ledger, |line, place, ledger| {
        let columns: Vec<&str> = utf8(line)?.trim().split('|').collect();
        let Some(counts) = &mut counts else {
            ledger.report.records -= 1;
            counts = Some(Counts::of_version(&columns).ok_or_else(|| {
                let name = ledger.report.name.clone();
                let what = "not the first line of delegations of version 2 (2|registry|serial|records|…)";
                Fault::Ended(Box::new(ReadError::Columns { name, place, what: what.into() }))
            })?);
            return Ok(());
        };
        match columns[..] {
            [_, "*", _, "*", _, "summary"] => {
                ledger.report.records -= 1;
                counts.summary(&columns)
            }
            _ => route(&columns, counts, &mut labels, table, ledger),
        }
    })?;
    if let (Some(counts), None) = (counts, &ledger.report.truncated)
        && let Some(wrong) = counts.wrong()
    {
        return ledger.cut(Place::Line(input.lines_read()), wrong);
    }
    Ok(())
}

/// The records that the head of a file tells, and those that are there, by type.
struct Counts {
    total: u64,
    told: [Option<u64>; 3],
    found: [u64; 3],
}

impl Counts {
    /// Reads the first line. `None` if it is none of version 2.
    fn of_version(columns: &[&str]) -> Option<Self> {
        let [version, registry, _serial, records, _start, _end, _offset] = columns else { return None };
        let is_known = ["2", "2.0", "2.3"].contains(version) && REGISTRIES.contains(registry);
        let total = records.parse().ok().filter(|_| is_known)?;
        Some(Self { total, told: [None; 3], found: [0; 3] })
    }

    fn summary(&mut self, columns: &[&str]) -> Result<(), Fault> {
        if !REGISTRIES.contains(&columns[0]) {
            return Err(SkipReason::Word.into());
        }
        let told = &mut self.told[type_of(columns[2])?];
        let count = columns[4].parse().map_err(|_| SkipReason::Number)?;
        match told.replace(count) {
            None => Ok(()),
            Some(_) => Err(SkipReason::Record.into()),
        }
    }

    /// The count that is not what the head tells.
    fn wrong(&self) -> Option<String> {
        for (at, kind) in TYPES.iter().enumerate() {
            match (self.told[at], self.found[at]) {
                (Some(told), found) if told != found => {
                    return Some(format!("{found} records of {kind}, and the summary tells {told}"));
                }
                _ => {}
            }
        }
        let found: u64 = self.found.iter().sum();
        (found != self.total).then(|| format!("{found} records, and the first line tells {}", self.total))
    }
}

fn type_of(word: &str) -> Result<usize, SkipReason> {
    TYPES.iter().position(|kind| *kind == word).ok_or(SkipReason::Word)
}

fn route(
    columns: &[&str],
    counts: &mut Counts,
    labels: &mut Labels,
    table: &mut Table,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    if columns.len() < *COLUMNS.start() {
        return Err(SkipReason::TooFewColumns.into());
    }
    let kind = type_of(columns[2])?;
    counts.found[kind] += 1;
    if columns.len() > *COLUMNS.end() || columns.get(8).is_some_and(|more| !EXTENSIONS.contains(more)) {
        return Err(SkipReason::TooManyColumns.into());
    }
    let (registry, country, date, status) = (columns[0], columns[1], columns[5], columns[6]);
    let is_country =
        country.is_empty() || country.len() == 2 && country.bytes().all(|b| b.is_ascii_uppercase());
    if !REGISTRIES.contains(&registry) || !is_country || !STATES.contains(&status) {
        return Err(SkipReason::Word.into());
    }
    if !(date.is_empty() || date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit())) {
        return Err(SkipReason::Number.into());
    }
    let values = [registry, country, date, status, columns.get(7).copied().unwrap_or_default()];
    let (start, value) = (columns[3], columns[4]);
    match TYPES[kind] {
        "ipv4" => {
            let first: V4 = start.parse().map_err(|_| crate::prefix::PrefixError::Address)?;
            let count: u32 = value.parse().map_err(|_| SkipReason::Number)?;
            let last =
                count.checked_sub(1).and_then(|more| first.0.checked_add(more)).ok_or(SkipReason::Range)?;
            let next_hop = labels.hop(&values, table)?;
            table.insert_range(first, V4(last), next_hop, ledger);
        }
        "ipv6" => {
            if !start.contains(':') {
                return Err(crate::prefix::PrefixError::Address.into());
            }
            let prefix = ledger.prefix_of(start, value)?;
            let next_hop = labels.hop(&values, table)?;
            table.insert(prefix, next_hop, ledger);
        }
        _ => {
            let number: u32 = start.parse().map_err(|_| SkipReason::Number)?;
            let count: u32 = value.parse().map_err(|_| SkipReason::Number)?;
            if count == 0 || number.checked_add(count - 1).is_none() {
                return Err(SkipReason::Number.into());
            }
            return Err(SkipReason::OtherRecord.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{bad_line, lenient, read_with, strict, text_of};
    use crate::read::{Format, ReadOptions};

    const FILE: &str = "\
2|ripencc|1700000000|5|19830705|20231114|+0100
ripencc|*|ipv4|*|3|summary
ripencc|*|asn|*|1|summary
ripencc|*|ipv6|*|1|summary
ripencc|FR|ipv4|2.0.0.0|1048576|20100712|allocated|id-1
ripencc|DE|ipv4|192.0.2.64|96|20100713|assigned|id-2
ripencc||ipv4|198.51.100.0|256||available|
ripencc|FR|asn|1712|1|19930901|allocated|id-1
ripencc|GB|ipv6|2001:db8::|32|19991011|allocated|id-3
";

    #[test]
    fn ranges_lengths_and_fields() {
        let (fib, report) = strict(Format::Delegated, FILE);
        assert_eq!(
            text_of(&fib),
            "2.0.0.0/12 registry=ripencc,country=FR,date=20100712,status=allocated,opaque_id=id-1\n\
             192.0.2.64/26 registry=ripencc,country=DE,date=20100713,status=assigned,opaque_id=id-2\n\
             192.0.2.128/27 registry=ripencc,country=DE,date=20100713,status=assigned,opaque_id=id-2\n\
             198.51.100.0/24 registry=ripencc,status=available\n\
             2001:db8::/32 registry=ripencc,country=GB,date=19991011,status=allocated,opaque_id=id-3\n"
        );
        assert_eq!((report.records, report.routes), (5, 5));
        assert_eq!(report.skipped_for(SkipReason::OtherRecord), 1);
    }

    #[test]
    fn chosen_fields() {
        let of = |values: &[&str]| {
            let values = values.iter().map(ToString::to_string).collect();
            let columns = Columns { values, ..Columns::default() };
            read_with(FILE.as_bytes(), &ReadOptions { columns, ..ReadOptions::default() })
        };
        let (fib, report) = of(&["country"]).unwrap();
        assert_eq!(text_of(&fib), "2.0.0.0/12 FR\n192.0.2.64/26 DE\n192.0.2.128/27 DE\n2001:db8::/32 GB\n");
        assert_eq!(report.skipped_for(SkipReason::NoField), 1);
        assert_eq!(
            of(&["city"]).unwrap_err().to_string(),
            "test:1: no field city; there are registry, country, date, status, opaque_id"
        );
    }

    #[test]
    fn a_file_with_fewer_records_than_it_tells_is_refused() {
        let cut = &FILE[..FILE.find("ripencc|GB").unwrap()];
        let options = ReadOptions::default();
        assert_eq!(
            read_with(cut.as_bytes(), &options).unwrap_err().to_string(),
            "test:8: 0 records of ipv6, and the summary tells 1; 4 whole records before it, 4 taken"
        );
        let (fib, report) = lenient(Format::Delegated, cut);
        assert_eq!((fib.v4.len(), report.truncated.unwrap().place), (4, Place::Line(8)));
        let without = FILE.lines().filter(|line| !line.ends_with("summary")).collect::<Vec<_>>().join("\n");
        assert!(read_with(without.as_bytes(), &options).is_ok());
        let lost = without.replace("ripencc|FR|asn|1712|1|19930901|allocated|id-1\n", "");
        let message = read_with(lost.as_bytes(), &options).unwrap_err().to_string();
        assert!(message.contains("4 records, and the first line tells 5"), "{message}");
    }

    #[test]
    fn wrong_lines_are_named() {
        for (line, reason) in [
            ("ripencc|FR|ipv4|2.0.0.0|0|20100712|allocated|a", SkipReason::Range),
            ("ripencc|FR|ipv4|255.255.255.0|257|20100712|allocated|a", SkipReason::Range),
            ("ripencc|FR|ipv4|2.0.0.0|x|20100712|allocated|a", SkipReason::Number),
            ("ripencc|FR|ipv4|2.0.0|1|20100712|allocated|a", crate::prefix::PrefixError::Address.into()),
            (
                "ripencc|FR|ipv6|2001:db8::1|32|20100712|allocated|a",
                crate::prefix::PrefixError::HostBits.into(),
            ),
            ("ripencc|FR|ipv6|2.0.0.0|8|20100712|allocated|a", crate::prefix::PrefixError::Address.into()),
            ("ripencc|FR|asn|4294967295|2|20100712|allocated|a", SkipReason::Number),
            ("ripencc|FR|ipx|2.0.0.0|1|20100712|allocated|a", SkipReason::Word),
            ("ripencc|Fr|ipv4|2.0.0.0|1|20100712|allocated|a", SkipReason::Word),
            ("here|FR|ipv4|2.0.0.0|1|20100712|allocated|a", SkipReason::Word),
            ("ripencc|FR|ipv4|2.0.0.0|1|20100712|lent|a", SkipReason::Word),
            ("ripencc|FR|ipv4|2.0.0.0|1|2010|allocated|a", SkipReason::Number),
            ("ripencc|FR|ipv4|2.0.0.0|1|20100712", SkipReason::TooFewColumns),
            ("ripencc|FR|ipv4|2.0.0.0|1|20100712|allocated|a|more", SkipReason::TooManyColumns),
            ("ripencc|*|ipv4|*|3|summary", SkipReason::Record),
        ] {
            let head: String = FILE.lines().take(5).map(|line| format!("{line}\n")).collect();
            let text = format!("{head}{line}\n");
            bad_line(Format::Delegated, &text, 6, reason);
            let (fib, report) = lenient(Format::Delegated, &text);
            assert_eq!((fib.v4.len(), report.skipped_for(reason)), (1, 1), "{line}");
        }
        let other = FILE.replacen("2|", "3|", 1);
        assert!(
            read_with(other.as_bytes(), &ReadOptions { lenient: true, ..ReadOptions::default() })
                .unwrap_err()
                .to_string()
                .starts_with("test:1: not the first line of delegations of version 2")
        );
    }
}
