//! Linear search by vectors.

use wirespeed_table::VectorLevel;
use wirespeed_table::vector::{Cpu, InVectors, Mask, Vector};

use super::layout::{LANES, MOST_WORDS, View, group_elements};
use super::portable::portable;
use crate::tuple::Tuple;

/// Looks up a batch with the fastest vectors that this CPU has.
#[inline]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    if !run(VectorLevel::best(), view, tuples, results) {
        portable(view, tuples, results);
    }
}

/// Looks up a batch with these vectors, if the CPU has them; whether it did.
#[inline]
pub(super) fn run<T: Tuple>(level: VectorLevel, view: View<'_>, tuples: &[T], results: &mut [u32]) -> bool {
    level.run(Scan { view, tuples, results }).is_some()
}

/// Tuples of a table, one after the other, a group at a time.
struct Scan<'a, T> {
    view: View<'a>,
    tuples: &'a [T],
    results: &'a mut [u32],
}

impl<T: Tuple> InVectors for Scan<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector>(self, cpu: Cpu<V>) {
        for (tuple, result) in self.tuples.iter().zip(self.results) {
            *result = first(cpu, self.view, tuple);
        }
    }
}

/// The number of the first entry that matches.
#[inline(always)]
fn first<T: Tuple, V: Vector>(cpu: Cpu<V>, view: View<'_>, tuple: &T) -> u32 {
    let mut words = [V::splat(cpu, 0); MOST_WORDS];
    for (vector, &word) in words.iter_mut().zip(tuple.words()) {
        *vector = V::splat(cpu, word);
    }
    let groups = view.entries.chunks_exact(group_elements(T::WORDS)).zip(view.numbers.chunks_exact(LANES));
    for (entries, numbers) in groups {
        let mut lanes = 0;
        for from in (0..LANES).step_by(V::LANES) {
            lanes |= matching::<T, V>(cpu, entries, &words, from) << from;
        }
        // A lane of number 0 has no entry.
        while lanes != 0 {
            let number = numbers[lanes.trailing_zeros() as usize];
            if number != 0 {
                return number;
            }
            lanes &= lanes - 1;
        }
    }
    0
}

/// The lanes of a group that match, of a vector of them.
#[inline(always)]
fn matching<T: Tuple, V: Vector>(cpu: Cpu<V>, entries: &[u32], words: &[V; MOST_WORDS], from: usize) -> u32 {
    let mut same = V::all(cpu);
    for (word, pairs) in entries.chunks_exact(2 * LANES).enumerate().take(T::WORDS) {
        // Most groups are out after a word or two.
        if !same.any() {
            break;
        }
        let (values, masks) = (V::load(cpu, &pairs[from..]), V::load(cpu, &pairs[LANES + from..]));
        same = same & (words[word] & masks).equals(values);
    }
    same.bits()
}
