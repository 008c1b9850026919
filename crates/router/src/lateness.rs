//! [`Lateness`]: what the workers of a router know together about frames that a GPU made late. It decides
//! whether chunks may be large, and how many workers may have large ones.
//!
//! A GPU serves all workers, so each of them makes the others' chunks later. One worker tries it first. As
//! its chunks come back in good time, others follow, one after the other; a late chunk halves their number.
//!
//! ```text
//! workers with large chunks     1 ─ 8 chunks in good time ─► 2 ─ 16 ─► 3 ─ 24 ─► 4 … late ─► 2 …
//! more than one of 2,000 late   none, until few enough are
//! ```
//!
//! Small chunks, which no GPU has, are late now and then, too, and leave large ones less of that share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// One frame of so many may be late. The deadline holds at p99.9, and what is under way when chunks have to
/// be small may be late, too.
const OF_ONE_LATE: u64 = 2000;
/// Where more than one frame of so many is late in small chunks, the deadline is missed without a GPU, too.
const OF_ONE_MISSED: u64 = 1000;
/// Late frames beyond that share before all chunks stay small: a size has to be found first.
const MORE_LATE: u64 = 20_000;
/// Frames that the share is told of, at most. Then both numbers are halved: what was long ago counts less.
const REMEMBERED: u64 = 400_000_000;
/// Chunks in good time, for each worker that has large ones, before one worker more may have them.
const PROOFS: usize = 8;
/// Frames that a worker counts by itself before it tells the others.
const TOLD: u64 = 1 << 14;

/// What all workers know. Every number is a hint: none of them waits for another.
#[derive(Debug)]
pub(crate) struct Lateness {
    frames: AtomicU64,
    /// Late frames of large chunks.
    late: AtomicU64,
    /// Late frames of small chunks.
    late_small: AtomicU64,
    /// Whether all chunks stay small until the share of late frames is as it should be.
    is_barred: AtomicBool,
    /// Workers that may have large chunks.
    allowed: AtomicUsize,
    /// Workers that have them.
    holders: AtomicUsize,
    /// Chunks in good time since the number of workers changed.
    proofs: AtomicUsize,
}

impl Default for Lateness {
    fn default() -> Self {
        Self {
            frames: AtomicU64::new(0),
            late: AtomicU64::new(0),
            late_small: AtomicU64::new(0),
            is_barred: AtomicBool::new(false),
            allowed: AtomicUsize::new(1),
            holders: AtomicUsize::new(0),
            proofs: AtomicUsize::new(0),
        }
    }
}

impl Lateness {
    /// Whether so many late frames of large chunks are too many among `frames` of all.
    fn are_too_many(&self, late: u64, frames: u64) -> bool {
        let (share, small) = (frames / OF_ONE_LATE, self.late_small.load(Ordering::Relaxed));
        // Large chunks do not have to make up for a deadline that is missed without them.
        let is_missed = small > frames / OF_ONE_MISSED;
        late > if is_missed { share } else { share.saturating_sub(small) }
    }
}

/// A worker's part.
#[derive(Debug, Default)]
pub(crate) struct Share {
    all: Arc<Lateness>,
    /// Its own frames that the others were told of.
    told: u64,
    /// Whether it may have large chunks.
    has_place: bool,
}

impl Share {
    /// The part of a worker that begins.
    pub(crate) const fn of(all: Arc<Lateness>) -> Self {
        Self { all, told: 0, has_place: false }
    }

    /// Notes the number of frames that the worker has received so far.
    pub(crate) fn saw(&mut self, frames: u64) {
        let more = frames - self.told;
        if more < TOLD {
            return;
        }
        self.told = frames;
        let all = &*self.all;
        let frames = all.frames.fetch_add(more, Ordering::Relaxed) + more;
        if frames > REMEMBERED
            && all.frames.compare_exchange(frames, frames / 2, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            for late in [&all.late, &all.late_small] {
                late.fetch_sub(late.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
            }
        }
        if self.is_barred() && !all.are_too_many(all.late.load(Ordering::Relaxed), frames) {
            all.is_barred.store(false, Ordering::Relaxed);
        }
    }

    /// Whether all chunks have to be small.
    pub(crate) fn is_barred(&self) -> bool {
        self.all.is_barred.load(Ordering::Relaxed)
    }

    /// Takes the right to large chunks, if it is to be had.
    pub(crate) fn take_place(&mut self) -> bool {
        if !self.has_place && !self.is_barred() {
            let allowed = self.all.allowed.load(Ordering::Relaxed);
            let more = |holders| (holders < allowed).then_some(holders + 1);
            self.has_place =
                self.all.holders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        }
        self.has_place
    }

    /// Gives the right to large chunks back.
    pub(crate) fn give_place(&mut self) {
        if std::mem::take(&mut self.has_place) {
            self.all.holders.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A small chunk of `len` frames was late.
    pub(crate) fn late_small(&self, len: usize) {
        self.all.late_small.fetch_add(len as u64, Ordering::Relaxed);
    }

    /// A large chunk came back in good time.
    pub(crate) fn in_time(&self) {
        let (all, allowed) = (&*self.all, self.all.allowed.load(Ordering::Relaxed));
        let proofs = all.proofs.fetch_add(1, Ordering::Relaxed) + 1;
        // No further than there are workers that want it.
        if proofs >= PROOFS * allowed && all.holders.load(Ordering::Relaxed) >= allowed {
            all.proofs.store(0, Ordering::Relaxed);
            all.allowed.store(allowed + 1, Ordering::Relaxed);
        }
    }

    /// A large chunk of `len` frames was late. Returns whether the worker's chunks have to be small now.
    pub(crate) fn late(&self, len: usize) -> bool {
        let all = &*self.all;
        let late = all.late.fetch_add(len as u64, Ordering::Relaxed) + len as u64;
        if all.are_too_many(late.saturating_sub(MORE_LATE), all.frames.load(Ordering::Relaxed)) {
            all.is_barred.store(true, Ordering::Relaxed);
        }
        all.proofs.store(0, Ordering::Relaxed);
        let allowed = (all.holders.load(Ordering::Relaxed) / 2).max(1);
        all.allowed.fetch_min(allowed, Ordering::Relaxed);
        self.is_barred() || all.holders.load(Ordering::Relaxed) > all.allowed.load(Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_place();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(count: usize) -> Vec<Share> {
        let all = Arc::default();
        (0..count).map(|_| Share::of(Arc::clone(&all))).collect()
    }

    fn holders(shares: &mut [Share]) -> usize {
        shares.iter_mut().map(Share::take_place).filter(|&has_place| has_place).count()
    }

    #[test]
    fn workers_follow_each_other_as_chunks_come_back_in_time() {
        let mut shares = shares(4);
        for most in 1..=4 {
            assert_eq!(holders(&mut shares), most);
            (0..PROOFS * most - 1).for_each(|_| shares[0].in_time());
            assert_eq!(holders(&mut shares), most, "one proof is absent");
            shares[0].in_time();
        }
        assert_eq!(holders(&mut shares), 4);
        assert!(shares[3].late(100), "two are too many");
        shares[3].give_place();
        assert!(shares[2].late(100));
        shares[2].give_place();
        assert_eq!(holders(&mut shares), 2);
        // A worker that ends leaves its place.
        shares.remove(0);
        assert!(shares.iter_mut().any(Share::take_place));
    }

    #[test]
    fn too_many_late_frames_bar_all() {
        let mut shares = shares(2);
        shares[0].saw(2_000_000);
        assert!(shares[0].take_place());
        assert!(!shares[0].late(20_000));
        assert!(shares[0].late(2_000) && shares[1].is_barred());
        shares[0].give_place();
        assert!(!shares[1].take_place());
        shares[1].saw(41_000_000);
        assert!(shares[1].is_barred(), "one of 2,000 is not reached");
        shares[0].saw(4_000_000);
        assert!(!shares[1].is_barred() && shares[1].take_place());
    }

    #[test]
    fn late_small_chunks_leave_large_ones_less() {
        let mut shares = shares(1);
        // 50,000 may be late of these.
        shares[0].saw(100_000_000);
        shares[0].late_small(40_000);
        assert!(!shares[0].late(30_000) && !shares[0].is_barred());
        assert!(shares[0].late(1) && shares[0].is_barred());
        // The deadline is missed by small chunks alone: large ones have their whole share again.
        shares[0].late_small(61_000);
        shares[0].saw(101_000_000 - TOLD);
        assert!(!shares[0].is_barred());
        assert!(!shares[0].late(40_000));
        assert!(shares[0].late(1_000) && shares[0].is_barred());
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        let mut shares = shares(1);
        shares[0].late(10_000);
        shares[0].late_small(100_000);
        shares[0].saw(REMEMBERED + TOLD);
        assert_eq!(shares[0].all.late.load(Ordering::Relaxed), 5_000);
        assert_eq!(shares[0].all.late_small.load(Ordering::Relaxed), 50_000);
        assert_eq!(shares[0].all.frames.load(Ordering::Relaxed), (REMEMBERED + TOLD) / 2);
    }
}
