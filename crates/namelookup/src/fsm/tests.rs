use proptest::prelude::*;

use super::*;
use crate::name::{Name, NameBuf};

/// Whether a walk through the machine finds what the table does.
fn lookup(fsm: &Fsm, name: &Name) -> (u32, usize) {
    let mut found = (fsm.root_result(), 0);
    let mut state = fsm.root();
    for step in chunks(name, fsm.stride()) {
        let Some(at) = state else { break };
        let mut all = fsm.transitions(at);
        let Some(transition) = all.find(|transition| transition.input == step.input) else { break };
        if transition.result != 0 {
            found = (transition.result, step.end);
        }
        state = transition.state;
    }
    found
}

#[test]
fn figure_3_of_the_paper() {
    let names = ["/com/amazon/books", "/com/amazon/www", "/com/yahoo/www"];
    let table: NameTable = (1..).zip(names).map(|(n, name)| (NameBuf::new(name).unwrap(), n)).collect();
    let fsm = Fsm::of(&table, Stride::new(3).unwrap()).unwrap();
    let census = fsm.census();
    // Its states: com, /, ama, zon, /, boo, ks/, www, /, yah, oo/, www, / and the first.
    assert_eq!((census.states, census.transitions, census.leaves), (14, 13, 3));
    assert_eq!((census.single, census.widest), (9, 2));
    let steps: Vec<_> = chunks(Name::new(names[2]).unwrap(), Stride::FOUR).collect();
    let chunk = |bytes: &[u8; 4], end| Chunk { input: u32::from_le_bytes(*bytes), end };
    assert_eq!(steps, [chunk(b"com/", 4), chunk(b"yaho", 8), chunk(b"o/\0\0", 10), chunk(b"www/", 14)]);
}

#[test]
fn a_machine_of_nothing_and_one_of_the_root() {
    let mut table = NameTable::new();
    let fsm = Fsm::of(&table, Stride::FOUR).unwrap();
    assert_eq!((fsm.root(), fsm.census().states, lookup(&fsm, Name::ROOT)), (None, 1, (0, 0)));
    table.insert(Name::ROOT, 7);
    let fsm = Fsm::of(&table, Stride::FOUR).unwrap();
    assert_eq!((fsm.root(), lookup(&fsm, Name::new("/a").unwrap())), (None, (7, 0)));
}

fn names() -> impl Strategy<Value = NameBuf> {
    let byte = prop::sample::select(vec![b'a', b'b', 0, 0xff, b'.', b'0']);
    let component = proptest::collection::vec(byte, 1..11);
    proptest::collection::vec(component, 0..4)
        .prop_map(|components| NameBuf::from_components(components.iter().map(|c| &c[..])).expect("names"))
}

proptest! {
    #[test]
    fn it_finds_what_the_table_does(
        entries in proptest::collection::vec((names(), 1..9u32), 0..40),
        others in proptest::collection::vec(names(), 0..10),
        stride in 1..5u8,
    ) {
        let table: NameTable = entries.iter().cloned().collect();
        let mut fsm = Fsm::of(&table, Stride::new(stride).unwrap()).unwrap();
        let names: Vec<_> = entries.iter().map(|(name, _)| name).chain(&others).collect();
        for name in &names {
            let found = table.lookup(name);
            prop_assert_eq!(lookup(&fsm, name), (found.result, found.length as usize));
        }
        let mut inputs = std::collections::HashSet::new();
        for state in 0..number(fsm.state_count()) {
            inputs.clear();
            prop_assert!(fsm.inputs(state).iter().all(|&input| inputs.insert(input)));
        }
        // A state that is halved leads where it did, in two steps.
        let before = fsm.clone();
        for state in 0..number(before.state_count()) {
            let between = fsm.halve(state);
            prop_assert_eq!(between.len(), fsm.inputs(state).len());
            let mut all: Vec<_> = fsm.transitions(state).flat_map(|low| {
                let high = fsm.transitions(low.state.unwrap());
                high.map(move |high| Transition { input: high.input << 16 | low.input, ..high })
            }).collect();
            let mut was: Vec<_> = before.transitions(state).collect();
            all.sort_by_key(|transition| transition.input);
            was.sort_by_key(|transition| transition.input);
            prop_assert_eq!(all, was);
        }
    }
}
