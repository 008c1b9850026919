//! Checks lanes of names, and times their updates. [`crate::contest`] times their lookups.

use std::time::{Duration, Instant};

use wirespeed_namelookup::{NameTable, NameUpdate};

use super::OfNames;
use super::data::Trace;
use super::update::Part;
use crate::contest::{Updates, is_right};
use crate::table::{self, Mode};

/// A table of names that takes part.
pub type Lane = Box<dyn table::Lane<OfNames>>;

/// Drops every lane that gives one wrong result, batched or one by one, and says for how many names.
pub fn keep_right(lanes: &mut Vec<Lane>, batch: usize, trace: &Trace) {
    for mode in [Mode::Batch(batch), Mode::Single] {
        let is_right = |lane: &Lane| is_right(&**lane, mode, trace.names.names(), &trace.expected, "names");
        lanes.retain(is_right);
    }
}

/// Updates a second of every lane in each part, `batch` updates a call. Of each part `warm_up` calls in a
/// hundred are not timed: what the lanes before it left in the caches is not its own. A lane that takes no
/// updates, or is past `limit` in all, gets no more.
pub fn race_updates(
    lanes: &mut [Lane],
    parts: &[Part],
    batch: usize,
    warm_up: usize,
    limit: Duration,
) -> Vec<Vec<Updates>> {
    let mut results = vec![Vec::with_capacity(parts.len()); lanes.len()];
    let mut left = vec![limit; lanes.len()];
    for part in parts {
        for ((lane, results), left) in lanes.iter_mut().zip(&mut results).zip(&mut left) {
            results.push(run_updates(lane, &part.updates, batch, warm_up, left));
        }
    }
    results
}

/// Updates a second of one lane in one part.
fn run_updates(
    lane: &mut Lane,
    updates: &[NameUpdate],
    batch: usize,
    warm_up: usize,
    left: &mut Duration,
) -> Updates {
    let untimed = updates.len().div_ceil(batch) * warm_up / 100;
    let (begun, mut start) = (Instant::now(), Instant::now());
    let (mut applied, mut timed) = (0, 0);
    for (call, updates) in updates.chunks(batch).enumerate() {
        if call == untimed {
            start = Instant::now();
        }
        if begun.elapsed() >= *left || !lane.update(updates) {
            *left = Duration::ZERO;
            break;
        }
        applied += updates.len();
        timed += if call >= untimed { updates.len() } else { 0 };
    }
    let seconds = start.elapsed().as_secs_f64();
    *left = left.saturating_sub(begun.elapsed());
    let rates = if timed > 0 { vec![timed as f64 / seconds] } else { Vec::new() };
    Updates { rates, applied }
}

/// Whether a lane finds all names of updates, and what is above them, as the table after the updates has
/// them.
pub fn agrees_after(lane: &dyn table::Lane<OfNames>, names: &NameTable, parts: &[Part]) -> bool {
    let updates = parts.iter().flat_map(|part| &part.updates);
    let batch = updates.map(NameUpdate::name).collect::<wirespeed_namelookup::NameBatch>();
    let found = lane.results(Mode::Batch(1024), batch.names());
    batch.names().iter().zip(found).all(|(name, found)| names.lookup(name).result == found)
}
