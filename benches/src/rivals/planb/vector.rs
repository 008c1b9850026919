//! Batches through the tree: a node is compared at once, and what a key reads next is prefetched.
//!
//! On a Zen 3 core (AVX2) that others used, a tree over 170,000 ranges, M lookups/s, medians of one run: 41
//! with 32 keys together, 38 with 16 and 34 with 64; without prefetches 32, 35 and 33. Over 700,000 ranges
//! 28, 19 and 26; without prefetches 18, 18 and 19. Leaving out the checks of indexes changed nothing beside
//! prefetches.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub(super) use x86::many;

/// Keys that go down the tree together.
#[cfg(target_arch = "x86_64")]
const TOGETHER: usize = 32;

/// Looks up no keys: there are no vectors for this CPU.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn many<N>(
    _: &super::PlanB<N>,
    _: &[wirespeed_fib::V6],
    _: &mut [wirespeed_fib::NextHop],
) -> usize {
    0
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use wirespeed_fib::{NextHop, V6, VectorLevel};
    use wirespeed_image::prefetch;

    use super::super::{CHILDREN, Node, PlanB, Stored, signed, upper};
    use super::TOGETHER;

    /// Looks up keys from the front in whole groups of [`TOGETHER`] where the CPU has the vectors; how many
    /// that were.
    pub(in super::super) fn many<N: Stored>(table: &PlanB<N>, keys: &[V6], answers: &mut [NextHop]) -> usize {
        assert_eq!(keys.len(), answers.len(), "an answer for each key");
        let whole = keys.len() - keys.len() % TOGETHER;
        let (keys, answers) = (&keys[..whole], &mut answers[..whole]);
        match table.level {
            // SAFETY: the level is one that this CPU has.
            VectorLevel::Avx512 => unsafe { avx512(table, keys, answers) },
            // SAFETY: the level is one that this CPU has.
            VectorLevel::Avx2 => unsafe { avx2(table, keys, answers) },
            VectorLevel::Portable => return 0,
        }
        whole
    }

    /// Keys of a node below a key.
    #[target_feature(enable = "avx512f,popcnt")]
    #[inline]
    fn rank_avx512(node: &Node, key: i64) -> usize {
        // SAFETY: a node is 64 bytes, and aligned to them.
        let keys = unsafe { _mm512_load_si512(std::ptr::from_ref(node).cast()) };
        _mm512_cmplt_epi64_mask(keys, _mm512_set1_epi64(key)).count_ones() as usize
    }

    /// Keys of a node below a key.
    #[target_feature(enable = "avx2,popcnt")]
    #[inline]
    fn rank_avx2(node: &Node, key: i64) -> usize {
        let key = _mm256_set1_epi64x(key);
        let half: *const __m256i = std::ptr::from_ref(node).cast();
        // SAFETY: a node is two halves of 32 bytes, and aligned to 64.
        let (low, high) = unsafe { (_mm256_load_si256(half), _mm256_load_si256(half.add(1))) };
        let below = _mm256_packs_epi32(_mm256_cmpgt_epi64(key, low), _mm256_cmpgt_epi64(key, high));
        // Four bytes a key.
        (_mm256_movemask_epi8(below).count_ones() / 4) as usize
    }

    macro_rules! batch {
        ($name:ident, $rank:ident, $features:literal) => {
            /// Looks up whole groups of keys.
            #[target_feature(enable = $features)]
            pub(super) fn $name<N: Stored>(table: &PlanB<N>, keys: &[V6], answers: &mut [NextHop]) {
                let (nodes, next_hops) = (&*table.nodes, &*table.next_hops);
                for (group, answers) in keys.chunks_exact(TOGETHER).zip(answers.chunks_exact_mut(TOGETHER)) {
                    let halves: [i64; TOGETHER] = std::array::from_fn(|at| signed(upper(group[at])));
                    let mut places = [0usize; TOGETHER];
                    for (at, &level) in table.levels.iter().enumerate() {
                        let below = table.levels.get(at + 1);
                        for (place, &half) in places.iter_mut().zip(&halves) {
                            *place = *place * CHILDREN + $rank(&nodes[level + *place], half);
                            match below {
                                Some(&below) => prefetch(nodes, below + *place),
                                None => prefetch(next_hops, *place),
                            }
                        }
                    }
                    for ((answer, &place), &key) in answers.iter_mut().zip(&places).zip(group) {
                        let found: u32 = next_hops[place].into();
                        *answer = NextHop(found);
                        if found == N::APART.into() {
                            *answer = table.answer_apart(key);
                        }
                    }
                }
            }
        };
    }

    batch!(avx512, rank_avx512, "avx512f,popcnt");
    batch!(avx2, rank_avx2, "avx2,popcnt");
}
