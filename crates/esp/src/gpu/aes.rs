//! The key schedule of AES (FIPS 197, 5.2) and the table of its rounds, for the kernels.
//!
//! Substitutions are calculated and not looked up, so that no time depends on a key.

/// Round keys of the longest schedule: that of AES-256.
pub(super) const MOST_KEYS: usize = 15;

/// The product of two elements of AES's field (FIPS 197, 4.2).
const fn product(mut a: u8, mut b: u8) -> u8 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 8 {
        sum ^= a & (b & 1).wrapping_neg();
        a = (a << 1) ^ ((a >> 7).wrapping_neg() & 0x1b);
        b >>= 1;
        bit += 1;
    }
    sum
}

/// The substitution of a byte: its inverse, which is its 254th power, and an affine map (FIPS 197, 5.1.1).
const fn substitute(byte: u8) -> u8 {
    let (mut inverse, mut power, mut bit) = (1, byte, 1);
    while bit < 8 {
        power = product(power, power);
        inverse = product(inverse, power);
        bit += 1;
    }
    inverse
        ^ inverse.rotate_left(1)
        ^ inverse.rotate_left(2)
        ^ inverse.rotate_left(3)
        ^ inverse.rotate_left(4)
        ^ 0x63
}

const fn substitute_word(word: u32) -> u32 {
    let [a, b, c, d] = word.to_be_bytes();
    u32::from_be_bytes([substitute(a), substitute(b), substitute(c), substitute(d)])
}

/// Makes the table T0: for each byte its substitution times the first column of `MixColumns`.
pub(super) fn rounds_table() -> [u32; 256] {
    std::array::from_fn(|at| {
        let byte = substitute(crate::narrow::u8(at));
        let twice = product(byte, 2);
        u32::from_be_bytes([twice, byte, byte, twice ^ byte])
    })
}

/// Writes the round keys of a key of 16 or 32 bytes, each word's first byte the highest, and tells the number
/// of rounds.
pub(super) fn expand(key: &[u8], to: &mut [[u32; 4]; MOST_KEYS]) -> u32 {
    let to = to.as_flattened_mut();
    let words = key.len() / 4;
    let rounds = words + 6;
    for (word, bytes) in to.iter_mut().zip(key.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, &byte| word << 8 | u32::from(byte));
    }
    let mut constant = 1;
    for at in words..4 * (rounds + 1) {
        let mut word = to[at - 1];
        if at % words == 0 {
            word = substitute_word(word.rotate_left(8)) ^ u32::from(constant) << 24;
            constant = product(constant, 2);
        } else if words > 6 && at % words == 4 {
            word = substitute_word(word);
        }
        to[at] = to[at - words] ^ word;
    }
    if words == 4 { 10 } else { 14 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, figure 7.
    #[test]
    fn substitutions_are_those_of_the_standard() {
        let wanted = [(0x00, 0x63), (0x01, 0x7c), (0x10, 0xca), (0x53, 0xed), (0xff, 0x16)];
        assert_eq!(wanted.map(|(byte, _)| (byte, substitute(byte))), wanted);
    }

    /// FIPS 197, appendices A.1 and A.3.
    #[test]
    fn schedules_are_those_of_the_standard() {
        let mut keys = [[0; 4]; MOST_KEYS];
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        assert_eq!(expand(&key, &mut keys), 10);
        assert_eq!((keys[1][0], keys[10][3]), (0xa0fa_fe17, 0xb663_0ca6));
        let key = [
            0x603d_eb10_15ca_71be_2b73_aef0_857d_7781_u128.to_be_bytes(),
            0x1f35_2c07_3b61_08d7_2d98_10a3_0914_dff4_u128.to_be_bytes(),
        ];
        assert_eq!(expand(key.as_flattened(), &mut keys), 14);
        assert_eq!((keys[2][0], keys[14][3]), (0x9ba3_5411, 0x706c_631e));
    }
}
