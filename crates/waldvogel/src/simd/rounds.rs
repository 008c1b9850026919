//! Rounds of four vectors: of keys that come, and of those on the piles.

use wirespeed_fib::vector::{Cpu, Gains, InVectors, Mask, Vector};
use wirespeed_fib::{Address, NextHop};

use super::keys::{Keys, MOST_ROUND, VECTORS, highs};
use super::piles::Piles;
use super::slots::{Sections, find};
use crate::layout::{CHUNK_BITS, MOST_TRIES, WaldvogelTable};
use crate::value::{MOST, OPEN};

/// Keys that a scatter's index reaches, and more than are worth while.
const PART: usize = 1 << 20;

/// Keys of a table.
pub(super) struct Rounds<'a, A> {
    pub(super) table: &'a WaldvogelTable<A>,
    pub(super) addresses: &'a [A],
    pub(super) results: &'a mut [NextHop],
}

impl<A: Address> InVectors for Rounds<'_, A> {
    type Output = usize;

    const GAINS: Gains = Gains::Products;

    #[inline(always)]
    fn run<V: Vector>(self, cpu: Cpu<V>) -> usize {
        let whole = self.addresses.len() - self.addresses.len() % V::LANES;
        let sections = Sections::of(cpu, self.table);
        let parts = self.addresses[..whole].chunks(PART).zip(self.results[..whole].chunks_mut(PART));
        for (addresses, results) in parts {
            part(self.table, &sections, addresses, results);
        }
        whole
    }
}

/// Looks up whole vectors of keys, [`PART`] at most.
#[inline(always)]
fn part<V: Vector, A: Address>(
    table: &WaldvogelTable<A>,
    sections: &Sections<'_, V>,
    addresses: &[A],
    results: &mut [NextHop],
) {
    let round = V::LANES * VECTORS;
    let mut piles = Piles::new();
    // Tables that we made end before.
    let mut tries_left = addresses.len() * (MOST_TRIES as usize + 1);
    let mut done = 0;
    while addresses.len() - done >= round {
        first::<V, A, VECTORS>(sections, &mut piles, addresses, done, results);
        done += round;
        while tries_left > 0 {
            if piles.narrow.count >= round {
                again::<V, VECTORS>(sections, &mut piles, results);
            } else if piles.wide.count >= MOST_ROUND {
                piles.again_wide(table, addresses, results);
            } else {
                break;
            }
            tries_left = tries_left.saturating_sub(round);
        }
        if tries_left == 0 {
            piles.give_up(results);
        }
    }
    while done < addresses.len() {
        first::<V, A, 1>(sections, &mut piles, addresses, done, results);
        done += V::LANES;
    }
    while tries_left > 0 {
        let count = piles.narrow.count;
        if count > V::LANES {
            again::<V, VECTORS>(sections, &mut piles, results);
        } else if piles.wide.count > 0 {
            piles.again_wide(table, addresses, results);
        } else if count > 0 {
            again::<V, 1>(sections, &mut piles, results);
        } else {
            break;
        }
        tries_left = tries_left.saturating_sub(count.clamp(1, round));
    }
    piles.give_up(results);
}

/// Reads the arrays and makes the first try for `VECTORS` vectors of keys from `from` on.
#[inline(always)]
fn first<V: Vector, A: Address, const VECTORS: usize>(
    sections: &Sections<'_, V>,
    piles: &mut Piles,
    addresses: &[A],
    from: usize,
    results: &mut [NextHop],
) {
    let cpu = sections.cpu;
    let lanes = V::lanes(cpu);
    let (open, tries) = (V::splat(cpu, OPEN), V::splat(cpu, OPEN | MOST));
    let (octets, numbers) = (V::splat(cpu, (1 << CHUNK_BITS) - 1), V::splat(cpu, MOST - 1));
    let mut keys = [Keys::none(cpu); VECTORS];
    let mut any = V::first(cpu, 0);
    for (at, keys) in (from..).step_by(V::LANES).zip(&mut keys) {
        keys.high = highs(cpu, &addresses[at..at + V::LANES]);
        let bits = V::upper(cpu, keys.high);
        #[allow(unsafe_code)]
        // SAFETY: the root has an element for any 16 bits.
        let mut value = unsafe { V::gather::<u32>(cpu, bits >> 16, sections.root) };
        let chunked = value.at_least(open) & !value.at_least(tries);
        if chunked.any() {
            let octet = bits >> (16 - u32::from(CHUNK_BITS)) & octets;
            let element = (value & numbers) << CHUNK_BITS.into() | octet;
            #[allow(unsafe_code)]
            // SAFETY: the numbers of chunks in elements are those of some, which every image and patch is
            // checked for.
            unsafe {
                value = V::gather_where::<u32>(cpu, chunked, element, sections.chunks, value);
            }
        }
        keys.value = value;
        keys.place = lanes + V::splat(cpu, u32::try_from(at).unwrap_or(0));
        value.store(&mut results[at..at + V::LANES]);
        keys.open = value.at_least(open);
        any = any | keys.open;
    }
    if !any.any() {
        return;
    }
    for keys in &mut keys {
        piles.wide.set_aside(cpu, keys);
    }
    let here = keys.map(|keys| keys.open);
    #[allow(unsafe_code)]
    // SAFETY: the values come from a table, and those to try a length that no word holds are set aside.
    unsafe {
        find(sections, &mut keys);
    }
    let to = results[from..from + V::LANES * VECTORS].chunks_exact_mut(V::LANES);
    for (to, (keys, here)) in to.zip(keys.iter_mut().zip(here)) {
        // What is not a next hop yet is overwritten later.
        keys.value.store_where(cpu, here, to);
        piles.leave(cpu, keys);
    }
}

/// One more try of so many vectors of keys of the pile, or of fewer where there are no more.
#[inline(always)]
fn again<V: Vector, const VECTORS: usize>(
    sections: &Sections<'_, V>,
    piles: &mut Piles,
    results: &mut [NextHop],
) {
    let cpu = sections.cpu;
    let (open, numbers) = (V::splat(cpu, OPEN), V::splat(cpu, MOST - 1));
    let mut keys = piles.narrow.take::<V, VECTORS>(cpu);
    let mut here = [V::first(cpu, 0); VECTORS];
    for (keys, here) in keys.iter_mut().zip(&mut here) {
        *here = keys.open;
        let missed = keys.open & !keys.value.at_least(open);
        let record = keys.value & numbers;
        #[allow(unsafe_code)]
        // SAFETY: the values come from a table, and the records in them are those of some, which every image
        // and patch is checked for.
        unsafe {
            keys.value = V::gather_where::<u32>(cpu, missed, record, sections.misses, keys.value);
        }
        keys.open = keys.open & keys.value.at_least(open);
        piles.wide.set_aside(cpu, keys);
    }
    #[allow(unsafe_code)]
    // SAFETY: the values come from a table, and those to try a length that no word holds are set aside.
    unsafe {
        find(sections, &mut keys);
    }
    for (keys, &here) in keys.iter_mut().zip(&here) {
        #[allow(unsafe_code)]
        // SAFETY: the places on the pile are those of results. Those that are not done too: they are written
        // again.
        unsafe {
            keys.value.scatter_where(here, keys.place, results);
        }
        piles.leave(cpu, keys);
    }
}
