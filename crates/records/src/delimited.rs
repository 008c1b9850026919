//! Records with cells between separators.

use std::ops::{ControlFlow, Range};

use memchr::memchr;

use crate::marks::{Ends, Marks, Quotes, each_windows};
use crate::records::{Cell, Content, Flaw, Record, Records};
use crate::state::State;

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
    /// Scans whole records of about so many bytes.
    pub(crate) fn scan(&self, block: &[u8], bytes: usize, records: &mut Records) {
        let has_quotes = self.scan_marks(block, bytes, records).unwrap_or_else(|| {
            records.begin(self.order.len());
            self.scan_states(block, bytes, records);
            true
        });
        records.count_lines(block, !has_quotes);
    }

    /// Scans by the marks of bytes. Returns whether there are quotes. `None` if one stands where [`State`]
    /// has to tell what it is, or if the block is too large.
    fn scan_marks(&self, block: &[u8], bytes: usize, records: &mut Records) -> Option<bool> {
        let end = u32::try_from(block.len()).ok()?;
        let (mut ends, mut quotes, mut start) = (Ends::default(), Quotes::new(State::Start), 0);
        let scanned = each_windows(block, self.separator, |marks, at, len| {
            if self.quotes && quotes.leave_out(marks, len).is_none() {
                return ControlFlow::Break(None);
            }
            #[allow(clippy::cast_possible_truncation)] // less than the end
            ends.push(at as u32, marks);
            start = self.close(block, start, &mut ends, quotes, records);
            let is_enough = start > 0 && (bytes..block.len()).contains(&(at + len));
            if is_enough { ControlFlow::Break(Some(quotes.has_any())) } else { ControlFlow::Continue(()) }
        });
        if let ControlFlow::Break(ended) = scanned {
            return ended;
        }
        if quotes.is_open() {
            return None;
        }
        if !block.is_empty() && !block.ends_with(b"\n") {
            ends.push(end, &[Marks { ends: 1, lines: 1, ..Marks::default() }]);
            self.close(block, start, &mut ends, quotes, records);
        }
        Some(quotes.has_any())
    }

    /// Makes records of the ends that were found, the first of which starts at a place. `quotes` is what
    /// there were so far. Returns the start of the next record.
    fn close(
        &self,
        block: &[u8],
        mut start: usize,
        found: &mut Ends,
        quotes: Quotes,
        records: &mut Records,
    ) -> usize {
        let Records { records, cells, decoded, wanted, has_others, .. } = records;
        let mut open = cells.len();
        cells.resize(open + found.records().len() * *wanted, Cell::default());
        for ends in found.records() {
            let end_of = |column: usize| ends[column] as usize;
            let start_of = |column: usize| if column == 0 { start } else { end_of(column - 1) + 1 };
            let at = end_of(ends.len() - 1);
            let is_line = at < block.len();
            let has_return = is_line && at > start_of(ends.len() - 1) && block[at - 1] == b'\r';
            let (insert, end) = (at - usize::from(has_return), at + usize::from(is_line));
            let content = self.content(ends.len(), insert == start, None);
            if matches!(content, Content::Whole { .. }) {
                let cells = &mut cells[open..][..*wanted];
                for &(column, wanted) in &self.order {
                    let (from, to) = (start_of(column), end_of(column).min(insert));
                    let is_quoted = quotes.has_any() && block[from..to].first() == Some(&b'"');
                    let inner = if is_quoted { from + 1..to - 1 } else { from..to };
                    let doubled =
                        is_quoted && quotes.has_doubled() && memchr(b'"', &block[inner.clone()]).is_some();
                    cells[wanted] = Cell::of(block, inner, doubled, decoded);
                }
            } else {
                *has_others = true;
            }
            records.push(Record { start, insert, end, content });
            start = end;
            open += *wanted;
        }
        found.forget();
        start
    }

    /// Scans byte by byte, whatever quotes are.
    fn scan_states(&self, block: &[u8], bytes: usize, records: &mut Records) {
        let mut at = 0;
        while at < block.len().min(bytes) {
            let start = at;
            records.open();
            let (mut column, mut next, mut flaw) = (0, 0, None);
            // Each turn is a cell.
            let (insert, end) = loop {
                let from = at;
                let is_quoted = self.quotes && block.get(at) == Some(&b'"');
                let (mut state, mut closed, mut doubled) = (State::Start, None, false);
                let end = loop {
                    let Some(&byte) = block.get(at) else { break None };
                    let before = state;
                    state = match byte {
                        b'"' if !self.quotes => State::Bare,
                        _ => state.after(byte, self.separator),
                    };
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
                    let cell = Cell::of(block, inner.clone(), doubled, &mut records.decoded);
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

impl Cell {
    /// The cell of these bytes. `doubled` says that quotes among them are written as two.
    #[inline]
    fn of(block: &[u8], inner: Range<usize>, doubled: bool, decoded: &mut Vec<u8>) -> Self {
        if !doubled {
            return Self::of_block(inner);
        }
        let start = decoded.len();
        undouble(&block[inner], decoded);
        Self::decoded_from(start, decoded)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records as they are compared: the flaws, and the cells.
    fn told(records: &Records, block: &[u8]) -> Vec<(Record, Vec<Vec<u8>>)> {
        let cells = |at| (0..records.wanted).map(|wanted| records.cell(block, at, wanted).to_vec()).collect();
        records.records().iter().enumerate().map(|(at, &record)| (record, cells(at))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The marks of bytes give the records that states give, in a block and in parts of it.
        #[test]
        fn records_by_marks_and_by_states(
            cells in prop::collection::vec(
                prop_oneof![
                    6 => "[a-z\\.]{0,12}",
                    3 => "\"([a,\n]|\"\"){0,20}\"",
                    1 => "[a\",\r]{0,4}",
                ],
                0..200,
            ),
            ends in prop::collection::vec(prop::sample::select(&[",", ",", ",", "\n", "\r\n"]), 200),
            quotes: bool,
            part in 1usize..2000,
        ) {
            let text: String = cells.iter().zip(&ends).flat_map(|(cell, end)| [cell, *end]).collect();
            for text in [&*text, text.trim_end_matches(['\n', '\r'])] {
                let block = text.as_bytes();
                let form = Delimited { separator: b',', quotes, columns: 3, order: vec![(0, 1), (2, 0), (2, 2)] };
                let all = |scan: &mut dyn FnMut(&mut Records)| {
                    let mut records = Records::default();
                    records.begin(form.order.len());
                    scan(&mut records);
                    records
                };
                let right = all(&mut |records| {
                    form.scan_states(block, block.len(), records);
                    records.count_lines(block, false);
                });
                let scanned = all(&mut |records| form.scan(block, block.len(), records));
                prop_assert_eq!(told(&scanned, block), told(&right, block));
                prop_assert_eq!(scanned.lines(), right.lines());
                prop_assert_eq!(scanned.end(), block.len());
                let (mut at, mut parts, mut lines) = (0, Vec::new(), 0);
                while at < block.len() {
                    let rest = &block[at..];
                    let records = all(&mut |records| form.scan(rest, part, records));
                    parts.extend(told(&records, rest).into_iter().map(|(mut record, cells)| {
                        record.start += at;
                        record.insert += at;
                        record.end += at;
                        (record, cells)
                    }));
                    prop_assert!(records.end() >= part.min(rest.len()));
                    at += records.end();
                    lines += records.lines();
                }
                prop_assert_eq!(parts, told(&right, block));
                prop_assert_eq!(lines, right.lines());
            }
        }
    }

    #[test]
    fn marks_are_enough_for_usual_quotes() {
        let form = Delimited { separator: b',', quotes: true, columns: 2, order: vec![(1, 0)] };
        let by_marks = |text: &str| {
            let mut records = Records::default();
            records.begin(1);
            form.scan_marks(text.as_bytes(), text.len(), &mut records)
        };
        for text in ["\"a,b\",\"c \"\"d\"\"\"\r\n\"\",\"\n\"\n", "\"\"\"\",x", "\"a\",\"b\""] {
            assert_eq!(by_marks(text), Some(true), "{text}");
        }
        assert_eq!(by_marks("a,b\n"), Some(false));
        for text in ["5\" disk,x\n", "\"a\"b,x\n", "\"a,x\n", "x,\"a\"\r", "x,\"a\"\rb\n"] {
            assert_eq!(by_marks(text), None, "{text}");
        }
    }
}
