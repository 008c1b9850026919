//! The measured part of a replay: threads that look a trace up again and again while updates go in.
//!
//! ```text
//! trace    │ batch 0 │ batch 1 │ batch 2 │ batch 3 │ …       thread t takes batches t, t + T, t + 2T, … and again
//! warm-up: each thread its part of one pass ─ all wait for all ─ timed ─ stop ─ the rest of the updates ─ one pass
//! ```

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use wirespeed_fib::{Address, Lpm, NextHop};
use wirespeed_image::Table;
use wirespeed_image::live::Reader;
use wirespeed_sail::{FibId, SailMTable};

use super::latency::Latencies;
use crate::output::{TICK, progress};

/// Keys to look up.
pub(super) trait Keys: Copy + Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;
}

/// Keys that a table takes.
pub(super) trait KeysOf<T>: Keys {
    /// Looks some of them up.
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]);
}

impl<A: Address> Keys for &[A] {
    fn len(&self) -> usize {
        <[A]>::len(self)
    }
}

impl<A: Address, T: Lpm<A>> KeysOf<T> for &[A] {
    #[inline]
    fn look_up(&self, table: &T, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_batch(&self[keys], next_hops);
    }
}

/// Keys, each with its FIB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixed<'a, A> {
    pub(super) fibs: &'a [FibId],
    pub(super) keys: &'a [A],
}

impl<A: Address> Keys for Mixed<'_, A> {
    fn len(&self) -> usize {
        self.keys.len()
    }
}

impl<A: Address> KeysOf<SailMTable<A>> for Mixed<'_, A> {
    #[inline]
    fn look_up(&self, table: &SailMTable<A>, keys: Range<usize>, next_hops: &mut [NextHop]) {
        table.lookup_mixed(&self.fibs[keys.clone()], &self.keys[keys], next_hops);
    }
}

/// What to drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan<K> {
    /// The keys, at least one.
    pub(super) trace: K,
    /// Keys of a batch, at least 1.
    pub(super) batch: usize,
    /// Lookup threads, at least 1.
    pub(super) threads: usize,
    /// How long the trace is repeated.
    pub(super) time: Duration,
}

/// What came of the timed part.
#[derive(Debug)]
pub(super) struct Driven<F> {
    /// From the common start to the end of the last thread.
    pub(super) seconds: f64,
    pub(super) latencies: Latencies,
    /// Batches that each thread has done.
    batches: Vec<u64>,
    /// What the feeder of updates says.
    pub(super) fed: Option<F>,
}

/// A writer beside the lookups: called with the common start and the sign to stop.
pub(super) struct Feeder<W> {
    pub(super) feed: W,
    /// Whether the lookups go on until it is through, however long that takes.
    pub(super) to_its_end: bool,
}

impl<K: Keys> Plan<K> {
    /// Drives the trace through a table, with updates beside it if there is a feeder.
    pub(super) fn drive<T, F, W>(&self, reader: &Reader<T>, feeder: Option<Feeder<W>>) -> Result<Driven<F>>
    where
        K: KeysOf<T>,
        T: Table,
        F: Send,
        W: FnOnce(Instant, &AtomicBool) -> Result<F> + Send,
    {
        let stop = &AtomicBool::new(false);
        let start = &Barrier::new(self.threads + 1 + usize::from(feeder.is_some()));
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let (plan, reader) = (*self, reader.clone());
                    scope.spawn(move || plan.work(thread, &reader, start, stop))
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
            let began = Instant::now();
            let bar = progress(u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX), "replay");
            loop {
                let elapsed = began.elapsed();
                let fed = feeder.as_ref().is_none_or(thread::ScopedJoinHandle::is_finished);
                if elapsed >= self.time && (fed || !to_its_end) {
                    break;
                }
                bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
                thread::sleep(self.time.saturating_sub(elapsed).clamp(TICK / 100, TICK));
            }
            stop.store(true, Ordering::Relaxed);
            bar.finish_and_clear();
            let mut driven =
                Driven { seconds: 0.0, latencies: Latencies::new(), batches: Vec::new(), fed: None };
            for worker in workers {
                let (latencies, ended) = worker.join().expect("a lookup thread does not panic");
                driven.seconds = driven.seconds.max(ended.duration_since(began).as_secs_f64());
                driven.batches.push(latencies.count());
                driven.latencies.merge(&latencies);
            }
            if let Some(feeder) = feeder {
                driven.fed = Some(feeder.join().expect("the feeder does not panic")?);
            }
            Ok(driven)
        })
    }

    /// One thread: its part of a pass to warm up, then batch after batch until the sign to stop.
    fn work<T: Table>(
        &self,
        thread: usize,
        reader: &Reader<T>,
        start: &Barrier,
        stop: &AtomicBool,
    ) -> (Latencies, Instant)
    where
        K: KeysOf<T>,
    {
        let mut next_hops = vec![NextHop::NONE; self.batch.min(self.trace.len())];
        let mut latencies = Latencies::new();
        for batch in (thread..self.batches()).step_by(self.threads) {
            let keys = self.keys(batch);
            let next_hops = &mut next_hops[..keys.len()];
            self.trace.look_up(&reader.enter(), keys, next_hops);
        }
        start.wait();
        let mut batch = thread % self.batches();
        let mut before = Instant::now();
        loop {
            let keys = self.keys(batch);
            let next_hops = std::hint::black_box(&mut next_hops[..keys.len()]);
            self.trace.look_up(&reader.enter(), keys, next_hops);
            let now = Instant::now();
            latencies.record(now - before);
            before = now;
            if stop.load(Ordering::Relaxed) {
                return (latencies, now);
            }
            batch = self.after(batch);
        }
    }

    /// The batch that a thread takes after another.
    #[inline]
    fn after(&self, batch: usize) -> usize {
        let next = batch + self.threads;
        if next < self.batches() { next } else { next % self.batches() }
    }

    #[inline]
    fn batches(&self) -> usize {
        self.trace.len().div_ceil(self.batch)
    }

    #[inline]
    fn keys(&self, batch: usize) -> Range<usize> {
        let first = batch * self.batch;
        first..self.trace.len().min(first + self.batch)
    }
}

/// What one pass over a trace gave.
#[derive(Debug)]
pub(super) struct Pass {
    /// The sum of all result indexes modulo 2^64.
    pub(super) checksum: u64,
    /// Keys that a prefix matches, by batch.
    matched: Vec<u64>,
}

impl Pass {
    /// Keys that a prefix matches.
    pub(super) fn matched(&self) -> u64 {
        self.matched.iter().sum()
    }
}

impl<K: Keys> Plan<K> {
    /// Looks every key up once.
    pub(super) fn pass<T: Table>(&self, reader: &Reader<T>) -> Pass
    where
        K: KeysOf<T>,
    {
        let share = self.batches().div_ceil(self.threads);
        let parts: Vec<Pass> = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let reader = reader.clone();
                    let batches = thread * share..self.batches().min((thread + 1) * share);
                    scope.spawn(move || self.pass_over(batches, &reader))
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

    fn pass_over<T: Table>(&self, batches: Range<usize>, reader: &Reader<T>) -> Pass
    where
        K: KeysOf<T>,
    {
        let mut next_hops = vec![NextHop::NONE; self.batch.min(self.trace.len())];
        let mut pass = Pass { checksum: 0, matched: Vec::with_capacity(batches.len()) };
        for batch in batches {
            let keys = self.keys(batch);
            let next_hops = &mut next_hops[..keys.len()];
            self.trace.look_up(&reader.enter(), keys, next_hops);
            let sum: u64 = next_hops.iter().map(|next_hop| u64::from(next_hop.0)).sum();
            pass.checksum = pass.checksum.wrapping_add(sum);
            pass.matched.push(next_hops.iter().filter(|next_hop| next_hop.is_some()).count() as u64);
        }
        pass
    }

    /// Lookups of the timed part, and how many of them matched by what each batch matches in a pass. Counting them
    /// in the pass and not in the timed part takes nothing from the rate; while updates change what matches, it is
    /// what matches after the last of them.
    pub(super) fn totals<F>(&self, driven: &Driven<F>, pass: &Pass) -> (u64, u64) {
        let (mut lookups, mut matched) = (0, 0);
        for (thread, &batches) in driven.batches.iter().enumerate() {
            let mut batch = thread % self.batches();
            for _ in 0..batches {
                lookups += self.keys(batch).len() as u64;
                matched += pass.matched[batch];
                batch = self.after(batch);
            }
        }
        (lookups, matched)
    }
}
