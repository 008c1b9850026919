//! Checks lanes of rules, then times them in interleaved rounds, as [`crate::contest`] does for addresses.

use std::time::{Duration, Instant};

use super::data::Set;
use super::lane::{Lane, Mode};
use super::lineup::is_scan;
use super::trace::{Trace, Tuples};
use crate::contest::Plan;
use crate::report::{Row, Setting};

/// Tuples that a scan of all rules is held against.
const SCANNED: usize = 1 << 13;

/// A set without a trace, for the rows of a record: rules stand where prefixes do, and masks where next hops
/// do.
pub fn setting(set: &Set) -> Setting {
    Setting {
        table: set.name.clone(),
        prefixes: set.rules.len(),
        next_hops: set.rules.classes().len(),
        trace: String::new(),
        items: 0,
        seed: 0,
        checksum: None,
    }
}

/// A set with a trace, for the rows of a record.
pub fn setting_on(setting: &Setting, trace: &Trace) -> Setting {
    let sum = trace.right.iter().fold(0u64, |sum, &number| sum.wrapping_add(u64::from(number)));
    Setting {
        trace: trace.name.to_owned(),
        items: trace.len(),
        seed: trace.seed,
        checksum: Some(sum),
        ..setting.clone()
    }
}

/// What was measured of a lane.
pub fn row(
    setting: &Setting,
    lane: &Lane,
    what: &'static str,
    batch: usize,
    rounds: Vec<f64>,
    unit: &'static str,
) -> Row {
    Row {
        setting: setting.clone(),
        engine: lane.name.clone(),
        what,
        batch,
        rounds,
        unit,
        memory: lane.memory,
        build_seconds: lane.build_seconds,
        ratio: None,
    }
}

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

/// Tuples a second of every lane in every round, by lane.
pub fn race(lanes: &mut [Lane], mode: Mode, trace: &Trace, plan: Plan) -> Vec<Vec<f64>> {
    let tuples = trace.tuples();
    let mut rates = vec![Vec::with_capacity(plan.rounds); lanes.len()];
    let mut places = vec![0; lanes.len()];
    for _ in 0..plan.rounds {
        for ((lane, place), rates) in lanes.iter_mut().zip(&mut places).zip(&mut rates) {
            run_for(lane, mode, tuples, place, plan.warm_up);
            rates.push(run_for(lane, mode, tuples, place, plan.slice));
        }
    }
    rates
}

/// Runs on from `place` for about `time`, round and round; tuples a second.
fn run_for(lane: &mut Lane, mode: Mode, tuples: Tuples<'_>, place: &mut usize, time: Duration) -> f64 {
    // A scan of many rules takes as long for one batch as others for the whole slice.
    let stretch = match (mode, is_scan(&lane.name)) {
        (Mode::Single, true) => 64,
        (Mode::Single, false) => 1 << 12,
        (Mode::Batch(batch), true) => batch,
        (Mode::Batch(batch), false) => batch * (1usize << 12).div_ceil(batch),
    };
    let (start, mut done) = (Instant::now(), 0);
    loop {
        let count = stretch.min(tuples.len() - *place);
        lane.run(mode, tuples.part(*place, count));
        done += count;
        *place = if *place + count == tuples.len() { 0 } else { *place + count };
        let elapsed = start.elapsed();
        if elapsed >= time {
            return done as f64 / elapsed.as_secs_f64();
        }
    }
}
