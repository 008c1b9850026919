//! How a table takes part: [`Contestant`] is what each one implements in its own terms, [`Lane`] what a
//! contest drives.
//!
//! A contestant answers into its own type ([`Contestant::Answer`]) and reads keys in its own byte order
//! ([`Keys`]), so that no rival pays for a conversion that its users would not need.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use wirespeed_fib::{Address, NextHop, Rib, Update};

use crate::machine::heap_bytes;
use crate::report::Costs;
use crate::trace::{Keys, Trace};

/// A longest-prefix-match table of any origin.
pub trait Contestant<A: Address> {
    /// What a batch is answered in.
    type Answer: Copy + Default;

    /// The next hop that an answer stands for.
    fn next_hop(answer: Self::Answer) -> NextHop;

    /// Answers each key in the same place of `answers`.
    fn many(&self, keys: Keys<'_, A>, answers: &mut [Self::Answer]);

    /// Answers one key.
    fn one(&self, key: A) -> NextHop;

    /// Gets ready to be timed, where several lanes share a table.
    fn select(&self) {}

    /// Applies updates in order, each with a next hop; false where the table can't take any.
    fn update(&mut self, _updates: &[Update<A>]) -> bool {
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

/// The calls that keys are looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One key a call.
    Single,
    /// Batches of this many keys a call.
    Batch(usize),
}

/// A contestant with its name and what building it cost, without its type.
pub trait Lane<A: Address> {
    /// Its name, and what building it cost.
    fn costs(&self) -> Costs<'_>;

    /// Looks up `trace[from..to]` and drops the answers: the part that is timed.
    fn run(&mut self, mode: Mode, trace: &Trace<A>, from: usize, to: usize);

    /// The next hops of the whole trace.
    fn answers(&mut self, mode: Mode, trace: &Trace<A>) -> Vec<NextHop>;

    /// Gets ready for [`run`](Self::run).
    fn select(&self);

    /// Applies updates; false where the table can't take any.
    fn update(&mut self, updates: &[Update<A>]) -> bool;
}

/// Builds a contestant and makes it a lane, measuring time and memory on the way.
pub fn lane<A: Address, C: Contestant<A> + 'static>(
    name: impl Into<String>,
    rib: &Rib<A>,
    build: impl FnOnce(&Rib<A>) -> Result<C>,
) -> Result<Box<dyn Lane<A>>> {
    let before = heap_bytes();
    let start = Instant::now();
    let contestant = build(rib)?;
    let seconds = start.elapsed().as_secs_f64();
    let build_seconds = contestant.build_seconds().unwrap_or(seconds);
    let memory = contestant.memory().unwrap_or_else(|| heap_bytes().saturating_sub(before));
    Ok(Box::new(Running { name: name.into(), contestant, build_seconds, memory, answers: Vec::new() }))
}

struct Running<A: Address, C: Contestant<A>> {
    name: String,
    contestant: C,
    build_seconds: f64,
    memory: u64,
    /// One batch's answers, written over by the next batch, as in a program that handles one batch at a time.
    answers: Vec<C::Answer>,
}

impl<A: Address, C: Contestant<A>> Lane<A> for Running<A, C> {
    fn costs(&self) -> Costs<'_> {
        Costs { name: &self.name, memory: self.memory, build_seconds: self.build_seconds }
    }

    fn run(&mut self, mode: Mode, trace: &Trace<A>, from: usize, to: usize) {
        match mode {
            Mode::Single => {
                let sum = trace.keys()[from..to]
                    .iter()
                    .fold(0u32, |sum, &key| sum.wrapping_add(self.contestant.one(key).0));
                black_box(sum);
            }
            Mode::Batch(batch) => {
                self.answers.resize(batch, C::Answer::default());
                for start in (from..to).step_by(batch) {
                    let keys = trace.range(start, to.min(start + batch));
                    let answers = &mut self.answers[..keys.len()];
                    self.contestant.many(keys, answers);
                    black_box(answers);
                }
            }
        }
    }

    fn answers(&mut self, mode: Mode, trace: &Trace<A>) -> Vec<NextHop> {
        match mode {
            Mode::Single => trace.keys().iter().map(|&key| self.contestant.one(key)).collect(),
            Mode::Batch(batch) => {
                let mut all = Vec::with_capacity(trace.len());
                let mut answers = vec![C::Answer::default(); batch];
                for start in (0..trace.len()).step_by(batch) {
                    let keys = trace.range(start, trace.len().min(start + batch));
                    let answers = &mut answers[..keys.len()];
                    self.contestant.many(keys, answers);
                    all.extend(answers.iter().map(|&answer| C::next_hop(answer)));
                }
                all
            }
        }
    }

    fn select(&self) {
        self.contestant.select();
    }

    fn update(&mut self, updates: &[Update<A>]) -> bool {
        self.contestant.update(updates)
    }
}
