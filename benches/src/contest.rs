//! Checks lanes, then times them in interleaved rounds.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use wirespeed_fib::{Address, NextHop, Rib, Update};

use crate::table::{Lane, Mode};
use crate::trace::Trace;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds; each lane is timed once in each.
    pub rounds: usize,
    /// What a lane runs for in a round.
    pub slice: Duration,
    /// What it runs for before that, untimed: what the lanes before it left in the caches is not its own.
    pub warm_up: Duration,
}

/// A lane that answered wrongly.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Who.
    pub lane: String,
    /// How many of the keys.
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
    lane: &mut dyn Lane<A>,
    mode: Mode,
    trace: &Trace<A>,
    expected: &[NextHop],
) -> Result<(), Wrong> {
    lane.select();
    let answers = lane.answers(mode, trace);
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

/// A table that is timed on traces of a kind.
pub trait Racer<T: ?Sized> {
    /// Gets ready for [`run`](Self::run), where several lanes share a table.
    fn select(&mut self) {}

    /// Keys between two looks at the clock, in calls of one key: few enough that the slowest table looks in
    /// time, enough that looking costs nothing.
    fn stretch(&self, mode: Mode) -> usize;

    /// Looks up a part of a trace and drops the results: what is timed.
    fn run(&mut self, mode: Mode, trace: &T, keys: Range<usize>);
}

/// Keys a second of every lane in every round, by lane, on a trace of `len` keys.
pub fn race<T: ?Sized, L: Racer<T>>(
    lanes: &mut [L],
    mode: Mode,
    (trace, len): (&T, usize),
    plan: Plan,
) -> Vec<Vec<f64>> {
    let mut rates = vec![Vec::with_capacity(plan.rounds); lanes.len()];
    let mut places = vec![0; lanes.len()];
    for _ in 0..plan.rounds {
        for ((lane, place), rates) in lanes.iter_mut().zip(&mut places).zip(&mut rates) {
            lane.select();
            run_for(lane, mode, (trace, len), place, plan.warm_up);
            rates.push(run_for(lane, mode, (trace, len), place, plan.slice));
        }
    }
    rates
}

/// Runs on from `place` for about `time`, round and round the trace; keys a second.
fn run_for<T: ?Sized, L: Racer<T>>(
    lane: &mut L,
    mode: Mode,
    (trace, len): (&T, usize),
    place: &mut usize,
    time: Duration,
) -> f64 {
    let stretch = match mode {
        Mode::Single => lane.stretch(mode),
        Mode::Batch(batch) => lane.stretch(mode).next_multiple_of(batch),
    };
    let (start, mut keys) = (Instant::now(), 0);
    loop {
        let to = len.min(*place + stretch);
        lane.run(mode, trace, *place..to);
        keys += to - *place;
        *place = if to == len { 0 } else { to };
        let elapsed = start.elapsed();
        if elapsed >= time {
            return keys as f64 / elapsed.as_secs_f64();
        }
    }
}

impl<A: Address> Racer<Trace<A>> for Box<dyn Lane<A>> {
    fn select(&mut self) {
        Lane::select(self.as_ref());
    }

    fn stretch(&self, _: Mode) -> usize {
        1 << 14
    }

    fn run(&mut self, mode: Mode, trace: &Trace<A>, keys: Range<usize>) {
        Lane::run(self.as_mut(), mode, trace, keys.start, keys.end);
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

/// What a lane made of a stream of updates.
#[derive(Clone, Debug)]
pub struct Updates {
    /// Updates a second, by round.
    pub rates: Vec<f64>,
    /// How many were applied.
    pub applied: usize,
}
