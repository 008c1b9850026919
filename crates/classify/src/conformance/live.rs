//! Live tables under concurrent readers.

use wirespeed_rng::Rng;
use wirespeed_table::conformance::beside_readers;
use wirespeed_table::{Engine, Lookup};

use super::{OfRules, Tally, options, probes, sets};
use crate::domain::{EditRules, LiveRules};
use crate::oracle::{Expected, Right};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Rules of a round: round `r` has the numbers from `r · ROUND + 1` on.
const ROUND: u32 = 64;
/// Rounds of updates.
const ROUNDS: u32 = 400;

/// Readers on other threads see a set of updates whole or not at all, in place and across rebuilds.
///
/// Each round takes all rules of the one before out and puts its own in, under other numbers. Whatever a
/// probe finds in one state is then of one round.
pub fn live_readers<T: Tuple, E: Engine<T>>() {
    let mut rng = Rng::new(31);
    live_readers_of::<T, E>(&sets::classes(&mut rng, 12, ROUND as usize - 1));
}

/// Holds readers to rules of one's own, 63 at most, like [`live_readers`].
pub fn live_readers_of<T: Tuple, E: Engine<T>>(set: &RuleSet<T>) {
    let tally = Tally::<T, E>::new("live_readers");
    let (rules, tuples) = rules_and_probes(set);
    let first = numbered(&rules, 1);
    if tally.build(&first, "live rules").is_none() {
        return tally.finish();
    }
    let mut live = LiveRules::<T, E>::new(first, options()).expect("the table was built before");
    let round = |result: u32| result.wrapping_sub(1) / ROUND;
    let is_whole =
        |found: &[u32]| found.iter().all(|&result| result != 0 && round(result) == round(found[0]));
    let updates = (2..ROUNDS).map(|round| (rules.len() + 1, turn(&rules, round)));
    beside_readers::<T, OfRules, E>(&mut live, &tuples, is_whole, updates);
    in_turn(&mut live, &tuples);
    tally.finish();
}

/// The rules of a round, one that matches all among them, and tuples that match some.
fn rules_and_probes<T: Tuple>(set: &RuleSet<T>) -> (Vec<Rule<T>>, Vec<T>) {
    assert!(set.len() < ROUND as usize);
    let mut rules: Vec<_> = set.sorted().into_iter().map(|(_, rule)| rule.clone().with_priority(9)).collect();
    rules.resize(ROUND as usize, Rule::new(Pattern::all(), 0, 0));
    (rules, probes::around(set, 20))
}

fn numbered<T: Tuple>(rules: &[Rule<T>], round: u32) -> RuleSet<T> {
    let mut set = RuleSet::new();
    for (at, rule) in (1..).zip(rules) {
        set.insert_at(round * ROUND + at, rule.clone()).expect("a free number");
    }
    set
}

/// What turns one round into the next. Some rules come in some rounds only, and with them their classes.
fn turn<T: Tuple>(rules: &[Rule<T>], round: u32) -> Vec<RuleUpdate<T>> {
    let is_there = |at: u32| at.is_multiple_of(3) || at == ROUND || !(round + at).is_multiple_of(4);
    let comes = (1..).zip(rules).filter(|&(at, _)| is_there(at));
    let comes = comes.map(|(at, rule)| {
        RuleUpdate::Set(round * ROUND + at, rule.clone().with_priority(rule.priority() + round % 3))
    });
    let goes = (1..=ROUND).map(|at| RuleUpdate::Remove((round - 1) * ROUND + at));
    comes.chain(goes).collect()
}

/// One rule at a time, in turn: what one copy was given, the other was too.
fn in_turn<T: Tuple, E: Engine<T>>(live: &mut LiveRules<T, E>, tuples: &[T]) {
    let reader = live.reader();
    let mut numbers: Vec<_> = live.model().iter().map(|(number, _)| number.get()).collect();
    numbers.sort_unstable();
    for (at, &number) in numbers.iter().enumerate() {
        if at % 2 == 0 {
            assert!(live.remove(number).expect("the table takes the update").is_some());
        } else {
            let rule = live.model().rule(number).expect("it is there").clone();
            live.insert(rule.with_priority(50)).expect("the table takes the update");
        }
        let right = Expected::of(live.model());
        let table = reader.enter();
        assert!(tuples.iter().all(|tuple| table.lookup(tuple) == right.right(tuple)), "after update {at}");
    }
    let all: Vec<_> = live.model().iter().map(|(number, _)| RuleUpdate::Remove(number.get())).collect();
    live.apply(&all).expect("the table takes the update");
    assert!(tuples.iter().all(|tuple| reader.enter().lookup(tuple) == 0), "removed, and still found");
}
