//! Many tables in one forest: every lookup against a `Rib` for each table, under random changes, refused
//! changes and readers.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one
#![allow(clippy::cast_possible_truncation)] // numbers that are drawn are small

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use wirespeed_fib::{Address, BuildOptions, Lookup, NextHop, Prefix, Rib, Update, V4, V6};
use wirespeed_forest::{FibId, FibKeys, Fibs, FibsError, FibsUpdate, ForestTable, InFibs, LiveFibs};
use wirespeed_image::device::{DevicePtr, OnDevice, Sections};
use wirespeed_image::{Image, Stop, Table, rounds};

/// The routes of each table.
type Model<A> = BTreeMap<FibId, Rib<A>>;

/// A change of a model, by numbers that a test draws.
fn change<A: Address>(model: &mut Model<A>, (what, fib, bits, len, n): Drawn) -> FibsUpdate<A> {
    let id = FibId(fib * 37);
    // Few addresses, so that prefixes meet.
    let prefix = |bits: u128, len: u8| {
        let address = A::from_u128_low((bits & 0xc3) << (A::BITS - 8) | bits & 0xf0);
        Prefix::around(address, len % (A::BITS + 1))
    };
    let there = model.contains_key(&id);
    match what {
        0..5 if there => {
            let update = Update::Announce { prefix: prefix(bits, len), next_hop: Some(NextHop(n)) };
            model.get_mut(&id).unwrap().apply(&update);
            FibsUpdate::Route(id, update)
        }
        5..8 if there => {
            let update = Update::Withdraw { prefix: prefix(bits, len) };
            model.get_mut(&id).unwrap().apply(&update);
            FibsUpdate::Route(id, update)
        }
        8 if there => {
            model.remove(&id);
            FibsUpdate::Remove(id)
        }
        _ => {
            let routes =
                (0..u128::from(len) / 8).map(|at| (prefix(bits.rotate_left(at as u32 * 8), len), NextHop(n)));
            let rib: Rib<A> = routes.collect();
            model.insert(id, rib.clone());
            FibsUpdate::Set(id, rib.into())
        }
    }
}

type Drawn = (u8, u32, u128, u8, u32);

fn drawn() -> impl Strategy<Value = Drawn> {
    (0..10u8, 0..5u32, any::<u128>(), any::<u8>(), prop_oneof![0..6u32, 65_530..65_540u32])
}

/// Probes of every table, and of numbers that no table has.
fn probes<A: Address>(model: &Model<A>) -> (Vec<FibId>, Vec<A>) {
    let mut addresses: Vec<A> = (0..=u8::MAX).map(|octet| A::MIN.with_octet(0, octet)).collect();
    addresses.extend(model.values().flatten().flat_map(|(prefix, _)| [prefix.address(), prefix.last()]));
    let ids = [0, 1, 36, 37, 74, 111, 148, 149, 5_000, u32::MAX].map(FibId);
    let of = |at: usize| ids[at % ids.len()];
    // Every address meets several tables, in turns.
    let keys: Vec<_> =
        (0..addresses.len() * 4).map(|at| (of(at / 3 + at), addresses[at % addresses.len()])).collect();
    keys.into_iter().unzip()
}

fn check<A: Address>(table: &ForestTable<A>, model: &Model<A>) {
    let (ids, addresses) = probes(model);
    let right = |id: FibId, address: A| {
        let found = model.get(&id).and_then(|rib| rib.longest_match(address));
        found.map_or(NextHop::NONE, |(_, next_hop)| next_hop)
    };
    let mut found = vec![NextHop(u32::MAX); ids.len()];
    Lookup::<InFibs<A>>::lookup_batch(table, FibKeys::new(&ids, &addresses), &mut found);
    for (at, &found) in found.iter().enumerate() {
        let (id, address) = (ids[at], addresses[at]);
        assert_eq!(found, right(id, address), "{address} in {id}");
        assert_eq!(table.lookup_in(id, address), found, "{address} in {id}, alone");
    }
    for &id in model.keys() {
        let mut in_one = vec![NextHop(u32::MAX); addresses.len()];
        table.lookup_batch_in(id, &addresses, &mut in_one);
        let all_right = addresses.iter().zip(in_one).all(|(&address, found)| found == right(id, address));
        assert!(all_right, "a batch in {id}");
    }
}

fn check_routes<A: Address>(fibs: &Fibs<A>, model: &Model<A>) {
    assert!(fibs.ids().eq(model.keys().copied()));
    for (&id, rib) in model {
        let mut routes = Vec::new();
        assert!(fibs.visit(id, |prefix, next_hop| routes.push((prefix, next_hop))));
        assert!(routes.iter().copied().eq(rib.iter()), "the routes of {id}");
        assert_eq!(fibs.routes_of(id), Some(rib.len()));
        assert!(rib.iter().all(|(prefix, next_hop)| fibs.get(id, prefix) == Some(next_hop)));
    }
}

/// The routes as they come from a file.
fn reread<A: Address>(fibs: &Fibs<A>) -> Fibs<A> {
    Fibs::from_bytes(&fibs.to_bytes(), |_, len| len <= A::BITS).unwrap()
}

fn as_from_a_file<A: Address>(table: &ForestTable<A>) -> ForestTable<A> {
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).unwrap();
    ForestTable::from_image(Image::from_bytes(&bytes).unwrap()).unwrap()
}

fn random_changes<A: Address>(calls: &[Vec<Drawn>]) {
    let (mut model, mut live) =
        (Model::<A>::new(), LiveFibs::<A>::new(Fibs::new(), BuildOptions::default()).unwrap());
    let reader = live.reader();
    for (turn, drawn) in calls.iter().enumerate() {
        let before = model.clone();
        let updates: Vec<_> = drawn.iter().map(|&drawn| change(&mut model, drawn)).collect();
        if turn % 3 == 2 {
            // Nobody agrees: the call did not happen.
            assert!(live.apply_if(&updates, || false).unwrap().is_none());
            model = before;
        } else {
            live.apply(&updates).unwrap();
        }
        check(&reader.enter(), &model);
        check_routes(live.model(), &model);
        check_routes(&reread(live.model()), &model);
    }
    // Routes and tables from files take changes.
    let table = as_from_a_file(&reader.enter());
    let mut opened = LiveFibs::<A>::resume(reread(live.model()), table, BuildOptions::default());
    let (mut changed, of_opened) = (model.clone(), opened.reader());
    for drawn in calls {
        let updates: Vec<_> = drawn.iter().map(|&drawn| change(&mut changed, drawn)).collect();
        opened.apply(&updates).unwrap();
        check(&of_opened.enter(), &changed);
        check_routes(opened.model(), &changed);
    }
    check(&as_from_a_file(&reader.enter()), &model);
    let ends: Vec<_> = model.keys().map(|&id| FibsUpdate::Remove(id)).collect();
    live.apply(&ends).unwrap();
    check(&reader.enter(), &Model::new());
}

fn calls() -> impl Strategy<Value = Vec<Vec<Drawn>>> {
    prop::collection::vec(prop::collection::vec(drawn(), 0..12), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds::cases(64)))]

    #[test]
    fn random_changes_v4(calls in calls()) {
        random_changes::<V4>(&calls);
    }

    #[test]
    fn random_changes_v6(calls in calls()) {
        random_changes::<V6>(&calls);
    }
}

/// Damaged bytes are refused, or describe other routes that can be read, written and compiled.
fn damaged_bytes<A: Address>() {
    let mut fibs = Fibs::<A>::new();
    let whole = |len| [A::MIN, A::MAX, A::MAX.keep(len / 2)].map(|address| Prefix::around(address, len));
    for id in [0, 3, 4] {
        let rib: Rib<A> = (0..=A::BITS).flat_map(whole).zip((1 + id * 300..).map(NextHop)).collect();
        fibs.set(FibId(id), &rib).unwrap();
    }
    let good = fibs.to_bytes();
    let (mut refused, mut taken) = (0, 0);
    let mut read = |bytes: &[u8]| match Fibs::<A>::from_bytes(bytes, |_, len| len <= A::BITS) {
        None => refused += 1,
        Some(read) => {
            taken += 1;
            let mut model = Model::new();
            for id in read.ids() {
                let rib: &mut Rib<A> = model.entry(id).or_default();
                read.visit(id, |prefix, next_hop| assert!(rib.insert(prefix, next_hop).is_none()));
            }
            check_routes(&read, &model);
            check_routes(&reread(&read), &model);
            check(&LiveFibs::new(read, BuildOptions::default()).unwrap().reader().enter(), &model);
        }
    };
    let tried = rounds::cases(120).max(24) as usize;
    for at in (0..good.len()).step_by(good.len() / tried) {
        read(&good[..at]);
        for change in [1, 2, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= change;
            read(&bad);
        }
    }
    read(&[&good[..], &[0]].concat());
    assert!(refused > taken && taken > 0, "{refused} refused, {taken} taken");
    let mut routes = 0;
    Fibs::<A>::from_bytes(&good, |next_hop, len| {
        routes += 1;
        len <= A::BITS && next_hop.is_some()
    });
    assert!(routes > 3 * usize::from(A::BITS), "{routes}");
    assert!(Fibs::<A>::from_bytes(&good, |_, len| len < A::BITS).is_none());
    assert!(Fibs::<A>::from_bytes(&good, |_, len| len > 0).is_none());
}

#[test]
fn damaged_bytes_are_refused_or_other_routes() {
    damaged_bytes::<V4>();
    damaged_bytes::<V6>();
}

/// Bytes with a node of its own for each line: as other programs might write them.
#[test]
fn bytes_that_no_forest_has_are_refused() {
    let leaf = [1, 0, 0, 0b1_0000, 7];
    let bytes = |nodes: &[&[u8]], tables: &[[u32; 3]]| {
        let mut bytes = vec![4];
        bytes.extend((nodes.len() as u32).to_le_bytes());
        nodes.iter().for_each(|node| bytes.extend(*node));
        bytes.extend((tables.len() as u32).to_le_bytes());
        bytes.extend(tables.iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes
    };
    let read = |nodes: &[&[u8]], tables: &[[u32; 3]]| {
        Fibs::<V4>::from_bytes(&bytes(nodes, tables), |_, len| len <= 32)
    };
    let parent = [0, 1, 0, 3, 1];
    assert_eq!(read(&[&leaf, &parent], &[[1, 8, 2], [9, 0, 1]]).unwrap().routes_of(FibId(1)), Some(2));
    let refused: [(_, &[&[u8]], &[_]); 11] = [
        ("a node that no table has", &[&leaf, &parent], &[[1, 0, 1]]),
        ("a node that is there twice", &[&leaf, &leaf], &[[1, 0, 1], [2, 0, 2]]),
        ("a child that comes later", &[&[0, 1, 0, 3, 2], &leaf], &[[1, 0, 1], [2, 0, 2]]),
        ("a node beneath itself", &[&[0, 1, 0, 3, 1]], &[[1, 0, 1]]),
        ("an empty node", &[&[0, 0, 0]], &[[1, 0, 1]]),
        ("a wide next hop", &[&[1, 0, 1, 0b1_0000, 7, 0]], &[[1, 0, 1]]),
        ("a route of no bits", &[&[1, 0, 0, 1, 7]], &[[1, 0, 1]]),
        ("routes out of order", &[&[2, 0, 0, 0b1_0001, 0b1_0000, 7, 7]], &[[1, 0, 1]]),
        ("a root that is not there", &[&leaf], &[[1, 0, 1], [2, 0, 2]]),
        ("tables out of order", &[&leaf], &[[2, 0, 1], [1, 0, 1]]),
        ("a table number that is too large", &[&leaf], &[[1 << 20, 0, 1]]),
    ];
    for (what, nodes, tables) in refused {
        assert!(read(nodes, tables).is_none(), "{what}");
    }
    // Eight strides are all that an address has.
    let chain = |len: u8| {
        let parents: Vec<_> = (1..len).map(|child| [0, 1, 0, 3, child]).collect();
        let nodes: Vec<&[u8]> = std::iter::once(&leaf[..]).chain(parents.iter().map(|p| &p[..])).collect();
        read(&nodes, &[[0, 0, len.into()]])
    };
    assert!(chain(8).is_some() && chain(9).is_none());
}

fn routes(n: u32, count: u32) -> Rib<V4> {
    let prefix = |at: u32| Prefix::around(V4(at.wrapping_mul(2_654_435_761) ^ n), 24);
    (0..count).map(|at| (prefix(at), NextHop(n % 200 + 1))).collect()
}

#[test]
fn a_call_over_the_cap_changes_nothing() {
    let options = BuildOptions { memory_cap: Some(64 << 10), ..BuildOptions::default() };
    let mut live = LiveFibs::<V4>::new(Fibs::new(), options).unwrap();
    live.apply(&[FibsUpdate::Set(FibId(1), routes(1, 3).into())]).unwrap();
    let (reader, model) = (live.reader(), Model::from([(FibId(1), routes(1, 3))]));
    let all: Vec<_> = (0..900).map(|n| FibsUpdate::Set(FibId(n), routes(n * 7_919, 40).into())).collect();
    for _ in 0..2 {
        assert!(matches!(live.apply(&all), Err(FibsError::Build(_))));
        check(&reader.enter(), &model);
        check_routes(live.model(), &model);
    }
    live.apply(&[FibsUpdate::Set(FibId(2), routes(5, 2).into()), FibsUpdate::Remove(FibId(1))]).unwrap();
    check(&reader.enter(), &Model::from([(FibId(2), routes(5, 2))]));
}

#[test]
fn changes_of_tables_that_are_not_there_are_refused() {
    let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default()).unwrap();
    let route = |id| FibsUpdate::Route(FibId(id), Update::announce(Prefix::DEFAULT, NextHop(1)));
    let set = |id| FibsUpdate::Set(FibId(id), Rib::new().into());
    let refused =
        |live: &mut LiveFibs<V4>, updates: &[FibsUpdate<V4>]| live.apply(updates).unwrap_err().to_string();
    assert_eq!(refused(&mut live, &[route(3)]), "there is no table 3");
    assert_eq!(refused(&mut live, &[set(3), FibsUpdate::Remove(FibId(3)), route(3)]), "there is no table 3");
    assert_eq!(refused(&mut live, &[FibsUpdate::Remove(FibId(0))]), "there is no table 0");
    assert_eq!(refused(&mut live, &[set(1 << 20)]), "a table has number 1048576, the largest is 1048575");
    live.apply(&[set(3), route(3)]).unwrap();
    assert_eq!(live.reader().enter().lookup_in(FibId(3), V4(7)), NextHop(1));
    assert_eq!(live.reader().enter().lookup_in(FibId(2), V4(7)), NextHop::NONE);
}

/// Tables that are alike share their chunks.
#[test]
fn equal_tables_cost_next_to_nothing() {
    let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default()).unwrap();
    live.apply(&[FibsUpdate::Set(FibId(0), routes(1, 4_000).into())]).unwrap();
    let one = live.memory_usage();
    let others: Vec<_> = (1..100).map(|id| FibsUpdate::Set(FibId(id), routes(1, 4_000).into())).collect();
    live.apply(&others).unwrap();
    assert!(live.memory_usage() < one + one / 8, "{one} bytes, then {}", live.memory_usage());
    // One route of its own costs one path.
    live.apply(&[FibsUpdate::Route(FibId(50), Update::announce(Prefix::host(V4(5)), NextHop(9)))]).unwrap();
    let reader = live.reader();
    assert_eq!(reader.enter().lookup_in(FibId(50), V4(5)), NextHop(9));
    assert_eq!(reader.enter().lookup_in(FibId(51), V4(5)), NextHop(2));
    assert!(live.memory_usage() < one + one / 8);
}

/// A call that sets two tables is seen whole or not at all.
#[test]
fn readers_see_whole_calls() {
    let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default()).unwrap();
    let both = |n: u32| [0, 9].map(|id| FibsUpdate::Set(FibId(id), routes(n % 150, 1 + n % 40).into()));
    live.apply(&both(0)).unwrap();
    let (reader, stop) = (live.reader(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // A failed assertion must not leave the readers running.
        let _stop = Stop(&stop);
        for _ in 0..2 {
            scope.spawn(|| {
                let addresses = [V4(0), V4(0), V4(200), V4(200)];
                let (ids, mut found) = ([0, 9, 0, 9].map(FibId), [NextHop::NONE; 4]);
                while !stop.load(Ordering::Relaxed) {
                    let table = reader.enter();
                    Lookup::<InFibs<V4>>::lookup_batch(&*table, FibKeys::new(&ids, &addresses), &mut found);
                    assert_eq!((found[0], found[2]), (found[1], found[3]), "a torn state");
                }
            });
        }
        for n in 1..rounds::cases(1_500) {
            live.apply(&both(n)).unwrap();
        }
    });
}

/// Single routes change in calls, some of which nobody agrees to, while readers look up and copy the table.
/// In each state the routes of a pair of tables are equal, so a chunk that is written under a reader shows.
#[test]
fn chunks_are_not_written_while_they_are_read() {
    let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default()).unwrap();
    live.apply(&[0, 9].map(|id| FibsUpdate::Set(FibId(id), routes(3, 4_000).into()))).unwrap();
    let addresses: Vec<V4> = routes(3, 4_000).iter().map(|(prefix, _)| prefix.last()).collect();
    let (reader, stop) = (live.reader(), AtomicBool::new(false));
    let are_equal = |table: &ForestTable<V4>, addresses: &[V4]| {
        let mut found = [(); 2].map(|()| vec![NextHop::NONE; addresses.len()]);
        table.lookup_batch_in(FibId(0), addresses, &mut found[0]);
        table.lookup_batch_in(FibId(9), addresses, &mut found[1]);
        found[0] == found[1]
            && addresses.iter().zip(&found[0]).all(|(&a, &n)| table.lookup_in(FibId(9), a) == n)
    };
    let (calls, mut rebuilds) = (rounds::cases(4_000), 0);
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for part in addresses.chunks(500) {
                    assert!(are_equal(&reader.enter(), part), "a torn state");
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // The copy holds chunks of the next state, which no lookup in it reaches.
                let table = as_from_a_file(&reader.enter());
                assert!(are_equal(&table, &addresses), "a torn copy");
            }
        });
        for n in 0..calls {
            // Next hops grow, so that those of a later state are over the results of the one before.
            let announce = |at: u32| {
                let address = addresses[(n * 31 + at * 7) as usize % addresses.len()];
                Update::announce(Prefix::around(address, 20 + at as u8), NextHop(1 + n / 10 + at))
            };
            let pairs = (0..5).flat_map(|at| [0, 9].map(|id| FibsUpdate::Route(FibId(id), announce(at))));
            let pairs: Vec<_> = pairs.collect();
            if n % 3 == 0 {
                assert!(live.apply_if(&pairs, || false).unwrap().is_none());
            }
            rebuilds += u32::from(live.apply(&pairs).unwrap().rebuilt);
        }
    });
    // The tables grow with each call, and an eighth is head room.
    assert!(rebuilds < calls / 10, "{rebuilds} of {calls} calls");
    assert!(are_equal(&reader.enter(), &addresses));
}

/// More chunks than 15 bits can number leave a cell of 4 bytes room for few next hops.
#[test]
fn many_chunks_of_few_next_hops_have_narrow_cells() {
    if rounds::leaves_to_ci() {
        return;
    }
    let rib = |next_hop: u32| -> Rib<V4> {
        let prefixes = (0..110_000u32).map(|at| Prefix::around(V4(at.wrapping_mul(2_654_435_761)), 24));
        // Next hops by prefix, so that few leaves are equal.
        prefixes
            .map(|prefix| (prefix, NextHop(1 + prefix.address().0.wrapping_mul(40_503) % next_hop)))
            .collect()
    };
    let mut model = Model::from([(FibId(0), rib(60)), (FibId(37), rib(50))]);
    let mut live = LiveFibs::<V4>::new(Fibs::new(), BuildOptions::default()).unwrap();
    let sets = |model: &Model<V4>| -> Vec<_> {
        model.iter().map(|(&id, rib)| FibsUpdate::Set(id, rib.clone().into())).collect()
    };
    live.apply(&sets(&model)).unwrap();
    let reader = live.reader();
    let chunks = reader.enter().image().memory_usage()[0].len / 16;
    assert!(chunks > 1 << 15, "{chunks} chunks");
    assert_eq!((reader.enter().cell_width(), reader.enter().leaf_width()), (4, 1));
    check(&reader.enter(), &model);
    check(&as_from_a_file(&reader.enter()), &model);
    // No kernel takes such cells.
    let uploaded = OnDevice::programs(&*reader.enter(), Sections(&[DevicePtr(0); 4]));
    assert!(uploaded.is_err_and(|why| why.to_string().contains("uneven")));
    // A next hop that the cells can't hold.
    let update = Update::announce(Prefix::around(V4(7 << 24), 8), NextHop(1 << 15));
    model.get_mut(&FibId(37)).unwrap().apply(&update);
    assert!(live.apply(&[FibsUpdate::Route(FibId(37), update)]).unwrap().rebuilt);
    assert_eq!(reader.enter().cell_width(), 8);
    check(&reader.enter(), &model);
}
