//! Checks lanes of names, then times them in interleaved rounds, as [`crate::contest`] does for addresses.

use std::time::{Duration, Instant};

use wirespeed_namelookup::{NameTable, NameUpdate, Names};

use super::data::{Table, Trace};
use super::lane::{Lane, Mode};
use super::update::Part;
use crate::contest::{Plan, Updates};
use crate::report::{Row, Setting};

/// A table without a trace, for the rows of a record.
pub fn setting(table: &Table) -> Setting {
    Setting {
        table: table.name.clone(),
        prefixes: table.names.len(),
        next_hops: table.next_hops,
        trace: String::new(),
        items: 0,
        seed: 0,
        checksum: None,
    }
}

/// A table with a trace, for the rows of a record.
pub fn setting_on(setting: &Setting, trace: &Trace) -> Setting {
    let sum = trace.expected.iter().fold(0u64, |sum, &result| sum.wrapping_add(u64::from(result)));
    Setting {
        trace: trace.name.clone(),
        items: trace.names.len(),
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

/// Drops every lane that gives one wrong result, batched or one by one, and says for how many names.
pub fn keep_right(lanes: &mut Vec<Lane>, batch: usize, trace: &Trace) {
    for mode in [Mode::Batch(batch), Mode::Single] {
        lanes.retain(|lane| {
            let results = lane.results(mode, trace.names.names());
            let wrong = results.iter().zip(&trace.expected).filter(|(found, right)| found != right).count();
            if wrong > 0 {
                eprintln!("{} is wrong for {wrong} of {} names and is not timed", lane.name, results.len());
            }
            wrong == 0
        });
    }
}

/// Names a second of every lane in every round, by lane.
pub fn race(lanes: &mut [Lane], mode: Mode, names: Names<'_>, plan: Plan) -> Vec<Vec<f64>> {
    let mut rates = vec![Vec::with_capacity(plan.rounds); lanes.len()];
    let mut places = vec![0; lanes.len()];
    for _ in 0..plan.rounds {
        for ((lane, place), rates) in lanes.iter_mut().zip(&mut places).zip(&mut rates) {
            run_for(lane, mode, names, place, plan.warm_up);
            rates.push(run_for(lane, mode, names, place, plan.slice));
        }
    }
    rates
}

/// Runs on from `place` for about `time`, round and round; names a second.
fn run_for(lane: &mut Lane, mode: Mode, names: Names<'_>, place: &mut usize, time: Duration) -> f64 {
    let stretch = match mode {
        Mode::Single => 1 << 12,
        Mode::Batch(batch) => batch * (1usize << 12).div_ceil(batch),
    };
    let (start, mut done) = (Instant::now(), 0);
    loop {
        let to = names.len().min(*place + stretch);
        lane.run(mode, names.part(*place..to));
        done += to - *place;
        *place = if to == names.len() { 0 } else { to };
        let elapsed = start.elapsed();
        if elapsed >= time {
            return done as f64 / elapsed.as_secs_f64();
        }
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
pub fn agrees_after(lane: &Lane, names: &NameTable, parts: &[Part]) -> bool {
    let updates = parts.iter().flat_map(|part| &part.updates);
    let batch = updates.map(NameUpdate::name).collect::<wirespeed_namelookup::NameBatch>();
    let found = lane.results(Mode::Batch(1024), batch.names());
    batch.names().iter().zip(found).all(|(name, found)| names.lookup(name).result == found)
}
