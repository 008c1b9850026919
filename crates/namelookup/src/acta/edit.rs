//! Edits of a bucket: an entry put in, or cut out.
//!
//! A bucket is made anew as one value of 64 bytes, of itself and of itself moved by some bytes. The moved one
//! is loaded from another place of a buffer. Masks say which byte comes from which.
//!
//! ```text
//! before   head  h0 h1 h2 h3  0 0 0 0 0 0 0  p3 p3 p2 p1 p1 p1 p0 p0
//! cut 1    head  h0 h2 h3 0   0 0 0 0 0 0 0  0  0  0  p3 p3 p2 p0 p0
//!          └ as it was ┘└ down by a header ┘    └ up by p1's ┘└ as it was
//! ```
//!
//! Pieces of a few bytes moved by the C library's `memmove` cost a call each, and a jump that nothing
//! foretells.

use super::layout::{BUCKET_BYTES, BUCKET_WORDS, HEADER_BYTES, Header, MOST_ENTRIES, Slot};

/// A bucket's bytes as words, of which compilers make vectors.
type Words = [u64; BUCKET_WORDS];

/// Ones, then zeros: what [`below`] is a window of.
const STEP: [u8; 2 * BUCKET_BYTES] = {
    let mut step = [0; 2 * BUCKET_BYTES];
    let mut at = 0;
    while at < BUCKET_BYTES {
        step[at] = 0xff;
        at += 1;
    }
    step
};

/// A payload before it has a place, between so many zeros that a window of it has zeros around it wherever it
/// lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload {
    bytes: [u8; 2 * BUCKET_BYTES],
    len: usize,
}

impl Payload {
    /// None.
    #[inline]
    pub(super) const fn new() -> Self {
        Self { bytes: [0; 2 * BUCKET_BYTES], len: 0 }
    }

    /// Adds bytes at the end.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        copy(&mut self.bytes[BUCKET_BYTES + self.len..], bytes);
        self.len += bytes.len();
    }

    /// Adds the lowest bytes of a number that has no higher ones.
    #[inline]
    pub(super) fn push_number(&mut self, number: u32, bytes: usize) {
        // Past its bytes are zeros, as there were.
        self.bytes[BUCKET_BYTES + self.len..][..4].copy_from_slice(&number.to_le_bytes());
        self.len += bytes;
    }

    /// Its bytes' number.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

/// Puts an entry into a bucket that has room, of whose bytes so many are taken.
#[inline]
pub(super) fn put(line: &mut Words, taken: usize, header: Header, payload: &Payload) {
    let entries = usize::from(bytes(line)[0]) & MOST_ENTRIES;
    let start = BUCKET_BYTES - (taken - HEADER_BYTES * entries) - payload.len;
    let placed = window(&payload.bytes, BUCKET_BYTES - start);
    for (word, placed) in line.iter_mut().zip(placed) {
        *word |= placed;
    }
    let bytes = bytes_mut(line);
    bytes[HEADER_BYTES * (1 + entries)..][..HEADER_BYTES].copy_from_slice(&header.0.to_le_bytes());
    bytes[0] += 1;
}

/// Cuts an entry out of a bucket, of whose bytes so many are taken, and closes up.
#[inline]
pub(super) fn cut(line: &mut Words, taken: usize, slot: Slot) {
    let old = *line;
    let mut around = [0; 2 * BUCKET_BYTES + HEADER_BYTES];
    around[BUCKET_BYTES..2 * BUCKET_BYTES].copy_from_slice(bytes(&old));
    let entries = usize::from(around[BUCKET_BYTES]) & MOST_ENTRIES;
    let (size, lowest) = (slot.end - slot.start, BUCKET_BYTES - (taken - HEADER_BYTES * entries));
    let (up, down) = (window(&around, BUCKET_BYTES - size), window(&around, BUCKET_BYTES + HEADER_BYTES));
    let (header, last) = (below(HEADER_BYTES * (1 + slot.number)), below(HEADER_BYTES * entries));
    let (payloads, end) = (below(lowest + size), below(slot.end));
    for at in 0..BUCKET_WORDS {
        let stays = old[at] & (header[at] | !end[at]);
        line[at] = stays | down[at] & last[at] & !header[at] | up[at] & end[at] & !payloads[at];
    }
    bytes_mut(line)[0] -= 1;
}

/// Ones in the bytes before one.
#[inline]
fn below(byte: usize) -> Words {
    window(&STEP, BUCKET_BYTES - byte)
}

/// So many bytes as a bucket has, from one on.
#[inline]
fn window(bytes: &[u8], from: usize) -> Words {
    bytemuck::pod_read_unaligned(&bytes[from..from + BUCKET_BYTES])
}

#[inline]
fn bytes(line: &Words) -> &[u8; BUCKET_BYTES] {
    bytemuck::cast_ref(line)
}

#[inline]
fn bytes_mut(line: &mut Words) -> &mut [u8; BUCKET_BYTES] {
    bytemuck::cast_mut(line)
}

/// Copies a short piece to the front: whole words, and the last one over again from the end.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    let len = from.len();
    match len {
        8.. => {
            for at in (0..len - 8).step_by(8) {
                to[at..at + 8].copy_from_slice(&from[at..at + 8]);
            }
            to[len - 8..len].copy_from_slice(&from[len - 8..]);
        }
        4.. => {
            to[..4].copy_from_slice(&from[..4]);
            to[len - 4..len].copy_from_slice(&from[len - 4..]);
        }
        _ => (0..len).for_each(|at| to[at] = from[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{Bucket, ENDS};
    use super::*;

    /// A payload whose bytes say which it is.
    fn payload(len: usize, number: u8) -> Payload {
        let mut payload = Payload::new();
        payload.push(&vec![number; len]);
        payload
    }

    /// The bucket of some entries, byte by byte as the layout has it.
    fn plainly(entries: &[(u16, usize, u8)]) -> Words {
        let mut line = [0; BUCKET_BYTES];
        line[0] = u8::try_from(entries.len()).unwrap();
        line[1] = 0xa5;
        let mut end = BUCKET_BYTES;
        for (slot, &(header, len, number)) in entries.iter().enumerate() {
            line[HEADER_BYTES * (1 + slot)..][..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
            line[end - len..end].fill(number);
            end -= len;
        }
        bytemuck::cast(line)
    }

    /// All ways to fill a bucket with entries of few sizes, and to cut one of them out.
    #[test]
    fn buckets_are_what_the_layout_says() {
        const SIZES: [usize; 6] = [1, 3, 6, 11, 25, 40];
        let mut waiting = vec![Vec::new()];
        let mut seen = 0;
        while let Some(entries) = waiting.pop() {
            let taken =
                |entries: &[(u16, usize, u8)]| entries.iter().map(|entry| HEADER_BYTES + entry.1).sum();
            let line = plainly(&entries);
            let all: usize = taken(&entries);
            for slot in Bucket::of(&line).slots(0) {
                let (mut left, mut without) = (line, entries.clone());
                without.remove(slot.number);
                cut(&mut left, all, slot);
                assert_eq!(left, plainly(&without), "{entries:?} without {slot:?}");
            }
            for len in SIZES {
                let number = u8::try_from(entries.len() + 1).unwrap();
                let header = u16::try_from(len).unwrap() | if len % 2 == 0 { ENDS } else { 0 };
                let more = [&entries[..], &[(header, len, number)]].concat();
                if more.len() > 5 && len != 1
                    || taken(&more) > BUCKET_BYTES - HEADER_BYTES
                    || more.len() > MOST_ENTRIES
                {
                    continue;
                }
                let mut put_in = line;
                put(&mut put_in, all, Header(header), &payload(len, number));
                assert_eq!(put_in, plainly(&more));
                waiting.push(more);
            }
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn a_payload_has_what_was_pushed() {
        for len in 0..=40u8 {
            let component: Vec<u8> = (1..=len).collect();
            let mut payload = Payload::new();
            payload.push(&component);
            payload.push_number(0x0403_0201, 4);
            payload.push_number(0x00ff_eedd, 3);
            let whole = [&component[..], &[1, 2, 3, 4, 0xdd, 0xee, 0xff]].concat();
            assert_eq!(payload.len(), whole.len());
            assert_eq!(payload.bytes[BUCKET_BYTES..][..whole.len()], whole);
            assert!(payload.bytes[BUCKET_BYTES + whole.len()..].iter().all(|&byte| byte == 0));
            assert!(payload.bytes[..BUCKET_BYTES].iter().all(|&byte| byte == 0));
        }
    }
}
