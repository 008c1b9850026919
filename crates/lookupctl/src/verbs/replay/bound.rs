//! `--latency-bound`: the highest rate that holds a bound on latency.
//!
//! Traffic does not wait for its lookups. So batches are due at fixed times, as they would come off a wire,
//! and a batch's latency counts from then: one that waits for those before it is late by that much.
//!
//! ```text
//! due       │    │    │    │    │            every batch / rate, the threads in turn
//! looked up │██   ██      ████ ██            latency = end - due
//!
//! for each plan (devices, size of batch, number of threads), then for plans of two teams:
//!                          what comes through without a bound ─► halve the gap between what holds and what does not
//! the best plans again:    for longer, lowered until the bound holds, then raised while it does ─► the best of them
//! that:                    held for --seconds in the same way. The next best plan, too, where that was lowered
//! ```
//!
//! A rate that is kept for a moment often isn't for long: p99 is made of rare events. So there is a second
//! round. Without it the size that was luckiest in short trials won (1 ms on one core: 407 M lookups/s were
//! kept where short trials said 673 M). And what disturbs the machine for a moment breaks a rate that is kept
//! else, so plans that come near the best one in short trials are in that round, too.
//!
//! More threads than a GPU needs to be busy may take turns with the one that drives it: 16 of them on 16
//! cores kept 0.2 G lookups/s within a bound, on a GPU that made 16.6 without a bound. So with a GPU, and
//! without `--threads`, fewer threads are tried, too. The cores that they leave can look up themselves: once
//! each device was tried alone, plans of two teams are, each with its part of the keys and batches of its own
//! size. The bound holds for each team.
//!
//! Steps down grow from a twentieth to two fifths, so that there is an end: first, most rates that break the
//! bound are near one that keeps it; then, a thousandth is far. Rounds have a time, after which they begin
//! nothing new, but for the first plan of the last, which goes down to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::drive::{Driven, Feeder};
use super::paced::Trial;
use super::place::Place;
use super::plan::{self, Plan};
use crate::interrupt::{Interrupted, is_interrupted};

/// Sizes of batches to try on the CPU.
pub(super) const ON_CPU: [usize; 6] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16];
/// Sizes of batches to try on a GPU.
pub(super) const ON_GPU: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20];
/// Batches of a thread under way on a GPU.
pub(super) const IN_FLIGHT: usize = 4;
/// The first round takes no new plans after this time, and the second round ends after it.
const ROUND: Duration = Duration::from_secs(30);
/// The last round ends after so many times the plan's time.
const HOLDS: u32 = 6;
/// How often the gap between a rate that is kept and one that is not is halved.
const HALVINGS: usize = 6;
/// The factor by which a rate that is not kept is lowered at first.
const LOWER: f64 = 0.95;
/// What that factor loses with each step.
const LOWER_STILL: f64 = 0.025;
/// The least it gets to.
const LOWEST: f64 = 0.6;
/// How often a rate is lowered: to less than a thousandth.
const LOWERINGS: usize = 22;
/// How often a rate that is kept is raised: by half.
const RAISINGS: usize = 8;
/// How often a rate is tried for a moment before it is taken for one that is not kept.
const TRIES: usize = 3;
/// How often a rate is tried for the whole time.
const LONG_TRIES: usize = 2;
/// Rates that are tried so often; those below them are far from what was found, and are tried once.
const NEAR_RATES: usize = 8;
/// The best plans, which are tried for longer.
const FINALISTS: usize = 4;
/// A plan is tried further only if it keeps this part of what the best one so far kept.
const NEAR: f64 = 0.85;
/// A plan takes the lead among those that are tried for longer if it beats the best one by this factor.
const WORTH: f64 = 1.02;
/// The gap between a rate that is kept and one that is not is narrow enough at this factor.
const NARROW: f64 = 1.03;

/// The rate that was found.
pub(in crate::verbs) struct Held {
    /// The plan that was found.
    pub(in crate::verbs) plan: Plan,
    /// Keys a second that were offered.
    pub(in crate::verbs) rate: f64,
    /// Whether the rate was kept. If not, no rate was, and this is the lowest that was tried.
    pub(in crate::verbs) is_held: bool,
}

/// Finds the highest rate at which 99 of 100 batches are back within the bound by any of the plans, and keeps
/// it for the plan's time. Updates go in all the time. It ends with the highest rate that it could keep, and
/// fails only if it is interrupted before there is one.
pub(in crate::verbs) fn hold(
    place: &dyn Place,
    bound: Duration,
    plans: &[Plan],
    feeder: Option<Feeder<'_>>,
) -> Result<(Held, Driven)> {
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let feeder = feeder.map(|feeder| scope.spawn(move || (feeder.feed)(Instant::now(), stop)));
        let search = Search { place, bound, time: plans[0].time };
        let held = search.first_round(plans).and_then(|found| {
            unless_interrupted()?;
            let found = search.second_round(found);
            unless_interrupted()?;
            Ok(search.last_round(&found, plans[0]))
        });
        stop.store(true, Ordering::Relaxed);
        let fed = feeder.map(|feeder| feeder.join().expect("the feeder does not panic")).transpose()?;
        let (held, driven) = held?;
        Ok((held, Driven { fed, ..driven }))
    })
}

struct Search<'p> {
    place: &'p dyn Place,
    bound: Duration,
    /// How long the rate that is found is kept.
    time: Duration,
}

/// How rates are tried: for so long, so often, and none after a moment.
#[derive(Clone, Copy)]
struct Tries {
    time: Duration,
    count: usize,
    until: Instant,
}

impl Search<'_> {
    /// The plans with the rates that they kept for a moment, the best first. Empty if none kept any.
    fn first_round(&self, plans: &[Plan]) -> Result<Vec<(Plan, f64)>> {
        // The first trial of all warms up.
        self.through(plans[0]);
        let mut found: Vec<(Plan, f64)> = Vec::new();
        let mut most = 0.0;
        let mut take = |plan: Plan, found: &mut Vec<_>| {
            let Some(rate) = self.of_plan(plan, most * NEAR) else { return };
            if rate > most {
                most = rate;
                eprintln!("{}: {:.1} M lookups/s within {:?}", plan, rate / 1e6, self.bound);
            }
            found.push((plan, rate));
        };
        let until = Instant::now() + ROUND;
        for &plan in plans {
            unless_interrupted()?;
            if !found.is_empty() && Instant::now() > until {
                break;
            }
            take(plan, &mut found);
        }
        best_first(&mut found);
        for plan in plan::mixed(&found) {
            unless_interrupted()?;
            take(plan, &mut found);
        }
        best_first(&mut found);
        Ok(found)
    }

    /// The plans, first the best with the rates that they kept for longer. Short trials are often too strict,
    /// so a plan may keep more than it seemed to, and beat one that seemed better.
    fn second_round(&self, mut found: Vec<(Plan, f64)>) -> Vec<(Plan, f64)> {
        let tries = Tries { time: self.look(), count: TRIES, until: Instant::now() + ROUND };
        let mut held: Vec<(Plan, f64)> = Vec::new();
        for &(plan, rate) in found.iter().take(FINALISTS) {
            let least = held.first().map_or(0.0, |(_, rate)| *rate);
            if let Some((rate, driven)) = self.lowered(plan, rate.max(least * WORTH), least, tries) {
                held.insert(0, (plan, self.raised(plan, (rate, driven), tries).0));
            }
        }
        found.retain(|(plan, _)| held.iter().all(|(other, _)| other != plan));
        held.append(&mut found);
        held
    }

    /// Keeps a rate for the whole time, by the best plan first.
    fn last_round(&self, found: &[(Plan, f64)], first: Plan) -> (Held, Driven) {
        let until = Instant::now() + self.time * HOLDS;
        let tries = Tries { time: self.time, count: LONG_TRIES, until };
        let mut best: Option<(Held, Driven)> = None;
        for &(plan, found) in found.iter().take(FINALISTS) {
            let least = best.as_ref().map_or(0.0, |(held, _)| held.rate);
            let Some(kept) = self.lowered(plan, found, least, tries) else { continue };
            let was_lowered = kept.0 < found * LOWER;
            let (rate, driven) = self.raised(plan, kept, tries);
            best = Some((Held { plan, rate, is_held: true }, driven));
            // A plan that had to be lowered further leaves room for the next.
            if !was_lowered || is_interrupted() {
                break;
            }
        }
        best.unwrap_or_else(|| {
            // What disturbs the machine for so long may leave room for less.
            let (plan, rate) = found.first().copied().unwrap_or_else(|| (first, self.through(first)));
            let mut tried = below(rate).skip(1).map(|rate| {
                let trial = Trial::of(self.place, plan, rate, self.look());
                (Held { plan, rate, is_held: trial.is_within(self.bound) }, trial.driven)
            });
            let is_end = |(held, _): &(Held, Driven)| held.is_held || is_interrupted();
            let mut last = tried.next().expect("a rate is lowered");
            while !is_end(&last)
                && let Some(next) = tried.next()
            {
                last = next;
            }
            last
        })
    }

    /// The highest rate that a plan keeps for a moment, if it is over `least`.
    fn of_plan(&self, plan: Plan, least: f64) -> Option<f64> {
        let (mut low, mut high) = (least, self.through(plan));
        let is_held = |rate: f64| (0..TRIES).any(|_| self.is_kept(plan, rate, self.glimpse()).is_some());
        if high <= low || low > 0.0 && !is_held(low) {
            return None;
        }
        for _ in 0..HALVINGS {
            if high < low * NARROW {
                break;
            }
            let middle = f64::midpoint(low, high);
            if is_held(middle) { low = middle } else { high = middle }
        }
        (low > 0.0).then_some(low)
    }

    /// Lowers a rate until it is kept. Each is tried several times, because what disturbs one trial may be
    /// gone in the next. `None` if none over `least` is.
    fn lowered(&self, plan: Plan, found: f64, least: f64, tries: Tries) -> Option<(f64, Driven)> {
        let rates = below(found).enumerate().take_while(|&(_, rate)| rate > least);
        let rates = rates.flat_map(|(step, rate)| {
            let count = if step < NEAR_RATES { tries.count } else { 1 };
            std::iter::repeat_n(rate, count)
        });
        // What was there is better than nothing, so that the first plan has no end but its own.
        let mut rates = rates.take_while(|_| least == 0.0 || Instant::now() < tries.until);
        rates.find_map(|rate| {
            let trial = Trial::of(self.place, plan, rate, tries.time);
            // What was measured until a signal is told as it is.
            (is_interrupted() || trial.is_within(self.bound)).then_some((rate, trial.driven))
        })
    }

    /// Raises a rate that is kept, as long as it is kept.
    fn raised(&self, plan: Plan, (mut rate, mut driven): (f64, Driven), tries: Tries) -> (f64, Driven) {
        for _ in 0..RAISINGS {
            let higher = rate / LOWER;
            let mut again =
                (0..tries.count).take_while(|_| !is_interrupted() && Instant::now() < tries.until);
            let Some(kept) = again.find_map(|_| self.is_kept(plan, higher, tries.time)) else { break };
            (rate, driven) = (higher, kept);
        }
        (rate, driven)
    }

    /// What was done at a rate, if it was kept for some time.
    fn is_kept(&self, plan: Plan, rate: f64, time: Duration) -> Option<Driven> {
        let trial = Trial::of(self.place, plan, rate, time);
        trial.is_within(self.bound).then_some(trial.driven)
    }

    /// The rate that comes through without a bound, in keys a second.
    #[allow(clippy::cast_precision_loss)] // a rate
    fn through(&self, plan: Plan) -> f64 {
        let driven = Trial::of(self.place, plan, f64::INFINITY, self.glimpse()).driven;
        let keys = plan.lookups(&driven.batches);
        if driven.seconds > 0.0 { keys as f64 / driven.seconds } else { 0.0 }
    }

    /// The time of a trial during the search.
    fn glimpse(&self) -> Duration {
        (self.bound * 10).clamp(Duration::from_millis(100), Duration::from_millis(300))
    }

    /// The time of a longer trial.
    fn look(&self) -> Duration {
        (self.time / 3).clamp(self.glimpse(), Duration::from_secs(1))
    }
}

/// A rate and those below it, in steps that grow.
fn below(rate: f64) -> impl Iterator<Item = f64> {
    let steps = std::iter::successors(Some((rate, LOWER)), |&(rate, factor)| {
        Some((rate * factor, (factor - LOWER_STILL).max(LOWEST)))
    });
    steps.map(|(rate, _)| rate).take(LOWERINGS)
}

fn best_first(found: &mut [(Plan, f64)]) {
    found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
}

/// An error if a signal came before a rate was found.
fn unless_interrupted() -> Result<()> {
    if is_interrupted() {
        return Err(Interrupted("a rate was found that holds the bound").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_rates_have_an_end_below_a_thousandth() {
        let rates: Vec<_> = below(1000.0).collect();
        assert_eq!((rates[0], rates[1], rates.len()), (1000.0, 950.0, LOWERINGS));
        assert!(rates.is_sorted_by(|a, b| a > b) && rates[LOWERINGS - 1] < 1.0, "{rates:?}");
        assert!(rates[NEAR_RATES] > 300.0, "{rates:?}");
    }
}
