//! Batches by vector gathers: the only unsafe code of the IPv6 engine.
//!
//! Keys go through the steps in [`Rounds`], one gather a step for the keys that are not done. Vectors go to
//! bit 64; the keys that lead on from there are finished one by one.
//!
//! Four vectors at a time are best where the table lies in the caches nearby: with eight the registers don't
//! hold what there is of each. Reads of a larger table wait for memory, and the gathers of four vectors are
//! all that a core looks ahead to. Then 128 keys go together and each step prefetches the elements of all of
//! them before it gathers the first.

use std::marker::PhantomData;

use wirespeed_fib::vector::{Batch, Cpu, InVectors, MOST_LANES, Mask, Vector};
use wirespeed_fib::{NextHop, V6, VectorLevel};
use wirespeed_image::{Element, Table, prefetch_at, prefetch_once_at};

use super::layout::{FoldTableV6, Rounds, section};
use super::rest::from_step;

/// How far ahead keys are prefetched, in keys: past the reads that are under way. Not for the caches that
/// tables lie in: keys pass through once.
const AHEAD: usize = 128;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many that
/// were. The table's elements have to be of type `W`.
pub(super) fn batch<W: Element>(
    level: VectorLevel,
    rounds: Rounds,
    table: &FoldTableV6,
    addresses: &[V6],
    next_hops: &mut [NextHop],
) -> usize {
    let batch = Batch::new(addresses, next_hops);
    level.run(Gathers { table, rounds, batch, elements: PhantomData::<W> }).unwrap_or(0)
}

/// Keys of a table.
struct Gathers<'a, W> {
    table: &'a FoldTableV6,
    rounds: Rounds,
    batch: Batch<'a, V6, NextHop>,
    elements: PhantomData<W>,
}

impl<W: Element> InVectors for Gathers<'_, W> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector>(mut self, cpu: Cpu<V>) -> usize {
        let all = self.batch.len();
        match (self.rounds, V::LANES) {
            (Rounds::Near, _) => {}
            (Rounds::Far, 16) => self.rounds::<V, 8, true>(cpu),
            (Rounds::Far, _) => self.rounds::<V, 16, true>(cpu),
        }
        self.rounds::<V, 4, false>(cpu);
        self.rounds::<V, 1, false>(cpu);
        all - self.batch.len()
    }
}

impl<W: Element> Gathers<'_, W> {
    /// Looks up keys, so many vectors at a time, while there are enough; `FAR` prefetches what a step reads.
    #[inline(always)]
    fn rounds<V: Vector, const VECTORS: usize, const FAR: bool>(&mut self, cpu: Cpu<V>) {
        let table = self.table;
        let base = V::splat(cpu, table.base);
        for (keys, results) in self.batch.rounds(V::LANES * VECTORS) {
            let mut upper = [V::splat(cpu, 0); VECTORS];
            let mut lower = [V::splat(cpu, 0); VECTORS];
            // Before the first step all lanes lead to chunk 0 of it.
            let mut found = [base; VECTORS];
            for v in 0..VECTORS {
                let keys = &keys[v * V::LANES..];
                for part in 0..4 {
                    prefetch_once_at(keys.as_ptr().wrapping_add(part * V::LANES / 4 + AHEAD).cast());
                }
                [upper[v], lower[v]] = V::load_first_words(cpu, keys);
            }
            let (mut from, mut done) = (0, 0);
            for (step, &stride) in table.shape.iter().enumerate() {
                if from == 64 {
                    break;
                }
                if from == 32 {
                    upper = lower;
                }
                from += stride;
                done = step + 1;
                let elements = table.image().padded(section(step));
                let stride = u32::from(stride);
                let index_of = |found: V, upper: V| (found - base) << stride | upper >> (32 - stride);
                // Few elements of the first step are in use.
                if FAR && step > 0 {
                    for (&found, &upper) in found.iter().zip(&upper) {
                        fetch::<V, W>(cpu, found.at_least(base), index_of(found, upper), elements);
                    }
                }
                let mut any = !V::all(cpu);
                for v in 0..VECTORS {
                    let open = found[v].at_least(base);
                    any = any | open;
                    let index = index_of(found[v], upper[v]);
                    upper[v] = upper[v] << stride;
                    #[allow(unsafe_code)]
                    // SAFETY: an open lane has the number of a chunk of this step, which every image and
                    // patch is checked for, and the step's elements are fewer than 2^31; a load from the last
                    // one ends in the padding.
                    unsafe {
                        found[v] = V::gather_where::<W>(cpu, open, index, elements, found[v]);
                    }
                }
                if !any.any() {
                    break;
                }
            }
            for (v, &found) in found.iter().enumerate() {
                found.store(&mut results[v * V::LANES..]);
                let mut open = found.at_least(base).bits();
                while open != 0 {
                    let at = v * V::LANES + open.trailing_zeros() as usize;
                    let chunk = results[at].0 - table.base;
                    results[at] = from_step::<W>(table, keys[at], done, chunk);
                    open &= open - 1;
                }
            }
        }
    }
}

/// Prefetches the elements at the indexes of the lanes of a mask, and the first element for each other lane.
#[inline(always)]
fn fetch<V: Vector, W>(cpu: Cpu<V>, lanes: V::Mask, index: V, elements: &[u8]) {
    let mut indexes = [0u32; MOST_LANES];
    V::select(lanes, index, V::splat(cpu, 0)).store(&mut indexes);
    for &index in &indexes[..V::LANES] {
        prefetch_at(elements.as_ptr().wrapping_add(index as usize * size_of::<W>()));
    }
}
