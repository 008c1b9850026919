//! Labels against a simple model, and as readers see them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use wirespeed_fib::{Prefix, V4};

use super::*;
use crate::table::Ipv4Table;

#[test]
fn equal_values_share_an_index_through_all_growth() {
    let labels = Labels::new();
    for round in 0..2 {
        for i in 0..5000u32 {
            assert_eq!(labels.intern(format!("{i}")), Ok(NextHop(i + 1)), "round {round}");
        }
    }
    assert_eq!(labels.len(), 5000);
    let known = labels.enter();
    assert!(known.iter().zip(0..5000u32).all(|((n, text), i)| n == NextHop(i + 1) && *text == i.to_string()));
    assert_eq!(labels.find(&"77".to_owned()), Some(NextHop(78)));
    assert_eq!(labels.find(&"x".to_owned()), None);
    assert_eq!((known.get(NextHop(5001)), known.get(NextHop(u32::MAX))), (None, None));
}

#[test]
fn each_change_of_a_value_is_counted() {
    let labels = Labels::new();
    let mut before = labels.changes();
    let mut has_changed = || std::mem::replace(&mut before, labels.changes()) != labels.changes();
    let one = labels.intern(1).unwrap();
    assert!(has_changed());
    assert_eq!(labels.intern(1), Ok(one));
    assert!(!has_changed());
    labels.replace(one, 2).unwrap();
    assert!(has_changed());
    assert!(labels.replace(NextHop(9), 3).is_err());
    assert!(!has_changed());
}

#[test]
fn appended_values_keep_their_places_and_the_first_is_found() {
    let labels = Labels::new();
    for value in [Some(7), None, Some(8), Some(7)] {
        labels.append(value).unwrap();
    }
    let all = |labels: &Labels<u32>| labels.enter().iter().map(|(n, &v)| (n.0, v)).collect::<Vec<_>>();
    assert_eq!(all(&labels), [(1, 7), (3, 8), (4, 7)]);
    assert_eq!(
        (labels.intern(7), labels.intern(9), labels.intern(10)),
        (Ok(NextHop(1)), Ok(NextHop(2)), Ok(NextHop(5)))
    );
    assert_eq!(all(&labels), [(1, 7), (2, 9), (3, 8), (4, 7), (5, 10)]);
}

#[test]
fn an_index_that_was_published_resolves_on_every_thread() {
    let labels = Labels::new();
    let published = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (labels, published) = (labels.clone(), &published);
            scope.spawn(move || {
                loop {
                    let last = published.load(Ordering::Acquire);
                    let known = labels.enter();
                    for index in
                        [last, last / 2, last / 3 + 1].into_iter().filter(|&n| (1..=last).contains(&n))
                    {
                        assert_eq!(known.get(NextHop(index)), Some(&(u64::from(index) * 3)));
                    }
                    if last == 100_000 {
                        break;
                    }
                }
            });
        }
        for index in 1..=100_000u64 {
            published.store(labels.intern(index * 3).unwrap().0, Ordering::Release);
        }
    });
}

#[test]
fn values_that_are_replaced_are_found_and_the_first_of_equal_ones() {
    let labels = Labels::new();
    let [a, b, c] = ["a", "b", "c"].map(|value| labels.intern(value).unwrap());
    labels.replace(c, "a").unwrap();
    labels.replace(a, "b").unwrap();
    assert_eq!(["a", "b", "c"].map(|value| labels.find(&value)), [Some(c), Some(a), None]);
    labels.replace(a, "d").unwrap();
    assert_eq!(["a", "b", "d"].map(|value| labels.intern(value).unwrap()), [c, b, a]);
    assert_eq!(labels.len(), 3);
    for none in [NextHop::NONE, NextHop(4), NextHop(u32::MAX)] {
        let error = labels.replace(none, "e").unwrap_err();
        assert_eq!(error.to_string(), format!("index {none} has no label"));
    }
}

#[test]
fn labels_without_a_table_stay_until_they_are_released() {
    let labels = Labels::new();
    let [a, _] = ["a", "b"].map(|value| labels.intern(value).unwrap());
    assert_eq!(labels.intern("a"), Ok(a));
    labels.release(a);
    assert_eq!((labels.len(), labels.find(&"a")), (2, Some(a)));
    labels.release(a);
    labels.release(a);
    assert_eq!((labels.len(), labels.find(&"a")), (1, None));
    until(|| {
        labels.reclaim();
        labels.get(a).is_none()
    });
    assert_eq!(labels.intern("c"), Ok(a));
}

/// Waits for something that other threads' pins may delay.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("it did not happen");
}

/// A value that counts how many there are.
struct Counted<'c>(u8, &'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(value: u8, count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(value, count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Counted<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Counted<'_> {}

impl Hash for Counted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Values collide.
        (self.0 / 2).hash(state);
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Interns a value for a route, and inserts the route.
    Insert(u8, u8),
    /// Interns a value, and keeps the index.
    Intern(u8),
    /// Inserts a route to an index that was kept.
    InsertKept(u8),
    Release,
    Withdraw(u8),
    /// Inserts all routes twice in one call: first all to one value, then each to one of these.
    Apply(u8, [u8; 4]),
    /// An update that fails.
    Fail(u8, u8),
    Replace(u8, u8),
    Enter,
    Leave,
    Reclaim,
    /// Counts and finds labels. Until then what ended may come back by its value.
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u8..4, 0u8..6).prop_map(|(at, value)| Step::Insert(at, value)),
        2 => (0u8..6).prop_map(Step::Intern),
        2 => (0u8..4).prop_map(Step::InsertKept),
        2 => Just(Step::Release),
        5 => (0u8..4).prop_map(Step::Withdraw),
        2 => (0u8..6, any::<[u8; 4]>()).prop_map(|(all, each)| Step::Apply(all, each.map(|value| value % 6))),
        1 => (0u8..4, 0u8..6).prop_map(|(at, value)| Step::Fail(at, value)),
        3 => (0u8..4, 0u8..6).prop_map(|(at, value)| Step::Replace(at, value)),
        2 => Just(Step::Enter),
        2 => Just(Step::Leave),
        2 => Just(Step::Reclaim),
        5 => Just(Step::Check),
    ]
}

fn prefix(at: u8) -> Prefix<V4> {
    Prefix::new(V4(u32::from(at) << 24), 8).unwrap()
}

/// The right answers: a simple model of labels.
#[derive(Default)]
struct Right {
    routes: [Option<NextHop>; 4],
    kept: Vec<NextHop>,
    values: BTreeMap<NextHop, u8>,
}

impl Right {
    fn used(&self) -> BTreeSet<NextHop> {
        self.routes.iter().flatten().chain(&self.kept).copied().collect()
    }

    fn insert(&mut self, at: u8, next_hop: NextHop, value: u8) {
        self.interned(next_hop, value);
        self.routes[usize::from(at)] = Some(next_hop);
    }

    /// An index that is used has the value that was interned; another one has it now.
    fn interned(&mut self, next_hop: NextHop, value: u8) {
        if self.used().contains(&next_hop) {
            assert_eq!(self.values[&next_hop], value);
        }
        self.values.insert(next_hop, value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024 / u32::try_from(wirespeed_image::rounds::stride()).unwrap(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn labels_live_as_long_as_they_are_used_or_seen(steps in vec(step(), 1..60)) {
        let count = AtomicUsize::new(0);
        let labels = Labels::new();
        let intern = |value| labels.intern(Counted::new(value, &count)).unwrap();
        let mut table = Ipv4Table::builder().labels(&labels).build().unwrap();
        let mut right = Right::default();
        let mut guards = Vec::new();
        for step in steps {
            let is_check = matches!(step, Step::Check);
            match step {
                Step::Insert(at, value) => {
                    let next_hop = intern(value);
                    table.insert(prefix(at), next_hop).unwrap();
                    right.insert(at, next_hop, value);
                }
                Step::Intern(value) => {
                    let next_hop = intern(value);
                    right.interned(next_hop, value);
                    right.kept.push(next_hop);
                }
                Step::InsertKept(at) => {
                    if let Some(next_hop) = right.kept.pop() {
                        table.insert(prefix(at), next_hop).unwrap();
                        right.routes[usize::from(at)] = Some(next_hop);
                    }
                }
                Step::Release => {
                    if let Some(next_hop) = right.kept.pop() {
                        labels.release(next_hop);
                    }
                }
                Step::Withdraw(at) => {
                    table.remove(prefix(at)).unwrap();
                    right.routes[usize::from(at)] = None;
                }
                Step::Apply(all, each) => {
                    let each = (0..).zip(each);
                    let to: Vec<_> = each.clone().map(|(at, _)| (at, all)).chain(each).collect();
                    let mut updates = Vec::new();
                    for &(at, value) in &to {
                        let next_hop = intern(value);
                        right.interned(next_hop, value);
                        // Kept until the call is over.
                        right.kept.push(next_hop);
                        updates.push(wirespeed_fib::Update::announce(prefix(at), next_hop));
                    }
                    table.apply(&updates).unwrap();
                    for (&(at, value), next_hop) in to.iter().zip(right.kept.split_off(right.kept.len() - to.len())) {
                        right.insert(at, next_hop, value);
                    }
                }
                Step::Fail(at, value) => {
                    let next_hop = intern(value);
                    right.interned(next_hop, value);
                    right.kept.push(next_hop);
                    let updates = [next_hop, NextHop::NONE].map(|to| wirespeed_fib::Update::announce(prefix(at), to));
                    prop_assert!(table.apply(&updates).is_err());
                }
                Step::Replace(at, value) => {
                    if let Some(next_hop) = right.routes[usize::from(at)] {
                        labels.replace(next_hop, Counted::new(value, &count)).unwrap();
                        right.values.insert(next_hop, value);
                        for (_, seen) in &mut guards {
                            let seen: &mut BTreeMap<NextHop, u8> = seen;
                            seen.entry(next_hop).and_modify(|seen| *seen = value);
                        }
                    }
                }
                Step::Enter => {
                    let seen = right.used().iter().map(|&next_hop| (next_hop, right.values[&next_hop])).collect();
                    guards.push((labels.enter(), seen));
                }
                Step::Leave => _ = guards.pop(),
                Step::Reclaim => labels.reclaim(),
                Step::Check => {}
            }
            // A guard resolves what could be looked up when it was taken, ended or not, also replaced.
            for (guard, seen) in &guards {
                for (&next_hop, &value) in seen {
                    prop_assert_eq!(guard.get(next_hop).map(|label| label.0), Some(value));
                }
            }
            let used = right.used();
            for next_hop in &used {
                prop_assert_eq!(labels.get(*next_hop).map(|label| label.0), Some(right.values[next_hop]));
            }
            if !is_check {
                continue;
            }
            prop_assert_eq!(labels.len(), used.len());
            for value in 0..6 {
                let first = used.iter().find(|next_hop| right.values[next_hop] == value);
                prop_assert_eq!(labels.find(&Counted::new(value, &count)), first.copied());
            }
        }
        drop(guards);
        until(|| {
            labels.reclaim();
            count.load(Ordering::Relaxed) == right.used().len()
        });
        drop(table);
        right.kept.iter().for_each(|&next_hop| labels.release(next_hop));
        until(|| {
            labels.reclaim();
            count.load(Ordering::Relaxed) == 0
        });
        prop_assert!(labels.is_empty());
    }
}
