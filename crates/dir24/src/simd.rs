//! Batches by vector gathers, AVX-512 or AVX2: the only unsafe code of this crate.
//!
//! A gather of tbl24 for so many vectors at a time that its misses overlap, then a gather of tbl8 for the keys of those
//! vectors that lead on, if any does.

use wirespeed_fib::{NextHop, V4, Way};
use wirespeed_image::{Element, Image};

/// Looks up as many of the keys, from the front, as a way does in vectors, where the CPU has it; how many that were.
pub(super) fn batch<W: Element>(
    way: Way,
    image: &Image,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if way.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has the feature; the image is that of a table, whose entries are of this type.
        unsafe {
            match way {
                Way::Avx512 => return avx512::batch::<W>(image, addresses, next_hops),
                Way::Avx2 => return avx2::batch::<W>(image, addresses, next_hops),
                Way::Portable => {}
            }
        }
    }
    let _ = (way, image, addresses, next_hops);
    0
}

/// How far ahead keys are prefetched, in keys: past the reads that are under way.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, __mmask16, _MM_HINT_T0, _mm_prefetch, _mm512_and_si512, _mm512_i32gather_epi32,
        _mm512_loadu_si512, _mm512_mask_and_epi32, _mm512_mask_i32gather_epi32, _mm512_or_si512,
        _mm512_set1_epi32, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_si512,
        _mm512_test_epi32_mask,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{TBL8, TBL24, chunk_bit};
    use super::AHEAD;

    /// Keys in a vector.
    const LANES: usize = 16;

    /// Eight vectors at a time, then four, then one; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. `image` must be that of a [`Dir24Table`](super::super::Dir24Table) whose entries are of
    /// type `W`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn batch<W: Element>(
        image: &Image,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        // SAFETY: as our caller promises.
        unsafe {
            let eights = rounds::<W, 8>(image, addresses, results);
            let (addresses, results) = (&addresses[eights..], &mut results[eights..]);
            let fours = rounds::<W, 4>(image, addresses, results);
            let ones = rounds::<W, 1>(image, &addresses[fours..], &mut results[fours..]);
            eights + fours + ones
        }
    }

    /// Looks up keys, so many vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// As [`batch`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn rounds<W: Element, const VECTORS: usize>(
        image: &Image,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        let (tbl24, tbl8) = (image.padded(TBL24), image.padded(TBL8));
        let bit = _mm512_set1_epi32(chunk_bit(size_of::<W>()).cast_signed());
        let not_bit = _mm512_set1_epi32((!chunk_bit(size_of::<W>())).cast_signed());
        let last_octet = _mm512_set1_epi32(0xff);
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut key = [_mm512_setzero_si512(); VECTORS];
            let mut found = [_mm512_setzero_si512(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: a prefetch may be of any address. `keys` are `at_a_time` integers of 32 bits, and an index of
                // 24 bits is inside tbl24, from whose last entry a load ends in the padding.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(keys.as_ptr().wrapping_add(v * LANES + AHEAD).cast());
                    key[v] = _mm512_loadu_si512(keys.as_ptr().add(v * LANES).cast());
                    found[v] =
                        gather::<W>(_mm512_setzero_si512(), u16::MAX, _mm512_srli_epi32::<8>(key[v]), tbl24);
                }
            }
            for v in 0..VECTORS {
                let open = _mm512_test_epi32_mask(found[v], bit);
                if open != 0 {
                    let chunk = _mm512_and_si512(found[v], not_bit);
                    let octet = _mm512_and_si512(key[v], last_octet);
                    let index = _mm512_or_si512(_mm512_slli_epi32::<8>(chunk), octet);
                    // SAFETY: an entry of tbl24 with the bit is a chunk of tbl8, which every image and patch is checked
                    // for; there are at most 2^23, so an index is below 2^31; a load from the last entry ends in the
                    // padding.
                    found[v] = unsafe { gather::<W>(found[v], open, index, tbl8) };
                }
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), found[v]) };
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// Entries of type `W` at the indexes of the lanes in the mask, widened; `before` in the others.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index in the mask must be of an entry of `bytes`, at least 3 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather<W: Element>(before: __m512i, mask: __mmask16, index: __m512i, bytes: &[u8]) -> __m512i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an entry.
        unsafe {
            match (size_of::<W>(), mask) {
                (1, u16::MAX) => {
                    _mm512_and_si512(_mm512_i32gather_epi32::<1>(index, from), _mm512_set1_epi32(0xff))
                }
                (2, u16::MAX) => {
                    _mm512_and_si512(_mm512_i32gather_epi32::<2>(index, from), _mm512_set1_epi32(0xffff))
                }
                (1, _) => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(before, mask, index, from);
                    _mm512_mask_and_epi32(before, mask, wide, _mm512_set1_epi32(0xff))
                }
                (2, _) => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(before, mask, index, from);
                    _mm512_mask_and_epi32(before, mask, wide, _mm512_set1_epi32(0xffff))
                }
                (_, u16::MAX) => _mm512_i32gather_epi32::<4>(index, from),
                _ => _mm512_mask_i32gather_epi32::<4>(before, mask, index, from),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8,
        _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_mask_i32gather_epi32, _mm256_or_si256,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256,
        _mm256_testz_si256,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{TBL8, TBL24, chunk_bit};
    use super::AHEAD;

    /// Keys in a vector.
    const LANES: usize = 8;
    /// Vectors at a time.
    const VECTORS: usize = 8;

    /// Looks up keys, eight vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX2. `image` must be that of a [`Dir24Table`](super::super::Dir24Table) whose entries are of
    /// type `W`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn batch<W: Element>(
        image: &Image,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        let (tbl24, tbl8) = (image.padded(TBL24), image.padded(TBL8));
        let bit = _mm256_set1_epi32(chunk_bit(size_of::<W>()).cast_signed());
        let last_octet = _mm256_set1_epi32(0xff);
        let every = _mm256_set1_epi32(-1);
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut key = [_mm256_setzero_si256(); VECTORS];
            let mut found = [_mm256_setzero_si256(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: a prefetch may be of any address. `keys` are `at_a_time` integers of 32 bits, and an index of
                // 24 bits is inside tbl24, from whose last entry a load ends in the padding.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(keys.as_ptr().wrapping_add(v * LANES + AHEAD).cast());
                    key[v] = _mm256_loadu_si256(keys.as_ptr().add(v * LANES).cast());
                    found[v] = gather::<W>(every, _mm256_srli_epi32::<8>(key[v]), tbl24);
                }
            }
            for v in 0..VECTORS {
                if _mm256_testz_si256(found[v], bit) == 0 {
                    let open = _mm256_cmpeq_epi32(_mm256_and_si256(found[v], bit), bit);
                    let chunk = _mm256_andnot_si256(bit, found[v]);
                    let octet = _mm256_and_si256(key[v], last_octet);
                    let index = _mm256_or_si256(_mm256_slli_epi32::<8>(chunk), octet);
                    // SAFETY: an entry of tbl24 with the bit is a chunk of tbl8, which every image and patch is checked
                    // for; there are at most 2^23, so an index is below 2^31; a load from the last entry ends in the
                    // padding.
                    let second = unsafe { gather::<W>(open, index, tbl8) };
                    found[v] = _mm256_blendv_epi8(found[v], second, open);
                }
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm256_storeu_si256(results.as_mut_ptr().add(v * LANES).cast(), found[v]) };
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// Entries of type `W` at the indexes of the lanes that are all ones in the mask, widened; 0 in the others.
    ///
    /// # Safety
    /// The CPU must have AVX2. Each index in the mask must be of an entry of `bytes`, at least 3 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn gather<W: Element>(mask: __m256i, index: __m256i, bytes: &[u8]) -> __m256i {
        let (none, from) = (_mm256_setzero_si256(), bytes.as_ptr().cast());
        // SAFETY: as our caller promises; the scale is the size of an entry.
        unsafe {
            match size_of::<W>() {
                1 => {
                    let wide = _mm256_mask_i32gather_epi32::<1>(none, from, index, mask);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm256_mask_i32gather_epi32::<2>(none, from, index, mask);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xffff))
                }
                _ => _mm256_mask_i32gather_epi32::<4>(none, from, index, mask),
            }
        }
    }
}
