//! Tables whose longest prefix is stated: longer prefixes are refused, and batches keep the bits of addresses
//! that lookups depend on.

use std::sync::atomic::Ordering;

use wirespeed::engine::Addresses;
use wirespeed::fib::synth::rng::Rng;
use wirespeed::gpu::runtime::GpuOptions;
use wirespeed::prelude::*;
use wirespeed::{Address, AnyUpdate, Batch, Error, Family, Fleet, Prefix, Rib, Table, Update};
use wirespeed_image::rounds;

use crate::batches::{check_answers, right};
use crate::common::{addresses, answers as right_answers, on_host, rib};

/// Routes with prefixes of at most this length, one of them as long as that.
fn up_to<A: Addresses>(longest: u8, seed: u64) -> Rib<A> {
    let mut rib: Rib<A> = rib::<A>(seed).iter().filter(|(prefix, _)| prefix.len() <= longest).collect();
    let somewhere = A::from_u128_low(Rng::new(seed).bits128());
    rib.insert(Prefix::around(somewhere, longest), NextHop(7));
    rib
}

fn on_gpu<A: Addresses>(rib: &Rib<A>, longest: u8, fleet: &Fleet) -> Table<A> {
    let builder = Table::builder().rib(rib.clone()).longest_prefix(longest);
    builder.device(Device::Gpu).fleet(fleet.clone()).build().unwrap()
}

/// The bits of an address that a batch on a GPU keeps.
fn kept<A: Addresses>(longest: u8) -> u8 {
    match (A::FAMILY, longest) {
        (Family::V6, 0..=48) => 48,
        (Family::V6, 49..=64) => 64,
        (Family::V4, 0..=24) => 24,
        _ => A::BITS,
    }
}

/// Fills a batch in all ways, one key after another and some at a time.
fn fill<A: Addresses>(batch: &mut Batch<A>, keys: &[A]) {
    let [first, second, third] = [keys.len() / 7, keys.len() / 3, keys.len() / 2];
    assert_eq!(batch.extend_from(&keys[..first]), first);
    keys[first..second].iter().for_each(|&key| batch.push(key).expect("there is room"));
    assert_eq!(batch.extend(keys[second..third].iter().copied()), third - second);
    assert_eq!(batch.extend_from(&keys[third..]), keys.len() - third);
}

/// Looks addresses up in batches that are full, and in some that are not.
fn check<A: Addresses>(table: &Table<A>, rib: &Rib<A>, longest: u8) {
    let (keys, batches) = (addresses(rib), table.reader().batches());
    let right = right_answers(rib, &keys);
    let sizes = [(1, 0), (3, 1), (64, 0), (700, 300), (1000, 24), (3000, 0), (3000, 1001)];
    for (size, room) in sizes.into_iter().step_by(rounds::plain_step(3)) {
        for (keys, right) in keys.chunks(size).zip(right.chunks(size)).take(10) {
            let mut batch = batches.batch(size + room).unwrap();
            fill(&mut batch, keys);
            let written: Vec<A> = keys.iter().map(|key| key.keep(kept::<A>(longest))).collect();
            assert_eq!((batch.len(), batch.keys()), (keys.len(), &written[..]), "/{longest}, {size}");
            let answers = batch.submit().wait();
            assert!(answers.is_from_gpu());
            assert_eq!(answers.keys(), written, "/{longest}, {size}, {room} more");
            check_answers(&answers, right, "on a GPU");
        }
    }
    assert_eq!(table.lookups().unwrap().cpu, 0);
    // Slices are looked up like those of other tables.
    let mut found = vec![NextHop::NONE; keys.len()];
    table.reader().lookup_batch(&keys, &mut found);
    assert_eq!(found, right);
}

/// Prefixes that need 6, 8 and 16 bytes of an address, and the ends of these.
#[test]
fn of_all_lengths() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let step = rounds::plain_step(4);
    for longest in [48, 0, 1, 49, 47, 64, 65, 128].into_iter().step_by(step) {
        let rib = up_to::<V6>(longest, 3);
        check(&on_gpu(&rib, longest, &fleet), &rib, longest);
    }
    for longest in [24, 0, 25, 32].into_iter().step_by(step) {
        let rib = up_to::<V4>(longest, 3);
        check(&on_gpu(&rib, longest, &fleet), &rib, longest);
    }
    // Prefixes that are shorter than stated, and a length that no prefix has.
    let rib = up_to::<V6>(32, 5);
    check(&on_gpu(&rib, 64, &fleet), &rib, 64);
    check(&on_gpu(&rib, 200, &fleet), &rib, 200);
}

/// Random tables and updates of them, beside batches that are filled and sent before.
#[test]
fn updates_up_to_the_length() {
    if rounds::leaves_to_ci() {
        return;
    }
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let mut rng = Rng::new(1);
    for (round, longest) in [48, 32, 64, 56].into_iter().enumerate().step_by(rounds::plain_step(4)) {
        let mut rib = up_to::<V6>(longest.min(40), 10 + round as u64);
        let mut table = on_gpu(&rib, longest, &fleet);
        let (batches, keys) = (table.reader().batches(), addresses(&rib));
        for turn in 0..4 {
            let fill = |of: &[V6]| {
                let mut batch = batches.batch(of.len() + 5).unwrap();
                fill(&mut batch, of);
                batch
            };
            let (filled, sent) = (fill(&keys[..500]), fill(&keys[500..1000]).submit());
            let before = right_answers(&rib, &keys[500..1000]);
            let updates: Vec<Update<V6>> = (0..50u32)
                .map(|n| {
                    let key = keys[usize::try_from(rng.below(1000)).unwrap()];
                    let len = if n == 0 {
                        longest
                    } else {
                        u8::try_from(rng.below(u64::from(longest) + 1)).unwrap()
                    };
                    match rng.below(4) {
                        0 => Update::withdraw(Prefix::around(key, len)),
                        _ => Update::announce(Prefix::around(key, len), NextHop(400 + turn * 50 + n)),
                    }
                })
                .collect();
            table.apply(&updates).unwrap();
            updates.iter().for_each(|update| _ = rib.apply(update));
            check_answers(&filled.submit().wait(), &right_answers(&rib, &keys[..500]), "filled before");
            let (sent, after) = (sent.wait(), right_answers(&rib, &keys[500..1000]));
            let found: Vec<_> = sent.iter().collect();
            assert!(found == before || found == after, "one state or the other");
        }
        check(&table, &rib, longest);
    }
}

#[test]
fn addresses_that_differ_behind_the_length() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let rib: Rib<V6> = [("2001:db8:1::/48".parse().unwrap(), NextHop(9))].into_iter().collect();
    let keys = [
        "2001:db8:1::",
        "2001:db8:1:ffff::",
        "2001:db8:1::1",
        "2001:db8:1:ffff:ffff:ffff:ffff:ffff",
        "2001:db8:2::",
    ]
    .map(|key| key.parse::<V6>().unwrap());
    let batches = on_gpu(&rib, 48, &fleet).reader().batches();
    let mut batch = batches.batch(100).unwrap();
    for (at, &key) in keys.iter().enumerate() {
        batch.push(key).unwrap();
        // Keys that were read before there was one more.
        assert_eq!((batch.keys().len(), batch.keys()[at]), (at + 1, key.keep(48)));
    }
    let expected = [9, 9, 9, 9, 0].map(NextHop);
    check_answers(&batch.submit().wait(), &expected, "on a GPU");
}

/// The CPU reads keys where they lie, in batches that are under way and in batches that are being filled.
#[test]
fn a_lost_gpu_costs_no_answer() {
    [48, 0, 64, 40, 128].into_iter().step_by(rounds::plain_step(2)).for_each(lose_a_gpu::<V6>);
    [24, 32].into_iter().for_each(lose_a_gpu::<V4>);
}

fn lose_a_gpu<A: Addresses>(longest: u8) {
    let Some((fleet, switch)) = on_host(GpuOptions::default()) else { return };
    let rib = up_to::<A>(longest, 23);
    let mut table = on_gpu(&rib, longest, &fleet);
    let (batches, keys) = (table.reader().batches(), addresses(&rib));
    let batch = |keys: &[A], room: usize| {
        let mut batch = batches.batch(keys.len() + room).unwrap();
        fill(&mut batch, keys);
        batch
    };
    let held = batch(&keys[..150], 0).submit().wait();
    let (under_way, filled) = (batch(&keys[150..400], 11).submit(), batch(&keys[400..500], 300));
    switch.store(true, Ordering::Relaxed);
    let (under_way, filled) = (under_way.wait(), filled.submit().wait());
    for (answers, keys) in [(&held, &keys[..150]), (&under_way, &keys[150..400]), (&filled, &keys[400..500])]
    {
        check_answers(answers, &right_answers(&rib, keys), "beside the loss");
        assert!(answers.keys().iter().zip(keys).all(|(got, key)| got.keep(longest) == key.keep(longest)));
    }
    assert!(held.is_from_gpu() && !filled.is_from_gpu());
    drop((held, under_way, filled));
    // What comes later, too, and the length is still kept.
    let later = batch(&keys, 0).submit().wait();
    check_answers(&later, &right_answers(&rib, &keys), "after the loss");
    assert_eq!(later.keys(), keys, "the CPU gets whole addresses");
    if longest < A::BITS {
        let longer = Prefix::around(keys[0], longest + 1);
        assert!(matches!(table.insert(longer, NextHop(1)), Err(Error::LongerPrefix { .. })));
    }
}

/// Batches without a slot keep whole addresses, and are packed when one is free.
#[test]
fn without_a_slot() {
    let Some((fleet, _)) = on_host(GpuOptions::default()) else { return };
    let rib = up_to::<V6>(48, 31);
    let table = on_gpu(&rib, 48, &fleet);
    let batches = table.reader().batches().at_once(100);
    let keys = addresses(&rib);
    let filled: Vec<_> = keys
        .chunks(10)
        .take(20)
        .map(|keys| {
            let mut batch = batches.batch(10).unwrap();
            fill(&mut batch, keys);
            (batch, keys)
        })
        .collect();
    assert_eq!(filled.iter().filter(|(batch, keys)| batch.keys() != *keys).count(), 6, "there are six slots");
    for (batch, keys) in filled {
        let answers = batch.submit().wait();
        assert!(answers.is_from_gpu(), "it waits for a slot");
        check_answers(&answers, &right_answers(&rib, keys), "one by one");
    }
}

#[test]
fn longer_prefixes_are_refused_and_nothing_changes() {
    let net = |text: &str| text.parse::<Prefix<V6>>().unwrap();
    let refuses = |refused: Result<_, Error>, at: &str| {
        let error = refused.map(|_: wirespeed::Applied| ()).unwrap_err();
        assert!(matches!(&error, Error::LongerPrefix { prefix, longest: 48 } if prefix == at), "{error}");
        assert!(error.to_string().contains("/48"), "{error}");
    };
    let rib = up_to::<V6>(48, 7);
    for with_prefixes in [false, true] {
        let builder = Table::builder().rib(rib.clone()).longest_prefix(48);
        let mut table = if with_prefixes { builder.prefix_lookups() } else { builder }.build().unwrap();
        let (before, reader) = (table.routes().iter().collect::<Vec<_>>(), table.reader());
        let longer = Update::announce(net("2001:db8::/49"), NextHop(9));
        let good = Update::announce(net("2001:db8::/48"), NextHop(9));
        refuses(table.insert(net("2001:db8::1/128"), NextHop(9)), "2001:db8::1/128");
        refuses(table.apply(&[good, longer]), "2001:db8::/49");
        let without_next_hop = Update::Announce { prefix: net("2001:db8::/49"), next_hop: None };
        refuses(table.apply(&[without_next_hop]), "2001:db8::/49");
        // A difference of few routes, and one of many.
        let mut few = rib.clone();
        few.insert(net("2001:db8::/64"), NextHop(1));
        refuses(table.replace(few), "2001:db8::/64");
        let many = [(net("2001:db8::/48"), NextHop(1)), (net("2001:db8::/64"), NextHop(1))];
        refuses(table.replace(many.into_iter().collect()), "2001:db8::/64");
        assert_eq!((table.refused(), table.rebuilds()), (5, 0));
        assert_eq!(table.routes().iter().collect::<Vec<_>>(), before);
        for key in addresses(&rib) {
            assert_eq!(reader.lookup(key), right(&rib, key));
        }
        // There is nothing to remove, as in any table; and what is no longer than stated goes on.
        assert_eq!(table.remove(net("2001:db8::/49")).unwrap().changes, 0);
        table.apply(&[good]).unwrap();
        assert_eq!(reader.lookup(net("2001:db8::/48").address()), NextHop(9));
        table.replace(rib.clone()).unwrap();
        assert_eq!(table.routes().iter().collect::<Vec<_>>(), before);
    }
    let built = Table::builder().routes([(net("2001:db8::/49"), NextHop(1))]).longest_prefix(48).build();
    assert!(matches!(built, Err(Error::LongerPrefix { longest: 48, .. })));
}

#[test]
fn labels_of_refused_routes_end() {
    let labels = Labels::new();
    let mut table = Ipv4Table::builder().labels(&labels).longest_prefix(24).build().unwrap();
    let label = labels.intern("refused".to_owned()).unwrap();
    assert!(table.insert("10.0.0.0/25".parse::<Ipv4Net>().unwrap(), label).is_err());
    assert_eq!((table.len(), table.refused()), (0, 1));
}

#[test]
fn both_families_or_none() {
    let v4 = Ipv4Table::builder().longest_prefix(24).build().unwrap();
    let v6 = Ipv6Table::builder().longest_prefix(48).build().unwrap();
    let mut table = IpTable::new(v4, v6);
    let (short_4, long_4) =
        ("10.0.0.0/24".parse::<IpNet>().unwrap(), "10.0.0.0/25".parse::<IpNet>().unwrap());
    let (short_6, long_6) =
        ("2001:db8::/48".parse::<IpNet>().unwrap(), "2001:db8::/64".parse::<IpNet>().unwrap());
    let announce = |net: IpNet| AnyUpdate::announce(net, NextHop(3)).unwrap();
    for (one, other) in [(short_4, long_6), (long_4, short_6), (long_6, short_4), (short_6, long_4)] {
        assert!(matches!(table.apply(&[announce(one), announce(other)]), Err(Error::LongerPrefix { .. })));
        assert!(table.is_empty());
        let rib_4 = [one, other].into_iter().filter_map(|net| match net {
            IpNet::V4(net) => Some((net.try_into().unwrap(), NextHop(3))),
            IpNet::V6(_) => None,
        });
        let rib_6 = [one, other].into_iter().filter_map(|net| match net {
            IpNet::V6(net) => Some((net.try_into().unwrap(), NextHop(3))),
            IpNet::V4(_) => None,
        });
        assert!(matches!(table.replace(rib_4.collect(), rib_6.collect()), Err(Error::LongerPrefix { .. })));
        assert!(table.is_empty());
    }
    assert_eq!(table.refused(), 8);
    table.apply(&[announce(short_4), announce(short_6)]).unwrap();
    assert_eq!(table.len(), 2);
}
