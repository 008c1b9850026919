//! [`Batch`]: keys and their results, taken from the front by so many vectors at a time; and the [`Places`]
//! of a number among the results of a round.

use std::iter::Zip;
use std::slice::{ChunksExact, ChunksExactMut};

use bytemuck::Pod;

use super::ops::{Cpu, MOST_LANES, Vector};

/// Vectors of a round, at most.
pub const MOST_VECTORS: usize = 8;

/// Keys that wait for their results.
#[derive(Debug)]
pub struct Batch<'a, K, R> {
    keys: &'a [K],
    results: &'a mut [R],
}

impl<'a, K, R> Batch<'a, K, R> {
    /// Keys, and where the result of each goes. Panics where these are not as many.
    #[inline]
    pub fn new(keys: &'a [K], results: &'a mut [R]) -> Self {
        assert_eq!(keys.len(), results.len(), "a result for each key");
        Self { keys, results }
    }

    /// How many still wait.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none does.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Takes as many rounds of so many keys from the front as there are.
    #[inline(always)]
    pub fn rounds(&mut self, keys_a_round: usize) -> Zip<ChunksExact<'a, K>, ChunksExactMut<'a, R>> {
        let whole = self.keys.len() - self.keys.len() % keys_a_round;
        let (keys, keys_left) = self.keys.split_at(whole);
        let (results, results_left) = std::mem::take(&mut self.results).split_at_mut(whole);
        (self.keys, self.results) = (keys_left, results_left);
        keys.chunks_exact(keys_a_round).zip(results.chunks_exact_mut(keys_a_round))
    }
}

/// Places in a round of whole vectors, [`MOST_VECTORS`] at most. Whoever goes through them asks for none
/// whether it is one, which would be a branch that goes wrong.
#[derive(Debug)]
pub struct Places([u32; MOST_LANES * (MOST_VECTORS + 1)]);

impl Places {
    /// None yet. To be made once for all rounds, as that takes longer than to use it.
    #[inline(always)]
    pub fn new() -> Self {
        Self([0; MOST_LANES * (MOST_VECTORS + 1)])
    }

    /// Where a round has a number.
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
            // A vector is put at a time, wherever its last place goes.
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
