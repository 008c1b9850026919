//! A table that follows.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirespeed_feeds::{LiveTable, TableId, kernel};

use crate::namespace::Namespace;

/// The path that an address leads to, as text.
fn find(table: &LiveTable, address: &str) -> String {
    let known = table.labels().enter();
    let found = table.reader().lookup(address.parse::<IpAddr>().unwrap());
    known.get(found).map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[test]
fn a_table_follows_the_kernel() {
    let Some(namespace) = Namespace::new() else { return };
    namespace.add_link();
    namespace.ip("route add 192.0.2.0/24 via 10.9.0.2");
    namespace.ip("-6 route add 2001:db8:1::/48 via 2001:db8:9::2");
    let feed = kernel::follow(namespace.options()).unwrap();
    let patience = Duration::from_secs(30);
    let mut table = LiveTable::of_tables(&feed, &[TableId::LOCAL, TableId::MAIN], patience).unwrap();
    assert!(find(&table, "192.0.2.7").starts_with("via 10.9.0.2 "));
    assert!(find(&table, "2001:db8:1::7").starts_with("via 2001:db8:9::2 "));
    assert!(find(&table, "10.9.0.1").starts_with("local "));
    let mut until = |address: &str, path: &str| {
        let end = Instant::now() + patience;
        while !find(&table, address).starts_with(path) {
            assert!(Instant::now() < end, "{address}: {}", find(&table, address));
            table.follow(&feed, Duration::from_millis(100)).unwrap();
        }
        table.labels().len()
    };
    namespace.ip("route replace 192.0.2.0/24 via 10.9.0.3");
    until("192.0.2.7", "via 10.9.0.3 ");
    namespace.ip("route add 192.0.2.0/25 via 10.9.0.4");
    until("192.0.2.7", "via 10.9.0.4 ");
    namespace.ip("route del 192.0.2.0/25");
    until("192.0.2.7", "via 10.9.0.3 ");
    namespace.ip("route add local 192.0.2.0/24 dev lo table local");
    until("192.0.2.7", "local ");
    namespace.ip("route del local 192.0.2.0/24 dev lo table local");
    until("192.0.2.7", "via 10.9.0.3 ");
    namespace.ip("route del 192.0.2.0/24");
    let labels = until("192.0.2.7", "none");
    assert!(labels < 20, "labels that no route uses end: {labels}");
}
