//! [`Quotes`]: which ends are within quotes, and so are text.
//!
//! ```text
//! bytes    1 , " a , b " , 3 \n
//! ends     . # . . # . . # . #
//! inside   . . # # # # . . . .      an odd number of quotes so far
//! outside  . # . . . . . # . #      the ends that count
//! ```

use super::{Marks, WINDOW, low_bits};
use crate::state::State;

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
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::*;
    use crate::marks::each_windows;
    use crate::marks::tests::bits;

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
