//! Batches by vector gathers: the only unsafe code of the IPv4 engines.
//!
//! A gather of c18 and a gather of n24 for so many vectors at a time that the second finds what the first
//! asked for; keys to come are prefetched. Keys that lead on are collected and finished one by one.

use std::marker::PhantomData;

use wirespeed_fib::vector::{Batch, Cpu, InVectors, MOST_VECTORS, Mask, Places, Vector};
use wirespeed_fib::{NextHop, V4, VectorLevel};
use wirespeed_image::{Element, Image, prefetch_at};

use super::layout::{C18, N24, Split, mark};
use super::past_24::lookup_long;

/// How far ahead keys are prefetched, in keys: past the reads that are under way.
const AHEAD: usize = 512;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many
/// that were. `image` has to be that of a table of split `S`, whose slots are of type `I`, whose chunk
/// elements are of type `W` and whose numbers of chunks start from `base`.
pub(super) fn batch<S: Split, I: Element, W: Element>(
    level: VectorLevel,
    image: &Image,
    base: u32,
    addresses: &[V4],
    next_hops: &mut [NextHop],
) -> usize {
    let types = PhantomData::<(S, I, W)>;
    level.run(Gathers { image, base, batch: Batch::new(addresses, next_hops), types }).unwrap_or(0)
}

/// Keys of a table.
struct Gathers<'a, S, I, W> {
    image: &'a Image,
    base: u32,
    batch: Batch<'a, V4, NextHop>,
    types: PhantomData<(S, I, W)>,
}

impl<S: Split, I: Element, W: Element> InVectors for Gathers<'_, S, I, W> {
    type Output = usize;

    #[inline(always)]
    fn run<V: Vector>(mut self, cpu: Cpu<V>) -> usize {
        let all = self.batch.len();
        self.rounds::<V, MOST_VECTORS>(cpu);
        self.rounds::<V, 4>(cpu);
        self.rounds::<V, 1>(cpu);
        all - self.batch.len()
    }
}

impl<S: Split, I: Element, W: Element> Gathers<'_, S, I, W> {
    /// Looks up keys, so many vectors at a time, while there are enough.
    #[inline(always)]
    fn rounds<V: Vector, const VECTORS: usize>(&mut self, cpu: Cpu<V>) {
        if self.batch.len() < V::LANES * VECTORS {
            return;
        }
        let (slots, n24) = (self.image.padded(C18), self.image.padded(N24));
        let element_mask = V::splat(cpu, u32::try_from(S::SHORT - 1).expect("below 2^24"));
        let bases = V::splat(cpu, self.base);
        let marks = V::splat(cpu, mark(size_of::<W>()));
        let mut places = Places::new();
        for (keys, found) in self.batch.rounds(V::LANES * VECTORS) {
            let mut key = [V::splat(cpu, 0); VECTORS];
            let mut slot = [V::splat(cpu, 0); VECTORS];
            for v in 0..VECTORS {
                let keys = &keys[v * V::LANES..];
                prefetch_at(keys.as_ptr().wrapping_add(AHEAD).cast());
                key[v] = V::load(cpu, keys);
                #[allow(unsafe_code)]
                // SAFETY: the first bits of a key are an element of the slots, which are padded.
                unsafe {
                    slot[v] = V::gather::<I>(cpu, key[v] >> (32 - S::SLOT_BITS), slots);
                }
            }
            let mut any = !V::all(cpu);
            for v in 0..VECTORS {
                let element = key[v] >> 8 & element_mask;
                let index = (slot[v] - bases) << S::SHORT.trailing_zeros() | element;
                #[allow(unsafe_code)]
                // SAFETY: an element of the slots from `base` on, and any where they are not direct, is a
                // chunk of n24, which every image and patch is checked for, and its elements are fewer than
                // 2^29; a load from the last one ends in the padding.
                let next_hop = unsafe {
                    match S::DIRECT {
                        true => V::gather_where::<W>(cpu, slot[v].at_least(bases), index, n24, slot[v]),
                        false => V::gather::<W>(cpu, index, n24),
                    }
                };
                next_hop.store(&mut found[v * V::LANES..]);
                any = any | next_hop.equals(marks);
            }
            if any.any() {
                for at in places.of(cpu, marks, found) {
                    found[at] = lookup_long::<S, W>(self.image, keys[at]);
                }
            }
        }
    }
}
