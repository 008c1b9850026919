//! A vector of keys on their way.

use wirespeed_fib::vector::{Cpu, MOST_LANES, Vector};
use wirespeed_fib::{Address, Family};
use wirespeed_image::prefetch_once_at;

/// Vectors of a round.
pub(super) const VECTORS: usize = 4;
/// Keys of a round of the widest vectors.
pub(super) const MOST_ROUND: usize = MOST_LANES * VECTORS;
/// How far ahead keys are prefetched, in bytes: past the reads that are under way.
const AHEAD: usize = 2_048;

/// Keys on their way.
#[derive(Clone, Copy)]
pub(super) struct Keys<V: Vector> {
    /// The first 64 bits.
    pub(super) high: [V::Long; 2],
    /// What to do next, as on the pile.
    pub(super) value: V,
    /// The place in the part.
    pub(super) place: V,
    /// Keys that are to be tried.
    pub(super) open: V::Mask,
}

impl<V: Vector> Keys<V> {
    #[inline(always)]
    pub(super) fn none(cpu: Cpu<V>) -> Self {
        let zero = V::splat(cpu, 0);
        Self { high: [V::splat_long(cpu, 0); 2], value: zero, place: zero, open: V::first(cpu, 0) }
    }
}

/// The first 64 bits of a vector of keys. Panics where there are fewer.
#[inline(always)]
pub(super) fn highs<V: Vector, A: Address>(cpu: Cpu<V>, keys: &[A]) -> [V::Long; 2] {
    let from = keys[..V::LANES].as_ptr().cast::<u8>();
    for line in (0..V::LANES * A::OCTETS).step_by(64) {
        prefetch_once_at(from.wrapping_add(line + AHEAD).cast());
    }
    match A::FAMILY {
        Family::V4 => {
            let [one, other] = V::load(cpu, keys).widened();
            [one << 32, other << 32]
        }
        Family::V6 => V::load_first_longs(cpu, keys),
    }
}
