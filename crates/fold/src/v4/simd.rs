//! Batches by vector gathers, AVX-512 or AVX2: the only unsafe code of the IPv4 engines.
//!
//! A gather of c18 and a gather of n24 for so many vectors at a time that the second finds what the first
//! asked for; keys to come are prefetched. Keys that lead on are collected and finished one by one.

use wirespeed_fib::{NextHop, V4, VectorLevel};
use wirespeed_image::{Element, Image};

use super::layout::Split;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many
/// that were.
pub(super) fn batch<S: Split, I: Element, W: Element>(
    level: VectorLevel,
    image: &Image,
    base: u32,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if level.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has the feature; the image is that of a table, whose elements are of these types
        // and whose numbers of chunks start from `base`.
        unsafe {
            match level {
                VectorLevel::Avx512 => return avx512::batch::<S, I, W>(image, base, addresses, next_hops),
                VectorLevel::Avx2 => return avx2::batch::<S, I, W>(image, base, addresses, next_hops),
                VectorLevel::Portable => {}
            }
        }
    }
    let _ = (level, image, base, addresses, next_hops);
    0
}

/// How far ahead keys are prefetched, in keys: past the reads that are under way.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 512;

/// Elements of a slot, for a lane.
#[cfg(target_arch = "x86_64")]
fn elements<S: Split>() -> i32 {
    i32::try_from(S::SHORT).expect("at most 2^24")
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, __m512i, __mmask16, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_prefetch, _mm512_add_epi32,
        _mm512_and_si512, _mm512_cmpeq_epi32_mask, _mm512_cmpge_epu32_mask, _mm512_i32gather_epi32,
        _mm512_loadu_si512, _mm512_mask_i32gather_epi32, _mm512_maskz_compress_epi32, _mm512_or_si512,
        _mm512_set1_epi32, _mm512_setr_epi32, _mm512_setzero_si512, _mm512_sll_epi32, _mm512_srl_epi32,
        _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{C18, N24, Split, mark};
    use super::super::lookup::lookup_long;
    use super::{AHEAD, elements};

    /// Keys in a vector.
    const LANES: usize = 16;

    /// Eight vectors at a time, then four, then one; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. `image` must be that of a table of split `S` whose slots are of type `I`,
    /// whose chunk elements are of type `W` and whose numbers of chunks start from `base`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn batch<S: Split, I: Element, W: Element>(
        image: &Image,
        base: u32,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        // SAFETY: as our caller promises.
        unsafe {
            let eights = rounds::<S, I, W, 8>(image, base, addresses, results);
            let (addresses, results) = (&addresses[eights..], &mut results[eights..]);
            let fours = rounds::<S, I, W, 4>(image, base, addresses, results);
            let ones = rounds::<S, I, W, 1>(image, base, &addresses[fours..], &mut results[fours..]);
            eights + fours + ones
        }
    }

    /// Looks up keys, so many vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// As [`batch`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn rounds<S: Split, I: Element, W: Element, const VECTORS: usize>(
        image: &Image,
        base: u32,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        let (slots, n24) = (image.padded(C18), image.padded(N24));
        let [slot_shift, short_shift] = shifts::<S>();
        let element_mask = _mm512_set1_epi32(elements::<S>() - 1);
        let bases = _mm512_set1_epi32(base.cast_signed());
        let marks = _mm512_set1_epi32(mark(size_of::<W>()).cast_signed());
        let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut key = [_mm512_setzero_si512(); VECTORS];
            let mut slot = [_mm512_setzero_si512(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: a prefetch may be of any address. `keys` are `at_a_time` integers of 32 bits, and
                // the first bits of a key are an element of the slots.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(keys.as_ptr().wrapping_add(v * LANES + AHEAD).cast());
                    key[v] = _mm512_loadu_si512(keys.as_ptr().add(v * LANES).cast());
                    slot[v] = gather::<I>(_mm512_srl_epi32(key[v], slot_shift), slots);
                }
            }
            // One vector more than there are keys, for the last compressed store.
            let mut long = [[0u32; LANES]; 9];
            let mut longs = 0;
            for v in 0..VECTORS {
                let element = _mm512_and_si512(_mm512_srli_epi32::<8>(key[v]), element_mask);
                let chunk = _mm512_sub_epi32(slot[v], bases);
                let index = _mm512_or_si512(_mm512_sll_epi32(chunk, short_shift), element);
                // SAFETY: an element of the slots from `base` on, and any where they are not direct, is a
                // chunk of n24, which every image and patch is checked for, and its elements are fewer than
                // 2^29; a load from the last one ends in the padding.
                let found = unsafe {
                    match S::DIRECT {
                        true => {
                            let deeper = _mm512_cmpge_epu32_mask(slot[v], bases);
                            gather_where::<W>(slot[v], deeper, index, n24)
                        }
                        false => gather::<W>(index, n24),
                    }
                };
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), found) };
                let open = _mm512_cmpeq_epi32_mask(found, marks);
                if open != 0 {
                    let first = i32::try_from(v * LANES).unwrap_or(0);
                    let places = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
                    let places = _mm512_maskz_compress_epi32(open, places);
                    let to = &mut long.as_flattened_mut()[longs..longs + LANES];
                    // SAFETY: `to` is 16 integers of 32 bits.
                    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), places) };
                    longs += open.count_ones() as usize;
                }
            }
            for &place in &long.as_flattened()[..longs] {
                results[place as usize] = lookup_long::<S, W>(image, keys[place as usize]);
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// The shifts that make slots of keys, and places of chunks.
    #[target_feature(enable = "avx512f")]
    fn shifts<S: Split>() -> [__m128i; 2] {
        [32 - S::SLOT_BITS, S::SHORT.trailing_zeros()].map(|bits| _mm_cvtsi32_si128(bits.cast_signed()))
    }

    /// Elements of type `T` at the indexes where the mask is set, widened; elsewhere what was there, of which
    /// there must not be more than `T` holds.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index where the mask is set must be of an element of `bytes`, at
    /// least 3 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather_where<T: Element>(
        elsewhere: __m512i,
        mask: __mmask16,
        index: __m512i,
        bytes: &[u8],
    ) -> __m512i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<T>() {
                1 => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(elsewhere, mask, index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(elsewhere, mask, index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(elsewhere, mask, index, from),
            }
        }
    }

    /// Elements of type `T` at the indexes, widened.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index must be of an element of `bytes`, at least 3 bytes before its
    /// end.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather<T: Element>(index: __m512i, bytes: &[u8]) -> __m512i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<T>() {
                1 => {
                    let wide = _mm512_i32gather_epi32::<1>(index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_i32gather_epi32::<2>(index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_i32gather_epi32::<4>(index, from),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m128i, __m256i, _MM_HINT_T0, _mm_cvtsi32_si128, _mm_prefetch, _mm256_and_si256,
        _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_i32gather_epi32,
        _mm256_loadu_si256, _mm256_mask_i32gather_epi32, _mm256_movemask_ps, _mm256_or_si256,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sll_epi32, _mm256_srl_epi32, _mm256_srli_epi32,
        _mm256_storeu_si256, _mm256_sub_epi32, _mm256_xor_si256,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{C18, N24, Split, mark};
    use super::super::lookup::lookup_long;
    use super::{AHEAD, elements};

    /// Keys in a vector.
    const LANES: usize = 8;
    /// Vectors at a time.
    const VECTORS: usize = 8;

    /// Looks up keys, eight vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX2. `image` must be that of a table of split `S` whose slots are of type `I`,
    /// whose chunk elements are of type `W` and whose numbers of chunks start from `base`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn batch<S: Split, I: Element, W: Element>(
        image: &Image,
        base: u32,
        addresses: &[V4],
        results: &mut [NextHop],
    ) -> usize {
        let (slots, n24) = (image.padded(C18), image.padded(N24));
        let [slot_shift, short_shift] = shifts::<S>();
        let element_mask = _mm256_set1_epi32(elements::<S>() - 1);
        let bases = _mm256_set1_epi32(base.cast_signed());
        let marks = _mm256_set1_epi32(mark(size_of::<W>()).cast_signed());
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut key = [_mm256_setzero_si256(); VECTORS];
            let mut slot = [_mm256_setzero_si256(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: a prefetch may be of any address. `keys` are `at_a_time` integers of 32 bits, and
                // the first bits of a key are an element of the slots.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(keys.as_ptr().wrapping_add(v * LANES + AHEAD).cast());
                    key[v] = _mm256_loadu_si256(keys.as_ptr().add(v * LANES).cast());
                    slot[v] = gather::<I>(_mm256_srl_epi32(key[v], slot_shift), slots);
                }
            }
            let mut long = 0u64;
            for v in 0..VECTORS {
                let element = _mm256_and_si256(_mm256_srli_epi32::<8>(key[v]), element_mask);
                let chunk = _mm256_sub_epi32(slot[v], bases);
                let index = _mm256_or_si256(_mm256_sll_epi32(chunk, short_shift), element);
                // SAFETY: an element of the slots from `base` on, and any where they are not direct, is a
                // chunk of n24, which every image and patch is checked for, and its elements are fewer than
                // 2^29; a load from the last one ends in the padding.
                let found = unsafe {
                    match S::DIRECT {
                        true => {
                            // Signed: what a table of a direct split has for slots stays below 2^31.
                            let nearer = _mm256_cmpgt_epi32(bases, slot[v]);
                            gather_unless::<W>(slot[v], nearer, index, n24)
                        }
                        false => gather::<W>(index, n24),
                    }
                };
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm256_storeu_si256(results.as_mut_ptr().add(v * LANES).cast(), found) };
                let open = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(found, marks)));
                long |= u64::from(open.cast_unsigned()) << (v * LANES);
            }
            while long != 0 {
                let place = long.trailing_zeros() as usize;
                results[place] = lookup_long::<S, W>(image, keys[place]);
                long &= long - 1;
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// The shifts that make slots of keys, and places of chunks.
    #[target_feature(enable = "avx2")]
    fn shifts<S: Split>() -> [__m128i; 2] {
        [32 - S::SLOT_BITS, S::SHORT.trailing_zeros()].map(|bits| _mm_cvtsi32_si128(bits.cast_signed()))
    }

    /// Elements of type `T` at the indexes, widened, but in lanes of all ones what was there, of which there
    /// must not be more than `T` holds.
    ///
    /// # Safety
    /// The CPU must have AVX2. Each index in a lane of zeros must be of an element of `bytes`, at least 3
    /// bytes before its end.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn gather_unless<T: Element>(
        was: __m256i,
        unless: __m256i,
        index: __m256i,
        bytes: &[u8],
    ) -> __m256i {
        let from = bytes.as_ptr().cast();
        let mask = _mm256_xor_si256(unless, _mm256_set1_epi32(-1));
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<T>() {
                1 => {
                    let wide = _mm256_mask_i32gather_epi32::<1>(was, from, index, mask);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm256_mask_i32gather_epi32::<2>(was, from, index, mask);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xffff))
                }
                _ => _mm256_mask_i32gather_epi32::<4>(was, from, index, mask),
            }
        }
    }

    /// Elements of type `T` at the indexes, widened.
    ///
    /// # Safety
    /// The CPU must have AVX2. Each index must be of an element of `bytes`, at least 3 bytes before its end.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn gather<T: Element>(index: __m256i, bytes: &[u8]) -> __m256i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match size_of::<T>() {
                1 => {
                    let wide = _mm256_i32gather_epi32::<1>(from, index);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm256_i32gather_epi32::<2>(from, index);
                    _mm256_and_si256(wide, _mm256_set1_epi32(0xffff))
                }
                _ => _mm256_i32gather_epi32::<4>(from, index),
            }
        }
    }
}
