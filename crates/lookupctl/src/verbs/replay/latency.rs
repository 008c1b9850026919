//! Latencies of batches as a histogram of fixed size: recording one is a few instructions and no memory is
//! taken.
//!
//! Buckets are 32 to an octave, so that a percentile is right to 3 %, from 1 ns up to 2^63.
//!
//! ```text
//! ns      0 … 31 │ 32 33 … 63 │ 64 66 … 126 │ 128 132 … │ …
//! bucket  0 … 31 │ 32 33 … 63 │ 64 65 … 95  │ 96  97    │ …      each octave in 32 equal steps
//! ```

use std::time::Duration;

use serde::Serialize;

const STEPS: usize = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (64 - STEP_BITS as usize) * STEPS;

/// The times that batches took.
#[derive(Clone, Debug)]
pub(in crate::verbs) struct Latencies {
    buckets: Box<[u64; BUCKETS]>,
    max: u64,
}

/// Percentiles of these times, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(in crate::verbs) struct Percentiles {
    pub(in crate::verbs) p50: f64,
    pub(in crate::verbs) p99: f64,
    pub(in crate::verbs) max: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    pub(in crate::verbs) fn new() -> Self {
        Self { buckets: Box::new([0; BUCKETS]), max: 0 }
    }

    #[inline]
    pub(in crate::verbs) fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).min(i64::MAX.cast_unsigned());
        self.buckets[bucket(ns)] += 1;
        self.max = self.max.max(ns);
    }

    /// Number of batches.
    pub(in crate::verbs) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Adds other batches, each as so many.
    pub(in crate::verbs) fn merge(&mut self, other: &Self, weight: u64) {
        for (to, from) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *to += from * weight;
        }
        self.max = self.max.max(other.max);
    }

    pub(in crate::verbs) fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: micros(self.percentile(50)),
            p99: micros(self.percentile(99)),
            max: micros(self.max),
        }
    }

    /// The upper end of the bucket of the batch that `percent` of them are not slower than, in nanoseconds.
    fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.count()) * u128::from(percent)).div_ceil(100);
        let mut seen = 0u128;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u128::from(count);
            if count > 0 && seen >= rank {
                return upper_end(bucket).min(self.max);
            }
        }
        self.max
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the steps of an octave are 32
fn bucket(ns: u64) -> usize {
    // The octave's shift is 0 below 64, where every nanosecond has its own bucket.
    let shift = (ns >> STEP_BITS).checked_ilog2().unwrap_or(0);
    ((shift as usize) << STEP_BITS) + (ns >> shift) as usize
}

fn upper_end(bucket: usize) -> u64 {
    let shift = (bucket >> STEP_BITS).saturating_sub(1);
    let step = bucket - (shift << STEP_BITS);
    ((step as u64 + 1) << shift) - 1
}

#[allow(clippy::cast_precision_loss)] // for reading
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_its_values_to_three_percent() {
        let mut before = 0;
        for ns in (0..70_000).chain([1 << 40, (1 << 40) + 12_345, i64::MAX.cast_unsigned()]) {
            let bucket = bucket(ns);
            assert!(bucket >= before && bucket < BUCKETS, "{ns}");
            before = bucket;
            let end = upper_end(bucket);
            assert!(end >= ns && end - ns <= ns / 32 + 1, "{ns} in a bucket up to {end}");
        }
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let mut latencies = Latencies::new();
        (1..=100).for_each(|us| latencies.record(Duration::from_micros(us)));
        let found = latencies.percentiles();
        assert!((50.0..52.0).contains(&found.p50) && (99.0..=100.0).contains(&found.p99), "{found:?}");
        assert_eq!((found.max, latencies.count()), (100.0, 100));
        let mut both = Latencies::new();
        both.merge(&latencies, 1);
        both.record(Duration::from_millis(1));
        assert_eq!((both.percentiles().max, both.count()), (1000.0, 101));
        // One large batch in ten of the keys shows in a percentile, though it is one of a thousand.
        let mut weighted = Latencies::new();
        weighted.record(Duration::from_millis(1));
        let mut all = Latencies::new();
        all.merge(&weighted, 100);
        (0..9).for_each(|_| all.merge(&latencies, 1));
        assert!(all.percentiles().p99 > 999.0 && all.percentiles().p50 < 60.0, "{all:?}");
        assert_eq!(Latencies::new().percentiles().max, 0.0);
    }
}
