//! Classes by vectors: the only unsafe code of both engines.

use wirespeed_table::VectorLevel;

use super::batch::{Portable, batch as run};
use super::form::Form;
use super::layout::View;
use crate::tuple::Tuple;

/// Looks up a batch with the fastest vectors that this CPU has.
#[inline]
pub(super) fn batch<T: Tuple, F: Form>(view: &View<'_>, tuples: &[T], results: &mut [u32]) {
    if !VectorLevel::ALL.into_iter().any(|level| run_with::<T, F>(level, view, tuples, results)) {
        run::<T, F>(Portable, view, tuples, results);
    }
}

/// Looks up a batch with these vectors, if the CPU has them; whether it did.
#[inline]
#[allow(unsafe_code)]
pub(super) fn run_with<T: Tuple, F: Form>(
    level: VectorLevel,
    view: &View<'_>,
    tuples: &[T],
    results: &mut [u32],
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if level.is_here()
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
    {
        match level {
            // The lanes of a gather's index are signed.
            VectorLevel::Avx512 if view.slots.len() < 1 << 30 && is_x86_feature_detected!("avx512dq") => {
                // SAFETY: the CPU has the features, and slots are few enough.
                unsafe { avx512::batch::<T, F>(view, tuples, results) }
            }
            // SAFETY: the CPU has the features.
            VectorLevel::Avx2 => unsafe { avx2::<T, F>(view, tuples, results) },
            _ => return false,
        }
        return true;
    }
    let _ = (level, view, tuples, results);
    false
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
        _mm512_cmpeq_epi32_mask, _mm512_i32gather_epi32, _mm512_loadu_si512, _mm512_mask_mov_epi32,
        _mm512_maskz_compress_epi32, _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_set1_epi32,
        _mm512_set1_epi64, _mm512_setr_epi32, _mm512_slli_epi32, _mm512_slli_epi64, _mm512_sllv_epi32,
        _mm512_srl_epi32, _mm512_srli_epi32, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_test_epi32_mask,
        _mm512_xor_si512,
    };

    use std::ops::Range;

    use super::super::batch::{Lanes, Passed, batch as run};
    use super::super::form::Form;
    use super::super::layout::{LEAST_LOG, View, slot_elements};
    use super::super::plan::{LANES, Plan, Rows};
    use crate::tuple::Tuple;

    /// [`run`] with vectors.
    ///
    /// # Safety
    /// The CPU must have the features, and slots hold fewer than 2^31 u32.
    #[target_feature(enable = "avx512f,avx512dq,bmi1,bmi2,popcnt")]
    pub(super) unsafe fn batch<T: Tuple, F: Form>(view: &View<'_>, tuples: &[T], results: &mut [u32]) {
        run::<T, F>(Vectors(()), view, tuples, results);
    }

    /// Shows that the CPU has the features of [`batch`], which alone makes one, and that slots hold fewer
    /// than 2^31 u32.
    #[derive(Clone, Copy)]
    struct Vectors(());

    /// The hashes of N times sixteen lanes: those of the even and of the odd ones.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn hash<const N: usize>(
        view: &View<'_>,
        plan: &Plan,
        rows: &Rows,
        from: usize,
    ) -> [[__m512i; 2]; N] {
        // Loops and no `map`: what a call of it does would be compiled without the features.
        // SAFETY: the CPU has the features, as our caller promises; rows are read by slices of sixteen.
        unsafe {
            let mut sums = [[_mm512_set1_epi64(plan.start.cast_signed()); 2]; N];
            for pair in plan.pairs() {
                let [mask_a, mask_b] = pair.mask;
                let mask = [_mm512_set1_epi32(mask_a.cast_signed()), _mm512_set1_epi32(mask_b.cast_signed())];
                let [key_a, key_b] = pair.keys;
                let keys = [_mm512_set1_epi32(key_a.cast_signed()), _mm512_set1_epi32(key_b.cast_signed())];
                let (one, other) = (&rows[pair.at], &rows[pair.at + 1]);
                for (nth, sums) in sums.iter_mut().enumerate() {
                    let lanes = from + nth * LANES..from + nth * LANES + LANES;
                    let word = |row: &[u32], nth: usize| {
                        let masked = _mm512_and_si512(_mm512_loadu_si512(row.as_ptr().cast()), mask[nth]);
                        _mm512_add_epi32(masked, keys[nth])
                    };
                    let (a, b) = (word(&one[lanes.clone()], 0), word(&other[lanes], 1));
                    let odd = |v| _mm512_srli_epi64::<32>(v);
                    sums[0] = _mm512_add_epi64(sums[0], _mm512_mul_epu32(a, b));
                    sums[1] = _mm512_add_epi64(sums[1], _mm512_mul_epu32(odd(a), odd(b)));
                }
            }
            for sums in &mut sums {
                *sums = [rounds(view, sums[0]), rounds(view, sums[1])];
            }
            sums
        }
    }

    /// The first two rounds.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn rounds(view: &View<'_>, x: __m512i) -> __m512i {
        let [first, second, _] = view.keys.rounds;
        // SAFETY: as our caller promises.
        unsafe {
            let y = _mm512_mullo_epi64(x, _mm512_set1_epi64(first.cast_signed()));
            round(y, second)
        }
    }

    /// A round after the first.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn round(y: __m512i, by: u64) -> __m512i {
        // SAFETY: as our caller promises.
        unsafe {
            let folded = _mm512_xor_si512(y, _mm512_srli_epi64::<32>(y));
            _mm512_mullo_epi64(folded, _mm512_set1_epi64(by.cast_signed()))
        }
    }

    /// The high and the low halves of the hashes of sixteen lanes.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn parts([even, odd]: [__m512i; 2]) -> [__m512i; 2] {
        const ODD: u16 = 0xaaaa;
        // SAFETY: as our caller promises.
        unsafe {
            [
                _mm512_mask_mov_epi32(_mm512_srli_epi64::<32>(even), ODD, odd),
                _mm512_mask_mov_epi32(even, ODD, _mm512_slli_epi64::<32>(odd)),
            ]
        }
    }

    /// Lanes for which a class's filter has the bit that the high part of the hash says. Its words are loaded
    /// one by one, as a gather takes longer.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn have_bit(filter: &[u32], log: u32, part: __m512i) -> u16 {
        // SAFETY: as our caller promises. An index is the upper bits of a part, log - 5 of them, and the
        // filter has 2^(log - 5) words.
        unsafe {
            let bit = _mm512_srl_epi32(part, _mm_cvtsi32_si128((32 - log).cast_signed()));
            let mut at = [0u32; LANES];
            _mm512_storeu_si512(at.as_mut_ptr().cast(), _mm512_srli_epi32::<5>(bit));
            let word = |lane: usize| filter.get_unchecked(at[lane] as usize).cast_signed();
            let words = _mm512_setr_epi32(
                word(0),
                word(1),
                word(2),
                word(3),
                word(4),
                word(5),
                word(6),
                word(7),
                word(8),
                word(9),
                word(10),
                word(11),
                word(12),
                word(13),
                word(14),
                word(15),
            );
            let within = _mm512_and_si512(bit, _mm512_set1_epi32(31));
            _mm512_test_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), within))
        }
    }

    /// Which lanes find the telling word of their value in one of their three slots.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`], and slots hold fewer than 2^31 u32.
    #[inline(always)]
    unsafe fn are_told<T: Tuple>(
        view: &View<'_>,
        plan: &Plan,
        rows: &Rows,
        from: usize,
        hashes: [__m512i; 2],
    ) -> u16 {
        let (word, mask) = plan.telling;
        let row: &[u32] = &rows[word][from..from + LANES];
        // SAFETY: as our caller promises. A place is below d, so that a slot is one of the three subtables',
        // which end within `slots`: every record of a table was held against that by `from_image` or `check`,
        // or written by the engine; where d is 0 the slot is the first, which is there. A telling word is one
        // of a slot's elements.
        unsafe {
            let wanted = _mm512_and_si512(
                _mm512_loadu_si512(row.as_ptr().cast()),
                _mm512_set1_epi32(mask.cast_signed()),
            );
            let by = view.keys.rounds[2];
            let third = [round(hashes[0], by), round(hashes[1], by)];
            let [high, low] = parts(hashes);
            let [last, _] = parts(third);
            let d = _mm512_set1_epi32(plan.d.cast_signed());
            let mut told = 0;
            let mut first = plan.first_slot;
            for part in [high, low, last] {
                let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(part, d));
                let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(part), d);
                let place = _mm512_mask_mov_epi32(even, 0xaaaa, odd);
                let slot = _mm512_add_epi32(place, _mm512_set1_epi32(first.cast_signed()));
                let three = _mm512_add_epi32(slot, _mm512_add_epi32(slot, slot));
                let at = match slot_elements(T::WORDS) {
                    4 => _mm512_slli_epi32::<3>(slot),
                    _ => _mm512_slli_epi32::<2>(three),
                };
                let words = view.slots.as_ptr().cast::<i32>().add(word);
                let found = _mm512_i32gather_epi32::<4>(at, words);
                told |= _mm512_cmpeq_epi32_mask(found, wanted);
                first += plan.d;
            }
            told
        }
    }

    /// Notes the hashes of sixteen lanes, and adds those that pass.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`].
    #[inline(always)]
    unsafe fn add(passed: &mut Passed, lanes: u16, from: usize, [high, low]: [__m512i; 2]) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // below GROUP
        let first = from as i32;
        let put = |to: &mut [u32], vector| {
            assert_eq!(to.len(), LANES, "room for sixteen");
            // SAFETY: as our caller promises; there is room.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
        };
        put(&mut passed.high[from..from + LANES], high);
        put(&mut passed.low[from..from + LANES], low);
        // SAFETY: as our caller promises.
        let numbers = unsafe {
            let lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            _mm512_maskz_compress_epi32(lanes, _mm512_add_epi32(_mm512_set1_epi32(first), lane))
        };
        put(&mut passed.lanes[passed.len..passed.len + LANES], numbers);
        passed.len += lanes.count_ones() as usize;
    }

    /// Hashes N times sixteen lanes, and adds those of the first so many that pass.
    ///
    /// # Safety
    /// The CPU must have the features of [`batch`], slots hold fewer than 2^31 u32, and a filter is as long
    /// as its log says.
    #[inline(always)]
    unsafe fn pass<T: Tuple, F: Form, const N: usize>(
        view: &View<'_>,
        plan: &Plan,
        filter: &[u32],
        rows: &Rows,
        lanes: Range<usize>,
        passed: &mut Passed,
    ) {
        // SAFETY: as our caller promises.
        unsafe {
            let all = hash::<N>(view, plan, rows, lanes.start);
            for (from, hashes) in lanes.clone().step_by(LANES).zip(all) {
                let left = lanes.end - from;
                let there = if left < LANES { (1 << left) - 1 } else { u16::MAX };
                let [high, low] = parts(hashes);
                let may = if F::FILTERED {
                    have_bit(filter, plan.log, high)
                } else {
                    are_told::<T>(view, plan, rows, from, hashes)
                };
                add(passed, may & there, from, [high, low]);
            }
        }
    }

    impl Lanes for Vectors {
        #[inline(always)]
        fn pass<T: Tuple, F: Form>(
            self,
            view: &View<'_>,
            plan: &Plan,
            rows: &Rows,
            open: usize,
            passed: &mut Passed,
        ) {
            passed.len = 0;
            // Its words, which are there: every record of a table was held against that by `from_image` or
            // `check`, or written by the engine.
            let filter = if F::FILTERED {
                &view.filters[plan.first_bits as usize..][..1 << (plan.log - LEAST_LOG)]
            } else {
                &[]
            };
            let mut from = 0;
            // SAFETY: whoever has a `Vectors` has the features, and slots that are few enough; the filter is
            // as long as its log says.
            unsafe {
                // What a pair of words is masked and added with is loaded once for two vectors.
                while open - from > LANES {
                    pass::<T, F, 2>(view, plan, filter, rows, from..open, passed);
                    from = open.min(from + 2 * LANES);
                }
                if from < open {
                    pass::<T, F, 1>(view, plan, filter, rows, from..open, passed);
                }
            }
            if F::FILTERED {
                passed.drop_others(filter, plan.log);
            }
        }
    }
}
