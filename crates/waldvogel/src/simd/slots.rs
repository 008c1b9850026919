//! A try: the slot of each key by the perfect hash, and what is there.

use wirespeed_fib::Address;
use wirespeed_fib::vector::{Cpu, Long, Vector};
use wirespeed_image::Table;

use super::keys::Keys;
use crate::hash::{FOLD, HASH_BITS, HASH_MASK};
use crate::layout::{CHUNKS, MISSES, PILOTS, ROOT, SLOTS, WaldvogelTable};
use crate::value::{NUMBER_BITS, OPEN};

/// Where to read. All but the slots are padded.
pub(super) struct Sections<'a, V: Vector> {
    pub(super) cpu: Cpu<V>,
    pub(super) root: &'a [u8],
    pub(super) chunks: &'a [u8],
    pub(super) misses: &'a [u8],
    slots: &'a [u64],
    pilots: &'a [u8],
    /// The multipliers of the hash.
    odd: [V::Long; 2],
    /// How much to shift 32 bits for the home of a hash, and its rest for the group, to the left and then to
    /// the right.
    home: u32,
    group: [u32; 2],
    /// The bits of the number of a slot.
    mask: V,
}

impl<'a, V: Vector> Sections<'a, V> {
    #[inline(always)]
    pub(super) fn of<A: Address>(cpu: Cpu<V>, table: &'a WaldvogelTable<A>) -> Self {
        let image = table.image();
        let bits = table.sizes.slot_bits;
        let [one, other, ..] = table.seed.0;
        Self {
            cpu,
            root: image.padded(ROOT),
            chunks: image.padded(CHUNKS),
            misses: image.padded(MISSES),
            slots: image.section(SLOTS),
            pilots: image.padded(PILOTS),
            odd: [V::splat_long(cpu, one), V::splat_long(cpu, other)],
            home: 32 - bits,
            group: [bits + 31 - HASH_BITS, 34 - bits],
            mask: V::splat(cpu, (1 << bits) - 1),
        }
    }
}

/// Looks for the open keys where they belong, with the length that their value says. Those that are found
/// have the value that is there, and the others lose [`OPEN`], the mark of a try in vain. Open are then those
/// that are not done.
///
/// # Safety
/// The values of open keys must come from the table and say to try a length that a word holds.
#[allow(unsafe_code)]
#[inline(always)]
pub(super) unsafe fn find<V: Vector, const VECTORS: usize>(
    sections: &Sections<'_, V>,
    keys: &mut [Keys<V>; VECTORS],
) {
    let cpu = sections.cpu;
    let (zero, one, open) = (V::splat(cpu, 0), V::splat(cpu, 1), V::splat(cpu, OPEN));
    let mut rest = [zero; VECTORS];
    let mut slot = [zero; VECTORS];
    for (v, keys) in keys.iter().enumerate() {
        let hash = hashes(sections, keys);
        rest[v] = V::lower(cpu, [hash[0] >> (63 - HASH_BITS), hash[1] >> (63 - HASH_BITS)]) | one;
        let home = V::upper(cpu, hash) >> sections.home;
        let [left, right] = sections.group;
        let group = rest[v] << left >> right;
        // SAFETY: there is a pilot for each group.
        let pilot = unsafe { V::gather_where::<u8>(cpu, keys.open, group, sections.pilots, zero) };
        slot[v] = (home + pilot * rest[v]) & sections.mask;
    }
    for (v, keys) in keys.iter_mut().enumerate() {
        // SAFETY: a slot is one of 2^bits.
        let words = unsafe { V::gather_longs_where(cpu, keys.open, slot[v], sections.slots) };
        let value = V::lower(cpu, words);
        // A free slot is zero, and a rest is odd.
        let found = keys.open & V::upper(cpu, words).equals(rest[v]);
        let missed = keys.open & !found;
        keys.value = V::select(found, value, keys.value.xor_where(missed, open));
        keys.open = missed | found & value.at_least(open);
    }
}

/// The hashes of keys with the lengths that their values say.
#[inline(always)]
fn hashes<V: Vector>(sections: &Sections<'_, V>, keys: &Keys<V>) -> [V::Long; 2] {
    let cpu = sections.cpu;
    let lens = (keys.value << 1 >> (NUMBER_BITS + 1)).widened();
    let [one, other] = sections.odd;
    let mut hashes = keys.high;
    for (hash, len) in hashes.iter_mut().zip(lens) {
        let end = V::splat_long(cpu, 1 << 63).shifted_right(len);
        // The bits above the end, and the end.
        let word = hash.without(end - V::splat_long(cpu, 1)) | end;
        let product = word * one;
        let folded = product ^ product >> FOLD & V::splat_long(cpu, HASH_MASK);
        *hash = folded * other;
    }
    hashes
}
