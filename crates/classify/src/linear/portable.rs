//! A batch on any CPU, without an instruction that not all have.

use super::layout::{LANES, View, group_elements};
use crate::tuple::Tuple;

/// The first lane of a group that has an entry which matches, for compilers to make vectors of.
#[inline(always)]
pub(super) fn first_lane<T: Tuple>(entries: &[u32], numbers: &[u32], tuple: &T) -> Option<usize> {
    let mut differ = [0; LANES];
    for (pairs, word) in entries.chunks_exact(2 * LANES).zip(tuple.words()) {
        let (values, masks) = pairs.split_at(LANES);
        for lane in 0..LANES {
            differ[lane] |= word & masks[lane] ^ values[lane];
        }
    }
    differ.iter().zip(numbers).position(|(&bits, &number)| bits == 0 && number != 0)
}

/// A batch on any CPU.
pub(super) fn portable<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    for (tuple, result) in tuples.iter().zip(results) {
        let mut groups =
            view.entries.chunks_exact(group_elements(T::WORDS)).zip(view.numbers.chunks_exact(LANES));
        let first = |(entries, numbers): (&[u32], &[u32])| {
            first_lane(entries, numbers, tuple).map(|lane| numbers[lane])
        };
        *result = groups.find_map(first).unwrap_or(0);
    }
}
