//! AVX2: 8 hashes, slots or halves of a group of scanned cells a vector.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_broadcastsi128_si256, _mm256_castps_si256, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64, _mm256_i32gather_epi32, _mm256_loadu_si256,
    _mm256_max_epu32, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_mul_epu32, _mm256_mullo_epi32,
    _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_setr_epi32, _mm256_setzero_si256, _mm256_shuffle_ps, _mm256_srl_epi32, _mm256_srl_epi64,
    _mm256_srli_epi64, _mm256_storeu_si256, _mm256_sub_epi16, _mm256_subs_epu16, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
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
const WIDTH: usize = 8;
/// Vectors of hashes of a chunk.
const VECTORS: usize = CHUNK / WIDTH;

/// Shows that the CPU has the features of [`batch`], which alone makes one.
#[derive(Clone, Copy)]
struct Avx2(());

/// Looks up a batch.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) {
    run(Avx2(()), view, tuples, results);
}

impl Vectors for Avx2 {
    #[inline(always)]
    fn position(tuple: usize) -> usize {
        tuple
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
        // SAFETY: the CPU has the features, as there is an `Avx2`.
        unsafe { hash::<T, FAR>(chunk, view, seeds, layers, live) }
    }

    #[inline(always)]
    fn candidates(self, chunk: &mut Chunk, view: View<'_>, layer: usize, live: u64) -> usize {
        // SAFETY: the CPU has the features, as there is an `Avx2`.
        unsafe { candidates(chunk, view, layer, live) }
    }

    #[inline(always)]
    fn compare<T: Tuple>(self, chunk: &mut Chunk, view: View<'_>, found: usize) {
        // SAFETY: the CPU has the features, as there is an `Avx2`.
        unsafe { compare::<T>(chunk, view, found) }
    }

    #[inline(always)]
    fn scan<T: Tuple>(self, chunk: &mut Chunk, scan: ScanView<'_>) {
        for first in (0..CHUNK).step_by(TOGETHER) {
            // SAFETY: the CPU has the features, as there is an `Avx2`.
            unsafe { scan_few::<T>(chunk, scan, first) }
        }
    }
}

/// Loads a vector of elements.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn load<E: Copy>(elements: &[E]) -> __m256i {
    assert!(size_of_val(elements) >= size_of::<__m256i>(), "a vector of elements");
    // SAFETY: so many bytes are there.
    unsafe { _mm256_loadu_si256(elements.as_ptr().cast()) }
}

/// Loads four elements into both halves.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn load_twice<E: Copy>(elements: &[E]) -> __m256i {
    assert!(size_of_val(elements) >= size_of::<__m256i>() / 2, "half a vector of elements");
    // SAFETY: so many bytes are there.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(elements.as_ptr().cast()) })
}

/// The low halves of eight elements, or the high ones, in order.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn halves<const OF_EACH: i32>(low: __m256i, high: __m256i) -> __m256i {
    let both = _mm256_shuffle_ps::<OF_EACH>(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high));
    _mm256_permute4x64_epi64::<0xd8>(_mm256_castps_si256(both))
}

/// Takes the low half of each element, in [`halves`].
const LOW: i32 = 0x88;
/// Takes the high half.
const HIGH: i32 = 0xdd;

/// The bits of filters by hash, where slots have them.
static FILTERS: [u32; FILTER.len()] = {
    let mut filters = [0; FILTER.len()];
    let mut at = 0;
    while at < FILTER.len() {
        filters[at] = (FILTER[at] as u32) << FILTER_SHIFT;
        at += 1;
    }
    filters
};

#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn hash<T: Tuple, const FAR: bool>(
    chunk: &mut Chunk,
    view: View<'_>,
    seeds: &Seeds,
    layers: Range<usize>,
    live: u64,
) {
    let factor = _mm256_set1_epi32(seeds.factor.cast_signed());
    for (row, record) in layers.map(|layer| layer * record_len::<T>()).enumerate() {
        let record = &view.layers[record..record + record_len::<T>()];
        let directory = Directory::of(record[0]);
        let base = _mm256_set1_epi32(directory.base.cast_signed());
        let shift = _mm_cvtsi32_si128(32 - directory.bits.cast_signed());
        for vector in (0..VECTORS).filter(|vector| live >> (vector * WIDTH) & 0xff != 0) {
            let hash = hashes::<T>(chunk, seeds, &record[MASK_AT..], vector);
            let product = _mm256_mullo_epi32(hash, factor);
            let indices = _mm256_add_epi32(_mm256_srl_epi32(product, shift), base);
            let of = _mm256_and_si256(hash, _mm256_set1_epi32(0x3f));
            let to = vector * WIDTH..vector * WIDTH + WIDTH;
            let (to, filters) = (&mut chunk.indices[row][to.clone()], &mut chunk.filters[row][to]);
            // SAFETY: indices below 64; eight elements each.
            unsafe {
                let bits = _mm256_i32gather_epi32::<4>(FILTERS.as_ptr().cast(), of);
                _mm256_storeu_si256(to.as_mut_ptr().cast(), indices);
                _mm256_storeu_si256(filters.as_mut_ptr().cast(), bits);
            }
            if FAR {
                fetch_slots(view, to);
            }
        }
    }
}

/// The hashes of eight tuples under a mask.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn hashes<T: Tuple>(chunk: &Chunk, seeds: &Seeds, mask: &[u64], vector: usize) -> __m256i {
    let mut sums = [_mm256_setzero_si256(); 4];
    for block in 0..blocks::<T>() {
        // Two elements of a mask are a block, as are four keys.
        let (mask, keys) = (load_twice(&mask[2 * block..][..2]), load_twice(&seeds.keys[BLOCK * block..]));
        let words = &chunk.words[block][vector * WIDTH..vector * WIDTH + WIDTH];
        for (two, sum) in words.as_chunks::<2>().0.iter().zip(&mut sums) {
            let words = _mm256_add_epi32(_mm256_and_si256(load(two), mask), keys);
            let product = _mm256_mul_epu32(words, _mm256_srli_epi64::<32>(words));
            *sum = if block == 0 { product } else { _mm256_add_epi64(*sum, product) };
        }
    }
    let pairs = |a, b| {
        let sum = _mm256_add_epi64(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        _mm256_castsi256_ps(_mm256_xor_si256(sum, _mm256_srli_epi64::<32>(sum)))
    };
    let hashes = _mm256_shuffle_ps::<0x88>(pairs(sums[0], sums[1]), pairs(sums[2], sums[3]));
    // The even ones are in the low half, the odd ones in the high half.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_permutevar8x32_epi32(_mm256_castps_si256(hashes), order)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn candidates(chunk: &mut Chunk, view: View<'_>, layer: usize, live: u64) -> usize {
    let shift = _mm_cvtsi32_si128(view.shift().cast_signed());
    let mut found = 0;
    for vector in (0..VECTORS).filter(|vector| live >> (vector * WIDTH) & 0xff != 0) {
        let of = vector * WIDTH..vector * WIDTH + WIDTH;
        let mut slots = [0u64; WIDTH];
        for (slot, &index) in slots.iter_mut().zip(&chunk.indices[layer][of.clone()]) {
            debug_assert!((index as usize) < view.slots.len());
            // SAFETY: a hash of `bits` bits after the directory's base is within the directory, which is
            // within the slots (`Directory::is_in`, held for all layers).
            *slot = unsafe { *view.slots.get_unchecked(index as usize) };
        }
        let (low, high) = slots.split_at(WIDTH / 2);
        let (low, high) = (load(low), load(high));
        let (lower, tops) = (halves::<LOW>(low, high), halves::<HIGH>(low, high));
        let bits = load(&chunk.filters[layer][of.clone()]);
        let height = |best: &[u64]| {
            let height = _mm256_srl_epi64(load(best), shift);
            // The highest height where it takes more than 32 bits.
            let over = _mm256_srli_epi64::<32>(height);
            let ones = _mm256_set1_epi32(-1);
            _mm256_or_si256(
                height,
                _mm256_andnot_si256(_mm256_cmpeq_epi64(over, _mm256_setzero_si256()), ones),
            )
        };
        let (low, high) = chunk.best[of].split_at(WIDTH / 2);
        let found_already = halves::<LOW>(height(low), height(high));
        let pass = _mm256_and_si256(
            _mm256_cmpeq_epi32(_mm256_and_si256(lower, bits), bits),
            _mm256_cmpeq_epi32(_mm256_max_epu32(tops, found_already), tops),
        );
        let pass = _mm256_movemask_ps(_mm256_castsi256_ps(pass)).cast_unsigned();
        let mut pass = u64::from(pass) & live >> (vector * WIDTH);
        while pass != 0 {
            let at = pass.trailing_zeros() as usize;
            #[allow(clippy::cast_possible_truncation)] // the lower half, and below 64
            {
                chunk.slots[found] = slots[at] as u32;
                chunk.tuples[found] = (vector * WIDTH + at) as u32;
            }
            found += 1;
            pass &= pass - 1;
        }
    }
    found
}

#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn compare<T: Tuple>(chunk: &mut Chunk, view: View<'_>, found: usize) {
    for (&slot, &tuple) in chunk.groups[..found].iter().zip(&chunk.askers[..found]) {
        let (slot, tuple) = (Slot(slot.into()), tuple as usize % CHUNK);
        let group = slot.group();
        let mut differ = [_mm256_setzero_si256(); 2];
        for block in 0..blocks::<T>() {
            let x = load_twice(&chunk.words[block][tuple]);
            let at = cell_at::<T>(group, block, 0);
            debug_assert!(at + 2 * B_AFTER <= view.cells.len());
            // SAFETY: a group of a slot is within the cells (`admits`, held for all).
            let cells = unsafe { view.cells.get_unchecked(at..at + 2 * B_AFTER) };
            for (half, differ) in differ.iter_mut().enumerate() {
                let (a, b) =
                    (load(&cells[half * B_AFTER / 2..]), load(&cells[B_AFTER + half * B_AFTER / 2..]));
                let over = match slot.form() {
                    Form::RANGES => _mm256_subs_epu16(_mm256_sub_epi16(x, a), b),
                    _ => _mm256_xor_si256(_mm256_and_si256(x, b), a),
                };
                *differ = _mm256_or_si256(*differ, over);
            }
        }
        let is_zero = |differ| {
            let zero = _mm256_cmpeq_epi64(differ, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(zero)).cast_unsigned()
        };
        // Two bits a cell.
        let both = is_zero(differ[0]) | is_zero(differ[1]) << LANES;
        let mut cells = both & both >> 1 & 0x55;
        while cells != 0 {
            let lane = cells.trailing_zeros() as usize / 2;
            // SAFETY: a group of a slot is within the ranks (`admits`, held for all).
            let rank = unsafe { *view.ranks.get_unchecked(group * LANES + lane) };
            chunk.best[tuple] = chunk.best[tuple].max(rank);
            cells &= cells - 1;
        }
    }
}

/// Tuples that are held against a group of scanned cells while it is in registers.
const TOGETHER: usize = 4;

/// The best rank for each tuple of the positions from `first` on: of what was found before, and of the
/// scanned cells that match.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn scan_few<T: Tuple>(chunk: &mut Chunk, scan: ScanView<'_>, first: usize) {
    let few = first..first + TOGETHER;
    let best: &mut [u64; TOGETHER] = (&mut chunk.best[few.clone()]).try_into().expect("as many");
    let mut live = [true; TOGETHER];
    'groups: for (group, &[top, rest]) in scan.tops.iter().enumerate() {
        live.iter_mut().zip(&*best).for_each(|(live, best)| *live &= rest > *best);
        if live == [false; TOGETHER] {
            break;
        }
        // Each tuple by itself, as tops of an image may be lower than what is there.
        let open: [bool; TOGETHER] = std::array::from_fn(|at| live[at] && top > best[at]);
        if open == [false; TOGETHER] {
            continue;
        }
        let cells = &scan.cells[group * scan_len(T::WORDS)..][..scan_len(T::WORDS)];
        let mut differ = [[_mm256_setzero_si256(); 2]; TOGETHER];
        for (word, of_word) in cells.chunks_exact(3 * SCAN_LANES).enumerate() {
            let mut alike = _mm256_setzero_si256();
            for half in 0..2 {
                let [masks, least, spans] =
                    [0, VALUES_AFTER, SPANS_AFTER].map(|from| load(&of_word[from + half * WIDTH..]));
                let tuples = &chunk.words[word / BLOCK][few.clone()];
                for (differ, tuple) in differ.iter_mut().zip(tuples) {
                    let tuple = _mm256_set1_epi32(tuple[word % BLOCK].cast_signed());
                    let over = _mm256_sub_epi16(_mm256_and_si256(tuple, masks), least);
                    differ[half] = _mm256_or_si256(differ[half], _mm256_subs_epu16(over, spans));
                    alike = _mm256_or_si256(alike, is_zero(differ[half]));
                }
            }
            // Under many masks most groups are out after a word.
            if _mm256_movemask_ps(_mm256_castsi256_ps(alike)) == 0 {
                continue 'groups;
            }
        }
        let ranks = &scan.ranks[group * SCAN_LANES..][..SCAN_LANES];
        for ((differ, best), _) in differ.into_iter().zip(&mut *best).zip(open).filter(|(_, open)| *open) {
            let [low, high] =
                differ.map(|differ| _mm256_movemask_ps(_mm256_castsi256_ps(is_zero(differ))).cast_unsigned());
            let mut lanes = low | high << WIDTH;
            while lanes != 0 {
                *best = (*best).max(ranks[lanes.trailing_zeros() as usize]);
                lanes &= lanes - 1;
            }
        }
    }
}

/// Ones in the lanes that are zero.
#[inline]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn is_zero(lanes: __m256i) -> __m256i {
    _mm256_cmpeq_epi32(lanes, _mm256_setzero_si256())
}
