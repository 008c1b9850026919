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
    if way == Way::Avx512 && way.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has it.
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
        _mm512_mask_i32gather_epi32, _mm512_mask_sll_epi32, _mm512_mask_srl_epi32,
        _mm512_mask_test_epi32_mask, _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_set1_epi32,
        _mm512_setr_epi32, _mm512_setzero_si512, _mm512_sll_epi32, _mm512_srl_epi32, _mm512_storeu_si512,
    };

    use wirespeed_fib::{Address, NextHop};
    use wirespeed_image::Table;

    use crate::layout::{Code, GamtTable, Level, Placement, next_hops, units};

    /// Keys in a vector.
    const LANES: usize = 16;
    /// How far ahead keys are prefetched, in bytes: past the reads that are under way. Not for the caches that tables lie
    /// in: keys pass through once.
    const AHEAD: usize = 2_048;

    /// So many vectors at a time, then one; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX-512F.
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
        let at_a_time = LANES * VECTORS;
        let levels = in_vectors(table);
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut upper = [_mm512_setzero_si512(); VECTORS];
            let mut lower = [_mm512_setzero_si512(); VECTORS];
            for v in 0..VECTORS {
                // SAFETY: these are 16 keys.
                (upper[v], lower[v]) = unsafe { load::<A>(keys[v * LANES..(v + 1) * LANES].as_ptr()) };
            }
            // What is next of each lane: the first unit of a node, of the first level to begin with, or a leaf.
            let mut to = [_mm512_setzero_si512(); VECTORS];
            let mut open: [__mmask16; VECTORS] = [!0; VECTORS];
            let mut done = 0;
            for (at, level) in levels.iter().enumerate() {
                let units = table.image().padded(units(at));
                let bits = Bits::of::<A>(level);
                let code = Reader::of(level.code);
                let mut any = 0;
                for v in 0..VECTORS {
                    let index = _mm512_add_epi32(to[v], bits.take(upper[v], lower[v]));
                    // SAFETY: `to` of an open lane is the first unit of a node of this level, which every image and
                    // patch is checked for.
                    let unit = unsafe { gather(level.code.width, open[v], index, units) };
                    (to[v], open[v]) = code.read(to[v], open[v], unit);
                    any |= open[v];
                }
                done = at + 1;
                if any == 0 {
                    break;
                }
            }
            for v in 0..VECTORS {
                // SAFETY: the leaf of a lane that is not open is a slot, if next hops are separate.
                let found = unsafe { next_hop(table, to[v], !open[v]) };
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), found) };
                if open[v] != 0 {
                    let mut infs = [0u32; LANES];
                    // SAFETY: these are 16 integers of 32 bits.
                    unsafe { _mm512_storeu_si512(infs.as_mut_ptr().cast(), to[v]) };
                    finish(table, open[v], &infs, done, &keys[v * LANES..], &mut results[v * LANES..]);
                }
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// The levels that vectors go through: those within the first two words, of units of up to 4 bytes, and short enough for
    /// an index of 32 bits.
    fn in_vectors<A: Address, P: Placement>(table: &GamtTable<A, P>) -> &[Level] {
        let fits =
            |level: &&Level| level.from + level.stride <= 64 && level.code.width <= 4 && level.len <= 1 << 30;
        &table.levels[..table.levels.iter().take_while(fits).count()]
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
            results[lane] = table.rest_of_lookup(keys[lane], level, infs[lane].into());
            open &= open - 1;
        }
    }

    /// How the units of a level are read.
    struct Reader {
        jump: __m512i,
        jump_bits: __m128i,
        scale: __m128i,
    }

    impl Reader {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn of(code: Code) -> Self {
            Self {
                jump: _mm512_set1_epi32((1 << code.jump_bits()) - 1),
                jump_bits: _mm_cvtsi32_si128(code.jump_bits().cast_signed()),
                scale: _mm_cvtsi32_si128(code.scale.into()),
            }
        }

        /// What the units of the open lanes say: the leaf or the child's first unit, and which lanes stay open.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn read(&self, to: __m512i, open: __mmask16, unit: __m512i) -> (__m512i, __mmask16) {
            let on = _mm512_mask_test_epi32_mask(open, unit, self.jump);
            let to = _mm512_mask_srl_epi32(to, open, unit, self.jump_bits);
            (_mm512_mask_sll_epi32(to, on, to, self.scale), on)
        }
    }

    /// How the bits of a level are taken out of the first two words of a key.
    struct Bits {
        left_of_upper: __m128i,
        right_of_upper: __m128i,
        right_of_lower: __m128i,
        mask: __m512i,
        /// Whether any are in the second word.
        second: bool,
    }

    impl Bits {
        /// Counts of 32 and more shift everything out.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn of<A: Address>(level: &Level) -> Self {
            let end = i32::from(level.from + level.stride);
            let count = |count: i32| _mm_cvtsi32_si128(if (0..32).contains(&count) { count } else { 64 });
            Self {
                left_of_upper: count(if end > 32 { end - 32 } else { 64 }),
                right_of_upper: count(32 - end),
                right_of_lower: count(if end > 32 { 64 - end } else { 64 }),
                mask: _mm512_set1_epi32((1 << level.stride) - 1),
                second: A::OCTETS > 4 && end > 32,
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn take(&self, upper: __m512i, lower: __m512i) -> __m512i {
            if !self.second {
                return _mm512_and_si512(_mm512_srl_epi32(upper, self.right_of_upper), self.mask);
            }
            let front = _mm512_sll_epi32(upper, self.left_of_upper);
            let back = _mm512_srl_epi32(lower, self.right_of_lower);
            _mm512_and_si512(_mm512_or_si512(front, back), self.mask)
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
        let slots = table.image().padded(next_hops(table.levels.len()));
        // SAFETY: a slot is one of the table, which every image and patch is checked for.
        unsafe { gather(width, mask, leaf, slots) }
    }

    /// Elements of so many bytes, 1, 2 or 4, at the indexes of the lanes in the mask, widened; 0 in the others.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index in the mask must be of an element of `bytes`, at least 3 bytes before
    /// its end, and below 2^31.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather(width: u32, mask: __mmask16, index: __m512i, bytes: &[u8]) -> __m512i {
        let (none, from) = (_mm512_setzero_si512(), bytes.as_ptr().cast());
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match width {
                1 => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(none, mask, index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(none, mask, index, from);
                    _mm512_and_si512(wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(none, mask, index, from),
            }
        }
    }
}
