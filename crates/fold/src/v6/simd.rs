//! Batches by AVX-512 gathers: the only unsafe code of the IPv6 engine.
//!
//! Sixteen keys a vector, four vectors at a time (with eight the registers don't hold what there is of each,
//! and it was slower), one gather a step for the keys that are not done. Vectors go to bit 64; the keys that
//! lead on from there are finished one by one.

#[cfg(target_arch = "x86_64")]
use wirespeed_fib::VectorLevel;
use wirespeed_fib::{NextHop, V6};
use wirespeed_image::Element;

use super::layout::FoldTableV6;

/// Looks up as many of the keys, from the front, as this CPU can do in vectors; how many that were.
pub(super) fn batch<W: Element>(table: &FoldTableV6, addresses: &[V6], next_hops: &mut [NextHop]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if VectorLevel::Avx512.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has it; the elements of the table are of this type.
        return unsafe { avx512::batch::<W>(table, addresses, next_hops) };
    }
    let _ = (table, addresses, next_hops);
    0
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, __mmask16, _MM_HINT_NTA, _mm_prefetch, _mm512_and_si512, _mm512_castsi512_si256,
        _mm512_cmpge_epu32_mask, _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_i32gather_epi32,
        _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_set1_epi32, _mm512_setr_epi32,
        _mm512_setzero_si512, _mm512_sllv_epi32, _mm512_srlv_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
    };

    use wirespeed_fib::{NextHop, V6};
    use wirespeed_image::{Element, Table};

    use super::super::layout::{FoldTableV6, section};
    use super::super::lookup::from_step;

    /// Keys in a vector.
    const LANES: usize = 16;
    /// How far ahead keys are prefetched, in keys: past the reads that are under way. Not for the caches that
    /// tables lie in: keys pass through once.
    const AHEAD: usize = 128;

    /// Four vectors at a time, then one; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. The elements of the table must be of type `W`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn batch<W: Element>(
        table: &FoldTableV6,
        addresses: &[V6],
        results: &mut [NextHop],
    ) -> usize {
        // SAFETY: as our caller promises.
        unsafe {
            let fours = rounds::<W, 4>(table, addresses, results);
            let ones = rounds::<W, 1>(table, &addresses[fours..], &mut results[fours..]);
            fours + ones
        }
    }

    /// Looks up keys, so many vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// As [`batch`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn rounds<W: Element, const VECTORS: usize>(
        table: &FoldTableV6,
        addresses: &[V6],
        results: &mut [NextHop],
    ) -> usize {
        // The bits 0 to 31 and 32 to 63 of eight keys in two vectors of four; a key is in host order.
        let first = _mm512_setr_epi32(3, 7, 11, 15, 19, 23, 27, 31, 0, 0, 0, 0, 0, 0, 0, 0);
        let second = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 0, 0, 0, 0, 0, 0, 0, 0);
        let base = _mm512_set1_epi32(table.base.cast_signed());
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut upper = [_mm512_setzero_si512(); VECTORS];
            let mut lower = [_mm512_setzero_si512(); VECTORS];
            // Before the first step all lanes lead to chunk 0 of it.
            let mut found = [base; VECTORS];
            for v in 0..VECTORS {
                let keys = keys[v * LANES..(v + 1) * LANES].as_ptr().cast::<__m512i>();
                // SAFETY: these are 16 keys of 16 bytes; a prefetch may be of any address.
                unsafe {
                    let part = |at: usize| {
                        _mm_prefetch::<_MM_HINT_NTA>(keys.wrapping_add(at + AHEAD / 4).cast());
                        _mm512_loadu_si512(keys.add(at))
                    };
                    let parts = [part(0), part(1), part(2), part(3)];
                    upper[v] = pick(parts, first);
                    lower[v] = pick(parts, second);
                }
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
                let shift = _mm512_set1_epi32(stride.into());
                let rest = _mm512_set1_epi32((32 - stride).into());
                let mut any: __mmask16 = 0;
                for v in 0..VECTORS {
                    let open = _mm512_cmpge_epu32_mask(found[v], base);
                    any |= open;
                    let chunk = _mm512_sllv_epi32(_mm512_sub_epi32(found[v], base), shift);
                    let index = _mm512_or_si512(chunk, _mm512_srlv_epi32(upper[v], rest));
                    upper[v] = _mm512_sllv_epi32(upper[v], shift);
                    // SAFETY: an open lane has the number of a chunk of this step, which every image and
                    // patch is checked for, and the step's elements are fewer than 2^31; a load from the last
                    // one ends in the padding.
                    found[v] = unsafe { gather::<W>(found[v], open, index, elements) };
                }
                if any == 0 {
                    break;
                }
            }
            for (v, &found) in found.iter().enumerate() {
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), found) };
                let mut open = _mm512_cmpge_epu32_mask(found, base);
                while open != 0 {
                    let at = v * LANES + open.trailing_zeros() as usize;
                    let chunk = results[at].0 - table.base;
                    results[at] = from_step::<W>(table, keys[at], done, chunk);
                    open &= open - 1;
                }
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// The words of sixteen keys at the places that `which` has for eight.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn pick(keys: [__m512i; 4], which: __m512i) -> __m512i {
        let [a, b, c, d] = keys;
        let front = _mm512_permutex2var_epi32(a, which, b);
        let back = _mm512_permutex2var_epi32(c, which, d);
        _mm512_inserti64x4::<1>(front, _mm512_castsi512_si256(back))
    }

    /// Elements of type `W` at the indexes of the lanes in the mask, widened; `found` in the others.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index in the mask must be of an element of `bytes`, at least 3 bytes
    /// before its end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather<W: Element>(found: __m512i, mask: __mmask16, index: __m512i, bytes: &[u8]) -> __m512i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<W>() {
                // What was found before is no wider either.
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(found, mask, index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(found, mask, index, from),
            }
        }
    }
}
