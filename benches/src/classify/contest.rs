//! Checks lanes of rules. [`crate::contest`] times their lookups.

use std::ops::Range;

use super::lane::Lane;
use super::lineup::is_scan;
use super::trace::{Trace, Tuples};
use crate::contest::Racer;
use crate::table::Mode;

/// Tuples that a scan of all rules is held against.
const SCANNED: usize = 1 << 13;

/// Drops every lane that gives one wrong number, batched or one by one, and says for how many tuples. A scan
/// of all rules is held against some of them, evenly spread.
pub fn keep_right(lanes: &mut Vec<Lane>, batch: usize, trace: &Trace) {
    let some = trace.spread(SCANNED);
    for mode in [Mode::Batch(batch), Mode::Single] {
        lanes.retain(|lane| is_right(lane, mode, if is_scan(&lane.name) { &some } else { trace }));
    }
}

/// Whether a lane gives the right numbers; says so where it doesn't.
pub fn is_right(lane: &Lane, mode: Mode, trace: &Trace) -> bool {
    let numbers = lane.numbers(mode, trace.tuples());
    let wrong = numbers.iter().zip(&trace.right).filter(|(found, right)| found != right).count();
    if wrong > 0 {
        eprintln!("{} is wrong for {wrong} of {} tuples and is not timed", lane.name, numbers.len());
    }
    wrong == 0
}

impl Racer<Tuples<'_>> for Lane {
    fn stretch(&self, mode: Mode) -> usize {
        // A scan of many rules takes as long for one batch as others for the whole slice.
        match (mode, is_scan(&self.name)) {
            (Mode::Single, true) => 64,
            (Mode::Batch(batch), true) => batch,
            (_, false) => 1 << 12,
        }
    }

    fn run(&mut self, mode: Mode, tuples: &Tuples<'_>, keys: Range<usize>) {
        Self::run(self, mode, tuples.part(keys));
    }
}
