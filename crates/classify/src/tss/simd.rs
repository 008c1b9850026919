//! Classes by vectors: the only unsafe code of both engines.

use super::form::Form;
use super::layout::View;
use super::lookup::{Portable, batch as run};
use crate::tuple::Tuple;

/// Looks up a batch the fastest way that this CPU has.
#[inline]
pub(super) fn batch<T: Tuple, F: Form>(view: &View<'_>, tuples: &[T], results: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    for way in Way::ALL {
        if way.run::<T, F>(view, tuples, results) {
            return;
        }
    }
    run::<T, F>(Portable, view, tuples, results);
}

/// The ways that some CPUs have, the fastest first.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Avx512,
    Avx2,
}

#[cfg(target_arch = "x86_64")]
impl Way {
    pub(super) const ALL: [Self; 2] = [Self::Avx512, Self::Avx2];

    /// Looks up a batch this way, if the CPU has it.
    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn run<T: Tuple, F: Form>(self, view: &View<'_>, tuples: &[T], results: &mut [u32]) -> bool {
        let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        let is_512 = || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
        match self {
            Self::Avx512 if has_bits && is_512() => {
                // SAFETY: the CPU has the features.
                unsafe { avx512::batch::<T, F>(view, tuples, results) }
            }
            Self::Avx2 if has_bits && is_x86_feature_detected!("avx2") => {
                // SAFETY: the CPU has the features.
                unsafe { avx2::<T, F>(view, tuples, results) }
            }
            _ => return false,
        }
        true
    }
}

/// What compilers make of the portable way with vectors of eight lanes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn avx2<T: Tuple, F: Form>(view: &View<'_>, tuples: &[T], results: &mut [u32]) {
    run::<T, F>(Portable, view, tuples, results);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm_cvtsi32_si128, _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512,
        _mm512_i32gather_epi32, _mm512_loadu_si512, _mm512_mask_mov_epi32, _mm512_mul_epu32,
        _mm512_mullo_epi64, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_sllv_epi32, _mm512_srl_epi32,
        _mm512_srli_epi32, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_test_epi32_mask, _mm512_xor_si512,
    };

    use super::super::form::Form;
    use super::super::hash::Hash;
    use super::super::layout::View;
    use super::super::lookup::{LANES, Lanes, Plan, Rows, batch as run};
    use crate::tuple::Tuple;

    /// [`run`] with vectors.
    #[target_feature(enable = "avx512f,avx512dq,bmi1,bmi2")]
    pub(super) fn batch<T: Tuple, F: Form>(view: &View<'_>, tuples: &[T], results: &mut [u32]) {
        run::<T, F>(Vectors(()), view, tuples, results);
    }

    /// Shows that the CPU has the features of [`batch`], which alone makes one.
    #[derive(Clone, Copy)]
    struct Vectors(());

    /// The hashes of sixteen lanes: those of the even and of the odd ones.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn hash(view: &View<'_>, plan: &Plan, rows: &Rows, from: usize) -> [__m512i; 2] {
        // SAFETY: the CPU has the features, as our caller promises; rows are read by slices of sixteen.
        unsafe {
            let mut sums = [_mm512_set1_epi64(plan.start.cast_signed()); 2];
            for pair in &plan.pairs[..plan.len] {
                let word = |nth: usize| {
                    let row: &[u32] = &rows[pair.at + nth][from..from + LANES];
                    let masked = _mm512_and_si512(
                        _mm512_loadu_si512(row.as_ptr().cast()),
                        _mm512_set1_epi32(pair.mask[nth].cast_signed()),
                    );
                    _mm512_add_epi32(masked, _mm512_set1_epi32(pair.keys[nth].cast_signed()))
                };
                let (a, b) = (word(0), word(1));
                let odd = |v| _mm512_srli_epi64::<32>(v);
                sums[0] = _mm512_add_epi64(sums[0], _mm512_mul_epu32(a, b));
                sums[1] = _mm512_add_epi64(sums[1], _mm512_mul_epu32(odd(a), odd(b)));
            }
            let by = |at: usize| _mm512_set1_epi64(view.keys.rounds[at].cast_signed());
            sums.map(|x| {
                let y = _mm512_mullo_epi64(x, by(0));
                _mm512_mullo_epi64(_mm512_xor_si512(y, _mm512_srli_epi64::<32>(y)), by(1))
            })
        }
    }

    impl Lanes for Vectors {
        #[inline(always)]
        fn pass<F: Form>(
            self,
            view: &View<'_>,
            plan: &Plan,
            rows: &Rows,
            from: usize,
            hashes: &mut [u64; LANES],
        ) -> u16 {
            // SAFETY: whoever has a `Vectors` has the features. The gather reads elements from `first_bits` on, of which there are
            // 2^(log - 5) in `filters`: every record of a table was held against that by `from_image` or `check`, or written by the
            // engine, and its index is below 2^31. An index is the upper bits of a part, log - 5 of them.
            let (even, odd, mut passed) = unsafe {
                let [even, odd] = hash(view, plan, rows, from);
                let mut passed = u16::MAX;
                if F::FILTERED {
                    // Part 0 of all lanes: the high halves.
                    let part = _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(even), 0xaaaa, odd);
                    let bit = _mm512_srl_epi32(part, _mm_cvtsi32_si128((32 - plan.log).cast_signed()));
                    let at = _mm512_add_epi32(
                        _mm512_srli_epi32::<5>(bit),
                        _mm512_set1_epi32(plan.first_bits.cast_signed()),
                    );
                    let words = _mm512_i32gather_epi32::<4>(at, view.filters.as_ptr().cast());
                    let within = _mm512_and_si512(bit, _mm512_set1_epi32(31));
                    let wanted = _mm512_sllv_epi32(_mm512_set1_epi32(1), within);
                    passed = _mm512_test_epi32_mask(words, wanted);
                }
                (even, odd, passed)
            };
            if passed == 0 {
                return 0;
            }
            let mut apart = [[0u64; LANES / 2]; 2];
            // SAFETY: each half is as long as a vector.
            unsafe {
                _mm512_storeu_si512(apart[0].as_mut_ptr().cast(), even);
                _mm512_storeu_si512(apart[1].as_mut_ptr().cast(), odd);
            }
            for (at, pair) in hashes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                *pair = [apart[0][at], apart[1][at]];
            }
            if F::FILTERED {
                let mut left = passed;
                while left != 0 {
                    let lane = left.trailing_zeros() as usize;
                    left &= left - 1;
                    let [_, second] = Hash(hashes[lane]).bits(plan.log);
                    if !view.has_bit(plan.first_bits, second) {
                        passed &= !(1 << lane);
                    }
                }
            }
            passed
        }
    }
}
