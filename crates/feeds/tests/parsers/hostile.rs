//! Bytes of every kind: cut, changed, random. Nothing panics, and what is told can be taken back.

use proptest::prelude::*;
use wirespeed_feeds::{Recorded, bmp, fpm};

use crate::model::Model;
use crate::senders::bmp::{LOC_RIB, Peer, announced, initiation, withdrawn};
use crate::senders::netlink::{GONE, NEW, Route, frame, group, next_hop, next_hop_gone};

fn netlink_messages() -> Vec<Vec<u8>> {
    vec![
        next_hop(1, "10.0.0.1", 2),
        group(10, &[(1, 3), (2, 1)]),
        Route::of_object("192.0.2.0/24", 10).message(NEW, 0),
        next_hop(2, "fe80::1", 2),
        Route::via("2001:db8::/32", &["fe80::1", "fe80::2"]).message(NEW, 0),
        Route::via("2001:db8::/32", &["fe80::2"]).message(GONE, 0),
        Route::via("198.51.100.0/24", &["10.0.0.1", "fe80::2"]).metric(5).message(NEW, 0),
        next_hop_gone(2),
    ]
}

fn bmp_messages() -> Vec<Vec<u8>> {
    let peer = Peer::new("10.0.0.1", 65_001);
    vec![
        initiation("r1"),
        peer.up(true),
        peer.routes(&announced(&["192.0.2.0/24", "10.0.0.0/8"], Some(1), "10.0.0.1", &[65_001, 65_002])),
        peer.routes(&withdrawn(&["10.0.0.0/8"], Some(1))),
        LOC_RIB.announce(&["2001:db8::/32"], "2001:db8::1", &[65_001]),
        peer.down(),
    ]
}

fn feeds() -> [Recorded; 3] {
    [Recorded::netlink(100), Recorded::fpm(fpm::Options::default()), Recorded::bmp(bmp::Options::default())]
}

/// Reads bytes, and then takes everything back, which leaves nothing.
fn read(mut recorded: Recorded, bytes: &[u8]) {
    let mut model = Model::default();
    match recorded.read(bytes) {
        Ok(changes) => model.apply(&changes),
        Err(_) => model.apply(&recorded.changes()),
    }
    recorded.restart();
    model.apply(&recorded.whole());
    assert!(model.routes.is_empty(), "{model:?}");
    assert_eq!(recorded.status().prefixes, 0);
}

#[test]
fn messages_cut_at_every_byte_are_harmless() {
    for messages in [netlink_messages(), bmp_messages(), vec![frame(&netlink_messages())]] {
        let whole = messages.concat();
        for end in 0..=whole.len() {
            feeds().into_iter().for_each(|feed| read(feed, &whole[..end]));
        }
    }
}

#[test]
fn a_cut_anywhere_in_a_stream_makes_no_difference() {
    let fpm = frame(&netlink_messages());
    for (whole, which) in [(fpm, 1), (bmp_messages().concat(), 2)] {
        let expected = {
            let [.., feed] = feeds_of(which);
            let mut feed = feed;
            let changes = feed.read(&whole).unwrap();
            let mut model = Model::default();
            model.apply(&changes);
            model
        };
        for cut in 0..=whole.len() {
            let [mut feed] = feeds_of(which);
            let mut model = Model::default();
            model.apply(&feed.read(&whole[..cut]).unwrap());
            model.apply(&feed.read(&whole[cut..]).unwrap());
            assert_eq!(model, expected, "cut at {cut}");
        }
    }
}

fn feeds_of(which: usize) -> [Recorded; 1] {
    let [netlink, fpm, bmp] = feeds();
    [[netlink, fpm, bmp].into_iter().nth(which).unwrap()]
}

proptest! {
    #[test]
    fn random_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        feeds().into_iter().for_each(|feed| read(feed, &bytes));
    }

    #[test]
    fn changed_bytes_are_harmless(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let streams = [netlink_messages().concat(), frame(&netlink_messages()), bmp_messages().concat()];
        for (feed, mut bytes) in feeds().into_iter().zip(streams) {
            for (at, value) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *value;
            }
            read(feed, &bytes);
        }
    }
}
