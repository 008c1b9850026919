use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::oracle::Oracle;

/// Names of few components of few kinds, so that they are prefixes of each other.
fn names() -> impl Strategy<Value = NameBuf> {
    let component =
        prop::sample::select(vec![&b"a"[..], b"ab", b"\xff\0", b"a component too long for its node"]);
    proptest::collection::vec(component, 0..5)
        .prop_map(|components| NameBuf::from_components(components).expect("components are names"))
}

#[test]
fn emptied_it_holds_nothing_but_the_root() {
    let mut table = NameTable::new();
    let names: Vec<_> = (0..20_000)
        .map(|n| NameBuf::new(&format!("/com/{n}/x{}{}", n % 7, "long".repeat(10 * (n % 2)))).unwrap())
        .collect();
    let mut bound = 0;
    for round in 0..3 {
        for name in &names {
            assert_eq!(table.insert(name, 1 + round), 0);
        }
        assert_eq!((table.len(), table.node_count()), (names.len(), 2 + 2 * names.len()));
        assert!(round == 0 || table.id_bound() == bound, "ids are used again");
        bound = table.id_bound();
        for name in &names {
            assert_eq!(table.remove(name), 1 + round);
        }
        assert_eq!((table.len(), table.node_count()), (0, 1));
    }
    // Each length of components has some ids that are not in use.
    assert!(bound <= 2 + 2 * names.len() + 20 * 128, "{bound}");
    assert!(table.nodes.text_len() < 2 << 20, "so is the text");
}

proptest! {
    /// Each state is that of a sorted map, and what is said to have changed between two states is what did.
    #[test]
    fn it_is_a_map_that_knows_prefixes(steps in proptest::collection::vec((names(), 0..4u32), 0..80), every in 1..9usize) {
        let mut table = NameTable::new();
        table.track();
        let mut oracle = Oracle::default();
        let mut before = BTreeSet::new();
        let seen = |table: &NameTable| -> BTreeSet<_> {
            table.nodes().map(|node| (node.id(), node.name(), node.result(), node.has_children())).collect()
        };
        before.extend(seen(&table));
        for steps in steps.chunks(every) {
            for (name, result) in steps {
                let had = match result {
                    0 => oracle.0.remove(name).unwrap_or(0),
                    &result => oracle.0.insert(name.clone(), result).unwrap_or(0),
                };
                let found = match result {
                    0 => table.remove(name),
                    &result => table.insert(name, result),
                };
                prop_assert_eq!(found, had);
            }
            let now = seen(&table);
            let differ: BTreeSet<_> = now.symmetric_difference(&before).map(|(id, ..)| *id).collect();
            let changed = table.take_changed();
            for &id in &changed {
                let node = table.node(id);
                prop_assert_eq!(node.is_gone(), !now.iter().any(|(other, ..)| *other == id));
                prop_assert!(node.parent().is_none() || !node.component().is_empty());
            }
            prop_assert_eq!(changed.len(), differ.len());
            prop_assert_eq!(changed.iter().copied().collect::<BTreeSet<_>>(), differ);
            table.forget_gone(changed);
            before = now;
            prop_assert_eq!(table.len(), oracle.0.len());
            prop_assert_eq!(table.iter().collect::<Oracle>().0, oracle.0.clone());
            for (name, _) in steps {
                prop_assert_eq!(table.lookup(name), oracle.lookup(name));
            }
        }
    }

    /// Changes that are made together are those made one by one, with nodes coming, going and coming back
    /// within a group.
    #[test]
    fn together_is_one_by_one(steps in proptest::collection::vec((names(), 0..3u32), 0..200), tracks: bool) {
        let update = |(name, result): (NameBuf, u32)| match result {
            0 => NameUpdate::Remove(name),
            result => NameUpdate::Insert(name, result),
        };
        let updates: Vec<_> = steps.into_iter().map(update).collect();
        let (mut one_by_one, mut together) = (NameTable::new(), NameTable::new());
        if tracks {
            together.track();
        }
        for updates in updates.chunks(120) {
            let changes = updates.iter().filter(|update| one_by_one.apply(update)).count();
            prop_assert_eq!(together.apply_all(updates), changes);
            prop_assert_eq!(together.iter().collect::<Oracle>().0, one_by_one.iter().collect::<Oracle>().0);
            prop_assert_eq!(together.node_count(), one_by_one.node_count());
            let changed = together.take_changed();
            together.forget_gone(changed);
        }
    }
}

/// Gives the id of no node to none: with it a table of so many would take its last node for none.
#[test]
#[should_panic(expected = "fewer than 2^32 nodes")]
fn the_id_of_no_node_is_given_to_none() {
    NodeId::from_index(u32::MAX as usize);
}
