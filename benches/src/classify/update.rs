//! Updates: rules that go and come back, and rules that change places, the same for every lane.
//!
//! A turn is forth and back, so that a lane that took all turns has the rules that it began with, and any
//! number of turns can be timed. What is in one call is of different rules: a rule that goes and comes back
//! in one call would be no change at all.

use std::time::{Duration, Instant};

use wirespeed_classify::{Ipv4Tuple, RuleSet, RuleUpdate};
use wirespeed_fib::synth::rng::Rng;

use super::contest::Lane;

type Updates = Vec<RuleUpdate<Ipv4Tuple>>;

/// Updates forth, and those back.
pub struct Turn {
    /// The names of the two directions in records.
    pub names: [&'static str; 2],
    /// Their updates.
    pub ways: [Updates; 2],
}

impl Turn {
    /// Takes out at most so many rules, half of all at most, and puts them back.
    pub fn returns(rules: &RuleSet<Ipv4Tuple>, most: usize, seed: u64) -> Self {
        let numbers = drawn(rules, most, seed);
        let back = |&number: &u32| Some(RuleUpdate::Set(number, rules.rule(number)?.clone()));
        let forth = numbers.iter().map(|&number| RuleUpdate::Remove(number)).collect();
        Self { names: ["deletions", "insertions"], ways: [forth, numbers.iter().filter_map(back).collect()] }
    }

    /// Changes at most so many rules: each becomes what another one was, and then what it had been.
    pub fn changes(rules: &RuleSet<Ipv4Tuple>, most: usize, seed: u64) -> Self {
        let numbers = drawn(rules, most, seed);
        let put = |(&at, &of): (&u32, &u32)| Some(RuleUpdate::Set(at, rules.rule(of)?.clone()));
        let others = numbers.iter().skip(1).chain(numbers.first());
        let forth = numbers.iter().zip(others).filter_map(put).collect();
        let back = numbers.iter().zip(&numbers).filter_map(put).collect();
        Self { names: ["changes", "changes-back"], ways: [forth, back] }
    }

    /// The set after the way forth.
    pub fn applied(&self, rules: &RuleSet<Ipv4Tuple>) -> RuleSet<Ipv4Tuple> {
        let mut rules = rules.clone();
        for update in &self.ways[0] {
            rules.apply(update).expect("a rule of the set goes or changes");
        }
        rules
    }

    /// Updates a second of a lane each way, so many a call, over turns of about `time` in all, one at least;
    /// `None` where it refuses.
    pub fn rates(&self, lane: &mut Lane, call: usize, time: Duration) -> Option<[f64; 2]> {
        let (mut spent, mut turns, began) = ([Duration::ZERO; 2], 0u32, Instant::now());
        while turns == 0 || began.elapsed() < time {
            for (updates, spent) in self.ways.iter().zip(&mut spent) {
                let start = Instant::now();
                if !updates.chunks(call).all(|updates| lane.update(updates)) {
                    return None;
                }
                *spent += start.elapsed();
            }
            turns += 1;
        }
        let rate = |way: usize| self.ways[way].len() as f64 * f64::from(turns) / spent[way].as_secs_f64();
        Some([rate(0), rate(1)])
    }
}

/// Numbers of different rules in any order.
fn drawn(rules: &RuleSet<Ipv4Tuple>, most: usize, seed: u64) -> Vec<u32> {
    let mut numbers: Vec<u32> = rules.iter().map(|(number, _)| number.get()).collect();
    numbers.sort_unstable();
    Rng::new(seed).shuffle(&mut numbers);
    numbers.truncate(most.min(rules.len() / 2).max(1));
    numbers
}
