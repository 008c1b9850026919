//! `--latency-bound`: the highest rate that holds a bound on latency.
//!
//! Traffic does not wait for its lookups. So batches are due at fixed times, as they would come off a wire,
//! and a batch's latency counts from then: one that waits for those before it is late by that much.
//!
//! ```text
//! due       │    │    │    │    │            every batch / rate, the threads in turn
//! looked up │██   ██      ████ ██            latency = end - due
//!
//! for each plan (devices, size of batch, number of threads):
//!                          what comes through without a bound ─► halve the gap between what holds and what does not
//! the best plans again:    for longer, lowered a little until the bound holds, then raised a little while it does
//!                          ─► the best of them
//! that:                    held for --seconds; lowered a little and held again where the bound breaks, then
//!                          much, so that there is an end. The next best plan, too, where that was lowered
//! ```
//!
//! A rate that is kept for a moment often isn't for long: p99 is made of rare events. So there is a second
//! round. Without it the size that was luckiest in short trials won (1 ms on one core: 407 M lookups/s were
//! kept where short trials said 673 M). And what disturbs the machine for a moment breaks a rate that is kept
//! else, so plans that come near the best one in short trials are in that round, too.
//!
//! More threads than a GPU needs to be busy may take turns with the one that drives it: 16 of them on 16
//! cores kept 0.2 G lookups/s within a bound, on a GPU that made 16.6 without a bound. So with a GPU, and
//! without `--threads`, fewer threads are tried, too.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::drive::{Driven, Feeder, cpu_seconds};
use super::latency::Latencies;
use super::place::{Lane, Place};
use super::plan::Plan;
use crate::interrupt::{Interrupted, is_interrupted};

/// Sizes of batches to try on the CPU.
pub(super) const ON_CPU: [usize; 6] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16];
/// Sizes of batches to try on a GPU.
pub(super) const ON_GPU: [usize; 7] = [1 << 10, 1 << 12, 1 << 14, 1 << 15, 1 << 16, 1 << 18, 1 << 20];
/// Batches of a thread under way on a GPU.
pub(super) const IN_FLIGHT: usize = 4;
/// The search takes no new plans after this time.
const SEARCH: Duration = Duration::from_secs(30);
/// How often the gap between a rate that is kept and one that is not is halved.
const HALVINGS: usize = 6;
/// The factor by which a rate that is not kept is lowered, again and again.
const LOWER: f64 = 0.95;
/// How often a rate is lowered: to about half.
const LOWERINGS: usize = 14;
/// How often a rate that is kept is raised by that factor: by half.
const RAISINGS: usize = 8;
/// The factor by which a rate is lowered when half of it is not kept either.
const MUCH_LOWER: f64 = 0.6;
/// How often it is lowered by that factor: to about a thousandth.
const MUCH_LOWERINGS: usize = 12;
/// How often a rate is tried for a moment before it is taken for one that is not kept.
const TRIES: usize = 3;
/// How often a rate is tried for the whole time.
const LONG_TRIES: usize = 2;
/// The best plans, which are tried for longer.
const FINALISTS: usize = 4;
/// A plan is tried further only if it keeps this part of what the best one so far kept.
const NEAR: f64 = 0.85;
/// A plan takes the lead among those that are tried for longer if it beats the best one by this factor.
const WORTH: f64 = 1.02;
/// The gap between a rate that is kept and one that is not is narrow enough at this factor.
const NARROW: f64 = 1.03;
/// Time from making threads to the first batch that is due.
const LEAD: Duration = Duration::from_millis(2);
/// A thread with more time than this before its next batch sleeps, and wakes up this long before it.
const NAP: Duration = Duration::from_millis(1);

/// The outcome of a trial of one rate.
struct Trial {
    driven: Driven,
    /// Whether batches were due and could not even be sent.
    is_behind: bool,
}

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
        let held = search.best(plans).map(|found| search.hold(&found, plans[0]));
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

impl Search<'_> {
    /// The best plans with the rates that they kept for a while, the best first. Empty if none kept any.
    fn best(&self, plans: &[Plan]) -> Result<Vec<(Plan, f64)>> {
        // The first trial of all warms up.
        self.trial(plans[0], f64::INFINITY, self.glimpse());
        let began = Instant::now();
        let mut found: Vec<(Plan, f64)> = Vec::new();
        let mut most = 0.0;
        for &plan in plans {
            unless_interrupted()?;
            if !found.is_empty() && began.elapsed() > SEARCH {
                break;
            }
            let Some(rate) = self.of_plan(plan, most * NEAR) else { continue };
            if rate > most {
                most = rate;
                eprintln!("{}: {:.1} M lookups/s within {:?}", plan, rate / 1e6, self.bound);
            }
            found.push((plan, rate));
        }
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        // Short trials are often too strict, so a plan may keep more than it seemed to, and beat one that
        // seemed better.
        let mut held: Vec<(Plan, f64)> = Vec::new();
        for (plan, rate) in found.iter().take(FINALISTS) {
            let least = held.first().map_or(0.0, |(_, rate)| *rate);
            let first = rate.max(least * WORTH);
            if let Some((rate, _)) = self.lowered(*plan, first, least, (self.look(), TRIES)) {
                held.insert(0, (*plan, self.raised(*plan, rate)));
            }
        }
        unless_interrupted()?;
        // What was kept for longer comes first.
        found.retain(|(plan, _)| held.iter().all(|(other, _)| other != plan));
        held.append(&mut found);
        Ok(held)
    }

    /// The highest rate that a plan keeps, if it is over `least`.
    fn of_plan(&self, plan: Plan, least: f64) -> Option<f64> {
        let through = self.trial(plan, f64::INFINITY, self.glimpse());
        let (mut low, mut high) = (least, rate(&plan, &through.driven));
        let is_held = |rate: f64| self.is_kept(plan, rate, self.glimpse());
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

    /// Keeps a rate for the whole time. Lowers it if it breaks the bound after all, for the best plan first.
    fn hold(&self, found: &[(Plan, f64)], first: Plan) -> (Held, Driven) {
        let mut best: Option<(Held, Driven)> = None;
        for &(plan, found) in found.iter().take(FINALISTS) {
            let least = best.as_ref().map_or(0.0, |(held, _)| held.rate);
            let whole = (self.time, LONG_TRIES);
            let Some((rate, driven)) = self.lowered(plan, found, least, whole) else { continue };
            best = Some((Held { plan, rate, is_held: true }, driven));
            // A plan that had to be lowered further leaves room for the next.
            if rate >= found * LOWER || is_interrupted() {
                break;
            }
        }
        if let Some(best) = best {
            return best;
        }
        // Half of no rate was kept. What disturbs the machine for so long may leave room for less.
        let (plan, mut rate) = found.first().copied().unwrap_or_else(|| {
            let through = self.trial(first, f64::INFINITY, self.glimpse());
            (first, rate(&first, &through.driven))
        });
        rate *= LOWER.powi(LOWERINGS.try_into().unwrap_or(0));
        let mut tried = 0;
        loop {
            rate *= MUCH_LOWER;
            let trial = self.trial(plan, rate, self.look());
            tried += 1;
            let is_held = self.is_within(&trial);
            if is_held || tried == MUCH_LOWERINGS || is_interrupted() {
                return (Held { plan, rate, is_held }, trial.driven);
            }
        }
    }

    /// Lowers a rate until it is kept for `time`. Each is tried `tries` times, because what disturbs one
    /// trial may be gone in the next. `None` if it is not over `least` by then.
    fn lowered(
        &self,
        plan: Plan,
        found: f64,
        least: f64,
        (time, tries): (Duration, usize),
    ) -> Option<(f64, Driven)> {
        let rates = std::iter::successors(Some(found), |rate| Some(rate * LOWER)).take(LOWERINGS);
        let rates = rates.take_while(|&rate| rate > least);
        rates.flat_map(|rate| std::iter::repeat_n(rate, tries)).find_map(|rate| {
            let trial = self.trial(plan, rate, time);
            // What was measured until a signal is told as it is.
            (is_interrupted() || self.is_within(&trial)).then_some((rate, trial.driven))
        })
    }

    /// Raises a rate that is kept, as long as it is kept for a while.
    fn raised(&self, plan: Plan, held: f64) -> f64 {
        raise(held, |rate| !is_interrupted() && self.is_kept(plan, rate, self.look()))
    }

    /// Whether a rate is kept in one of a few trials: what disturbs one may be gone in the next.
    fn is_kept(&self, plan: Plan, rate: f64, time: Duration) -> bool {
        (0..TRIES).any(|_| self.is_within(&self.trial(plan, rate, time)))
    }

    /// The time of a trial during the search.
    fn glimpse(&self) -> Duration {
        (self.bound * 10).clamp(Duration::from_millis(100), Duration::from_millis(300))
    }

    /// The time of a longer trial.
    fn look(&self) -> Duration {
        (self.time / 3).clamp(self.glimpse(), Duration::from_secs(1))
    }

    fn is_within(&self, trial: &Trial) -> bool {
        let p99 = trial.driven.latencies.percentiles().p99;
        !trial.is_behind && trial.driven.latencies.count() > 0 && p99 <= self.bound.as_secs_f64() * 1e6
    }

    /// Offers batches at a rate, in keys a second, for some time.
    fn trial(&self, plan: Plan, rate: f64, time: Duration) -> Trial {
        // The last batch of the trace may be a short one.
        #[allow(clippy::cast_precision_loss)] // a rate
        let interval = plan.len as f64 / plan.batches() as f64 / rate;
        thread::scope(|scope| {
            let workers: Vec<_> = (0..plan.threads).map(|_| self.place.lane(&plan)).collect();
            let (begin, cpu_before) = (Instant::now() + LEAD, cpu_seconds());
            let workers: Vec<_> = workers
                .into_iter()
                .enumerate()
                .map(|(thread, mut worker)| {
                    let paced = Paced { plan, thread, begin, interval, time };
                    scope.spawn(move || worker.work_paced(&paced))
                })
                .collect();
            let mut driven = Driven {
                latencies: Latencies::new(),
                batches: Vec::new(),
                seconds: 0.0,
                cpu_seconds: 0.0,
                fed: None,
            };
            let mut is_behind = false;
            for worker in workers {
                let (latencies, ended, late) = worker.join().expect("a lookup thread does not panic");
                driven.seconds = driven.seconds.max(ended.saturating_duration_since(begin).as_secs_f64());
                driven.batches.push(latencies.count());
                driven.latencies.merge(&latencies);
                is_behind |= late;
            }
            driven.cpu_seconds = cpu_seconds() - cpu_before;
            Trial { driven, is_behind }
        })
    }
}

/// One thread of a trial.
pub(in crate::verbs) struct Paced {
    plan: Plan,
    thread: usize,
    begin: Instant,
    /// Seconds from one batch to the next, of all threads.
    interval: f64,
    time: Duration,
}

impl Paced {
    /// Sends batches as they are due, and takes them as they come back.
    pub(super) fn work(&self, lane: &mut impl Lane) -> (Latencies, Instant, bool) {
        let mut latencies = Latencies::new();
        let mut sent = VecDeque::with_capacity(lane.depth());
        let (end, give_up) = (self.begin + self.time, self.begin + self.time + self.grace());
        let (mut count, mut batch) = (0, self.thread % self.plan.batches());
        let mut now = Instant::now();
        let is_behind = loop {
            let due = self.due(count);
            if lane.is_ready() || (now >= due && lane.under_way() >= lane.depth()) {
                lane.take();
                now = Instant::now();
                latencies.record(now.saturating_duration_since(sent.pop_front().unwrap_or(now)));
            }
            if due >= end || now >= give_up || is_interrupted() {
                break due < end;
            }
            if now >= due && lane.under_way() < lane.depth() {
                lane.submit(self.plan.keys(batch));
                sent.push_back(due);
                batch = self.plan.after(batch);
                count += 1;
            } else if lane.under_way() == 0 && due.saturating_duration_since(now) > NAP {
                thread::sleep(due.saturating_duration_since(now) - NAP);
            } else {
                std::hint::spin_loop();
            }
            now = Instant::now();
        };
        for due in sent {
            lane.take();
            now = Instant::now();
            latencies.record(now.saturating_duration_since(due));
        }
        (latencies, now, is_behind)
    }

    /// The time after the end in which batches that were due before it are still sent. A thread that is
    /// further behind than that can't keep up.
    fn grace(&self) -> Duration {
        // Without a rate there is no end to those that are due.
        if self.interval > 0.0 { (self.time / 100).max(Duration::from_millis(10)) } else { Duration::ZERO }
    }

    /// The time at which a batch of this thread is due.
    #[allow(clippy::cast_precision_loss)] // far fewer than 2^52
    fn due(&self, number: usize) -> Instant {
        let place = (number * self.plan.threads + self.thread) as f64;
        let after = place * self.interval;
        // Later than any end where it is more than a duration holds.
        self.begin + Duration::try_from_secs_f64(after).unwrap_or(self.time).min(self.time)
    }
}

/// The highest of some rates above one that is kept, up to the first that is not.
fn raise(held: f64, is_held: impl Fn(f64) -> bool) -> f64 {
    let rates = std::iter::successors(Some(held / LOWER), |rate| Some(rate / LOWER)).take(RAISINGS);
    rates.take_while(|&rate| is_held(rate)).last().unwrap_or(held)
}

/// An error if a signal came before a rate was found.
fn unless_interrupted() -> Result<()> {
    if is_interrupted() {
        return Err(Interrupted("a rate was found that holds the bound").into());
    }
    Ok(())
}

/// The rate of a trial, in keys a second.
#[allow(clippy::cast_precision_loss)] // a rate
fn rate(plan: &Plan, driven: &Driven) -> f64 {
    let keys = plan.lookups(&driven.batches);
    if driven.seconds > 0.0 { keys as f64 / driven.seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_raised_until_it_is_not_kept() {
        assert_eq!(raise(100.0, |rate| rate < 105.0), 100.0);
        let raised = raise(100.0, |rate| rate <= 131.0);
        assert!((131.0 * LOWER..=131.0).contains(&raised), "{raised}");
        // There is an end where any rate is kept.
        assert!((150.0..151.0).contains(&raise(100.0, |_| true)));
    }
}
