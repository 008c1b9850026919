//! AVX-512, with VBMI: 16 hashes, slots or scanned cells a vector.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_max_epu64, _mm_storel_epi64,
    _mm_unpackhi_epi64, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_maskz_loadu_epi64,
    _mm512_add_epi32, _mm512_add_epi64, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cmpeq_epi32_mask, _mm512_cmpge_epu32_mask, _mm512_cmpgt_epu64_mask,
    _mm512_cmple_epu16_mask, _mm512_loadu_si512, _mm512_mask_cmple_epu16_mask, _mm512_maskz_compress_epi32,
    _mm512_maskz_loadu_epi64, _mm512_max_epu64, _mm512_min_epu64, _mm512_mul_epu32, _mm512_mullo_epi32,
    _mm512_or_si512, _mm512_permutex2var_epi32, _mm512_permutexvar_epi8, _mm512_reduce_max_epu64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_ps, _mm512_slli_epi32,
    _mm512_srl_epi32, _mm512_srl_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi16,
    _mm512_subs_epu16, _mm512_ternarylogic_epi32, _mm512_testn_epi64_mask, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64, _mm512_xor_si512, _pext_u32,
};

use std::ops::Range;

use super::super::cell::Form;
use super::super::hash::{FILTER, Seeds};
use super::super::layout::{
    B_AFTER, BLOCK, Directory, FILTER_SHIFT, LANES, MASK_AT, SCAN_LANES, SPANS_AFTER, ScanView, Slot,
    VALUES_AFTER, View, blocks, cell_at, record_len, scan_len,
};
use super::{CHUNK, Chunk, Vectors, fetch_slots, run};
use crate::tuple::Tuple;

/// Tuples of a vector of hashes.
const WIDTH: usize = 16;
/// Vectors of hashes of a chunk.
const VECTORS: usize = CHUNK / WIDTH;

/// Shows that the CPU has the features of [`batch`], which alone makes one.
#[derive(Clone, Copy)]
struct Avx512(());

/// Looks up a batch.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    run(Avx512(()), view, tuples, results);
}

/// The place of a tuple among 16, so that hashing four vectors of four tuples gives one in their order.
const fn position(tuple: usize) -> usize {
    tuple & !15 | (tuple & 3) << 2 | tuple >> 2 & 3
}

impl Vectors for Avx512 {
    #[inline(always)]
    fn position(tuple: usize) -> usize {
        position(tuple)
    }

    #[inline(always)]
    fn hash<T: Tuple, const FAR: bool>(
        self,
        chunk: &mut Chunk,
        view: View<'_>,
        seeds: &Seeds,
        layers: Range<usize>,
        live: u64,
    ) {
        // SAFETY: the CPU has the features, as there is an `Avx512`.
        unsafe { hash::<T, FAR>(chunk, view, seeds, layers, live) }
    }

    #[inline(always)]
    fn candidates(self, chunk: &mut Chunk, view: View<'_>, layer: usize, live: u64) -> usize {
        // SAFETY: the CPU has the features, as there is an `Avx512`.
        unsafe { candidates(chunk, view, layer, live) }
    }

    #[inline(always)]
    fn compare<T: Tuple>(self, chunk: &mut Chunk, view: View<'_>, found: usize) {
        // SAFETY: the CPU has the features, as there is an `Avx512`.
        unsafe { compare::<T>(chunk, view, found) }
    }

    #[inline(always)]
    fn scan<T: Tuple>(self, chunk: &mut Chunk, scan: ScanView<'_>) {
        // SAFETY: the CPU has the features, as there is an `Avx512`.
        unsafe { self::scan::<T>(chunk, scan) }
    }
}

/// Where layers have the slots of tuples, and which bits of their filters count.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn hash<T: Tuple, const FAR: bool>(
    chunk: &mut Chunk,
    view: View<'_>,
    seeds: &Seeds,
    layers: Range<usize>,
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
            let hash = hashes::<T>(chunk, seeds, &record[MASK_AT..], vector);
            let product = _mm512_mullo_epi32(hash, factor);
            let indices = _mm512_add_epi32(_mm512_srl_epi32(product, shift), base);
            let bits = _mm512_slli_epi32::<{ FILTER_SHIFT }>(_mm512_permutexvar_epi8(hash, table));
            let of = vector * WIDTH..vector * WIDTH + WIDTH;
            let (to, filters) = (&mut chunk.indices[row][of.clone()], &mut chunk.filters[row][of]);
            // SAFETY: 16 elements each.
            unsafe {
                _mm512_storeu_si512(to.as_mut_ptr().cast(), indices);
                _mm512_storeu_si512(filters.as_mut_ptr().cast(), bits);
            }
            if FAR {
                fetch_slots(view, to);
            }
        }
    }
}

/// Goes through a layer; how many slots pass.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn candidates(chunk: &mut Chunk, view: View<'_>, layer: usize, live: u64) -> usize {
    let shift = _mm_cvtsi32_si128(view.shift().cast_signed());
    let mut found = 0;
    for vector in (0..VECTORS).filter(|vector| live >> (vector * WIDTH) & 0xffff != 0) {
        let of = vector * WIDTH..vector * WIDTH + WIDTH;
        let mut slots = [0u64; WIDTH];
        for (slot, &index) in slots.iter_mut().zip(&chunk.indices[layer][of.clone()]) {
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
            let slots = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(EVEN.as_ptr().cast()), high);
            let tops = _mm512_permutex2var_epi32(low, _mm512_loadu_si512(ODD.as_ptr().cast()), high);
            let bits = _mm512_loadu_si512(chunk.filters[layer][of.clone()].as_ptr().cast());
            let height = |best: &[u64]| {
                let best = _mm512_srl_epi64(_mm512_loadu_si512(best.as_ptr().cast()), shift);
                _mm512_min_epu64(best, _mm512_set1_epi64(0xffff_ffff))
            };
            let best = &chunk.best[of];
            let (low, high) = (height(&best[..WIDTH / 2]), height(&best[WIDTH / 2..]));
            let found_already =
                _mm512_permutex2var_epi32(low, _mm512_loadu_si512(HEIGHTS.as_ptr().cast()), high);
            let pass = live
                & _mm512_cmpeq_epi32_mask(_mm512_and_si512(slots, bits), bits)
                & _mm512_cmpge_epu32_mask(tops, found_already);
            let tuples = _mm512_loadu_si512(TUPLES[vector].as_ptr().cast());
            let slots = _mm512_maskz_compress_epi32(pass, slots);
            let tuples = _mm512_maskz_compress_epi32(pass, tuples);
            debug_assert!(found + WIDTH <= chunk.slots.len());
            _mm512_storeu_si512(chunk.slots.as_mut_ptr().add(found).cast(), slots);
            _mm512_storeu_si512(chunk.tuples.as_mut_ptr().add(found).cast(), tuples);
            found += pass.count_ones() as usize;
        }
    }
    found
}

/// The hashes of 16 tuples under a mask, in their order.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn hashes<T: Tuple>(chunk: &Chunk, seeds: &Seeds, mask: &[u64], vector: usize) -> __m512i {
    let mut sums = [_mm512_setzero_si512(); 4];
    for block in 0..blocks::<T>() {
        // SAFETY: two elements of a mask are a block, as are four keys.
        let (mask, keys) = unsafe {
            (
                _mm512_broadcast_i32x4(_mm_loadu_si128(mask[2 * block..2 * block + 2].as_ptr().cast())),
                _mm512_broadcast_i32x4(_mm_loadu_si128(
                    seeds.keys[BLOCK * block..BLOCK * block + BLOCK].as_ptr().cast(),
                )),
            )
        };
        let words = &chunk.words[block][vector * WIDTH..vector * WIDTH + WIDTH];
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

/// Compares tuples with groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn compare<T: Tuple>(chunk: &mut Chunk, view: View<'_>, found: usize) {
    for (&slot, &tuple) in chunk.groups[..found].iter().zip(&chunk.askers[..found]) {
        let (slot, tuple) = (Slot(slot.into()), tuple as usize % CHUNK);
        let group = slot.group();
        // SAFETY: a group of a slot is within the cells and the ranks (`admits`, held for all); four
        // ranks.
        unsafe {
            let mut differ = _mm512_setzero_si512();
            for block in 0..blocks::<T>() {
                let x = chunk.words[block][tuple].as_ptr();
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
            let ranks = _mm256_maskz_loadu_epi64(lanes, view.ranks.as_ptr().add(group * LANES).cast());
            let ranks = _mm_max_epu64(_mm256_castsi256_si128(ranks), _mm256_extracti128_si256::<1>(ranks));
            let ranks = _mm_max_epu64(ranks, _mm_unpackhi_epi64(ranks, ranks));
            let best: *mut __m128i = (&raw mut chunk.best[tuple]).cast();
            _mm_storel_epi64(best, _mm_max_epu64(ranks, _mm_loadl_epi64(best)));
        }
    }
}

/// Compares all tuples with scanned cells.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn scan<T: Tuple>(chunk: &mut Chunk, scan: ScanView<'_>) {
    for first in (0..CHUNK).step_by(TOGETHER) {
        scan_few::<T>(chunk, scan, first);
    }
}

/// The best rank for each tuple of the positions from `first` on: of what was found before, and of
/// the scanned cells that match.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,popcnt")]
fn scan_few<T: Tuple>(chunk: &mut Chunk, scan: ScanView<'_>, first: usize) {
    let few = first..first + TOGETHER;
    // SAFETY: as many elements as a vector has.
    let found = |bests: &[u64]| unsafe { _mm512_loadu_si512(bests[few.clone()].as_ptr().cast()) };
    let over = |rank: u64, found| _mm512_cmpgt_epu64_mask(_mm512_set1_epi64(rank.cast_signed()), found);
    let (mut live, mut so_far) = (u8::MAX, found(&chunk.best));
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
                [0, VALUES_AFTER, SPANS_AFTER].map(|from| _mm512_loadu_si512(of_word[from..].as_ptr().cast()))
            };
            let tuples = &chunk.words[word / BLOCK][few.clone()];
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
        for (at, (halves, best)) in halves.into_iter().zip(&mut chunk.best[few.clone()]).enumerate() {
            // Two bits a cell.
            let lanes = halves & halves >> 1 & 0x5555_5555;
            if lanes != 0 && open >> at & 1 == 1 {
                *best = (*best).max(highest(ranks, _pext_u32(lanes, 0x5555_5555)));
            }
        }
        so_far = found(&chunk.best);
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
