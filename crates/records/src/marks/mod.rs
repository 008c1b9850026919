//! [`Marks`]: the bytes that end cells and records, as bits, of 64 bytes at a time; [`Quotes`]: which of them
//! are within quotes.
//!
//! ```text
//! bytes    1 , " a , b " , 3 \n
//! ends     . # . . # . . # . #      separators and ends of lines
//! quotes   . . # . . . # . . .
//! inside   . . # # # # . . . .      an odd number of quotes so far: these ends are text
//! ```
//!
//! A loop over bytes takes a branch for each of them. Bits of 64 bytes take a few instructions, and then
//! there is a step for each end of a cell alone.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod ends;

pub(crate) use ends::Ends;

use std::ops::ControlFlow;

use crate::state::State;
use crate::word::equal;

/// The bytes of [`Marks`].
pub(crate) const WINDOW: usize = 64;
/// [`WINDOW`] in the type of a place of an end.
const BYTES: u32 = 64;
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

const fn low_bits(len: usize) -> u64 {
    if len < WINDOW { (1 << len) - 1 } else { u64::MAX }
}

/// Where within quotes a stream of marks is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quotes {
    /// All ones within quotes.
    inside: u64,
    /// 1 before the first byte of a cell.
    starts: u64,
    /// 1 after a closing quote.
    closed: u64,
    /// 1 after a closing quote and a carriage return.
    returned: u64,
    /// Whether there was a quote so far.
    has_any: bool,
    /// Whether a quote within quotes was so far, which is written as two.
    has_doubled: bool,
}

impl Quotes {
    pub(crate) const fn new(state: State) -> Self {
        let (inside, starts, closed) = match state {
            State::Start => (0, 1, 0),
            State::Bare => (0, 0, 0),
            State::Quoted => (u64::MAX, 0, 0),
            State::Closing => (0, 0, 1),
        };
        Self { inside, starts, closed, returned: 0, has_any: false, has_doubled: false }
    }

    pub(crate) const fn state(self) -> State {
        match self {
            Self { inside: 1.., .. } => State::Quoted,
            Self { starts: 1, .. } => State::Start,
            Self { closed: 1, .. } => State::Closing,
            _ => State::Bare,
        }
    }

    /// Whether a record can't end here: within quotes, or with a carriage return after a closing quote.
    pub(crate) const fn is_open(self) -> bool {
        self.inside | self.returned != 0
    }

    /// Whether there was a quote so far.
    pub(crate) const fn has_any(self) -> bool {
        self.has_any
    }

    /// Whether a quote within quotes was so far.
    pub(crate) const fn has_doubled(self) -> bool {
        self.has_doubled
    }

    /// Leaves out ends that are within quotes, of windows with so many bytes. `None` if a quote stands
    /// elsewhere than around a cell, or doubled in one: then it is text, or a flaw, and [`State`] has to
    /// tell.
    pub(crate) fn leave_out(&mut self, marks: &mut [Marks], len: usize) -> Option<()> {
        for (number, marks) in marks.iter_mut().enumerate() {
            *marks = self.outside(*marks, (len - number * WINDOW).min(WINDOW))?;
        }
        Some(())
    }

    /// The marks of so many bytes without ends that are within quotes.
    #[inline]
    fn outside(&mut self, marks: Marks, len: usize) -> Option<Marks> {
        let Self { inside, starts, closed, returned, has_doubled, .. } = *self;
        let last = len - 1;
        if marks.quotes | inside | closed | returned == 0 {
            self.starts = marks.ends >> last & 1;
            return Some(marks);
        }
        let inside = parity(marks.quotes) ^ inside;
        let marks = Marks { ends: marks.ends & !inside, lines: marks.lines & !inside, ..marks };
        let (opening, closing) = (marks.quotes & inside, marks.quotes & !inside);
        let after_end = marks.ends << 1 | starts;
        let after_closing = closing << 1 | closed;
        let before_line = marks.returns & after_closing;
        let is_wrong = opening & !(after_end | after_closing)
            | after_closing & !(marks.ends | opening | marks.returns)
            | (before_line << 1 | returned) & !marks.lines;
        let bit = |bits: u64| bits >> last & 1;
        *self = Self {
            inside: bit(inside).wrapping_neg(),
            starts: bit(marks.ends),
            closed: bit(closing),
            returned: bit(before_line),
            has_any: true,
            has_doubled: has_doubled || opening & after_closing != 0,
        };
        (is_wrong & low_bits(len) == 0).then_some(marks)
    }
}

/// Each bit: whether the number of ones up to it is odd.
const fn parity(bits: u64) -> u64 {
    let bits = bits ^ bits << 1;
    let bits = bits ^ bits << 2;
    let bits = bits ^ bits << 4;
    let bits = bits ^ bits << 8;
    let bits = bits ^ bits << 16;
    bits ^ bits << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bits of marks by place.
    fn bits(marks: &[Marks], of: impl Fn(&Marks) -> u64) -> Vec<bool> {
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

    proptest! {
        /// Where quotes are regular, ends and the state at the end are those of [`State`].
        #[test]
        fn ends_outside_of_quotes(text in "([\"]|[a,\r\n]|\"a*,?\n?a*\"[,\n]|a{0,30}[,\n]){0,40}", at in 0usize..4) {
            let states = [State::Start, State::Bare, State::Quoted, State::Closing];
            let (mut state, mut quotes, mut ends) = (states[at], Quotes::new(states[at]), Vec::new());
            let text = text.as_bytes();
            let found = each_windows(text, b',', |marks, at, len| {
                if quotes.leave_out(marks, len).is_none() {
                    return ControlFlow::Break(());
                }
                let are = bits(marks, |marks| marks.ends).into_iter().enumerate();
                ends.extend(are.filter(|(_, is)| *is).map(|(place, _)| at + place));
                ControlFlow::Continue(())
            });
            let mut right = Vec::new();
            for (at, &byte) in text.iter().enumerate() {
                let before = state;
                state = state.after(byte, b',');
                if state == State::Start {
                    right.push(at);
                }
                // Text after a closing quote, and a quote in text.
                let is_text = before == State::Closing && state == State::Bare && byte != b'\r';
                let is_quote = before == State::Bare && byte == b'"';
                prop_assert!(!(is_text || is_quote) || found.is_break());
            }
            if found.is_continue() {
                prop_assert_eq!(ends, right);
                prop_assert_eq!(quotes.state(), state);
            }
        }
    }
}
