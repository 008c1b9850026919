//! A try: the slot of each key by the perfect hash, and what is there.

#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_mask_i32gather_epi64,
    _mm512_mask_xor_epi32, _mm512_mullo_epi32, _mm512_mullo_epi64, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_sub_epi64, _mm512_ternarylogic_epi64,
};

use wirespeed_fib::Address;
use wirespeed_fib::vector::{Avx512, Avx512Mask, Cpu, Vector};
use wirespeed_image::Table;

use super::keys::{Keys, lower, upper, widen};
use crate::hash::{FOLD, HASH_BITS, HASH_MASK};
use crate::layout::{CHUNKS, MISSES, PILOTS, ROOT, SLOTS, WaldvogelTable};
use crate::value::{NUMBER_BITS, OPEN};

/// Where to read. All but the slots are padded.
pub(super) struct Sections<'a> {
    pub(super) cpu: Cpu<Avx512>,
    pub(super) root: &'a [u8],
    pub(super) chunks: &'a [u8],
    pub(super) misses: &'a [u8],
    slots: &'a [u64],
    pilots: &'a [u8],
    /// The multipliers of the hash.
    odd: [__m512i; 2],
    /// How much to shift 32 bits for the home of a hash, and its rest for the group, to the left and then to
    /// the right.
    home: u32,
    group: [u32; 2],
    /// The bits of the number of a slot.
    mask: Avx512,
}

impl<'a> Sections<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn of<A: Address>(cpu: Cpu<Avx512>, table: &'a WaldvogelTable<A>) -> Self {
        let image = table.image();
        let bits = table.sizes.slot_bits;
        let [one, other, ..] = table.seed.0.map(u64::cast_signed);
        Self {
            cpu,
            root: image.padded(ROOT),
            chunks: image.padded(CHUNKS),
            misses: image.padded(MISSES),
            slots: image.section(SLOTS),
            pilots: image.padded(PILOTS),
            odd: [_mm512_set1_epi64(one), _mm512_set1_epi64(other)],
            home: 32 - bits,
            group: [bits + 31 - HASH_BITS, 34 - bits],
            mask: Avx512::splat(cpu, (1 << bits) - 1),
        }
    }
}

/// Looks for the open keys where they belong, with the length that their value says. Those that are found
/// have the value that is there, and the others lose [`OPEN`], the mark of a try in vain. Open are then those
/// that are not done.
///
/// # Safety
/// The values of open keys must come from the table and say to try a length that a word holds.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn find<const VECTORS: usize>(sections: &Sections<'_>, keys: &mut [Keys; VECTORS]) {
    let cpu = sections.cpu;
    let (zero, one, open) = (Avx512::splat(cpu, 0), Avx512::splat(cpu, 1), Avx512::splat(cpu, OPEN));
    let mut rest = [zero; VECTORS];
    let mut slot = [zero; VECTORS];
    for (v, keys) in keys.iter().enumerate() {
        let hash = hashes(sections, keys);
        let from_bit = [
            _mm512_srli_epi64::<{ 63 - HASH_BITS }>(hash[0]),
            _mm512_srli_epi64::<{ 63 - HASH_BITS }>(hash[1]),
        ];
        rest[v] = lower(cpu, from_bit) | one;
        let home = upper(cpu, hash) >> sections.home;
        let [left, right] = sections.group;
        let group = rest[v] << left >> right;
        // SAFETY: there is a pilot for each group.
        let pilot = unsafe {
            Avx512::gather_where::<u8>(cpu, Avx512Mask::of(keys.open), group, sections.pilots, zero)
        };
        let way = Avx512::of(cpu, _mm512_mullo_epi32(pilot.register(), rest[v].register()));
        slot[v] = (home + way) & sections.mask;
    }
    for (v, keys) in keys.iter_mut().enumerate() {
        let [here, more_here] = keys.open.to_le_bytes();
        let (none, slots, from) =
            (_mm512_setzero_si512(), slot[v].register(), sections.slots.as_ptr().cast());
        let (first, others) = (_mm512_castsi512_si256(slots), _mm512_extracti64x4_epi64::<1>(slots));
        // SAFETY: a slot is one of 2^bits.
        let words = unsafe {
            [
                _mm512_mask_i32gather_epi64::<8>(none, here, first, from),
                _mm512_mask_i32gather_epi64::<8>(none, more_here, others, from),
            ]
        };
        let value = lower(cpu, words);
        // A free slot is zero, and a rest is odd.
        let found = keys.open & upper(cpu, words).equals(rest[v]).register();
        let missed = keys.open & !found;
        let was = keys.value.register();
        let marked = Avx512::of(cpu, _mm512_mask_xor_epi32(was, missed, was, open.register()));
        keys.value = Avx512::select(Avx512Mask::of(found), value, marked);
        keys.open = missed | found & value.at_least(open).register();
    }
}

/// The hashes of keys with the lengths that their values say.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn hashes(sections: &Sections<'_>, keys: &Keys) -> [__m512i; 2] {
    let lens = widen(keys.value << 1 >> (NUMBER_BITS + 1));
    let [one, other] = sections.odd;
    let mut hashes = keys.high;
    for (hash, len) in hashes.iter_mut().zip(lens) {
        let end = _mm512_srlv_epi64(_mm512_set1_epi64(i64::MIN), len);
        let below = _mm512_sub_epi64(end, _mm512_set1_epi64(1));
        // The bits above the end, and the end.
        let word = _mm512_ternarylogic_epi64::<0b1011_1010>(*hash, below, end);
        let product = _mm512_mullo_epi64(word, one);
        let mask = _mm512_set1_epi64(HASH_MASK.cast_signed());
        // Product xor (folded and mask).
        let folded =
            _mm512_ternarylogic_epi64::<0b0111_1000>(product, _mm512_srli_epi64::<FOLD>(product), mask);
        *hash = _mm512_mullo_epi64(folded, other);
    }
    hashes
}
