//! Updates: a patch is the same whatever the order of changes, is as short as can be, and leaves every copy
//! byte for byte alike; widths and room for chunks end where they are said to.

use proptest::prelude::*;
use wirespeed_dir24::{Dir24, Dir24Table};
use wirespeed_fib::conformance::{Expected, check, rounds, tables};
use wirespeed_fib::oracle::boundaries;
use wirespeed_fib::{BuildError, BuildOptions, Engine, Lookup, NextHop, Outgrown, Prefix, Rib, Update, V4};
use wirespeed_image::{Patch, Table};

fn build(rib: &Rib<V4>) -> (Dir24, Dir24Table) {
    Dir24::build(rib, &BuildOptions::default()).expect("a valid table is built")
}

fn prefix(text: &str) -> Prefix<V4> {
    text.parse().expect("a prefix")
}

fn bytes(table: &Dir24Table) -> Vec<u8> {
    let mut bytes = Vec::new();
    table.image().write(&mut bytes).expect("a Vec takes what is written");
    bytes
}

/// Whether two tables have the same bytes where lookups read, compared without a copy.
fn alike(a: &Dir24Table, b: &Dir24Table) -> bool {
    let sections = |table: &Dir24Table| {
        [0, 1].map(wirespeed_image::SectionId).map(|id| table.image().padded(id).to_vec())
    };
    sections(a) == sections(b)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: u32::try_from(rounds::fewer(36)).unwrap(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Makes changes in another order, some twice: the patch is the same.
    #[test]
    fn the_order_of_changes_is_of_no_consequence(
        rib in tables::random::<V4>(0..60),
        updates in tables::random_updates::<V4>(1..60),
        keys in proptest::collection::vec(any::<u64>(), 120),
    ) {
        let (mut engine, table) = build(&rib);
        let mut after = rib.clone();
        let changed: Vec<_> = updates.iter().filter(|u| after.apply(u)).map(Update::prefix).collect();
        let mut shuffled: Vec<_> = changed.iter().chain(changed.iter().take(5)).copied().zip(keys).collect();
        shuffled.sort_by_key(|&(_, key)| key);
        let shuffled: Vec<_> = shuffled.into_iter().map(|(prefix, _)| prefix).collect();
        let mut other = engine.clone();
        let patch = engine.update(&table, &after, &changed);
        prop_assert_eq!(&patch, &other.update(&table, &after, &shuffled));
        if let Ok(patch) = patch {
            let mut patched = table;
            patched.apply(&patch).unwrap();
            check(&patched, &Expected::of(&after), &boundaries(after.iter().map(|(p, _)| p)), "shuffled");
        }
    }

    /// Each write of a patch changes a word, and a table patched step by step looks up as one built from the
    /// same routes does, at every entry of tbl24 that leads nowhere further.
    #[test]
    fn patches_hold_nothing_that_is_there_already(
        rib in tables::random::<V4>(0..60),
        updates in tables::random_updates::<V4>(1..40),
        step in 1..8usize,
    ) {
        let mut rib = rib;
        let (mut engine, mut table) = build(&rib);
        let mut copy = table.clone();
        for updates in updates.chunks(step) {
            let changed: Vec<_> = updates.iter().filter(|u| rib.apply(u)).map(Update::prefix).collect();
            let Ok(patch) = engine.update(&table, &rib, &changed) else { return Ok(()) };
            for write in patch.writes() {
                let index = usize::try_from(write.index()).unwrap();
                prop_assert_ne!(table.image().section::<u64>(write.section())[index], write.value);
            }
            table.apply(&patch).unwrap();
            // Twice is once.
            copy.apply(&patch).unwrap();
            copy.apply(&patch).unwrap();
        }
        prop_assert!(alike(&table, &copy));
        check(&table, &Expected::of(&rib), &boundaries(rib.iter().map(|(p, _)| p)), "patched");
    }
}

#[test]
fn a_patch_writes_eight_entries_at_a_time() {
    let mut rib: Rib<V4> = [(prefix("0.0.0.0/0"), NextHop(1))].into_iter().collect();
    let (mut engine, mut table) = build(&rib);
    let mut writes = |rib: &Rib<V4>, changed: &str| {
        let patch = engine.update(&table, rib, &[prefix(changed)]).unwrap();
        table.apply(&patch).unwrap();
        patch.writes().len()
    };
    rib.insert(prefix("10.0.0.0/8"), NextHop(2));
    assert_eq!(writes(&rib, "10.0.0.0/8"), (1 << 16) / 8);
    rib.insert(prefix("10.1.0.0/24"), NextHop(3));
    assert_eq!(writes(&rib, "10.1.0.0/24"), 1);
    rib.insert(prefix("10.2.0.0/16"), NextHop(2));
    assert_eq!(writes(&rib, "10.2.0.0/16"), 0, "the same next hop from another prefix");
    rib.remove(prefix("10.0.0.0/8"));
    assert_eq!(writes(&rib, "10.0.0.0/8"), ((1 << 16) - 256) / 8);
    rib.insert(prefix("10.3.0.128/25"), NextHop(4));
    assert_eq!(writes(&rib, "10.3.0.128/25"), 1 + 256 / 8);
}

/// Next hops replaced, withdrawn and announced again, nested and side by side, held against the oracle after
/// every step.
#[test]
fn every_step_of_a_long_quarrel() {
    let prefixes = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "10.1.2.0/23",
        "10.1.2.0/24",
        "10.1.2.0/25",
        "10.1.2.64/26",
        "10.1.2.65/32",
        "10.1.3.255/32",
    ]
    .map(prefix);
    let mut rib = Rib::new();
    let (mut engine, mut table) = build(&rib);
    let probes = boundaries(prefixes);
    let mut state = 1u32;
    for step in 0..u32::try_from(rounds::fewer(2_400)).unwrap() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let prefix = prefixes[(state >> 16) as usize % prefixes.len()];
        let update = match state >> 30 {
            0 => Update::withdraw(prefix),
            _ => Update::announce(prefix, NextHop(step % 7)),
        };
        if rib.apply(&update) {
            let patch = engine.update(&table, &rib, &[prefix]).unwrap();
            table.apply(&patch).unwrap();
        }
        let expected = Expected::of(&rib);
        for &probe in &probes {
            assert_eq!(table.lookup(probe), expected.lookup(probe), "step {step}: {probe}");
        }
    }
}

/// Chunks up to the head room, one more, and all of it again after they came back.
#[test]
fn room_for_chunks_is_used_up_and_comes_back() {
    let host = |slot: u32| Prefix::host(V4(0x0a00_0000 + (slot << 8) + 7));
    let mut rib: Rib<V4> = (0..16).map(|slot| (host(slot), NextHop(1))).collect();
    let (mut engine, mut table) = build(&rib);
    // 16 in use, an eighth of that and 8 beside number 0.
    assert_eq!(table.chunks(), 1 + 26);
    let mut set = |rib: &Rib<V4>, slots: std::ops::Range<u32>| -> Result<Patch, Outgrown> {
        let changed: Vec<_> = slots.map(host).collect();
        let patch = engine.update(&table, rib, &changed)?;
        table.apply(&patch).unwrap();
        check(&table, &Expected::of(rib), &boundaries(changed), "room");
        Ok(patch)
    };
    for _ in 0..3 {
        rib.extend((16..26).map(|slot| (host(slot), NextHop(2))));
        set(&rib, 16..26).unwrap();
        for slot in 16..26 {
            rib.remove(host(slot));
        }
        set(&rib, 16..26).unwrap();
    }
    // As many go as come: there is room however it is ordered.
    rib.extend((16..26).map(|slot| (host(slot), NextHop(2))));
    set(&rib, 16..26).unwrap();
    for slot in 10..26 {
        rib.remove(host(slot));
    }
    rib.extend((26..42).map(|slot| (host(slot), NextHop(3))));
    set(&rib, 10..42).unwrap();
    rib.insert(host(99), NextHop(4));
    assert_eq!(set(&rib, 99..100), Err(Outgrown("room for chunks")));
    let (_, table) = build(&rib);
    check(&table, &Expected::of(&rib), &boundaries(rib.iter().map(|(p, _)| p)), "built again");
}

#[test]
fn wider_entries_where_next_hops_or_chunks_need_them() {
    let rib = |next_hop: u32, chunks: u32| -> Rib<V4> {
        let hosts = (0..chunks).map(|slot| (Prefix::host(V4(slot << 8)), NextHop(1)));
        hosts.chain([(Prefix::DEFAULT, NextHop(next_hop))]).collect()
    };
    let width = |next_hop, chunks| build(&rib(next_hop, chunks)).1.entry_width();
    assert_eq!([width(127, 127), width(128, 0), width(1, 128)], [1, 2, 2]);
    assert_eq!([width(32_767, 200), width(32_768, 0), width((1 << 31) - 1, 0)], [2, 4, 4]);
    let expected = BuildOptions { results: 128, ..BuildOptions::default() };
    assert_eq!(Dir24::build(&rib(1, 0), &expected).unwrap().1.entry_width(), 2, "room that was asked for");

    let at_limit = rib(127, 127);
    let (engine, table) = build(&at_limit);
    assert_eq!(table.chunks(), 128, "no more than entries can lead to");
    let update = |next_hop: u32, slot: u32| {
        let (mut engine, mut rib) = (engine.clone(), at_limit.clone());
        let changed = Prefix::host(V4(slot << 8));
        rib.insert(changed, NextHop(next_hop));
        engine.update(&table, &rib, &[changed]).map(|_| ())
    };
    assert_eq!(update(127, 5), Ok(()));
    assert_eq!(update(128, 5), Err(Outgrown("entry width")));
    assert_eq!(update(1, 500), Err(Outgrown("room for chunks")));

    match Dir24::build(&rib(1 << 31, 0), &BuildOptions::default()) {
        Err(BuildError::Limit { what: "next hops", limit, found, .. }) => {
            assert_eq!((limit, found), ((1 << 31) - 1, 1 << 31));
        }
        other => panic!("over the limit: {:?}", other.map(|_| ())),
    }
}

/// Two copies that take the same patches stay one, through chunks that come, go and are used again, and so
/// they do when written out.
#[test]
fn two_copies_stay_one() {
    let pool = tables::scattered_routes::<V4>(600);
    let mut rib: Rib<V4> = pool.iter().take(300).map(|&p| (p, NextHop(5))).collect();
    let (mut engine, mut table) = build(&rib);
    let mut copy = table.clone();
    for round in 1..40u32 {
        let changed: Vec<_> = pool.iter().copied().skip(round as usize % 11).step_by(11).collect();
        for (at, &prefix) in (round..).zip(&changed) {
            match at % 3 {
                0 => rib.remove(prefix),
                _ => rib.insert(prefix, NextHop(at % 90)),
            };
        }
        match engine.update(&table, &rib, &changed) {
            Ok(patch) => {
                table.apply(&patch).unwrap();
                copy.apply(&patch).unwrap();
            }
            Err(_) => {
                (engine, table) = build(&rib);
                copy = table.clone();
            }
        }
    }
    assert!(bytes(&table) == bytes(&copy), "the copies differ");
    check(&table, &Expected::of(&rib), &boundaries(rib.iter().map(|(p, _)| p)), "after all rounds");
}
