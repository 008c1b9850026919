use super::*;
use crate::found::Match;
use crate::name::{Name, NameBuf};

type Rows = Vec<(NameBuf, Scope, Precedence, Verdict)>;

fn list(entries: &Rows) -> Entries {
    let mut list = Entries::new();
    for (name, scope, precedence, verdict) in entries {
        list.insert(name, *scope, *precedence, *verdict);
    }
    list
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
