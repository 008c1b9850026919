//! Updates beyond the suite: order does not matter, copies stay equal, keys made to collide find their
//! places.

use proptest::prelude::*;
use wirespeed_fib::conformance::{Expected, check, tables};
use wirespeed_fib::{Address, BuildOptions, Engine, LiveTable, NextHop, Prefix, Rib, Update, V4, V6, oracle};
use wirespeed_image::{Table, rounds};
use wirespeed_waldvogel::Waldvogel;

fn options() -> BuildOptions {
    BuildOptions { seed: Some(1), ..BuildOptions::default() }
}

fn bytes<T: Table>(table: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    bytes
}

/// Applies one set of changes in two orders to tables of the same Rib, and one of the patches to two copies.
fn orders<A: Address>(mut rib: Rib<A>, updates: &[Update<A>]) {
    let (engine, table) = Waldvogel::build(&rib, &options()).expect("a valid table is built");
    let changed: Vec<_> = updates.iter().filter(|update| rib.apply(update)).map(Update::prefix).collect();
    let addresses = oracle::boundaries(rib.iter().map(|(prefix, _)| prefix).chain(changed.iter().copied()));
    let mut other = changed.clone();
    other.reverse();
    for changed in [changed, other] {
        let mut engine = engine.clone();
        // A table that is full is built anew, which the suite looks after.
        let Ok(patch) = engine.patch(&table, &rib, &changed) else { continue };
        let locations: Vec<_> = patch.writes().iter().map(|write| (write.section(), write.index())).collect();
        assert!(locations.is_sorted_by(|a, b| a < b), "each location is written once");
        let (mut one, mut two) = (table.clone(), table.clone());
        one.apply(&patch).expect("the patch fits");
        two.apply(&patch).expect("the patch fits");
        two.apply(&patch).expect("the patch fits again");
        assert!(bytes(&one) == bytes(&two), "two copies that were patched alike differ");
        check(&one, &Expected::of(&rib), &addresses, "in one order or the other");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds::cases(64), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_does_not_matter_v4(rib in tables::random::<V4>(0..150), updates in tables::random_updates::<V4>(0..80)) {
        orders(rib, &updates);
    }

    #[test]
    fn order_does_not_matter_v6(rib in tables::random::<V6>(0..150), updates in tables::random_updates::<V6>(0..80)) {
        orders(rib, &updates);
    }

    /// Few prefixes that nest, replaced, withdrawn and announced again: right after each step.
    #[test]
    fn prefixes_come_and_go(steps in proptest::collection::vec((0..24usize, 0..4u32), 1..150)) {
        let pool: Vec<_> = (0..24u8).map(|at| Prefix::around(V6(0x2001 << 112 | 0x5555 << 80), 12 + 5 * at)).collect();
        let addresses = oracle::boundaries(pool.iter().copied());
        let mut live = LiveTable::<V6, Waldvogel<V6>>::new(Rib::new(), options()).expect("an empty table is built");
        for (which, next_hop) in steps {
            let update = match next_hop {
                0 => Update::withdraw(pool[which]),
                n => Update::announce(pool[which], NextHop(n)),
            };
            live.apply([&update]).expect("the table takes the update");
            check(&*live.reader().enter(), &Expected::of(live.model()), &addresses, "after a step");
        }
    }
}

/// Lengths announced from the shortest up make each a node of its own, and from the longest down one rope:
/// either way regions are planned anew before a search takes too long.
#[test]
fn long_searches_are_planned_anew() {
    let along = V6(0x2001_0db8 << 96 | 0xaaaa_5555_aaaa_5555_aaaa_5555);
    let up: Vec<u8> = (17..=128).collect();
    let down: Vec<u8> = up.iter().rev().copied().collect();
    for lengths in [up, down] {
        let mut rib = Rib::new();
        // Room for the keys to come, elsewhere.
        rib.extend(
            (0..2_000u32).map(|at| (Prefix::around(V6(u128::from(0x3000_0000 + at) << 96), 32), NextHop(1))),
        );
        rib.extend((0..2_000u128).map(|at| (Prefix::host(V6(0x3fff << 112 | at)), NextHop(1))));
        let mut live = LiveTable::<V6, Waldvogel<V6>>::new(rib, options()).expect("a valid table is built");
        for len in lengths {
            let update = Update::announce(Prefix::around(along, len), NextHop(len.into()));
            assert!(!live.apply([&update]).expect("the table takes the update").rebuilt, "no room at {len}");
            let addresses = oracle::boundaries((17..=128).map(|len| Prefix::around(along, len)));
            check(&*live.reader().enter(), &Expected::of(live.model()), &addresses, "along one path");
        }
    }
}

/// A table that fills up is built anew, with room.
#[test]
fn head_room_ends_and_comes_back() {
    let mut live =
        LiveTable::<V6, Waldvogel<V6>>::new(Rib::new(), options()).expect("an empty table is built");
    for step in 0..40u32 {
        let at = |at| V6(u128::from(0x2000_0000 + at * 0x1_0001) << 96);
        let updates: Vec<_> = (100 * step..100 * step + 100)
            .map(|n| {
                Update::announce(Prefix::around(at(n), if n % 3 == 0 { 128 } else { 40 }), NextHop(1 + n % 9))
            })
            .collect();
        live.apply(&updates).expect("the table takes the update");
        let addresses = oracle::boundaries(updates.iter().map(Update::prefix));
        check(&*live.reader().enter(), &Expected::of(live.model()), &addresses, "a growing table");
    }
    assert!(live.rebuilds() > 2 && live.rebuilds() < 20, "{} rebuilds", live.rebuilds());
}
