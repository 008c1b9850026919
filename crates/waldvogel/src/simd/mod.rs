//! Batches with AVX-512: the only unsafe code of this crate.
//!
//! Keys stay in vectors, sixteen each, from the first array to the last try. A try masks the keys to their
//! lengths, hashes them in lanes of 64 bits, gathers their pilots and gathers their slots.
//!
//! A value is all there is to know of how far a search has come, however many tries it took. So the keys that
//! are not done go on a pile whatever their next length is, and whenever there are enough for a round they
//! are taken from it: vectors are full until the batch ends. What to do after a try in vain is read only
//! then, for those that need it. A round is four vectors, so that many reads are under way at a time.
//!
//! Keys whose next length no word holds go on a second pile, and a round of these is looked for in buckets
//! with their lines on the way together.

#[cfg(target_arch = "x86_64")]
mod keys;
#[cfg(target_arch = "x86_64")]
mod piles;
#[cfg(target_arch = "x86_64")]
mod rounds;
#[cfg(target_arch = "x86_64")]
mod slots;

use wirespeed_fib::{Address, NextHop, VectorLevel};

use crate::layout::WaldvogelTable;

/// Looks up as many of the keys, from the front, as a vector level does, where the CPU has it; how many
/// that were.
pub(crate) fn batch<A: Address>(
    level: VectorLevel,
    table: &WaldvogelTable<A>,
    addresses: &[A],
    next_hops: &mut [NextHop],
) -> usize {
    #[cfg(target_arch = "x86_64")]
    // Every CPU with AVX-512 for servers has DQ.
    if level == VectorLevel::Avx512 && level.is_here() && is_x86_feature_detected!("avx512dq") {
        #[allow(unsafe_code)]
        // SAFETY: the CPU has what is asked for.
        return unsafe { rounds::batch(table, addresses, next_hops) };
    }
    let _ = (level, table, addresses, next_hops);
    0
}
