//! How a table takes part: [`Contestant`] is what each one implements in its own terms, [`Lane`] what a
//! contest drives. Both are for tables of any domain ([`Contested`]).
//!
//! A contestant answers into its own type ([`Contestant::Answer`]) and reads keys in its own form
//! ([`Contested::Keys`]), so that no rival pays for a conversion that its users would not need.

use std::fmt::Debug;
use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use wirespeed_fib::{Address, NextHop, Rib, Update};

use crate::batch::Batch;
use crate::machine::heap_bytes;
use crate::report::Costs;
use crate::trace::Keys;

/// A kind of table that contests are held on: addresses of a family, names or rules.
pub trait Contested: 'static {
    /// The data that tables are built from.
    type Source;
    /// A change of a table.
    type Update;
    /// One key.
    type Key<'k>: Copy;
    /// The keys of a trace or of a part of it, as contestants read them.
    type Keys<'k>: Batch<Key = Self::Key<'k>>;
    /// The result of a key.
    type Result: Copy + PartialEq + Debug;

    /// A result as a number.
    fn number(result: Self::Result) -> u32;

    /// Keys between two looks at the clock, in calls of one key: few enough that the slowest table looks in
    /// time, enough that looking costs nothing. A lane may need less.
    fn stretch(lane: &str, mode: Mode) -> usize {
        let _ = (lane, mode);
        1 << 12
    }
}

impl<A: Address> Contested for A {
    type Source = Rib<A>;
    type Update = Update<A>;
    type Key<'k> = A;
    type Keys<'k> = Keys<'k, A>;
    type Result = NextHop;

    fn number(next_hop: NextHop) -> u32 {
        next_hop.0
    }

    fn stretch(_: &str, _: Mode) -> usize {
        1 << 14
    }
}

/// A table of any origin.
pub trait Contestant<D: Contested> {
    /// An element of the answer to a batch.
    type Answer: Copy + Default;

    /// The result that an answer stands for.
    fn result(answer: Self::Answer) -> D::Result
    where
        Self: Sized;

    /// Answers each key in the same place of `answers`.
    fn many(&self, keys: D::Keys<'_>, answers: &mut [Self::Answer]);

    /// Answers one key.
    fn one(&self, key: D::Key<'_>) -> D::Result;

    /// Gets ready to be timed, where several lanes share a table.
    fn select(&self) {}

    /// Applies updates in order, each with a next hop; false where the table can't take any.
    fn update(&mut self, _updates: &[D::Update]) -> bool {
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

/// The part of a [`Contestant`] that says that its answers are results as they are.
macro_rules! answers_are_results {
    ($result:ty) => {
        type Answer = $result;

        #[inline]
        fn result(answer: $result) -> $result {
            answer
        }
    };
}
pub(crate) use answers_are_results;

/// The part of a [`Contestant`] for a table that only looks up one key at a time: batches are a loop.
macro_rules! one_by_one {
    ($domain:ty) => {
        $crate::table::answers_are_results!(<$domain as $crate::table::Contested>::Result);

        fn many(
            &self,
            keys: <$domain as $crate::table::Contested>::Keys<'_>,
            answers: &mut [<$domain as $crate::table::Contested>::Result],
        ) {
            for (answer, key) in answers.iter_mut().zip($crate::batch::Batch::each(keys)) {
                *answer = self.one(key);
            }
        }
    };
}
pub(crate) use one_by_one;

/// The calls that keys are looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One key a call.
    Single,
    /// Batches of this many keys a call.
    Batch(usize),
}

/// A contestant with its name and what building it cost, without its type.
pub trait Lane<D: Contested> {
    /// Its name, and what building it cost.
    fn costs(&self) -> Costs<'_>;

    /// Looks up keys and drops the answers: the part that is timed.
    fn run(&mut self, mode: Mode, keys: D::Keys<'_>);

    /// The results of keys.
    fn results(&self, mode: Mode, keys: D::Keys<'_>) -> Vec<D::Result>;

    /// Gets ready for [`run`](Self::run).
    fn select(&self);

    /// Applies updates; false where the table can't take any.
    fn update(&mut self, updates: &[D::Update]) -> bool;
}

/// Builds a contestant and makes it a lane, measuring time and memory on the way.
pub fn lane<D: Contested, C: Contestant<D> + 'static>(
    name: impl Into<String>,
    source: &D::Source,
    build: impl FnOnce(&D::Source) -> Result<C>,
) -> Result<Box<dyn Lane<D>>> {
    let before = heap_bytes();
    let start = Instant::now();
    let contestant = build(source)?;
    let seconds = start.elapsed().as_secs_f64();
    let build_seconds = contestant.build_seconds().unwrap_or(seconds);
    let memory = contestant.memory().unwrap_or_else(|| heap_bytes().saturating_sub(before));
    let running: Running<D, C> =
        Running { name: name.into(), contestant, build_seconds, memory, answers: Vec::new() };
    Ok(Box::new(running))
}

struct Running<D: Contested, C: Contestant<D>> {
    name: String,
    contestant: C,
    build_seconds: f64,
    memory: u64,
    /// One batch's answers, written over by the next batch, as in a program that handles one batch at a time.
    answers: Vec<C::Answer>,
}

impl<D: Contested, C: Contestant<D>> Lane<D> for Running<D, C> {
    fn costs(&self) -> Costs<'_> {
        Costs { name: &self.name, memory: self.memory, build_seconds: self.build_seconds }
    }

    fn run(&mut self, mode: Mode, keys: D::Keys<'_>) {
        match mode {
            Mode::Single => {
                let one = |sum: u32, key| sum.wrapping_add(D::number(self.contestant.one(key)));
                black_box(keys.each().fold(0, one));
            }
            Mode::Batch(batch) => {
                self.answers.resize(batch, C::Answer::default());
                for start in (0..keys.len()).step_by(batch) {
                    let part = keys.part(start..keys.len().min(start + batch));
                    let answers = &mut self.answers[..part.len()];
                    self.contestant.many(part, answers);
                    black_box(answers);
                }
            }
        }
    }

    fn results(&self, mode: Mode, keys: D::Keys<'_>) -> Vec<D::Result> {
        match mode {
            Mode::Single => keys.each().map(|key| self.contestant.one(key)).collect(),
            Mode::Batch(batch) => {
                let mut all = Vec::with_capacity(keys.len());
                let mut answers = vec![C::Answer::default(); batch];
                for start in (0..keys.len()).step_by(batch) {
                    let part = keys.part(start..keys.len().min(start + batch));
                    let answers = &mut answers[..part.len()];
                    self.contestant.many(part, answers);
                    all.extend(answers.iter().map(|&answer| C::result(answer)));
                }
                all
            }
        }
    }

    fn select(&self) {
        self.contestant.select();
    }

    fn update(&mut self, updates: &[D::Update]) -> bool {
        self.contestant.update(updates)
    }
}
