//! Routes from CSV and TSV whose first line names the columns (RFC 4180).
//!
//! ```text
//! network,asn,country                  start_ip,end_ip,country           address  length  origin
//! 1.0.0.0/24,13335,AU                  1.0.0.0,1.0.3.255,AU              1.0.0.0  24      13335
//! ```
//!
//! The prefix is one column, a range of two (as the fewest prefixes, see
//! [`prefixes_of_range`](crate::range::prefixes_of_range)), or an address and a length or netmask. A range
//! may also stand in one cell: `1.0.0.0-1.0.0.255`. Addresses may be decimal numbers: see `numbers.rs`.
//!
//! The value is one column or several (`asn=13335,country=AU`), see `label.rs`; without value columns each
//! prefix has the next hop [`MEMBER`].
//! Where ranges overlap, the longest prefix counts, so a range inside another hides its part of it; of equal
//! prefixes that of the smaller range counts, or the last. A record whose values are all empty has the next
//! hop [`NO_VALUE`]: left out, it would leave its addresses to a wider prefix.

pub(in crate::read) mod cells;
mod columns;
pub(in crate::read) mod header;
pub(in crate::read) mod label;
mod numbers;
pub(in crate::read) mod record;

use std::net::IpAddr;

use wirespeed_input::Input;

use self::cells::{BadQuotes, Cells};
pub use self::columns::{Columns, PrefixColumns};
use self::header::{Header, Key};
use self::numbers::Numbers;
use self::record::each_record;
use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, ReadError, SkipReason};
use super::number::is_number;
use super::report::Ledger;
use super::table::Table;
use super::text::mask_len;
use super::{MEMBER, NO_VALUE};
use crate::address::{Family, V4, V6};
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
    let mut numbers = Numbers::default();
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
            let may_be = header.as_ref().is_some_and(|header| header.is_of_addresses);
            numbers = Numbers::new(wanted.numbers, may_be);
            ledger.report.is_list = header.as_ref().is_some_and(|header| header.values.is_empty());
            ledger.report.names_fields = header.as_ref().is_some_and(|header| header.values.len() > 1);
            Ok(())
        }
        Some(header) => {
            cells.split(record, header.separator).map_err(SkipReason::from)?;
            let destination = Destination::of(header, cells.as_slice(), &mut numbers, ledger)?;
            numbers.check(&ledger.report.name, place)?;
            route(header, cells.as_slice(), destination, &mut text, table, ledger)
        }
    })
}

fn route(
    header: &Header,
    cells: &[String],
    destination: Destination,
    text: &mut String,
    table: &mut Table,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
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
    fn of(
        header: &Header,
        cells: &[String],
        numbers: &mut Numbers,
        ledger: &mut Ledger,
    ) -> Result<Self, SkipReason> {
        match cells.len().cmp(&header.names.len()) {
            std::cmp::Ordering::Less => return Err(SkipReason::TooFewColumns),
            std::cmp::Ordering::Greater => return Err(SkipReason::TooManyColumns),
            std::cmp::Ordering::Equal => {}
        }
        let (cell, other) = header.key.cells(cells);
        match header.key {
            Key::Prefix(_) => match cell.split_once('-') {
                Some((first, last)) => Self::range(first.trim(), last.trim(), numbers),
                None if is_number(cell) => {
                    let address = numbers.address(cell)?;
                    Ok(Self::Prefix(ledger.prefix_of_len(address, Family::of(address).bits().into())?))
                }
                None => ledger.prefix(cell.as_bytes()).map(Self::Prefix),
            },
            Key::Range(..) => Self::range(cell, other, numbers),
            Key::Length(..) => match other.parse::<IpAddr>() {
                Ok(mask) => {
                    let address = if is_number(cell) { numbers.address(cell)? } else { address(cell)? };
                    if mask.is_ipv4() != address.is_ipv4() {
                        return Err(SkipReason::Mask);
                    }
                    Ok(Self::Prefix(ledger.prefix_of_len(address, mask_len(mask).ok_or(SkipReason::Mask)?)?))
                }
                Err(_) if is_number(cell) => {
                    let text = numbers.address(cell)?.to_string();
                    Ok(Self::Prefix(ledger.prefix_of(&text, other)?))
                }
                Err(_) => Ok(Self::Prefix(ledger.prefix_of(cell, other)?)),
            },
        }
    }

    fn range(first: &str, last: &str, numbers: &mut Numbers) -> Result<Self, SkipReason> {
        let (first, last) = match (is_number(first), is_number(last)) {
            (true, true) => numbers.range(first, last)?,
            (false, false) => (address(first)?, address(last)?),
            _ => return Err(SkipReason::AddressNumber),
        };
        match (first, last) {
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

    /// The start of a file as IP2Location has them, with a header.
    const OF_NUMBERS: &str = "\
\"ip_from\",\"ip_to\",\"country_code\"
\"0\",\"16777215\",\"-\"
\"16777216\",\"16777471\",\"US\"
\"4294967295\",\"4294967295\",\"-\"
";

    /// The start of a file of IPv6, with the networks of IPv4 as mapped ones.
    const OF_V6: &str = "\
ip_from,ip_to,country_code
0,281470681743359,-
281470681743360,281470698520575,-
281470698520576,281470698520831,US
281474976710656,58569071813452613185929873510317667327,-
340282366920938463463374607431768211455,340282366920938463463374607431768211455,ZZ
";

    #[test]
    fn ranges_of_numbers() {
        assert_eq!(
            text_of(&strict(Format::Csv, OF_NUMBERS).0),
            "0.0.0.0/8 -\n1.0.0.0/24 US\n255.255.255.255/32 -\n"
        );
        let (fib, _) = strict(Format::Csv, OF_V6);
        let text = text_of(&fib);
        assert!(text.starts_with("0.0.0.0/8 -\n1.0.0.0/24 US\n::/81 -\n::8000:0:0/82 -\n"), "{text}");
        assert!(text.ends_with("\nffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128 ZZ\n"), "{text}");
        assert_eq!(Format::recognise(OF_NUMBERS.as_bytes()), Some(Format::Csv));
    }

    #[test]
    fn numbers_of_an_unclear_family_are_refused_unless_it_is_stated() {
        let of = |text: &str, numbers| of_columns(text, Columns { numbers, ..Columns::default() });
        let (low, high) =
            ("5,9,a\n", "42540766411282592856903984951653826560,42540766411282592856903984951653826561,b\n");
        for records in [[low, high], [high, low]] {
            let text = format!("ip_from,ip_to,v\n{}", records.concat());
            for lenient in [false, true] {
                let options = ReadOptions { lenient, ..ReadOptions::default() };
                let said = read_with(text.as_bytes(), &options).unwrap_err().to_string();
                assert!(said.starts_with("test:3: numbers up to 4294967295 and larger ones"), "{said}");
            }
            let low = "::5/128 a\n::6/127 a\n::8/127 a\n";
            assert_eq!(of(&text, Some(Family::V6)).unwrap(), format!("{low}2001:db8::/127 b\n"));
            assert!(of(&text, Some(Family::V4)).unwrap_err().contains("not the number of an address"));
        }
        for (text, in_v4) in [
            ("start,end,v\n5,5,a\n", "0.0.0.5/32 a\n"),
            ("ip,v\n5,a\n", "0.0.0.5/32 a\n"),
            ("network,v\n4-5,a\n", "0.0.0.4/31 a\n"),
            ("address,len,v\n4,30,a\n", "0.0.0.4/30 a\n"),
            ("address,mask,v\n4,255.255.255.252,a\n", "0.0.0.4/30 a\n"),
        ] {
            bad_line(Format::Csv, text, 2, SkipReason::NumberFamily);
            let options = ReadOptions {
                format: Some(Format::Csv),
                columns: Columns { numbers: Some(Family::V4), ..Columns::default() },
                ..ReadOptions::default()
            };
            assert_eq!(text_of(&read_with(text.as_bytes(), &options).unwrap().0), in_v4);
        }
        // Columns that the caller names are of addresses.
        let range = PrefixColumns::Range("start".into(), "end".into());
        let named = Columns { prefix: Some(range), ..Columns::default() };
        assert_eq!(of_columns("start,end,v\n5,5,a\n", named).unwrap(), "0.0.0.5/32 a\n");
        for (range, reason) in [
            ("05,9", SkipReason::AddressNumber),
            ("5,0.0.0.9", SkipReason::AddressNumber),
            ("0.0.0.5,9", SkipReason::AddressNumber),
            (
                "340282366920938463463374607431768211455,340282366920938463463374607431768211456",
                SkipReason::AddressNumber,
            ),
            ("9,5", SkipReason::Range),
            // From IPv4-mapped addresses to others.
            ("281470681743360,281474976710656", SkipReason::Range),
            ("0x5,0x9", SkipReason::Prefix(PrefixError::Address)),
            ("+5,+9", SkipReason::Prefix(PrefixError::Address)),
        ] {
            bad_line(Format::Csv, &format!("ip_from,ip_to,v\n{range},a\n"), 2, reason);
        }
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
