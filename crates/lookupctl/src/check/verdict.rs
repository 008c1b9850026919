//! What `verify` has in common, be it of addresses, names or rules: wrong answers counted, and engines told
//! one by one.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;
use wirespeed::engine::EngineName;
use wirespeed_table::BuildError;

use crate::Outcome;
use crate::memory;
use crate::number::{Grouped, counted, counted_u64};
use crate::output::Output;

/// Wrong answers that are shown.
pub(crate) const SHOWN: usize = 10;

/// What a check came to; `M` is a wrong answer.
#[derive(Clone, Debug)]
pub(crate) struct Verdict<M> {
    /// Keys that were looked up.
    pub(crate) checked: u64,
    /// How many answers were wrong.
    pub(crate) mismatches: u64,
    /// The first of these.
    pub(crate) first: Vec<M>,
}

impl<M> Default for Verdict<M> {
    fn default() -> Self {
        Self { checked: 0, mismatches: 0, first: Vec::new() }
    }
}

impl<M: Ord> Verdict<M> {
    /// Counts a wrong answer.
    pub(crate) fn wrong(&mut self, mismatch: impl FnOnce() -> M) {
        self.mismatches += 1;
        if self.first.len() < SHOWN {
            self.first.push(mismatch());
        }
    }

    /// What parts come to together.
    pub(crate) fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = parts.into_iter().fold(Self::default(), |mut sum, part| {
            sum.checked += part.checked;
            sum.mismatches += part.mismatches;
            sum.first.extend(part.first);
            sum
        });
        sum.first.sort();
        sum.first.truncate(SHOWN);
        sum
    }
}

/// What one engine came to in one state.
pub(crate) trait Report: Serialize {
    /// How many answers were wrong.
    fn mismatches(&self) -> u64;

    /// Writes it for people.
    fn print(&self, output: &mut Output) -> Result<()>;
}

/// Checks engines and tells what each came to. Where there are several, one that refuses the table is not
/// checked, and that is said: some are for small tables.
pub(crate) fn tell<R: Report>(
    engines: &[EngineName],
    json: bool,
    check: impl Fn(EngineName) -> Result<Vec<R>>,
) -> Result<Outcome> {
    let mut output = Output::new();
    let mut outcome = Outcome::Done;
    let mut refused = 0;
    for &engine in engines {
        let reports = match check(engine) {
            Err(error) if engines.len() > 1 && error.downcast_ref::<BuildError>().is_some() => {
                eprintln!("{engine}: not checked: {}", memory::as_asked(&format!("{error:#}")));
                refused += 1;
                continue;
            }
            reports => reports?,
        };
        for report in reports {
            if report.mismatches() > 0 {
                outcome = Outcome::Differs;
            }
            if json { output.json(&report)? } else { report.print(&mut output)? }
        }
    }
    output.finish()?;
    if refused == engines.len() {
        bail!("no engine was checked");
    }
    Ok(outcome)
}

/// The line of a report: `acta on the GPU: 5 entries after 2 updates, 100,077 names: all right (0.1 s)`.
pub(crate) struct Line<'a> {
    pub(crate) engine: &'a str,
    pub(crate) is_on_gpu: bool,
    /// Bytes of each key that went there, if the table decides that.
    pub(crate) key_bytes: Option<usize>,
    /// Entries of the table: how many, and one's name.
    pub(crate) table: (u64, &'a str),
    pub(crate) updates: usize,
    /// Keys that were looked up: how many, and one's name.
    pub(crate) keys: (u64, &'a str),
    pub(crate) mismatches: u64,
    pub(crate) seconds: f64,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, is_on_gpu, key_bytes, table, updates, keys, mismatches, seconds } = self;
        f.write_str(engine)?;
        if *is_on_gpu {
            f.write_str(" on the GPU")?;
        }
        if let Some(bytes) = key_bytes {
            write!(f, ", keys of {bytes} bytes")?;
        }
        write!(f, ": {}", counted_u64(table.0, table.1))?;
        if *updates > 0 {
            write!(f, " after {}", counted(*updates, "update"))?;
        }
        write!(f, ", {}: ", counted_u64(keys.0, keys.1))?;
        match mismatches {
            0 => f.write_str("all right")?,
            _ => write!(f, "{} WRONG", Grouped(*mismatches))?,
        }
        write!(f, " ({seconds:.1} s)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_answers_of_all_parts_are_kept() {
        let part = |from: u32| {
            let mut part = Verdict { checked: 1_000, ..Verdict::default() };
            (from..from + 30).rev().for_each(|key| part.wrong(|| key));
            part
        };
        let sum = Verdict::sum([part(500), part(100)]);
        assert_eq!((sum.checked, sum.mismatches), (2_000, 60));
        assert_eq!(sum.first, (120..130).collect::<Vec<_>>());
    }

    #[test]
    fn a_line_says_what_is_not_usual() {
        let mut line = Line {
            engine: "acta",
            is_on_gpu: false,
            key_bytes: None,
            table: (5, "entry"),
            updates: 0,
            keys: (100_077, "name"),
            mismatches: 0,
            seconds: 0.06,
        };
        assert_eq!(line.to_string(), "acta: 5 entries, 100,077 names: all right (0.1 s)");
        (line.is_on_gpu, line.key_bytes) = (true, Some(3));
        (line.updates, line.mismatches) = (2_000, 1_234);
        let all = "acta on the GPU, keys of 3 bytes: 5 entries after 2,000 updates, 100,077 names: 1,234 WRONG (0.1 s)";
        assert_eq!(line.to_string(), all);
        (line.is_on_gpu, line.key_bytes, line.updates, line.mismatches) = (false, None, 1, 0);
        (line.table.0, line.keys.0) = (1, 1);
        assert_eq!(line.to_string(), "acta: 1 entry after 1 update, 1 name: all right (0.1 s)");
    }
}
