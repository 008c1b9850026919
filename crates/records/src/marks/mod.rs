//! [`Marks`]: the bytes that end cells and records, as bits, of 64 bytes at a time.
//!
//! ```text
//! bytes    1 , " a , b " , 3 \n
//! ends     . # . . # . . # . #      separators and ends of lines
//! quotes   . . # . . . # . . .
//! ```
//!
//! A loop over bytes takes a branch for each of them. Bits of 64 bytes take a few instructions, and then
//! there is a step for each end of a cell alone.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod ends;
mod quotes;

pub(crate) use ends::Ends;
pub(crate) use quotes::Quotes;

use std::ops::ControlFlow;

use crate::word::equal;

/// The bytes of [`Marks`].
pub(crate) const WINDOW: usize = u64::BITS as usize;
/// The number of [`Marks`] that are made together: of 4 KiB, so that all stay in the nearest cache.
pub(crate) const TOGETHER: usize = 64;

/// The marks of 64 bytes; the first byte is the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Separators and ends of lines.
    pub(crate) ends: u64,
    /// Ends of lines.
    pub(crate) lines: u64,
    pub(crate) quotes: u64,
    /// Carriage returns.
    pub(crate) returns: u64,
}

impl Marks {
    const NONE: Self = Self { ends: 0, lines: 0, quotes: 0, returns: 0 };

    /// The marks of the first `len` bytes.
    const fn first(self, len: usize) -> Self {
        let bits = low_bits(len);
        let Self { ends, lines, quotes, returns } = self;
        Self { ends: ends & bits, lines: lines & bits, quotes: quotes & bits, returns: returns & bits }
    }
}

/// Calls `each` with the marks of all bytes in order, the place of the first of these bytes, and their
/// number, until it breaks. The last window may have fewer bytes than others.
#[inline]
pub(crate) fn each_windows<B>(
    bytes: &[u8],
    separator: u8,
    mut each: impl FnMut(&mut [Marks], usize, usize) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut marks = [Marks::NONE; TOGETHER];
    for (number, bytes) in bytes.chunks(TOGETHER * WINDOW).enumerate() {
        let (windows, rest) = bytes.as_chunks::<WINDOW>();
        read(windows, separator, &mut marks);
        if let Some(last) = marks.get_mut(windows.len()).filter(|_| !rest.is_empty()) {
            *last = of_rest(rest, separator);
        }
        let count = bytes.len().div_ceil(WINDOW);
        each(&mut marks[..count], number * TOGETHER * WINDOW, bytes.len())?;
    }
    ControlFlow::Continue(())
}

/// Reads the marks of at most [`TOGETHER`] windows.
#[inline]
fn read(windows: &[[u8; WINDOW]], separator: u8, into: &mut [Marks; TOGETHER]) {
    #[cfg(target_arch = "x86_64")]
    if avx2::read(windows, separator, into) {
        return;
    }
    for (window, into) in windows.iter().zip(into) {
        *into = of_window(window, separator);
    }
}

/// The marks of fewer bytes than a window has.
fn of_rest(bytes: &[u8], separator: u8) -> Marks {
    let mut window = [0; WINDOW];
    window[..bytes.len()].copy_from_slice(bytes);
    // The separator may be 0.
    of_window(&window, separator).first(bytes.len())
}

/// The marks of a window, eight bytes at a time.
fn of_window(window: &[u8; WINDOW], separator: u8) -> Marks {
    let mut marks = Marks::NONE;
    for (at, word) in window.as_chunks().0.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Each flag goes to the highest byte.
        let bits = |byte: u8| (equal(word, byte) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at);
        let lines = bits(b'\n');
        marks.lines |= lines;
        marks.ends |= lines | bits(separator);
        marks.quotes |= bits(b'"');
        marks.returns |= bits(b'\r');
    }
    marks
}

pub(crate) const fn low_bits(len: usize) -> u64 {
    if len < WINDOW { (1 << len) - 1 } else { u64::MAX }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bits of marks by place.
    pub(super) fn bits(marks: &[Marks], of: impl Fn(&Marks) -> u64) -> Vec<bool> {
        marks
            .iter()
            .flat_map(|marks| (0..WINDOW).map(|at| of(marks) >> at & 1 == 1).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn marks_of_every_length_and_byte() {
        let bytes: Vec<u8> = (0..=255).cycle().step_by(7).take(WINDOW * TOGETHER + 300).collect();
        for separator in [0, b',', 0xff] {
            for len in (0..200).chain([bytes.len() - 1, bytes.len()]) {
                let (bytes, mut place) = (&bytes[..len], 0);
                let ended = each_windows(bytes, separator, |marks, at, len| {
                    assert_eq!((at, marks.len()), (place, len.div_ceil(WINDOW)));
                    place += len;
                    let bytes = &bytes[at..place];
                    for (window, marks) in bytes.chunks(WINDOW).zip(&*marks) {
                        assert_eq!(of_rest(window, separator), *marks);
                    }
                    let is = |wanted: &[u8]| {
                        let mut is: Vec<_> = bytes.iter().map(|byte| wanted.contains(byte)).collect();
                        is.resize(marks.len() * WINDOW, false);
                        is
                    };
                    assert_eq!(bits(marks, |marks| marks.ends), is(&[separator, b'\n']));
                    assert_eq!(bits(marks, |marks| marks.lines), is(b"\n"));
                    assert_eq!(bits(marks, |marks| marks.quotes), is(b"\""));
                    assert_eq!(bits(marks, |marks| marks.returns), is(b"\r"));
                    ControlFlow::<()>::Continue(())
                });
                assert_eq!((ended, place), (ControlFlow::Continue(()), len));
            }
        }
    }
}
