//! Rounds of four vectors: of keys that come, and of those on the piles.

#![allow(unsafe_code)]

use std::arch::x86_64::{_mm512_mask_i32scatter_epi32, _mm512_mask_storeu_epi32, _mm512_setr_epi32};

use wirespeed_fib::vector::{Avx512, Avx512Mask, Cpu, Mask, Vector};
use wirespeed_fib::{Address, NextHop};

use super::keys::{Keys, LANES, ROUND, VECTORS, highs, upper};
use super::piles::Piles;
use super::slots::{Sections, find};
use crate::layout::{CHUNK_BITS, MOST_TRIES, WaldvogelTable};
use crate::value::{MOST, OPEN};

/// Keys that a scatter's index reaches, and more than are worth while.
const PART: usize = 1 << 20;

/// Looks up as many of the keys, from the front, as are whole vectors; how many that were.
///
/// # Safety
/// The CPU must have AVX-512F and DQ.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn batch<A: Address>(
    table: &WaldvogelTable<A>,
    addresses: &[A],
    results: &mut [NextHop],
) -> usize {
    let whole = addresses.len() - addresses.len() % LANES;
    // SAFETY: the CPU has AVX-512F, as our caller promises.
    let sections = Sections::of(unsafe { Cpu::has_it() }, table);
    let parts = addresses[..whole].chunks(PART).zip(results[..whole].chunks_mut(PART));
    for (addresses, results) in parts {
        // SAFETY: a part is whole vectors.
        unsafe { part(table, &sections, addresses, results) };
    }
    whole
}

/// # Safety
/// There must be as many results as keys, whole vectors of them, [`PART`] at most.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn part<A: Address>(
    table: &WaldvogelTable<A>,
    sections: &Sections<'_>,
    addresses: &[A],
    results: &mut [NextHop],
) {
    let mut piles = Piles::new();
    // Tables that we made end before.
    let mut tries_left = addresses.len() * (MOST_TRIES as usize + 1);
    let mut done = 0;
    // SAFETY: as our caller promises; see each.
    unsafe {
        while addresses.len() - done >= ROUND {
            first::<A, VECTORS>(sections, &mut piles, addresses, done, results);
            done += ROUND;
            while tries_left > 0 {
                if piles.narrow.count >= ROUND {
                    again::<VECTORS>(sections, &mut piles, results);
                } else if piles.wide.count >= ROUND {
                    piles.again_wide(table, addresses, results);
                } else {
                    break;
                }
                tries_left = tries_left.saturating_sub(ROUND);
            }
            if tries_left == 0 {
                piles.give_up(results);
            }
        }
        while done < addresses.len() {
            first::<A, 1>(sections, &mut piles, addresses, done, results);
            done += LANES;
        }
        while tries_left > 0 {
            let count = piles.narrow.count;
            if count > LANES {
                again::<VECTORS>(sections, &mut piles, results);
            } else if piles.wide.count > 0 {
                piles.again_wide(table, addresses, results);
            } else if count > 0 {
                again::<1>(sections, &mut piles, results);
            } else {
                break;
            }
            tries_left = tries_left.saturating_sub(count.clamp(1, ROUND));
        }
    }
    piles.give_up(results);
}

/// Reads the arrays and makes the first try for `VECTORS` vectors of keys from `from` on.
///
/// # Safety
/// There must be as many results as keys, at most [`PART`], and `VECTORS` vectors of keys from `from` on.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn first<A: Address, const VECTORS: usize>(
    sections: &Sections<'_>,
    piles: &mut Piles,
    addresses: &[A],
    from: usize,
    results: &mut [NextHop],
) {
    let cpu = sections.cpu;
    let lanes = Avx512::of(cpu, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    let (open, tries) = (Avx512::splat(cpu, OPEN), Avx512::splat(cpu, OPEN | MOST));
    let (octets, numbers) = (Avx512::splat(cpu, (1 << CHUNK_BITS) - 1), Avx512::splat(cpu, MOST - 1));
    let mut keys = [Keys::none(cpu); VECTORS];
    let mut any = 0;
    for (at, keys) in (from..).step_by(LANES).zip(&mut keys) {
        keys.high = highs(cpu, &addresses[at..at + LANES]);
        let bits = upper(cpu, keys.high);
        // SAFETY: the root has an element for any 16 bits.
        let mut value = unsafe { Avx512::gather::<u32>(cpu, bits >> 16, sections.root) };
        let chunked = value.at_least(open) & !value.at_least(tries);
        if chunked.any() {
            let octet = bits >> (16 - u32::from(CHUNK_BITS)) & octets;
            let element = (value & numbers) << CHUNK_BITS.into() | octet;
            // SAFETY: the numbers of chunks in elements are those of some, which every image and patch is
            // checked for.
            value = unsafe { Avx512::gather_where::<u32>(cpu, chunked, element, sections.chunks, value) };
        }
        keys.value = value;
        keys.place = lanes + Avx512::splat(cpu, u32::try_from(at).unwrap_or(0));
        value.store(&mut results[at..at + LANES]);
        keys.open = value.at_least(open).register();
        any |= keys.open;
    }
    if any == 0 {
        return;
    }
    // SAFETY: the values come from a table, the places are those of results, and there are as many results as
    // keys.
    unsafe {
        for keys in &mut keys {
            piles.wide.set_aside(cpu, keys);
        }
        let here = keys.map(|keys| keys.open);
        find(sections, &mut keys);
        let to = results[from..from + LANES * VECTORS].as_mut_ptr();
        for (at, (keys, here)) in keys.iter_mut().zip(here).enumerate() {
            // What is not a next hop yet is overwritten later.
            _mm512_mask_storeu_epi32(to.add(at * LANES).cast(), here, keys.value.register());
            piles.leave(cpu, keys);
        }
    }
}

/// One more try of so many vectors of keys of the pile, or of fewer where there are no more.
///
/// # Safety
/// The places on the pile must be those of results.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn again<const VECTORS: usize>(sections: &Sections<'_>, piles: &mut Piles, results: &mut [NextHop]) {
    let cpu = sections.cpu;
    let (open, numbers) = (Avx512::splat(cpu, OPEN), Avx512::splat(cpu, MOST - 1));
    let mut keys = piles.narrow.take::<VECTORS>(cpu);
    let mut here = [0; VECTORS];
    // SAFETY: the values come from a table, and the records in them are those of some, which every image and
    // patch is checked for; the places are those of results.
    unsafe {
        for (keys, here) in keys.iter_mut().zip(&mut here) {
            *here = keys.open;
            let missed = Avx512Mask::of(keys.open) & !keys.value.at_least(open);
            let record = keys.value & numbers;
            keys.value = Avx512::gather_where::<u32>(cpu, missed, record, sections.misses, keys.value);
            keys.open &= keys.value.at_least(open).register();
            piles.wide.set_aside(cpu, keys);
        }
        find(sections, &mut keys);
        for (keys, &here) in keys.iter_mut().zip(&here) {
            // Those that are not done too: they are written again.
            let (place, value) = (keys.place.register(), keys.value.register());
            _mm512_mask_i32scatter_epi32::<4>(results.as_mut_ptr().cast(), here, place, value);
            piles.leave(cpu, keys);
        }
    }
}
