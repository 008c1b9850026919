//! What a batch needs beyond safe code: prefetches, and vectors for keys whose entries lead on. The only unsafe code of this
//! crate.

use wirespeed_fib::{NextHop, V4, Way};
use wirespeed_image::{Element, Image};

use super::lookup::BLOCK;

/// Asks for what will be read soon, wherever that is, into the second cache and not the first: a core has more such reads under way.
#[inline]
pub(super) fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code)]
    // SAFETY: a prefetch may be of any address, every CPU of the architecture has it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Puts what tbl8 has for the keys of a block whose entries lead on in the place of these; whether the way has vectors, and
/// the CPU the way.
pub(super) fn follow<W: Element>(
    way: Way,
    image: &Image,
    keys: &[V4; BLOCK],
    found: &mut [NextHop; BLOCK],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if way.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has the feature; the image is that of a table, whose entries are of this type.
        unsafe {
            match way {
                Way::Avx512 => avx512::follow::<W>(image, keys, found),
                Way::Avx2 => avx2::follow::<W>(image, keys, found),
                Way::Portable => return false,
            }
        }
        return true;
    }
    let _ = (way, image, keys, found);
    false
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_and_si512, _mm512_loadu_si512, _mm512_mask_and_epi32, _mm512_mask_i32gather_epi32,
        _mm512_or_si512, _mm512_set1_epi32, _mm512_slli_epi32, _mm512_storeu_si512, _mm512_test_epi32_mask,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{TBL8, chunk_bit};
    use super::super::lookup::BLOCK;

    /// See [`follow`](super::follow).
    ///
    /// # Safety
    /// The CPU must have AVX-512F. `image` must be that of a [`Dir24Table`](crate::Dir24Table) whose entries are of type
    /// `W`, and `found` the entries of tbl24 for the keys.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn follow<W: Element>(image: &Image, keys: &[V4; BLOCK], found: &mut [NextHop; BLOCK]) {
        const { assert!(BLOCK == 16) };
        let bit = chunk_bit(size_of::<W>());
        // SAFETY: `keys` and `found` are 16 integers of 32 bits each.
        let (key, entry) =
            unsafe { (_mm512_loadu_si512(keys.as_ptr().cast()), _mm512_loadu_si512(found.as_ptr().cast())) };
        let open = _mm512_test_epi32_mask(entry, _mm512_set1_epi32(bit.cast_signed()));
        let chunk = _mm512_and_si512(entry, _mm512_set1_epi32((!bit).cast_signed()));
        let octet = _mm512_and_si512(key, _mm512_set1_epi32(0xff));
        let index = _mm512_or_si512(_mm512_slli_epi32::<8>(chunk), octet);
        let tbl8 = image.padded(TBL8).as_ptr().cast();
        // SAFETY: an entry of tbl24 with the bit is a chunk of tbl8, which every image and patch is checked for; there are
        // at most 2^23, so an index is below 2^31; the scale is the size of an entry, and a load from the last one ends
        // in the padding.
        let next_hop = unsafe {
            match size_of::<W>() {
                1 => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(entry, open, index, tbl8);
                    _mm512_mask_and_epi32(entry, open, wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(entry, open, index, tbl8);
                    _mm512_mask_and_epi32(entry, open, wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(entry, open, index, tbl8),
            }
        };
        // SAFETY: `found` is 16 integers of 32 bits.
        unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), next_hop) };
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi32, _mm256_loadu_si256,
        _mm256_mask_i32gather_epi32, _mm256_or_si256, _mm256_set1_epi32, _mm256_setzero_si256,
        _mm256_slli_epi32, _mm256_storeu_si256,
    };

    use wirespeed_fib::{NextHop, V4};
    use wirespeed_image::{Element, Image};

    use super::super::layout::{TBL8, chunk_bit};
    use super::super::lookup::BLOCK;

    /// Keys in a vector.
    const LANES: usize = 8;

    /// See [`follow`](super::follow).
    ///
    /// # Safety
    /// The CPU must have AVX2. `image` must be that of a [`Dir24Table`](crate::Dir24Table) whose entries are of type `W`,
    /// and `found` the entries of tbl24 for the keys.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn follow<W: Element>(image: &Image, keys: &[V4; BLOCK], found: &mut [NextHop; BLOCK]) {
        let bit = _mm256_set1_epi32(chunk_bit(size_of::<W>()).cast_signed());
        let none = _mm256_setzero_si256();
        let tbl8 = image.padded(TBL8).as_ptr().cast();
        for (keys, found) in keys.as_chunks::<LANES>().0.iter().zip(found.as_chunks_mut::<LANES>().0) {
            // SAFETY: `keys` and `found` are 8 integers of 32 bits each.
            let (key, entry) = unsafe {
                (_mm256_loadu_si256(keys.as_ptr().cast()), _mm256_loadu_si256(found.as_ptr().cast()))
            };
            let open = _mm256_cmpeq_epi32(_mm256_and_si256(entry, bit), bit);
            let octet = _mm256_and_si256(key, _mm256_set1_epi32(0xff));
            let index = _mm256_or_si256(_mm256_slli_epi32::<8>(_mm256_andnot_si256(bit, entry)), octet);
            // SAFETY: an entry of tbl24 with the bit is a chunk of tbl8, which every image and patch is checked for;
            // there are at most 2^23, so an index is below 2^31; the scale is the size of an entry, and a load from the
            // last one ends in the padding.
            let next_hop = unsafe {
                match size_of::<W>() {
                    1 => {
                        let wide = _mm256_mask_i32gather_epi32::<1>(none, tbl8, index, open);
                        _mm256_and_si256(wide, _mm256_set1_epi32(0xff))
                    }
                    2 => {
                        let wide = _mm256_mask_i32gather_epi32::<2>(none, tbl8, index, open);
                        _mm256_and_si256(wide, _mm256_set1_epi32(0xffff))
                    }
                    _ => _mm256_mask_i32gather_epi32::<4>(none, tbl8, index, open),
                }
            };
            // SAFETY: `found` is 8 integers of 32 bits.
            unsafe {
                let all = _mm256_blendv_epi8(entry, next_hop, open);
                _mm256_storeu_si256(found.as_mut_ptr().cast(), all);
            }
        }
    }
}
