//! Linear search by vectors: the only unsafe code of the engine.

use wirespeed_table::VectorLevel;

use super::layout::View;
use super::portable::portable;
use crate::tuple::Tuple;

/// Looks up a batch with the fastest vectors that this CPU has.
#[inline]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    if !VectorLevel::ALL.into_iter().any(|level| run(level, view, tuples, results)) {
        portable(view, tuples, results);
    }
}

/// Looks up a batch with these vectors, if the CPU has them; whether it did.
#[inline]
#[allow(unsafe_code)]
pub(super) fn run<T: Tuple>(level: VectorLevel, view: View<'_>, tuples: &[T], results: &mut [u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if level.is_here() && is_x86_feature_detected!("bmi1") {
        match level {
            // SAFETY: the CPU has the features.
            VectorLevel::Avx512 => unsafe { avx512::batch(view, tuples, results) },
            // SAFETY: the CPU has the features.
            VectorLevel::Avx2 => unsafe { avx2::batch(view, tuples, results) },
            VectorLevel::Portable => return false,
        }
        return true;
    }
    let _ = (level, view, tuples, results);
    false
}

/// The number of the first lane of those that match; a lane of number 0 has no entry.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_number(mut lanes: u32, numbers: &[u32]) -> Option<u32> {
    while lanes != 0 {
        let number = numbers[lanes.trailing_zeros() as usize];
        if number != 0 {
            return Some(number);
        }
        lanes &= lanes - 1;
    }
    None
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_cmpeq_epi32_mask, _mm512_set1_epi32,
        _mm512_setzero_si512,
    };

    use super::super::layout::{LANES, MOST_WORDS, View, group_elements};
    use super::first_number;
    use crate::tuple::Tuple;

    /// A tuple after the other, a group at a time.
    #[target_feature(enable = "avx512f,bmi1")]
    pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
        for (tuple, result) in tuples.iter().zip(results) {
            *result = first(view, tuple);
        }
    }

    #[target_feature(enable = "avx512f,bmi1")]
    fn first<T: Tuple>(view: View<'_>, tuple: &T) -> u32 {
        let mut words = [_mm512_setzero_si512(); MOST_WORDS];
        for (vector, &word) in words.iter_mut().zip(tuple.words()) {
            *vector = _mm512_set1_epi32(word.cast_signed());
        }
        let groups =
            view.entries.chunks_exact(group_elements(T::WORDS)).zip(view.numbers.chunks_exact(LANES));
        for (entries, numbers) in groups {
            let found = matching::<T>(entries, &words);
            if let Some(number) = first_number(found.into(), numbers) {
                return number;
            }
        }
        0
    }

    /// The lanes of a group that match.
    #[target_feature(enable = "avx512f,bmi1")]
    fn matching<T: Tuple>(entries: &[u32], words: &[__m512i; MOST_WORDS]) -> u16 {
        let mut lanes = u16::MAX;
        for (word, pairs) in entries.chunks_exact(2 * LANES).enumerate().take(T::WORDS) {
            // Most groups are out after a word or two.
            if lanes == 0 {
                break;
            }
            // SAFETY: `pairs` has 16 values and 16 masks.
            let (values, masks) = unsafe {
                (
                    _mm512_loadu_si512(pairs.as_ptr().cast()),
                    _mm512_loadu_si512(pairs[LANES..].as_ptr().cast()),
                )
            };
            lanes = _mm512_mask_cmpeq_epi32_mask(lanes, _mm512_and_si512(words[word], masks), values);
        }
        lanes
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_loadu_si256,
        _mm256_movemask_ps, _mm256_set1_epi32, _mm256_setzero_si256,
    };

    use super::super::layout::{LANES, MOST_WORDS, View, group_elements};
    use super::first_number;
    use crate::tuple::Tuple;

    /// Lanes of a vector, half a group.
    const HALF: usize = LANES / 2;

    /// A tuple after the other, a group at a time.
    #[target_feature(enable = "avx2,bmi1")]
    pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
        for (tuple, result) in tuples.iter().zip(results) {
            *result = first(view, tuple);
        }
    }

    #[target_feature(enable = "avx2,bmi1")]
    fn first<T: Tuple>(view: View<'_>, tuple: &T) -> u32 {
        let mut words = [_mm256_setzero_si256(); MOST_WORDS];
        for (vector, &word) in words.iter_mut().zip(tuple.words()) {
            *vector = _mm256_set1_epi32(word.cast_signed());
        }
        let groups =
            view.entries.chunks_exact(group_elements(T::WORDS)).zip(view.numbers.chunks_exact(LANES));
        for (entries, numbers) in groups {
            let found = matching::<T>(entries, &words, 0) | matching::<T>(entries, &words, HALF) << HALF;
            if let Some(number) = first_number(found, numbers) {
                return number;
            }
        }
        0
    }

    /// The lanes of half a group that match.
    #[target_feature(enable = "avx2,bmi1")]
    fn matching<T: Tuple>(entries: &[u32], words: &[__m256i; MOST_WORDS], from: usize) -> u32 {
        let mut same = _mm256_set1_epi32(-1);
        for (word, pairs) in entries.chunks_exact(2 * LANES).enumerate().take(T::WORDS) {
            let (values, masks) = (&pairs[from..from + HALF], &pairs[LANES + from..LANES + from + HALF]);
            // SAFETY: both have 8 elements.
            let (values, masks) = unsafe {
                (_mm256_loadu_si256(values.as_ptr().cast()), _mm256_loadu_si256(masks.as_ptr().cast()))
            };
            let equal = _mm256_cmpeq_epi32(_mm256_and_si256(words[word], masks), values);
            same = _mm256_and_si256(same, equal);
        }
        _mm256_movemask_ps(_mm256_castsi256_ps(same)).cast_unsigned()
    }
}
