//! Updates of both GAMTs: tables of any strides, nodes and slots that are left in place, room that runs out,
//! ghosts, and patches that leave every copy alike.

#![allow(clippy::unwrap_used)] // every function here is a test or helps one

use proptest::prelude::*;
use wirespeed_fib::conformance::{Expected, check, scattered, tables};
use wirespeed_fib::oracle::boundaries;
use wirespeed_fib::{
    Address, BuildError, BuildOptions, Engine, LiveTable, NextHop, Outgrown, Prefix, Rib, Strides, Update,
    V4, V6,
};
use wirespeed_gamt::{GamtS, GamtT, LevelUsage};
use wirespeed_image::{Image, Table};

/// What both engines have.
trait Gamt<A: Address>: Engine<A> + Clone {
    fn levels(&self) -> Vec<LevelUsage>;
}

impl<A: Address> Gamt<A> for GamtT<A> {
    fn levels(&self) -> Vec<LevelUsage> {
        self.usage()
    }
}

impl<A: Address> Gamt<A> for GamtS<A> {
    fn levels(&self) -> Vec<LevelUsage> {
        self.usage()
    }
}

fn build<A: Address, E: Engine<A>>(rib: &Rib<A>, strides: &Strides) -> (E, E::Table) {
    let options = BuildOptions { strides: strides.clone(), ..BuildOptions::default() };
    E::build(rib, &options).expect("a valid table is built")
}

fn given(strides: &[u8]) -> Strides {
    Strides::Given(strides.to_vec())
}

fn prefix(text: &str) -> Prefix<V4> {
    text.parse().expect("a prefix")
}

/// The /24 of a second and a third octet.
fn third(second: u8, third: u8) -> Prefix<V4> {
    Prefix::around(V4(u32::from_be_bytes([10, second, third, 0])), 24)
}

/// The /24 of a first and a second octet, alone in its /16.
fn alone(first: u8, second: u8) -> Prefix<V4> {
    Prefix::around(V4(u32::from_be_bytes([first, second, 1, 0])), 24)
}

fn bytes(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.write(&mut bytes).expect("a Vec takes what is written");
    bytes
}

fn check_all<A: Address, E: Engine<A>>(table: &E::Table, rib: &Rib<A>, what: &str) {
    let mut addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
    addresses.extend(scattered::<A>(100));
    check(table, &Expected::of(rib), &addresses, what);
}

/// A table, its Rib and its engine.
struct Patched<A: Address, E: Engine<A>> {
    rib: Rib<A>,
    engine: E,
    table: E::Table,
}

impl<A: Address, E: Gamt<A>> Patched<A, E> {
    fn new(rib: Rib<A>, strides: &Strides) -> Self {
        let (engine, table) = build(&rib, strides);
        Self { rib, engine, table }
    }

    /// Applies one set of updates, and holds the table against the oracle where they changed something; the
    /// number of writes.
    fn apply(&mut self, updates: &[Update<A>]) -> Result<usize, Outgrown> {
        let changed: Vec<_> = updates.iter().filter(|u| self.rib.apply(u)).map(Update::prefix).collect();
        let patch = self.engine.update(&self.table, &self.rib, &changed)?;
        self.table.apply(&patch).expect("an engine's patch fits its table");
        check(&self.table, &Expected::of(&self.rib), &boundaries(changed), "patched");
        Ok(patch.writes().len())
    }

    fn announce(&mut self, prefixes: impl IntoIterator<Item = Prefix<A>>) -> Result<usize, Outgrown> {
        let updates: Vec<_> = prefixes.into_iter().map(|p| Update::announce(p, NextHop(7))).collect();
        self.apply(&updates)
    }

    fn withdraw(&mut self, prefixes: impl IntoIterator<Item = Prefix<A>>) -> usize {
        let updates: Vec<_> = prefixes.into_iter().map(Update::withdraw).collect();
        self.apply(&updates).expect("withdrawing needs no room")
    }

    /// Units in use in a level.
    fn used(&self, level: usize) -> u64 {
        self.engine.levels()[level].used_units
    }
}

/// Cuts of every kind.
fn odd_strides<A: Address>() -> Vec<Strides> {
    let bits = usize::from(A::BITS);
    let (few, many): (u8, u8) = if bits == 32 { (4, 20) } else { (8, 30) };
    let of_seven = [vec![3], vec![7; (bits - 3) / 7], vec![1; (bits - 3) % 7]].concat();
    let levels = (few..=many).step_by(4).zip([32, 64, 128].into_iter().cycle());
    let levels = levels.map(|(levels, transaction)| Strides::Levels { levels, transaction });
    let most = Strides::Levels { levels: many, transaction: 32 };
    // Of IPv6 one level lies across the first two words, one across the second and the third.
    let across = match bits {
        32 => vec![7, 12, 1, 3, 9],
        _ => [vec![13, 18, 5, 11, 15, 7], vec![3; 19], vec![2]].concat(),
    };
    let given = [vec![1; bits], of_seven, across].map(Strides::Given);
    given.into_iter().chain([most]).chain(levels).collect()
}

fn tables_of_any_strides<A: Address, E: Gamt<A>>() {
    for strides in odd_strides::<A>() {
        for (name, rib) in tables::hand_picked::<A>() {
            let (_, table) = build::<A, E>(&rib, &strides);
            check_all::<A, E>(&table, &rib, &format!("{name}, {strides:?}"));
            let again = Image::from_bytes(&bytes(table.image())).and_then(E::Table::from_image);
            assert!(again.is_ok(), "{name}, {strides:?}: {:?}", again.map(|_| ()));
        }
    }
}

#[test]
fn tables_of_any_strides_are_right() {
    tables_of_any_strides::<V4, GamtT<V4>>();
    tables_of_any_strides::<V4, GamtS<V4>>();
    tables_of_any_strides::<V6, GamtT<V6>>();
    tables_of_any_strides::<V6, GamtS<V6>>();
}

/// Announced again, withdrawn prefixes find their nodes: no level grows.
fn flaps<E: Gamt<V4>>() -> Vec<usize> {
    let rib = [(prefix("10.0.0.0/8"), NextHop(1)), (prefix("10.1.2.0/25"), NextHop(2))].into_iter().collect();
    let mut patched = Patched::<V4, E>::new(rib, &given(&[8, 8, 8, 8]));
    let flapping = prefix("10.7.8.128/26");
    patched.announce([flapping]).unwrap();
    let levels = patched.engine.levels();
    let mut writes = Vec::new();
    for _ in 0..5 {
        writes.push(patched.withdraw([flapping]));
        assert_eq!(patched.engine.levels(), levels, "deletion is lazy");
        writes.push(patched.announce([flapping]).unwrap());
        assert_eq!(patched.engine.levels(), levels, "the nodes are found again");
    }
    writes
}

#[test]
fn a_flap_writes_what_the_prefix_has() {
    assert_eq!(flaps::<GamtT<V4>>(), [64; 10], "each unit of the prefix");
    assert_eq!(flaps::<GamtS<V4>>(), [1; 10], "the slot");
}

#[test]
fn a_flap_touches_next_hops_alone_where_they_are_separate() {
    let covered = prefix("10.1.0.0/16");
    let mut rib: Rib<V4> = [(prefix("10.0.0.0/8"), NextHop(1)), (covered, NextHop(2))].into_iter().collect();
    let (mut engine, table) = build::<V4, GamtS<V4>>(&rib, &Strides::Fastest);
    let section = table.image().find("next_hops").unwrap();
    for next_hop in [None, Some(2), Some(3), None, Some(4)] {
        match next_hop {
            Some(next_hop) => rib.insert(covered, NextHop(next_hop)),
            None => rib.remove(covered),
        };
        let patch = engine.update(&table, &rib, &[covered, covered]).unwrap();
        assert_eq!(patch.writes().iter().map(wirespeed_image::Write::section).collect::<Vec<_>>(), [section]);
    }
}

/// A level is filled with nodes. Those of withdrawn prefixes make room, and without any the table has
/// outgrown it.
fn room_of_a_level<E: Gamt<V4>>() {
    let nodes = |units: u64| u32::try_from(units / 256).unwrap();
    let rib = [(alone(10, 0), NextHop(1))].into_iter().collect();
    let mut patched = Patched::<V4, E>::new(rib, &given(&[16, 8, 8]));
    let room = nodes(patched.engine.levels()[1].room_units);
    assert_eq!((nodes(patched.used(1)), room), (1, 1 + 1 + 16));

    let first: Vec<_> = (1..room).map(|at| alone(10, u8::try_from(at).unwrap())).collect();
    patched.announce(first.iter().copied()).unwrap();
    assert_eq!(nodes(patched.used(1)), room);
    patched.withdraw(first[..10].iter().copied());
    assert_eq!(nodes(patched.used(1)), room, "deletion is lazy");

    patched.announce([alone(11, 0)]).unwrap();
    assert_eq!(nodes(patched.used(1)), room - 10 + 1, "what was withdrawn is collapsed");
    patched.announce((1..10).map(|at| alone(11, at))).unwrap();
    assert_eq!(nodes(patched.used(1)), room);
    // As many come as go, in one set.
    let swap: Vec<_> = (0..10)
        .map(|at| Update::withdraw(alone(11, at)))
        .chain((0..10).map(|at| Update::announce(alone(12, at), NextHop(3))))
        .collect();
    patched.apply(&swap).unwrap();
    assert_eq!(nodes(patched.used(1)), room);
    check_all::<V4, E>(&patched.table, &patched.rib, "full");

    assert_eq!(patched.announce([alone(13, 0)]), Err(Outgrown("room in a level")));
    let again = Patched::<V4, E>::new(patched.rib, &given(&[16, 8, 8]));
    assert!(nodes(again.engine.levels()[1].room_units) > room, "it has room again");
    check_all::<V4, E>(&again.table, &again.rib, "built again");
}

#[test]
fn withdrawn_nodes_are_collapsed_before_a_level_is_outgrown() {
    room_of_a_level::<GamtT<V4>>();
    room_of_a_level::<GamtS<V4>>();
}

#[test]
fn withdrawn_nodes_are_not_kept_for_good() {
    let mut patched = Patched::<V4, GamtT<V4>>::new(Rib::new(), &Strides::Fastest);
    let few: Vec<_> = (0..8).map(|at| Prefix::host(V4(u32::from_be_bytes([10, at, 0, 1])))).collect();
    patched.announce(few.iter().copied()).unwrap();
    let used = |patched: &Patched<_, GamtT<V4>>| -> u64 { (0..4).map(|level| patched.used(level)).sum() };
    let full = used(&patched);
    for _ in 0..128 {
        patched.withdraw(few.iter().copied());
        assert_eq!(used(&patched), full);
        patched.announce(few.iter().copied()).unwrap();
    }
    patched.withdraw(few.iter().copied());
    assert!(used(&patched) < full, "more than 1,024 prefixes were withdrawn");
}

#[test]
fn ghosts_are_banished_before_slots_are_outgrown() {
    let rib = [(prefix("10.0.0.0/8"), NextHop(1))].into_iter().collect();
    let mut patched = Patched::<V4, GamtS<V4>>::new(rib, &given(&[8, 16, 8]));
    let routes: Vec<_> = (0..7).flat_map(|a| (0..=255).map(move |b| third(a, b))).collect();
    // One route, an eighth of that and 1,024 more; the level below the first has one node whatever they are.
    patched.announce([routes[0]]).unwrap();
    patched.announce(routes[1..1_024].iter().copied()).unwrap();
    patched.withdraw(routes[..500].iter().copied());
    patched.announce(routes[1_024..1_500].iter().copied()).unwrap();
    patched.announce(routes[1_500..1_524].iter().copied()).unwrap();
    check_all::<V4, GamtS<V4>>(&patched.table, &patched.rib, "no slot is left");
    // Ghosts that come back have new slots, and go with others in one set.
    let swap: Vec<_> = (0..300)
        .map(|at| Update::announce(routes[at], NextHop(9)))
        .chain((600..900).map(|at| Update::withdraw(routes[at])))
        .collect();
    patched.apply(&swap).unwrap();
    assert_eq!(patched.announce([routes[1_600]]), Err(Outgrown("room for prefixes")));
    let again = Patched::<V4, GamtS<V4>>::new(patched.rib, &Strides::Fastest);
    check_all::<V4, GamtS<V4>>(&again.table, &again.rib, "built again");
}

fn live_through_rebuilds<A: Address, E: Engine<A>>() {
    let pool = tables::scattered_routes::<A>(3_000);
    let options = BuildOptions { strides: Strides::Fastest, ..BuildOptions::default() };
    let mut live = LiveTable::<A, E>::new(Rib::new(), options).unwrap();
    let reader = live.reader();
    for (at, chunk) in (1u32..).zip(pool.chunks(100)) {
        let come = chunk.iter().map(|&prefix| Update::announce(prefix, NextHop(at * at * at)));
        let go = pool.iter().take(100 * at as usize).step_by(7).map(|&prefix| Update::withdraw(prefix));
        let updates: Vec<_> = go.chain(come).collect();
        live.apply(&updates).unwrap();
        let addresses = boundaries(pool.iter().copied().skip(at as usize % 3).step_by(3));
        check(&*reader.enter(), &Expected::of(live.model()), &addresses, "live");
    }
    assert!(live.rebuilds() > 1, "{} rebuilds", live.rebuilds());
}

#[test]
fn a_live_table_goes_on_through_rebuilds() {
    live_through_rebuilds::<V4, GamtT<V4>>();
    live_through_rebuilds::<V4, GamtS<V4>>();
    live_through_rebuilds::<V6, GamtT<V6>>();
    live_through_rebuilds::<V6, GamtS<V6>>();
}

/// Strides short and long, of which levels of 15 bits have room for hardly a node more than there are.
fn strides() -> impl Strategy<Value = Strides> {
    prop_oneof![Just(Strides::Fastest), Just(given(&[5, 3, 9, 8, 7])), Just(given(&[8, 15, 9]))]
}

/// Makes changes in another order, some twice, on two copies that take each patch once and twice.
fn order_and_copies<E: Gamt<V4>>(
    rib: &Rib<V4>,
    updates: &[Update<V4>],
    keys: &[u64],
    strides: &Strides,
    step: usize,
) -> Result<(), TestCaseError> {
    let mut rib = rib.clone();
    let (mut engine, mut table) = build::<V4, E>(&rib, strides);
    let mut copy = table.clone();
    for updates in updates.chunks(step) {
        let changed: Vec<_> = updates.iter().filter(|u| rib.apply(u)).map(Update::prefix).collect();
        let mut shuffled: Vec<_> = changed.iter().chain(changed.iter().take(5)).copied().zip(keys).collect();
        shuffled.sort_by_key(|&(_, key)| key);
        let shuffled: Vec<_> = shuffled.into_iter().map(|(prefix, _)| prefix).collect();
        let (mut other, mut patched) = (engine.clone(), table.clone());
        let (patch, by_other) =
            (engine.update(&table, &rib, &changed), other.update(&table, &rib, &shuffled));
        prop_assert_eq!(patch.is_ok(), by_other.is_ok());
        let (Ok(patch), Ok(by_other)) = (patch, by_other) else { return Ok(()) };
        patched.apply(&by_other).unwrap();
        check(&patched, &Expected::of(&rib), &boundaries(rib.iter().map(|(p, _)| p)), "shuffled");
        table.apply(&patch).unwrap();
        copy.apply(&patch).unwrap();
        copy.apply(&patch).unwrap();
        prop_assert!(bytes(table.image()) == bytes(copy.image()), "the copies differ");
    }
    Ok(())
}

/// Nodes and slots are given in the order of changes. Where none are, as all that changes is there before,
/// tables are the same to the last byte in whatever order.
fn order_without_growth<E: Gamt<V4>>(
    rib: &Rib<V4>,
    keys: &[u64],
    strides: &Strides,
) -> Result<(), TestCaseError> {
    let (mut engine, mut table) = build::<V4, E>(rib, strides);
    let (mut other, mut by_other, mut after) = (engine.clone(), table.clone(), rib.clone());
    let mut changed = Vec::new();
    for ((prefix, next_hop), &key) in rib.iter().zip(keys) {
        match key % 3 {
            0 => after.remove(prefix),
            1 => after.insert(prefix, NextHop(1 + next_hop.0 % 5)),
            _ => continue,
        };
        changed.push((key, prefix));
    }
    let in_order: Vec<_> = changed.iter().map(|&(_, prefix)| prefix).collect();
    changed.sort_unstable();
    let shuffled: Vec<_> = changed.iter().chain(changed.iter().take(5)).map(|&(_, prefix)| prefix).collect();
    table.apply(&engine.update(&table, &after, &in_order).unwrap()).unwrap();
    by_other.apply(&other.update(&by_other, &after, &shuffled).unwrap()).unwrap();
    prop_assert!(bytes(table.image()) == bytes(by_other.image()), "the order makes a difference");
    check_all::<V4, E>(&table, &after, "without growth");
    Ok(())
}

/// Prefixes that nest in a few /8s, and what happens to them.
fn quarrel<A: Address>() -> impl Strategy<Value = Vec<Update<A>>> {
    let lens = prop_oneof![Just(0u8), Just(6), Just(8), Just(9), Just(13), Just(23), Just(24), Just(30)];
    let prefix = (prop_oneof![4 => Just(10u8), 1 => Just(11), 1 => Just(172)], any::<bool>(), lens);
    let prefix = prefix.prop_map(|(first, ones, len)| {
        let rest = if ones { A::MAX } else { A::MIN };
        Prefix::around(rest.with_octet(0, first), if len == 30 { A::BITS } else { len })
    });
    let update = (prefix, 0..5u32).prop_map(|(prefix, next_hop)| match next_hop {
        0..=1 => Update::withdraw(prefix),
        n => Update::announce(prefix, NextHop(n)),
    });
    proptest::collection::vec(update, 1..80)
}

/// Next hops replaced, withdrawn and announced again in any order agree with the oracle after every step, at
/// every address at which any of the prefixes begins or ends.
fn agrees_at_every_step<A: Address, E: Gamt<A>>(updates: &[Update<A>], step: usize, strides: &Strides) {
    let probes = boundaries(updates.iter().map(Update::prefix));
    let mut rib = Rib::new();
    let (mut engine, mut table) = build::<A, E>(&rib, strides);
    for (at, updates) in updates.chunks(step).enumerate() {
        let changed: Vec<_> = updates.iter().filter(|u| rib.apply(u)).map(Update::prefix).collect();
        match engine.update(&table, &rib, &changed) {
            Ok(patch) => table.apply(&patch).unwrap(),
            Err(_) => (engine, table) = build::<A, E>(&rib, strides),
        }
        check(&table, &Expected::of(&rib), &probes, &format!("step {at}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: wirespeed_image::rounds::cases(48), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn patches_leave_copies_alike_whatever_the_order_of_changes(
        rib in tables::random::<V4>(0..60),
        updates in tables::random_updates::<V4>(1..60),
        keys in proptest::collection::vec(any::<u64>(), 120),
        strides in strides(),
        step in 1..30usize,
    ) {
        order_and_copies::<GamtT<V4>>(&rib, &updates, &keys, &strides, step)?;
        order_and_copies::<GamtS<V4>>(&rib, &updates, &keys, &strides, step)?;
    }

    #[test]
    fn tables_are_the_same_whatever_the_order_of_changes_to_what_is_there(
        rib in tables::random::<V4>(0..120),
        keys in proptest::collection::vec(any::<u64>(), 120),
        strides in strides(),
    ) {
        order_without_growth::<GamtT<V4>>(&rib, &keys, &strides)?;
        order_without_growth::<GamtS<V4>>(&rib, &keys, &strides)?;
    }

    #[test]
    fn every_step_of_a_quarrel(updates in quarrel::<V4>(), step in 1..5usize, strides in strides()) {
        agrees_at_every_step::<V4, GamtT<V4>>(&updates, step, &strides);
        agrees_at_every_step::<V4, GamtS<V4>>(&updates, step, &strides);
    }

    #[test]
    fn every_step_of_a_quarrel_in_ipv6(updates in quarrel::<V6>(), step in 1..5usize) {
        for strides in [Strides::Fastest, Strides::Given([vec![8, 15, 9], vec![12; 8]].concat())] {
            agrees_at_every_step::<V6, GamtT<V6>>(&updates, step, &strides);
            agrees_at_every_step::<V6, GamtS<V6>>(&updates, step, &strides);
        }
    }
}

/// What a ghost goes through, one after the other: covers that change, go and come, and longer prefixes over
/// it.
#[test]
fn ghosts_follow_what_covers_them() {
    for strides in [Strides::Fastest, given(&[8, 8, 8, 8]), given(&[13, 3, 16])] {
        let [cover, ghost, within, host] =
            ["10.0.0.0/9", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.3/32"].map(prefix);
        let new_cover = prefix("10.0.0.0/15");
        let rib = [cover, ghost, within, host].into_iter().zip((1..).map(NextHop)).collect();
        let mut patched = Patched::<V4, GamtS<V4>>::new(rib, &strides);
        let mut step = |updates: &[Update<V4>]| {
            patched.apply(updates).unwrap();
            check_all::<V4, GamtS<V4>>(&patched.table, &patched.rib, &format!("{updates:?}"));
            let probes = boundaries([cover, ghost, within, host, new_cover]);
            check(&patched.table, &Expected::of(&patched.rib), &probes, "probes");
        };
        let announce = |prefix, next_hop| Update::announce(prefix, NextHop(next_hop));
        step(&[Update::withdraw(within)]);
        step(&[Update::withdraw(ghost)]);
        step(&[announce(cover, 11)]);
        step(&[announce(new_cover, 12)]);
        step(&[announce(within, 13)]);
        step(&[Update::withdraw(new_cover), Update::withdraw(cover)]);
        step(&[announce(Prefix::DEFAULT, 14)]);
        step(&[Update::withdraw(within), announce(ghost, 15)]);
        step(&[announce(new_cover, 16), Update::withdraw(ghost), Update::withdraw(host)]);
        step(&[announce(host, 17), Update::withdraw(Prefix::DEFAULT)]);
        step(&[Update::withdraw(new_cover)]);
    }
}

#[test]
fn units_are_as_wide_as_next_hops_need() {
    let last = NextHop((1 << 24) + 5);
    let rib: Rib<V4> =
        [(prefix("10.0.0.0/8"), NextHop(1)), (prefix("10.1.0.0/24"), last)].into_iter().collect();
    let (_, wide) = build::<V4, GamtT<V4>>(&rib, &given(&[16, 8]));
    assert_eq!(wide.unit_bytes().collect::<Vec<_>>(), [8, 8]);
    check_all::<V4, GamtT<V4>>(&wide, &rib, "units of 8 bytes");
    let (_, separate) = build::<V4, GamtS<V4>>(&rib, &given(&[16, 8]));
    assert_eq!(separate.unit_bytes().collect::<Vec<_>>(), [4, 4], "leaves are slots");
    check_all::<V4, GamtS<V4>>(&separate, &rib, "next hops of 4 bytes");
    let all: Rib<V4> = [(prefix("10.0.0.0/8"), NextHop(u32::MAX))].into_iter().collect();
    check_all::<V4, GamtT<V4>>(&build::<V4, GamtT<V4>>(&all, &Strides::Fastest).1, &all, "the largest");
    check_all::<V4, GamtS<V4>>(&build::<V4, GamtS<V4>>(&all, &Strides::Fastest).1, &all, "the largest");
}

fn outgrown_width<E: Gamt<V4>>(strides: &Strides, next_hop: u32, outgrown: Outgrown) {
    let rib = [(prefix("10.0.0.0/8"), NextHop(1)), (prefix("10.1.0.0/24"), NextHop(2))].into_iter().collect();
    let mut patched = Patched::<V4, E>::new(rib, strides);
    let update = Update::announce(prefix("10.2.0.0/24"), NextHop(next_hop));
    assert_eq!(patched.apply(&[update]), Err(outgrown));
    let mut again = Patched::<V4, E>::new(patched.rib, strides);
    check_all::<V4, E>(&again.table, &again.rib, "built wider");
    let update = Update::announce(prefix("10.3.0.0/24"), NextHop(next_hop));
    assert!(again.apply(&[update]).is_ok());
    // With room asked for, nothing is outgrown.
    let rib = [(prefix("10.1.0.0/24"), NextHop(2))].into_iter().collect();
    let options = BuildOptions { strides: strides.clone(), results: next_hop, ..BuildOptions::default() };
    let (engine, table) = E::build(&rib, &options).unwrap();
    assert!(Patched { rib, engine, table }.apply(&[update]).is_ok());
}

#[test]
fn a_next_hop_too_wide_is_outgrown_and_built_wider() {
    outgrown_width::<GamtT<V4>>(&Strides::Fastest, 256, Outgrown("unit width"));
    outgrown_width::<GamtT<V4>>(&given(&[16, 16]), 1 << 24, Outgrown("unit width"));
    outgrown_width::<GamtS<V4>>(&Strides::Fastest, 70_000, Outgrown("width of next hops"));
}

#[test]
fn prefixes_past_the_given_strides_outgrow_them() {
    let rib: Rib<V4> = [(prefix("10.1.0.0/24"), NextHop(2))].into_iter().collect();
    let mut patched = Patched::<V4, GamtT<V4>>::new(rib.clone(), &given(&[16, 8]));
    assert_eq!(patched.announce([prefix("10.1.0.0/25")]), Err(Outgrown("levels")));
    let mut patched = Patched::<V4, GamtS<V4>>::new(rib, &given(&[16, 8]));
    assert_eq!(patched.announce([prefix("10.1.0.0/25")]), Err(Outgrown("levels")));
}

#[test]
fn a_level_of_too_many_units_is_refused_with_both_numbers() {
    let rib: Rib<V6> =
        (0..255).map(|first| (Prefix::around(V6::MIN.with_octet(0, first), 32), NextHop(1))).collect();
    let options = BuildOptions { strides: given(&[8, 24]), ..BuildOptions::default() };
    let refused = |done: Result<(), BuildError>| match done {
        Err(BuildError::Limit { what: "units a level", limit, found, .. }) => (limit, found),
        other => panic!("over the limit: {other:?}"),
    };
    // An eighth of 255 is 31, and one more.
    let both = (1 << 32, (255 + 31 + 1) << 24);
    assert_eq!(refused(GamtT::<V6>::build(&rib, &options).map(|_| ())), both);
    assert_eq!(refused(GamtS::<V6>::build(&rib, &options).map(|_| ())), both);
}

/// Whether a table with one element changed is refused, as an image and as a patch.
fn refuses<T: Table>(table: &T, section: &str, index: u64, value: u64) -> (bool, bool) {
    let id = table.image().find(section).expect("a section of the table");
    let mut patch = wirespeed_image::PatchBuilder::new();
    patch.set(id, index, value);
    let patch = patch.finish(None);
    let mut raw = table.image().clone();
    raw.apply(&patch).expect("the element is there");
    (T::from_image(raw).is_err(), table.check(&patch).is_err())
}

#[test]
fn images_with_wrong_shapes_and_units_are_refused() {
    let routes = ["10.0.0.0/8", "10.1.2.0/24", "10.1.2.3/32", "11.1.2.3/32"].map(prefix);
    let rib: Rib<V4> = routes.into_iter().zip((1..).map(NextHop)).collect();
    let strides = given(&[16, 8, 8]);
    let both = (true, true);
    let (_, table) = build::<V4, GamtT<V4>>(&rib, &strides);
    for stride in [0, 1, 15, 17, 24, 25, 255] {
        assert_eq!(refuses(&table, "strides", 0, stride), both, "a stride of {stride}");
    }
    for base in [1, 255, 1 << 16, u64::from(u32::MAX)] {
        assert_eq!(refuses(&table, "bases", 1, base), both, "a base of {base} for units of 4 bytes");
    }
    let unit = |inf: u64, jump: u64| inf << 8 | jump;
    let nodes = table.image().memory_usage()[3].len;
    for (name, bad) in [
        ("level1", unit(256, 1)),
        ("level1", unit(256, 3)),
        ("level1", unit(1, 2)),
        ("level1", unit(nodes, 2)),
        ("level1", unit(5, 0)),
        ("level2", unit(256, 2)),
        ("level3", unit(0, 4)),
        ("level3", unit(0, 255)),
    ] {
        assert_eq!(refuses(&table, name, 3, bad), both, "{name}: {bad:#x}");
    }
    assert_eq!(refuses(&table, "level1", 3, unit(256, 2)), (false, false), "a child that is there");
    assert_eq!(refuses(&table, "level1", 3, unit(4, 0)), (false, false), "the largest next hop");

    let (_, separate) = build::<V4, GamtS<V4>>(&rib, &strides);
    let slots = separate.image().memory_usage()[5].len;
    assert_eq!(refuses(&separate, "level2", 0, unit(slots, 0)), both);
    assert_eq!(refuses(&separate, "level2", 0, unit(slots - 1, 0)), (false, false));
    assert_eq!(refuses(&separate, "next_hops", 1, 5), both);

    let (_, narrow) = build::<V4, GamtT<V4>>(&rib, &Strides::Fastest);
    let last = narrow.unit_bytes().len() as u64 - 1;
    assert!(narrow.unit_bytes().all(|bytes| bytes <= 2));
    for (level, base) in [(0, 0), (0, (1 << 16) + 1), (last, 0), (last, 3), (last, 257)] {
        assert_eq!(refuses(&narrow, "bases", level, base), both, "a base of {base} for level {level}");
    }
}
