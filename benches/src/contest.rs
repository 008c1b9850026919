//! Checks lanes, then times them in interleaved rounds.

use std::fmt;
use std::time::{Duration, Instant};

use wirespeed_fib::{Address, NextHop, Rib, Update};

use crate::batch::Batch;
use crate::table::{Contested, Lane, Mode};
use crate::trace::Trace;

/// The length and the number of rounds.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds; each lane is timed once in each.
    pub rounds: usize,
    /// The time that a lane runs for in a round.
    pub slice: Duration,
    /// The time that it runs for before that, untimed: what the lanes before it left in the caches is not its
    /// own.
    pub warm_up: Duration,
}

/// A lane that answered wrongly.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// The name of the lane.
    pub lane: String,
    /// The number of keys.
    pub count: usize,
    /// The first of them, with the right and the given next hop.
    pub first: (String, NextHop, NextHop),
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, count, first: (key, right, given) } = self;
        write!(
            f,
            "{lane} is wrong for {count} keys and is not timed: {key} has next hop {right}, it says {given}"
        )
    }
}

/// The Rib's own answers.
pub fn expected<A: Address>(rib: &Rib<A>, trace: &Trace<A>) -> Vec<NextHop> {
    let answer = |&key: &A| rib.longest_match(key).map_or(NextHop::NONE, |(_, next_hop)| next_hop);
    trace.keys().iter().map(answer).collect()
}

/// Holds every answer of a lane against the Rib's.
pub fn check<A: Address>(
    lane: &dyn Lane<A>,
    mode: Mode,
    trace: &Trace<A>,
    expected: &[NextHop],
) -> Result<(), Wrong> {
    lane.select();
    let answers = lane.results(mode, trace.all());
    let mut wrong = (0..expected.len()).filter(|&i| answers[i] != expected[i]);
    match wrong.next() {
        None => Ok(()),
        Some(i) => Err(Wrong {
            lane: lane.costs().name.to_owned(),
            count: 1 + wrong.count(),
            first: (trace.keys()[i].to_string(), expected[i], answers[i]),
        }),
    }
}

/// Whether a lane gives the right results; says so where it doesn't. `what` are the keys.
pub fn is_right<D: Contested<Result = u32>>(
    lane: &dyn Lane<D>,
    mode: Mode,
    keys: D::Keys<'_>,
    right: &[u32],
    what: &str,
) -> bool {
    let results = lane.results(mode, keys);
    let wrong = results.iter().zip(right).filter(|(found, right)| found != right).count();
    if wrong > 0 {
        let (name, len) = (lane.costs().name, results.len());
        eprintln!("{name} is wrong for {wrong} of {len} {what} and is not timed");
    }
    wrong == 0
}

/// Keys a second of every lane in every round, by lane.
pub fn race<D: Contested>(
    lanes: &mut [Box<dyn Lane<D>>],
    mode: Mode,
    keys: D::Keys<'_>,
    plan: Plan,
) -> Vec<Vec<f64>> {
    let mut rates = vec![Vec::with_capacity(plan.rounds); lanes.len()];
    let mut places = vec![0; lanes.len()];
    for _ in 0..plan.rounds {
        for ((lane, place), rates) in lanes.iter_mut().zip(&mut places).zip(&mut rates) {
            lane.select();
            run_for(&mut **lane, mode, keys, place, plan.warm_up);
            rates.push(run_for(&mut **lane, mode, keys, place, plan.slice));
        }
    }
    rates
}

/// Runs on from `place` for about `time`, round and round the trace; keys a second.
fn run_for<D: Contested>(
    lane: &mut dyn Lane<D>,
    mode: Mode,
    trace: D::Keys<'_>,
    place: &mut usize,
    time: Duration,
) -> f64 {
    let stretch = D::stretch(lane.costs().name, mode);
    let stretch = match mode {
        Mode::Single => stretch,
        Mode::Batch(batch) => stretch.next_multiple_of(batch),
    };
    let (start, mut keys) = (Instant::now(), 0);
    loop {
        let to = trace.len().min(*place + stretch);
        lane.run(mode, trace.part(*place..to));
        keys += to - *place;
        *place = if to == trace.len() { 0 } else { to };
        let elapsed = start.elapsed();
        if elapsed >= time {
            return keys as f64 / elapsed.as_secs_f64();
        }
    }
}

/// Updates a second of every lane, each taking `batch` updates a call, in as many parts of the whole as there
/// are rounds. A lane that takes no updates, or is past `limit` in all, gets no more; `Err` holds what it had
/// done.
pub fn race_updates<A: Address>(
    lanes: &mut [Box<dyn Lane<A>>],
    updates: &[Update<A>],
    batch: usize,
    rounds: usize,
    limit: Duration,
) -> Vec<Updates> {
    let mut results = vec![Updates { rates: Vec::new(), applied: 0 }; lanes.len()];
    let mut spent = vec![Duration::ZERO; lanes.len()];
    let part = updates.len().div_ceil(rounds).max(1);
    for part in updates.chunks(part) {
        for ((lane, result), spent) in lanes.iter_mut().zip(&mut results).zip(&mut spent) {
            if *spent >= limit {
                continue;
            }
            lane.select();
            let (start, mut done) = (Instant::now(), 0);
            for batch in part.chunks(batch) {
                if !lane.update(batch) || *spent + start.elapsed() >= limit {
                    *spent = limit;
                    break;
                }
                done += batch.len();
            }
            if done > 0 {
                result.rates.push(done as f64 / start.elapsed().as_secs_f64());
            }
            result.applied += done;
            *spent += start.elapsed();
        }
    }
    results
}

/// The result of a lane with a stream of updates.
#[derive(Clone, Debug)]
pub struct Updates {
    /// Updates a second, by round.
    pub rates: Vec<f64>,
    /// The number of updates that were applied.
    pub applied: usize,
}
