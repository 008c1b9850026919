//! [`run`]: workers, each on a thread of its own, and what they did together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::io::PortCounts;
use crate::stats::Stats;
use crate::worker::{Published, Worker};
use crate::{App, Error};

/// What a router did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What all workers did together.
    pub stats: Stats,
    /// The counters of the applications, summed by name.
    pub counters: Vec<(&'static str, u64)>,
    /// The counters of ports by name, summed over workers.
    pub ports: Vec<(String, PortCounts)>,
    /// What is wrong with sources that ended early.
    pub damage: Vec<String>,
}

impl Report {
    /// What one worker did.
    fn of<A: App>(stats: Stats, worker: &Worker<A>) -> Self {
        let ports = worker.ports();
        Self {
            stats,
            counters: worker.app().counters(),
            ports: ports.clone().map(|port| (port.name().to_owned(), port.counts())).collect(),
            damage: ports.filter_map(|port| Some(format!("{}: {}", port.name(), port.damage()?))).collect(),
        }
    }
}

/// Runs a number of workers until `stop` is set, or until all have ended because their ports give no more
/// frames. `make` makes each worker on its own thread. `told` gets what all did so far, once a second, on the
/// caller's thread.
///
/// If a worker fails, the others are stopped, and the error is returned.
pub fn run<A: App>(
    workers: usize,
    stop: &AtomicBool,
    make: impl Fn(usize) -> Result<Worker<A>, Error> + Sync,
    mut told: impl FnMut(&Stats),
) -> Result<Report, Error> {
    /// How often the caller's thread looks whether all have ended.
    const LOOK: Duration = Duration::from_millis(10);
    let running = AtomicUsize::new(workers);
    let published: Vec<Arc<Published>> = (0..workers).map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        let (running, make) = (&running, &make);
        let work = |(at, published): (usize, &Arc<Published>)| {
            let published = Arc::clone(published);
            scope.spawn(move || {
                let ended = Ended { running, stop };
                let mut worker = make(at)?;
                let stats = worker.run(stop, &published)?;
                ended.well();
                Ok::<Report, Error>(Report::of(stats, &worker))
            })
        };
        let threads: Vec<_> = published.iter().enumerate().map(work).collect();
        let mut last = Instant::now();
        while running.load(Ordering::Acquire) > 0 {
            std::thread::sleep(LOOK);
            if last.elapsed() >= Duration::from_secs(1) {
                last += Duration::from_secs(1);
                let mut stats = Stats::default();
                published.iter().for_each(|published| stats.add(&published.stats()));
                told(&stats);
            }
        }
        let mut sum = Report::default();
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(report)) => sum.merge(report),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failed.map_or(Ok(sum), Err)
    })
}

impl Report {
    /// Adds what another worker did.
    fn merge(&mut self, other: Self) {
        self.stats.add(&other.stats);
        for (name, count) in other.counters {
            match self.counters.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += count,
                None => self.counters.push((name, count)),
            }
        }
        for (name, counts) in other.ports {
            match self.ports.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => sum.add(&counts),
                None => self.ports.push((name, counts)),
            }
        }
        self.damage.extend(other.damage);
    }
}

/// Counts a worker's end, also that by an error or a panic, which ends the others, too.
struct Ended<'r> {
    running: &'r AtomicUsize,
    stop: &'r AtomicBool,
}

impl Ended<'_> {
    /// The worker ended as it should: the others go on.
    fn well(self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        std::mem::forget(self);
    }
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.running.fetch_sub(1, Ordering::AcqRel);
    }
}
