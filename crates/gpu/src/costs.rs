//! [`Cost`] and [`Suited`]: the reasons why a batch goes to a device, for people and for callers that leave
//! the size of batches open.

use std::time::Duration;

pub use crate::per_key::PerKey;

use crate::dispatch::{Last, Meter, Place, Policy};
use crate::runtime::Curve;

/// The expected times of a batch, with nothing else under way, and the device that it goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The number of keys.
    pub keys: usize,
    /// The time of a core that looks the batch up.
    pub cpu: Duration,
    /// The time of a core that packs the keys and takes the results for a GPU. Keys that are written in place
    /// save it.
    pub feed: Duration,
    /// The time of a GPU, from sending the batch to having its results.
    pub gpu: Duration,
    /// The rate of a GPU with many such batches under way, in keys a second.
    pub gpu_rate: f64,
    /// The device.
    pub place: Place,
}

/// The batches that have the most keys looked up on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suited {
    /// The device that they go to while it is not busy.
    pub place: Place,
    /// The number of keys of a batch.
    pub keys: usize,
    /// The number of batches that a thread should have under way, while every thread feeds: as many as its
    /// time to feed one fits into a batch's trip, and two more; but no more than there are slots for.
    pub batches: usize,
}

/// Batch sizes to tell the costs of: powers of four.
const SIZES: [usize; 8] = [1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20];
/// Keys of a batch for the CPU: results stay in the first-level cache.
const ON_CPU: usize = 1 << 12;
/// Batches that a thread has under way at least, so that a GPU has work while keys are made and results read.
const LEAST_IN_FLIGHT: usize = 2;
/// The most, however long a batch is under way.
const MOST_IN_FLIGHT: usize = 8;
/// The share of the highest rate that is enough: a smaller batch is answered sooner.
const ENOUGH: f64 = 0.97;

/// The costs of batches of usual sizes.
pub(crate) fn costs(policy: Option<Policy>, meter: &Meter, curve: &Curve) -> Vec<Cost> {
    let cost = |keys| {
        let (cpu, feed, gpu) = (meter.cpu(keys), meter.feed(keys), curve.estimate(keys, 0));
        let place = policy.map_or(Place::Gpu, |policy| policy.place(cpu, feed + gpu, 0.0, Last::Nowhere));
        Cost { keys, cpu, feed, gpu, gpu_rate: curve.rate(keys), place }
    };
    SIZES.map(cost).into()
}

/// The threads that feed GPUs, and the slots that they share.
pub(crate) struct Feeders<'a> {
    pub(crate) threads: usize,
    /// The number of slots that hold so many keys.
    pub(crate) slots: &'a dyn Fn(usize) -> usize,
    /// Keys a second that all threads look up on the CPU.
    pub(crate) cpu_rate: f64,
}

impl Feeders<'_> {
    /// Batches that a thread should have under way: while one is on its way, the next ones are fed.
    fn in_flight(&self, cost: &Cost, bound: Option<Duration>) -> usize {
        let (trip, feed) = (cost.gpu.as_nanos(), cost.feed.as_nanos().max(1));
        let wanted = usize::try_from(trip.div_ceil(feed)).unwrap_or(MOST_IN_FLIGHT);
        let wanted = wanted.saturating_add(LEAST_IN_FLIGHT).min(MOST_IN_FLIGHT);
        // Each waits for those before it.
        let in_time = bound.map_or(wanted, |bound| {
            usize::try_from(bound.as_nanos() / (cost.feed + cost.gpu).as_nanos().max(1)).unwrap_or(wanted)
        });
        wanted.min(in_time).min((self.slots)(cost.keys) / self.threads.max(1)).max(1)
    }
}

/// The batches that suit a machine.
pub(crate) fn suited(costs: &[Cost], policy: Option<Policy>, feeders: &Feeders<'_>) -> Suited {
    let bound = policy.and_then(|policy| policy.latency_bound);
    // A batch waits for another one, at the least.
    let in_time = |cost: &&Cost| {
        (feeders.slots)(cost.keys) > 0 && bound.is_none_or(|bound| (cost.feed + cost.gpu) * 2 <= bound)
    };
    let mut fit: Vec<&Cost> = costs.iter().filter(in_time).collect();
    // A batch without a slot is for the CPU, so all threads have to find some, as far as there are any.
    let most = fit.iter().map(|cost| (feeders.slots)(cost.keys)).max().unwrap_or(0);
    let ample = most.min(LEAST_IN_FLIGHT * feeders.threads);
    fit.retain(|cost| (feeders.slots)(cost.keys) >= ample);
    let highest = fit.iter().map(|cost| cost.gpu_rate).fold(0.0, f64::max);
    let enough = fit.iter().find(|cost| cost.gpu_rate >= ENOUGH * highest);
    match enough {
        Some(cost) if policy.is_none() || highest > feeders.cpu_rate => {
            Suited { place: Place::Gpu, keys: cost.keys, batches: feeders.in_flight(cost, bound) }
        }
        _ => {
            let in_time = |cost: &&Cost| bound.is_none_or(|bound| cost.cpu <= bound);
            let keys = costs.iter().filter(in_time).map(|cost| cost.keys).max().unwrap_or(SIZES[0]);
            Suited { place: Place::Cpu, keys: keys.min(ON_CPU), batches: 1 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_micros;

    /// The rate of a GPU doubles with each size up to 2^18, and the CPU takes 1 ns a key.
    fn made() -> Vec<Cost> {
        let cost = |keys: usize| {
            let (cpu, gpu) =
                (Duration::from_nanos(keys as u64), US(20) + Duration::from_nanos(keys as u64 / 16));
            let place = Policy::default().place(cpu, gpu, 0.0, Last::Nowhere);
            let gpu_rate = 16e9_f64.min(keys as f64 * 1e5);
            Cost { keys, cpu, feed: Duration::ZERO, gpu, gpu_rate, place }
        };
        SIZES.map(cost).into()
    }

    /// The batches that suit a CPU of a rate and slots of at most so many keys, for a thread.
    fn of(costs: &[Cost], policy: Option<Policy>, cpu_rate: f64, most: usize) -> Suited {
        let slots = |keys| if keys <= most { 100 } else { 0 };
        suited(costs, policy, &Feeders { threads: 1, slots: &slots, cpu_rate })
    }

    #[test]
    fn the_smallest_batch_that_has_the_highest_rate() {
        let (costs, policy) = (made(), Some(Policy::default()));
        let of = |cpu_rate, most| of(&costs, policy, cpu_rate, most);
        assert_eq!(of(8e9, 1 << 20), Suited { place: Place::Gpu, keys: 1 << 18, batches: 8 });
        assert_eq!(of(2e9, 1 << 16), Suited { place: Place::Gpu, keys: 1 << 16, batches: 8 });
        assert_eq!(of(20e9, 1 << 20), Suited { place: Place::Cpu, keys: 1 << 12, batches: 1 });
        // A GPU that always looks up does so if the CPU would be faster, too.
        assert_eq!(super::tests::of(&costs, None, 20e9, 1 << 20).place, Place::Gpu);
        let none = super::tests::of(&[], policy, 1.0, 1 << 20);
        assert_eq!(none, Suited { place: Place::Cpu, keys: 64, batches: 1 });
    }

    #[test]
    fn a_bound_on_latency_makes_batches_smaller_and_fewer() {
        let costs = made();
        let of =
            |bound, cpu_rate| of(&costs, Some(Policy { latency_bound: Some(US(bound)) }), cpu_rate, 1 << 20);
        assert_eq!(of(60, 1e9), Suited { place: Place::Gpu, keys: 1 << 16, batches: 2 });
        assert_eq!(of(20, 1e9), Suited { place: Place::Cpu, keys: 1 << 12, batches: 1 });
        assert_eq!(of(1, 1e9), Suited { place: Place::Cpu, keys: 1 << 8, batches: 1 });
    }

    #[test]
    fn all_threads_find_slots() {
        let sizes = [(1 << 16, 74), (1 << 18, 42), (1 << 20, 10)];
        let slots = |keys| {
            sizes.into_iter().find(|&(most, _)| keys <= most).map_or(0, |(_, slots): (usize, usize)| slots)
        };
        let of = |costs: &[Cost], threads| {
            let found = suited(costs, None, &Feeders { threads, slots: &slots, cpu_rate: 0.0 });
            (found.keys, found.batches)
        };
        let mut costs = made();
        // The rate grows up to the largest ones.
        costs.iter_mut().for_each(|cost| cost.gpu_rate = cost.keys as f64);
        let found = [1, 4, 5, 16, 21, 22, 37, 38].map(|threads| of(&costs, threads));
        let [large, middle, small] = [1 << 20, 1 << 18, 1 << 16];
        let expected = [
            (large, 8),
            (large, 2),
            (large, 2),
            (middle, 2),
            (middle, 2),
            (small, 3),
            (small, 2),
            (small, 1),
        ];
        assert_eq!(found, expected);
        // A thread that takes as long to feed a batch as that is under way has three.
        costs.iter_mut().for_each(|cost| cost.feed = cost.gpu);
        assert_eq!(of(&costs, 1), (large, 3));
        costs.iter_mut().for_each(|cost| cost.feed = 2 * cost.gpu / 5);
        assert_eq!(of(&costs, 1), (large, 5));
    }

    #[test]
    fn costs_say_where_batches_go() {
        let places: Vec<_> = made().iter().map(|cost| cost.place).collect();
        assert_eq!(places[..5], [Place::Cpu; 5]);
        assert_eq!(places[5..], [Place::Gpu; 3]);
        // Nothing was measured of a GPU.
        let meter = Meter::new(2, Duration::from_nanos(2));
        let all = costs(Some(Policy::default()), &meter, &Curve::default());
        assert!(all.iter().all(|cost| cost.place == Place::Cpu && cost.gpu_rate == 0.0));
        assert_eq!((all[0].keys, all[0].cpu), (64, Duration::from_nanos(128)));
        assert!(costs(None, &meter, &Curve::default()).iter().all(|cost| cost.place == Place::Gpu));
    }
}
