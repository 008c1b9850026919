//! A sender of FPM of our own: reconnects, violations, floods.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use wirespeed_feeds::{Change, Reason, fpm};

use crate::follower::Follower;
use crate::senders::netlink::{NEW, Route, frame};

fn listen() -> Follower {
    listen_with(Duration::from_millis(300))
}

fn listen_with(quiet: Duration) -> Follower {
    let mut options = fpm::Options::default();
    options.address.set_port(0);
    (options.quiet, options.first_quiet) = (quiet, quiet);
    Follower::new(fpm::listen(options).unwrap())
}

fn connect(follower: &Follower) -> TcpStream {
    TcpStream::connect(follower.feed.address().unwrap()).unwrap()
}

fn routes(numbers: std::ops::Range<u32>, gateway: &str) -> Vec<u8> {
    let route = |n: u32| Route::via(&format!("10.{}.{}.0/24", n >> 8, n & 255), &[gateway]);
    numbers.flat_map(|n| frame(&[route(n).message(NEW, 0)])).collect()
}

#[test]
fn routes_stay_when_frr_goes_and_are_swept_when_it_is_back() {
    let mut follower = listen();
    let mut sender = connect(&follower);
    sender.write_all(&routes(0..1_000, "192.0.2.1")).unwrap();
    follower.until("Synced", |follower| follower.seen.contains(&Change::Synced));
    assert_eq!(follower.model.routes.len(), 1_000);

    drop(sender);
    follower.until("Stale", |follower| matches!(follower.seen.last(), Some(Change::Stale(_))));
    assert!(follower.feed.status().stale_since.is_some());
    assert_eq!(follower.model.routes.len(), 1_000);

    let mut sender = connect(&follower);
    sender.write_all(&routes(500..1_000, "192.0.2.1")).unwrap();
    sender.write_all(&routes(500..510, "192.0.2.2")).unwrap();
    let resynced = Change::Resynced(Reason::Reconnected);
    follower.until("Resynced", |follower| follower.seen.contains(&resynced));
    assert_eq!(follower.model.routes.len(), 500);
    assert_eq!(follower.seen.len(), 511, "500 are gone, 10 changed, and the marker");
    let status = follower.feed.status();
    assert_eq!((status.stale_since, status.resyncs, status.connections), (None, 1, 2));
}

#[test]
fn the_first_table_is_whole_earlier_than_later_ones() {
    let mut options = fpm::Options::default();
    options.address.set_port(0);
    (options.quiet, options.first_quiet) = (Duration::from_secs(600), Duration::from_millis(100));
    let mut follower = Follower::new(fpm::listen(options).unwrap());
    let mut sender = connect(&follower);
    sender.write_all(&routes(0..100, "192.0.2.1")).unwrap();
    follower.until("Synced", |follower| follower.seen.contains(&Change::Synced));
    drop(sender);

    let mut sender = connect(&follower);
    sender.write_all(&routes(0..50, "192.0.2.2")).unwrap();
    let is_new = |path: &&String| path.as_str() == "via 192.0.2.2 interface 7";
    follower.until("changes", |follower| follower.model.routes.values().filter(is_new).count() == 50);
    follower.settle(Duration::from_millis(400));
    assert_eq!(follower.model.routes.len(), 100, "the others may still come");
    assert_eq!(follower.feed.status().resyncs, 0);
}

#[test]
fn nonsense_ends_the_connection_and_costs_no_route() {
    let mut follower = listen();
    let mut sender = connect(&follower);
    sender.write_all(&routes(0..100, "192.0.2.1")).unwrap();
    follower.until("Synced", |follower| follower.seen.contains(&Change::Synced));
    for nonsense in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[1, 1, 0, 3],
        &[1, 1, 0, 20, 255, 255, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let before = follower.feed.status().violations;
        let mut sender = connect(&follower);
        sender.write_all(nonsense).unwrap();
        follower.until("a violation", |follower| follower.feed.status().violations > before);
    }
    // FRR's connection goes on.
    sender.write_all(&routes(100..101, "192.0.2.1")).unwrap();
    follower.until("a route", |follower| follower.model.routes.len() == 101);
    // A frame that never ends is no violation: the sender may be slow.
    let mut half = connect(&follower);
    half.write_all(&[1, 1, 255, 255, 0]).unwrap();
    drop(half);
    follower.settle(Duration::from_millis(500));
    assert_eq!(follower.model.routes.len(), 101);
    assert!(follower.feed.status().stale_since.is_none());

    // Nonsense of FRR itself ends its connection.
    sender.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    follower.until("Stale", |follower| follower.feed.status().stale_since.is_some());
    assert_eq!(follower.model.routes.len(), 101);

    let mut sender = connect(&follower);
    sender.write_all(&routes(0..100, "192.0.2.1")).unwrap();
    follower.until("Resynced", |follower| follower.feed.status().resyncs == 1);
    assert_eq!(follower.model.routes.len(), 100);
}

#[test]
fn a_flood_loses_nothing_while_the_consumer_sleeps() {
    let mut follower = listen();
    let mut sender = connect(&follower);
    let flood: Vec<u8> =
        (0..20).flat_map(|round| routes(0..5_000, &format!("192.0.2.{}", 1 + round % 200))).collect();
    let writer = std::thread::spawn(move || {
        sender.write_all(&flood).unwrap();
        sender
    });
    std::thread::sleep(Duration::from_millis(500));
    follower.until("the last round", |follower| {
        follower.model.routes.len() == 5_000
            && follower.model.routes.values().all(|path| path == "via 192.0.2.20 interface 7")
    });
    drop(writer.join().unwrap());
}

#[test]
fn somebody_who_only_connects_costs_no_route() {
    let quiet = Duration::from_millis(100);
    let mut follower = listen_with(quiet);
    let mut sender = connect(&follower);
    sender.write_all(&routes(0..100, "192.0.2.1")).unwrap();
    follower.until("Synced", |follower| follower.seen.contains(&Change::Synced));
    // More than are waited for; some scan ports.
    let _silent: Vec<_> = (0..40).map(|_| connect(&follower)).collect();
    (0..40).for_each(|_| drop(connect(&follower)));
    // Longer than an empty table is doubted.
    follower.settle(quiet * 14);
    assert_eq!(follower.model.routes.len(), 100);
    assert!(follower.feed.status().stale_since.is_none());
    sender.write_all(&routes(100..101, "192.0.2.1")).unwrap();
    follower.until("a route", |follower| follower.model.routes.len() == 101);
    // The newest that speaks counts.
    let mut other = connect(&follower);
    other.write_all(&routes(0..50, "192.0.2.1")).unwrap();
    follower.until("Resynced", |follower| follower.feed.status().resyncs == 1);
    assert_eq!(follower.model.routes.len(), 50);
}
