//! [`Pieces`] and [`Output`]: short bytes that are written for each record, such as the number of an AS.
//!
//! A piece lies with its length in 16 bytes, so that it is one access to memory. All 16 are written, and what
//! comes next overwrites those that are too many: no copy depends on a length. The pieces of some records are
//! fetched together, so that these accesses don't wait for each other.

use std::ops::Range;

/// The bytes of a piece, and its length at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece([u8; SLOT]);

const SLOT: usize = 16;
/// The most bytes of a part that is copied with what follows it. Most records are shorter.
const SHORT: usize = 128;
const HALF: usize = SHORT / 2;
/// The length of a piece that is too long for a slot. It starts with its place among the long ones.
const LONG: u8 = u8::MAX;
/// The length of a piece that is not there.
const ABSENT: u8 = u8::MAX - 1;

impl Piece {
    pub(super) const ABSENT: Self = {
        let mut slot = [0; SLOT];
        slot[SLOT - 1] = ABSENT;
        Self(slot)
    };
}

/// Bytes by index.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    slots: Vec<Piece>,
    long: Vec<Box<[u8]>>,
}

impl Pieces {
    /// Adds the piece of the next index.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut slot = [0; SLOT];
        match u8::try_from(bytes.len()) {
            Ok(len) if bytes.len() < SLOT => {
                slot[..bytes.len()].copy_from_slice(bytes);
                slot[SLOT - 1] = len;
            }
            _ => {
                slot[..8].copy_from_slice(&(self.long.len() as u64).to_le_bytes());
                slot[SLOT - 1] = LONG;
                self.long.push(bytes.into());
            }
        }
        self.slots.push(Piece(slot));
    }

    /// The piece of an index.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Piece {
        self.slots.get(index).copied().unwrap_or(Piece::ABSENT)
    }

    /// The bytes of a piece that is too long for a slot.
    #[cold]
    fn long(&self, piece: &Piece) -> Option<&[u8]> {
        let place = piece.0.first_chunk().map(|place| u64::from_le_bytes(*place));
        let place = place.filter(|_| piece.0[SLOT - 1] == LONG).and_then(|place| usize::try_from(place).ok());
        self.long.get(place?).map(|bytes| &**bytes)
    }
}

/// Bytes that are written piece by piece.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The bytes so far, and room.
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// Forgets the bytes, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) else {
            self.grow(bytes.len());
            return self.push(bytes);
        };
        room.copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Writes a part of bytes. A short one is copied with what follows it, like a piece.
    #[inline]
    pub(super) fn part(&mut self, bytes: &[u8], part: Range<usize>) {
        let len = part.len();
        let from = bytes.get(part.start..).and_then(<[u8]>::first_chunk::<SHORT>);
        let room = self.bytes.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut::<SHORT>);
        match (from, room) {
            (Some(from), Some(room)) if len <= SHORT => {
                room[..HALF].copy_from_slice(&from[..HALF]);
                if len > HALF {
                    room[HALF..].copy_from_slice(&from[HALF..]);
                }
                self.len += len;
            }
            _ => self.push(&bytes[part]),
        }
    }

    /// Writes a piece. Returns whether it is there.
    #[inline]
    pub(super) fn piece(&mut self, piece: &Piece, of: &Pieces) -> bool {
        let len = usize::from(piece.0[SLOT - 1]);
        if len >= SLOT {
            return of.long(piece).map(|long| self.push(long)).is_some();
        }
        let Some(room) = self.bytes.get_mut(self.len..self.len + SLOT) else {
            self.grow(SLOT);
            return self.piece(piece, of);
        };
        room.copy_from_slice(&piece.0);
        self.len += len;
        true
    }

    /// Makes room for so many bytes.
    #[cold]
    pub(super) fn grow(&mut self, more: usize) {
        let wanted = self.len + more;
        if wanted > self.bytes.len() {
            self.bytes.resize(wanted.max(2 * self.bytes.len()), 0);
        }
    }
}

impl From<Vec<u8>> for Output {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_every_length_one_after_another() {
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(4 * SHORT).collect();
        let (mut output, mut right) = (Output::default(), Vec::new());
        for _ in 0..2 {
            output.clear();
            right.clear();
            for len in 0..2 * SHORT {
                for start in [0, len, bytes.len() - len] {
                    output.part(&bytes, start..start + len);
                    right.extend_from_slice(&bytes[start..start + len]);
                }
            }
            assert!(output.bytes() == right);
        }
    }

    #[test]
    fn pieces_of_every_length_one_after_another() {
        let texts: Vec<Vec<u8>> = (0..40u8).map(|len| (0..len).map(|at| at ^ len).collect()).collect();
        let (mut pieces, mut output) = (Pieces::default(), Output::default());
        texts.iter().for_each(|text| pieces.push(text));
        for text in &texts[..3] {
            output.clear();
            let mut right = Vec::new();
            for at in (0..texts.len()).chain((0..texts.len()).rev()) {
                assert!(output.piece(&pieces.get(at), &pieces));
                output.push(text);
                right.extend([&*texts[at], text].concat());
            }
            assert!(!output.piece(&pieces.get(texts.len()), &pieces));
            assert_eq!(output.bytes(), right);
        }
    }
}
