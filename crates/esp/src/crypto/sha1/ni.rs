//! SHA-1 with the instructions of x86-64 for it, over several messages at once.
//!
//! A group of four rounds waits for the one before it for longer than the instruction takes up its unit. With
//! other messages between them the unit is always busy. The loops over messages have a constant count, so
//! the compiler unrolls them. Two messages fit the 16 vector registers. Four are faster all the same: what
//! does not fit is loaded while the unit works.

#![allow(unsafe_code)] // instructions that not every CPU has
#![allow(clippy::needless_range_loop)] // a loop over messages walks several arrays, and blocks lie across them

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_set_epi32, _mm_set_epi64x, _mm_sha1msg1_epu32, _mm_sha1msg2_epu32,
    _mm_sha1nexte_epu32, _mm_sha1rnds4_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_xor_si128,
};

use super::state::{Block, State};

/// Whether this CPU has the instructions.
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1")
}

/// Takes blocks into states: as many of each message as the shortest list has.
///
/// Panics on a CPU without the instructions.
pub(super) fn compress<const N: usize>(states: &mut [State; N], blocks: [&[Block]; N]) {
    assert!(is_there(), "callers have asked");
    // SAFETY: the CPU has the instructions: the line above says so.
    unsafe { with_instructions(states, blocks) }
}

/// Four rounds with the function and constant `F`, of each message, and the words of four rounds later.
///
/// The numbers of a group are constants, so that the words stay in registers.
macro_rules! groups {
    ($N:ident, $abcd:ident, $e:ident, $words:ident, $($F:literal: $($group:literal)+;)+) => {$($(
        for m in 0..$N {
            let word = $words[m][$group % 4];
            // The first group has e itself; the others have a of four rounds ago, to be rotated.
            let with_e = if $group == 0 {
                _mm_add_epi32($e[m], word)
            } else {
                _mm_sha1nexte_epu32($e[m], word)
            };
            $e[m] = $abcd[m];
            $abcd[m] = _mm_sha1rnds4_epu32::<$F>($abcd[m], with_e);
            if $group < 16 {
                let mixed = _mm_sha1msg1_epu32(word, $words[m][($group + 1) % 4]);
                let mixed = _mm_xor_si128(mixed, $words[m][($group + 2) % 4]);
                $words[m][$group % 4] = _mm_sha1msg2_epu32(mixed, $words[m][($group + 3) % 4]);
            }
        }
    )+)+};
}

#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
fn with_instructions<const N: usize>(states: &mut [State; N], blocks: [&[Block]; N]) {
    let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or(0);
    let swap = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let zero = _mm_set_epi32(0, 0, 0, 0);
    let (mut abcd, mut e) = ([zero; N], [zero; N]);
    for m in 0..N {
        let [a, b, c, d, last] = states[m].map(u32::cast_signed);
        abcd[m] = _mm_set_epi32(a, b, c, d);
        e[m] = _mm_set_epi32(last, 0, 0, 0);
    }
    for at in 0..count {
        let before = (abcd, e);
        let mut words = [[zero; 4]; N];
        for m in 0..N {
            let (quarters, _) = blocks[m][at].as_chunks::<16>();
            for (word, quarter) in words[m].iter_mut().zip(quarters) {
                *word = _mm_shuffle_epi8(bytemuck::cast::<[u8; 16], __m128i>(*quarter), swap);
            }
        }
        groups!(N, abcd, e, words,
            0: 0 1 2 3 4;
            1: 5 6 7 8 9;
            2: 10 11 12 13 14;
            3: 15 16 17 18 19;
        );
        for m in 0..N {
            e[m] = _mm_sha1nexte_epu32(e[m], before.1[m]);
            abcd[m] = _mm_add_epi32(abcd[m], before.0[m]);
        }
    }
    for m in 0..N {
        let [a, b, c, d] = bytemuck::cast::<__m128i, [u32; 4]>(_mm_shuffle_epi32::<0x1b>(abcd[m]));
        let [.., last] = bytemuck::cast::<__m128i, [u32; 4]>(e[m]);
        states[m] = [a, b, c, d, last];
    }
}
