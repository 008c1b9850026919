//! Batches that are filled key by key: on the CPU, on the kernels' host build in a GPU's place, and beside
//! everything that happens to tables and devices meanwhile.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use wirespeed::classify::oracle::Oracle;
use wirespeed::engine::{Addresses, Served};
use wirespeed::gpu::dispatch::Place;
use wirespeed::gpu::runtime::{GpuOptions, SlotSize};
use wirespeed::names::{Matches, NameDomain};
use wirespeed::prelude::*;
use wirespeed::{Answers, Batch, Batches, Error, Fleet, Full, Numbers, Reader, Rib, Table};

use crate::common::{addresses, has_gpu, on_host, rib};

fn host() -> Option<(Fleet, Arc<AtomicBool>)> {
    on_host(GpuOptions::default())
}

pub(crate) fn right<A: Addresses>(rib: &Rib<A>, address: A) -> NextHop {
    rib.longest_match(address).map_or(NextHop::NONE, |(_, next_hop)| next_hop)
}

/// Holds every way to read answers against the answers that are right.
pub(crate) fn check_answers<D: Served>(answers: &Answers<D>, right: &[D::Answer], what: &str) {
    assert_eq!((answers.len(), answers.is_empty()), (right.len(), right.is_empty()), "{what}");
    let numbers: Vec<u32> = match answers.numbers() {
        Numbers::U8(numbers) => numbers.iter().map(|&number| number.into()).collect(),
        Numbers::U16(numbers) => numbers.iter().map(|&number| number.into()).collect(),
        Numbers::U32(numbers) => numbers.to_vec(),
    };
    assert!(numbers.iter().map(|&number| answers.resolve(number)).eq(right.iter().copied()), "{what}");
    assert!(answers.iter().eq(right.iter().copied()), "{what}");
    assert!((0..right.len()).all(|at| answers.get(at) == right[at]), "{what}");
    let mut copied = vec![bytemuck::cast(u32::MAX); right.len()];
    answers.copy_to(&mut copied);
    assert_eq!(copied, right, "{what}");
}

/// Looks up all addresses of a table in batches of many sizes, filled in each way.
fn check_table<A: Addresses>(reader: &Reader<A>, rib: &Rib<A>, what: &str) {
    let keys = addresses(rib);
    let batches = reader.batches();
    for size in [1, 3, 100, 1000, keys.len()] {
        for (turn, part) in keys.chunks(size).enumerate().take(40) {
            let mut batch = batches.batch(size).expect("none is out");
            assert!(batch.is_empty() && batch.capacity() == size);
            match turn % 3 {
                0 => part.iter().for_each(|&key| batch.push(key).expect("there is room")),
                1 => assert_eq!(batch.extend(part.iter().copied()), part.len()),
                _ => assert_eq!(batch.extend_from(part), part.len()),
            }
            assert_eq!((batch.keys(), batch.len(), batch.is_full()), (part, part.len(), part.len() == size));
            let submitted = batch.submit();
            assert_eq!(submitted.len(), part.len());
            let answers = submitted.wait();
            assert_eq!(answers.keys(), part, "{what}");
            let right: Vec<_> = part.iter().map(|&key| right(rib, key)).collect();
            check_answers(&answers, &right, what);
        }
    }
    assert_eq!(batches.out(), 0);
}

#[test]
fn on_the_cpu() {
    let (v4, v6) = (rib::<V4>(3), rib::<V6>(3));
    check_table(&Table::builder().rib(v4.clone()).build().unwrap().reader(), &v4, "IPv4");
    let table = Table::builder().rib(v6.clone()).build().unwrap();
    check_table(&table.reader(), &v6, "IPv6");
    assert!(table.device_costs().is_empty() && table.reader().batches().suited_keys() == 4096);
}

#[test]
fn on_a_gpu() {
    let Some((fleet, _)) = host() else { return };
    fn on<A: Addresses>(fleet: &Fleet, what: &str) {
        let rib = rib::<A>(3);
        let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet.clone());
        let table = builder.build().unwrap();
        let reader = table.reader();
        let mut batch = reader.batches().batch(10).unwrap();
        batch.push(A::MIN).unwrap();
        assert!(batch.submit().wait().is_from_gpu());
        let costs = table.device_costs();
        assert!(costs.is_sorted_by(|a, b| a.keys < b.keys && a.cpu <= b.cpu));
        assert!(
            costs.iter().all(|cost| cost.place == Place::Gpu && cost.gpu_rate > 0.0),
            "the CPU never looks up"
        );
        assert!(costs.iter().any(|cost| cost.keys == reader.batches().suited_keys()));
        check_table(&reader, &rib, what);
        assert_eq!(table.lookups().unwrap().cpu, 0, "{what}");
    }
    on::<V4>(&fleet, "IPv4");
    on::<V6>(&fleet, "IPv6");
}

/// Slices of addresses are written past the caches if four threads or more feed a GPU.
#[test]
fn many_threads_feed_a_gpu() {
    let Some((fleet, _)) = host() else { return };
    fn feed<A: Addresses>(fleet: &Fleet, what: &str) {
        let rib: Rib<A> = rib::<A>(7).iter().filter(|(prefix, _)| prefix.len() <= 48).collect();
        let builder = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet.clone());
        let table = builder.longest_prefix(A::BITS.min(48)).build().unwrap();
        let (reader, keys) = (table.reader(), addresses(&rib));
        std::thread::scope(|scope| {
            for thread in 0..6usize {
                let (reader, keys, rib) = (&reader, &keys, &rib);
                scope.spawn(move || {
                    let batches = reader.batches();
                    for (turn, part) in keys.chunks(1_000).skip(thread).take(8).enumerate() {
                        let mut batch = batches.batch(part.len()).expect("none is out");
                        // Blocks of whole lines, and blocks that end within one.
                        let block = [32, 64, 50][turn % 3];
                        part.chunks(block)
                            .for_each(|block| assert_eq!(batch.extend_from(block), block.len()));
                        assert_eq!(batch.keys().len(), part.len());
                        let answers = batch.submit().wait();
                        assert!(answers.is_from_gpu(), "{what}");
                        let right: Vec<_> = part.iter().map(|&key| right(rib, key)).collect();
                        check_answers(&answers, &right, what);
                    }
                });
            }
        });
    }
    feed::<V4>(&fleet, "IPv4");
    feed::<V6>(&fleet, "IPv6");
}

#[test]
fn a_batch_is_full_and_memory_is_bounded() {
    let reader = Table::builder().rib(rib::<V4>(3)).build().unwrap().reader();
    let batches = reader.batches().at_once(2);
    let mut batch = batches.batch(2).unwrap();
    assert_eq!(batch.extend((0..10).map(V4)), 2);
    assert_eq!((batch.push(V4(1)), batch.extend_from(&[V4(1)]), batch.len()), (Err(Full), 0, 2));
    assert_eq!(Full.to_string(), "the batch is full: submit it first");
    let other = batches.batch(0).unwrap();
    assert_eq!((other.capacity(), batches.out()), (1, 2));
    assert!(batches.batch(1).is_none(), "as many are out as may be");
    // A batch counts until its answers are dropped.
    let submitted = batch.submit();
    assert!(submitted.is_ready() && batches.batch(1).is_none());
    let answers = submitted.wait();
    assert!(!answers.is_from_gpu() && batches.batch(1).is_none());
    let mut batch = answers.into_batch(3);
    assert!(batch.is_empty() && batch.extend((0..9).map(V4)) == 3 && batches.batch(1).is_none());
    drop((batch, other));
    assert_eq!(batches.out(), 0);
    // Without keys there are no answers.
    let answers = batches.batch(5).unwrap().submit().wait();
    check_answers(&answers, &[], "no keys");
    // A source of its own, with the same settings.
    let clone = batches.clone();
    assert!(clone.batch(1).is_some() && clone.batch(1).is_some() && answers.is_empty());
    assert_eq!(format!("{batches:?}"), "Batches { at_once: 2, out: 1, .. }");
}

#[test]
fn a_batch_is_due_after_its_first_keys_time() {
    let reader = Table::builder().rib(rib::<V4>(3)).build().unwrap().reader();
    let mut batch = reader.batches().batch(10).unwrap();
    batch.push(V4(1)).unwrap();
    assert!(batch.due().is_none() && !batch.is_due(Instant::now() + Duration::from_secs(1 << 30)));
    let batches = reader.batches().within(Duration::from_secs(100));
    let mut batch = batches.batch(2).unwrap();
    assert!(batch.due().is_none());
    let before = Instant::now();
    batch.push(Ipv4Addr::LOCALHOST).unwrap();
    let due = batch.due().unwrap();
    assert!(due >= before + Duration::from_secs(100) && due <= Instant::now() + Duration::from_secs(100));
    assert!(!batch.is_due(due - Duration::from_nanos(1)) && batch.is_due(due));
    batch.push(V4(2)).unwrap();
    assert!(batch.due() == Some(due) && batch.is_due(before), "it is full");
    // No key came, so there is nothing to submit.
    let mut batch = batches.batch(2).unwrap();
    assert_eq!((batch.extend([]), batch.extend_from(&[])), (0, 0));
    assert!(batch.due().is_none() && !batch.is_due(Instant::now() + Duration::from_secs(1000)));
    assert_eq!(batch.extend([V4(1)]), 1);
    assert!(batch.due().is_some());
}

#[test]
fn a_batch_may_have_any_capacity() {
    let routes = [("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(1))];
    let reader = Ipv4Table::builder().routes(routes).build().unwrap().reader();
    let mut batch = reader.batches().batch(usize::MAX).unwrap();
    assert_eq!(batch.capacity(), usize::MAX);
    batch.push(0x0a00_0001).unwrap();
    assert_eq!(batch.extend_from(&[V4(1)]), 1);
    check_answers(&batch.submit().wait(), &[NextHop(1), NextHop::NONE], "a batch without a limit");
}

#[test]
fn keys_that_became_too_narrow_are_packed_again() {
    let Some((fleet, _)) = host() else { return };
    let routes = [("10.0.0.0/24".parse::<Ipv4Net>().unwrap(), NextHop(1))];
    let builder = Ipv4Table::builder().routes(routes).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    let batches = table.reader().batches();
    let mut filled = batches.batch(2).unwrap();
    filled.extend([V4(0x0a00_0001), V4(0x0a00_0080)]);
    let mut sent = batches.batch(2).unwrap();
    sent.extend([V4(0x0a00_0001), V4(0x0a00_0080)]);
    let sent = sent.submit();
    table.insert("10.0.0.128/25".parse::<Ipv4Net>().unwrap(), NextHop(2)).unwrap();
    check_answers(&filled.submit().wait(), &[NextHop(1), NextHop(2)], "filled before");
    let sent = sent.wait();
    assert!([NextHop(1), NextHop(2)].contains(&sent.get(1)), "one state or the other");
    drop(table);
    let mut batch = batches.batch(1).unwrap();
    batch.push(V4(0x0a00_0080)).unwrap();
    check_answers(&batch.submit().wait(), &[NextHop(2)], "after the table is gone");
    check_answers(&sent, &[NextHop(1), sent.get(1)], "held");
}

/// Keys of 6 bytes, then 8, then all 16. Those of 16 are written to a slot as they come.
#[test]
fn parts_of_addresses_that_became_too_narrow_are_packed_again() {
    let Some((fleet, _)) = host() else { return };
    let net = |text: &str| text.parse::<Ipv6Net>().unwrap();
    let routes = [(net("2001:db8::/32"), NextHop(1))];
    let builder = Ipv6Table::builder().routes(routes).device(Device::Gpu).fleet(fleet);
    let mut table = builder.build().unwrap();
    let batches = table.reader().batches();
    let keys: Vec<V6> =
        ["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:1::2"].map(|key| key.parse().unwrap()).into();
    let many: Vec<V6> = keys.iter().copied().cycle().take(2500).collect();
    let fill = || {
        let mut batch = batches.batch(3000).unwrap();
        assert_eq!(batch.extend_from(&many[..1000]), 1000);
        many[1000..1100].iter().for_each(|&key| batch.push(key).unwrap());
        assert_eq!(batch.extend(many[1100..].iter().copied()), 1400);
        assert_eq!(batch.keys(), many);
        batch
    };
    let longer = [("2001:db8:0:1::/64", 2, [1, 2, 2]), ("2001:db8:0:1::2/128", 3, [1, 2, 3])];
    for (prefix, next_hop, right) in longer {
        let (filled, sent) = (fill(), fill().submit());
        table.insert(net(prefix), NextHop(next_hop)).unwrap();
        let right: Vec<_> = right.into_iter().map(NextHop).cycle().take(many.len()).collect();
        let answers = filled.submit().wait();
        assert!(answers.is_from_gpu());
        check_answers(&answers, &right, "filled before");
        drop(answers);
        let sent = sent.wait();
        assert!(sent.is_from_gpu() && sent.get(0) == NextHop(1) && sent.keys() == many);
        drop(sent);
        check_answers(&fill().submit().wait(), &right, "filled after");
    }
    assert_eq!(table.lookups().unwrap().cpu, 0);
}

#[test]
fn results_of_all_widths_on_a_gpu() {
    let Some((fleet, _)) = host() else { return };
    for next_hop in [200, 60_000, 70_000] {
        let routes = [("10.0.0.0/8".parse::<Ipv4Net>().unwrap(), NextHop(next_hop))];
        let builder = Ipv4Table::builder().routes(routes).device(Device::Gpu).fleet(fleet.clone());
        let reader = builder.build().unwrap().reader();
        let mut batch = reader.batches().batch(300).unwrap();
        batch.extend((0..300).map(|n| V4(0x0a00_0000 - 150 + n)));
        let answers = batch.submit().wait();
        let expected: Vec<_> = (0..300).map(|n| NextHop(if n < 150 { 0 } else { next_hop })).collect();
        check_answers(&answers, &expected, "a width");
    }
}

#[test]
fn prefixes_on_both_devices() {
    let Some((fleet, _)) = host() else { return };
    let rib = rib::<V6>(9);
    for device in [Device::Cpu, Device::Gpu] {
        let builder = Table::builder().rib(rib.clone()).prefix_lookups().device(device).fleet(fleet.clone());
        let reader = builder.build().unwrap().reader();
        check_table(&reader, &rib, "with prefixes");
        let keys = addresses(&rib);
        let mut batch = reader.batches().batch(keys.len()).unwrap();
        batch.extend_from(&keys);
        let answers = batch.submit().wait();
        assert_eq!(answers.is_from_gpu(), device == Device::Gpu);
        let (mut next_hops, mut lengths) = (vec![NextHop::NONE; keys.len()], vec![0; keys.len()]);
        answers.copy_prefixes_to(&mut next_hops, &mut lengths).unwrap();
        for (at, &key) in keys.iter().enumerate() {
            let right =
                rib.longest_match(key).map_or((NextHop::NONE, 0), |(prefix, hop)| (hop, prefix.len()));
            assert_eq!((next_hops[at], lengths[at]), right, "{key}");
        }
    }
    let reader = Table::builder().rib(rib).build().unwrap().reader();
    let answers = reader.batches().batch(1).unwrap().submit().wait();
    assert!(matches!(answers.copy_prefixes_to(&mut [], &mut []), Err(Error::NoPrefixLookups)));
}

/// Threads that keep batches for ever do not stop others: the CPU answers when slots are taken.
#[test]
fn slots_that_are_kept_do_not_stop_anybody() {
    let Some((fleet, _)) = host() else { return };
    let rib = rib::<V4>(5);
    let table = Table::builder().rib(rib.clone()).device(Device::Gpu).fleet(fleet).build().unwrap();
    let batches = table.reader().batches().at_once(100);
    let kept: Vec<Answers<V4>> = (0..20)
        .map(|n| {
            let mut batch = batches.batch(1).unwrap();
            batch.push(V4(n)).unwrap();
            batch.submit().wait()
        })
        .collect();
    assert_eq!(kept.iter().filter(|answers| answers.is_from_gpu()).count(), 6, "there are six slots");
    // Slices would wait for a slot that never comes free.
    let (keys, look_up) = (addresses(&rib), |reader: &Reader<V4>, keys: &[V4]| {
        let mut found = vec![NextHop::NONE; keys.len()];
        reader.lookup_batch(keys, &mut found);
        let right: Vec<_> = keys.iter().map(|&key| right(&rib, key)).collect();
        assert_eq!(found, right);
    });
    let check_beside = |what: &str| {
        check_table(&table.reader(), &rib, what);
        look_up(&table.reader(), &keys);
        let began = Instant::now();
        (0..100).for_each(|_| look_up(&table.reader(), &keys[..10]));
        assert!(began.elapsed() < Duration::from_secs(10), "nobody waits again and again");
    };
    check_beside("beside kept answers");
    let before = table.lookups().unwrap();
    drop(kept);
    check_table(&table.reader(), &rib, "after them");
    look_up(&table.reader(), &keys);
    assert_eq!(table.lookups().unwrap().cpu, before.cpu);
    // Batches that are being filled keep slots, too.
    let filled: Vec<Batch<V4>> = (0..20).map(|_| batches.batch(1).unwrap()).collect();
    check_beside("beside kept batches");
    let before = table.lookups().unwrap();
    assert!(before.cpu > 0);
    let answers = filled.into_iter().enumerate().map(|(n, mut batch)| {
        batch.push(keys[n]).unwrap();
        let answers = batch.submit().wait();
        assert_eq!(answers.get(0), right(&rib, keys[n]));
        answers.is_from_gpu()
    });
    assert_eq!(answers.filter(|&is_from_gpu| is_from_gpu).count(), 20, "each waits for a slot");
}

fn check_names(reader: &NameReader, what: &str) {
    let batches: Batches<NameDomain> = reader.batches();
    let names: Vec<NameBuf> =
        (0..500).map(|n| NameBuf::new(&format!("/com/{}/x{n}", n % 9)).unwrap()).collect();
    let right: Vec<_> = (0..500).map(|n| NextHop(if n % 9 < 5 { 1 + n % 9 } else { 100 })).collect();
    let mut batch = batches.batch(500).unwrap();
    names.iter().for_each(|name| batch.push(&**name).unwrap());
    check_answers(&batch.submit().wait(), &right, what);
    let all: NameBatch = names.iter().map(|name| &**name as &Name).collect();
    let mut batch = batches.batch(100).unwrap();
    assert_eq!(batch.extend_from(all.names().part(50..450)), 100);
    check_answers(&batch.submit().wait(), &right[50..150], what);
}

#[test]
fn names_on_both_devices() {
    let names = || {
        let more = (0..5).map(|n| (NameBuf::new(&format!("/com/{n}")).unwrap(), NextHop(1 + n)));
        more.chain([(NameBuf::new("/com").unwrap(), NextHop(100))])
    };
    check_names(&NameTable::builder().names(names()).build().unwrap().reader(), "on the CPU");
    let Some((fleet, _)) = on_host(NameDomain::gpu_options()) else { return };
    let table = NameTable::builder().names(names()).device(Device::Gpu).fleet(fleet).build().unwrap();
    check_names(&table.reader(), "on a GPU");
    assert_eq!(table.lookups().unwrap().cpu, 0);
}

/// Holds matches of names of all kinds against those of entries, filled in each way.
fn check_matches(batches: &Batches<NameDomain, Matches>, entries: &[(NameBuf, NextHop)], what: &str) {
    let long = "x".repeat(3000);
    let names: Vec<NameBuf> = (0..3000)
        .map(|n| match n % 7 {
            0 => NameBuf::root(),
            3 if n < 700 => NameBuf::new(&format!("/com/{long}/{n}")).unwrap(),
            _ => NameBuf::new(&format!("/com/{}/x{n}", n % 9)).unwrap(),
        })
        .collect();
    let right = |name: &Name| {
        let prefixes = entries.iter().filter(|(entry, _)| entry.is_prefix_of(name));
        let longest = prefixes.max_by_key(|(entry, _)| entry.len());
        longest.map_or(Match::NONE, |(entry, next_hop)| Match::new(next_hop.0, entry.len()))
    };
    for (way, count) in [1, 33, 64, 500, 3000].into_iter().enumerate().cycle().take(15) {
        let part: NameBatch = names[3000 - count..].iter().map(|name| &**name as &Name).collect();
        let mut batch = batches.batch(count).expect("none is out");
        match way % 3 {
            0 => part.names().iter().for_each(|name| batch.push(name).unwrap()),
            1 => assert_eq!(batch.extend(part.names().iter()), count),
            _ => assert_eq!(batch.extend_from(part.names()), count),
        }
        let answers = batch.submit().wait();
        assert!(answers.keys().iter().eq(part.names().iter()), "{what}");
        assert!(
            answers.matches().iter().copied().eq(part.names().iter().map(right)),
            "{what}, {count} names"
        );
        let batch = answers.into_batch(1);
        assert!(batch.submit().wait().matches().is_empty(), "{what}");
    }
}

#[test]
fn matches_of_names_on_both_devices_and_after_a_loss() {
    let name = |text: &str| NameBuf::new(text).unwrap();
    let mut entries: Vec<_> = (0..5).map(|n| (name(&format!("/com/{n}")), NextHop(1 + n))).collect();
    entries.push((name("/com"), NextHop(100_000)));
    let builder = || NameTable::builder().names(entries.clone());
    check_matches(&builder().build().unwrap().reader().match_batches(), &entries, "on the CPU");
    // The larger batches go in parts.
    let sizes = [(40, 1 << 6), (4, 1 << 9)].map(|(slots, keys)| SlotSize { slots, keys });
    let options = GpuOptions { slots: sizes.to_vec(), ..NameDomain::gpu_options() };
    let Some((fleet, lost)) = on_host(options) else { return };
    let table = builder().device(Device::Gpu).fleet(fleet).build().unwrap();
    let batches = table.reader().match_batches();
    check_matches(&batches, &entries, "on a GPU");
    assert_eq!(table.lookups().unwrap().cpu, 0);
    let mut batch = batches.batch(1).unwrap();
    batch.push(&*entries[3].0).unwrap();
    lost.store(true, Ordering::Relaxed);
    let right = Match::new(entries[3].1.0, entries[3].0.len());
    assert_eq!(batch.submit().wait().matches(), [right]);
    check_matches(&batches, &entries, "after the GPU was lost");
    assert!(table.lookups().unwrap().cpu > 0);
}

/// Names of which a slot holds fewer than keys, and groups of more than 64 KiB.
#[test]
fn long_names_leave_their_slot() {
    let Some((fleet, _)) = on_host(NameDomain::gpu_options()) else { return };
    let long = "x".repeat(3000);
    let of = |n: usize| match n % 3 {
        0 => NameBuf::root(),
        1 => NameBuf::new(&format!("/com/{n}")).unwrap(),
        _ => NameBuf::new(&format!("/com/{long}/{n}")).unwrap(),
    };
    let entries = [(NameBuf::new("/com").unwrap(), NextHop(1)), (of(2), NextHop(2)), (of(500), NextHop(3))];
    let table = NameTable::builder().names(entries).device(Device::Gpu).fleet(fleet).build().unwrap();
    let batches = table.reader().batches();
    let right = |n: usize| match n {
        2 => NextHop(2),
        500 => NextHop(3),
        n => NextHop(u32::from(n % 3 > 0)),
    };
    for (count, first) in [(40, 0), (100, 1), (1000, 0)] {
        let names: Vec<_> = (first..first + count).map(of).collect();
        let right: Vec<_> = (first..first + count).map(right).collect();
        let all: NameBatch = names.iter().map(|name| &**name as &Name).collect();
        for way in 0..3 {
            let mut batch = batches.batch(count + 5).unwrap();
            match way {
                0 => names.iter().for_each(|name| batch.push(&**name).unwrap()),
                1 => assert_eq!(batch.extend(names.iter().map(|name| &**name)), count),
                _ => assert_eq!(batch.extend_from(all.names()), count),
            }
            assert!(batch.keys().iter().eq(all.names().iter()), "{count} names in way {way}");
            let answers = batch.submit().wait();
            check_answers(&answers, &right, "long names");
            assert!(answers.keys().iter().eq(all.names().iter()), "{count} names in way {way}");
        }
    }
}

#[test]
fn rules_on_both_devices_and_numbers_that_become_too_wide() {
    let rules = crate::classify::rules::<Ipv4Tuple>(3);
    let (oracle, tuples) = (Oracle::of(&rules), crate::classify::tuples(&rules));
    let right: Vec<_> = tuples.iter().map(|tuple| oracle.lookup(tuple)).collect();
    let check = |reader: &RuleReader<Ipv4Tuple>, what: &str| {
        let mut batch = reader.batches().batch(tuples.len()).unwrap();
        assert_eq!(batch.extend(tuples.iter()), tuples.len());
        let answers = batch.submit().wait();
        check_answers(&answers, &right, what);
        answers.is_from_gpu()
    };
    let builder = Classifier::builder().rule_set(rules.clone());
    assert!(!check(&builder.build().unwrap().reader(), "on the CPU"));
    let Some((fleet, _)) = on_host(Ipv4Tuple::gpu_options()) else { return };
    let builder = Classifier::builder().rule_set(rules.clone()).device(Device::Gpu);
    assert!(check(&builder.fleet(fleet.clone()).build().unwrap().reader(), "on a GPU"));

    // A number that bytes can't hold.
    let one: RuleSet<Ipv4Tuple> = ["dport=53 action=1".parse().unwrap()].into_iter().collect();
    let builder = Classifier::builder().rule_set(one).device(Device::Gpu).fleet(fleet);
    let mut classifier = builder.build().unwrap();
    let batches = classifier.reader().batches();
    let tuple: Ipv4Tuple = "dport=53".parse().unwrap();
    let mut sent = batches.batch(1).unwrap();
    assert_eq!(sent.extend_from(&[tuple]), 1);
    let sent = sent.submit();
    let number = RuleNumber::new(70_000).unwrap();
    classifier
        .apply(&[RuleUpdate::Set(number.get(), "dport=53 priority=9 action=2".parse().unwrap())])
        .unwrap();
    let sent = sent.wait();
    assert!(sent.is_from_gpu() && [1, 70_000].contains(&sent.get(0)));
    assert_eq!(sent.keys(), [tuple]);
    let mut filled = batches.batch(40).unwrap();
    assert_eq!(filled.extend_from(&[tuple; 20]), 20);
    filled.push(&tuple).unwrap();
    assert_eq!((filled.extend_from(&[tuple; 4]), filled.extend(std::iter::repeat_n(&tuple, 8))), (4, 8));
    assert_eq!(filled.keys(), [tuple; 33]);
    let mut batch = batches.batch(1).unwrap();
    batch.push(&tuple).unwrap();
    let answers = batch.submit().wait();
    assert!(answers.is_from_gpu());
    check_answers(&answers, &[70_000], "a wide number");
    drop(answers);

    // Numbers of bytes when the batch begins, of more when it is sent.
    classifier.apply(&[RuleUpdate::Remove(number.get())]).unwrap();
    let answers = filled.submit().wait();
    assert!(answers.is_from_gpu() && answers.keys() == [tuple; 33]);
    check_answers(&answers, &[1; 33], "sent later");
}

#[test]
fn without_a_gpu_auto_takes_the_cpu() {
    if has_gpu() {
        eprintln!("skipped: there is a GPU");
        return;
    }
    let rib = rib::<V4>(3);
    let table = Table::builder().rib(rib.clone()).device(Device::Auto).build().unwrap();
    check_table(&table.reader(), &rib, "without a GPU");
}
