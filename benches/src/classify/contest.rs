//! Checks lanes of rules. [`crate::contest`] times their lookups.

use super::OfRules;
use super::lineup::is_scan;
use super::trace::Trace;
use crate::contest;
use crate::table::{self, Mode};

/// A table of rules that takes part.
pub type Lane = Box<dyn table::Lane<OfRules>>;

/// Tuples that a scan of all rules is held against.
const SCANNED: usize = 1 << 13;

/// Drops every lane that gives one wrong number, batched or one by one, and says for how many tuples. A scan
/// of all rules is held against some of them, evenly spread.
pub fn keep_right(lanes: &mut Vec<Lane>, batch: usize, trace: &Trace) {
    let some = trace.spread(SCANNED);
    for mode in [Mode::Batch(batch), Mode::Single] {
        lanes.retain(|lane| is_right(&**lane, mode, if is_scan(lane.costs().name) { &some } else { trace }));
    }
}

/// Whether a lane gives the right numbers; says so where it doesn't.
pub fn is_right(lane: &dyn table::Lane<OfRules>, mode: Mode, trace: &Trace) -> bool {
    contest::is_right(lane, mode, trace.tuples(), &trace.right, "tuples")
}
