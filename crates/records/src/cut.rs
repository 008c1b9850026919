//! The ends of records with cells: where a line ends outside of quotes.

use std::ops::ControlFlow;

use memchr::{memchr, memrchr};

use crate::marks::{Quotes, WINDOW, each_windows};
use crate::state::State;

/// Finds the ends of records in bytes that grow at their end.
#[derive(Clone, Debug)]
pub(crate) struct Cutter {
    /// The separator, if cells may be quoted.
    quoted_by: Option<u8>,
    state: State,
    searched: usize,
    boundary: usize,
}

impl Cutter {
    /// Starts before the first byte of a record. `quoted_by` is the separator, if cells may be quoted.
    pub(crate) fn new(quoted_by: Option<u8>) -> Self {
        Self { quoted_by, state: State::Start, searched: 0, boundary: 0 }
    }

    /// The end of the last whole record. The bytes start at a record, and continue those of the last call.
    pub(crate) fn cut(&mut self, bytes: &[u8]) -> usize {
        let fresh = &bytes[self.searched..];
        if fresh.is_empty() {
            return self.boundary;
        }
        match self.quoted_by {
            Some(separator) if self.state == State::Closing || memchr(b'"', fresh).is_some() => {
                let (state, end) = ends(fresh, self.state, separator);
                self.state = state;
                if let Some(end) = end {
                    self.boundary = self.searched + end;
                }
            }
            Some(_) if self.state == State::Quoted => {}
            quoted_by => {
                if let Some(at) = memrchr(b'\n', fresh) {
                    self.boundary = self.searched + at + 1;
                }
                let last = fresh.last().copied().unwrap_or_default();
                let is_start = last == b'\n' || Some(last) == quoted_by;
                self.state = if is_start { State::Start } else { State::Bare };
            }
        }
        self.searched = bytes.len();
        self.boundary
    }

    /// The end of those of whole records that come before the first of more than `most` bytes: all of them if
    /// none is as long. The bytes start at a record.
    pub(crate) fn short(&self, bytes: &[u8], most: usize) -> usize {
        let mut at = 0;
        while bytes.len() - at > most {
            match Self::new(self.quoted_by).cut(&bytes[at..at + most]) {
                0 => break,
                end => at += end,
            }
        }
        if bytes.len() - at > most { at } else { bytes.len() }
    }

    /// Says that so many bytes, up to an end of a record, are gone from the start.
    pub(crate) fn took(&mut self, bytes: usize) {
        self.searched = self.searched.saturating_sub(bytes);
        self.boundary = self.boundary.saturating_sub(bytes);
        if self.searched == 0 {
            self.state = State::Start;
        }
    }
}

/// The state after bytes, and the end of their last whole record, if there is one.
fn ends(bytes: &[u8], state: State, separator: u8) -> (State, Option<usize>) {
    let (mut quotes, mut end) = (Quotes::new(state), None);
    let is_regular = each_windows(bytes, separator, |marks, at, len| {
        if quotes.leave_out(marks, len).is_none() {
            return ControlFlow::Break(());
        }
        let last = marks.iter().enumerate().rev().find_map(|(number, marks)| {
            let last = marks.lines.checked_ilog2()?;
            Some(number * WINDOW + last as usize)
        });
        end = last.map(|last| at + last + 1).or(end);
        ControlFlow::Continue(())
    });
    if is_regular.is_continue() {
        return (quotes.state(), end);
    }
    let (mut state, mut end) = (state, None);
    for (at, &byte) in bytes.iter().enumerate() {
        state = state.after(byte, separator);
        if byte == b'\n' && state == State::Start {
            end = Some(at + 1);
        }
    }
    (state, end)
}

/// The end of the first record. `None` if the bytes end before it.
pub(crate) fn first_end(bytes: &[u8], quoted_by: Option<u8>) -> Option<usize> {
    let Some(separator) = quoted_by else { return memchr(b'\n', bytes).map(|at| at + 1) };
    let mut state = State::Start;
    bytes
        .iter()
        .position(|&byte| {
            state = state.after(byte, separator);
            byte == b'\n' && state == State::Start
        })
        .map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_are_cut_like_the_whole(text in "[\"a,\n]{0,40}", at in 0usize..40) {
            let (text, mut right, mut state) = (text.as_bytes(), 0, State::Start);
            for (at, &byte) in text.iter().enumerate() {
                state = state.after(byte, b',');
                if byte == b'\n' && state == State::Start {
                    right = at + 1;
                }
            }
            let mut cutter = Cutter::new(Some(b','));
            let first = cutter.cut(&text[..at.min(text.len())]);
            cutter.took(first);
            prop_assert_eq!(first + cutter.cut(&text[first..]), right);
            let mut rest = text;
            while let Some(end) = first_end(rest, Some(b',')) {
                rest = &rest[end..];
            }
            prop_assert_eq!(text.len() - rest.len(), right);
        }
    }

    #[test]
    fn lines_without_quotes() {
        let mut cutter = Cutter::new(None);
        assert_eq!(cutter.cut(b"a\"b\nc"), 4);
        cutter.took(4);
        assert_eq!(cutter.cut(b"c\n"), 2);
    }
}
