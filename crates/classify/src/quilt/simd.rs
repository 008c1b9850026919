//! Lookups by vectors: the only unsafe code of the engine.
//!
//! ```text
//! for 64 tuples at a time, for 4 layers at a time:
//!   for each layer, for each 16 tuples:     mask, hash                    ──►  indices of slots
//!   for each layer:
//!     for each 16 tuples:                   slots, filters, heights       ──►  candidates: tuple, slot
//!     for each candidate:                                                 ──►  its groups
//!     for each group:                       4 cells at once, their ranks  ──►  the tuple's best rank
//!   for 8 tuples at a time, for each group of scanned cells that may be better for one:
//!                                           16 cells at once, their ranks ──►  the tuples' best ranks
//! ```

use wirespeed_table::VectorLevel;

use super::layout::View;
use crate::tuple::Tuple;

/// Looks up a batch, if the CPU can.
#[inline]
#[allow(unsafe_code)]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) -> bool {
    let can = VectorLevel::Avx512.is_here()
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("bmi2");
    if can {
        // SAFETY: the CPU has the features.
        unsafe { avx512::batch(view, tuples, results) };
    }
    can
}

#[allow(unsafe_code)]
mod avx512 {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_add_epi32, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_max_epu64,
        _mm_set_epi32, _mm_set1_epi32, _mm_storel_epi64, _mm_storeu_si128, _mm_unpackhi_epi64,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_maskz_loadu_epi64, _mm512_add_epi32,
        _mm512_add_epi64, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_castps_si512, _mm512_castsi512_ps,
        _mm512_cmpeq_epi32_mask, _mm512_cmpge_epu32_mask, _mm512_cmpgt_epu64_mask, _mm512_cmple_epu16_mask,
        _mm512_loadu_si512, _mm512_mask_cmple_epu16_mask, _mm512_maskz_compress_epi32,
        _mm512_maskz_loadu_epi64, _mm512_max_epu64, _mm512_min_epu64, _mm512_mul_epu32, _mm512_mullo_epi32,
        _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_permutexvar_epi8, _mm512_reduce_max_epu64,
        _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_ps, _mm512_slli_epi32,
        _mm512_srl_epi32, _mm512_srl_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi16,
        _mm512_subs_epu16, _mm512_ternarylogic_epi32, _mm512_testn_epi64_mask, _mm512_unpackhi_epi64,
        _mm512_unpacklo_epi64, _mm512_xor_si512, _pext_u32,
    };

    use wirespeed_image::prefetch_at;

    use super::super::cell::Form;
    use super::super::hash::{FILTER, MOST_WORDS, Seeds};
    use super::super::layout::{
        B_AFTER, BLOCK, Directory, FILTER_SHIFT, FORM_SHIFT, GROUPS, LANES, LAYERS_AT_ONCE, MASK_AT,
        MOST_GROUPS, REST_AT, SCAN_LANES, SPANS_AFTER, ScanView, Slot, VALUES_AFTER, View, blocks, cell_at,
        record_len, scan_len,
    };
    use crate::rank::Rank;
    use crate::tuple::Tuple;

    /// Tuples at a time.
    const CHUNK: usize = 64;
    /// Tuples of a vector of hashes.
    const WIDTH: usize = 16;
    /// Vectors of hashes of a chunk.
    const VECTORS: usize = CHUNK / WIDTH;
    const MOST_BLOCKS: usize = MOST_WORDS / BLOCK;
    /// Vectors of hashes.
    const ROWS: usize = LAYERS_AT_ONCE * CHUNK / WIDTH;
    /// Slots and cells of more bytes than this are fetched ahead.
    const NEAR: usize = 256 << 10;

    /// What is known of the tuples of a chunk.
    #[repr(C, align(64))]
    struct Chunk {
        /// Four words of each tuple, by block and [`position`].
        words: [[[u32; BLOCK]; CHUNK]; MOST_BLOCKS],
        /// The best rank so far, by position too.
        best: [u64; CHUNK],
        /// A vector's slots by their indices.
        indices: [[u32; WIDTH]; ROWS],
        filters: [[u32; WIDTH]; ROWS],
        /// Slots that passed, and the position of the tuple. A vector is written at a time.
        slots: [u32; CHUNK + WIDTH],
        tuples: [u32; CHUNK + WIDTH],
        /// Groups of these buckets, with the bit of their form, and the position of the tuple; by four.
        groups: [u32; CHUNK * MOST_GROUPS + MOST_GROUPS],
        askers: [u32; CHUNK * MOST_GROUPS + MOST_GROUPS],
    }

    /// Where a tuple lies among 16, so that hashing four vectors of four tuples gives one in their order.
    const fn position(tuple: usize) -> usize {
        tuple & !15 | (tuple & 3) << 2 | tuple >> 2 & 3
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
    pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
        let seeds = view.seeds();
        let mut chunk = Chunk {
            words: [[[0; BLOCK]; CHUNK]; MOST_BLOCKS],
            best: [0; CHUNK],
            indices: [[0; WIDTH]; ROWS],
            filters: [[0; WIDTH]; ROWS],
            slots: [0; CHUNK + WIDTH],
            tuples: [0; CHUNK + WIDTH],
            groups: [0; CHUNK * MOST_GROUPS + MOST_GROUPS],
            askers: [0; CHUNK * MOST_GROUPS + MOST_GROUPS],
        };
        let is_far = (size_of_val(view.slots) > NEAR, size_of_val(view.cells) > NEAR);
        for (tuples, results) in tuples.chunks(CHUNK).zip(results.chunks_mut(CHUNK)) {
            chunk.take(tuples);
            let mut live = u64::MAX >> (CHUNK - tuples.len());
            let count = view.count();
            for first in (0..count).step_by(LAYERS_AT_ONCE) {
                if first > 0 {
                    live &= chunk.not_over(view.layers[first * record_len::<T>() + REST_AT]);
                    if live == 0 {
                        break;
                    }
                }
                let layers = first..(first + LAYERS_AT_ONCE).min(count);
                match is_far.0 {
                    true => chunk.hash::<T, true>(view, &seeds, layers.clone(), live),
                    false => chunk.hash::<T, false>(view, &seeds, layers.clone(), live),
                }
                for layer in 0..layers.len() {
                    let found = chunk.candidates(view, layer, live);
                    let found = chunk.spread(found);
                    if is_far.1 {
                        chunk.fetch::<T>(view, found);
                    }
                    chunk.compare::<T>(view, found);
                }
            }
            if !view.scan.tops.is_empty() {
                chunk.scan::<T>(view.scan, tuples.len());
            }
            for (at, result) in results.iter_mut().enumerate() {
                *result = Rank::from_bits(chunk.best[position(at)]).result();
            }
        }
    }

    impl Chunk {
        #[inline(always)]
        fn take<T: Tuple>(&mut self, tuples: &[T]) {
            self.best = [0; CHUNK];
            for (at, tuple) in tuples.iter().enumerate() {
                let position = position(at);
                for (block, words) in tuple.words().chunks(BLOCK).enumerate() {
                    self.words[block][position][..words.len()].copy_from_slice(words);
                }
            }
        }

        /// Tuples whose best is below a rank, or none.
        #[inline(always)]
        fn not_over(&self, rest: u64) -> u64 {
            let is_over = |best: u64| best >= rest && best != 0;
            !(0..CHUNK).fold(0, |over, at| over | u64::from(is_over(self.best[position(at)])) << at)
        }

        /// Where layers have the slots of tuples, and which bits of their filters count.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn hash<T: Tuple, const FAR: bool>(
            &mut self,
            view: View<'_>,
            seeds: &Seeds,
            layers: std::ops::Range<usize>,
            live: u64,
        ) {
            // SAFETY: 64 bytes.
            let table = unsafe { _mm512_loadu_si512(FILTER.as_ptr().cast()) };
            let factor = _mm512_set1_epi32(seeds.factor.cast_signed());
            for (row, record) in layers.map(|layer| layer * record_len::<T>()).enumerate() {
                let record = &view.layers[record..record + record_len::<T>()];
                let directory = Directory::of(record[0]);
                let base = _mm512_set1_epi32(directory.base.cast_signed());
                let shift = _mm_cvtsi32_si128(32 - directory.bits.cast_signed());
                for vector in (0..VECTORS).filter(|vector| live >> (vector * WIDTH) & 0xffff != 0) {
                    let hash = self.hashes::<T>(seeds, &record[MASK_AT..], vector);
                    let product = _mm512_mullo_epi32(hash, factor);
                    let indices = _mm512_add_epi32(_mm512_srl_epi32(product, shift), base);
                    let bits = _mm512_slli_epi32::<{ FILTER_SHIFT }>(_mm512_permutexvar_epi8(hash, table));
                    let row = row * VECTORS + vector;
                    // SAFETY: 16 elements each.
                    unsafe {
                        _mm512_storeu_si512(self.indices[row].as_mut_ptr().cast(), indices);
                        _mm512_storeu_si512(self.filters[row].as_mut_ptr().cast(), bits);
                    }
                    if FAR {
                        for &index in &self.indices[row] {
                            let slot = view.slots.as_ptr().wrapping_add(index as usize);
                            prefetch_at(slot.cast());
                        }
                    }
                }
            }
        }

        /// Goes through a layer; how many slots pass.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn candidates(&mut self, view: View<'_>, layer: usize, live: u64) -> usize {
            let shift = _mm_cvtsi32_si128(view.shift().cast_signed());
            let mut found = 0;
            for vector in (0..VECTORS).filter(|vector| live >> (vector * WIDTH) & 0xffff != 0) {
                let row = layer * VECTORS + vector;
                let mut slots = [0u64; WIDTH];
                for (slot, &index) in slots.iter_mut().zip(&self.indices[row]) {
                    debug_assert!((index as usize) < view.slots.len());
                    // SAFETY: a hash of `bits` bits after the directory's base is within the directory, which
                    // is within the slots (`Directory::is_in`, held for all layers).
                    *slot = unsafe { *view.slots.get_unchecked(index as usize) };
                }
                #[allow(clippy::cast_possible_truncation)] // 16 of them
                let live = (live >> (vector * WIDTH)) as u16;
                // SAFETY: 16 elements, half of them at a time; and of the rows of candidates there is a
                // vector more than `found` can be.
                unsafe {
                    let (low, high) = (slots.as_ptr(), slots[WIDTH / 2..].as_ptr());
                    let (low, high) = (_mm512_loadu_si512(low.cast()), _mm512_loadu_si512(high.cast()));
                    let slots =
                        _mm512_permutex2var_epi32(low, _mm512_loadu_si512(EVEN.as_ptr().cast()), high);
                    let tops = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(ODD.as_ptr().cast()), high);
                    let bits = _mm512_loadu_si512(self.filters[row].as_ptr().cast());
                    let height = |best: &[u64]| {
                        let best = _mm512_srl_epi64(_mm512_loadu_si512(best.as_ptr().cast()), shift);
                        _mm512_min_epu64(best, _mm512_set1_epi64(0xffff_ffff))
                    };
                    let best = &self.best[vector * WIDTH..vector * WIDTH + WIDTH];
                    let (low, high) = (height(&best[..WIDTH / 2]), height(&best[WIDTH / 2..]));
                    let found_already =
                        _mm512_permutex2var_epi32(low, _mm512_loadu_si512(HEIGHTS.as_ptr().cast()), high);
                    let pass = live
                        & _mm512_cmpeq_epi32_mask(_mm512_and_si512(slots, bits), bits)
                        & _mm512_cmpge_epu32_mask(tops, found_already);
                    let tuples = _mm512_loadu_si512(TUPLES[vector].as_ptr().cast());
                    let slots = _mm512_maskz_compress_epi32(pass, slots);
                    let tuples = _mm512_maskz_compress_epi32(pass, tuples);
                    debug_assert!(found + WIDTH <= self.slots.len());
                    _mm512_storeu_si512(self.slots.as_mut_ptr().add(found).cast(), slots);
                    _mm512_storeu_si512(self.tuples.as_mut_ptr().add(found).cast(), tuples);
                    found += pass.count_ones() as usize;
                }
            }
            found
        }

        /// The hashes of 16 tuples under a mask, in their order.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn hashes<T: Tuple>(&self, seeds: &Seeds, mask: &[u64], vector: usize) -> __m512i {
            let mut sums = [_mm512_setzero_si512(); 4];
            for block in 0..blocks::<T>() {
                // SAFETY: two elements of a mask are a block, as are four keys.
                let (mask, keys) = unsafe {
                    (
                        _mm512_broadcast_i32x4(_mm_loadu_si128(
                            mask[2 * block..2 * block + 2].as_ptr().cast(),
                        )),
                        _mm512_broadcast_i32x4(_mm_loadu_si128(
                            seeds.keys[BLOCK * block..BLOCK * block + BLOCK].as_ptr().cast(),
                        )),
                    )
                };
                let words = &self.words[block][vector * WIDTH..vector * WIDTH + WIDTH];
                for (part, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: four blocks are 64 bytes.
                    let words = unsafe { _mm512_loadu_si512(words[4 * part..4 * part + 4].as_ptr().cast()) };
                    let words = _mm512_add_epi32(_mm512_and_si512(words, mask), keys);
                    let product = _mm512_mul_epu32(words, _mm512_srli_epi64::<32>(words));
                    *sum = if block == 0 { product } else { _mm512_add_epi64(*sum, product) };
                }
            }
            let pairs = |a, b| {
                let sum = _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
                _mm512_castsi512_ps(_mm512_xor_si512(sum, _mm512_srli_epi64::<32>(sum)))
            };
            _mm512_castps_si512(_mm512_shuffle_ps::<0x88>(pairs(sums[0], sums[1]), pairs(sums[2], sums[3])))
        }

        /// Makes groups of buckets; how many.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn spread(&mut self, found: usize) -> usize {
            let steps = _mm_set_epi32(3, 2, 1, 0);
            let mut len = 0;
            for (&slot, &tuple) in self.slots[..found].iter().zip(&self.tuples[..found]) {
                let first = (slot & (1 << FORM_SHIFT | (GROUPS - 1))).cast_signed();
                debug_assert!(len + MOST_GROUPS <= self.groups.len());
                // SAFETY: of each candidate four elements at most, and there are four more.
                unsafe {
                    let groups = _mm_add_epi32(_mm_set1_epi32(first), steps);
                    _mm_storeu_si128(self.groups.as_mut_ptr().add(len).cast(), groups);
                    let tuples = _mm_set1_epi32(tuple.cast_signed());
                    _mm_storeu_si128(self.askers.as_mut_ptr().add(len).cast(), tuples);
                }
                len += Slot(slot.into()).groups();
            }
            len
        }

        #[inline(always)]
        fn fetch<T: Tuple>(&self, view: View<'_>, found: usize) {
            for &slot in &self.groups[..found] {
                let group = Slot(slot.into()).group();
                let cells = view.cells.as_ptr().wrapping_add(cell_at::<T>(group, 0, 0));
                for line in 0..2 * blocks::<T>() {
                    prefetch_at(cells.wrapping_add(8 * line).cast());
                }
                prefetch_at(view.ranks.as_ptr().wrapping_add(group * LANES).cast());
            }
        }

        /// Compares tuples with groups.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn compare<T: Tuple>(&mut self, view: View<'_>, found: usize) {
            for (&slot, &tuple) in self.groups[..found].iter().zip(&self.askers[..found]) {
                let (slot, tuple) = (Slot(slot.into()), tuple as usize % CHUNK);
                let group = slot.group();
                // SAFETY: a group of a slot is within the cells and the ranks (`admits`, held for all); four
                // ranks.
                unsafe {
                    let mut differ = _mm512_setzero_si512();
                    for block in 0..blocks::<T>() {
                        let x = self.words[block][tuple].as_ptr();
                        let x = _mm512_broadcast_i32x4(_mm_loadu_si128(x.cast()));
                        let at = cell_at::<T>(group, block, 0);
                        debug_assert!(at + 2 * B_AFTER <= view.cells.len());
                        let a = _mm512_loadu_si512(view.cells.as_ptr().add(at).cast());
                        let b = _mm512_loadu_si512(view.cells.as_ptr().add(at + B_AFTER).cast());
                        let over = match slot.form() {
                            Form::RANGES => _mm512_subs_epu16(_mm512_sub_epi16(x, a), b),
                            // x & b ^ a
                            _ => _mm512_ternarylogic_epi32::<0x78>(a, x, b),
                        };
                        differ = if block == 0 { over } else { _mm512_or_si512(differ, over) };
                    }
                    // Two bits a cell.
                    let halves = u32::from(_mm512_testn_epi64_mask(differ, differ));
                    #[allow(clippy::cast_possible_truncation)] // four bits
                    let lanes = _pext_u32(halves & halves >> 1, 0x55) as u8;
                    let ranks =
                        _mm256_maskz_loadu_epi64(lanes, view.ranks.as_ptr().add(group * LANES).cast());
                    let ranks =
                        _mm_max_epu64(_mm256_castsi256_si128(ranks), _mm256_extracti128_si256::<1>(ranks));
                    let ranks = _mm_max_epu64(ranks, _mm_unpackhi_epi64(ranks, ranks));
                    let best: *mut __m128i = (&raw mut self.best[tuple]).cast();
                    _mm_storel_epi64(best, _mm_max_epu64(ranks, _mm_loadl_epi64(best)));
                }
            }
        }
    }

    impl Chunk {
        /// Compares the first tuples with scanned cells: a few of them with a group while it is in registers.
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn scan<T: Tuple>(&mut self, scan: ScanView<'_>, tuples: usize) {
            // Nothing betters those that aren't there.
            (tuples..CHUNK).for_each(|at| self.best[position(at)] = u64::MAX);
            for first in (0..CHUNK).step_by(TOGETHER) {
                self.scan_few::<T>(scan, first);
            }
        }

        /// The best rank for each tuple of the positions from `first` on: of what was found before, and of
        /// the scanned cells that match.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
        fn scan_few<T: Tuple>(&mut self, scan: ScanView<'_>, first: usize) {
            let few = first..first + TOGETHER;
            // SAFETY: as many elements as a vector has.
            let found = |bests: &[u64]| unsafe { _mm512_loadu_si512(bests[few.clone()].as_ptr().cast()) };
            let over =
                |rank: u64, found| _mm512_cmpgt_epu64_mask(_mm512_set1_epi64(rank.cast_signed()), found);
            let (mut live, mut so_far) = (u8::MAX, found(&self.best));
            'groups: for (group, &[top, rest]) in scan.tops.iter().enumerate() {
                live &= over(rest, so_far);
                if live == 0 {
                    break;
                }
                let open = live & over(top, so_far);
                if open == 0 {
                    continue;
                }
                let cells = &scan.cells[group * scan_len(T::WORDS)..][..scan_len(T::WORDS)];
                let mut halves = [u32::MAX; TOGETHER];
                for (word, of_word) in cells.chunks_exact(3 * SCAN_LANES).enumerate() {
                    // SAFETY: of a word there are 16 masks, 16 least numbers and 16 spans.
                    let [masks, least, spans] = unsafe {
                        [0, VALUES_AFTER, SPANS_AFTER]
                            .map(|from| _mm512_loadu_si512(of_word[from..].as_ptr().cast()))
                    };
                    let tuples = &self.words[word / BLOCK][few.clone()];
                    for (halves, tuple) in halves.iter_mut().zip(tuples) {
                        let tuple = _mm512_set1_epi32(tuple[word % BLOCK].cast_signed());
                        let over = _mm512_sub_epi16(_mm512_and_si512(tuple, masks), least);
                        *halves = match word {
                            0 => _mm512_cmple_epu16_mask(over, spans),
                            _ => _mm512_mask_cmple_epu16_mask(*halves, over, spans),
                        };
                    }
                    // Under many masks most groups are out after a word.
                    if halves.iter().fold(0, |all, halves| all | halves) == 0 {
                        continue 'groups;
                    }
                }
                let ranks = &scan.ranks[group * SCAN_LANES..][..SCAN_LANES];
                for (at, (halves, best)) in halves.into_iter().zip(&mut self.best[few.clone()]).enumerate() {
                    // Two bits a cell.
                    let lanes = halves & halves >> 1 & 0x5555_5555;
                    if lanes != 0 && open >> at & 1 == 1 {
                        *best = (*best).max(highest(ranks, _pext_u32(lanes, 0x5555_5555)));
                    }
                }
                so_far = found(&self.best);
            }
        }
    }

    /// Tuples that are held against a group of scanned cells while it is in registers: as many as a vector
    /// has ranks.
    const TOGETHER: usize = 8;

    /// The highest of some of 16 ranks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
    fn highest(ranks: &[u64], lanes: u32) -> u64 {
        let (low, high) = ranks.split_at(SCAN_LANES / 2);
        debug_assert_eq!(high.len(), SCAN_LANES / 2);
        #[allow(clippy::cast_possible_truncation)] // a byte each
        let of = [lanes as u8, (lanes >> 8) as u8];
        // SAFETY: 16 ranks, half of them at a time.
        let (low, high) = unsafe {
            (
                _mm512_maskz_loadu_epi64(of[0], low.as_ptr().cast()),
                _mm512_maskz_loadu_epi64(of[1], high.as_ptr().cast()),
            )
        };
        _mm512_reduce_max_epu64(_mm512_max_epu64(low, high))
    }

    /// The low halves of 16 elements, and the high ones.
    const EVEN: [u32; WIDTH] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
    const ODD: [u32; WIDTH] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31];
    /// The low halves of 16 elements by position, in the order of tuples.
    const HEIGHTS: [u32; WIDTH] = {
        let mut all = [0; WIDTH];
        let mut at = 0;
        while at < WIDTH {
            all[at] = EVEN[position(at)];
            at += 1;
        }
        all
    };

    /// The positions of the tuples of a chunk, by vectors.
    const TUPLES: [[u32; WIDTH]; CHUNK / WIDTH] = {
        let mut all = [[0; WIDTH]; CHUNK / WIDTH];
        let mut at = 0;
        while at < CHUNK {
            #[allow(clippy::cast_possible_truncation)] // 64 of them
            let number = position(at) as u32;
            all[at / WIDTH][at % WIDTH] = number;
            at += 1;
        }
        all
    };
}
