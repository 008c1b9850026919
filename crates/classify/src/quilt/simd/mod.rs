//! Lookups by vectors: the only unsafe code of the engine.
//!
//! ```text
//! for 64 tuples at a time, for 4 layers at a time:
//!   for each layer, for each vector of tuples:  mask, hash                    ──►  indices of slots
//!   for each layer:
//!     for each vector of tuples:                slots, filters, heights       ──►  candidates: tuple, slot
//!     for each candidate:                                                     ──►  its groups
//!     for each group:                           4 cells at once, their ranks  ──►  the tuple's best rank
//!   for a few tuples at a time, for each group of scanned cells that may be better for one:
//!                                               16 cells at once, their ranks ──►  the tuples' best ranks
//! ```

#[allow(unsafe_code)]
mod avx2;
#[allow(unsafe_code)]
mod avx512;

use std::ops::Range;

use wirespeed_image::prefetch_at;
use wirespeed_table::VectorLevel;

use super::hash::{MOST_WORDS, Seeds};
use super::layout::{
    BLOCK, FORM_SHIFT, GROUPS, LANES, LAYERS_AT_ONCE, MOST_GROUPS, REST_AT, ScanView, Slot, View, blocks,
    cell_at, record_len,
};
use crate::rank::Rank;
use crate::tuple::Tuple;

/// Looks up a batch, if the CPU can.
#[inline]
#[allow(unsafe_code)]
pub(super) fn batch<T: Tuple>(view: View<'_>, tuples: &[T], results: &mut [u32]) -> bool {
    let has_wide = VectorLevel::Avx512.is_here()
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("bmi2");
    if has_wide {
        // SAFETY: the CPU has the features.
        unsafe { avx512::batch(view, tuples, results) };
        return true;
    }
    let has_narrow = VectorLevel::Avx2.is_here();
    if has_narrow {
        // SAFETY: the CPU has the features.
        unsafe { avx2::batch(view, tuples, results) };
    }
    has_narrow
}

/// Tuples at a time.
const CHUNK: usize = 64;
/// Tuples of the widest vector of hashes.
const MOST_WIDTH: usize = 16;
const MOST_BLOCKS: usize = MOST_WORDS / BLOCK;
/// Slots and cells of more bytes than this are fetched ahead.
const NEAR: usize = 256 << 10;

/// The steps that depend on the vectors. `live` has a bit for each tuple that may still find a better rule.
trait Vectors: Copy {
    /// The place of a tuple among those of a chunk.
    fn position(tuple: usize) -> usize;

    /// Where layers have the slots of tuples, and which bits of their filters count.
    fn hash<T: Tuple, const FAR: bool>(
        self,
        chunk: &mut Chunk,
        view: View<'_>,
        seeds: &Seeds,
        layers: Range<usize>,
        live: u64,
    );

    /// Goes through a layer of those that were hashed; how many slots pass.
    fn candidates(self, chunk: &mut Chunk, view: View<'_>, layer: usize, live: u64) -> usize;

    /// Compares tuples with groups.
    fn compare<T: Tuple>(self, chunk: &mut Chunk, view: View<'_>, found: usize);

    /// Compares all tuples with scanned cells: a few of them with a group while it is in registers.
    fn scan<T: Tuple>(self, chunk: &mut Chunk, scan: ScanView<'_>);
}

/// The state of the tuples of a chunk.
#[repr(C, align(64))]
struct Chunk {
    /// Four words of each tuple, by block and [`position`](Vectors::position).
    words: [[[u32; BLOCK]; CHUNK]; MOST_BLOCKS],
    /// The best rank so far, by position too.
    best: [u64; CHUNK],
    /// The indices of slots, by layer and tuple.
    indices: [[u32; CHUNK]; LAYERS_AT_ONCE],
    filters: [[u32; CHUNK]; LAYERS_AT_ONCE],
    /// Slots that passed, and the position of the tuple. A vector is written at a time.
    slots: [u32; CHUNK + MOST_WIDTH],
    tuples: [u32; CHUNK + MOST_WIDTH],
    /// Groups of these buckets, with the bit of their form, and the position of the tuple; by four.
    groups: [u32; CHUNK * MOST_GROUPS + MOST_GROUPS],
    askers: [u32; CHUNK * MOST_GROUPS + MOST_GROUPS],
}

/// Looks up a batch with vectors.
#[inline(always)]
fn run<T: Tuple, V: Vectors>(vectors: V, view: View<'_>, tuples: &[T], results: &mut [u32]) {
    let seeds = view.seeds();
    let mut chunk = Chunk {
        words: [[[0; BLOCK]; CHUNK]; MOST_BLOCKS],
        best: [0; CHUNK],
        indices: [[0; CHUNK]; LAYERS_AT_ONCE],
        filters: [[0; CHUNK]; LAYERS_AT_ONCE],
        slots: [0; CHUNK + MOST_WIDTH],
        tuples: [0; CHUNK + MOST_WIDTH],
        groups: [0; CHUNK * MOST_GROUPS + MOST_GROUPS],
        askers: [0; CHUNK * MOST_GROUPS + MOST_GROUPS],
    };
    let is_far = (size_of_val(view.slots) > NEAR, size_of_val(view.cells) > NEAR);
    for (tuples, results) in tuples.chunks(CHUNK).zip(results.chunks_mut(CHUNK)) {
        chunk.take::<T, V>(tuples);
        let mut live = u64::MAX >> (CHUNK - tuples.len());
        let count = view.count();
        for first in (0..count).step_by(LAYERS_AT_ONCE) {
            if first > 0 {
                live &= chunk.not_over::<V>(view.layers[first * record_len::<T>() + REST_AT]);
                if live == 0 {
                    break;
                }
            }
            let layers = first..(first + LAYERS_AT_ONCE).min(count);
            match is_far.0 {
                true => vectors.hash::<T, true>(&mut chunk, view, &seeds, layers.clone(), live),
                false => vectors.hash::<T, false>(&mut chunk, view, &seeds, layers.clone(), live),
            }
            for layer in 0..layers.len() {
                let found = vectors.candidates(&mut chunk, view, layer, live);
                let found = chunk.spread(found);
                if is_far.1 {
                    chunk.fetch::<T>(view, found);
                }
                vectors.compare::<T>(&mut chunk, view, found);
            }
        }
        if !view.scan.tops.is_empty() {
            // Nothing betters those that aren't there.
            (tuples.len()..CHUNK).for_each(|at| chunk.best[V::position(at)] = u64::MAX);
            vectors.scan::<T>(&mut chunk, view.scan);
        }
        for (at, result) in results.iter_mut().enumerate() {
            *result = Rank::from_bits(chunk.best[V::position(at)]).result();
        }
    }
}

impl Chunk {
    #[inline(always)]
    fn take<T: Tuple, V: Vectors>(&mut self, tuples: &[T]) {
        self.best = [0; CHUNK];
        for (at, tuple) in tuples.iter().enumerate() {
            let position = V::position(at);
            for (block, words) in tuple.words().chunks(BLOCK).enumerate() {
                self.words[block][position][..words.len()].copy_from_slice(words);
            }
        }
    }

    /// Tuples whose best is below a rank, or none.
    #[inline(always)]
    fn not_over<V: Vectors>(&self, rest: u64) -> u64 {
        let is_over = |best: u64| best >= rest && best != 0;
        !(0..CHUNK).fold(0, |over, at| over | u64::from(is_over(self.best[V::position(at)])) << at)
    }

    /// Makes groups of buckets; how many.
    #[inline(always)]
    fn spread(&mut self, found: usize) -> usize {
        let mut len = 0;
        for (&slot, &tuple) in self.slots[..found].iter().zip(&self.tuples[..found]) {
            // Four of each, of which those count that are there.
            let first = slot & (1 << FORM_SHIFT | (GROUPS - 1));
            let groups: &mut [u32; MOST_GROUPS] = self.groups[len..].first_chunk_mut().expect("four more");
            *groups = [first, first.wrapping_add(1), first.wrapping_add(2), first.wrapping_add(3)];
            let askers: &mut [u32; MOST_GROUPS] = self.askers[len..].first_chunk_mut().expect("four more");
            *askers = [tuple; MOST_GROUPS];
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
}

/// Fetches slots ahead.
#[inline(always)]
fn fetch_slots(view: View<'_>, indices: &[u32]) {
    for &index in indices {
        prefetch_at(view.slots.as_ptr().wrapping_add(index as usize).cast());
    }
}
