//! [`run`]: workers, each on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::worker::{Published, Worker};
use crate::{Error, Report};

/// Runs a number of workers until `stop` is set, or until all have ended because their ports give no more
/// frames. `make` makes each worker on its own thread. `told` gets what all did so far, ten times a second,
/// on the caller's thread.
///
/// If a worker fails, the others are stopped, and the error is returned.
pub fn run<'a>(
    workers: usize,
    stop: &AtomicBool,
    make: impl Fn(usize) -> Result<Worker<'a>, Error> + Sync,
    mut told: impl FnMut(&Report),
) -> Result<Report, Error> {
    run_all(workers, stop, &make, &mut told)
}

/// Does the work of [`run`]: it is not generic, so this crate compiles it.
fn run_all<'a>(
    workers: usize,
    stop: &AtomicBool,
    make: &(dyn Fn(usize) -> Result<Worker<'a>, Error> + Sync),
    told: &mut dyn FnMut(&Report),
) -> Result<Report, Error> {
    /// How often the caller's thread looks whether all have ended.
    const LOOK: Duration = Duration::from_millis(10);
    /// How often it tells.
    const TELL: Duration = Duration::from_millis(100);
    let running = AtomicUsize::new(workers);
    let lateness = &Arc::default();
    let published: Vec<Arc<Published>> = (0..workers).map(|_| Arc::default()).collect();
    std::thread::scope(|scope| {
        let running = &running;
        let work = |(at, published): (usize, &Arc<Published>)| {
            let published = Arc::clone(published);
            // A thread that can't be started has ended, too.
            let ended = Ended { running, stop };
            let body = move || {
                let mut worker = make(at)?;
                worker.share(lateness);
                worker.run(stop, &published)?;
                let at_end = Some(Instant::now());
                ended.well();
                Ok::<Report, Error>(Report { ended: at_end, ..worker.report() })
            };
            let name = format!("worker {at}");
            std::thread::Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, body)
                .map_err(|cause| Error::port(&name, "its thread can't be started", cause))
        };
        let threads: Vec<_> = published.iter().enumerate().map(work).collect();
        let mut last = Instant::now();
        while running.load(Ordering::Acquire) > 0 {
            std::thread::sleep(LOOK);
            if last.elapsed() >= TELL {
                last = Instant::now();
                let mut sum = Report::default();
                published.iter().for_each(|published| sum.merge(published.report()));
                told(&sum);
            }
        }
        let mut sum = Report::default();
        let mut failed = None;
        for thread in threads {
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(Ok(report))) => sum.merge(report),
                Ok(Ok(Err(error))) | Err(error) => failed = failed.or(Some(error)),
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
            }
        }
        failed.map_or(Ok(sum), Err)
    })
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
