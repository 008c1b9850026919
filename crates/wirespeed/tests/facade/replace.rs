//! All routes of a table replaced in one step, from memory and from files.

use wirespeed::fib::synth::{self, UpdateSpec};
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::{Device, Error, IpTable, Ipv4Table, Labels, NextHop, Prefix, Reloader, Rib, Table, V4, V6};
use wirespeed_image::rounds;

use crate::common::{Native, check, engines, on_host, rib, under_readers};

/// The routes after some updates.
fn changed<A: Native>(rib: &Rib<A>, updates: usize) -> Rib<A> {
    let mut after = rib.clone();
    let spec = UpdateSpec { next_hops: 40, ..UpdateSpec::real(A::FAMILY) };
    for timed in synth::Updates::new(rib, &spec).take(updates) {
        after.apply(&timed.update);
    }
    after
}

fn every_engine<A: Native>() {
    for engine in engines::<A>() {
        for prefix_lookups in [false, true] {
            let first = rib::<A>(21);
            let builder = Table::builder().rib(first.clone()).engine(engine);
            let mut table = if prefix_lookups { builder.prefix_lookups() } else { builder }.build().unwrap();
            let reader = table.reader();
            // Few differences, many, none, no routes at all, and back.
            let few = changed(&first, 5);
            let states = [few.clone(), rib(22), rib(22), Rib::new(), few, first];
            for (at, state) in states.into_iter().enumerate() {
                let differs = |from: &Rib<A>, other: &Rib<A>| {
                    from.iter().filter(|&(prefix, next_hop)| other.get(prefix) != Some(next_hop)).count()
                };
                let before = table.routes().to_rib();
                let withdrawn = before.iter().filter(|&(prefix, _)| state.get(prefix).is_none()).count();
                let applied = table.replace(state.clone()).unwrap();
                assert_eq!(applied.changes, differs(&state, &before) + withdrawn, "{engine}: state {at}");
                assert!(table.routes().iter().eq(state.iter()));
                check(&reader, &state, engine.as_str());
                assert_eq!(reader.has_prefix_lookups(), prefix_lookups);
            }
        }
    }
}

#[test]
fn every_engine_takes_other_routes_v4() {
    if rounds::leaves_to_ci() {
        return;
    }
    every_engine::<V4>();
}

#[test]
fn every_engine_takes_other_routes_v6() {
    every_engine::<V6>();
}

/// All prefixes lead to the number of the round, so a mixture of two rounds is seen.
#[test]
fn readers_see_one_table_or_the_other() {
    let round = |n: u32| -> Rib<V4> {
        (0..256).map(|at| (Prefix::around(V4(at << 24 | n << 8), 24), NextHop(n))).chain(all(n)).collect()
    };
    fn all(n: u32) -> impl Iterator<Item = (Prefix<V4>, NextHop)> {
        (0..256).map(move |at| (Prefix::around(V4(at << 24), 8), NextHop(n)))
    }
    let mut table = Ipv4Table::builder().rib(round(1)).build().unwrap();
    let reader = table.reader();
    let keys: Vec<_> = (0..256).map(|at| V4(at << 24 | 5)).collect();
    let look = || {
        let mut found = vec![NextHop::NONE; keys.len()];
        reader.lookup_batch(&keys, &mut found);
        assert!(found.iter().all(|&next_hop| next_hop == found[0]), "a mixture");
    };
    let rounds = (2..60).step_by(rounds::stride());
    under_readers(look, || rounds.for_each(|n| _ = table.replace(round(n)).unwrap()));
}

#[test]
fn what_fails_leaves_both_families() {
    if rounds::leaves_to_ci() {
        return;
    }
    let (four, six) = (rib::<V4>(1), rib::<V6>(1));
    let full = |prefix: &str| -> Rib<V6> { [(prefix.parse().unwrap(), NextHop(1))].into_iter().collect() };
    let mut table = IpTable::builder().engine("fold").memory_cap(40 << 20).build().unwrap();
    table.replace(four.clone(), six.clone()).unwrap();
    // Scattered hosts take chunks of their own.
    let hosts: Rib<V4> =
        (0..1 << 18).map(|n: u32| (Prefix::host(V4(n.wrapping_mul(0x9e37_79b1))), NextHop(1))).collect();
    let none: Rib<V4> = [("10.0.0.0/8".parse().unwrap(), NextHop::NONE)].into_iter().collect();
    let cases = [(hosts, full("::/0")), (none, full("2001:db8::/32"))];
    for (refused, (v4, v6)) in (1..).zip(cases) {
        let error = table.replace(v4, v6).unwrap_err();
        assert!(matches!(error, Error::MemoryCap { .. } | Error::RouteWithoutNextHop { .. }), "{error}");
        assert_eq!(table.refused(), refused);
        assert!(table.v4().routes().iter().eq(four.iter()) && table.v6().routes().iter().eq(six.iter()));
        check(table.reader().v4(), &four, "after a refusal");
        check(table.reader().v6(), &six, "after a refusal");
    }
}

#[test]
fn gpus_follow() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let mut table = Table::builder().rib(rib::<V6>(4)).device(Device::Gpu).fleet(fleet).build().unwrap();
    for seed in [5, 6] {
        let state = rib::<V6>(seed);
        table.replace(state.clone()).unwrap();
        check(&table.reader(), &state, "on a GPU");
    }
    assert!(table.lookups().unwrap().gpu > 0);
}

#[test]
fn a_table_follows_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("routes"), dir.path().join("other"));
    let labels = Labels::<String>::new();
    let (mut table, mut reloader) = (IpTable::builder().build().unwrap(), Reloader::new(&path));
    let reader = table.reader();
    let mut reload = |table: &mut IpTable| reloader.if_changed(|path| table.load(path, &labels));
    let error = reload(&mut table).unwrap_err();
    assert!(error.to_string().contains("routes"), "{error}");

    let put = |text: &str| {
        std::fs::write(&other, text).unwrap();
        std::fs::rename(&other, &path).unwrap();
    };
    let ask = |address: &str| {
        let known = labels.enter();
        known.get(reader.lookup(address.parse().unwrap())).cloned().unwrap_or_default()
    };
    put("10.0.0.0/8 a\n2001:db8::/32 b\n");
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(2));
    assert!(reload(&mut table).unwrap().is_none());
    assert_eq!([ask("10.1.1.1"), ask("2001:db8::1")], ["a", "b"]);

    put("10.0.0.0/8 c\n");
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(2));
    assert_eq!([ask("10.1.1.1"), ask("2001:db8::1")], ["c", ""]);
    assert_eq!(labels.len(), 1, "labels end with their routes");

    // A wrong file changes nothing, and is tried again.
    put("10.0.0.0/8 d\nnonsense\n");
    for _ in 0..2 {
        let error = reload(&mut table).unwrap_err();
        assert!(error.to_string().contains(":2"), "{error}");
        assert_eq!((ask("10.1.1.1"), labels.len()), ("c".to_owned(), 1));
    }

    // An image, with the labels of another table.
    let of_image = Labels::new();
    let routes = [("10.0.0.0/8", "x"), ("192.0.2.0/24", "e"), ("2001:db8::/32", "c")];
    let routes = routes.map(|(p, label)| (p.parse::<ipnet::IpNet>().unwrap(), label.to_owned()));
    let image = IpTable::builder().labelled_routes(&of_image, routes).build().unwrap();
    image.save_labelled(&other, &of_image).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(reload(&mut table).unwrap().map(|applied| applied.changes), Some(3));
    assert_eq!([ask("10.1.1.1"), ask("192.0.2.1"), ask("2001:db8::1")], ["x", "e", "c"]);
    let mut four = Ipv4Table::builder().build().unwrap();
    four.load(&path, &labels).unwrap();
    assert_eq!(four.len(), 2);

    // An image without labels says nothing that a label could be.
    image.save(&path).unwrap();
    let error = reload(&mut table).unwrap_err();
    assert!(error.to_string().contains("labels"), "{error}");
    assert_eq!(ask("192.0.2.1"), "e");
}
