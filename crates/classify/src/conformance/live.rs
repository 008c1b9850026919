//! Live tables under concurrent readers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wirespeed_image::live::Reader;
use wirespeed_rng::Rng;
use wirespeed_table::{Engine, Lookup};

use super::{Tally, options, probes, sets};
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
    let stop = AtomicBool::new(false);
    let passes = [const { AtomicU64::new(0) }; 2];
    std::thread::scope(|scope| {
        for passes in &passes {
            let reader = live.reader();
            let (tuples, stop) = (&tuples, &stop);
            scope.spawn(move || read::<T, E>(&reader, tuples, passes, stop));
        }
        let mut rebuilt = 0;
        for round in 2..ROUNDS {
            let applied = live.apply(&turn(&rules, round)).expect("the table takes the update");
            assert!(applied.changes > rules.len());
            rebuilt += u64::from(applied.rebuilt);
            if round % 16 == 0 {
                wait_for(&passes);
            }
        }
        assert_eq!(rebuilt, live.rebuilds());
        stop.store(true, Ordering::Relaxed);
    });
    assert!(passes.iter().all(|passes| passes.load(Ordering::Relaxed) > 0), "a reader never read");
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

/// Lets every reader have a pass, so that the writer isn't done before they begin; not for long, as one may
/// have panicked.
fn wait_for(passes: &[AtomicU64; 2]) {
    let before = passes.each_ref().map(|passes| passes.load(Ordering::Relaxed));
    let end = Instant::now() + Duration::from_millis(100);
    let is_behind =
        || passes.iter().zip(before).any(|(passes, before)| passes.load(Ordering::Relaxed) == before);
    while is_behind() && Instant::now() < end {
        std::thread::yield_now();
    }
}

fn read<T: Tuple, E: Engine<T>>(
    reader: &Reader<E::Table>,
    tuples: &[T],
    passes: &AtomicU64,
    stop: &AtomicBool,
) {
    let round = |result: u32| result.wrapping_sub(1) / ROUND;
    let mut found = vec![0; tuples.len()];
    while !stop.load(Ordering::Relaxed) {
        let table = reader.enter();
        table.lookup_batch(tuples, &mut found);
        let now = round(found[0]);
        assert!(found.iter().all(|&result| result != 0 && round(result) == now), "mixed: {found:?}");
        for (tuple, &found) in tuples.iter().zip(&found).step_by(5) {
            assert!(table.lookup(tuple) == found, "the state changed under a reader");
        }
        drop(table);
        passes.fetch_add(1, Ordering::Relaxed);
        // The writer is to have its share of two cores, too.
        std::thread::yield_now();
    }
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
