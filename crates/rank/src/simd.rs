//! Batches with the instructions of newer CPUs: the only unsafe code of this crate.
//!
//! Sixteen keys a vector with AVX-512, eight with AVX2, and eight vectors at a time (four ran level with that
//! on AVX-512): the chunk ids of all of them, then the words and the numbers of the runs, then the runs.
//! Those that lead on to level 32 are finished after every 1,024 keys, from a list, so that which they are is
//! no branch. Without vectors the portable code is compiled for the instruction that counts bits, where there
//! is one.
//!
//! On a Zen 4 core, on the real table with 79,563 next hops, random · prefix traffic in batches of 1,024,
//! medians in M/s: 415 · 396 with AVX-512, beside 126 · 210 of `rte_fib` with 4-byte entries in the same run;
//! in another, 254 · 222 portable with that instruction and 171 · 152 without. The keys are fetched ahead;
//! there it made no difference beyond the noise. On a Zen 3 core, on the same table: 163 · 166 with AVX2
//! beside 118 · 115 portable with that instruction.

use wirespeed_fib::vector::{Batch, Cpu, Gains, InVectors, MOST_LANES, MOST_VECTORS, Mask, Vector};
use wirespeed_fib::{NextHop, V4, VectorLevel};
use wirespeed_image::{Element, Image, prefetch_at};

use crate::layout::{LEVEL16, LEVEL24, RUNS, flag_of};
use crate::portable::View;

/// Keys after which those that lead on are finished. After every eight vectors it cost 8 % where there were
/// none.
const PIECE: usize = 1024;
/// How many keys ahead they are fetched.
const AHEAD: usize = 512;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many that
/// were. `image` must be that of a [`RankTable`](crate::RankTable) whose chunk ids are of type `I` and whose
/// runs are of type `W`, and `view` must be of it.
pub(crate) fn batch<I: Element, W: Element>(
    level: VectorLevel,
    view: &View<'_, I, W>,
    image: &Image,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) -> usize {
    level.run(Gathers { view, image, addresses, next_hops }).unwrap_or(0)
}

/// Looks up keys block by block, with the instruction that counts bits where the CPU has it.
pub(crate) fn blocks<I: Element, W: Element>(
    view: &View<'_, I, W>,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("popcnt") {
        #[allow(unsafe_code)]
        // SAFETY: the feature was just detected.
        unsafe {
            blocks_popcnt(view, addresses, next_hops);
        }
        return;
    }
    view.blocks(addresses, next_hops);
}

/// Looks up keys block by block, compiled for that instruction.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn blocks_popcnt<I: Element, W: Element>(view: &View<'_, I, W>, addresses: &[V4], next_hops: &mut [NextHop]) {
    view.blocks(addresses, next_hops);
}

/// Keys of a table.
struct Gathers<'a, I, W> {
    view: &'a View<'a, I, W>,
    image: &'a Image,
    addresses: &'a [V4],
    next_hops: &'a mut [NextHop],
}

impl<I: Element, W: Element> InVectors for Gathers<'_, I, W> {
    type Output = usize;

    const GAINS: Gains = Gains::Counting;

    /// Eight vectors at a time, and what is left four at a time and one at a time.
    #[inline(always)]
    fn run<V: Vector>(self, cpu: Cpu<V>) -> usize {
        let whole = self.addresses.len() - self.addresses.len() % V::LANES;
        let flag = V::splat(cpu, flag_of::<W>());
        let pieces = self.addresses[..whole].chunks(PIECE).zip(self.next_hops[..whole].chunks_mut(PIECE));
        for (keys, results) in pieces {
            let mut piece = Batch::new(keys, &mut *results);
            let any = rounds::<V, I, W, MOST_VECTORS>(cpu, self.image, &mut piece)
                | rounds::<V, I, W, 4>(cpu, self.image, &mut piece)
                | rounds::<V, I, W, 1>(cpu, self.image, &mut piece);
            if any.has_any(flag).any() {
                finish_long(cpu, self.view, keys, results);
            }
        }
        whole
    }
}

/// Looks up keys, so many vectors at a time, while there are enough. Their results are the values of their
/// runs, which may lead on to level 32; all of these or-ed come back.
#[inline(always)]
fn rounds<V: Vector, I: Element, W: Element, const VECTORS: usize>(
    cpu: Cpu<V>,
    image: &Image,
    piece: &mut Batch<'_, V4, NextHop>,
) -> V {
    let (level16, level24, runs) = (image.padded(LEVEL16), image.padded(LEVEL24), image.padded(RUNS));
    let (word_bits, element_bits) = (V::splat(cpu, 7), V::splat(cpu, 31));
    let mut any = V::splat(cpu, 0);
    for (keys, results) in piece.rounds(V::LANES * VECTORS) {
        let mut key = [V::splat(cpu, 0); VECTORS];
        let mut at = [V::splat(cpu, 0); VECTORS];
        for v in 0..VECTORS {
            let keys = &keys[v * V::LANES..];
            prefetch_at(keys.as_ptr().wrapping_add(AHEAD).cast());
            key[v] = V::load(cpu, keys);
            #[allow(unsafe_code)]
            // SAFETY: an index of 16 bits is inside level16.
            unsafe {
                at[v] = V::gather::<I>(cpu, key[v] >> 16, level16);
            }
        }
        for v in 0..VECTORS {
            let word = at[v] << 3 | key[v] >> 13 & word_bits;
            #[allow(unsafe_code)]
            // SAFETY: an element of level16 is a chunk of level 24, which every image and patch is checked
            // for; there are 2^16 + 1 at most, so an index of a word fits. A word is two integers of 32 bits,
            // bits and base.
            let (bits, base) = unsafe {
                (
                    V::gather::<u32>(cpu, word << 1, level24),
                    V::gather::<u32>(cpu, word << 1, &level24[size_of::<u32>()..]),
                )
            };
            let shift = element_bits - (key[v] >> 8 & element_bits);
            at[v] = base + bits.shifted_left(shift).ones(cpu);
        }
        for (&at, results) in at.iter().zip(results.chunks_exact_mut(V::LANES)) {
            #[allow(unsafe_code)]
            // SAFETY: every base is checked to be at least 33 elements before the end of the runs, and there
            // are at most 32 bits to count; there are at most 2^30 runs, so an index fits.
            let value = unsafe { V::gather::<W>(cpu, at, runs) };
            any = any | value;
            value.store(results);
        }
    }
    any
}

/// Finishes the lookups of whole vectors of keys, [`PIECE`] at most, of which some lead on to level 32: those
/// hold the values of their runs. First a list of them, then one by one: which they are is no branch.
#[inline(always)]
fn finish_long<V: Vector, I: Element, W: Element>(
    cpu: Cpu<V>,
    view: &View<'_, I, W>,
    addresses: &[V4],
    results: &mut [NextHop],
) {
    let flag = V::splat(cpu, flag_of::<W>());
    // A vector is put at a time, wherever its last key goes.
    let mut long = [0u32; PIECE + MOST_LANES];
    let mut count = 0;
    for (first, values) in (0..).step_by(V::LANES).zip(results.chunks_exact(V::LANES)) {
        let open = V::load(cpu, values).has_any(flag);
        count += V::put_places(cpu, open, first, &mut long[count..]);
    }
    for &key in &long[..count] {
        let key = key as usize;
        results[key] = view.lookup_long(results[key].0, addresses[key]);
    }
}
