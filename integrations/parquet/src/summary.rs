//! What the work came to.

use std::fmt;
use std::time::Instant;

use crate::columns::Key;
use crate::keys::State;

/// Counts of all rows so far.
pub(crate) struct Summary {
    began: Instant,
    pub(crate) rows: u64,
    /// The counts of each key.
    keys: Vec<Count>,
}

#[derive(Clone)]
struct Count {
    name: String,
    looked_up: u64,
    matched: u64,
    wrong: u64,
}

impl Summary {
    pub(crate) fn new(keys: &[Key]) -> Self {
        let count = |key: &Key| Count { name: key.column.name.clone(), looked_up: 0, matched: 0, wrong: 0 };
        Self { began: Instant::now(), rows: 0, keys: keys.iter().map(count).collect() }
    }

    /// Counts the rows of a key. Returns the first that is wrong.
    pub(crate) fn add(&mut self, key: usize, states: impl Iterator<Item = State>) -> Option<usize> {
        let (count, mut first) = (&mut self.keys[key], None);
        for (row, state) in states.enumerate() {
            count.looked_up += u64::from(matches!(state, State::Key | State::Matched));
            count.matched += u64::from(state == State::Matched);
            count.wrong += u64::from(state == State::Wrong);
            if state == State::Wrong {
                first = first.or(Some(row));
            }
        }
        first
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.began.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // a rate
        let rate = (self.rows as f64 / seconds.max(1e-3)) as u64;
        write!(f, "{} rows in {seconds:.1} s, {rate} a second", self.rows)?;
        for Count { name, looked_up, matched, .. } in &self.keys {
            write!(f, "\n  {name}: {looked_up} looked up, {matched} of them matched")?;
        }
        for Count { name, wrong, .. } in self.keys.iter().filter(|count| count.wrong > 0) {
            write!(f, "\n  {name}: {wrong} wrong values passed through")?;
        }
        Ok(())
    }
}
