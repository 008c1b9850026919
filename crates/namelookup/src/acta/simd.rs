//! Probes by vectors, AVX-512 with VBMI: the only unsafe code of the engine.
//!
//! A component is found, hashed and compared in one vector of 64 bytes, a bucket's headers are compared at
//! once, and a payload is moved to the front of its vector by one permutation: nothing past the bucket's line
//! is touched.

#[cfg(target_arch = "x86_64")]
use wirespeed_table::VectorLevel;

use super::layout::View;
use super::ring::{Answer, Portable, ring};
use crate::names::Names;

/// Whether this CPU has what [`batch`] wants for vectors.
#[cfg(target_arch = "x86_64")]
fn is_here() -> bool {
    VectorLevel::Avx512.is_here()
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
}

/// Looks up a batch the fastest way that this CPU has.
pub(super) fn batch<A: Answer>(view: View<'_>, names: Names<'_>, answers: &mut [A]) {
    #[cfg(target_arch = "x86_64")]
    if is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has the features.
        unsafe {
            avx512::batch(view, names, answers);
        }
        return;
    }
    ring(Portable, view, names, answers);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_maskz_mov_epi8, _mm_sad_epu8,
        _mm_setzero_si128, _mm256_add_epi16, _mm256_and_si256, _mm256_cmpeq_epi16_mask, _mm256_cvtepi16_epi8,
        _mm256_extracti128_si256, _mm256_mask_mov_epi16, _mm256_maskz_set1_epi16, _mm256_set1_epi16,
        _mm256_srli_epi16, _mm256_test_epi16_mask, _mm512_add_epi8, _mm512_castsi512_si128,
        _mm512_castsi512_si256, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_mask_cmpneq_epi8_mask,
        _mm512_maskz_loadu_epi8, _mm512_maskz_mov_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8,
    };

    use super::super::hash::{BLOCK, Hash};
    use super::super::layout::{
        BUCKET_BYTES, Bucket, ENDS, Header, LENGTH_MASK, LONG_BYTES, LONG_MARK, STATE_BYTES, Slot, View,
    };
    use super::super::ring::{Answer, Probe, component_len, ring};
    use crate::name::SLASH;
    use crate::names::Names;

    /// [`ring`] with vectors.
    ///
    /// # Safety
    /// The CPU must have these features.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn batch<A: Answer>(view: View<'_>, names: Names<'_>, answers: &mut [A]) {
        ring(Vectors(()), view, names, answers);
    }

    /// Shows that the CPU has the features of [`batch`], which alone makes one.
    #[derive(Clone, Copy)]
    struct Vectors(());

    /// So many ones from the lowest bit on; 64 or more: all.
    #[inline(always)]
    fn ones(count: usize) -> u64 {
        if count < 64 { (1 << count) - 1 } else { u64::MAX }
    }

    /// A number in every lane.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn set(number: usize) -> __m256i {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // of 16 bits
        // SAFETY: as our caller promises.
        unsafe {
            _mm256_set1_epi16(number as i16)
        }
    }

    /// The first and the second block of a component.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn blocks(bytes: __m512i) -> [[u64; 2]; 2] {
        // SAFETY: as our caller promises.
        unsafe {
            let second = _mm256_extracti128_si256::<1>(_mm512_castsi512_si256(bytes));
            [_mm512_castsi512_si128(bytes), second].map(|block| {
                [_mm_cvtsi128_si64(block), _mm_extract_epi64::<1>(block)].map(i64::cast_unsigned)
            })
        }
    }

    const IOTA: [u8; 64] = {
        let mut iota = [0; 64];
        let mut at = 0;
        while at < 64 {
            #[allow(clippy::cast_possible_truncation)] // below 64
            {
                iota[at] = at as u8;
            }
            at += 1;
        }
        iota
    };

    impl Probe for Vectors {
        #[inline(always)]
        fn component(self, view: &View<'_>, rest: &[u8]) -> (usize, Hash) {
            // SAFETY: the CPU has the features, as there is a `Vectors`; of the 64 bytes only those of `rest`
            // are loaded.
            unsafe {
                let there = ones(rest.len());
                let bytes = _mm512_maskz_loadu_epi8(there, rest.as_ptr().cast());
                #[allow(clippy::cast_possible_wrap)] // ASCII
                let slashes = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(SLASH as i8)) & there;
                let len = (slashes | !there).trailing_zeros() as usize;
                if len > 2 * BLOCK {
                    let len = if len == BUCKET_BYTES { component_len(rest) } else { len };
                    return (len, view.seeds.hash(&rest[..len]));
                }
                let bytes = _mm512_maskz_mov_epi8(ones(len), bytes);
                let [first, second] = blocks(bytes);
                let short = view.seeds.block(view.seeds.start(), first);
                // Two multiplications too many for most cost less than a jump that goes wrong for some.
                let longer = view.seeds.block(short, second);
                let acc = std::hint::select_unpredictable(len > BLOCK, longer, short);
                (len, view.seeds.end(acc, len))
            }
        }

        #[inline(always)]
        // Widths, places in a bucket and masks of its 16 lanes.
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
        fn find(self, view: &View<'_>, bucket: Bucket<'_>, wanted: Header, component: &[u8]) -> Option<Slot> {
            // SAFETY: the CPU has the features, as there is a `Vectors`; a bucket has 64 bytes, and of a
            // component only the bytes that it has are loaded.
            unsafe {
                let line = _mm512_loadu_si512(bucket.0.as_ptr().cast());
                let headers = _mm512_castsi512_si256(line);
                let compared = _mm256_and_si256(headers, set(Header::WANTED.into()));
                let there = (2u32 << bucket.len()) - 2;
                let mut alike = u32::from(_mm256_cmpeq_epi16_mask(compared, set(wanted.0.into()))) & there;
                if alike == 0 {
                    return None;
                }
                let lengths = _mm256_and_si256(headers, set(LENGTH_MASK.into()));
                let long = _mm256_cmpeq_epi16_mask(lengths, set(LONG_MARK.into()));
                let lengths = _mm256_mask_mov_epi16(lengths, long, set(LONG_BYTES));
                let states = _mm256_and_si256(_mm256_srli_epi16::<4>(headers), set(STATE_BYTES));
                let ends = _mm256_test_epi16_mask(headers, set(ENDS.into()));
                let results = _mm256_maskz_set1_epi16(ends, view.width as i16);
                let sizes = _mm256_add_epi16(_mm256_add_epi16(lengths, states), results);
                let sizes = _mm256_cvtepi16_epi8(sizes);
                let input = _mm512_maskz_loadu_epi8(ones(component.len()), component.as_ptr().cast());
                while alike != 0 {
                    let lane = alike.trailing_zeros();
                    let before = _mm_maskz_mov_epi8(((1u32 << lane) - 2) as u16, sizes);
                    let sums = _mm_sad_epu8(before, _mm_setzero_si128());
                    let before = _mm_cvtsi128_si64(sums) + _mm_extract_epi64::<1>(sums);
                    let end = BUCKET_BYTES.wrapping_sub(before as usize);
                    let number = lane as usize - 1;
                    let header = bucket.header(number);
                    let start = end.wrapping_sub(header.payload_bytes(view.width));
                    let slot = Slot { number, header, start, end };
                    if wanted.is_long() {
                        if view.is_long(bucket, slot, component) {
                            return Some(slot);
                        }
                    } else {
                        let iota = _mm512_loadu_si512(IOTA.as_ptr().cast());
                        let places = _mm512_add_epi8(iota, _mm512_set1_epi8(start as i8));
                        let payload = _mm512_permutexvar_epi8(places, line);
                        if _mm512_mask_cmpneq_epi8_mask(ones(component.len()), payload, input) == 0 {
                            return Some(slot);
                        }
                    }
                    alike &= alike - 1;
                }
                None
            }
        }
    }
}
