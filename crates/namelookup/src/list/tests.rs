use proptest::prelude::*;

use super::oracle::Oracle;
use super::*;
use crate::acta::Acta;
use crate::mata::{Mata, MataNw};
use crate::name::{Name, NameBuf};
use crate::names::NameBatch;
use crate::stt::Stt;
use crate::{BuildOptions, Engine, Lookup, Match, NameDomain};

type Rows = Vec<(NameBuf, Scope, Precedence, Verdict)>;

fn list(entries: &Rows) -> Entries {
    let mut list = Entries::new();
    for (name, scope, precedence, verdict) in entries {
        list.insert(name, *scope, *precedence, *verdict);
    }
    list
}

/// Names of up to four labels of two letters: so few that entries meet at names, above and beneath.
fn name() -> impl Strategy<Value = NameBuf> {
    prop::collection::vec(prop::sample::select(vec![&b"a"[..], b"bb"]), 0..5)
        .prop_map(|labels| NameBuf::from_components(labels).unwrap())
}

fn entries() -> impl Strategy<Value = Rows> {
    let verdict =
        prop_oneof![3 => (1_u32..4).prop_map(|v| Verdict::value(v).unwrap()), 1 => Just(Verdict::Exception)];
    let precedence = (0_u8..2, 0_u8..2).prop_map(|(level, weight)| Precedence { level, weight });
    prop::collection::vec((name(), prop::sample::select(Scope::ALL.to_vec()), precedence, verdict), 0..12)
}

/// Every name of up to five labels that can meet an entry, and labels that are in no list.
fn probes() -> NameBatch {
    let mut all = vec![NameBuf::root()];
    for at in 0.. {
        let Some(name) = all.get(at).cloned() else { break };
        if name.components().count() < 5 {
            for label in [&b"a"[..], b"bb", b"c"] {
                let mut longer = name.clone();
                longer.push(label).unwrap();
                all.push(longer);
            }
        }
    }
    all.iter().map(|name| &**name).collect()
}

fn check_engine<E: Engine<NameDomain>>(list: &Resolved, right: &[Option<Answer>], probes: &NameBatch) {
    let (_, table) = E::build(&list.names, &BuildOptions::default()).unwrap();
    let mut found = vec![Match::NONE; probes.len()];
    table.match_batch(probes.names(), &mut found);
    for ((name, &found), &right) in probes.names().iter().zip(&found).zip(right) {
        assert_eq!(list.answers.answer(name, found), right, "{name} in a batch");
        assert_eq!(list.answers.answer(name, table.lookup(name)), right, "{name} alone");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_engine_answers_as_the_walk_over_all_entries(entries in entries()) {
        let probes = probes();
        let oracle = Oracle(entries.clone());
        let right: Vec<_> = probes.names().iter().map(|name| oracle.lookup(name)).collect();
        // Equal names and scopes of which the first has the higher rank, or the last comes last.
        let list = list(&entries).resolve();
        for (name, right) in probes.names().iter().zip(&right) {
            prop_assert_eq!(list.lookup(name), *right, "{}", name);
        }
        check_engine::<Acta>(&list, &right, &probes);
        check_engine::<Mata>(&list, &right, &probes);
        check_engine::<MataNw>(&list, &right, &probes);
        check_engine::<Stt>(&list, &right, &probes);
        prop_assert_eq!(Answers::from_bytes(&list.answers.to_bytes()), Some(list.answers));
    }
}

fn of(domain: &str) -> NameBuf {
    NameBuf::from_domain(domain.as_bytes()).unwrap()
}

fn value(value: u32) -> Verdict {
    Verdict::value(value).unwrap()
}

#[test]
fn scopes_cover_what_they_say() {
    let low = Precedence::default();
    for (scope, covered) in [
        (Scope::Exact, [true, false, false]),
        (Scope::OneLabel, [false, true, false]),
        (Scope::Beneath, [false, true, true]),
        (Scope::Subtree, [true, true, true]),
    ] {
        let list = list(&vec![(of("d.example"), scope, low, value(3))]).resolve();
        for (name, covered) in ["d.example", "a.d.example", "b.a.d.example"].into_iter().zip(covered) {
            let answer = list.lookup(&of(name));
            let right = Answer { verdict: value(3), scope, length: 10 };
            assert_eq!(answer, covered.then_some(right), "{scope} {name}");
        }
        assert_eq!(list.lookup(&of("example")), None);
        assert_eq!(list.lookup(&of("xd.example")), None);
    }
}

#[test]
fn an_exception_of_a_higher_level_wins_at_any_depth() {
    let (low, high) = (Precedence::default(), Precedence { level: 1, weight: 0 });
    let entries = vec![
        (of("example"), Scope::Subtree, low, value(1)),
        (of("good.example"), Scope::Subtree, high, Verdict::Exception),
        (of("ads.good.example"), Scope::Subtree, low, value(2)),
    ];
    let resolved = list(&entries).resolve();
    let verdict = |name: &str| resolved.lookup(&of(name)).map(|answer| answer.verdict);
    assert_eq!(verdict("a.example"), Some(value(1)));
    assert_eq!(verdict("x.ads.good.example"), Some(Verdict::Exception));
    let lower = entries.into_iter().map(|(name, scope, _, verdict)| (name, scope, low, verdict)).collect();
    let resolved = list(&lower).resolve();
    let answer = resolved.lookup(&of("x.ads.good.example")).unwrap();
    assert_eq!(answer.verdict, value(2), "at one level the longest name wins");
    assert_eq!(answer.entry(&of("x.ads.good.example")), &*of("ads.good.example"));
}

#[test]
fn one_entry_stays_for_a_name_and_a_scope() {
    let mut list = Entries::new();
    let (low, high) = (Precedence::default(), Precedence { level: 0, weight: 1 });
    let (name, exact) = (of("d.example"), Scope::Exact);
    assert!(!list.insert(&name, exact, low, value(1)));
    assert!(list.insert(&name, exact, low, value(2)));
    assert_eq!(list.entry(&name, exact), Some(value(2)));
    assert!(list.insert(&name, exact, high, Verdict::Exception));
    assert!(list.insert(&name, exact, low, value(3)));
    assert_eq!(list.entry(&name, exact), Some(Verdict::Exception));
    assert!(!list.insert(&name, Scope::Subtree, low, value(3)));
    assert_eq!((list.len(), list.names()), (2, 1));
    let counts = Counts { by_scope: [1, 0, 0, 1], exceptions: 1 };
    assert_eq!(list.counts(), counts);
    assert_eq!(list.iter().count(), 2);
}

#[test]
fn only_valid_bytes_are_answers() {
    let resolved = list(&vec![(of("d"), Scope::Beneath, Precedence::default(), value(9))]).resolve();
    let bytes = resolved.answers.to_bytes();
    assert_eq!(Answers::from_bytes(&bytes), Some(resolved.answers));
    assert_eq!(Answers::from_bytes(&[]), None);
    for (at, byte) in [(0, 2), (1, 1), (11, 3), (12, 4), (13, 0)] {
        let mut other = bytes.clone();
        other[at] = byte;
        assert_eq!(Answers::from_bytes(&other), None, "byte {at}");
    }
    for len in 2..bytes.len() {
        assert_eq!(Answers::from_bytes(&bytes[..len]), None, "{len} bytes");
    }
}

#[test]
fn answers_of_another_table_are_none_and_no_panic() {
    let resolved = list(&vec![(of("d.example"), Scope::Subtree, Precedence::default(), value(9))]).resolve();
    let name = Name::new("/example/d").unwrap();
    for (result, length) in [(0, 0), (2, 3), (u32::MAX, 3), (1, 100)] {
        assert_eq!(resolved.answers.answer(name, Match { result, length }), None);
    }
}
