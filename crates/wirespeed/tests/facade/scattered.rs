//! Tables of scattered host routes: `auto` holds them in little memory, and updates that are not for the
//! engine of a table are refused before they take the machine's.

use wirespeed::engine::EngineName;
use wirespeed::prelude::*;
use wirespeed::{Error, Table};

use wirespeed::fib::{Prefix, Update, V6};

/// Any of 2000::/3, the n-th of an order that looks random.
fn address(n: u64) -> V6 {
    let mixed = |n: u64| {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n ^ n >> 31
    };
    V6(u128::from(mixed(n) >> 3 | 1 << 61) << 64 | u128::from(mixed(!n)))
}

fn hop(n: u64) -> NextHop {
    NextHop(1 + u32::try_from(n % 100).unwrap_or_default())
}

#[test]
fn a_hundred_thousand_hosts_take_little() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    const HOSTS: u64 = 100_000;
    let routes = (0..HOSTS).map(|n| (Prefix::host(address(n)), hop(n)));
    let mut table = Table::<V6>::builder().routes(routes).build().expect("scattered hosts are a table");
    assert!(table.memory_usage() < 32 << 20, "{} takes {}", table.engine(), table.memory_usage());

    let reader = table.reader();
    let agrees = |range: std::ops::Range<u64>, next_hop: &dyn Fn(u64) -> NextHop| {
        let keys: Vec<V6> = range.clone().map(address).collect();
        let mut found = vec![NextHop::NONE; keys.len()];
        reader.lookup_batch(&keys, &mut found);
        for (n, found) in range.zip(found) {
            assert_eq!(found, next_hop(n), "host {n}");
        }
    };
    agrees(0..HOSTS, &hop);
    agrees(HOSTS..HOSTS + 20_000, &|_| NextHop::NONE);

    // A tenth goes, and a fifth comes: some of it behind a route of all, and more than there is head room
    // for.
    let gone = (0..10_000).map(|n| Update::withdraw(Prefix::host(address(n))));
    let come = (HOSTS..HOSTS + 20_000).map(|n| Update::announce(Prefix::host(address(n)), hop(n)));
    let all = Update::announce(Prefix::around(V6(0x2000 << 112), 3), NextHop(7));
    for updates in gone.chain(come).chain([all]).collect::<Vec<_>>().chunks(1_000) {
        table.apply(updates).expect("there is memory for them");
    }
    agrees(0..10_000, &|_| NextHop(7));
    agrees(10_000..HOSTS + 20_000, &hop);
    agrees(HOSTS + 20_000..HOSTS + 30_000, &|_| NextHop(7));
    assert!(table.memory_usage() < 32 << 20, "{} takes {}", table.engine(), table.memory_usage());
}

/// A table of few routes gets an engine that suits these. When hosts all over the address space come, it gets
/// the engine for hosts: chunks for each of them would take gigabytes.
#[test]
fn growth_that_is_not_for_the_engine_brings_another() {
    if wirespeed_image::rounds::leaves_to_ci() {
        return;
    }
    let mut table = Table::<V6>::builder()
        .routes([(Prefix::around(V6(0x2001 << 112), 32), NextHop(1))])
        .build()
        .expect("one route is a table");
    let hosts: Vec<_> = (0..30_000).map(|n| Update::announce(Prefix::host(address(n)), hop(n))).collect();
    table.apply(&hosts).expect("hosts have an engine");
    assert_eq!(table.engine(), EngineName::Waldvogel);
    assert!(table.memory_usage() < 16 << 20, "{} takes {}", table.engine(), table.memory_usage());
    assert_eq!(table.reader().lookup(address(29_999)), hop(29_999));
    let error = Error::DefaultMemoryCap { what: "IPv6", engine: EngineName::Fold, needed: 7_001, cap: 5_003 };
    let text = error.to_string();
    for part in ["7001", "5003", "fold", "`engine`", "`memory_cap`"] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    // What is stated counts, and what is built of the routes takes the engine for them.
    let routes = || hosts.iter().zip(0..).map(|(update, n)| (update.prefix(), hop(n)));
    let table = Table::<V6>::builder().routes(routes()).build().expect("it is built for what it has");
    assert!(table.memory_usage() < 16 << 20, "{} takes {}", table.engine(), table.memory_usage());
    let error = Table::<V6>::builder().routes(routes()).memory_cap(1 << 20).build().expect_err("a mebibyte");
    assert!(matches!(error, Error::MemoryCap { cap: 1_048_576, .. }), "{error}");
}
