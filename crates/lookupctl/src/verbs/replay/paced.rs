//! [`Trial`]: batches offered at a rate, as they would come off a wire, and when they came back.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use super::drive::{Driven, cpu_seconds};
use super::latency::Latencies;
use super::place::{Lane, Place};
use super::plan::Plan;
use crate::interrupt::is_interrupted;

/// Time from making threads to the first batch that is due.
const LEAD: Duration = Duration::from_millis(2);
/// A thread with more time than this before its next batch sleeps, and wakes up this long before it.
const NAP: Duration = Duration::from_millis(1);

/// The outcome of a trial of one rate.
pub(super) struct Trial {
    pub(super) driven: Driven,
    /// Whether batches were due and could not even be sent.
    is_behind: bool,
    /// The time that one batch in a hundred takes longer than, in microseconds: of the team whose batches
    /// take longer.
    p99: f64,
}

impl Trial {
    /// Offers batches at a rate, in keys a second, for some time.
    pub(super) fn of(place: &dyn Place, plan: Plan, rate: f64, time: Duration) -> Self {
        thread::scope(|scope| {
            let threads = plan
                .teams()
                .flat_map(|(team, part)| (0..team.threads).map(move |thread| (team, part, thread)));
            let workers: Vec<_> =
                threads.map(|(team, part, thread)| (team, part, thread, place.lane(&team))).collect();
            let (begin, cpu_before) = (Instant::now() + LEAD, cpu_seconds());
            let workers: Vec<_> = workers
                .into_iter()
                .map(|(team, part, thread, mut lane)| {
                    // The last batch of the trace may be a short one.
                    #[allow(clippy::cast_precision_loss)] // a rate
                    let interval = team.len as f64 / team.batches() as f64 / (rate * part);
                    let paced = Paced { plan: team, thread, begin, interval, time };
                    (team, scope.spawn(move || paced.work(&mut *lane)))
                })
                .collect();
            let (mut driven, mut is_behind) = (Driven::default(), false);
            let mut of_teams: Vec<(Plan, Latencies)> = Vec::new();
            for (team, worker) in workers {
                let (latencies, ended, late) = worker.join().expect("a lookup thread does not panic");
                driven.add(plan.weight(&team), &latencies, ended.saturating_duration_since(begin));
                is_behind |= late;
                match of_teams.last_mut().filter(|(other, _)| *other == team) {
                    Some((_, all)) => all.merge(&latencies, 1),
                    None => of_teams.push((team, latencies)),
                }
            }
            driven.cpu_seconds = cpu_seconds() - cpu_before;
            let p99 = of_teams.iter().map(|(_, latencies)| latencies.percentiles().p99).fold(0.0, f64::max);
            Self { driven, is_behind, p99 }
        })
    }

    /// Whether 99 of 100 batches of each team were back within a time, and none could not be sent.
    pub(super) fn is_within(&self, bound: Duration) -> bool {
        !self.is_behind && self.driven.latencies.count() > 0 && self.p99 <= bound.as_secs_f64() * 1e6
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
    pub(super) fn work(&self, lane: &mut dyn Lane) -> (Latencies, Instant, bool) {
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
        // Few batches are back long before the end, and the rate is that of the whole time.
        let ended = if is_behind { now } else { now.max(end) };
        (latencies, ended, is_behind)
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

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use wirespeed_fib::NextHop;

    use super::*;

    /// Answers at once.
    struct Idle(usize);

    impl Place for Idle {
        fn len(&self) -> usize {
            self.0
        }

        fn lane(&self, _: &Plan) -> Box<dyn Lane + '_> {
            Box::new(Self(0))
        }
    }

    impl Lane for Idle {
        fn depth(&self) -> usize {
            1
        }

        fn under_way(&self) -> usize {
            self.0
        }

        fn is_ready(&self) -> bool {
            self.0 > 0
        }

        fn submit(&mut self, _: Range<usize>) {
            self.0 += 1;
        }

        fn take(&mut self) -> &[NextHop] {
            self.0 = 0;
            &[]
        }
    }

    #[test]
    fn a_rate_of_few_batches_is_that_of_the_whole_time() {
        let time = Duration::from_millis(100);
        let plan = Plan { len: 40, batch: 10, threads: 1, in_flight: 1, only: None, beside: None, time };
        // A batch each 60 ms: two in the time, of which the second is back after 60 ms.
        let trial = Trial::of(&Idle(40), plan, 10.0 / 0.06, time);
        if trial.is_behind {
            return; // a machine so busy that the second came too late
        }
        assert_eq!(trial.driven.batches, [2]);
        assert!(trial.driven.seconds >= 0.1, "{}", trial.driven.seconds);
    }
}
