//! How a table of names takes part: [`Contestant`] is what each one implements, [`Lane`] what a contest
//! drives.
//!
//! Each is called as its users would call it, and its memory is what it says or what the heap grew by.
//! [`crate::table`] does this for addresses.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use wirespeed_namelookup::{Name, NameTable, NameUpdate, Names};

use crate::machine::heap_bytes;
use crate::report::Costs;
use crate::table::Mode;

/// A table of names of any origin.
pub trait Contestant {
    /// The result of the longest prefix of a name that is in the table; 0 where none is.
    fn one(&self, name: &Name) -> u32;

    /// The result of each of many names, into the same place of `results`.
    fn many(&self, names: Names<'_>, results: &mut [u32]) {
        for (name, result) in names.iter().zip(results) {
            *result = self.one(name);
        }
    }

    /// Applies updates in order; false where the table can't take any.
    fn update(&mut self, _updates: &[NameUpdate]) -> bool {
        false
    }

    /// Bytes held, where the table knows better than the heap does.
    fn memory(&self) -> Option<u64> {
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
    /// One batch's results, written over by the next batch.
    results: Vec<u32>,
}

impl Lane {
    /// Its name, and what building it cost.
    pub fn costs(&self) -> Costs<'_> {
        Costs { name: &self.name, memory: self.memory, build_seconds: self.build_seconds }
    }

    /// Builds a contestant, measuring time and memory on the way.
    pub fn build<C: Contestant + 'static>(
        name: &str,
        names: &NameTable,
        build: impl FnOnce(&NameTable) -> Result<C>,
    ) -> Result<Self> {
        let (before, start) = (heap_bytes(), Instant::now());
        let contestant = build(names)?;
        let build_seconds = start.elapsed().as_secs_f64();
        let memory = contestant.memory().unwrap_or_else(|| heap_bytes().saturating_sub(before));
        let contestant = Box::new(contestant);
        Ok(Self { name: name.to_owned(), build_seconds, memory, contestant, results: Vec::new() })
    }

    /// Looks names up and drops the results: the part that is timed.
    pub fn run(&mut self, mode: Mode, names: Names<'_>) {
        match mode {
            Mode::Single => {
                let sum = names.iter().fold(0u32, |sum, name| sum.wrapping_add(self.contestant.one(name)));
                black_box(sum);
            }
            Mode::Batch(batch) => {
                self.results.resize(batch, 0);
                for start in (0..names.len()).step_by(batch) {
                    let part = names.part(start..names.len().min(start + batch));
                    let results = &mut self.results[..part.len()];
                    self.contestant.many(part, results);
                    black_box(results);
                }
            }
        }
    }

    /// The results of all names.
    pub fn results(&self, mode: Mode, names: Names<'_>) -> Vec<u32> {
        match mode {
            Mode::Single => names.iter().map(|name| self.contestant.one(name)).collect(),
            Mode::Batch(batch) => {
                let mut all = vec![u32::MAX; names.len()];
                for (part, results) in all.chunks_mut(batch).enumerate() {
                    self.contestant.many(names.part(part * batch..part * batch + results.len()), results);
                }
                all
            }
        }
    }

    /// Applies updates; false where the table can't take any.
    pub fn update(&mut self, updates: &[NameUpdate]) -> bool {
        self.contestant.update(updates)
    }
}
