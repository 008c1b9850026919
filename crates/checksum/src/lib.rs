//! The checksum of the Internet: whole (RFC 1071), and changed with a field (RFC 1624, equation 3).

// Sums are folded: what is cut off is 0, or was added before.
#![allow(clippy::cast_possible_truncation)]

/// The sum of 16-bit words in one's complement, not yet inverted, in the order of bytes of the network. A
/// last odd byte counts as the upper half of a word.
#[must_use]
pub fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<8>();
    // Sums of any width and of either order of bytes fold to the same words: RFC 1071, 2.
    let mut sum = words.iter().fold(0_u128, |sum, &word| sum + u128::from(u64::from_ne_bytes(word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    sum += u128::from(u64::from_ne_bytes(last));
    u16::from_be(fold64(sum as u64, (sum >> 64) as u64))
}

/// The sum of 16-bit words, from a sum of wider ones: numbers of 32 bits are two words each.
#[inline]
#[must_use]
pub const fn fold(sum: u64) -> u16 {
    fold64(sum, 0)
}

/// Folds a sum of 64 bits and its carries to 16 bits.
const fn fold64(low: u64, carries: u64) -> u16 {
    let sum = (low & 0xffff_ffff) + (low >> 32) + carries;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    sum as u16
}

/// The checksum of bytes whose checksum field is 0, or is not among them.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// The sum of two sums.
#[must_use]
pub const fn add(one: u16, other: u16) -> u16 {
    let (sum, carry) = one.overflowing_add(other);
    sum + carry as u16
}

/// Whether the 20 bytes of an IPv4 header without options have the right checksum.
///
/// The sum of its words has to be 0xffff in one's complement: a multiple of 65,535, and not 0, which no sum
/// with a version in it is. An odd number divides another one if its inverse modulo 2^64 makes a small
/// product.
#[inline]
#[must_use]
pub fn is_right(header: &[u8; 20]) -> bool {
    const INVERSE: u64 = {
        // Newton's steps: each doubles the number of right bits.
        let (mut inverse, mut step) = (1_u64, 0);
        while step < 6 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(0xffff_u64.wrapping_mul(inverse)));
            step += 1;
        }
        inverse
    };
    let (words, _) = header.as_chunks::<4>();
    let sum: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    sum.wrapping_mul(INVERSE) <= u64::MAX / 0xffff
}

/// The checksum after a 16-bit field changes: HC' = ~(~HC + ~m + m').
#[inline]
#[must_use]
pub const fn changed(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = !checksum as u32 + !old as u32 + new as u32;
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

/// The checksum of an IPv4 header after its time to live became one less. The field and its complement
/// cancel out in [`changed`], so that it does not matter what the time to live was.
#[inline]
#[must_use]
pub const fn with_hop_less(checksum: u16) -> u16 {
    let sum = !checksum as u32 + 0xfeff;
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: words one by one.
    fn by_words(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn sums_are_those_of_words_one_by_one() {
        let mut rng = wirespeed_rng::Rng::new(1);
        for len in 0..200 {
            let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
            assert_eq!(sum(&bytes), by_words(&bytes), "{len} bytes");
            let all = vec![0xff; len];
            assert_eq!(sum(&all), by_words(&all), "{len} bytes of 0xff");
        }
        assert_eq!(sum(&[0xff; 1 << 16]), by_words(&[0xff; 1 << 16]));
    }

    /// Every checksum of a header with each time to live, next to the whole computation: equation 2 of RFC
    /// 1141 would fail where the checksum becomes 0.
    #[test]
    fn a_changed_checksum_is_that_of_the_changed_header() {
        for id in 0..=u16::MAX {
            let ttl = [1, 2, 64, 128, 255][usize::from(id % 5)];
            let mut header = [0x45, 0, 0, 46, 0, 0, 0x40, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 9, 8, 7];
            header[4..6].copy_from_slice(&id.to_be_bytes());
            let old = checksum(&header);
            header[10..12].copy_from_slice(&old.to_be_bytes());
            assert!(is_right(&header));
            let word = u16::from_be_bytes([header[8], header[9]]);
            let new = changed(old, word, word - 0x100);
            assert_eq!(new, with_hop_less(old), "{id} {ttl}");
            header[8] -= 1;
            header[10..12].copy_from_slice(&[0, 0]);
            assert_eq!(new, checksum(&header), "{id} {ttl}");
            header[10..12].copy_from_slice(&new.to_be_bytes());
            assert!(is_right(&header));
            header[19] ^= 1;
            assert!(!is_right(&header));
        }
    }
}
