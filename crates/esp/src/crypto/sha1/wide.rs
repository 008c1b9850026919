//! SHA-1 of sixteen messages at once, each in a lane of vectors of AVX-512.
//!
//! ```text
//! block of message 0   | w0 w1 … w15 |          words w0 of all messages   | m0 m1 … m15 |
//! block of message 1   | w0 w1 … w15 |   ─►     words w1 of all messages   | m0 m1 … m15 |
//! …                                             …
//! ```
//!
//! The instructions for SHA-1 take one message forward, and their unit is the bound. Here each step is one of
//! sixteen messages, and all words of a block and the states of all messages fit the registers.

#![allow(unsafe_code)] // instructions that not every CPU has
#![allow(clippy::needless_range_loop)] // closures that arrays call are not compiled for these instructions

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_rol_epi32, _mm512_set_epi64, _mm512_set1_epi32, _mm512_shuffle_epi8,
    _mm512_shuffle_i32x4, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::state::{Block, State};

/// Messages of a vector.
pub(super) const LANES: usize = 16;

/// Whether this CPU has the instructions.
pub(super) fn is_there() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw")
}

/// Takes blocks into states: as many of each message as the shortest list has.
///
/// Panics on a CPU without the instructions.
pub(super) fn compress(states: &mut [State; LANES], blocks: &[&[Block]; LANES]) {
    assert!(is_there(), "callers have asked");
    // SAFETY: the CPU has the instructions: the line above says so.
    unsafe { with_instructions(states, blocks) }
}

/// Rounds with the function of this truth table and a constant. The numbers of rounds are constants, so that
/// the words stay in registers.
macro_rules! rounds {
    ($state:ident, $words:ident, $table:literal, $constant:literal: $($round:literal)+) => {{
        let constant = _mm512_set1_epi32($constant);
        $(
            if $round >= 16 {
                let (one, other) = ($words[($round + 13) % 16], $words[($round + 8) % 16]);
                let mixed = _mm512_ternarylogic_epi32::<0x96>(one, other, $words[($round + 2) % 16]);
                $words[$round % 16] = _mm512_rol_epi32::<1>(_mm512_xor_si512(mixed, $words[$round % 16]));
            }
            let [a, b, c, d, e] = $state;
            let with_word = _mm512_add_epi32(_mm512_add_epi32(e, constant), $words[$round % 16]);
            let mixed = _mm512_add_epi32(_mm512_ternarylogic_epi32::<$table>(b, c, d), with_word);
            let next = _mm512_add_epi32(_mm512_rol_epi32::<5>(a), mixed);
            $state = [next, a, _mm512_rol_epi32::<30>(b), c, d];
        )+
    }};
}

#[target_feature(enable = "avx512f,avx512bw")]
fn with_instructions(states: &mut [State; LANES], blocks: &[&[Block]; LANES]) {
    let count = blocks.iter().map(|blocks| blocks.len()).min().unwrap_or(0);
    let (high, low) = (0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let swap = _mm512_set_epi64(high, low, high, low, high, low, high, low);
    let zero = _mm512_set1_epi32(0);
    let (mut state, mut lanes) = ([zero; 5], [0; LANES]);
    for word in 0..5 {
        for m in 0..LANES {
            lanes[m] = states[m][word];
        }
        state[word] = bytemuck::cast::<[u32; LANES], __m512i>(lanes);
    }
    for at in 0..count {
        let mut words = [zero; LANES];
        for m in 0..LANES {
            words[m] = _mm512_shuffle_epi8(bytemuck::cast::<Block, __m512i>(blocks[m][at]), swap);
        }
        words = transposed(&words);
        let before = state;
        rounds!(state, words, 0xca, 0x5a82_7999: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
        rounds!(state, words, 0x96, 0x6ed9_eba1: 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
        rounds!(state, words, 0xe8, -0x70e4_4324: 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
        rounds!(state, words, 0x96, -0x359d_3e2a: 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79);
        for word in 0..5 {
            state[word] = _mm512_add_epi32(state[word], before[word]);
        }
    }
    for word in 0..5 {
        lanes = bytemuck::cast::<__m512i, [u32; LANES]>(state[word]);
        for m in 0..LANES {
            states[m][word] = lanes[m];
        }
    }
}

/// Sixteen rows of sixteen words as columns.
#[target_feature(enable = "avx512f")]
fn transposed(rows: &[__m512i; LANES]) -> [__m512i; LANES] {
    let mut columns = *rows;
    // Of four rows each: word c of their quarters, which is word c, c + 4, c + 8 and c + 12 of the rows.
    let mut fours = *rows;
    for at in [0, 4, 8, 12] {
        let (one, two, three, four) = (rows[at], rows[at + 1], rows[at + 2], rows[at + 3]);
        let (low, low_2) = (_mm512_unpacklo_epi32(one, two), _mm512_unpacklo_epi32(three, four));
        let (high, high_2) = (_mm512_unpackhi_epi32(one, two), _mm512_unpackhi_epi32(three, four));
        fours[at] = _mm512_unpacklo_epi64(low, low_2);
        fours[at + 1] = _mm512_unpackhi_epi64(low, low_2);
        fours[at + 2] = _mm512_unpacklo_epi64(high, high_2);
        fours[at + 3] = _mm512_unpackhi_epi64(high, high_2);
    }
    for c in 0..4 {
        let (one, two, three, four) = (fours[c], fours[c + 4], fours[c + 8], fours[c + 12]);
        // Quarters 0 and 2 of a pair, and quarters 1 and 3.
        let (even, even_2) =
            (_mm512_shuffle_i32x4::<0x88>(one, two), _mm512_shuffle_i32x4::<0x88>(three, four));
        let (odd, odd_2) =
            (_mm512_shuffle_i32x4::<0xdd>(one, two), _mm512_shuffle_i32x4::<0xdd>(three, four));
        columns[c] = _mm512_shuffle_i32x4::<0x88>(even, even_2);
        columns[c + 4] = _mm512_shuffle_i32x4::<0x88>(odd, odd_2);
        columns[c + 8] = _mm512_shuffle_i32x4::<0xdd>(even, even_2);
        columns[c + 12] = _mm512_shuffle_i32x4::<0xdd>(odd, odd_2);
    }
    columns
}
