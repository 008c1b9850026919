//! The layout of tuples in a batch: the form of `kernels/tuples.cuh`, and results as rule numbers.
//!
//! ```text
//! first part    groups of 32 tuples: word 0 of each, word 1 of each, … every whole word; the last group filled up with zeros
//! second part   what is left of each, a byte, where tuples aren't of whole words
//! ```
//!
//! Tuples are structures of arrays, as in the paper (GSwitch, Algorithm 3), so that the threads of a warp
//! read consecutive words. They are divided into groups, so that a tuple is written while it is in the cache,
//! and the first tuples of a batch form a batch, too. On the bus a tuple takes only its own bytes: 13, 37,
//! 36 or 64.

use std::marker::PhantomData;

use bytemuck::{cast_slice, cast_slice_mut};
use wirespeed_classify::Tuple;

use crate::runtime::Form;

/// Tuples of a group.
pub const GROUP: usize = 32;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();
/// Bytes of a row: one word of each tuple of a group.
const ROW: usize = GROUP * WORD;

/// The kernels' name for such tuples. `None` if no kernel takes tuples of this size.
pub const fn kind<T: Tuple>() -> Option<&'static str> {
    match (T::WORDS, T::PACKED) {
        (4, 13) => Some("t4"),
        (10, 37) => Some("t10"),
        (9, 36) => Some("t9"),
        (16, 64) => Some("t16"),
        _ => None,
    }
}

/// Words that are sent whole.
const fn whole<T: Tuple>() -> usize {
    T::PACKED / WORD
}

/// Whether one byte of a further word is sent.
const fn has_tail<T: Tuple>() -> bool {
    !T::PACKED.is_multiple_of(WORD)
}

/// The offset of the second part of `count` tuples.
const fn second_of<T: Tuple>(count: usize) -> usize {
    count.div_ceil(GROUP) * whole::<T>() * ROW
}

/// Bytes of `count` tuples.
pub const fn bytes_of<T: Tuple>(count: usize) -> usize {
    second_of::<T>(count) + if has_tail::<T>() { count } else { 0 }
}

/// Writes tuples to the start of `to`, for results of `result_bytes` bytes. `None` if they don't fit, or if
/// there is no kernel.
#[inline(never)] // one copy for all crates
pub fn pack<T: Tuple>(tuples: &[T], result_bytes: usize, to: &mut [u8]) -> Option<Form> {
    let (kind, lanes) = (kind::<T>()?, Lanes::new(tuples.len()));
    let to = to.get_mut(..lanes.bytes())?;
    lanes.write_all(to, 0, tuples);
    Some(Form::parts(kind, tuples.len(), lanes.second(), lanes.bytes()).with_results_of(result_bytes))
}

/// The places of at most `capacity` tuples in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes<T> {
    capacity: usize,
    tuple: PhantomData<fn() -> T>,
}

impl<T: Tuple> Lanes<T> {
    /// Bytes of a group.
    const GROUP_BYTES: usize = whole::<T>() * ROW;

    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, tuple: PhantomData }
    }

    pub(super) const fn capacity(self) -> usize {
        self.capacity
    }

    /// The offset of the second part.
    pub(super) const fn second(self) -> usize {
        second_of::<T>(self.capacity)
    }

    /// Bytes of all places.
    pub(super) const fn bytes(self) -> usize {
        bytes_of::<T>(self.capacity)
    }

    /// Writes tuples to their places, from the first one of a group on. The last group is filled up with
    /// zeros.
    pub(super) fn write_all(self, to: &mut [u8], at: usize, tuples: &[T]) {
        debug_assert!(at.is_multiple_of(GROUP) || tuples.is_empty(), "{at} is in a group");
        let (groups, rest) = tuples.as_chunks::<GROUP>();
        let (first, tails) = to.split_at_mut(self.second());
        let mut places = first[at / GROUP * Self::GROUP_BYTES..].chunks_exact_mut(Self::GROUP_BYTES);
        for (group, to) in groups.iter().zip(&mut places) {
            write_group(group, to);
        }
        if let Some(to) = places.next().filter(|_| !rest.is_empty()) {
            let mut last = [T::default(); GROUP];
            last[..rest.len()].copy_from_slice(rest);
            write_group(&last, to);
        }
        if has_tail::<T>() {
            tuples
                .iter()
                .zip(&mut tails[at..])
                .for_each(|(tuple, to)| [.., *to] = tuple.words()[T::WORDS - 1].to_le_bytes());
        }
    }

    /// Moves the second part of `len` tuples behind their last group. The places are those of `len` tuples
    /// then.
    pub(super) fn shortened(self, to: &mut [u8], len: usize) -> Self {
        let short = Self::new(len);
        if has_tail::<T>() && short.second() != self.second() {
            to.copy_within(self.second()..self.second() + len, short.second());
        }
        short
    }

    /// Reads `len` tuples.
    pub(super) fn read(self, from: &[u8], len: usize) -> Vec<T> {
        let mut tuples = vec![T::default(); len];
        let (first, tails) = from.split_at(self.second());
        let to: &mut [u32] = cast_slice_mut(&mut tuples);
        for (at, to) in to.chunks_exact_mut(T::WORDS).enumerate() {
            let group = &first[at / GROUP * Self::GROUP_BYTES..][..Self::GROUP_BYTES];
            for (row, word) in group.as_chunks::<ROW>().0.iter().zip(&mut *to) {
                *word = u32::from_le_bytes(row.as_chunks::<WORD>().0[at % GROUP]);
            }
            if has_tail::<T>() {
                to[T::WORDS - 1] = u32::from(tails[at]) << 24;
            }
        }
        tuples
    }
}

/// Writes the whole words of a group.
#[inline(always)]
fn write_group<T: Tuple>(tuples: &[T; GROUP], to: &mut [u8]) {
    let words: &[u32] = cast_slice(tuples);
    let (rows, _) = to.as_chunks_mut::<ROW>();
    for (word, row) in rows.iter_mut().enumerate().take(whole::<T>()) {
        for (lane, to) in row.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
            *to = words[lane * T::WORDS + word].to_le_bytes();
        }
    }
}

/// The value that stands for numbers that are too large for results of `bytes` bytes.
pub(super) const fn most_of(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

/// Whether a number was too large for its result of `bytes` bytes. No rule has the largest number of 4 bytes.
pub fn has_too_large(results: &[u8], bytes: usize) -> bool {
    match bytes {
        1 => results.contains(&0xff),
        2 => {
            let (results, _) = results.as_chunks::<2>();
            // Without an end before the last result the loop has vectors.
            results.iter().fold(false, |has, result| has | (*result == [0xff; 2]))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::{Ipv4Tuple, Ipv6Tuple, OpenFlow13Tuple, OpenFlowTuple};

    use super::*;

    fn tuples<T: Tuple>(count: usize) -> Vec<T> {
        let word = |at: usize| u32::try_from(at).unwrap().wrapping_mul(0x9e37_79b9).rotate_left(9);
        let words = |n: usize| (0..T::WORDS).map(|at| word(1 + n * T::WORDS + at)).collect::<Vec<_>>();
        (0..count).map(|n| T::from_words(&words(n))).collect()
    }

    /// A tuple out of its form, as a kernel finds it.
    fn tuple_at<T: Tuple>(bytes: &[u8], form: Form, at: usize) -> T {
        let word = |word: usize| {
            let start = at / GROUP * whole::<T>() * ROW + word * ROW + at % GROUP * WORD;
            u32::from_le_bytes(bytes[start..][..WORD].try_into().unwrap())
        };
        let mut words: Vec<u32> = (0..whole::<T>()).map(word).collect();
        if has_tail::<T>() {
            words.push(u32::from(bytes[form.second().unwrap() + at]) << 24);
        }
        T::from_words(&words)
    }

    fn come_back<T: Tuple>(kind: &'static str) {
        for count in [0, 1, 31, 32, 33, 100] {
            let tuples = tuples::<T>(count);
            let mut bytes = vec![0xee; bytes_of::<T>(count)];
            let form = pack(&tuples, 2, &mut bytes).unwrap();
            assert_eq!((form.count(), form.bytes(), form.result_bytes()), (count, bytes.len(), Some(2)));
            assert_eq!(form.kind(), Form::parts(kind, 0, 0, 0).kind());
            assert_eq!(form.second().unwrap() % 16, 0);
            let found: Vec<T> = (0..count).map(|at| tuple_at(&bytes, form, at)).collect();
            assert_eq!(found, tuples);
            if let Some(short) = bytes.len().checked_sub(1) {
                assert_eq!(pack(&tuples, 2, &mut bytes[..short]), None);
            }
        }
        assert_eq!(bytes_of::<T>(GROUP * 10), T::PACKED * GROUP * 10, "no padding");
    }

    #[test]
    fn tuples_come_back_from_their_form() {
        come_back::<Ipv4Tuple>("t4");
        come_back::<Ipv6Tuple>("t10");
        come_back::<OpenFlowTuple>("t9");
        come_back::<OpenFlow13Tuple>("t16");
    }

    #[test]
    fn a_number_that_is_too_large_is_found() {
        assert_eq!([1, 2, 4].map(most_of), [0xff, 0xffff, 0xffff_ffff]);
        assert!(!has_too_large(&[7, 254, 0], 1) && has_too_large(&[7, 255, 0], 1));
        assert!(!has_too_large(&[255, 254, 254, 255], 2) && has_too_large(&[0, 0, 255, 255], 2));
        assert!(!has_too_large(&[255; 8], 4) && !has_too_large(&[], 1));
    }
}
