//! [`Tally`]: counts that many threads add to without slowing each other down.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Numbers of keys that each device looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Keys that the CPU looked up.
    pub cpu: u64,
    /// Keys that GPUs looked up.
    pub gpu: u64,
}

/// The number of parts. Threads beyond it share parts.
const PARTS: usize = 32;

/// Counts in parts, one for each of the first threads.
#[derive(Debug, Default)]
pub(crate) struct Tally([Part; PARTS]);

/// Counts in cache lines of their own: a pair of lines, which processors fetch together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Part {
    cpu: AtomicU64,
    gpu: AtomicU64,
}

impl Tally {
    /// Adds keys that a GPU or the CPU looked up.
    pub(crate) fn add(&self, on_gpu: bool, keys: u64) {
        let part = &self.0[THREAD.with(|thread| thread.part)];
        let count = if on_gpu { &part.gpu } else { &part.cpu };
        count.fetch_add(keys, Ordering::Relaxed);
    }

    /// The sum of all parts.
    pub(crate) fn sum(&self) -> Counts {
        let sum = |of: fn(&Part) -> &AtomicU64| {
            self.0.iter().map(|part| of(part).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
        };
        Counts { cpu: sum(|part| &part.cpu), gpu: sum(|part| &part.gpu) }
    }
}

struct Thread {
    part: usize,
    turns: Cell<u64>,
}

thread_local! {
    static THREAD: Thread = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Thread { part: NEXT.fetch_add(1, Ordering::Relaxed) % PARTS, turns: Cell::new(0) }
    };
}

/// The number of earlier calls by this thread.
pub(crate) fn turn() -> u64 {
    THREAD.with(|thread| thread.turns.replace(thread.turns.get().wrapping_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
        let tally = Tally::default();
        std::thread::scope(|scope| {
            for thread in 0..2 * PARTS {
                let tally = &tally;
                scope.spawn(move || (0..1000).for_each(|keys| tally.add(thread % 2 == 0, keys)));
            }
        });
        let each = 499_500 * PARTS as u64;
        assert_eq!(tally.sum(), Counts { cpu: each, gpu: each });
    }

    #[test]
    fn turns_are_of_a_thread() {
        let before = turn();
        assert_eq!(turn(), before + 1);
        assert_eq!(std::thread::spawn(turn).join().unwrap(), 0);
    }
}
