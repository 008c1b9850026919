//! Batches by gathers: the only unsafe code of the engine. Units of up to 4 bytes; wider ones are walked key
//! by key.
//!
//! Sixteen keys a vector with AVX-512, for IPv4 eight with AVX2, several vectors at a time, one gather a
//! level for the keys that are not done. All keys of a batch are in the same level at the same time
//! (`layout.rs` says why), so shifts are by constants of the level, and of a unit nothing is looked at but
//! whether it leads on.
//!
//! IPv6 keys are taken apart into their first two words of 32 bits, and a level reads from one of them or
//! across both. Levels past bit 64 are walked key by key: few tables have any prefix there.

use wirespeed_fib::{Address, NextHop, VectorLevel};

#[cfg(target_arch = "x86_64")]
use crate::layout::Level;
use crate::layout::{GamtTable, Placement};

/// Looks up as many of the keys, from the front, as a vector level does; how many that were.
pub(crate) fn batch<A: Address, P: Placement>(
    level: VectorLevel,
    table: &GamtTable<A, P>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    assert_eq!(addresses.len(), next_hops.len(), "a result for each key");
    #[cfg(target_arch = "x86_64")]
    if level.is_here() {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has the feature, and AVX2 gets keys of 32 bits.
        unsafe {
            match level {
                VectorLevel::Avx512 => return avx512::batch(table, addresses, next_hops),
                VectorLevel::Avx2 if A::OCTETS == 4 => return avx2::batch(table, addresses, next_hops),
                _ => {}
            }
        }
    }
    let _ = (level, table);
    0
}

/// The levels that vectors go through: those within the first two words, of units of up to 4 bytes, and short
/// enough for an index of 32 bits.
#[cfg(target_arch = "x86_64")]
fn in_vectors<A: Address, P: Placement>(table: &GamtTable<A, P>) -> &[Level] {
    let fits =
        |level: &&Level| level.from + level.stride <= 64 && level.code.width() <= 4 && level.len <= 1 << 30;
    &table.levels[..table.levels.iter().take_while(fits).count()]
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, __m512i, __mmask16, _MM_HINT_NTA, _mm_cvtsi32_si128, _mm_prefetch, _mm512_add_epi32,
        _mm512_and_si512, _mm512_castsi512_si256, _mm512_inserti64x4, _mm512_loadu_si512,
        _mm512_mask_and_epi32, _mm512_mask_cmpge_epu32_mask, _mm512_mask_i32gather_epi32,
        _mm512_mask_srli_epi32, _mm512_mask_test_epi32_mask, _mm512_or_si512, _mm512_permutex2var_epi32,
        _mm512_set1_epi32, _mm512_setr_epi32, _mm512_setzero_si512, _mm512_sll_epi32, _mm512_srl_epi32,
        _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
    };

    use wirespeed_fib::{Address, NextHop};
    use wirespeed_image::Table;

    use super::in_vectors;
    use crate::layout::{Code, GamtTable, JUMP_BITS, Level, Placement, next_hops, units};

    /// Keys in a vector.
    const LANES: usize = 16;
    /// How far ahead keys are prefetched, in bytes: past the reads that are under way. Not for the caches
    /// that tables lie in: keys pass through once.
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
            let mut round =
                Round { upper, lower, found: [_mm512_setzero_si512(); VECTORS], open: [!0; VECTORS] };
            // The first level begins where a unit of zeros would lead to.
            let mut before = Code::paper(4, 0);
            let mut done = 0;
            for (at, level) in levels.iter().enumerate() {
                // SAFETY: open lanes come from the level before, or there is none.
                let any = unsafe { round.step(level, before, table.image().padded(units(at))) };
                (before, done) = (level.code, at + 1);
                if any == 0 {
                    break;
                }
            }
            for (v, (&found, &open)) in round.found.iter().zip(&round.open).enumerate() {
                // SAFETY: the leaf of a lane that is not open is a slot, if next hops are separate.
                let next_hop = unsafe { next_hop(table, found, !open) };
                // SAFETY: `results` are `at_a_time` integers of 32 bits.
                unsafe { _mm512_storeu_si512(results.as_mut_ptr().add(v * LANES).cast(), next_hop) };
                if open != 0 {
                    let mut units = [0u32; LANES];
                    // SAFETY: these are 16 integers of 32 bits.
                    unsafe { _mm512_storeu_si512(units.as_mut_ptr().cast(), found) };
                    let to = units.map(|unit| before.read(unit.into()).1);
                    // In no vectors at all all lanes are still before the first level.
                    let to = if done == 0 { [0; LANES] } else { to };
                    finish(table, open, &to, done, &keys[v * LANES..], &mut results[v * LANES..]);
                }
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// Keys that go through the levels together.
    struct Round<const VECTORS: usize> {
        /// The first words of the keys, and the second.
        upper: [__m512i; VECTORS],
        lower: [__m512i; VECTORS],
        /// The unit that each open lane read last, and the leaf of the others.
        found: [__m512i; VECTORS],
        /// The lanes whose unit leads on.
        open: [__mmask16; VECTORS],
    }

    impl<const VECTORS: usize> Round<VECTORS> {
        /// Takes the open lanes through a level; which lanes are still open in any vector.
        ///
        /// # Safety
        /// The CPU must have AVX-512F. The open lanes must have units of a level whose code is `before` and
        /// which is right above this one, in a table that was checked; or this is the first, and all is zero.
        /// `units` are those of the level, with their padding. All levels are of those [`in_vectors`].
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn step(&mut self, level: &Level, before: Code, units: &[u8]) -> __mmask16 {
            // SAFETY: as our caller promises.
            unsafe {
                match (level.code.width(), before) {
                    (1, Code::Paper { .. }) => self.read::<1, false>(level, before, units),
                    (1, Code::Narrow { .. }) => self.read::<1, true>(level, before, units),
                    (2, Code::Paper { .. }) => self.read::<2, false>(level, before, units),
                    (2, Code::Narrow { .. }) => self.read::<2, true>(level, before, units),
                    (_, Code::Paper { .. }) => self.read::<4, false>(level, before, units),
                    (_, Code::Narrow { .. }) => self.read::<4, true>(level, before, units),
                }
            }
        }

        /// [`step`](Self::step) into units of a width, from narrow ones or the paper's.
        ///
        /// # Safety
        /// As for that, and the width must be the level's.
        #[inline]
        #[target_feature(enable = "avx512f")]
        unsafe fn read<const WIDTH: u32, const FROM_NARROW: bool>(
            &mut self,
            level: &Level,
            before: Code,
            units: &[u8],
        ) -> __mmask16 {
            let bits = Bits::of(level);
            let (base_before, below) = match before {
                Code::Narrow { base, below, .. } => (base, below),
                Code::Paper { .. } => (0, 0),
            };
            let base_before = _mm512_set1_epi32(base_before.cast_signed());
            let below = _mm_cvtsi32_si128(below.into());
            let base = _mm512_set1_epi32(level.code.base().cast_signed());
            let jump = _mm512_set1_epi32((1 << JUMP_BITS) - 1);
            let mut any = 0;
            for v in 0..VECTORS {
                let (open, found) = (self.open[v], self.found[v]);
                let node = match FROM_NARROW {
                    true => _mm512_sll_epi32(_mm512_sub_epi32(found, base_before), below),
                    false => _mm512_srli_epi32::<JUMP_BITS>(found),
                };
                let index = _mm512_add_epi32(node, bits.take(self.upper[v], self.lower[v]));
                // SAFETY: an open lane has the first unit of a node of this level, which every image and
                // patch is checked for.
                let unit = unsafe { gather::<WIDTH>(found, open, index, units) };
                let on = match WIDTH {
                    4 => _mm512_mask_test_epi32_mask(open, unit, jump),
                    _ => _mm512_mask_cmpge_epu32_mask(open, unit, base),
                };
                self.found[v] = match WIDTH {
                    4 => _mm512_mask_srli_epi32::<JUMP_BITS>(unit, open & !on, unit),
                    _ => unit,
                };
                self.open[v] = on;
                any |= on;
            }
            any
        }
    }

    /// Finishes the keys of the lanes in the mask, from a level on.
    #[cold]
    fn finish<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        mut open: __mmask16,
        to: &[u64; LANES],
        level: usize,
        keys: &[A],
        results: &mut [NextHop],
    ) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize;
            results[lane] = table.rest_of_lookup(keys[lane], level, to[lane]);
            open &= open - 1;
        }
    }

    /// How the bits of a level are taken out of the first two words of a key.
    struct Bits {
        word: Word,
        /// Shifts: to the right in the word that has the last of them, to the left in the other.
        right: __m128i,
        left: __m128i,
        mask: __m512i,
    }

    /// Which words they are in.
    #[derive(Clone, Copy)]
    enum Word {
        Upper,
        Lower,
        Both,
    }

    impl Bits {
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn of(level: &Level) -> Self {
            let end = level.from + level.stride;
            let word = match (level.from < 32, end <= 32) {
                (_, true) => Word::Upper,
                (false, _) => Word::Lower,
                (true, false) => Word::Both,
            };
            let last = if end <= 32 { 32 } else { 64 };
            Self {
                word,
                right: _mm_cvtsi32_si128((last - end).into()),
                left: _mm_cvtsi32_si128(i32::from(end) - 32),
                mask: _mm512_set1_epi32((1 << level.stride) - 1),
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn take(&self, upper: __m512i, lower: __m512i) -> __m512i {
            let bits = match self.word {
                Word::Upper => _mm512_srl_epi32(upper, self.right),
                Word::Lower => _mm512_srl_epi32(lower, self.right),
                Word::Both => {
                    let front = _mm512_sll_epi32(upper, self.left);
                    _mm512_or_si512(front, _mm512_srl_epi32(lower, self.right))
                }
            };
            _mm512_and_si512(bits, self.mask)
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
        let none = _mm512_setzero_si512();
        // SAFETY: a slot is one of the table, which every image and patch is checked for.
        unsafe {
            match width {
                1 => gather::<1>(none, mask, leaf, slots),
                2 => gather::<2>(none, mask, leaf, slots),
                _ => gather::<4>(none, mask, leaf, slots),
            }
        }
    }

    /// Elements of so many bytes, 1, 2 or 4, at the indexes of the lanes in the mask, widened; `found` in the
    /// others.
    ///
    /// # Safety
    /// The CPU must have AVX-512F. Each index in the mask must be of an element of `bytes`, at least 3 bytes
    /// before its end, and below 2^31.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn gather<const WIDTH: u32>(
        found: __m512i,
        mask: __mmask16,
        index: __m512i,
        bytes: &[u8],
    ) -> __m512i {
        let from = bytes.as_ptr().cast();
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match WIDTH {
                1 => {
                    let wide = _mm512_mask_i32gather_epi32::<1>(found, mask, index, from);
                    _mm512_mask_and_epi32(wide, mask, wide, _mm512_set1_epi32(0xff))
                }
                2 => {
                    let wide = _mm512_mask_i32gather_epi32::<2>(found, mask, index, from);
                    _mm512_mask_and_epi32(wide, mask, wide, _mm512_set1_epi32(0xffff))
                }
                _ => _mm512_mask_i32gather_epi32::<4>(found, mask, index, from),
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_NTA, _mm_cvtsi32_si128, _mm_prefetch, _mm256_add_epi32, _mm256_and_si256,
        _mm256_andnot_si256, _mm256_blendv_epi8, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32,
        _mm256_loadu_si256, _mm256_mask_i32gather_epi32, _mm256_movemask_ps, _mm256_or_si256,
        _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sll_epi32, _mm256_srl_epi32, _mm256_srli_epi32,
        _mm256_storeu_si256, _mm256_sub_epi32,
    };

    use wirespeed_fib::{Address, NextHop};
    use wirespeed_image::Table;

    use super::in_vectors;
    use crate::layout::{Code, GamtTable, JUMP_BITS, Level, Placement, next_hops, units};

    /// Keys in a vector.
    const LANES: usize = 8;
    /// Vectors at a time.
    const VECTORS: usize = 8;
    /// How far ahead keys are prefetched, in bytes.
    const AHEAD: usize = 2_048;

    /// Looks up keys, so many vectors at a time, while there are enough; how many keys that were.
    ///
    /// # Safety
    /// The CPU must have AVX2, and `A` be IPv4.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn batch<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        addresses: &[A],
        results: &mut [NextHop],
    ) -> usize {
        let at_a_time = LANES * VECTORS;
        let levels = in_vectors(table);
        let all = _mm256_set1_epi32(-1);
        for (keys, results) in addresses.chunks_exact(at_a_time).zip(results.chunks_exact_mut(at_a_time)) {
            let mut key = [_mm256_setzero_si256(); VECTORS];
            for (v, key) in key.iter_mut().enumerate() {
                let from = keys.as_ptr().wrapping_add(v * LANES).cast::<__m256i>();
                // SAFETY: these are 8 keys of 32 bits; a prefetch may be of any address.
                unsafe {
                    _mm_prefetch::<_MM_HINT_NTA>(from.wrapping_byte_add(AHEAD).cast());
                    *key = _mm256_loadu_si256(from);
                }
            }
            let mut round = Round { key, found: [_mm256_setzero_si256(); VECTORS], open: [all; VECTORS] };
            // The first level begins where a unit of zeros would lead to.
            let mut before = Code::paper(4, 0);
            let mut done = 0;
            for (at, level) in levels.iter().enumerate() {
                let units = table.image().padded(units(at));
                // SAFETY: open lanes come from the level before, or there is none.
                let any = unsafe {
                    match level.code.width() {
                        1 => round.read::<1>(level, before, units),
                        2 => round.read::<2>(level, before, units),
                        _ => round.read::<4>(level, before, units),
                    }
                };
                (before, done) = (level.code, at + 1);
                if !any {
                    break;
                }
            }
            for (v, (&found, &open)) in round.found.iter().zip(&round.open).enumerate() {
                // SAFETY: the leaf of a lane that is not open is a slot, if next hops are separate; `results`
                // are `at_a_time` integers of 32 bits.
                unsafe {
                    let next_hop = next_hop(table, found, _mm256_andnot_si256(open, all));
                    _mm256_storeu_si256(results.as_mut_ptr().add(v * LANES).cast(), next_hop);
                }
                let mut lanes = _mm256_movemask_ps(_mm256_castsi256_ps(open)).cast_unsigned();
                if lanes == 0 {
                    continue;
                }
                let mut units = [0u32; LANES];
                // SAFETY: these are 8 integers of 32 bits.
                unsafe { _mm256_storeu_si256(units.as_mut_ptr().cast(), found) };
                while lanes != 0 {
                    let lane = lanes.trailing_zeros() as usize;
                    // Without a level for vectors all lanes are still before the first.
                    let to = if done == 0 { 0 } else { before.read(units[lane].into()).1 };
                    let at = v * LANES + lane;
                    results[at] = table.rest_of_lookup(keys[at], done, to);
                    lanes &= lanes - 1;
                }
            }
        }
        addresses.len() - addresses.len() % at_a_time
    }

    /// Keys that go through the levels together.
    struct Round {
        key: [__m256i; VECTORS],
        /// The unit that each open lane read last, and the leaf of the others.
        found: [__m256i; VECTORS],
        /// All ones in the lanes whose unit leads on.
        open: [__m256i; VECTORS],
    }

    impl Round {
        /// Takes the open lanes through a level of units of a width; whether any lane is still open.
        ///
        /// # Safety
        /// The CPU must have AVX2. The open lanes must have units of a level whose code is `before` and which
        /// is right above this one, in a table that was checked; or this is the first, and all is zero.
        /// `units` are those of the level, with their padding, and the width is theirs. All levels are of
        /// those [`in_vectors`].
        #[inline]
        #[target_feature(enable = "avx2")]
        unsafe fn read<const WIDTH: u32>(&mut self, level: &Level, before: Code, units: &[u8]) -> bool {
            let right = _mm_cvtsi32_si128(32 - i32::from(level.from + level.stride));
            let mask = _mm256_set1_epi32((1 << level.stride) - 1);
            // Units are of 16 bits where there is a base, so that it compares as a signed number.
            let below_base = _mm256_set1_epi32(level.code.base().cast_signed() - 1);
            let jump = _mm256_set1_epi32((1 << JUMP_BITS) - 1);
            let mut any = _mm256_setzero_si256();
            for v in 0..VECTORS {
                let (open, found) = (self.open[v], self.found[v]);
                let node = match before {
                    Code::Paper { .. } => _mm256_srli_epi32::<8>(found),
                    Code::Narrow { base, below, .. } => _mm256_sll_epi32(
                        _mm256_sub_epi32(found, _mm256_set1_epi32(base.cast_signed())),
                        _mm_cvtsi32_si128(below.into()),
                    ),
                };
                let bits = _mm256_and_si256(_mm256_srl_epi32(self.key[v], right), mask);
                // SAFETY: an open lane has the first unit of a node of this level, which every image and
                // patch is checked for.
                let unit = unsafe { gather::<WIDTH>(found, open, _mm256_add_epi32(node, bits), units) };
                let leads_on = match WIDTH {
                    4 => {
                        let leaf = _mm256_cmpeq_epi32(_mm256_and_si256(unit, jump), _mm256_setzero_si256());
                        _mm256_andnot_si256(leaf, open)
                    }
                    _ => _mm256_and_si256(_mm256_cmpgt_epi32(unit, below_base), open),
                };
                self.found[v] = match WIDTH {
                    4 => {
                        let done = _mm256_andnot_si256(leads_on, open);
                        _mm256_blendv_epi8(unit, _mm256_srli_epi32::<8>(unit), done)
                    }
                    _ => unit,
                };
                self.open[v] = leads_on;
                any = _mm256_or_si256(any, leads_on);
            }
            _mm256_movemask_ps(_mm256_castsi256_ps(any)) != 0
        }
    }

    /// What the leaves of the lanes in the mask come to.
    ///
    /// # Safety
    /// The CPU must have AVX2. In a table with separate next hops these leaves must be slots.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn next_hop<A: Address, P: Placement>(
        table: &GamtTable<A, P>,
        leaf: __m256i,
        mask: __m256i,
    ) -> __m256i {
        let Some((_, width)) = table.next_hops else { return leaf };
        let slots = table.image().padded(next_hops(table.levels.len()));
        let none = _mm256_setzero_si256();
        // SAFETY: a slot is one of the table, which every image and patch is checked for.
        unsafe {
            match width {
                1 => gather::<1>(none, mask, leaf, slots),
                2 => gather::<2>(none, mask, leaf, slots),
                _ => gather::<4>(none, mask, leaf, slots),
            }
        }
    }

    /// Elements of so many bytes, 1, 2 or 4, at the indexes of the lanes in the mask, widened; `found` in the
    /// others.
    ///
    /// # Safety
    /// The CPU must have AVX2. Each index in the mask must be of an element of `bytes`, at least 3 bytes
    /// before its end, and below 2^31.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn gather<const WIDTH: u32>(
        found: __m256i,
        mask: __m256i,
        index: __m256i,
        bytes: &[u8],
    ) -> __m256i {
        let from = bytes.as_ptr().cast();
        let narrow = |wide: __m256i, low: i32| {
            _mm256_blendv_epi8(found, _mm256_and_si256(wide, _mm256_set1_epi32(low)), mask)
        };
        // SAFETY: as our caller promises; the scale is the size of an element.
        unsafe {
            match WIDTH {
                1 => narrow(_mm256_mask_i32gather_epi32::<1>(found, from, index, mask), 0xff),
                2 => narrow(_mm256_mask_i32gather_epi32::<2>(found, from, index, mask), 0xffff),
                _ => _mm256_mask_i32gather_epi32::<4>(found, from, index, mask),
            }
        }
    }
}
