//! SHA-1 of a block in plain code (FIPS 180-4, 6.1.2), for CPUs without instructions for it.

use super::state::{Block, State};

/// Takes blocks into a state.
pub(super) fn compress(state: &mut State, blocks: &[Block]) {
    for block in blocks {
        let mut words = [0_u32; 80];
        let (given, _) = block.as_chunks::<4>();
        for (word, &bytes) in words.iter_mut().zip(given) {
            *word = u32::from_be_bytes(bytes);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = *state;
        for (at, word) in words.into_iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a
                .rotate_left(5)
                .wrapping_add(mixed)
                .wrapping_add(e)
                .wrapping_add(constant)
                .wrapping_add(word);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
}
