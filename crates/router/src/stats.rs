//! [`Stats`]: what a worker, or all workers together, did.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::{Drops, Why, Whys};

/// Numbers of chunks by size: powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkSizes {
    /// Chunks of at most 2^n frames and more than half of that, by n.
    chunks: [u64; Self::POWERS],
    frames: u64,
}

impl ChunkSizes {
    /// Powers of two from 1 on: the last one stands for all larger chunks, too.
    pub const POWERS: usize = 21;

    fn count(&mut self, frames: usize) {
        let power = frames.max(1).next_power_of_two().ilog2() as usize;
        self.chunks[power.min(Self::POWERS - 1)] += 1;
        self.frames += frames as u64;
    }

    fn add(&mut self, other: &Self) {
        self.chunks.iter_mut().zip(&other.chunks).for_each(|(sum, more)| *sum += more);
        self.frames += other.frames;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            chunks: std::array::from_fn(|at| self.chunks[at].saturating_sub(before.chunks[at])),
            frames: self.frames.saturating_sub(before.frames),
        }
    }

    /// The largest number of frames that a step holds, with the number of chunks of this step.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.chunks.iter().enumerate().map(|(power, &chunks)| (1 << power, chunks))
    }

    /// The frames of all these chunks.
    #[must_use]
    pub const fn frames(&self) -> u64 {
        self.frames
    }
}

/// Counts of frames and chunks, and latencies.
///
/// Each frame that came in is out, dropped, with the operating system or controllers, or still queued:
/// [`is_whole`](Self::is_whole).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Frames that were received.
    pub frames_in: u64,
    /// Bytes of these.
    pub bytes_in: u64,
    /// Received frames that were sent.
    pub frames_out: u64,
    /// Bytes of these.
    pub bytes_out: u64,
    /// Received frames that were dropped, by reason.
    pub dropped: Drops,
    /// Received frames that the operating system took.
    pub to_kernel: u64,
    /// Received frames that only controllers got.
    pub to_controller: u64,
    /// Received frames that are in chunks or in queues of ports.
    pub queued: u64,
    /// Frames that the application made, such as ICMP errors, and that were sent.
    pub made: u64,
    /// Frames that the application made and no port took.
    pub made_lost: u64,
    /// Chunks whose keys the CPU looked up.
    pub chunks_cpu: u64,
    /// Chunks whose keys a GPU looked up.
    pub chunks_gpu: u64,
    /// All chunks, by the reason for their size.
    pub whys: Whys,
    /// Sizes of the chunks of the CPU, in frames.
    pub sizes_cpu: ChunkSizes,
    /// Sizes of the chunks of a GPU, in frames.
    pub sizes_gpu: ChunkSizes,
    /// Times from the receipt of a chunk's first frame to its transmission, in nanoseconds, a count for each
    /// frame.
    latency: Histogram<u64>,
}

impl Default for Stats {
    fn default() -> Self {
        // Two digits count: an error of 1 %. Longer than a minute counts as a minute.
        let latency = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are in order");
        Self {
            frames_in: 0,
            bytes_in: 0,
            frames_out: 0,
            bytes_out: 0,
            dropped: Drops::default(),
            to_kernel: 0,
            to_controller: 0,
            queued: 0,
            made: 0,
            made_lost: 0,
            chunks_cpu: 0,
            chunks_gpu: 0,
            whys: Whys::default(),
            sizes_cpu: ChunkSizes::default(),
            sizes_gpu: ChunkSizes::default(),
            latency,
        }
    }
}

impl Stats {
    /// Notes that frames were sent this long after the first of them came.
    pub(crate) fn took(&mut self, time: Duration, frames: usize) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.latency.saturating_record(nanoseconds);
        if frames > 1 {
            let more = self.latency.record_n(nanoseconds.min(self.latency.high()), frames as u64 - 1);
            debug_assert!(more.is_ok(), "the value is within the bounds");
        }
    }

    /// Counts a chunk of so many frames.
    pub(crate) fn chunk(&mut self, is_by_gpu: bool, frames: usize, why: Why) {
        self.whys.count(why);
        let (chunks, sizes) = if is_by_gpu {
            (&mut self.chunks_gpu, &mut self.sizes_gpu)
        } else {
            (&mut self.chunks_cpu, &mut self.sizes_cpu)
        };
        *chunks += 1;
        sizes.count(frames);
    }

    /// The numbers of frames by latency: of the frames that took at most the first bound, of those that took
    /// longer and at most the second, and so on. Bounds ascend, in nanoseconds; frames beyond the last one
    /// are in no number. An edge may be off by the 1 % that latencies are kept with.
    #[must_use]
    pub fn frames_by_latency(&self, bounds: &[u64]) -> Vec<u64> {
        let mut below = 0;
        let mut count = |&bound: &u64| {
            let number = if bound >= below { self.latency.count_between(below, bound) } else { 0 };
            // Two bounds may lie in one step of the histogram, whose frames count once.
            below = self.latency.highest_equivalent(bound).saturating_add(1);
            number
        };
        bounds.iter().map(&mut count).collect()
    }

    /// The number of frames whose latency is known, and the sum of these latencies, about.
    #[must_use]
    pub fn latencies(&self) -> (u64, Duration) {
        let sum = self.latency.mean() * self.latency.len() as f64;
        (self.latency.len(), Duration::try_from_secs_f64(sum / 1e9).unwrap_or(Duration::MAX))
    }

    /// The latency that this share of frames does not exceed: 0.5 is the median.
    #[must_use]
    pub fn latency(&self, share: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(share))
    }

    /// The longest latency.
    #[must_use]
    pub fn longest_latency(&self) -> Duration {
        Duration::from_nanos(self.latency.max())
    }

    /// Whether each frame that came in is accounted for.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let kept = self.to_kernel + self.to_controller + self.queued;
        self.frames_in == self.frames_out + self.dropped.all() + kept
    }

    /// The work since an earlier time, whose statistics these are: all counts and latencies of the time
    /// between. What is queued is queued now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut latency = self.latency.clone();
        let left = latency.subtract(&before.latency);
        debug_assert!(left.is_ok(), "counts only grow, and both have the same bounds");
        let less = u64::saturating_sub;
        Self {
            frames_in: less(self.frames_in, before.frames_in),
            bytes_in: less(self.bytes_in, before.bytes_in),
            frames_out: less(self.frames_out, before.frames_out),
            bytes_out: less(self.bytes_out, before.bytes_out),
            dropped: self.dropped.since(&before.dropped),
            to_kernel: less(self.to_kernel, before.to_kernel),
            to_controller: less(self.to_controller, before.to_controller),
            queued: self.queued,
            made: less(self.made, before.made),
            made_lost: less(self.made_lost, before.made_lost),
            chunks_cpu: less(self.chunks_cpu, before.chunks_cpu),
            chunks_gpu: less(self.chunks_gpu, before.chunks_gpu),
            whys: self.whys.since(&before.whys),
            sizes_cpu: self.sizes_cpu.since(&before.sizes_cpu),
            sizes_gpu: self.sizes_gpu.since(&before.sizes_gpu),
            latency,
        }
    }

    /// Adds what another worker did.
    pub fn add(&mut self, other: &Self) {
        self.frames_in += other.frames_in;
        self.bytes_in += other.bytes_in;
        self.frames_out += other.frames_out;
        self.bytes_out += other.bytes_out;
        self.dropped.add(&other.dropped);
        self.to_kernel += other.to_kernel;
        self.to_controller += other.to_controller;
        self.queued += other.queued;
        self.made += other.made;
        self.made_lost += other.made_lost;
        self.chunks_cpu += other.chunks_cpu;
        self.chunks_gpu += other.chunks_gpu;
        self.whys.add(&other.whys);
        self.sizes_cpu.add(&other.sizes_cpu);
        self.sizes_gpu.add(&other.sizes_gpu);
        let sum = self.latency.add(&other.latency);
        debug_assert!(sum.is_ok(), "both have the same bounds");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    /// Statistics of a worker that did this much.
    fn worked(chunks: u64, time: u64) -> Stats {
        let mut stats = Stats::default();
        for _ in 0..chunks {
            stats.frames_in += 10;
            stats.frames_out += 9;
            stats.dropped.count(Reason::Expired);
            stats.took(Duration::from_micros(time), 10);
            stats.chunk(false, 10, Why::LowLoad);
        }
        stats
    }

    #[test]
    fn the_difference_of_two_times_is_what_was_done_between() {
        let before = worked(3, 100);
        let mut now = before.clone();
        now.add(&worked(2, 900));
        now.chunk(true, 4096, Why::Trial);
        let between = now.since(&before);
        assert_eq!((between.frames_in, between.frames_out, between.dropped.all()), (20, 18, 2));
        assert!(between.is_whole());
        assert_eq!((between.chunks_cpu, between.chunks_gpu), (2, 1));
        assert_eq!(between.whys.iter().collect::<Vec<_>>(), [(Why::LowLoad, 2), (Why::Trial, 1)]);
        assert_eq!((between.sizes_cpu.frames(), between.sizes_gpu.frames()), (20, 4096));
        // The earlier latencies are in it no more.
        assert!(between.latency(0.01) > Duration::from_micros(800), "{:?}", between.latency(0.01));
        assert_eq!(now.since(&now).latencies().0, 0);
    }
}
