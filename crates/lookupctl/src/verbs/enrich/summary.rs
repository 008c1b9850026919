//! What the work came to: counts, and the versions of tables that answered.

use std::fmt::Write as _;
use std::time::Instant;

use wirespeed_commands::enrich::Answered;

use super::columns::Shared;
use super::work::{Count, Done};
use crate::number::{Grouped, counted_u64};

/// Counts of all blocks so far.
pub(super) struct Summary {
    began: Instant,
    pub(super) lines: u64,
    pub(super) records: u64,
    counts: Vec<Count>,
    passed: Vec<(String, u64)>,
    answered: Answered,
}

impl Summary {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            lines: 0,
            records: 0,
            counts: Vec::new(),
            passed: Vec::new(),
            answered: Answered::default(),
        }
    }

    /// Adds a block, after those before it.
    pub(super) fn add(&mut self, done: &Done) {
        if let Some(versions) = &done.versions {
            self.answered.add(versions, self.records);
        }
        self.lines += done.lines;
        self.records += done.records;
        self.counts.resize(self.counts.len().max(done.counts.len()), Count::default());
        for (sum, count) in self.counts.iter_mut().zip(&done.counts) {
            sum.looked_up += count.looked_up;
            sum.matched += count.matched;
            sum.others.iter_mut().zip(count.others).for_each(|(sum, others)| *sum += others);
        }
        for (reason, count) in &done.passed {
            match self.passed.iter_mut().find(|(known, _)| known == reason) {
                Some((_, sum)) => *sum += count,
                None => self.passed.push((reason.clone(), *count)),
            }
        }
    }

    /// The records so far and their rate.
    pub(super) fn rate(&self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // a rate
        let rate = (self.records as f64 / seconds.max(1e-3)) as u64;
        format!("{} in {seconds:.1} s, {} a second", counted_u64(self.records, "record"), Grouped(rate))
    }

    /// The lines of the summary.
    pub(super) fn told(&self, shape: &Shared, tables: &[String]) -> String {
        let mut told = self.rate();
        // Writing to a string does not fail.
        if let Some(shape) = shape.get() {
            for (key, Count { looked_up, matched, others }) in shape.keys.iter().zip(&self.counts) {
                let (looked_up, matched) = (Grouped(*looked_up), Grouped(*matched));
                let _ = write!(told, "\n  {}: {looked_up} looked up, {matched} of them matched", key.shown());
                for (others, family) in others.iter().zip(["IPv4", "IPv6"]).filter(|(others, _)| **others > 0)
                {
                    let _ = write!(told, "; {} of {family}, which no table has", Grouped(*others));
                }
            }
        }
        told += &self.answered.told(tables, self.records, "records");
        for (reason, count) in &self.passed {
            let _ = write!(told, "\n  {} passed through: {reason}", counted_u64(*count, "wrong record"));
        }
        told
    }
}
