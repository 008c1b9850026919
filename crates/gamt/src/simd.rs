//! Batches by gathers: the only unsafe code of the engine. Units of 4 bytes; wider ones go the portable way.
//!
//! Sixteen keys a vector with AVX-512, several vectors at a time, one gather a level for the keys that are not done. All keys of a
//! batch are in the same level at the same time (`layout.rs` says why), so shifts are by constants of the level, and no
//! jump is ever looked at but for whether it is one.
//!
//! IPv6 keys are taken apart into their first two words of 32 bits, and a level reads from one of them or across both. Levels
//! past bit 64 are walked key by key: few tables have any prefix there.

use wirespeed_fib::{Address, NextHop, Way};

use crate::layout::{GamtTable, Placement};

/// Looks up as many of the keys, from the front, as a way does in vectors; how many that were.
pub(crate) fn batch<A: Address, P: Placement>(
    way: Way,
    table: &GamtTable<A, P>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
    #[cfg(target_arch = "x86_64")]
    if table.unit == 4 && way == Way::Avx512 && way.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has it, and the units are of 4 bytes.
        return unsafe { avx512::batch(table, addresses, next_hops) };
    }
    let _ = (way, table, addresses, next_hops);
    0
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, __m512i, __mmask16, _MM_HINT_NTA, _mm_cvtsi32_si128, _mm_prefetch, _mm512_add_epi32,
        _mm512_and_si512, _mm512_castsi512_si256, _mm512_inserti64x4, _mm512_loadu_si512,
        _mm512_mask_i32gather_epi32, _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_set1_epi32,
        _mm512_setr_epi32, _mm512_setzero_si512, _mm512_sll_epi32, _mm512_srl_epi32, _mm512_srli_epi32,
        _mm512_storeu_si512, _mm512_test_epi32_mask,
    };

    use wirespeed_fib::{Address, NextHop};
    use wirespeed_image::Table;

    use crate::layout::{GamtTable, Level, Placement, next_hops, units};

    /// Keys in a vector.
    const LANES: usize = 16;
    /// How far ahead keys are prefetched, in bytes: past the reads that are under way. Not for the caches that tables lie
    /// in: keys pass through once.
    const AHEAD: usize = 2_048;

    /// So many vectors at a time, then one; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX-512F, and the table units of 4 bytes.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn batch<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        addresses: &[A],
        results: &mut [NextHop],
    ) -> usize {
        // SAFETY: as our caller promises.
        unsafe {
            let many = match A::OCTETS {
                4 => rounds::<A, P, 8>(table, addresses, results),
                _ => rounds::<A, P, 4>(table, addresses, results),
            };
            many + rounds::<A, P, 1>(table, &addresses[many..], &mut results[many..])
        }
    }

    /// Looks up keys, so many vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// As [`batch`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn rounds<A: Address, P: Placement, const VECTORS: usize>(
        table: &GamtTable<A, P>,
        addresses: &[A],
        results: &mut [NextHop],
    ) -> usize {
        let jump = _mm512_set1_epi32(0xff);
        let at_a_time = LANES * VECTORS;
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut upper = [_mm512_setzero_si512(); VECTORS];
            let mut lower = [_mm512_setzero_si512(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: these are 16 keys.
                (upper[v], lower[v]) = unsafe { load::<A>(keys[v * LANES..(v + 1) * LANES].as_ptr()) };
            }
            // Before the first level all lanes lead to its one node.
            let mut unit = [jump; VECTORS];
            let mut done = 0;
            for (at, level) in table.levels.iter().enumerate() {
                if level.from + level.stride > 64 {
                    break;
                }
                let elements = table.image().padded(units(at));
                let take = Take::of(level);
                let mut any: __mmask16 = 0;
                for v in 0..VECTORS {
                    let open = _mm512_test_epi32_mask(unit[v], jump);
                    any |= open;
                    let index =
                        _mm512_add_epi32(_mm512_srli_epi32::<8>(unit[v]), take.bits(upper[v], lower[v]));
                    // SAFETY: an open lane has the first unit of a node of this level, which every image and patch is
                    // checked for, and a level has at most 2^24 units.
                    unit[v] = unsafe {
                        _mm512_mask_i32gather_epi32::<4>(unit[v], open, index, elements.as_ptr().cast())
                    };
                }
                done = at + 1;
                if any == 0 {
                    break;
                }
            }
            for v in 0..VECTORS {
                let open = _mm512_test_epi32_mask(unit[v], jump);
                let leaf = _mm512_srli_epi32::<8>(unit[v]);
                // SAFETY: the leaf of a lane that is not open is a slot, if next hops are separate.
                let found = unsafe { next_hop(table, leaf, !open) };
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), found) };
                if open != 0 {
                    let mut infs = [0u32; LANES];
                    // SAFETY: these are 16 integers of 32 bits.
                    unsafe { _mm512_storeu_si512(infs.as_mut_ptr().cast(), leaf) };
                    finish(table, open, &infs, done, &keys[v * LANES..], &mut results[v * LANES..]);
                }
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// Finishes the keys of the lanes in the mask, from a level on.
    #[cold]
    fn finish<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        mut open: __mmask16,
        infs: &[u32; LANES],
        level: usize,
        keys: &[A],
        results: &mut [NextHop],
    ) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            results[lane] = table.rest_of_lookup::<u32>(keys[lane], level, infs[lane].into());
            open &= open - 1;
        }
    }

    /// How the bits of a level are taken out of the first two words of a key.
    struct Take {
        left_of_upper: __m128i,
        right_of_upper: __m128i,
        right_of_lower: __m128i,
        mask: __m512i,
    }

    impl Take {
        /// Counts of 32 and more shift everything out.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn of(level: &Level) -> Self {
            let (end, all) = (i32::from(level.from + level.stride), 64);
            let count = |count: i32| _mm_cvtsi32_si128(if (0..32).contains(&count) { count } else { all });
            Self {
                left_of_upper: count(if end > 32 { end - 32 } else { all }),
                right_of_upper: count(32 - end),
                right_of_lower: count(if end > 32 { 64 - end } else { all }),
                mask: _mm512_set1_epi32((1 << level.stride) - 1),
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn bits(&self, upper: __m512i, lower: __m512i) -> __m512i {
            let of_upper = _mm512_or_si512(
                _mm512_srl_epi32(upper, self.right_of_upper),
                _mm512_sll_epi32(upper, self.left_of_upper),
            );
            let both = _mm512_or_si512(of_upper, _mm512_srl_epi32(lower, self.right_of_lower));
            _mm512_and_si512(both, self.mask)
        }
    }

    /// The first and second word of sixteen keys; IPv4 has one.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. There must be 16 keys at `keys`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load<A: Address>(keys: *const A) -> (__m512i, __m512i) {
        let keys = keys.cast::<__m512i>();
        // SAFETY: 16 keys are one vector for IPv4 and four for IPv6; a prefetch may be of any address.
        let part = |at: usize| unsafe {
            _mm_prefetch::<_MM_HINT_NTA>(keys.wrapping_add(at + AHEAD / 64).cast());
            _mm512_loadu_si512(keys.add(at))
        };
        if A::OCTETS == 4 {
            return (part(0), _mm512_setzero_si512());
        }
        // The bits 0 to 31 and 32 to 63 of eight keys in two vectors of four; a key is in host order.
        let first = _mm512_setr_epi32(3, 7, 11, 15, 19, 23, 27, 31, 0, 0, 0, 0, 0, 0, 0, 0);
        let second = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 0, 0, 0, 0, 0, 0, 0, 0);
        let parts = [part(0), part(1), part(2), part(3)];
        (pick(parts, first), pick(parts, second))
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

    /// What the leaves of the lanes in the mask come to.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. In a table with separate next hops these leaves must be slots.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn next_hop<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        leaf: __m512i,
        mask: __mmask16,
    ) -> __m512i {
        let Some((_, width)) = table.next_hops else { return leaf };
        let from = table.image().padded(next_hops(table.levels.len())).as_ptr().cast();
        let none = _mm512_setzero_si512();
        // SAFETY: a slot is one of the table, which every image and patch is checked for, below 2^24 as units are of 4 bytes;
        // a load from the last element ends in the padding. The scale is the size of an element.
        unsafe {
            match width {
                1 => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(none, mask, leaf, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(none, mask, leaf, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(none, mask, leaf, from),
            }
        }
    }
}
