//! The kernel's messages: metrics, groups, next-hop objects, rules.

use wirespeed_feeds::{Change, Recorded, Skip};

use crate::model::Model;
use crate::senders::netlink::{
    APPEND, GONE, NEW, REPLACE, Route, group, message, next_hop, next_hop_gone, rule,
};

struct Kernel {
    recorded: Recorded,
    model: Model,
}

impl Kernel {
    fn new() -> Self {
        Self { recorded: Recorded::netlink(1_000), model: Model::default() }
    }

    fn say(&mut self, message: &[u8]) -> usize {
        let changes = self.recorded.read(message).unwrap();
        self.model.apply(&changes);
        changes.len()
    }
}

#[test]
fn the_lowest_metric_wins_and_its_end_reveals_the_next() {
    for (prefix, [low, middle, high]) in [
        ("192.0.2.0/24", ["10.0.0.1", "10.0.0.2", "10.0.0.3"]),
        ("2001:db8::/32", ["fe80::1", "fe80::2", "fe80::3"]),
    ] {
        let mut kernel = Kernel::new();
        let route = |gateway, metric| Route::via(prefix, &[gateway]).metric(metric);
        let path = |gateway| Some(format!("via {gateway} interface 7"));
        assert_eq!(kernel.say(&route(middle, 20).message(NEW, 0)), 1);
        assert_eq!(kernel.say(&route(high, 30).message(NEW, 0)), 0);
        assert_eq!(kernel.say(&route(low, 10).message(NEW, 0)), 1);
        assert_eq!(kernel.model.path(prefix).map(str::to_owned), path(low));
        assert_eq!(kernel.say(&route(middle, 20).message(GONE, 0)), 0);
        assert_eq!(kernel.say(&route(low, 10).message(GONE, 0)), 1);
        assert_eq!(kernel.model.path(prefix).map(str::to_owned), path(high));
        assert_eq!(kernel.say(&route(high, 30).message(GONE, 0)), 1);
        assert!(kernel.model.routes.is_empty());
        assert!(kernel.recorded.status().skipped.is_empty());
    }
}

#[test]
fn routes_of_equal_metric_wait_in_the_kernels_order() {
    let mut kernel = Kernel::new();
    let route = |gateway| Route::via("192.0.2.0/24", &[gateway]);
    kernel.say(&route("10.0.0.1").message(NEW, 0));
    kernel.say(&route("10.0.0.2").message(NEW, APPEND));
    kernel.say(&route("10.0.0.3").message(NEW, 0));
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some("via 10.0.0.3 interface 7"));
    kernel.say(&route("10.0.0.4").message(NEW, REPLACE));
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some("via 10.0.0.4 interface 7"));
    kernel.say(&route("10.0.0.4").message(GONE, 0));
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some("via 10.0.0.1 interface 7"));
    kernel.say(&route("10.0.0.1").message(GONE, 0));
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some("via 10.0.0.2 interface 7"));
}

#[test]
fn events_that_a_dump_includes_change_nothing() {
    let mut kernel = Kernel::new();
    let route = |gateway| Route::via("192.0.2.0/24", &[gateway]);
    // A dump showed what a route and its replacement led to. Then both events come.
    kernel.say(&route("10.0.0.2").message(NEW, 0));
    let both = [route("10.0.0.1").message(NEW, 0), route("10.0.0.2").message(NEW, REPLACE)].concat();
    assert_eq!(kernel.say(&both), 0);
    assert_eq!(kernel.say(&route("10.0.0.2").message(GONE, 0)), 1);
    assert!(kernel.model.routes.is_empty());
}

#[test]
fn hops_leave_an_ipv6_group_one_by_one() {
    let mut kernel = Kernel::new();
    let route = |gateways: &[&str]| Route::via("2001:db8::/32", gateways);
    kernel.say(&route(&["fe80::1"]).message(NEW, 0));
    kernel.say(&route(&["fe80::1", "fe80::2", "fe80::3"]).message(NEW, APPEND));
    kernel.say(&route(&["fe80::2"]).message(GONE, 0));
    assert_eq!(kernel.model.path("2001:db8::/32"), Some("via fe80::1 interface 7, via fe80::3 interface 7"));
    kernel.say(&route(&["fe80::1", "fe80::3"]).message(GONE, 0));
    assert!(kernel.model.routes.is_empty());
}

#[test]
fn a_changed_object_changes_the_routes_that_use_it() {
    let mut kernel = Kernel::new();
    kernel.say(&next_hop(1, "10.0.0.1", 2));
    kernel.say(&next_hop(2, "10.0.0.2", 3));
    kernel.say(&group(10, &[(1, 3), (2, 1)]));
    kernel.say(&Route::of_object("192.0.2.0/24", 10).message(NEW, 0));
    kernel.say(&Route::of_object("198.51.100.0/24", 2).message(NEW, 0));
    kernel.say(&Route::via("203.0.113.0/24", &["10.0.0.2"]).message(NEW, 0));
    let path = "via 10.0.0.1 interface 2 weight 3, via 10.0.0.2 interface 3";
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some(path));
    assert_eq!(kernel.say(&next_hop(2, "10.0.0.9", 3)), 2);
    let path = "via 10.0.0.1 interface 2 weight 3, via 10.0.0.9 interface 3";
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some(path));
    assert_eq!(kernel.model.path("198.51.100.0/24"), Some("via 10.0.0.9 interface 3"));
    assert_eq!(kernel.say(&next_hop(2, "10.0.0.9", 3)), 0);
    // The kernel deletes its routes with it, and takes it out of groups.
    assert_eq!(kernel.say(&next_hop_gone(2)), 2);
    assert_eq!(kernel.model.path("198.51.100.0/24"), None);
    assert_eq!(kernel.say(&group(10, &[(1, 3)])), 0);
    assert_eq!(kernel.model.path("192.0.2.0/24"), Some("via 10.0.0.1 interface 2 weight 3"));
}

/// What a route says that the feed does not tell is counted, so that nobody takes it for followed.
#[test]
fn routes_of_some_packets_and_mtus_of_routes_are_counted() {
    for (prefix, gateway) in [("192.0.2.0/24", "10.0.0.1"), ("2001:db8::/32", "fe80::1")] {
        let mut kernel = Kernel::new();
        let route = Route::via(prefix, &[gateway]);
        assert_eq!(kernel.say(&Route { tos: 0x10, ..route.clone() }.message(NEW, 0)), 0);
        assert_eq!(kernel.say(&Route { mtu: 1_300, ..route.clone() }.message(NEW, 0)), 1);
        let skipped = kernel.recorded.status().skipped.clone();
        assert_eq!(skipped.into_iter().collect::<Vec<_>>(), [(Skip::Selective, 1), (Skip::RouteMtu, 1)]);
        assert!(kernel.model.path(prefix).is_some());
    }
}

#[test]
fn groups_in_circles_end() {
    let mut kernel = Kernel::new();
    kernel.say(&group(1, &[(2, 1); 100]));
    kernel.say(&group(2, &[(1, 1); 100]));
    kernel.say(&Route::of_object("192.0.2.0/24", 1).message(NEW, 0));
    assert_eq!(kernel.model.path("192.0.2.0/24"), None);
}

#[test]
fn groups_ipv6_gateways_and_kinds_are_read() {
    let mut kernel = Kernel::new();
    let mut route = Route::via("192.0.2.0/24", &["10.0.0.1", "fe80::1"]);
    (route.hops[1].2, route.table) = (200, 1_000_000);
    kernel.say(&route.message(NEW, 0));
    let path = "via 10.0.0.1 interface 7, via fe80::1 interface 7 weight 200";
    assert_eq!(kernel.model.path("1000000 192.0.2.0/24"), Some(path));
    for (kind, text) in [(6, "blackhole"), (7, "unreachable"), (8, "prohibit"), (9, "throw")] {
        route.kind = kind;
        kernel.say(&route.message(NEW, REPLACE));
        assert_eq!(kernel.model.path("1000000 192.0.2.0/24"), Some(text));
    }
}

#[test]
fn a_comparison_tells_differences_only() {
    let mut kernel = Kernel::new();
    let routes = |range: std::ops::Range<u8>, gateway| {
        range
            .flat_map(|n| Route::via(&format!("10.{n}.0.0/16"), &[gateway]).message(NEW, 0))
            .collect::<Vec<u8>>()
    };
    assert_eq!(kernel.say(&routes(0..100, "10.0.0.1")), 100);
    kernel.recorded.restart();
    assert_eq!(kernel.say(&routes(10..90, "10.0.0.1")), 0);
    kernel.say(&Route::via("10.10.0.0/16", &["10.0.0.2"]).message(NEW, REPLACE));
    let changes = kernel.recorded.whole();
    kernel.model.apply(&changes);
    assert_eq!((changes.len(), kernel.model.routes.len()), (20, 80));
}

#[test]
fn prefixes_over_the_cap_are_counted() {
    let mut recorded = Recorded::netlink(2);
    for n in 0..5 {
        recorded.read(&Route::via(&format!("10.{n}.0.0/16"), &["10.0.0.1"]).message(NEW, 0)).unwrap();
    }
    assert_eq!(recorded.status().prefixes, 2);
    assert_eq!(recorded.status().skipped[&wirespeed_feeds::Skip::OverCap], 3);
}

#[test]
fn rules_are_told_once_and_read_as_ip_rule_writes_them() {
    let told = |kernel: &mut Kernel, kind: u16, rule: &[u8]| -> Vec<(bool, String)> {
        let changes = kernel.recorded.read(&message(kind, 0, rule)).unwrap();
        let tell = |change| match change {
            Change::Rule(rule) => (rule.is_default(), rule.to_string()),
            Change::RuleGone(rule) => (rule.is_default(), format!("gone {rule}")),
            other => panic!("{other:?}"),
        };
        changes.into_iter().map(tell).collect()
    };
    let mut kernel = Kernel::new();
    for (rule, is_default, text) in [
        (rule(2, (0, 0), 255, 1, &[]), true, "IPv4 0: from all lookup local"),
        (
            rule(2, (0, 0), 254, 1, &[(6, &32_766_u32.to_ne_bytes())]),
            true,
            "IPv4 32766: from all lookup main",
        ),
        (rule(2, (0, 0), 254, 1, &[(6, &9_u32.to_ne_bytes())]), false, "IPv4 9: from all lookup main"),
        (
            rule(10, (0, 0), 0, 1, &[(6, &1000_u32.to_ne_bytes()), (19, &[1])]),
            true,
            "IPv6 1000: from all lookup [l3mdev-table]",
        ),
        (
            rule(2, (0, 8), 0, 1, &[(2, &[10, 0, 0, 0]), (3, b"eth0\0"), (15, &300_u32.to_ne_bytes())]),
            false,
            "IPv4 0: from 10.0.0.0/8 iif eth0 lookup 300",
        ),
        (
            rule(2, (0, 0), 0, 7, &[(10, &7_u32.to_ne_bytes()), (16, &15_u32.to_ne_bytes())]),
            false,
            "IPv4 0: from all fwmark 0x7/0xf unreachable",
        ),
        (rule(2, (0, 0), 254, 1, &[(24, &[0; 4])]), false, "IPv4 0: from all and more lookup main"),
        (rule(2, (0, 0), 0, 2, &[(4, &5_u32.to_ne_bytes())]), false, "IPv4 0: from all goto 5"),
    ] {
        assert_eq!(told(&mut kernel, 32, &rule), [(is_default, text.to_owned())]);
        assert_eq!(told(&mut kernel, 32, &rule), []);
        assert_eq!(told(&mut kernel, 33, &rule), [(is_default, format!("gone {text}"))]);
    }
    // Multicast routing has rules, too, and a prefix can't be longer than an address.
    assert_eq!(told(&mut kernel, 32, &rule(128, (0, 0), 254, 1, &[])), []);
    assert_eq!(told(&mut kernel, 32, &rule(2, (0, 33), 254, 1, &[(2, &[10, 0, 0, 0])])), []);
    assert_eq!(kernel.recorded.status().skipped.values().sum::<u64>(), 2);
}
