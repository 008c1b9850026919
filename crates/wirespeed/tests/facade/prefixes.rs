//! Lookups that give the matched prefix, with every engine, against the routes themselves.

use std::sync::atomic::{AtomicBool, Ordering};

use wirespeed::fib::synth::{self, UpdateSpec};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::{Device, Error, NextHop, Prefix, Reader, Rib, Table, Update, V4, V6};
use wirespeed_image::rounds;

use crate::common::{Native, addresses, check, engines, matches, on_host, rib};
use crate::gpu::check_pipeline;

/// Holds everything that a reader says of prefixes against the routes.
fn check_prefixes<A: Native>(reader: &Reader<A>, rib: &Rib<A>, what: &str) {
    assert!(reader.has_prefix_lookups());
    let addresses = addresses(rib);
    let right = matches(rib, &addresses);
    let guard = reader.enter();
    for (&address, &right) in addresses.iter().zip(&right) {
        assert_eq!(reader.lookup_prefix(address).unwrap(), right, "{what}: {address}");
        assert_eq!(guard.lookup_prefix(address.std()).unwrap(), right, "{what}: {address} through a guard");
    }
    for len in [0, 1, 511, 1023, 1025, addresses.len()] {
        let len = len.min(addresses.len());
        let (addresses, right) = (&addresses[..len], &right[..len]);
        let keys: Vec<_> = addresses.iter().map(|address| address.std()).collect();
        // Filled with nobody's answer.
        let unknown = (vec![NextHop(u32::MAX); len], vec![255u8; len]);
        let (mut of_reader, mut of_keys, mut of_guard) = (unknown.clone(), unknown.clone(), unknown);
        reader.lookup_prefixes(addresses, &mut of_reader.0, &mut of_reader.1).unwrap();
        reader.lookup_prefixes(&keys, &mut of_keys.0, &mut of_keys.1).unwrap();
        guard.lookup_prefixes(addresses, &mut of_guard.0, &mut of_guard.1).unwrap();
        for (next_hops, lengths) in [of_reader, of_keys, of_guard] {
            for ((&address, &right), found) in addresses.iter().zip(right).zip(next_hops.iter().zip(lengths))
            {
                let (prefix, next_hop) = right.map_or((0, NextHop::NONE), |(p, n)| (p.len(), n));
                assert_eq!(found, (&next_hop, prefix), "{what}: {address} in a batch of {len}");
            }
        }
    }
}

fn every_engine<A: Native>() {
    for engine in engines::<A>() {
        let mut rib = rib::<A>(11);
        let mut table = Table::builder().rib(rib.clone()).engine(engine).prefix_lookups().build().unwrap();
        let reader = table.reader();
        check(&reader, &rib, engine.as_str());
        check_prefixes(&reader, &rib, engine.as_str());
        assert!(table.routes().iter().eq(rib.iter()));

        let spec = UpdateSpec { next_hops: 400, ..UpdateSpec::real(A::FAMILY) };
        let updates: Vec<_> = synth::Updates::new(&rib, &spec).take(400).map(|timed| timed.update).collect();
        for updates in updates.chunks(200) {
            let applied = table.apply(updates).unwrap();
            assert_eq!(applied.changes, updates.iter().filter(|update| rib.apply(update)).count());
            check(&reader, &rib, engine.as_str());
            check_prefixes(&reader, &rib, engine.as_str());
        }
        assert!(table.routes().iter().eq(rib.iter()) && table.routes().to_rib().iter().eq(rib.iter()));

        // Saved, opened for lookups, opened for updates.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.img");
        table.save(&path).unwrap();
        check_prefixes(&Reader::open(&path).unwrap(), &rib, "an image");
        let mut opened = Table::<A>::open(&path).unwrap();
        check_prefixes(&opened.reader(), &rib, "an opened table");
        let host = Prefix::host(A::MIN);
        opened.insert(host, NextHop(77_777)).unwrap();
        rib.insert(host, NextHop(77_777));
        check_prefixes(&opened.reader(), &rib, "an opened table that changed");
        assert_eq!(opened.routes().get(host), Some(NextHop(77_777)));
    }
}

#[test]
fn every_engine_gives_prefixes_v4() {
    every_engine::<V4>();
}

#[test]
fn every_engine_gives_prefixes_v6() {
    every_engine::<V6>();
}

#[test]
fn a_table_without_prefix_lookups_refuses_them() {
    let table = Table::<V4>::builder().rib(rib(3)).build().unwrap();
    let reader = table.reader();
    assert!(!reader.has_prefix_lookups());
    let mut results = ([NextHop(7); 2], [7; 2]);
    let refused = reader.lookup_prefixes(&[V4(1), V4(2)], &mut results.0, &mut results.1);
    assert!(matches!(refused, Err(Error::NoPrefixLookups)));
    assert_eq!(results, ([NextHop(7); 2], [7; 2]), "nothing was written");
    let error = reader.lookup_prefix(V4(1)).unwrap_err();
    assert!(error.to_string().contains("prefix_lookups"), "{error}");
    assert!(matches!(reader.enter().lookup_prefix(V4(1)), Err(Error::NoPrefixLookups)));
}

/// A route without a next hop of its own keeps the route's, or gets the first.
#[test]
fn announcements_without_next_hops_mean_what_they_mean_elsewhere() {
    let announce = |prefix: &str, next_hop| Update::Announce { prefix: prefix.parse().unwrap(), next_hop };
    let withdraw = |prefix: &str| Update::Withdraw { prefix: prefix.parse().unwrap() };
    let updates = [
        announce("10.0.0.0/8", Some(NextHop(9))),
        announce("10.0.0.0/8", None),
        announce("11.0.0.0/8", None),
        announce("12.0.0.0/8", Some(NextHop(4))),
        withdraw("12.0.0.0/8"),
        announce("12.0.0.0/8", None),
        announce("13.0.0.0/8", None),
        withdraw("13.0.0.0/8"),
    ];
    for size in [1, 3, updates.len()] {
        let mut tables =
            [Table::<V4>::builder(), Table::builder().prefix_lookups()].map(|b| b.build().unwrap());
        for updates in updates.chunks(size) {
            let applied = tables.each_mut().map(|table| table.apply(updates).unwrap().changes);
            assert_eq!(applied[0], applied[1]);
        }
        let [plain, with] = &tables;
        assert!(plain.routes().iter().eq(with.routes().iter()), "calls of {size}");
        check_prefixes(&with.reader(), &plain.routes().to_rib(), "after announcements");
    }
}

/// Each next hop says its length, so a next hop with another length is seen.
#[test]
fn readers_see_next_hops_with_their_lengths_while_pairs_are_added() {
    let mut table = Table::<V4>::builder().prefix_lookups().build().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, stop) = (table.reader(), &stop);
            scope.spawn(move || {
                let keys: Vec<_> = (0..64u32).map(|n| V4(0x0a00_0000 | n << 18)).collect();
                let (mut next_hops, mut lengths) = ([NextHop::NONE; 64], [0; 64]);
                while !stop.load(Ordering::Relaxed) {
                    reader.lookup_prefixes(&keys, &mut next_hops, &mut lengths).unwrap();
                    for (next_hop, length) in next_hops.iter().zip(lengths) {
                        assert_eq!(next_hop.0 % 33, u32::from(length));
                    }
                    for &key in &keys[..4] {
                        if let Some((prefix, next_hop)) = reader.lookup_prefix(key).unwrap() {
                            assert_eq!(next_hop.0 % 33, u32::from(prefix.len()));
                        }
                        assert!(reader.lookup(key).0 % 33 <= 14);
                    }
                }
            });
        }
        for round in (0..4_000u32).step_by(rounds::stride()) {
            let len = 8 + (round % 7) as u8;
            let prefix = Prefix::around(V4(0x0a00_0000 | round.wrapping_mul(0x0101_0101) >> 8), len);
            let next_hop = NextHop(33 * (1 + round) + u32::from(len));
            table.insert(prefix, next_hop).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn gpus_give_prefixes_too() {
    fn family<A: Native>() {
        let Some((fleet, lost)) = on_host(GpuOptions::default()) else { return };
        let mut rib = rib::<A>(5);
        let builder = Table::builder().rib(rib.clone()).prefix_lookups();
        let mut table = builder.device(Device::Gpu).fleet(fleet).build().unwrap();
        check_prefixes(&table.reader(), &rib, "on a GPU");
        check(&table.reader(), &rib, "on a GPU");
        check_pipeline(&table.reader(), &rib, "of pairs");
        let prefix = Prefix::host(A::MIN);
        table.insert(prefix, NextHop(3_000)).unwrap();
        rib.insert(prefix, NextHop(3_000));
        check_prefixes(&table.reader(), &rib, "on a GPU, after an update");
        check_pipeline(&table.reader(), &rib, "of pairs");
        assert!(table.lookups().unwrap().gpu > 0);
        lost.store(true, Ordering::Relaxed);
        check_prefixes(&table.reader(), &rib, "with the GPU lost");
        check_pipeline(&table.reader(), &rib, "of pairs");
    }
    family::<V4>();
    family::<V6>();
}
