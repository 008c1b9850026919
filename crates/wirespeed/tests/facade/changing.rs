//! `auto` as a table grows and shrinks: another engine comes beside the readers.

#![allow(clippy::cast_possible_truncation)] // numbers that are drawn are small

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::engine::EngineName;
use wirespeed::fib::synth::rng::Rng;
use wirespeed::prelude::*;
use wirespeed::{Error, Prefix, Rib, Table};
use wirespeed_image::Stop;

use crate::common::{Native, check, rib};

/// Single routes, so that the size passes each limit slowly.
fn grows_and_shrinks<A: Native>(prefix_lookups: bool) {
    let all: Vec<_> = rib::<A>(7).iter().collect();
    let builder = Table::<A>::builder();
    let builder = if prefix_lookups { builder.prefix_lookups() } else { builder };
    let mut table = builder.build().unwrap();
    let (reader, mut model, mut engines) = (table.reader(), Rib::<A>::new(), Vec::new());
    let mut note = |table: &Table<A>, model: &Rib<A>| {
        assert_eq!((table.engine(), table.engine()), (table.reader().engine(), reader.engine()));
        if engines.last() != Some(&table.engine()) {
            engines.push(table.engine());
            check(&reader, model, table.engine().as_str());
        }
    };
    note(&table, &model);
    for &(prefix, next_hop) in &all {
        table.insert(prefix, next_hop).unwrap();
        model.insert(prefix, next_hop);
        note(&table, &model);
    }
    assert_eq!(table.rebuilds() > 2, all.len() > 256);
    for &(prefix, _) in all.iter().rev() {
        table.remove(prefix).unwrap();
        model.remove(prefix);
        note(&table, &model);
    }
    assert!(table.is_empty());
    assert_eq!((engines.first(), engines.last()), (Some(&EngineName::Forest), Some(&EngineName::Forest)));
    // Once there and once back: no engine is left soon after it was chosen.
    assert!((3..=4).contains(&engines.len()), "{engines:?}");
}

#[test]
fn a_table_grows_and_shrinks_v4() {
    grows_and_shrinks::<V4>(false);
    grows_and_shrinks::<V4>(true);
}

#[test]
fn a_table_grows_and_shrinks_v6() {
    grows_and_shrinks::<V6>(false);
}

/// Readers beside changes of engines: every route that is there before and after a call is found.
#[test]
fn readers_miss_nothing_while_engines_change() {
    let mut table = Ipv4Table::builder()
        .routes([("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1))])
        .build()
        .unwrap();
    let (reader, stop) = (table.reader(), AtomicBool::new(false));
    // Sizes on both sides of every limit.
    let sizes = [300u32, 100, 5, 2_000, 257, 256, 120, 400, 0];
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for seed in 0..2 {
            let (reader, stop) = (&reader, &stop);
            scope.spawn(move || {
                let (mut rng, mut found) = (Rng::new(seed), [NextHop::NONE; 64]);
                while !stop.load(Ordering::Relaxed) {
                    let keys: [V4; 64] = std::array::from_fn(|_| V4(0x0a00_0000 | rng.below(1 << 24) as u32));
                    reader.lookup_batch(&keys, &mut found);
                    // The routes beneath all lead to other next hops, up to 2000 of them.
                    assert!(found.iter().all(|next_hop| (1..=2_001).contains(&next_hop.0)), "{found:?}");
                    assert!(reader.lookup(keys[0]).is_some());
                }
            });
        }
        for round in 0..3 {
            for size in sizes {
                let routes = (0..size).map(|n| {
                    let prefix =
                        Prefix::around(V4(0x0a00_0000 | n.wrapping_mul(0x9e_3779) << 4 & 0xff_ffff), 28);
                    (prefix, NextHop(2 + (n + round) % 2_000))
                });
                let mut all: Rib<V4> = routes.collect();
                all.insert("10.0.0.0/8".parse().unwrap(), NextHop(1));
                table.replace(all.clone()).unwrap();
                check(&reader, &all, "after a replacement");
                assert_eq!(reader.engine() == EngineName::Forest, table.len() <= 256);
            }
        }
    });
}

/// A change that no engine has room for under the cap leaves the table as it was.
#[test]
fn routes_that_do_not_fit_leave_the_table() {
    let routes = |count: u32| -> Vec<Update<V4>> {
        let host = |n: u32| Prefix::host(V4(n.wrapping_mul(0x9e37_79b1)));
        (0..count).map(|n| Update::announce(host(n), NextHop(1 + n % 9))).collect()
    };
    let mut table = Ipv4Table::builder().memory_cap(512 << 10).build().unwrap();
    table.apply(&routes(100)).unwrap();
    let (reader, before) = (table.reader(), table.routes().to_rib());
    for _ in 0..2 {
        let error = table.apply(&routes(50_000)).unwrap_err();
        assert!(matches!(error, Error::MemoryCap { cap, .. } if cap == 512 << 10), "{error}");
        assert_eq!((table.engine(), table.len()), (EngineName::Forest, 100));
        check(&reader, &before, "after a refusal");
    }
    table.apply(&routes(110)).unwrap();
    check(&reader, &table.routes().to_rib(), "after refusals");
}

/// `auto` takes a smaller engine where the best one is over a stated cap, and keeps to it while routes come.
#[test]
fn a_small_cap_brings_a_smaller_engine() {
    fn check_family<A: Native>() {
        let route = |n: u32| {
            let address = A::from_u128_low(u128::from(n) << (A::BITS - 30));
            (Prefix::around(address, 30), NextHop(1 + n % 9))
        };
        let builder = || Table::<A>::builder().routes((0..300).map(route));
        let Err(Error::MemoryCap { needed, .. }) = builder().engine("fold").memory_cap(1).build() else {
            panic!("no table takes a byte");
        };
        let mut table = builder().memory_cap(needed / 2).build().unwrap();
        assert!(matches!(table.engine(), EngineName::Waldvogel | EngineName::Forest), "{}", table.engine());
        let rebuilds = table.rebuilds();
        for n in 300..320 {
            let (prefix, next_hop) = route(n);
            table.insert(prefix, next_hop).unwrap();
        }
        assert!(table.rebuilds() <= rebuilds + 2, "{} for 20 routes", table.rebuilds() - rebuilds);
        check(&table.reader(), &table.routes().to_rib(), "under a cap");
    }
    check_family::<V4>();
    check_family::<V6>();
}

/// A next hop that the fast engines have no room for brings one that has it, when the table is built and when
/// it changes.
#[test]
fn large_next_hops_have_an_engine() {
    const LARGEST: u32 = u32::MAX - 1;
    fn check_family<A: Native>(len: u8, wide: EngineName) {
        let route = |n: u32, next_hop: u32| {
            let address = A::from_u128_low(u128::from(n.wrapping_mul(0x9e37_79b1)) << (A::BITS - 32));
            (Prefix::around(address, len), NextHop(next_hop))
        };
        let few = || (0..700).map(|n| route(n, 1 + n % 300));
        for largest in [(1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, LARGEST] {
            let builder = Table::<A>::builder().routes(few().chain([route(800, largest)]));
            let table = builder.build().unwrap();
            check(&table.reader(), &table.routes().to_rib(), "built");
            if largest >= 1 << 30 {
                assert_eq!(table.engine(), wide);
            }
            let mut table = Table::<A>::builder().routes(few()).build().unwrap();
            let reader = table.reader();
            for n in 0..20 {
                let (prefix, next_hop) = route(900 + n, largest - n);
                table.insert(prefix, next_hop).unwrap();
            }
            assert!(table.rebuilds() <= 2, "{} for 20 routes", table.rebuilds());
            check(&reader, &table.routes().to_rib(), "changed");
            let table = Table::<A>::builder().routes(few()).next_hops(largest).build().unwrap();
            check(&table.reader(), &table.routes().to_rib(), "with room");
        }
        let error = Table::<A>::builder().routes(few().chain([route(800, u32::MAX)])).build().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("4294967294") && text.contains("4294967295"), "{text}");
    }
    check_family::<V4>(24, EngineName::Fold);
    check_family::<V6>(48, EngineName::Forest);
}

/// An opened image of a small table grows like the table that was saved.
#[test]
fn an_opened_small_table_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small.img");
    let few: Rib<V6> = rib::<V6>(3).iter().take(20).collect();
    Table::builder().rib(few.clone()).build().unwrap().save(&path).unwrap();
    assert_eq!(Ipv6Reader::open(&path).unwrap().engine(), EngineName::Forest);
    let mut table = Ipv6Table::open(&path).unwrap();
    check(&table.reader(), &few, "opened");
    let all = rib::<V6>(4);
    table.replace(all.clone()).unwrap();
    assert_eq!(table.engine(), EngineName::Fold);
    check(&table.reader(), &all, "grown");
}

/// A named engine stays, however small the table is.
#[test]
fn a_named_engine_stays() {
    let mut table = Ipv4Table::builder().engine("fold").build().unwrap();
    table.insert("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1)).unwrap();
    assert_eq!(table.engine(), EngineName::Fold);
}

/// A live table of one route takes at most 64 KiB.
#[test]
fn one_route_takes_little() {
    let one = |text: &str| {
        IpTable::builder().routes([(text.parse::<IpNet>().unwrap(), NextHop(1))]).build().unwrap()
    };
    for text in ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.0/24", "192.0.2.1/32"] {
        assert!(one(text).v4().memory_usage() <= 64 << 10, "{text}: {}", one(text).v4().memory_usage());
    }
    for text in ["::/0", "2001:db8::/32", "2001:db8:1::/48", "2001:db8::1/128"] {
        assert!(one(text).v6().memory_usage() <= 64 << 10, "{text}: {}", one(text).v6().memory_usage());
    }
}
