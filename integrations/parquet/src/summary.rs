//! What the work came to.

use std::fmt::Write as _;
use std::time::Instant;

use wirespeed_commands::enrich::{Answered, Versions};

use crate::columns::Key;
use crate::keys::State;
use crate::values::Values;

/// Counts of rows.
pub(crate) struct Counts {
    pub(crate) rows: u64,
    /// The counts of each key.
    keys: Vec<Count>,
}

#[derive(Clone, Copy, Default)]
struct Count {
    looked_up: u64,
    matched: u64,
    wrong: u64,
    /// Addresses of IPv4 and of IPv6 that no table has the family of. They are not among those looked up.
    others: [u64; 2],
}

impl Counts {
    /// Counts of no rows of so many keys.
    pub(crate) fn new(keys: usize) -> Self {
        Self { rows: 0, keys: vec![Count::default(); keys] }
    }

    /// Counts the rows of a key. Returns the first that is wrong.
    pub(crate) fn add(&mut self, key: usize, states: impl Iterator<Item = State>) -> Option<usize> {
        let (count, mut first) = (&mut self.keys[key], None);
        for (row, state) in states.enumerate() {
            match state {
                State::Unset => {}
                State::Key => count.looked_up += 1,
                State::Matched => {
                    count.looked_up += 1;
                    count.matched += 1;
                }
                State::OtherV4 => count.others[0] += 1,
                State::OtherV6 => count.others[1] += 1,
                State::Wrong => {
                    count.wrong += 1;
                    first = first.or(Some(row));
                }
            }
        }
        first
    }
}

/// Counts of all rows so far.
pub(crate) struct Summary {
    began: Instant,
    names: Vec<String>,
    counts: Counts,
    answered: Answered,
}

impl Summary {
    pub(crate) fn new(keys: &[Key]) -> Self {
        let names = keys.iter().map(|key| key.of.shown().to_owned()).collect();
        Self { began: Instant::now(), names, counts: Counts::new(keys.len()), answered: Answered::default() }
    }

    /// Adds the counts of more rows, and the versions of tables that answered them.
    pub(crate) fn add(&mut self, more: &Counts, tables: &Versions<Values>) {
        self.answered.add(tables, self.counts.rows);
        self.counts.rows += more.rows;
        for (sum, more) in self.counts.keys.iter_mut().zip(&more.keys) {
            sum.looked_up += more.looked_up;
            sum.matched += more.matched;
            sum.wrong += more.wrong;
            sum.others.iter_mut().zip(more.others).for_each(|(sum, more)| *sum += more);
        }
    }
}

impl Summary {
    /// The lines of the summary.
    pub(crate) fn told(&self, tables: &[String]) -> String {
        let (seconds, Counts { rows, keys }) = (self.began.elapsed().as_secs_f64(), &self.counts);
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // a rate
        let rate = (*rows as f64 / seconds.max(1e-3)) as u64;
        let mut told = format!("{rows} rows in {seconds:.1} s, {rate} a second");
        let keys = || self.names.iter().zip(keys);
        for (name, Count { looked_up, matched, others, .. }) in keys() {
            let _ = write!(told, "\n  {name}: {looked_up} looked up, {matched} of them matched");
            for (others, family) in others.iter().zip(["IPv4", "IPv6"]).filter(|(others, _)| **others > 0) {
                let _ = write!(told, "; {others} of {family}, which no table has");
            }
        }
        told += &self.answered.told(tables, *rows, "rows");
        for (name, Count { wrong, .. }) in keys().filter(|(_, count)| count.wrong > 0) {
            let _ = write!(told, "\n  {name}: {wrong} wrong values passed through");
        }
        told
    }
}
