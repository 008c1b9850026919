//! [`Stops`]: the bytes that end strings and numbers, as bits, so that a value's end is a few instructions
//! away from its start.

#[cfg(target_arch = "x86_64")]
use crate::marks::avx2;
use crate::marks::{WINDOW, low_bits};
use crate::word::{each, equal, less};

/// The bits of the bytes of a block; the first byte of 64 is the lowest bit. Its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// Bytes that don't stand for themselves in a string.
    of_strings: Vec<u64>,
    /// Bytes that are no digits.
    of_numbers: Vec<u64>,
}

impl Stops {
    /// Reads a block's bytes. What follows them stops all. Returns whether all are ASCII.
    pub(super) fn read(&mut self, bytes: &[u8]) -> bool {
        let (windows, rest) = bytes.as_chunks::<WINDOW>();
        let Self { of_strings, of_numbers } = self;
        for bits in [&mut *of_strings, &mut *of_numbers] {
            bits.clear();
            // Each place has a word after its own.
            bits.resize(windows.len() + 2, u64::MAX);
        }
        #[cfg(target_arch = "x86_64")]
        let read = avx2::stops(windows, of_strings, of_numbers);
        #[cfg(not(target_arch = "x86_64"))]
        let read = None;
        let is_ascii = read.unwrap_or_else(|| {
            for ((window, strings), numbers) in windows.iter().zip(&mut *of_strings).zip(&mut *of_numbers) {
                (*strings, *numbers) = of_window(window);
            }
            windows.as_flattened().is_ascii()
        });
        let mut last = [0; WINDOW];
        last[..rest.len()].copy_from_slice(rest);
        let (strings, numbers) = of_window(&last);
        let behind = !low_bits(rest.len());
        (of_strings[windows.len()], of_numbers[windows.len()]) = (strings | behind, numbers | behind);
        is_ascii && rest.is_ascii()
    }

    /// The end of the plain bytes of a string that start at a place: a quote, a backslash, a control
    /// character or the end of the block.
    #[inline]
    pub(super) fn after_plain(&self, mut at: usize) -> Option<usize> {
        loop {
            match from(&self.of_strings, at)? {
                0 => at += WINDOW,
                stops => return Some(at + stops.trailing_zeros() as usize),
            }
        }
    }

    /// The 64 bytes from a place on that are no digits.
    #[inline]
    pub(super) fn not_digits(&self, at: usize) -> Option<u64> {
        from(&self.of_numbers, at)
    }
}

/// The bits of 64 bytes from a place on.
#[inline]
fn from(bits: &[u64], at: usize) -> Option<u64> {
    let (word, shift) = (at / WINDOW, at % WINDOW);
    let [low, high] = bits.get(word..)?.first_chunk()?;
    // Two shifts, because one of 64 bits is none.
    Some(low >> shift | high << 1 << (WINDOW - 1 - shift))
}

/// The stops of strings, and those of numbers, eight bytes at a time.
fn of_window(window: &[u8; WINDOW]) -> (u64, u64) {
    let (mut of_strings, mut of_numbers) = (0, 0);
    for (at, word) in window.as_chunks().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Each flag goes to the highest byte.
        let bits = |flags: u64| (flags >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at);
        of_strings |= bits(less(word, b' ') | equal(word, b'"') | equal(word, b'\\'));
        of_numbers |= bits(less(word ^ each(b'0'), 10) ^ each(0x80));
    }
    (of_strings, of_numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_of_every_byte_at_every_place() {
        let mut stops = Stops::default();
        for byte in 0..=255u8 {
            for len in [0, 1, 63, 64, 65, 130] {
                for at in 0..len {
                    let mut bytes = vec![b'5'; len];
                    bytes[at] = byte;
                    assert_eq!(stops.read(&bytes), byte.is_ascii());
                    let is_plain = byte >= b' ' && !matches!(byte, b'"' | b'\\');
                    assert_eq!(stops.after_plain(0), Some(if is_plain { len } else { at }));
                    assert_eq!(stops.after_plain(at), Some(if is_plain { len } else { at }));
                    assert_eq!(stops.after_plain(at + 1), Some(len));
                    let from = at.saturating_sub(60);
                    let is_stop = |place: usize| place >= len || (place == at && !byte.is_ascii_digit());
                    let right = (0..64).fold(0, |bits, bit| bits | u64::from(is_stop(from + bit)) << bit);
                    assert_eq!(stops.not_digits(from), Some(right));
                    assert_eq!(stops.not_digits(3 * WINDOW), None);
                }
            }
        }
    }
}
