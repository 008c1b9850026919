//! Interests and Data of NDN: Data goes back to all who asked, whatever link packets are around it.

use wirespeed::NameTable;
use wirespeed::names::tlv::WireNameBuf;
use wirespeed::{Labels, NextHop};
use wirespeed_router::apps::ip::{Own, Owns};
use wirespeed_router::apps::{Ndn, Pit};
use wirespeed_router::{Mac, Reason, Route, Settings, Stats};

use crate::list::{self, Sent};
use crate::{hop, port_mac};

const GROUP: Mac = Mac([1, 0, 0x5e, 0, 0x17, 0xaa]);
const PORTS: u16 = 3;

/// Hosts on the link of port 0, by number.
const fn host(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 1, number])
}

fn element(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, value.len() as u8][..], value].concat()
}

fn name(uri: &str) -> Vec<u8> {
    element(7, WireNameBuf::from_uri(uri.as_bytes()).unwrap().as_wire().as_value())
}

fn frame(to: Mac, from: Mac, packet: &[u8]) -> Vec<u8> {
    [&to.0[..], &from.0, &[0x86, 0x24], packet].concat()
}

/// An Interest with a nonce, a hop limit, and these fields before them.
fn interest(uri: &str, fields: &[u8], nonce: u8, hops: u8) -> Vec<u8> {
    element(5, &[&name(uri)[..], fields, &[10, 4, 0, 0, 0, nonce, 0x22, 1, hops]].concat())
}

fn data(uri: &str) -> Vec<u8> {
    element(6, &[&name(uri)[..], &element(0x15, b"content")].concat())
}

fn with_token(token: &[u8], packet: &[u8]) -> Vec<u8> {
    element(0x64, &[element(0x62, token), element(0x50, packet)].concat())
}

fn run(frames: &[Vec<u8>], pit: Option<&Pit>) -> (Stats, Vec<Vec<Vec<u8>>>) {
    let routes = Labels::new();
    let names = [("ndn:/a", 1), ("ndn:/b", 2)].map(|(prefix, port)| {
        let index: NextHop = routes.intern(Route::Via(hop(port, port as u8))).unwrap();
        (WireNameBuf::from_uri(prefix.as_bytes()).unwrap().as_wire().to_name().unwrap(), index)
    });
    let table = NameTable::builder().names(names).build().unwrap();
    let own =
        Owns::new((0..PORTS).map(|port| Own { mac: port_mac(port), ..Own::default() }).collect::<Vec<_>>());
    let app = Ndn::new(table.reader(), &routes);
    let app = match pit {
        Some(pit) => app.pending(pit, &own),
        None => app,
    };
    let (stats, sent) = list::run(app, frames, PORTS, Settings::default());
    assert!(stats.is_whole(), "{stats:?}");
    (stats, sent.iter().map(|sent: &Sent| sent.lock().unwrap().clone()).collect())
}

#[test]
fn data_goes_back_to_all_who_asked() {
    let ours = port_mac(0);
    let padded = |frame: Vec<u8>| [frame, vec![0; 9]].concat();
    let frames = [
        frame(ours, host(1), &interest("ndn:/a/x", &[], 1, 9)),
        // Waits with the first, and wants its token back. It asked the group, which is no source of frames.
        padded(frame(GROUP, host(2), &with_token(&[7, 7], &interest("ndn:/a/x", &[], 2, 9)))),
        // The first one again, by another way.
        frame(ours, host(3), &interest("ndn:/a/x", &[], 1, 8)),
        // An Interest for all of a prefix goes on by itself: it accepts other Data.
        frame(ours, host(4), &with_token(&[5], &interest("ndn:/a", &[0x21, 0], 3, 9))),
        padded(frame(ours, host(9), &with_token(&[1, 2, 3], &data("ndn:/a/x")))),
        // All are answered.
        frame(ours, host(9), &data("ndn:/a/x")),
        frame(ours, host(9), &data("ndn:/b/x")),
    ];
    let pit = Pit::new(1000);
    let (stats, sent) = run(&frames, Some(&pit));
    let on = |uri: &str, fields: &[u8], nonce| {
        [&hop(1, 1).header()[..], &[0x86, 0x24], &interest(uri, fields, nonce, 8)[..]].concat()
    };
    assert_eq!(sent[1], [on("ndn:/a/x", &[], 1), on("ndn:/a", &[0x21, 0], 3)], "without tokens or padding");
    let mut back = sent[0].clone();
    back.sort();
    let mut expected = vec![
        frame(host(1), ours, &data("ndn:/a/x")),
        frame(host(2), ours, &with_token(&[7, 7], &data("ndn:/a/x"))),
        frame(host(4), ours, &with_token(&[5], &data("ndn:/a/x"))),
    ];
    expected.sort();
    assert_eq!(back, expected);
    let of = |reason| stats.dropped.of(reason);
    assert_eq!((of(Reason::Pending), of(Reason::Loop), of(Reason::Unsolicited)), (1, 1, 2), "{stats:?}");
    assert_eq!((stats.frames_in, stats.frames_out, stats.made, pit.waiting()), (7, 3, 2, 0));
}

#[test]
fn link_packets_that_carry_no_whole_packet_are_refused() {
    let link = |fields: &[Vec<u8>]| frame(port_mac(0), host(1), &element(0x64, &fields.concat()));
    let whole = element(0x50, &interest("ndn:/a/x", &[], 1, 9));
    let digest = format!("ndn:/a/sha256digest={}", "00".repeat(32));
    let deep = format!("ndn:{}", "/a".repeat(33));
    let frames = [
        link(&[vec![0xfd, 0x03, 0x20, 0], whole.clone()]),
        link(&[element(0x53, &[2]), whole.clone()]),
        link(&[]),
        link(&[element(0x40, &[]), whole.clone()]),
        link(&[whole]),
        frame(port_mac(0), host(1), &interest(&digest, &[], 1, 9)),
        frame(port_mac(0), host(1), &interest(&deep, &[0x21, 0], 1, 9)),
        // A nonce of three bytes.
        frame(port_mac(0), host(1), &element(5, &[name("ndn:/a"), vec![10, 3, 1, 2, 3]].concat())),
    ];
    let pit = Pit::new(1000);
    for pit in [None, Some(&pit)] {
        let (stats, sent) = run(&frames, pit);
        let has_pit = u64::from(pit.is_some());
        let of = |reason| stats.dropped.of(reason);
        assert_eq!((of(Reason::Nack), of(Reason::Fragment), of(Reason::Idle)), (1, 1, 1), "{stats:?}");
        assert_eq!((of(Reason::LinkField), of(Reason::Cut)), (1, 1), "{stats:?}");
        assert_eq!((of(Reason::Unanswerable), stats.frames_out), (2 * has_pit, 3 - 2 * has_pit));
        assert_eq!(sent[1].len() as u64, stats.frames_out);
    }
    // Without a table of pending Interests Data is the operating system's, and link packets stay.
    let token = with_token(&[1], &interest("ndn:/b", &[], 1, 2));
    let frames = [frame(port_mac(0), host(1), &token), frame(port_mac(0), host(1), &data("ndn:/b"))];
    let (stats, sent) = run(&frames, None);
    assert_eq!((stats.to_kernel, stats.frames_out), (1, 1));
    let expected = with_token(&[1], &interest("ndn:/b", &[], 1, 1));
    assert_eq!(sent[2], [[&hop(2, 2).header()[..], &[0x86, 0x24], &expected[..]].concat()]);
}

#[test]
fn interests_without_a_place_are_dropped() {
    let frames: Vec<Vec<u8>> = (0..255)
        .map(|number| frame(port_mac(0), host(1), &interest(&format!("ndn:/a/{number}"), &[], number, 9)))
        .collect();
    let pit = Pit::new(1);
    let (stats, sent) = run(&frames, Some(&pit));
    let full = stats.dropped.of(Reason::PitFull);
    assert_eq!((sent[1].len() as u64 + full, pit.waiting() as u64 + full), (255, 255));
    assert!(full > 100, "{full}");
}
