//! [`Stats`]: what a worker, or all workers together, did.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Drops;

/// Counts of frames and chunks, and latencies.
///
/// Each frame that came in is out, dropped, with the operating system, or still queued:
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
            queued: 0,
            made: 0,
            made_lost: 0,
            chunks_cpu: 0,
            chunks_gpu: 0,
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
        self.frames_in == self.frames_out + self.dropped.all() + self.to_kernel + self.queued
    }

    /// Adds what another worker did.
    pub fn add(&mut self, other: &Self) {
        self.frames_in += other.frames_in;
        self.bytes_in += other.bytes_in;
        self.frames_out += other.frames_out;
        self.bytes_out += other.bytes_out;
        self.dropped.add(&other.dropped);
        self.to_kernel += other.to_kernel;
        self.queued += other.queued;
        self.made += other.made;
        self.made_lost += other.made_lost;
        self.chunks_cpu += other.chunks_cpu;
        self.chunks_gpu += other.chunks_gpu;
        let sum = self.latency.add(&other.latency);
        debug_assert!(sum.is_ok(), "both have the same bounds");
    }
}
