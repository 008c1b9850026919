//! SAIL_M with several FIBs: each held against an oracle of its own, in every state of random histories in
//! which FIBs come and go and routes change.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wirespeed_fib::conformance::{Expected, scattered, tables};
use wirespeed_fib::oracle::boundaries;
use wirespeed_fib::synth;
use wirespeed_fib::{Address, BuildError, BuildOptions, Lookup, NextHop, Prefix, Rib, Update, V4, V6};
use wirespeed_image::{Image, PatchBuilder, Table, rounds};
use wirespeed_sail::{FibId, Fibs, FibsError, LiveFibs, SailM, SailMTable};

macro_rules! of_each_family {
    ($($test:ident),+) => {
        mod v4 {
            $(#[test] fn $test() { super::$test::<super::V4>(); })+
        }
        mod v6 {
            $(#[test] fn $test() { super::$test::<super::V6>(); })+
        }
    };
}

of_each_family!(
    random_fibs,
    random_histories,
    fibs_of_one_route_in_turn,
    hand_picked_fibs,
    images_go_round,
    hostile_elements,
    live_readers,
    memory_cap_is_kept,
    what_failed_did_not_happen
);

/// Ids with and without FIBs, in and out of the room for them.
fn ids<A: Address>(table: &SailMTable<A>) -> Vec<FibId> {
    let slots = u16::try_from(table.slots()).unwrap();
    (0..=slots + 1).chain([u16::MAX]).map(FibId).collect()
}

/// Holds a table against the oracles of all FIBs at the addresses: alone, in batches of one FIB and mixed, of
/// odd sizes, and step by step.
#[track_caller]
fn check<A: Address>(table: &SailMTable<A>, fibs: &Fibs<A>, addresses: &[A], what: &str) {
    let none = Expected::of(&Rib::new());
    let expected: Vec<_> = ids(table).into_iter().map(|id| (id, fibs.rib(id).map(Expected::of))).collect();
    let right = |id: usize, address| expected[id].1.as_ref().unwrap_or(&none).lookup(address);
    for (at, &(id, _)) in expected.iter().enumerate() {
        let mut found = vec![NextHop(u32::MAX); addresses.len()];
        table.lookup_batch_in(id, addresses, &mut found);
        for (&address, &found) in addresses.iter().zip(&found) {
            assert_eq!(found, right(at, address), "{what}: {address} in FIB {id}, batch");
            assert_eq!(table.lookup_in(id, address), found, "{what}: {address} in FIB {id}, alone");
        }
        for &address in addresses.iter().take(20) {
            let steps = table.explain_in(id, address);
            let (last, right) = (steps.last().unwrap(), right(at, address));
            let says = if right.is_some() { format!("next hop {right}") } else { "no route".into() };
            assert!(last.meaning.contains(&says), "{what}: {address} in FIB {id}: {steps:?}");
        }
    }
    let which = |key: usize| key * 7 % expected.len();
    let mixed: Vec<_> = (0..addresses.len()).map(|key| expected[which(key)].0).collect();
    for size in [1, 3, 63, 64, 65, 130, addresses.len().max(1)] {
        let mut found = vec![NextHop(u32::MAX); addresses.len()];
        for ((addresses, mixed), found) in
            addresses.chunks(size).zip(mixed.chunks(size)).zip(found.chunks_mut(size))
        {
            table.lookup_mixed(mixed, addresses, found);
        }
        for (key, &found) in found.iter().enumerate() {
            let (id, address) = (mixed[key], addresses[key]);
            assert_eq!(found, right(which(key), address), "{what}: {address} in FIB {id}, mixed by {size}");
        }
    }
    assert_eq!(table.image().entries(), fibs.iter().map(|(_, rib)| rib.len() as u64).sum::<u64>(), "{what}");
}

/// The boundaries of every prefix of every FIB, and some addresses more.
fn everywhere<A: Address>(fibs: &Fibs<A>) -> Vec<A> {
    let mut addresses = boundaries(fibs.iter().flat_map(|(_, rib)| rib.iter().map(|(prefix, _)| prefix)));
    addresses.extend(scattered::<A>(60));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn fibs<A: Address>(ribs: impl IntoIterator<Item = Rib<A>>) -> Fibs<A> {
    let mut fibs = Fibs::new();
    for rib in ribs {
        fibs.add(rib).unwrap();
    }
    fibs
}

fn built<A: Address>(fibs: &Fibs<A>) -> (SailM, SailMTable<A>) {
    SailM::overlay(fibs, &BuildOptions::default()).unwrap()
}

fn live<A: Address>(fibs: Fibs<A>) -> LiveFibs<A> {
    LiveFibs::new(fibs, BuildOptions::default()).unwrap()
}

fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let done = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = done {
        panic!("{failure}");
    }
}

fn random_fibs<A: Address>() {
    run(rounds::cases(24), &proptest::collection::vec(tables::random::<A>(0..80), 0..9), |ribs| {
        let fibs = fibs(ribs);
        check(&built(&fibs).1, &fibs, &everywhere(&fibs), "random FIBs");
    });
}

/// What happens to a set of FIBs.
#[derive(Clone, Debug)]
enum Event<A: Address> {
    Add(Rib<A>),
    /// The FIB at this place among those that are there, modulo their number.
    Remove(usize),
    /// Updates, each of the FIB at this place.
    Change(Vec<(usize, Update<A>)>),
}

fn event<A: Address>() -> impl Strategy<Value = Event<A>> {
    let updates = || (tables::random_updates::<A>(1..25), any::<usize>());
    prop_oneof![
        2 => tables::random::<A>(0..40).prop_map(Event::Add),
        2 => any::<usize>().prop_map(Event::Remove),
        // All of one FIB, or spread.
        2 => updates().prop_map(|(updates, at)| Event::Change(updates.into_iter().map(|u| (at, u)).collect())),
        4 => updates().prop_map(|(updates, at)| Event::Change((at % 997..).zip(updates).collect())),
    ]
}

/// Takes an engine and a table along by patches, rebuilt only where it has outgrown itself.
struct History<A: Address> {
    fibs: Fibs<A>,
    engine: SailM,
    table: SailMTable<A>,
    patched: usize,
}

impl<A: Address> History<A> {
    fn new(fibs: Fibs<A>) -> Self {
        let (engine, table) = built(&fibs);
        Self { fibs, engine, table, patched: 0 }
    }

    /// Makes an event happen; the prefixes that it changed.
    fn happen(&mut self, event: Event<A>) -> Vec<Prefix<A>> {
        let there: Vec<FibId> = self.fibs.iter().map(|(id, _)| id).collect();
        let pick = |at: usize| there.get(at % there.len().max(1)).copied();
        let mut changed = Vec::new();
        match event {
            Event::Add(rib) => {
                let routes: Vec<_> = rib.iter().map(|(prefix, _)| prefix).collect();
                let id = self.fibs.add(rib).unwrap();
                changed.extend(routes.into_iter().map(|prefix| (id, prefix)));
            }
            Event::Remove(at) => {
                if let Some(id) = pick(at) {
                    let removed = self.fibs.remove(id).unwrap();
                    changed.extend(removed.iter().map(|(prefix, _)| (id, prefix)));
                }
            }
            Event::Change(updates) => {
                for (at, update) in updates {
                    if let Some(id) = pick(at)
                        && self.fibs.apply(id, &update).unwrap()
                    {
                        changed.push((id, update.prefix()));
                    }
                }
            }
        }
        match self.engine.patch(&self.fibs, &changed) {
            Ok(patch) => {
                self.table.apply(&patch).expect("an engine's patch fits its table");
                self.patched += 1;
            }
            Err(_) => (self.engine, self.table) = built(&self.fibs),
        }
        changed.into_iter().map(|(_, prefix)| prefix).collect()
    }
}

fn random_histories<A: Address>() {
    let ribs = proptest::collection::vec(tables::random::<A>(0..60), 0..7);
    let patched = std::cell::Cell::new(0);
    // One history may be so short that it has hardly a patch.
    let cases = rounds::cases(32).max(4);
    run(cases, &(ribs, proptest::collection::vec(event::<A>(), 1..25)), |(ribs, events)| {
        let mut history = History::new(fibs(ribs));
        for event in events {
            let changed = history.happen(event);
            check(&history.table, &history.fibs, &boundaries(changed), "a random history");
        }
        check(&history.table, &history.fibs, &everywhere(&history.fibs), "after a random history");
        let (_, fresh) = built(&history.fibs);
        check(&fresh, &history.fibs, &everywhere(&history.fibs), "built after a random history");
        // Withdraw everything, FIB by FIB and route by route, in turns.
        let all = everywhere(&history.fibs);
        for (at, (id, rib)) in history.fibs.clone().iter().enumerate() {
            let place = history.fibs.iter().position(|(other, _)| other == id).unwrap();
            if at % 2 == 0 {
                history.happen(Event::Remove(place));
            } else {
                let gone = rib.iter().map(|(prefix, _)| (place, Update::Withdraw { prefix })).collect();
                history.happen(Event::Change(gone));
                assert!(history.fibs.rib(id).unwrap().is_empty());
            }
        }
        check(&history.table, &history.fibs, &all, "with everything withdrawn");
        assert!(all.iter().all(|&address| !history.table.lookup_in(FibId(0), address).is_some()));
        patched.set(patched.get() + history.patched);
    });
    let least = if rounds::is_plain() { 3 } else { 100 };
    assert!(patched.get() > least, "histories go by patches: {}", patched.get());
}

/// Two FIBs share a long path: it has to stay until the second lets go of it, and come back with either.
fn fibs_of_one_route_in_turn<A: Address>() {
    let host = Prefix::host(A::MAX.with_octet(1, 77));
    let cover = Prefix::around(host.address(), 9);
    let announce = |prefix, n| Update::Announce { prefix, next_hop: Some(NextHop(n)) };
    let mut history = History::new(fibs(vec![Rib::<A>::new(); 3]));
    let addresses = boundaries([host, cover]);
    let steps = [
        (0, announce(cover, 1)),
        (1, announce(host, 2)),
        (2, announce(cover, 3)),
        (0, announce(host, 4)),
        (1, Update::Withdraw { prefix: host }),
        (2, announce(cover, 5)),
        (0, Update::Withdraw { prefix: host }),
        (1, announce(cover, 6)),
        (2, announce(host, 7)),
        (2, Update::Withdraw { prefix: cover }),
        (0, Update::Withdraw { prefix: cover }),
        (2, Update::Withdraw { prefix: host }),
    ];
    for (at, step) in steps.into_iter().enumerate() {
        history.happen(Event::Change(vec![step]));
        check(&history.table, &history.fibs, &addresses, &format!("step {at}"));
    }
    assert_eq!(history.patched, steps.len());
}

fn hand_picked_fibs<A: Address>() {
    let ribs: Vec<_> = tables::hand_picked::<A>().into_iter().map(|(_, rib)| rib).collect();
    let mut history = History::new(fibs(ribs.iter().take(3).cloned()));
    for rib in ribs.into_iter().skip(3) {
        let changed = history.happen(Event::Add(rib));
        check(&history.table, &history.fibs, &boundaries(changed.into_iter().take(400)), "a FIB added");
    }
    check(&history.table, &history.fibs, &everywhere(&history.fibs), "all of them");
    // From the front, which leaves free slots before the others.
    while !history.fibs.is_empty() {
        let changed = history.happen(Event::Remove(0));
        check(&history.table, &history.fibs, &boundaries(changed.into_iter().take(400)), "a FIB removed");
    }
}

fn images_go_round<A: Address>() {
    run(8, &proptest::collection::vec(tables::random::<A>(0..60), 0..6), |ribs| {
        let fibs = fibs(ribs);
        let mut image = Vec::new();
        built(&fibs).1.image().write(&mut image).unwrap();
        let table = Image::from_bytes(&image).and_then(SailMTable::from_image).unwrap();
        check(&table, &fibs, &everywhere(&fibs), "an image read again");
    });
}

/// Elements that no engine wrote: an image either refuses them, as a patch does, or still answers every
/// lookup.
fn hostile_elements<A: Address>() {
    let mut ribs: Vec<_> = tables::hand_picked::<A>().into_iter().map(|(_, rib)| rib).collect();
    ribs.retain(|rib| rib.len() < 100);
    let fibs = fibs(ribs);
    let (_, table) = built(&fibs);
    let (image, addresses) = (table.image(), everywhere(&fibs));
    let mixed: Vec<_> = (0..addresses.len()).map(|key| ids(&table)[key % ids(&table).len()]).collect();
    let mut refused = 0;
    for usage in image.memory_usage() {
        let id = image.find(&usage.name).unwrap();
        let top = u64::MAX >> (64 - 8 * usage.width);
        for index in [0, usage.len / 3, usage.len - 1] {
            for value in (0..8).chain([table.slots() as u64, top / 3, top >> 1, top]) {
                let mut patch = PatchBuilder::new();
                patch.set(id, index, value);
                let patch = patch.finish(None);
                let mut raw = image.clone();
                raw.apply(&patch).unwrap();
                let taken = SailMTable::<A>::from_image(raw);
                let patched = table.clone().apply(&patch);
                // An image of another number of FIBs may be one; a patch that says so is none.
                assert_eq!(
                    taken.is_ok() && (usage.name != "fibs" || value == table.slots() as u64),
                    patched.is_ok(),
                    "{}[{index}] = {value}",
                    usage.name
                );
                let Ok(taken) = taken else {
                    refused += 1;
                    continue;
                };
                let mut found = vec![NextHop::NONE; addresses.len()];
                taken.lookup_mixed(&mixed, &addresses, &mut found);
                for ((&id, &address), &found) in mixed.iter().zip(&addresses).zip(&found) {
                    assert_eq!(taken.lookup_in(id, address), found, "{}[{index}] = {value}", usage.name);
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
    // Sections of other lengths than their neighbours say.
    for (broken, usage) in image.memory_usage().iter().enumerate() {
        for (len, width) in [(usage.len - 1, usage.width), (0, usage.width), (usage.len, 8)] {
            let mut builder =
                wirespeed_image::ImageBuilder::new(SailMTable::<A>::KIND, SailMTable::<A>::LAYOUT);
            for (at, usage) in image.memory_usage().into_iter().enumerate() {
                let (len, width) = if at == broken { (len, width) } else { (usage.len, usage.width) };
                builder = builder.section_of_width(&usage.name, width as usize, len);
            }
            let image = builder.build(None).unwrap();
            assert!(SailMTable::<A>::from_image(image).is_err(), "{} of {len} × {width} B", usage.name);
        }
    }
}

/// Readers see changes of several FIBs whole or not at all, also where a FIB comes or goes and across
/// rebuilds.
fn live_readers<A: Address>() {
    let routes: Vec<Prefix<A>> = [3, 8, 13, 16, 17, 20, 24, 25, 30, A::BITS]
        .into_iter()
        .zip(1u8..)
        .map(|(len, at)| Prefix::around(A::MAX.with_octet(0, 16 * at), len))
        .collect();
    let rib = |next_hop| -> Rib<A> { routes.iter().map(|&prefix| (prefix, NextHop(next_hop))).collect() };
    let mut live = live(fibs((0..3).map(|_| rib(1))));
    let probes: Vec<A> = routes.iter().flat_map(|p| [p.address(), p.last()]).collect();
    // FIBs 0 to 2 are always alike; what comes and goes after them is there whole or not at all.
    let of = |first: u16| -> Vec<FibId> {
        (0..probes.len()).map(|key| FibId(first + u16::try_from(key % 3).unwrap())).collect()
    };
    let (always, fourth) = (of(0), vec![FibId(3); probes.len()]);
    let stop = AtomicBool::new(false);
    let seen = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let reader = live.reader();
            let (probes, always, fourth, stop, seen) = (&probes, &always, &fourth, &stop, &seen);
            scope.spawn(move || {
                let mut found = vec![NextHop::NONE; probes.len()];
                while !stop.load(Ordering::Relaxed) {
                    let table = reader.enter();
                    table.lookup_mixed(always, probes, &mut found);
                    let state = found[0];
                    assert!(state.is_some() && found.iter().all(|&n| n == state), "mixed: {found:?}");
                    table.lookup_mixed(fourth, probes, &mut found);
                    let state = found[0];
                    assert!(found.iter().all(|&n| n == state), "a part of a FIB: {found:?}");
                    seen.fetch_or(if state.is_some() { 1 } else { 2 }, Ordering::Relaxed);
                }
            });
        }
        let mut rebuilt = 0;
        for round in 2..rounds::cases(300).max(40) {
            let next_hop = Some(NextHop(if round % 100 == 0 { round << 14 } else { round }));
            let updates: Vec<_> = (0..3)
                .flat_map(|fib| {
                    routes.iter().map(move |&prefix| (FibId(fib), Update::Announce { prefix, next_hop }))
                })
                .collect();
            let applied = live.apply(&updates).unwrap();
            assert_eq!(applied.changes, 3 * routes.len());
            rebuilt += u64::from(applied.rebuilt);
            if round % 4 == 0 {
                assert_eq!(live.add(rib(round)).unwrap(), FibId(3));
            } else if round % 4 == 2 && round > 4 {
                assert_eq!(live.remove(FibId(3)).unwrap().len(), routes.len());
            }
        }
        assert!(live.rebuilds() >= rebuilt);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen.load(Ordering::Relaxed), 3, "the fourth FIB was seen there, and gone");
    // The fourth fits beside three; a fifth does not, and the table is built anew.
    while live.fibs().len() < 4 {
        live.add(rib(9)).unwrap();
    }
    let before = live.rebuilds();
    assert_eq!(live.add(rib(10)).unwrap(), FibId(4));
    assert_eq!(live.rebuilds(), before + 1);
    check(&live.reader().enter(), live.fibs(), &probes, "five FIBs");
    for id in [2, 0, 4, 1, 3].map(FibId) {
        live.remove(id).unwrap();
        check(&live.reader().enter(), live.fibs(), &probes, "FIBs removed");
    }
    assert!(matches!(live.remove(FibId(0)), Err(FibsError::NoFib(FibId(0)))));
    let update = (FibId(9), Update::Withdraw { prefix: routes[0] });
    assert!(matches!(live.apply(&[update]), Err(FibsError::NoFib(FibId(9)))));
    assert!(live.memory_usage() > live.reader().enter().image().bytes());
}

fn memory_cap_is_kept<A: Address>() {
    let fibs = fibs(tables::hand_picked::<A>().into_iter().map(|(_, rib)| rib).take(6));
    let needed = built(&fibs).1.image().bytes();
    let cap = |bytes| BuildOptions { memory_cap: Some(bytes), ..BuildOptions::default() };
    assert!(SailM::overlay(&fibs, &cap(needed)).is_ok());
    for short in [1000, needed - 1] {
        let error = SailM::overlay(&fibs, &cap(short)).unwrap_err();
        assert!(matches!(error, BuildError::Image(wirespeed_image::ImageError::OverCap { .. })), "{error}");
        let told = error.to_string();
        assert!(told.contains(&needed.to_string()) && told.contains(&short.to_string()), "{told}");
    }
}

/// Past the cap readers go on with what they had; with less to hold the table is brought up to date again.
/// FIBs come until the cap, each with routes of its own; what failed left nothing behind, and the rest goes
/// on.
fn what_failed_did_not_happen<A: Address>() {
    let mut rng = synth::rng::Rng::new(8);
    let mut routes = |count: usize| -> Rib<A> {
        let route = |_| (Prefix::host(A::from_u128_low(rng.bits128())), NextHop(1 + (rng.bits() % 9) as u32));
        (0..count).map(route).collect()
    };
    let start = fibs([routes(40), routes(40)]);
    let cap = built(&fibs([routes(40), routes(40), routes(40), routes(40)])).1.image().bytes();
    let options = BuildOptions { memory_cap: Some(cap), ..BuildOptions::default() };
    let mut live = LiveFibs::new(start, options).unwrap();
    let reader = live.reader();
    let agree = |live: &LiveFibs<A>, model: &Fibs<A>| {
        assert!(live.fibs().iter().map(|(id, _)| id).eq(model.iter().map(|(id, _)| id)));
        assert_eq!(live.fibs().slots(), model.slots());
        assert!(model.iter().all(|(id, rib)| live.fibs().rib(id).unwrap().iter().eq(rib.iter())));
        let hosts = model.iter().flat_map(|(_, rib)| rib.iter().map(|(prefix, _)| prefix));
        check(&reader.enter(), model, &boundaries(hosts.take(60)), "at the cap");
    };
    let mut model = live.fibs().clone();
    let refused = (0..40).find_map(|_| {
        let rib = routes(40);
        match live.add(rib.clone()) {
            Ok(id) => assert_eq!(model.add(rib).unwrap(), id),
            Err(error) => {
                assert!(matches!(error, FibsError::Build(_)), "{error}");
                return Some(rib);
            }
        }
        None
    });
    let refused = refused.expect("the cap is reached");
    agree(&live, &model);
    assert!(live.apply(&[]).unwrap().changes == 0 && live.add(refused.clone()).is_err());
    agree(&live, &model);
    // Of a FIB that isn't there, after updates of one that is.
    let gone = model.rib(FibId(0)).unwrap().iter().next().unwrap().0;
    let withdraw = |id| (FibId(id), Update::Withdraw { prefix: gone });
    assert!(matches!(live.apply(&[withdraw(0), withdraw(99)]), Err(FibsError::NoFib(FibId(99)))));
    assert!(matches!(live.remove(FibId(99)), Err(FibsError::NoFib(FibId(99)))));
    agree(&live, &model);
    let too_many: Vec<_> = routes(400).iter().map(|(p, n)| (FibId(0), Update::announce(p, n))).collect();
    for _ in 0..2 {
        assert!(matches!(live.apply(&too_many), Err(FibsError::Build(_))));
        agree(&live, &model);
    }
    // A route goes, a FIB goes, and then there is room for the one that was refused, under the lowest id.
    assert_eq!(live.apply(&[withdraw(0)]).unwrap().changes, 1);
    model.apply(FibId(0), &withdraw(0).1).unwrap();
    agree(&live, &model);
    assert!(live.remove(FibId(1)).unwrap().iter().eq(model.remove(FibId(1)).unwrap().iter()));
    agree(&live, &model);
    assert_eq!(live.add(refused.clone()).unwrap(), model.add(refused).unwrap());
    agree(&live, &model);
}

#[test]
fn one_fib_is_looked_up_as_by_any_engine() {
    let fibs = fibs([[("10.0.0.0/8".parse().unwrap(), NextHop(1))].into_iter().collect::<Rib<V4>>()]);
    let (_, table) = built(&fibs);
    let address = "10.1.2.3".parse().unwrap();
    assert_eq!(table.lookup(address), table.lookup_in(FibId(0), address));
    assert_eq!((table.lookup(address), table.slots(), table.entry_width()), (NextHop(1), 1, 1));
}

#[test]
#[should_panic(expected = "a FIB for each key")]
fn a_fib_for_each_key() {
    let (_, table) = built(&Fibs::<V4>::new());
    table.lookup_mixed(&[FibId(0)], &[V4(1), V4(2)], &mut [NextHop::NONE; 2]);
}

#[test]
fn what_fibs_have_in_common_is_kept_once() {
    let rib = |prefixes, seed| -> Rib<V4> {
        synth::table(&synth::TableSpec { prefixes, next_hops: 30, seed }).unwrap()
    };
    let bytes = |fibs: &Fibs<V4>| built(fibs).1.image().bytes();
    let full = rib(50_000, 4);
    let one = bytes(&fibs([full.clone()]));
    let alike = bytes(&fibs(vec![full.clone(); 12]));
    // Ids may take two bytes in place of one.
    assert!(alike < 2 * one, "{alike} bytes, {one} for one of them");
    // A next hop of each FIB beside each element would be 224 bytes.
    let routes: Vec<_> = rib(4_000, 5).iter().collect();
    let small = routes.chunks(20).map(|routes| routes.iter().copied().collect());
    let (_, table) = built(&fibs(std::iter::once(full).chain(small)));
    let elements: u64 = table.image().memory_usage().iter().take(3).map(|usage| usage.len).sum();
    assert_eq!(table.slots(), 224);
    assert!(table.image().bytes() < 10 * elements, "{} bytes, {elements} elements", table.image().bytes());
}
