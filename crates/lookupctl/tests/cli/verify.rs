//! `verify`.

use crate::common::Folder;

#[test]
fn every_engine_is_right() {
    let folder = Folder::new();
    for (table, family) in [("v4", 4), ("v6", 6)] {
        let reports = folder.run(&format!("verify --fib {table} --engine every --json")).ok().json();
        assert!(!reports.is_empty());
        for report in reports {
            assert_eq!((&report["family"], &report["mismatches"]), (&family.into(), &0.into()), "{report}");
            assert!(
                report["addresses"].as_u64().unwrap() > 9_000 && report["engine"].is_string(),
                "{report}"
            );
        }
    }
    let ran = folder.run("verify --fib both --engine sail-l").ok();
    assert!(ran.stdout.contains("all right") && ran.stderr.contains("--family 6"), "{ran:?}");
}

#[test]
fn both_families_of_a_table_are_checked() {
    let folder = Folder::new();
    let reports = folder.run("verify --fib both --engine fold --json").ok().json();
    let states: Vec<_> = reports.iter().map(|report| (&report["family"], &report["prefixes"])).collect();
    assert_eq!(states, [(&4.into(), &6.into()), (&6.into(), &4.into())]);
    folder.write("ups", "A 10.1.2.0/24 192.0.2.9\nA 2001:db8:2::/48 192.0.2.9\nW 2001:db8::1/128\n");
    let reports = folder.run("verify --fib both --updates ups --engine fold --json").ok().json();
    let updates: Vec<_> = reports.iter().map(|report| (&report["family"], &report["updates"])).collect();
    assert_eq!(
        updates,
        [(&4.into(), &0.into()), (&4.into(), &1.into()), (&6.into(), &0.into()), (&6.into(), &2.into())]
    );
    assert!(reports.iter().all(|report| report["mismatches"] == 0), "{reports:?}");
    folder.run("verify --fib both --engine rank").refused(&["\"rank\" for IPv6", "--family"]);
    assert_eq!(folder.run("verify --fib both --engine rank --family 4 --json").ok().json().len(), 1);
}

#[test]
fn before_the_updates_and_after() {
    let folder = Folder::new();
    let reports = folder.run("verify --fib v4 --updates updates --engine sail-l --json").ok().json();
    let states: Vec<_> = reports.iter().map(|report| (&report["updates"], &report["prefixes"])).collect();
    assert_eq!(states, [(&0.into(), &6.into()), (&5.into(), &6.into())]);
    folder.run("verify --fib v6 --updates updates").refused(&["updates", "IPv6"]);
}

#[test]
fn nobody_walks_all_of_ipv6() {
    Folder::new().run("verify --fib v6 --exhaustive").refused(&["IPv4", "2^128"]);
}

#[test]
fn an_empty_table_of_the_family_is_right_too() {
    let ran = Folder::new().run("verify --fib v4 --family 6").ok();
    assert!(ran.stdout.contains("0 IPv6 prefixes"), "{ran:?}");
}

#[test]
fn an_engine_that_cannot_hold_the_table_is_not_wrong() {
    let folder = Folder::new();
    let ran = folder.run("verify --fib v4 --memory-cap 100k").ok();
    assert!(ran.stderr.contains("dir24: not checked: ") && ran.stdout.contains("gamt: 6 IPv4 "), "{ran:?}");
    folder.run("verify --fib v4 --memory-cap 1k").refused(&["no engine was checked"]);
    folder.run("verify --fib v4 --memory-cap 1k --engine dir24").refused(&["dir24"]);
}

/// All 2^32 addresses; too many for a build without optimisation.
#[cfg(not(debug_assertions))]
#[test]
fn every_address() {
    let reports = Folder::new().run("verify --fib v4 --engine every --exhaustive --json").ok().json();
    assert!(reports.iter().all(|report| report["addresses"] == 1u64 << 32 && report["mismatches"] == 0));
}
