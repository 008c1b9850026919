//! Records with cells between separators.

use memchr::{memchr, memchr2_iter};

use crate::cut::State;
use crate::records::{Cell, Content, Flaw, Record, Records};

/// The form of such records.
#[derive(Clone, Debug)]
pub(crate) struct Delimited {
    pub(crate) separator: u8,
    /// Whether cells may be quoted.
    pub(crate) quotes: bool,
    /// The number of columns.
    pub(crate) columns: usize,
    /// The wanted columns in their order in a record, each with its index among the wanted.
    pub(crate) order: Vec<(usize, usize)>,
}

impl Delimited {
    /// Scans a block of whole records.
    pub(crate) fn scan(&self, block: &[u8], records: &mut Records) {
        if self.quotes && memchr(b'"', block).is_some() {
            self.scan_quoted(block, records);
        } else {
            self.scan_bare(block, records);
        }
    }

    fn scan_bare(&self, block: &[u8], records: &mut Records) {
        let (mut start, mut from, mut column, mut next) = (0, 0, 0, 0);
        records.open();
        let ends = memchr2_iter(self.separator, b'\n', block);
        let last = (!block.is_empty() && !block.ends_with(b"\n")).then_some(block.len());
        for at in ends.chain(last) {
            let is_end = block.get(at) != Some(&self.separator);
            let has_return = is_end && at < block.len() && at > from && block[at - 1] == b'\r';
            let to = at - usize::from(has_return);
            while let Some(&(_, wanted)) = self.order.get(next).filter(|&&(place, _)| place == column) {
                records.last()[wanted] = Cell { start: from, len: to - from, is_decoded: false };
                next += 1;
            }
            column += 1;
            from = at + 1;
            if is_end {
                let end = from.min(block.len());
                let content = self.content(column, to == start, None);
                records.close(Record { start, insert: to, end, content });
                (start, column, next) = (end, 0, 0);
                if end < block.len() {
                    records.open();
                }
            }
        }
        if block.is_empty() {
            records.cells.clear();
        }
    }

    fn scan_quoted(&self, block: &[u8], records: &mut Records) {
        let mut at = 0;
        while at < block.len() {
            let start = at;
            records.open();
            let (mut column, mut next, mut flaw) = (0, 0, None);
            // Each turn is a cell.
            let (insert, end) = loop {
                let from = at;
                let is_quoted = block.get(at) == Some(&b'"');
                let (mut state, mut closed, mut doubled) = (State::Start, None, false);
                let end = loop {
                    let Some(&byte) = block.get(at) else { break None };
                    let before = state;
                    state = state.after(byte, self.separator);
                    match (before, state) {
                        (State::Quoted, State::Closing) => closed = Some(at),
                        (State::Closing, State::Quoted) => doubled = true,
                        (_, State::Start) => break Some(byte),
                        _ => {}
                    }
                    at += 1;
                };
                let is_last = end != Some(self.separator);
                let has_return = end == Some(b'\n') && at > from && block[at - 1] == b'\r';
                let to = at - usize::from(has_return);
                let inner = match (is_quoted, closed) {
                    (false, _) => from..to,
                    // The last quote of the cell has to be its last byte.
                    (true, Some(quote)) if quote + 1 == to && state != State::Quoted => from + 1..quote,
                    (true, _) => {
                        let is_open = end.is_none() && state == State::Quoted;
                        flaw = flaw.or(Some(if is_open { Flaw::OpenQuote } else { Flaw::AfterQuote }));
                        from..from
                    }
                };
                while let Some(&(_, wanted)) = self.order.get(next).filter(|&&(place, _)| place == column) {
                    let cell = if doubled {
                        let start = records.decoded.len();
                        undouble(&block[inner.clone()], &mut records.decoded);
                        Cell { start, len: records.decoded.len() - start, is_decoded: true }
                    } else {
                        Cell { start: inner.start, len: inner.len(), is_decoded: false }
                    };
                    records.last()[wanted] = cell;
                    next += 1;
                }
                column += 1;
                at = (at + 1).min(block.len());
                if is_last {
                    break (to, at);
                }
            };
            let content = self.content(column, insert == start, flaw);
            records.close(Record { start, insert, end, content });
        }
    }

    fn content(&self, columns: usize, is_blank: bool, flaw: Option<Flaw>) -> Content {
        match flaw {
            Some(flaw) => Content::Flawed(flaw),
            // A blank line may be the only cell.
            None if is_blank && self.columns > 1 => Content::Blank,
            None if columns != self.columns => {
                Content::Flawed(Flaw::Columns { found: columns, wanted: self.columns })
            }
            None => Content::Whole { is_bare: false },
        }
    }
}

/// Writes the inside of a quoted cell with single quotes.
fn undouble(inner: &[u8], into: &mut Vec<u8>) {
    let mut rest = inner;
    while let Some(at) = memchr(b'"', rest) {
        into.extend_from_slice(&rest[..=at]);
        rest = &rest[(at + 2).min(rest.len())..];
    }
    into.extend_from_slice(rest);
}
