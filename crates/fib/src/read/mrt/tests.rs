//! MRT files made by hand, good and bad.

use super::*;
use crate::address::Family;
use crate::prefix::PrefixError;
use crate::read::tests::{read_strict, read_with, text_of, text_of_updates};
use crate::read::{Format, ReadError, ReadOptions, ReadReport, collect_updates_from};

fn record(kind: u16, subtype: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap();
    [&7u32.to_be_bytes()[..], &kind.to_be_bytes(), &subtype.to_be_bytes(), &length.to_be_bytes(), body]
        .concat()
}

/// Peers 192.0.2.1 of AS 1, 192.0.2.2 of AS 2 and 2001:db8::3 of AS 3.
fn peers() -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0, 0, 0, 3];
    body.extend([2, 9, 9, 9, 9, 192, 0, 2, 1, 0, 0, 0, 1]);
    body.extend([0, 9, 9, 9, 9, 192, 0, 2, 2, 0, 2]);
    body.extend([3, 9, 9, 9, 9, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 3]);
    record(TABLE_DUMP_V2, 1, &body)
}

fn via(last: u8) -> Vec<u8> {
    vec![0x40, 1, 1, 0, 0x40, 2, 0, 0x40, 3, 4, 192, 0, 2, last]
}

/// Attributes of a table's entry: nothing but the next hop.
fn via_v6(last: u8) -> Vec<u8> {
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    [&[0x40, 1, 1, 0, 0x40, 2, 0, 0x80, 14, 17, 16][..], &address].concat()
}

fn entry(peer: u8, path: Option<u8>, attributes: &[u8]) -> Vec<u8> {
    let mut entry = vec![0, peer, 0, 0, 0, 0];
    entry.extend(path.iter().flat_map(|&id| [0, 0, 0, id]));
    entry.extend([0, u8::try_from(attributes.len()).unwrap()]);
    entry.extend(attributes);
    entry
}

fn rib(subtype: u16, head: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(entries.len()).unwrap();
    record(TABLE_DUMP_V2, subtype, &[&[0, 0, 0, 0][..], head, &[0, count], &entries.concat()].concat())
}

/// Two IPv4 prefixes of peer 1, one of peer 0, an IPv6 prefix of peer 2.
fn table() -> Vec<u8> {
    [
        peers(),
        rib(2, &[8, 10], &[entry(0, None, &via(1)), entry(1, None, &via(2))]),
        rib(2, &[16, 10, 1], &[entry(1, None, &via(9))]),
        rib(4, &[32, 0x20, 1, 0xd, 0xb8], &[entry(2, None, &via_v6(3))]),
    ]
    .concat()
}

fn of_peer(peer: &str, bytes: &[u8]) -> Result<String, ReadError> {
    let options = ReadOptions { peer: Some(peer.parse().unwrap()), ..ReadOptions::default() };
    read_with(bytes, &options).map(|(fib, _)| text_of(&fib))
}

fn bad(bytes: &[u8]) -> (u64, SkipReason) {
    match read_strict(Format::Mrt, bytes) {
        Err(ReadError::Bad { place: Place::Byte(offset), reason, .. }) => (offset, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn takes_the_peer_with_most_prefixes_of_each_family() {
    let (fib, report) = read_with(&table(), &ReadOptions::default()).unwrap();
    assert_eq!(text_of(&fib), "10.0.0.0/8 192.0.2.2\n10.1.0.0/16 192.0.2.9\n2001:db8::/32 2001:db8::3\n");
    assert_eq!((report.format, report.records, report.routes), (Format::Mrt, 4, 3));
    assert_eq!(report.skipped_for(SkipReason::OtherPeer), 1);
    assert_eq!(report.peers.iter().map(|p| p.prefixes).collect::<Vec<_>>(), [[1, 0], [2, 0], [0, 1]]);
    assert_eq!(report.chosen_peers().map(|p| p.asn).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn takes_the_peer_asked_for_by_index_address_or_as() {
    for peer in ["0", "192.0.2.1", "AS1"] {
        assert_eq!(of_peer(peer, &table()).unwrap(), "10.0.0.0/8 192.0.2.1\n", "{peer}");
    }
    assert_eq!(of_peer("2001:db8::3", &table()).unwrap(), "2001:db8::/32 2001:db8::3\n");
    assert!(matches!(of_peer("3", &table()), Err(ReadError::NoSuchPeer { .. })));
    assert!(matches!(of_peer("AS9", &table()), Err(ReadError::NoSuchPeer { .. })));
}

#[test]
fn reads_add_path_and_generic_records() {
    let bytes = [
        peers(),
        rib(8, &[8, 10], &[entry(0, Some(1), &via(1)), entry(0, Some(2), &via(2))]),
        // AFI 1, SAFI 1.
        rib(6, &[0, 1, 1, 8, 11], &[entry(0, None, &via(3))]),
        // With a path id before the prefix.
        rib(12, &[0, 1, 1, 0, 0, 0, 7, 8, 12], &[entry(0, None, &via(4))]),
        // MPLS VPN, and multicast.
        rib(6, &[0, 1, 128, 8, 11], &[]),
        rib(3, &[8, 10], &[entry(0, None, &via(1))]),
    ]
    .concat();
    let (fib, report) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(text_of(&fib), "10.0.0.0/8 192.0.2.1\n11.0.0.0/8 192.0.2.3\n12.0.0.0/8 192.0.2.4\n");
    assert_eq!(report.skipped_for(SkipReason::OtherPath), 1);
    assert_eq!(report.skipped_for(SkipReason::OtherFamily), 2);
}

#[test]
fn an_entry_without_a_next_hop_is_reached_by_its_peer() {
    let bytes = [peers(), rib(2, &[8, 10], &[entry(1, None, &via(1)[..7])])].concat();
    assert_eq!(text_of(&read_with(&bytes, &ReadOptions::default()).unwrap().0), "10.0.0.0/8 192.0.2.2\n");
}

#[test]
fn bits_past_the_length_may_be_anything() {
    let bytes = [peers(), rib(2, &[9, 10, 0xff], &[entry(0, None, &via(1))])].concat();
    assert_eq!(text_of(&read_with(&bytes, &ReadOptions::default()).unwrap().0), "10.128.0.0/9 192.0.2.1\n");
}

#[test]
fn reads_the_old_format_batched_or_not() {
    let entry = |net: u8, peer: u8| {
        let mut entry = vec![10, net, 0, 0, 16, 1, 0, 0, 0, 0, 192, 0, 2, peer, 0, peer];
        entry.extend([0, 14]);
        entry.extend(via(peer));
        entry
    };
    let view = [0, 0, 0, 0];
    let bytes = [
        record(TABLE_DUMP, 1, &[&view[..], &entry(1, 1), &entry(1, 2)].concat()),
        record(TABLE_DUMP, 1, &[&view[..], &entry(2, 2)].concat()),
    ]
    .concat();
    let (fib, report) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert_eq!(text_of(&fib), "10.1.0.0/16 192.0.2.2\n10.2.0.0/16 192.0.2.2\n");
    assert_eq!(report.peers.len(), 2);
    assert_eq!(of_peer("192.0.2.1", &bytes).unwrap(), "10.1.0.0/16 192.0.2.1\n");
    assert_eq!(of_peer("1", &bytes).unwrap(), "10.1.0.0/16 192.0.2.1\n");
    let mut host_bits = entry(1, 1);
    host_bits[4] = 8;
    let bytes = record(TABLE_DUMP, 1, &[&view[..], &host_bits].concat());
    assert_eq!(bad(&bytes), (0, SkipReason::Prefix(PrefixError::HostBits)));
}

#[test]
fn malformed_records_are_refused_with_their_offset() {
    let at = peers().len() as u64;
    let cases = [
        (
            rib(2, &[33, 10, 0, 0, 0, 0], &[]),
            SkipReason::Prefix(PrefixError::TooLong { len: 33, family: Family::V4 }),
        ),
        (rib(2, &[32, 10], &[]), SkipReason::Record),
        (rib(2, &[8, 10], &[vec![0, 0]]), SkipReason::Record),
        (rib(2, &[8, 10], &[entry(9, None, &via(1))]), SkipReason::UnknownPeer),
        (rib(2, &[8, 10], &[entry(0, None, &via(1)[..9])]), SkipReason::Record),
        (rib(2, &[8, 10], &[entry(0, None, &[0x40, 3, 2, 192, 0])]), SkipReason::Record),
        (record(TABLE_DUMP_V2, 2, &[0, 0, 0, 0, 8, 10, 0, 0, 7]), SkipReason::Record),
        (record(TABLE_DUMP_V2, 2, &[]), SkipReason::Record),
        (record(TABLE_DUMP, 1, &[0, 0, 0, 0]), SkipReason::Record),
        (record(TABLE_DUMP_V2, 1, &[1, 2, 3]), SkipReason::Record),
    ];
    for (record, reason) in cases {
        let bytes = [peers(), record].concat();
        assert_eq!(bad(&bytes), (at, reason));
        let after = [bytes, rib(2, &[8, 10], &[entry(0, None, &via(1))])].concat();
        let options = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (fib, report) = read_with(&after, &options).unwrap();
        assert_eq!((fib.v4.len(), report.faults()), (1, 1));
    }
}

#[test]
fn entries_after_a_malformed_peer_table_are_of_unknown_peers() {
    // The second table promises three peers and has one.
    let mut broken = peers();
    broken.truncate(HEADER + 8 + 13);
    broken[11] = 8 + 13;
    let entries = rib(2, &[8, 10], &[entry(0, None, &via(1))]);
    for before in [Vec::new(), peers()] {
        let options = ReadOptions { lenient: true, ..ReadOptions::default() };
        let (_, report) = read_with(&[&before[..], &broken, &entries].concat(), &options).unwrap();
        assert_eq!(report.skipped_for(SkipReason::UnknownPeer), 1);
    }
}

#[test]
fn a_hostile_length_is_refused_before_it_is_believed() {
    let mut bytes = table();
    let whole = bytes.len() as u64;
    bytes.extend([0, 0, 0, 0, 0, 13, 0, 2, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(bad(&bytes), (whole, SkipReason::RecordTooLong));
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let (fib, report) = read_with(&bytes, &options).unwrap();
    assert_eq!((fib.v4.len(), report.truncated.unwrap().place), (2, Place::Byte(whole)));
}

#[test]
fn a_file_cut_off_anywhere_says_so_and_keeps_what_is_whole() {
    let bytes = table();
    let mut starts = vec![0];
    while let Some(header) = bytes[*starts.last().unwrap()..].first_chunk() {
        starts.push(starts.last().unwrap() + HEADER + split_header(header).3 as usize);
    }
    for len in 1..bytes.len() {
        let whole = starts.iter().rposition(|&start| start <= len).unwrap();
        match read_strict(Format::Mrt, &bytes[..len]) {
            Ok(_) | Err(ReadError::Nothing { .. }) => assert_eq!(starts[whole], len),
            Err(ReadError::CutOff { place, records, .. }) => {
                assert_eq!((place, records), (Place::Byte(starts[whole] as u64), whole as u64));
            }
            Err(other) => panic!("{other}"),
        }
        let options = ReadOptions { format: Some(Format::Mrt), lenient: true, ..ReadOptions::default() };
        let (_, report) = read_with(&bytes[..len], &options).unwrap();
        assert_eq!(report.records, whole as u64);
        assert_eq!(report.truncated.is_some(), starts[whole] != len);
    }
}

/// A BGP4MP_ET message with a 4-octet AS, from 192.0.2.1 of AS 1.
fn message(withdrawn: &[u8], attributes: &[u8], announced: &[u8]) -> Vec<u8> {
    let size = |part: &[u8]| u16::try_from(part.len()).unwrap().to_be_bytes();
    let bgp = [&[2][..], &size(withdrawn), withdrawn, &size(attributes), attributes, announced].concat();
    let mut body = vec![0, 0, 0, 250];
    body.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 100]);
    body.extend([0xff; 16]);
    body.extend(u16::try_from(bgp.len() + 18).unwrap().to_be_bytes());
    body.extend(bgp);
    record(BGP4MP_ET, 4, &body)
}

fn updates_of(bytes: &[u8], options: &ReadOptions) -> Result<(String, ReadReport), ReadError> {
    let mut hops = crate::next_hop::NextHops::new();
    let (updates, report) = collect_updates_from(bytes, "test", options, &mut hops)?;
    Ok((text_of_updates(&updates, &hops), report))
}

#[test]
fn reads_updates_of_both_families() {
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let reach = [&[0x80, 14, 0, 0, 2, 1, 16][..], &address, &[0, 32, 0x20, 1, 0xd, 0xb8]].concat();
    let mut reach_sized = reach.clone();
    reach_sized[2] = u8::try_from(reach.len() - 3).unwrap();
    let unreach = [0x80, 15, 8, 0, 2, 1, 32, 0x20, 1, 0xd, 0xb8];
    let vpn = [0x80, 15, 5, 0, 1, 128, 8, 10];
    let bytes = [
        message(&[8, 11, 16, 11, 1], &via(7), &[8, 10, 9, 10, 0x80]),
        message(&[], &reach_sized, &[]),
        message(&[], &unreach, &[]),
        message(&[], &vpn, &[]),
        // A change of state.
        record(BGP4MP, 0, &[0, 1, 0, 2, 0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2, 0, 5, 0, 6]),
        peers(),
    ]
    .concat();
    let (updates, report) = updates_of(&bytes, &ReadOptions::default()).unwrap();
    let expected = "\
7.00025 W 11.0.0.0/8
7.00025 W 11.1.0.0/16
7.00025 A 10.0.0.0/8 192.0.2.7
7.00025 A 10.128.0.0/9 192.0.2.7
7.00025 A 2001:db8::/32 2001:db8::1
7.00025 W 2001:db8::/32
";
    assert_eq!(updates, expected);
    assert_eq!(report.skipped_for(SkipReason::OtherRecord), 2);
    assert_eq!(report.skipped_for(SkipReason::OtherFamily), 1);
    let origins = ReadOptions { origins: true, ..ReadOptions::default() };
    let path = [&via(7)[..], &[0x40, 2, 10, 2, 2, 0, 0, 0, 1, 0, 0, 0, 9]].concat();
    let routes = [message(&[], &path, &[8, 10]), message(&[], &reach_sized, &[])].concat();
    let (updates, _) = updates_of(&routes, &origins).unwrap();
    // A path without an AS is of the peer's own.
    assert_eq!(updates, "7.00025 A 10.0.0.0/8 9\n7.00025 A 2001:db8::/32 1\n");
    let options = ReadOptions { peer: Some("AS9".parse().unwrap()), lenient: true, ..ReadOptions::default() };
    let message = updates_of(&bytes, &options).unwrap_err().to_string();
    assert_eq!(message, "test: no peer AS9; there are peer 192.0.2.1 AS1", "as a table is refused");
}

#[test]
fn a_prefix_stands_while_one_of_its_paths_does() {
    let path = |id: u8| [0, 0, 0, id, 8, 10];
    let bytes = [
        message(&[], &via(7), &path(1)),
        message(&[], &via(8), &path(2)),
        message(&path(3), &[], &[]),
        message(&path(1), &[], &[]),
        message(&[], &via(9), &path(2)),
        message(&path(2), &[], &[]),
        message(&path(2), &[], &[]),
    ]
    .concat();
    let (updates, _) = updates_of(&bytes, &ReadOptions::default()).unwrap();
    let expected = ["A 7", "A 7", "A 7", "A 8", "A 9", "W", "W"].map(|line| match line.split_once(' ') {
        Some((_, last)) => format!("7.00025 A 10.0.0.0/8 192.0.2.{last}\n"),
        None => "7.00025 W 10.0.0.0/8\n".to_owned(),
    });
    assert_eq!(updates, expected.concat());
}

#[test]
fn malformed_updates_are_refused() {
    for (bytes, reason) in [
        (message(&[], &via(1)[..7], &[8, 10]), SkipReason::NextHopMissing),
        (message(&[], &[0x40, 3, 2, 192, 0], &[8, 10]), SkipReason::Record),
        (message(&[], &[0x80, 14, 3, 0, 2, 1], &[]), SkipReason::Record),
        (
            message(&[40, 10], &[], &[]),
            SkipReason::Prefix(PrefixError::TooLong { len: 40, family: Family::V4 }),
        ),
        (record(BGP4MP, 1, &[0, 1]), SkipReason::Record),
    ] {
        match updates_of(&bytes, &ReadOptions { format: Some(Format::Mrt), ..ReadOptions::default() }) {
            Err(ReadError::Bad { place: Place::Byte(0), reason: found, .. }) => assert_eq!(found, reason),
            other => panic!("{}: {other:?}", bytes.escape_ascii()),
        }
    }
}

#[test]
fn a_table_is_no_updates_and_the_other_way_round() {
    let options = ReadOptions::default();
    assert_eq!(
        updates_of(&table(), &options).unwrap_err().to_string(),
        "no updates in test (4 records of other kinds)"
    );
    let message = read_with(&message(&[8, 10], &[], &[]), &options).unwrap_err().to_string();
    assert_eq!(message, "no routes in test (1 record of other kinds)");
}
