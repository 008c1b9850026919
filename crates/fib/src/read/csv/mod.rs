//! Routes from CSV and TSV whose first line names the columns (RFC 4180).
//!
//! ```text
//! network,asn,country                  start_ip,end_ip,country           address  length  origin
//! 1.0.0.0/24,13335,AU                  1.0.0.0,1.0.3.255,AU              1.0.0.0  24      13335
//! ```
//!
//! The prefix is one column, a range of two (as the fewest prefixes, see
//! [`prefixes_of_range`](crate::range::prefixes_of_range)), or an address and a length or netmask. A range
//! may also stand in one cell: `1.0.0.0-1.0.0.255`. The value is one column or several
//! (`asn=13335,country=AU`), see `label.rs`; without value columns each prefix has the next hop [`MEMBER`].
//! Where ranges overlap, the longest prefix counts, so a range inside another hides its part of it; of equal
//! prefixes that of the smaller range counts, or the last. A record whose values are all empty has the next
//! hop [`NO_VALUE`]: left out, it would leave its addresses to a wider prefix.

pub(in crate::read) mod cells;
mod columns;
pub(in crate::read) mod header;
pub(in crate::read) mod label;
pub(in crate::read) mod record;

use std::net::IpAddr;

use wirespeed_input::Input;

use self::cells::{BadQuotes, Cells};
pub use self::columns::{Columns, PrefixColumns};
use self::header::{Header, Key};
use self::record::each_record;
use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, ReadError, SkipReason};
use super::report::Ledger;
use super::table::Table;
use super::text::mask_len;
use super::{MEMBER, NO_VALUE};
use crate::address::{V4, V6};
use crate::prefix::PrefixError;

impl From<BadQuotes> for SkipReason {
    fn from(BadQuotes: BadQuotes) -> Self {
        Self::Quotes
    }
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: &Columns,
) -> Result<(), End> {
    let mut header: Option<Header> = None;
    let mut cells = Cells::default();
    let mut text = String::new();
    each_record(input, ledger, |record, place, ledger| match &header {
        None => {
            ledger.report.records -= 1;
            header = Some(Header::find(record, wanted).map_err(|unfit| {
                let name = ledger.report.name.clone();
                let header::Unfit { problem, columns } = unfit;
                let what = format!("{problem}; the columns are {columns}").into();
                Fault::Ended(Box::new(ReadError::Columns { name, place, what }))
            })?);
            ledger.report.is_list = header.as_ref().is_some_and(|header| header.values.is_empty());
            ledger.report.names_fields = header.as_ref().is_some_and(|header| header.values.len() > 1);
            Ok(())
        }
        Some(header) => {
            cells.split(record, header.separator).map_err(SkipReason::from)?;
            route(header, cells.as_slice(), &mut text, table, ledger)
        }
    })
}

fn route(
    header: &Header,
    cells: &[String],
    text: &mut String,
    table: &mut Table,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    match cells.len().cmp(&header.names.len()) {
        std::cmp::Ordering::Less => return Err(SkipReason::TooFewColumns.into()),
        std::cmp::Ordering::Greater => return Err(SkipReason::TooManyColumns.into()),
        std::cmp::Ordering::Equal => {}
    }
    let destination = Destination::of(header.key, cells, ledger)?;
    if header.values.is_empty() {
        text.clear();
        text.push_str(MEMBER);
    } else {
        let is_one = header.values.len() == 1;
        label::write(text, is_one, header.values.iter().map(|&at| (&*header.names[at], &*cells[at])));
        if text.is_empty() {
            text.push_str(NO_VALUE);
        }
    }
    let next_hop = table.hop(text.as_bytes())?;
    match destination {
        Destination::Prefix(prefix) => table.insert(prefix, next_hop, ledger),
        Destination::V4(first, last) => table.insert_range(first, last, next_hop, ledger),
        Destination::V6(first, last) => table.insert_range(first, last, next_hop, ledger),
    }
    Ok(())
}

/// The addresses of a record.
enum Destination {
    Prefix(AnyPrefix),
    /// The first and the last address.
    V4(V4, V4),
    V6(V6, V6),
}

impl Destination {
    fn of(key: Key, cells: &[String], ledger: &mut Ledger) -> Result<Self, SkipReason> {
        let (cell, other) = key.cells(cells);
        match key {
            Key::Prefix(_) => match cell.split_once('-') {
                Some((first, last)) => Self::range(first.trim(), last.trim()),
                None => ledger.prefix(cell.as_bytes()).map(Self::Prefix),
            },
            Key::Range(..) => Self::range(cell, other),
            Key::Length(..) => match other.parse::<IpAddr>() {
                Ok(mask) => {
                    let address = address(cell)?;
                    if mask.is_ipv4() != address.is_ipv4() {
                        return Err(SkipReason::Mask);
                    }
                    Ok(Self::Prefix(ledger.prefix_of_len(address, mask_len(mask).ok_or(SkipReason::Mask)?)?))
                }
                Err(_) => Ok(Self::Prefix(ledger.prefix_of(cell, other)?)),
            },
        }
    }

    fn range(first: &str, last: &str) -> Result<Self, SkipReason> {
        match (address(first)?, address(last)?) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => Ok(Self::V4(first.into(), last.into())),
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => Ok(Self::V6(first.into(), last.into())),
            _ => Err(SkipReason::Range),
        }
    }
}

fn address(word: &str) -> Result<IpAddr, PrefixError> {
    word.parse().map_err(|_| PrefixError::Address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::tests::{bad_line, lenient, read_with, strict, text_of};
    use crate::read::{Format, ReadOptions};

    /// The start of a file as GeoLite2 has them, of one as IPinfo has them, and of others.
    const GEOLITE: &str = "\
network,autonomous_system_number,autonomous_system_organization
1.0.0.0/24,13335,CLOUDFLARENET
1.0.4.0/22,38803,\"Wirefreebroadband Pty Ltd\"
2001:200::/32,2500,\"WIDE Project, \"\"AS2500\"\"\"
";

    fn of_columns(text: &str, columns: Columns) -> Result<String, String> {
        let options = ReadOptions { columns, ..ReadOptions::default() };
        read_with(text.as_bytes(), &options).map(|(fib, _)| text_of(&fib)).map_err(|error| error.to_string())
    }

    fn values(names: &[&str]) -> Columns {
        Columns { values: names.iter().map(ToString::to_string).collect(), ..Columns::default() }
    }

    #[test]
    fn columns_of_usual_names_with_all_values_or_some() {
        let (fib, report) = strict(Format::Csv, GEOLITE);
        assert_eq!(
            text_of(&fib),
            "1.0.0.0/24 autonomous_system_number=13335,autonomous_system_organization=CLOUDFLARENET\n\
             1.0.4.0/22 autonomous_system_number=38803,autonomous_system_organization=Wirefreebroadband%20Pty%20Ltd\n\
             2001:200::/32 autonomous_system_number=2500,\
             autonomous_system_organization=WIDE%20Project%2C%20\"AS2500\"\n"
        );
        assert_eq!((report.records, report.routes), (3, 3));
        assert_eq!(
            of_columns(GEOLITE, values(&["autonomous_system_number"])).unwrap(),
            "1.0.0.0/24 13335\n1.0.4.0/22 38803\n2001:200::/32 2500\n"
        );
        assert_eq!(
            of_columns(GEOLITE, values(&["asn"])).unwrap_err(),
            "test:1: no column asn; the columns are network, autonomous_system_number, \
             autonomous_system_organization"
        );
    }

    #[test]
    fn ranges_are_their_fewest_prefixes() {
        let text = "\u{feff}# of IPinfo's shape\nstart_ip,end_ip,country\r\n1.0.0.0,1.0.3.255,AU\r\n\
                    1.0.4.5,1.0.4.8,CN\r\n2001:db8::,2001:db8::1:ffff,DE\r\n";
        let (fib, report) = strict(Format::Csv, text);
        assert_eq!(
            text_of(&fib),
            "1.0.0.0/22 AU\n1.0.4.5/32 CN\n1.0.4.6/31 CN\n1.0.4.8/32 CN\n2001:db8::/111 DE\n"
        );
        assert_eq!((report.records, report.routes, report.repeated), (3, 5, 0));
        let inner = "ip,who\n10.0.0.0 - 10.0.0.255,outer\n10.0.0.3-10.0.0.6,inner\n";
        assert_eq!(
            text_of(&strict(Format::Csv, inner).0),
            "10.0.0.0/24 outer\n10.0.0.3/32 inner\n10.0.0.4/31 inner\n10.0.0.6/32 inner\n"
        );
    }

    #[test]
    fn addresses_with_lengths_or_netmasks_and_lists() {
        let text = "address\tlength\tasn\n10.0.0.0\t8\t1\n10.1.0.0\t255.255.0.0\t2\n2001:db8::\t32\t3\n";
        assert_eq!(text_of(&strict(Format::Csv, text).0), "10.0.0.0/8 1\n10.1.0.0/16 2\n2001:db8::/32 3\n");
        let (fib, report) = strict(Format::Csv, "Prefix\n10.0.0.0/8\n192.0.2.7\n");
        assert_eq!(
            (text_of(&fib).as_str(), report.is_list),
            ("10.0.0.0/8 member\n192.0.2.7/32 member\n", true)
        );
    }

    #[test]
    fn columns_named_by_the_caller() {
        let text = "a;b;c\n10.0.0.0;10.0.0.1;x\n";
        for (prefix, read) in [
            (PrefixColumns::Range("a".into(), "b".into()), "10.0.0.0/31 x\n"),
            (PrefixColumns::Prefix("b".into()), "10.0.0.1/32 x\n"),
        ] {
            assert_eq!(of_columns(text, Columns { prefix: Some(prefix), ..values(&["c"]) }).unwrap(), read);
        }
        let text = "net;bits;c\n10.0.0.0;8;x\n";
        let length = PrefixColumns::Length("net".into(), "bits".into());
        assert_eq!(
            of_columns(text, Columns { prefix: Some(length), ..values(&[]) }).unwrap(),
            "10.0.0.0/8 x\n"
        );
    }

    #[test]
    fn a_cell_may_go_over_lines() {
        let text = "network,note\n10.0.0.0/8,\"one\ntwo\"\n11.0.0.0/8,x\n";
        assert_eq!(text_of(&strict(Format::Csv, text).0), "10.0.0.0/8 one%0Atwo\n11.0.0.0/8 x\n");
    }

    #[test]
    fn a_record_without_values_hides_wider_prefixes() {
        let text = "network,asn,org\n10.0.0.0/8,64500,Big\n10.1.0.0/16,64501,\n10.2.0.0/16,,\n";
        let of = |names: &[&str]| of_columns(text, values(names)).unwrap();
        assert_eq!(of(&["org"]), "10.0.0.0/8 Big\n10.1.0.0/16 -\n10.2.0.0/16 -\n");
        assert_eq!(of(&[]), "10.0.0.0/8 asn=64500,org=Big\n10.1.0.0/16 asn=64501\n10.2.0.0/16 -\n");
        assert_eq!(crate::read::label_fields("-"), Some(Vec::new()));
    }

    #[test]
    fn overlapping_ranges_in_any_order() {
        let (inner, outer) = ("10.0.0.64,10.0.0.191,inner\n", "10.0.0.0,10.0.0.250,outer\n");
        for records in [[inner, outer], [outer, inner]] {
            let (fib, report) = strict(Format::Csv, &format!("start,end,v\n{}", records.concat()));
            // Both have 10.0.0.128/26 as a part.
            let expected =
                "10.0.0.0/25 outer\n10.0.0.64/26 inner\n10.0.0.128/26 inner\n10.0.0.192/27 outer\n";
            assert!(text_of(&fib).starts_with(expected), "{}", text_of(&fib));
            assert_eq!(report.repeated, 1);
        }
    }

    #[test]
    fn bad_records_are_named_and_can_be_left_out() {
        for (line, reason) in [
            ("10.0.0.1,10.0.0.0,a", SkipReason::Range),
            ("10.0.0.1,::1,a", SkipReason::Range),
            ("10.0.0.1,10.0.0.2", SkipReason::TooFewColumns),
            ("10.0.0.1,10.0.0.2,a,b", SkipReason::TooManyColumns),
            ("x,10.0.0.2,a", SkipReason::Prefix(PrefixError::Address)),
            ("10.0.0.1,,a", SkipReason::Prefix(PrefixError::Address)),
            ("10.0.0.1,10.0.0.2,a\"b\"", SkipReason::Quotes),
        ] {
            let text = format!("start,end,v\n1.0.0.0,1.0.0.0,a\n{line}\n2.0.0.0,2.0.0.0,b\n");
            bad_line(Format::Csv, &text, 3, reason);
            let (fib, report) = lenient(Format::Csv, &text);
            assert_eq!((fib.v4.len(), report.skipped_for(reason)), (2, 1), "{line}");
        }
        for (line, reason) in [
            ("10.0.0.1/8,a", SkipReason::Prefix(PrefixError::HostBits)),
            ("10.0.0.0/8,\"a", SkipReason::Quotes),
        ] {
            bad_line(Format::Csv, &format!("network,v\n1.0.0.0/8,a\n{line}\n"), 3, reason);
        }
        let stray = "network,v\n1.0.0.0/8,5\" pipe\n2.0.0.0/8,b\n3.0.0.0/8,\"c\"\n";
        let (fib, report) = lenient(Format::Csv, stray);
        assert_eq!((fib.v4.len(), report.skipped_for(SkipReason::Quotes)), (2, 1));
        bad_line(Format::Csv, "ip,mask\n10.0.0.0,0.0.0.255\n", 2, SkipReason::Mask);
    }

    #[test]
    fn a_first_line_without_a_prefix_ends_every_reading() {
        for lenient in [false, true] {
            let options = ReadOptions { format: Some(Format::Csv), lenient, ..ReadOptions::default() };
            let message = read_with(b"a,b\n10.0.0.0/8,1\n", &options).unwrap_err().to_string();
            assert_eq!(
                message,
                "test:1: no column is named like a prefix (network, prefix, cidr, start_ip and end_ip, ip); \
                 the columns are a, b"
            );
        }
    }
}
