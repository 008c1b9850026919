//! [`Row`]: the match fields of a frame as the lookups of a table read them, no more than the table needs.
//!
//! Most tables look at links, IPv4 and ports: words 0 to 7 of a [`Key`], one cache line. [`Short`] holds
//! these, and is read from a plain frame of TCP, UDP or SCTP over IPv4 with a handful of loads. A table with
//! a flow that looks at a later word gets whole keys.

use super::parse::{SCTP, TCP, UDP, parse};
use crate::wire::Key;

/// Words of a [`Short`].
pub(crate) const SHORT: usize = 8;
/// Bytes of the headers of Ethernet and IPv4 without options, and of two ports.
const PLAIN: usize = 38;

/// The words of a key, or its first ones.
pub(crate) trait Row: Copy {
    /// Reads the fields of a frame that came in on a port.
    fn read(frame: &[u8], in_port: u32) -> Self;

    /// Reads them in place: a row that is returned through memory, in parts of another size than it is copied
    /// in, waits for its own words.
    #[inline]
    fn read_to(&mut self, frame: &[u8], in_port: u32) {
        *self = Self::read(frame, in_port);
    }

    /// A row without fields, to be read to.
    const NONE: Self;
    /// The words that it holds, from the first on.
    const WORDS: usize;

    /// The word of a number, which is one of those that the row holds.
    fn word(&self, at: u8) -> u64;
}

impl Row for Key {
    const NONE: Self = Self([0; crate::wire::WORDS]);
    const WORDS: usize = crate::wire::WORDS;

    #[inline]
    fn read(frame: &[u8], in_port: u32) -> Self {
        parse(frame, in_port).0
    }

    #[inline]
    fn word(&self, at: u8) -> u64 {
        self.0[usize::from(at)]
    }
}

/// The first words of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Short(pub(crate) [u64; SHORT]);

impl Row for Short {
    const NONE: Self = Self([0; SHORT]);
    const WORDS: usize = SHORT;

    #[inline]
    fn read(frame: &[u8], in_port: u32) -> Self {
        let mut row = Self::NONE;
        row.read_to(frame, in_port);
        row
    }

    #[inline]
    fn read_to(&mut self, frame: &[u8], in_port: u32) {
        if !plain(frame, in_port, self) {
            *self = Self::of(&parse(frame, in_port).0);
        }
    }

    #[inline]
    fn word(&self, at: u8) -> u64 {
        // The remainder spares the check of bounds.
        self.0[usize::from(at) % SHORT]
    }
}

impl Short {
    #[cold]
    fn of(key: &Key) -> Self {
        Self(std::array::from_fn(|at| key.0[at]))
    }
}

/// The fields of an untagged frame with ports right behind an IPv4 header without options: `parse` for the
/// frames that most are. `false`, and nothing is written, for others.
#[inline]
fn plain(frame: &[u8], in_port: u32, row: &mut Short) -> bool {
    let Some(head) = frame.first_chunk::<PLAIN>() else { return false };
    let word = |at: usize| head[at..].first_chunk().map_or(0, |&bytes| u64::from_be_bytes(bytes));
    let (destination, source, addresses, ports) = (word(0), word(6), word(26), word(30) << 32);
    let (tos, protocol) = (head[15], head[23]);
    let is_later = u16::from_be_bytes([head[20], head[21]]) & 0x1fff != 0;
    let is_plain = source & 0xffff == 0x0800 && head[14] == 0x45 && !is_later;
    if !is_plain || !matches!(protocol, TCP | UDP | SCTP) {
        return false;
    }
    let port = u64::from(in_port) << 32;
    let upper = u64::from(protocol) << 8 | u64::from(tos);
    row.0 =
        [port | 0x0800 << 16, destination & !0xffff | upper, source & !0xffff, addresses, ports, 0, 0, port];
    true
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation)] // random numbers that are small
mod tests {
    use wirespeed_rng::Rng;

    use super::*;

    /// A frame of random bytes that is nearly plain: some bytes of its headers are others, and it may end
    /// early.
    fn frame(rng: &mut Rng) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..64).map(|_| rng.below(256) as u8).collect();
        frame[12..15].copy_from_slice(&[8, 0, 0x45]);
        frame[20..22].copy_from_slice(&[0x40, 0]);
        frame[23] = [1, TCP, UDP, SCTP, 47][rng.below(5) as usize];
        if rng.chance(0.5) {
            frame[12 + rng.below(12) as usize] = rng.below(256) as u8;
        }
        if rng.chance(0.2) {
            frame[12..14]
                .copy_from_slice(&[[0x81, 0], [8, 6], [0x86, 0xdd], [0x88, 0x47]][rng.below(4) as usize]);
        }
        if rng.chance(0.3) {
            frame.truncate(rng.below(64) as usize);
        }
        frame
    }

    #[test]
    fn short_rows_are_the_first_words_of_keys() {
        let (mut rng, mut plains) = (Rng::new(3), 0);
        for _ in 0..20_000 {
            let (frame, port) = (frame(&mut rng), rng.below(1 << 20) as u32);
            let key = <Key as Row>::read(&frame, port);
            assert_eq!(Short::read(&frame, port), Short::of(&key), "{frame:x?}");
            let mut row = Short::NONE;
            plains += usize::from(plain(&frame, port, &mut row));
        }
        assert!((2000..18_000).contains(&plains), "{plains} of both kinds");
    }
}
