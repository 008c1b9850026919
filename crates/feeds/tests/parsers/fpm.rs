//! Frames of FPM.

use wirespeed_feeds::{Recorded, fpm};

use crate::model::Model;
use crate::senders::netlink::{GONE, NEW, Route, frame, group, next_hop};

#[test]
fn a_withdrawal_and_an_announcement_are_one_change() {
    let mut recorded = Recorded::fpm(fpm::Options::default());
    let route = |gateway| Route::via("192.0.2.0/24", &[gateway]);
    let mut model = Model::default();
    model.apply(&recorded.read(&frame(&[route("10.0.0.1").message(NEW, 0)])).unwrap());
    let changed = frame(&[route("10.0.0.1").message(GONE, 0), route("10.0.0.2").message(NEW, 0)]);
    let changes = recorded.read(&changed).unwrap();
    assert_eq!(changes.len(), 1);
    model.apply(&changes);
    assert_eq!(model.path("192.0.2.0/24"), Some("via 10.0.0.2 interface 7"));
    let unchanged = frame(&[route("10.0.0.2").message(GONE, 0), route("10.0.0.2").message(NEW, 0)]);
    assert!(recorded.read(&unchanged).unwrap().is_empty());
}

#[test]
fn a_route_may_come_before_its_next_hop() {
    let mut recorded = Recorded::fpm(fpm::Options::default());
    let mut model = Model::default();
    assert!(
        recorded.read(&frame(&[Route::of_object("192.0.2.0/24", 9).message(NEW, 0)])).unwrap().is_empty()
    );
    assert!(recorded.read(&frame(&[group(9, &[(5, 1), (6, 1)])])).unwrap().is_empty());
    model.apply(&recorded.read(&frame(&[next_hop(5, "10.0.0.5", 3)])).unwrap());
    model.apply(&recorded.read(&frame(&[next_hop(6, "10.0.0.6", 4)])).unwrap());
    assert_eq!(model.path("192.0.2.0/24"), Some("via 10.0.0.5 interface 3, via 10.0.0.6 interface 4"));
}

#[test]
fn frames_of_more_than_8_kilobytes_are_read() {
    let mut recorded = Recorded::fpm(fpm::Options::default());
    let gateways: Vec<String> = (0..1_024).map(|n| format!("10.1.{}.{}", n / 256, n % 256)).collect();
    let gateways: Vec<&str> = gateways.iter().map(String::as_str).collect();
    let bytes = frame(&[Route::via("192.0.2.0/24", &gateways).message(NEW, 0)]);
    assert!(bytes.len() > 16_384);
    let mut changes = Vec::new();
    for part in bytes.chunks(1_000) {
        changes.extend(recorded.read(part).unwrap());
    }
    let [wirespeed_feeds::Change::Route(route)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!(route.path.hops.len(), 1_024);
}

#[test]
fn violations_are_told() {
    let route = Route::via("192.0.2.0/24", &["10.0.0.1"]).message(NEW, 0);
    let good = frame(std::slice::from_ref(&route));
    let mut lying = frame(std::slice::from_ref(&route));
    lying[4] += 8; // the length of the message within
    for (bad, reason) in [
        (&[2, 1, 0, 4][..], "version 2"),
        (&[1, 2, 0, 4], "type 2"),
        (&[1, 1, 0, 2], "2 bytes"),
        (&lying, "longer than its frame"),
    ] {
        let mut recorded = Recorded::fpm(fpm::Options::default());
        let error = recorded.read(&[&good, bad].concat()).unwrap_err().to_string();
        assert!(error.starts_with("FPM: ") && error.contains(reason), "{error}");
        assert_eq!(recorded.changes().len(), 1, "what came before counts");
    }
}
