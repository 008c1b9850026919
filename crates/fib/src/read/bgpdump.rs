//! `bgpdump -m`: one record on each line, columns separated by `|`. Tables hold one entry for each peer and
//! prefix (`B`), update dumps hold announcements (`A`) and withdrawals (`W`).
//!
//! ```text
//! TABLE_DUMP2|1687212000|B|147.28.7.1|3130|1.6.165.0/24|3130 1239|IGP|147.28.7.1|0|2|3130:380|NAG||
//! BGP4MP|1470931200|A|147.28.7.1|3130|1.6.165.0/24|3130 1239|IGP|147.28.7.1|0|0||NAG||
//! BGP4MP|1470931200|W|147.28.7.1|3130|1.6.165.0/24
//! kind   time        ^ peer       AS   prefix       AS path       next hop
//! ```

use std::net::IpAddr;

use wirespeed_input::Input;

use super::any_prefix::AnyPrefix;
use super::error::{End, Fault, Place, SkipReason};
use super::peers::PeerBook;
use super::report::Ledger;
use super::table::Table;
use super::text::{each_line, utf8, words};
use super::updates::{Updates, time};

/// The columns of a line that are used.
struct Record<'l> {
    is_table: bool,
    time: &'l str,
    action: &'l str,
    address: IpAddr,
    asn: u32,
    prefix: AnyPrefix,
    path: &'l str,
    next_hop: Result<&'l str, SkipReason>,
}

impl<'l> Record<'l> {
    fn parse(line: &'l [u8], ledger: &mut Ledger) -> Result<Self, SkipReason> {
        let mut columns = utf8(line)?.trim_ascii().split('|');
        let mut column = || columns.next().ok_or(SkipReason::TooFewColumns);
        let (kind, time, action) = (column()?, column()?, column()?);
        let is_table = kind.starts_with("TABLE_DUMP");
        if !is_table && !kind.starts_with("BGP4MP") {
            return Err(SkipReason::UpdateKind);
        }
        if !matches!(action, "B" | "A" | "W") {
            return Err(SkipReason::OtherRecord);
        }
        let address = column()?.parse().map_err(|_| SkipReason::BadPeer)?;
        let asn = asn(column()?).ok_or(SkipReason::BadPeer)?;
        let prefix = ledger.prefix(column()?.as_bytes())?;
        let path = columns.next().unwrap_or_default();
        // The next hop comes after the AS path and the kind of origin. If there are a global and a link-local
        // address, the global one comes first.
        let next_hop =
            columns.nth(1).and_then(|column| words(column).next()).ok_or(SkipReason::NextHopMissing);
        Ok(Self { is_table, time, action, address, asn, prefix, path, next_hop })
    }

    /// The origin of the path, or the peer's AS if the path is empty.
    fn origin(&self) -> Result<String, SkipReason> {
        Ok(origin_of_path(self.path)?.unwrap_or_else(|| self.asn.to_string()))
    }
}

/// An AS number, plain or in two halves (`1.10`).
fn asn(text: &str) -> Option<u32> {
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((high, low)) => {
            Some(u32::from(high.parse::<u16>().ok()?) << 16 | u32::from(low.parse::<u16>().ok()?))
        }
    }
}

/// The origin of a path: its last AS, or the set that it ends in. `None` if it has no AS beside those of
/// confederations (RFC 5065), `(1 2)` and `[1,2]`.
fn origin_of_path(path: &str) -> Result<Option<String>, SkipReason> {
    let mut origin = None;
    let mut rest = path.trim_ascii();
    while let Some(first) = rest.chars().next() {
        let closing = match first {
            '{' => '}',
            '(' => ')',
            '[' => ']',
            _ => {
                let (one, after) = rest.split_once(' ').unwrap_or((rest, ""));
                origin = Some(asn(one).ok_or(SkipReason::Path)?.to_string());
                rest = after.trim_ascii_start();
                continue;
            }
        };
        let (inner, after) = rest[1..].split_once(closing).ok_or(SkipReason::Path)?;
        let ases = inner.split([',', ' ']).map(|one| asn(one).map(|asn| asn.to_string()));
        let ases: Vec<_> = ases.collect::<Option<_>>().ok_or(SkipReason::Path)?;
        if first == '{' {
            origin = Some(format!("{{{}}}", ases.join(",")));
        }
        rest = after.trim_ascii_start();
    }
    Ok(origin)
}

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    book: &mut PeerBook,
) -> Result<(), End> {
    each_line(input, ledger, |line, place, ledger| entry(line, place, table, book, ledger))
}

fn entry(
    line: &[u8],
    place: Place,
    table: &mut Table,
    book: &mut PeerBook,
    ledger: &mut Ledger,
) -> Result<(), Fault> {
    let record = Record::parse(line, ledger)?;
    if !record.is_table || record.action == "W" {
        return Err(SkipReason::OtherRecord.into());
    }
    let peer = book.meet(record.address, record.asn, None);
    if !book.takes(peer, record.prefix.family())? {
        ledger.pass(SkipReason::OtherPeer, place);
        return Ok(());
    }
    let next_hop = if table.origins {
        table.hop(record.origin()?.as_bytes())?
    } else {
        table.hop(record.next_hop?.as_bytes())?
    };
    table.insert(record.prefix, next_hop, ledger);
    Ok(())
}

pub(super) fn read_updates(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    updates: &mut Updates<'_>,
) -> Result<(), End> {
    each_line(input, ledger, |line, _, ledger| {
        let record = Record::parse(line, ledger)?;
        if record.is_table || record.action == "B" {
            return Err(SkipReason::OtherRecord.into());
        }
        if !updates.takes(record.address, record.asn, record.prefix.family())? {
            return Err(SkipReason::OtherPeer.into());
        }
        let time = Some(time(record.time)?);
        if record.action == "W" {
            return updates.withdraw(time, record.prefix, ledger);
        }
        let next_hop = match updates.origins {
            true => updates.hop(record.origin()?.as_bytes())?,
            false => updates.hop(record.next_hop?.as_bytes())?,
        };
        updates.announce(time, record.prefix, Some(next_hop), ledger)
    })
}

#[cfg(test)]
mod tests {
    use crate::next_hop::NextHops;
    use crate::prefix::PrefixError;
    use crate::read::tests::{bad_line, read_with, strict, text_of, text_of_updates, updates_of};
    use crate::read::{Format, Peer, ReadOptions, SkipReason, collect_updates_from};

    const TABLE: &str = "\
TABLE_DUMP2|1687212000|B|192.0.2.1|64501|10.0.0.0/8|64501 1 {2,3}|IGP|192.0.2.1|0|0||NAG||
TABLE_DUMP2|1687212000|B|192.0.2.2|64502|10.0.0.0/8|64502 1|IGP|192.0.2.2|0|0||NAG||
TABLE_DUMP2|1687212000|B|192.0.2.2|64502|10.1.0.0/16|64502 1|IGP|192.0.2.9|0|0||NAG||
TABLE_DUMP2|1687212000|B|2001:db8::1|64503|2001:db8::/32|64503|IGP|2001:db8::1 fe80::1|0|0||NAG||
";

    #[test]
    fn takes_the_peer_with_most_prefixes_of_each_family() {
        let (fib, report) = strict(Format::Bgpdump, TABLE);
        assert_eq!(text_of(&fib), "10.0.0.0/8 192.0.2.2\n10.1.0.0/16 192.0.2.9\n2001:db8::/32 2001:db8::1\n");
        assert_eq!(
            (report.records, report.peers.len(), report.skipped_for(SkipReason::OtherPeer)),
            (4, 3, 1)
        );
        assert_eq!(report.chosen_peers().map(|p| p.asn).collect::<Vec<_>>(), [64502, 64503]);
    }

    #[test]
    fn takes_the_peer_asked_for() {
        for peer in ["192.0.2.1", "AS64501", "64501"] {
            let options = ReadOptions { peer: Some(peer.parse().unwrap()), ..ReadOptions::default() };
            let (fib, _) = read_with(TABLE.as_bytes(), &options).unwrap();
            assert_eq!(text_of(&fib), "10.0.0.0/8 192.0.2.1\n", "{peer}");
        }
        let options = ReadOptions { peer: Some("AS9".parse().unwrap()), ..ReadOptions::default() };
        let message = read_with(TABLE.as_bytes(), &options).unwrap_err().to_string();
        assert_eq!(
            message,
            "test: no peer AS9; there are peer 192.0.2.1 AS64501, peer 192.0.2.2 AS64502, peer 2001:db8::1 AS64503"
        );
    }

    #[test]
    fn updates_with_their_times() {
        let text = "BGP4MP|1470931200.25|A|192.0.2.1|1.10|10.0.0.0/8|65546|IGP|192.0.2.1|0|0||NAG||\n\
                    BGP4MP|1470931201|W|192.0.2.1|65546|10.0.0.0/8\n\
                    BGP4MP|1470931202|STATE|192.0.2.1|65546|6|1\n";
        let (updates, report) = updates_of(Format::Bgpdump, text).unwrap();
        assert_eq!(updates, "1470931200.25 A 10.0.0.0/8 192.0.2.1\n1470931201 W 10.0.0.0/8\n");
        assert_eq!((report.routes, report.skipped_for(SkipReason::OtherRecord)), (2, 1));
        let (options, mut hops) = (ReadOptions { origins: true, ..ReadOptions::default() }, NextHops::new());
        let (updates, _) = collect_updates_from(text.as_bytes(), "test", &options, &mut hops).unwrap();
        assert_eq!(
            text_of_updates(&updates, &hops),
            "1470931200.25 A 10.0.0.0/8 65546\n1470931201 W 10.0.0.0/8\n"
        );
    }

    #[test]
    fn updates_are_those_of_one_peer() {
        let mut text = String::new();
        for (peer, kind) in [("1|64501", "A"), ("2|64502", "A"), ("2|64502", "W"), ("3|64502", "W")] {
            text += &format!(
                "BGP4MP|1|{kind}|192.0.2.{peer}|10.0.0.0/8|1|IGP|192.0.2.{}|0|0||NAG||\n",
                &peer[..1]
            );
        }
        text += "BGP4MP|2|A|2001:db8::1|64503|2001:db8::/32|1|IGP|2001:db8::1|0|0||NAG||\n";
        let of = |peer: Option<&str>, table: [Option<u8>; 2]| {
            let at = |last: u8| Peer {
                index: Some(u16::from(last)),
                address: [192, 0, 2, last].into(),
                asn: if last == 1 { 64501 } else { 64502 },
                prefixes: [0; 2],
                chosen: [true; 2],
            };
            let options = ReadOptions {
                peer: peer.map(|peer| peer.parse().unwrap()),
                peers_of_table: table.map(|last| last.map(at)),
                ..ReadOptions::default()
            };
            let mut hops = NextHops::new();
            collect_updates_from(text.as_bytes(), "test", &options, &mut hops).map(|(updates, report)| {
                assert_eq!(report.routes, updates.len() as u64);
                (text_of_updates(&updates, &hops).replace("2 A 2001:db8::/32 2001:db8::1\n", "+6"), report)
            })
        };
        let second = "1 A 10.0.0.0/8 192.0.2.2\n1 W 10.0.0.0/8\n";
        let (taken, report) = of(None, [None; 2]).unwrap();
        assert_eq!(taken, format!("{second}+6"), "of each family the peer with most updates");
        assert_eq!((report.skipped_for(SkipReason::OtherPeer), report.peers.len()), (2, 4));
        assert!(
            report.to_string().contains(
                "taken from peer 192.0.2.2 AS64502 for IPv4 and peer 2001:db8::1 AS64503 for IPv6, of 4 peers\n"
            ),
            "{report}"
        );
        // The table's own, however few it has; where it has none, the one with most.
        assert_eq!(of(None, [Some(1), None]).unwrap().0, "1 A 10.0.0.0/8 192.0.2.1\n+6");
        assert_eq!(of(None, [Some(3), Some(3)]).unwrap().0, "1 W 10.0.0.0/8\n+6");
        assert_eq!(of(None, [Some(9), None]).unwrap().0, format!("{second}+6"));
        // A number is a place in the table's file.
        assert_eq!(of(Some("3"), [Some(3), None]).unwrap().0, "1 W 10.0.0.0/8\n");
        assert!(of(Some("3"), [None; 2]).is_err());
        assert_eq!(of(Some("64501"), [None; 2]).unwrap().0, "1 A 10.0.0.0/8 192.0.2.1\n");
        assert_eq!(of(Some("AS64502"), [Some(1), None]).unwrap().0, second, "asked for against the table's");
        let (all, report) = of(Some("all"), [Some(1), None]).unwrap();
        assert_eq!((all.lines().count(), report.skipped_for(SkipReason::OtherPeer)), (5, 0));
        assert!(report.to_string().contains("taken from 4 of 4 peers, mixed"), "{report}");
        // A table is one peer's even then.
        let options = ReadOptions { peer: Some("all".parse().unwrap()), ..ReadOptions::default() };
        assert_eq!(read_with(TABLE.as_bytes(), &options).unwrap().0.v4.len(), 2);
    }

    #[test]
    fn bad_lines() {
        let good = TABLE.lines().next().unwrap();
        for (line, reason) in [
            ("TABLE_DUMP2|1|B|192.0.2.1", SkipReason::TooFewColumns),
            ("TABLE_DUMP2|1|B|nobody|1|10.0.0.0/8|1|IGP|192.0.2.1|", SkipReason::BadPeer),
            ("TABLE_DUMP2|1|B|192.0.2.1|x|10.0.0.0/8|1|IGP|192.0.2.1|", SkipReason::BadPeer),
            ("TABLE_DUMP2|1|B|192.0.2.1|64501|10.0.0.0/8|1|IGP||", SkipReason::NextHopMissing),
            ("TABLE_DUMP2|1|B|192.0.2.1|64501|10.0.0.0/8|1", SkipReason::NextHopMissing),
            (
                "TABLE_DUMP2|1|B|192.0.2.1|64501|10.0.0.1/8|1|IGP|a|",
                SkipReason::Prefix(PrefixError::HostBits),
            ),
            ("NOISE|1|B|192.0.2.1|64501|10.0.0.0/8|1|IGP|a|", SkipReason::UpdateKind),
        ] {
            bad_line(Format::Bgpdump, &format!("{good}\n{line}\n"), 2, reason);
        }
    }

    #[test]
    fn origins_in_place_of_next_hops() {
        let line = |prefix, path| {
            format!("TABLE_DUMP2|1|B|192.0.2.7|3130|{prefix}|{path}|IGP|192.0.2.1|0|0||NAG||\n")
        };
        let options = ReadOptions { origins: true, ..ReadOptions::default() };
        for (path, origin) in [
            ("3130 1239", "1239"),
            ("3130 {1,2}", "{1,2}"),
            ("", "3130"),
            // Confederations are left out, and numbers in two halves are whole ones.
            ("(64512 64513) [64514,64515] 3130 1.10", "65546"),
            ("{1.0,2} (64512)", "{65536,2}"),
            ("3130 [64512]", "3130"),
            ("(64512 1.10)", "3130"),
        ] {
            let (fib, _) = read_with(line("10.0.0.0/8", path).as_bytes(), &options).unwrap();
            assert_eq!(text_of(&fib), format!("10.0.0.0/8 {origin}\n"), "{path}");
        }
        for path in ["3130 x", "{1,2", "(1 x) 2", "{}", "1.99999", "1 2)"] {
            let message = read_with(line("10.0.0.0/8", path).as_bytes(), &options).unwrap_err().to_string();
            assert!(message.starts_with("test:1: not an AS path"), "{path}: {message}");
        }
    }
}
