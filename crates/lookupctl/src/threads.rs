//! Numbers of threads, and the parts of a job shared among threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::builder::RangedU64ValueParser;

/// `--threads N`.
pub(crate) fn parser() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1024)
}

/// The number of cores that this process may use.
pub(crate) fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Does parts 0 to `parts` - 1 on `threads` threads, each with a state of its own, and returns the states.
pub(crate) fn share_out<S: Send>(
    parts: usize,
    threads: usize,
    state: impl Fn() -> S + Sync,
    part: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut mine = state();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= parts {
                return mine;
            }
            part(&mut mine, at);
        }
    };
    on_each(threads.clamp(1, parts.max(1)), &work)
}

/// Runs `work` on each of `threads` threads, and returns the results. Compiled once for each type of result.
fn on_each<S: Send>(threads: usize, work: &(dyn Fn() -> S + Sync)) -> Vec<S> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a part does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_part_is_done_once() {
        let sums = super::share_out(1000, 3, || 0, |sum, part| *sum += part);
        assert_eq!(sums.iter().sum::<usize>(), 499_500);
        assert_eq!(super::share_out(0, 3, || 7, |_, _| unreachable!()), [7]);
    }
}
