//! [`Batch`]: keys and their results, taken from the front in rounds of several vectors. [`Places`]: the
//! positions of a number among the results of a round.

use std::iter::Zip;
use std::slice::{ChunksExact, ChunksExactMut};

use bytemuck::Pod;

use super::ops::{Cpu, MOST_LANES, Vector};

/// The most vectors of a round.
pub const MOST_VECTORS: usize = 8;

/// Keys without results yet, and the memory for the results.
#[derive(Debug)]
pub struct Batch<'a, K, R> {
    keys: &'a [K],
    results: &'a mut [R],
}

impl<'a, K, R> Batch<'a, K, R> {
    /// Makes a batch. Panics if there are more or fewer results than keys.
    #[inline]
    pub fn new(keys: &'a [K], results: &'a mut [R]) -> Self {
        assert_eq!(keys.len(), results.len(), "a result for each key");
        Self { keys, results }
    }

    /// The number of keys without a result.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether every key has its result.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Takes all whole rounds of `keys_a_round` keys from the front.
    #[inline(always)]
    pub fn rounds(&mut self, keys_a_round: usize) -> Zip<ChunksExact<'a, K>, ChunksExactMut<'a, R>> {
        let whole = self.keys.len() - self.keys.len() % keys_a_round;
        let (keys, keys_left) = self.keys.split_at(whole);
        let (results, results_left) = std::mem::take(&mut self.results).split_at_mut(whole);
        (self.keys, self.results) = (keys_left, results_left);
        keys.chunks_exact(keys_a_round).zip(results.chunks_exact_mut(keys_a_round))
    }
}

/// The positions of a number in a round of at most [`MOST_VECTORS`] whole vectors. They are collected without
/// a branch for each result, because the CPU would often predict that branch wrongly.
#[derive(Debug)]
pub struct Places([u32; MOST_LANES * (MOST_VECTORS + 1)]);

impl Places {
    /// Makes an empty list. Use one list for all rounds: making it takes longer than using it.
    #[inline(always)]
    pub fn new() -> Self {
        Self([0; MOST_LANES * (MOST_VECTORS + 1)])
    }

    /// The positions of a number in the results of a round.
    #[inline(always)]
    pub fn of<'p, V: Vector, T: Pod>(
        &'p mut self,
        cpu: Cpu<V>,
        number: V,
        round: &[T],
    ) -> impl Iterator<Item = usize> + use<'p, V, T> {
        let mut count = 0;
        for (first, numbers) in (0..).step_by(V::LANES).zip(round.chunks_exact(V::LANES)) {
            let mask = V::load(cpu, numbers).equals(number);
            // Each call writes a whole vector; the next call overwrites what is too much.
            count += V::put_places(cpu, mask, first, &mut self.0[count..]);
        }
        self.0[..count].iter().map(|&place| place as usize)
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::new()
    }
}
