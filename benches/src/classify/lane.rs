//! How a table of rules takes part: [`Contestant`] is what each one implements, [`Lane`] what a contest
//! drives.
//!
//! Each is called as its users would call it, and its memory is what it says or what the heap grew by.
//! [`crate::names::lane`] does this for names.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use wirespeed_classify::{Ipv4Tuple, RuleSet, RuleUpdate};

use super::trace::Tuples;
use crate::machine::heap_bytes;
use crate::report::Costs;
use crate::table::Mode;

/// A table of rules of any origin.
pub trait Contestant {
    /// The number of the best rule that each tuple matches; 0 where none does.
    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]);

    /// The number of the best rule that one tuple matches; 0 where none does.
    fn one(&self, tuple: Tuples<'_>) -> u32 {
        let mut number = [0];
        self.many(tuple, &mut number);
        number[0]
    }

    /// Applies updates in order; false where the table can't take any.
    fn update(&mut self, _updates: &[RuleUpdate<Ipv4Tuple>]) -> bool {
        false
    }

    /// Bytes held, where the table knows better than the heap does.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Seconds that building took, where several lanes share a table that was built once.
    fn build_seconds(&self) -> Option<f64> {
        None
    }
}

/// A contestant with its name and what building it cost.
pub struct Lane {
    /// The name in tables and records.
    pub name: String,
    /// Seconds that building took.
    pub build_seconds: f64,
    /// Bytes held.
    pub memory: u64,
    contestant: Box<dyn Contestant>,
    /// One batch's numbers, written over by the next batch.
    numbers: Vec<u32>,
}

impl Lane {
    /// Its name, and what building it cost.
    pub fn costs(&self) -> Costs<'_> {
        Costs { name: &self.name, memory: self.memory, build_seconds: self.build_seconds }
    }

    /// Builds a contestant, measuring time and memory on the way.
    pub fn build<C: Contestant + 'static>(
        name: &str,
        rules: &RuleSet<Ipv4Tuple>,
        build: impl FnOnce(&RuleSet<Ipv4Tuple>) -> Result<C>,
    ) -> Result<Self> {
        let (before, start) = (heap_bytes(), Instant::now());
        let contestant = build(rules)?;
        let seconds = start.elapsed().as_secs_f64();
        let build_seconds = contestant.build_seconds().unwrap_or(seconds);
        let memory = contestant.memory().unwrap_or_else(|| heap_bytes().saturating_sub(before));
        let contestant = Box::new(contestant);
        Ok(Self { name: name.to_owned(), build_seconds, memory, contestant, numbers: Vec::new() })
    }

    /// Looks tuples up and drops the numbers: the part that is timed.
    pub fn run(&mut self, mode: Mode, tuples: Tuples<'_>) {
        match mode {
            Mode::Single => {
                let one = |sum: u32, tuple| sum.wrapping_add(self.contestant.one(tuple));
                black_box(tuples.chunks(1).fold(0, one));
            }
            Mode::Batch(batch) => {
                self.numbers.resize(batch, 0);
                for part in tuples.chunks(batch) {
                    let numbers = &mut self.numbers[..part.len()];
                    self.contestant.many(part, numbers);
                    black_box(numbers);
                }
            }
        }
    }

    /// The numbers of all tuples.
    pub fn numbers(&self, mode: Mode, tuples: Tuples<'_>) -> Vec<u32> {
        match mode {
            Mode::Single => tuples.chunks(1).map(|tuple| self.contestant.one(tuple)).collect(),
            Mode::Batch(batch) => {
                let mut all = vec![u32::MAX; tuples.len()];
                for (part, numbers) in tuples.chunks(batch).zip(all.chunks_mut(batch)) {
                    self.contestant.many(part, numbers);
                }
                all
            }
        }
    }

    /// Applies updates; false where the table can't take any.
    pub fn update(&mut self, updates: &[RuleUpdate<Ipv4Tuple>]) -> bool {
        self.contestant.update(updates)
    }
}
