//! Probes by vectors: AVX-512 with VBMI, and AVX2. The only unsafe code of the engine.
//!
//! A component is found, hashed and compared in one vector, and a bucket's headers are compared at once. With
//! AVX-512 vectors have 64 bytes, of which only those are loaded that are the component's, and a payload is
//! moved to the front of its vector by one permutation: nothing past the bucket's line is touched. With AVX2
//! they have 32 bytes, which may be those of the names before and behind, or of the bucket: they are masked.

#[cfg(target_arch = "x86_64")]
use wirespeed_table::VectorLevel;

use super::layout::View;
use super::ring::{Answer, Portable, ring};
use crate::names::Names;

/// Whether this CPU has what a level takes here.
#[cfg(target_arch = "x86_64")]
fn is_here(level: VectorLevel) -> bool {
    let has_more = || {
        is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
    };
    level.is_here()
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && (level != VectorLevel::Avx512 || has_more())
}

/// Looks up a batch the fastest way that this CPU has.
pub(super) fn batch<A: Answer>(view: View<'_>, names: Names<'_>, answers: &mut [A]) {
    #[cfg(target_arch = "x86_64")]
    for level in [VectorLevel::Avx512, VectorLevel::Avx2] {
        if is_here(level) {
            #[allow(unsafe_code)]
            // SAFETY: the CPU has the features.
            unsafe {
                match level {
                    VectorLevel::Avx512 => avx512::batch(view, names, answers),
                    _ => avx2::batch(view, names, answers),
                }
            }
            return;
        }
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
    use super::super::ring::{Answer, Part, Probe, component_len, ring};
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
        fn component(self, view: &View<'_>, rest: Part<'_>) -> (usize, Hash) {
            let rest = rest.bytes();
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
        fn find(
            self,
            view: &View<'_>,
            bucket: Bucket<'_>,
            wanted: Header,
            component: Part<'_>,
        ) -> Option<Slot> {
            let component = component.bytes();
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

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm_add_epi64, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_unpackhi_epi64, _mm256_add_epi16,
        _mm256_and_si256, _mm256_blendv_epi8, _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cmpeq_epi16,
        _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_sad_epu8,
        _mm256_set1_epi8, _mm256_set1_epi16, _mm256_setzero_si256, _mm256_srli_epi16,
    };

    use super::super::hash::{BLOCK, Hash};
    use super::super::layout::{
        BUCKET_BYTES, Bucket, ENDS, Header, LENGTH_MASK, LONG_BYTES, LONG_MARK, STATE_BYTES, Slot, View,
    };
    use super::super::ring::{Answer, Part, Portable, Probe, ring};
    use crate::name::SLASH;
    use crate::names::Names;

    /// Bytes of a vector.
    const WIDE: usize = 32;

    /// A vector of ones, and one of zeros behind it: each mask of first bytes is a part of both.
    static FIRST: [u8; 2 * WIDE] = {
        let mut bytes = [0; 2 * WIDE];
        let mut at = 0;
        while at < WIDE {
            bytes[at] = u8::MAX;
            at += 1;
        }
        bytes
    };

    /// Ones for all headers of a bucket, and none for its head.
    static HEADERS: [u8; WIDE] = {
        let mut bytes = [u8::MAX; WIDE];
        bytes[0] = 0;
        bytes[1] = 0;
        bytes
    };

    /// [`ring`] with vectors.
    ///
    /// # Safety
    /// The CPU must have these features.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) unsafe fn batch<A: Answer>(view: View<'_>, names: Names<'_>, answers: &mut [A]) {
        ring(Vectors(()), view, names, answers);
    }

    /// Shows that the CPU has the features of [`batch`], which alone makes one.
    #[derive(Clone, Copy)]
    struct Vectors(());

    impl Vectors {
        #[inline(always)]
        fn load(self, bytes: &[u8; WIDE]) -> __m256i {
            // SAFETY: the CPU has the features, as there is a `Vectors`; the vector has so many bytes.
            unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
        }

        /// Ones in the first bytes, of which there are at most as many as a vector has.
        #[inline(always)]
        fn first(self, bytes: usize) -> __m256i {
            self.load(FIRST[WIDE - bytes..].first_chunk().expect("a part of twice the bytes"))
        }

        /// A bit for each byte that is equal.
        #[inline(always)]
        fn equal(self, one: __m256i, other: __m256i) -> u32 {
            // SAFETY: the CPU has the features, as there is a `Vectors`.
            unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi8(one, other)).cast_unsigned() }
        }

        /// Bytes of the payloads of the first slots of a bucket.
        #[inline(always)]
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // of 16 bits, and at most 64
        fn payloads(self, headers: __m256i, slots: usize, width: usize) -> usize {
            // SAFETY: the CPU has the features, as there is a `Vectors`.
            unsafe {
                let set = |number: usize| _mm256_set1_epi16(number as i16);
                let is = |flag: u16| {
                    let flag = set(flag.into());
                    _mm256_cmpeq_epi16(_mm256_and_si256(headers, flag), flag)
                };
                let lengths = _mm256_and_si256(headers, set(LENGTH_MASK.into()));
                let long = _mm256_cmpeq_epi16(lengths, set(LONG_MARK.into()));
                let lengths = _mm256_blendv_epi8(lengths, set(LONG_BYTES), long);
                let states = _mm256_and_si256(_mm256_srli_epi16::<4>(headers), set(STATE_BYTES));
                let results = _mm256_and_si256(is(ENDS), set(width));
                let sizes = _mm256_add_epi16(_mm256_add_epi16(lengths, states), results);
                let sizes = _mm256_and_si256(sizes, self.load(&HEADERS));
                let sizes = _mm256_and_si256(sizes, self.first(2 + 2 * slots));
                let sums = _mm256_sad_epu8(sizes, _mm256_setzero_si256());
                let sums = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
                let sum = _mm_cvtsi128_si64(_mm_add_epi64(sums, _mm_unpackhi_epi64(sums, sums)));
                sum as usize
            }
        }
    }

    impl Probe for Vectors {
        #[inline(always)]
        fn component(self, view: &View<'_>, rest: Part<'_>) -> (usize, Hash) {
            let Some(bytes) = rest.all[rest.from..].first_chunk::<WIDE>() else {
                return Portable.component(view, rest);
            };
            let bytes = self.load(bytes);
            // SAFETY: the CPU has the features, as there is a `Vectors`.
            let slash = unsafe { _mm256_set1_epi8(SLASH.cast_signed()) };
            let slashes = u64::from(self.equal(bytes, slash));
            let len = (slashes | 1 << (rest.to - rest.from).min(WIDE)).trailing_zeros() as usize;
            if len == WIDE {
                return Portable.component(view, rest);
            }
            // SAFETY: as above.
            let [first, second] = unsafe {
                let bytes = _mm256_and_si256(bytes, self.first(len));
                [_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes)].map(|block| {
                    [_mm_cvtsi128_si64(block), _mm_extract_epi64::<1>(block)].map(i64::cast_unsigned)
                })
            };
            let short = view.seeds.block(view.seeds.start(), first);
            let longer = view.seeds.block(short, second);
            let acc = std::hint::select_unpredictable(len > BLOCK, longer, short);
            (len, view.seeds.end(acc, len))
        }

        #[inline(always)]
        #[allow(clippy::cast_possible_wrap)] // of 16 bits
        fn find(
            self,
            view: &View<'_>,
            bucket: Bucket<'_>,
            wanted: Header,
            component: Part<'_>,
        ) -> Option<Slot> {
            let headers = self.load(bucket.0.first_chunk().expect("half of a bucket"));
            // SAFETY: the CPU has the features, as there is a `Vectors`.
            let alike = unsafe {
                let compared = _mm256_and_si256(headers, _mm256_set1_epi16(Header::WANTED.cast_signed()));
                let alike = _mm256_cmpeq_epi16(compared, _mm256_set1_epi16(wanted.0.cast_signed()));
                _mm256_movemask_epi8(alike).cast_unsigned()
            };
            // Two bits for each header that is there, and none for the head.
            let there = (4u64 << (2 * bucket.len())) - 4;
            #[allow(clippy::cast_possible_truncation)] // of 32 bits
            let mut alike = alike & there as u32;
            while alike != 0 {
                let number = alike.trailing_zeros() as usize / 2 - 1;
                let end = BUCKET_BYTES.wrapping_sub(self.payloads(headers, number, view.width));
                let header = bucket.header(number);
                let start = end.wrapping_sub(header.payload_bytes(view.width));
                let slot = Slot { number, header, start, end };
                if self.is(view, bucket, slot, component) {
                    return Some(slot);
                }
                alike &= alike - 1;
                alike &= alike - 1;
            }
            None
        }
    }

    impl Vectors {
        /// Whether a slot, whose header is that of the component, is of it.
        #[inline(always)]
        fn is(self, view: &View<'_>, bucket: Bucket<'_>, slot: Slot, component: Part<'_>) -> bool {
            let len = component.to - component.from;
            // The vectors end with the component. Before it there are other bytes.
            let before = |bytes: &[u8], end: usize| {
                let start = end.checked_sub(WIDE)?;
                bytes.get(start..end)?.first_chunk().map(|bytes| self.load(bytes))
            };
            if len <= WIDE
                && let Some(there) = before(bucket.0, slot.start.wrapping_add(len))
                && let Some(wanted) = before(component.all, component.to)
            {
                let unlike = u64::from(!self.equal(there, wanted));
                return unlike >> (WIDE - len) == 0;
            }
            view.is(bucket, slot, component.bytes())
        }
    }
}
