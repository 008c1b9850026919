//! SAIL_L batches in vectors for IPv4: the only unsafe code of this crate.
//!
//! Eight vectors at a time, sixteen keys each with AVX-512 and eight with AVX2 (of 1, 2, 4 and 8 vectors,
//! each was faster than the one before). Both levels that real tables use are gathers, and a key that is done
//! after the first is masked out of the second. The few keys whose element of level 24 leads on are finished
//! one by one. Keys to come are prefetched.
//!
//! On a Zen 4 core, on the real table of 2026 with one-byte entries, random traffic went from 245 to 655 M/s
//! and prefix traffic from 210 to 560 M/s with AVX-512.

use std::marker::PhantomData;

use wirespeed_fib::vector::{Batch, Cpu, InVectors, MOST_VECTORS, Mask, Places, Vector};
use wirespeed_fib::{Address, Family, NextHop, VectorLevel};
use wirespeed_image::{Element, Table, prefetch_at};

use super::layout::{BCN16, LEAF, SailLTable, next_hops};
use super::portable::lookup;

/// How far ahead keys are prefetched, in keys: past the reads that are under way.
const AHEAD: usize = 512;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many
/// that were. Elements of level 24 have to be of type `W`.
///
/// Panics for IPv6.
pub(super) fn batch<A: Address, W: Element>(
    level: VectorLevel,
    table: &SailLTable<A>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    assert_eq!(A::FAMILY, Family::V4, "vectors are of 32-bit keys");
    let batch = Batch::new(addresses, next_hops);
    level.run(Gathers { table, batch, elements: PhantomData::<W> }).unwrap_or(0)
}

/// Keys of a table.
struct Gathers<'a, A: Address, W> {
    table: &'a SailLTable<A>,
    batch: Batch<'a, A, NextHop>,
    elements: PhantomData<W>,
}

impl<A: Address, W: Element> InVectors for Gathers<'_, A, W> {
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

impl<A: Address, W: Element> Gathers<'_, A, W> {
    /// Looks up keys, so many vectors at a time, while there are enough.
    #[inline(always)]
    fn rounds<V: Vector, const VECTORS: usize>(&mut self, cpu: Cpu<V>) {
        if self.batch.len() < V::LANES * VECTORS {
            return;
        }
        let (bcn16, bn24) = (self.table.image().padded(BCN16), self.table.image().padded(next_hops(1)));
        let low_octet = V::splat(cpu, 0xff);
        let leaf = V::splat(cpu, LEAF);
        let (zero, one) = (V::splat(cpu, 0), V::splat(cpu, 1));
        // One less than the element that says so.
        let leads_on = V::splat(cpu, u32::MAX);
        let mut places = Places::new();
        for (keys, found) in self.batch.rounds(V::LANES * VECTORS) {
            let mut key = [zero; VECTORS];
            let mut first = [zero; VECTORS];
            for v in 0..VECTORS {
                let keys = &keys[v * V::LANES..];
                prefetch_at(keys.as_ptr().wrapping_add(AHEAD).cast());
                key[v] = V::load(cpu, keys);
                #[allow(unsafe_code)]
                // SAFETY: an index of 16 bits is inside bcn16.
                unsafe {
                    first[v] = V::gather::<u32>(cpu, key[v] >> 16, bcn16);
                }
            }
            let mut any = !V::all(cpu);
            for v in 0..VECTORS {
                let open = !first[v].has_any(leaf);
                let index = first[v] << 8 | key[v] >> 8 & low_octet;
                #[allow(unsafe_code)]
                // SAFETY: an element of bcn16 without LEAF is a chunk of level 24, which every image and
                // patch is checked for; there are fewer than 2^22, so an index fits; a load from the last
                // element ends in the padding.
                let element = unsafe { V::gather_where::<W>(cpu, open, index, bn24, zero) };
                // Those that are done have LEAF, so that it is taken away.
                let next_hop = V::select(open, element - one, first[v] - leaf);
                next_hop.store(&mut found[v * V::LANES..]);
                any = any | next_hop.equals(leads_on);
            }
            if any.any() {
                for at in places.of(cpu, leads_on, found) {
                    found[at] = lookup::<A, W>(self.table, keys[at]);
                }
            }
        }
    }
}
