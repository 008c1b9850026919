//! The measured part of a replay: threads that look a trace up again and again while updates go in.
//!
//! ```text
//! trace    │ batch 0 │ batch 1 │ batch 2 │ batch 3 │ …       thread t takes batches t, t + T, t + 2T, … and again
//! warm-up: each thread its part of one pass ─ all wait for all ─ timed ─ stop ─ the rest of the updates ─ one pass
//! ```

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use wirespeed_fib::NextHop;

use super::feed::Fed;
use super::latency::Latencies;
use super::place::{Lane, Place};
use super::plan::Plan;
use crate::interrupt::is_interrupted;
use crate::output::{TICK, progress};

/// Seconds of CPU time that all threads of this program have taken, with those of the system for them.
#[allow(clippy::cast_precision_loss)] // a time
pub(super) fn cpu_seconds() -> f64 {
    let taken = clock_gettime(ClockId::ProcessCPUTime);
    taken.tv_sec as f64 + taken.tv_nsec as f64 / 1e9
}

/// The timed part of a replay.
#[derive(Debug, Default)]
pub(in crate::verbs) struct Driven {
    /// Seconds from the common start to the end of the last thread.
    pub(in crate::verbs) seconds: f64,
    /// Seconds of CPU time that all threads of the program took meanwhile, with those of the system for them.
    pub(in crate::verbs) cpu_seconds: f64,
    pub(in crate::verbs) latencies: Latencies,
    /// Batches that each thread has done, those of one team after those of the other.
    pub(in crate::verbs) batches: Vec<u64>,
    /// The feeder's report.
    pub(in crate::verbs) fed: Option<Fed>,
}

impl Driven {
    /// Adds what a thread did in so much time. Each of its batches counts as so many.
    pub(super) fn add(&mut self, weight: u64, latencies: &Latencies, time: Duration) {
        self.seconds = self.seconds.max(time.as_secs_f64());
        self.batches.push(latencies.count());
        self.latencies.merge(latencies, weight);
    }
}

/// A writer beside the lookups.
pub(in crate::verbs) struct Feeder<'f> {
    pub(in crate::verbs) feed: Box<Feed<'f>>,
    /// Whether lookups go on until all updates are in, however long that takes.
    pub(in crate::verbs) to_its_end: bool,
}

/// A function that applies updates from the common start until it is told to stop.
type Feed<'f> = dyn FnOnce(Instant, &AtomicBool) -> Result<Fed> + Send + 'f;

impl Plan {
    /// Drives the trace through a place, with updates beside it if there is a feeder.
    pub(in crate::verbs) fn drive(&self, place: &dyn Place, feeder: Option<Feeder<'_>>) -> Result<Driven> {
        let stop = &AtomicBool::new(false);
        let start = &Barrier::new(self.all_threads() + 1 + usize::from(feeder.is_some()));
        thread::scope(|scope| {
            let threads =
                self.teams().flat_map(|(team, _)| (0..team.threads).map(move |thread| (team, thread)));
            let workers: Vec<_> = threads
                .map(|(team, thread)| {
                    let mut lane = place.lane(&team);
                    (team, scope.spawn(move || team.work(thread, &mut *lane, start, stop)))
                })
                .collect();
            let to_its_end = feeder.as_ref().is_some_and(|feeder| feeder.to_its_end);
            let feeder = feeder.map(|feeder| {
                scope.spawn(move || {
                    start.wait();
                    (feeder.feed)(Instant::now(), stop)
                })
            });
            start.wait();
            let (began, cpu_before) = (Instant::now(), cpu_seconds());
            let bar = progress(u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX), "replay");
            loop {
                let elapsed = began.elapsed();
                let fed = feeder.as_ref().is_none_or(thread::ScopedJoinHandle::is_finished);
                if is_interrupted() || elapsed >= self.time && (fed || !to_its_end) {
                    break;
                }
                bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
                thread::sleep(self.time.saturating_sub(elapsed).clamp(TICK / 100, TICK));
            }
            stop.store(true, Ordering::Relaxed);
            bar.finish_and_clear();
            let mut driven = Driven::default();
            for (team, worker) in workers {
                let (latencies, ended) = worker.join().expect("a lookup thread does not panic");
                driven.add(self.weight(&team), &latencies, ended.duration_since(began));
            }
            driven.cpu_seconds = cpu_seconds() - cpu_before;
            if let Some(feeder) = feeder {
                driven.fed = Some(feeder.join().expect("the feeder does not panic")?);
            }
            Ok(driven)
        })
    }

    /// One thread: its part of a pass to warm up, then batch after batch until the sign to stop. A batch's
    /// time is from sending it to having its results; where one is under way at a time, from the results of
    /// the one before it.
    pub(super) fn work(
        &self,
        thread: usize,
        lane: &mut dyn Lane,
        start: &Barrier,
        stop: &AtomicBool,
    ) -> (Latencies, Instant) {
        let mut latencies = Latencies::new();
        self.look_up(lane, (thread..self.batches()).step_by(self.threads), |_| {});
        start.wait();
        let mut sent = VecDeque::with_capacity(lane.depth());
        let mut batch = thread % self.batches();
        let mut now = Instant::now();
        loop {
            loop {
                sent.push_back(now);
                lane.submit(self.keys(batch));
                batch = self.after(batch);
                if lane.under_way() >= lane.depth() {
                    break;
                }
                now = Instant::now();
            }
            lane.take();
            now = Instant::now();
            latencies.record(now - sent.pop_front().unwrap_or(now));
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        for sent in sent {
            lane.take();
            now = Instant::now();
            latencies.record(now - sent);
        }
        (latencies, now)
    }

    /// Looks batches up in order, with as many under way as the lane allows.
    fn look_up(
        &self,
        lane: &mut dyn Lane,
        mut batches: impl Iterator<Item = usize>,
        mut each: impl FnMut(&[NextHop]),
    ) {
        loop {
            while lane.under_way() < lane.depth()
                && let Some(batch) = batches.next()
            {
                lane.submit(self.keys(batch));
            }
            if lane.under_way() == 0 {
                return;
            }
            each(lane.take());
        }
    }

    /// The batch that a thread takes after another.
    #[inline]
    pub(in crate::verbs) fn after(&self, batch: usize) -> usize {
        let next = batch + self.threads;
        if next < self.batches() { next } else { next % self.batches() }
    }

    #[inline]
    pub(in crate::verbs) fn batches(&self) -> usize {
        self.len.div_ceil(self.batch)
    }

    #[inline]
    pub(in crate::verbs) fn keys(&self, batch: usize) -> Range<usize> {
        let first = batch * self.batch;
        first..self.len.min(first + self.batch)
    }
}

/// The results of one pass over a trace.
#[derive(Debug)]
pub(in crate::verbs) struct Pass {
    /// The sum of all result indexes modulo 2^64.
    pub(in crate::verbs) checksum: u64,
    /// Keys that a prefix matches, by batch.
    matched: Vec<u64>,
}

impl Pass {
    /// Keys that a prefix matches.
    pub(in crate::verbs) fn matched(&self) -> u64 {
        self.matched.iter().sum()
    }

    /// Adds the results of a batch.
    fn add(&mut self, next_hops: &[NextHop]) {
        let sum: u64 = next_hops.iter().map(|next_hop| u64::from(next_hop.0)).sum();
        self.checksum = self.checksum.wrapping_add(sum);
        self.matched.push(next_hops.iter().filter(|next_hop| next_hop.is_some()).count() as u64);
    }
}

impl Plan {
    /// What a batch of a team counts beside those of the other: its keys, in the smaller batches of the two.
    /// Else a percentile of latency would be one of the team with the small batches.
    pub(super) fn weight(&self, team: &Self) -> u64 {
        let smallest = self.teams().map(|(team, _)| team.batch).min().unwrap_or(1);
        (team.batch / smallest) as u64
    }

    /// Looks every key up once.
    pub(in crate::verbs) fn pass(&self, place: &dyn Place) -> Pass {
        let share = self.batches().div_ceil(self.threads);
        let parts: Vec<Pass> = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let (plan, mut lane) = (*self, place.lane(self));
                    let batches = thread * share..self.batches().min((thread + 1) * share);
                    scope.spawn(move || plan.pass_over(batches, &mut *lane))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("a lookup thread does not panic")).collect()
        });
        parts.into_iter().fold(Pass { checksum: 0, matched: Vec::new() }, |mut whole, part| {
            whole.checksum = whole.checksum.wrapping_add(part.checksum);
            whole.matched.extend(part.matched);
            whole
        })
    }

    /// One thread's part of a pass.
    pub(super) fn pass_over(&self, batches: Range<usize>, lane: &mut dyn Lane) -> Pass {
        let mut pass = Pass { checksum: 0, matched: Vec::with_capacity(batches.len()) };
        self.look_up(lane, batches, |next_hops| pass.add(next_hops));
        pass
    }

    /// Lookups of the timed part, and how many of them matched by what each batch matches in a pass. Counting
    /// them in the pass and not in the timed part takes nothing from the rate; while updates change what
    /// matches, it is what matches after the last of them.
    ///
    /// `passes` are one of each team.
    pub(in crate::verbs) fn totals(&self, driven: &Driven, passes: &[Pass]) -> (u64, u64) {
        let teams = self.batches_by_team(&driven.batches).zip(passes);
        let matched =
            teams.map(|((team, batches), pass)| team.sum(batches, |batch| pass.matched[batch])).sum();
        (self.lookups(&driven.batches), matched)
    }

    /// Keys in these numbers of batches, one number a thread.
    pub(in crate::verbs) fn lookups(&self, batches: &[u64]) -> u64 {
        let teams = self.batches_by_team(batches);
        teams.map(|(team, batches)| team.sum(batches, |batch| team.keys(batch).len() as u64)).sum()
    }

    /// The numbers of batches of each team.
    pub(super) fn batches_by_team<'b>(&self, batches: &'b [u64]) -> impl Iterator<Item = (Self, &'b [u64])> {
        self.teams().scan(batches, |rest, (team, _)| {
            let (own, others) = rest.split_at_checked(team.threads)?;
            *rest = others;
            Some((team, own))
        })
    }

    fn sum(&self, batches: &[u64], of_batch: impl Fn(usize) -> u64) -> u64 {
        let mut sum = 0;
        for (thread, &batches) in batches.iter().enumerate() {
            let mut batch = thread % self.batches();
            for _ in 0..batches {
                sum += of_batch(batch);
                batch = self.after(batch);
            }
        }
        sum
    }
}
