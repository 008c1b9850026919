//! [`Used`]: the routes that carried packets lately, so that their next hops can be watched.

use std::sync::atomic::{AtomicU64, Ordering};

use wirespeed::NextHop;

/// Words of the set, of 64 indexes each.
const WORDS: usize = 1024;

/// The routes that carried packets lately, by their indexes. Workers add to it, and whoever watches next hops
/// takes what it has.
///
/// Indexes that are 65,536 apart share a place: then a route seems to be used that is not.
#[derive(Debug)]
pub struct Used(Box<[AtomicU64]>);

/// The routes that carried packets until they were taken: see [`Used::take`].
#[derive(Debug)]
pub struct Taken(Box<[u64]>);

impl Default for Used {
    fn default() -> Self {
        Self((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }
}

/// The word and the bit of an index.
const fn place(index: NextHop) -> (usize, u64) {
    (index.0 as usize / 64 % WORDS, 1 << (index.0 % 64))
}

impl Used {
    /// Notes that a route carried a packet.
    #[inline]
    pub fn note(&self, index: NextHop) {
        let (word, bit) = place(index);
        // A line that all workers read is written only if that changes it.
        if self.0[word].load(Ordering::Relaxed) & bit == 0 {
            self.0[word].fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Takes the routes that carried packets since the last call.
    #[must_use]
    pub fn take(&self) -> Taken {
        Taken(self.0.iter().map(|word| word.swap(0, Ordering::Relaxed)).collect())
    }
}

impl Taken {
    /// Whether a route carried a packet.
    #[must_use]
    pub fn has(&self, index: NextHop) -> bool {
        let (word, bit) = place(index);
        self.0[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_taken_once() {
        let used = Used::default();
        for index in [1, 64, 65_535, 70_000] {
            used.note(NextHop(index));
        }
        let taken = used.take();
        for index in [1, 64, 65_535, 70_000, 70_000 - 65_536] {
            assert!(taken.has(NextHop(index)), "{index}");
        }
        assert!([0, 2, 63, 66, 65_534].iter().all(|&index| !taken.has(NextHop(index))));
        assert!(!used.take().has(NextHop(1)));
    }
}
