//! [`Records`]: the records of a block as ranges of its bytes, and the [`Flaw`]s of those that are wrong.

use std::fmt;
use std::ops::Range;

use crate::json::Known;

/// The records of one block, and their wanted cells. Its memory is used again for the next block.
#[derive(Debug, Default)]
pub struct Records {
    pub(crate) records: Vec<Record>,
    /// The wanted cells of each record, in the order of the wanted columns.
    pub(crate) cells: Vec<Cell>,
    /// Cells whose bytes are not those of the block.
    pub(crate) decoded: Vec<u8>,
    pub(crate) wanted: usize,
    /// Whether some record is a blank line or wrong.
    pub(crate) has_others: bool,
    /// The number of ends of lines.
    pub(crate) lines: u64,
    /// Names and order of JSON's members in the records before.
    pub(crate) known: Known,
}

/// One record: a range of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The first byte.
    pub start: usize,
    /// The place of new columns. Between it and the end is the record's own end.
    pub insert: usize,
    /// The end, after the end of line.
    pub end: usize,
    /// The content.
    pub content: Content,
}

/// The content of a [`Record`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A record that takes new columns.
    Whole {
        /// Whether it is an object without members, so no comma comes before the first new one.
        is_bare: bool,
    },
    /// A blank line, which is no record.
    Blank,
    /// A record that is wrong. Its cells are empty.
    Flawed(Flaw),
}

/// The reason why a record can't take new columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// The record has another number of columns than the header.
    Columns {
        /// The number that it has.
        found: usize,
        /// The number that the header has.
        wanted: usize,
    },
    /// Text follows the closing quote of a cell.
    AfterQuote,
    /// A quote is open at the end.
    OpenQuote,
    /// The record is not valid JSON.
    NotJson {
        /// The reason.
        what: &'static str,
        /// The byte within the record, from 1.
        byte: usize,
    },
    /// The record is JSON, but no object.
    NotObject,
    /// The record has a member with the name of a new one. The number is that of the new column.
    Taken(usize),
    /// A wanted member is there twice. The number is that of the wanted column.
    Twice(usize),
    /// A wanted member is neither text nor null. The number is that of the wanted column.
    NotText(usize),
}

impl Flaw {
    /// The reason without its details, for counting.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Columns { .. } => "another number of columns than the header",
            Self::AfterQuote => "text after the closing quote of a cell",
            Self::OpenQuote => "a quote that is not closed",
            Self::NotJson { .. } => "not JSON",
            Self::NotObject => "no JSON object",
            Self::Taken(_) => "has a member with the name of a new one",
            Self::Twice(_) => "has a wanted member twice",
            Self::NotText(_) => "a wanted member is not text",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { found, wanted } => write!(f, "{found} columns, the header has {wanted}"),
            Self::NotJson { what, byte } => write!(f, "not JSON: {what}, byte {byte}"),
            other => f.write_str(other.reason()),
        }
    }
}

/// The place of a cell. There are several for each record, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    start: usize,
    /// The number of bytes, and [`Cell::DECODED`] for those that are not the block's.
    len: usize,
}

impl Cell {
    /// More than any number of bytes.
    const DECODED: usize = 1 << (usize::BITS - 1);

    /// A cell of the block.
    #[inline]
    pub(crate) const fn of_block(bytes: Range<usize>) -> Self {
        Self { start: bytes.start, len: bytes.end - bytes.start }
    }

    /// The decoded bytes from a place to their end.
    pub(crate) const fn decoded_from(start: usize, decoded: &[u8]) -> Self {
        Self { start, len: (decoded.len() - start) | Self::DECODED }
    }

    #[inline]
    const fn is_decoded(self) -> bool {
        self.len & Self::DECODED != 0
    }
}

impl Records {
    /// The records, in order.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Whether all records take new columns: none is a blank line, and none is wrong.
    #[must_use]
    pub const fn are_whole(&self) -> bool {
        !self.has_others
    }

    /// The number of ends of lines that the records have. A record with quotes may have several.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// A wanted cell of a record, without quotes and escapes. Empty if the record has none.
    ///
    /// `block` is the block that was scanned. Panics if there is no such record or column.
    #[inline]
    #[must_use]
    pub fn cell<'r>(&'r self, block: &'r [u8], record: usize, wanted: usize) -> &'r [u8] {
        assert!(wanted < self.wanted, "a column that was wanted");
        self.text(block, &self.cells[record * self.wanted + wanted]).0
    }

    /// The cells of a wanted column: each, and the bytes from its start on, among which are those behind it.
    #[inline]
    pub(crate) fn column<'r>(
        &'r self,
        block: &'r [u8],
        wanted: usize,
    ) -> impl Iterator<Item = (&'r [u8], &'r [u8])> {
        assert!(wanted < self.wanted, "a column that was wanted");
        self.cells.chunks_exact(self.wanted).map(move |cells| self.text(block, &cells[wanted]))
    }

    #[inline]
    fn text<'r>(&'r self, block: &'r [u8], cell: &Cell) -> (&'r [u8], &'r [u8]) {
        let of = if cell.is_decoded() { &self.decoded } else { block };
        let behind = &of[cell.start..];
        (&behind[..cell.len & !Cell::DECODED], behind)
    }

    /// Forgets the records, and keeps the memory.
    pub(crate) fn begin(&mut self, wanted: usize) {
        self.records.clear();
        self.cells.clear();
        self.decoded.clear();
        self.has_others = false;
        self.wanted = wanted;
    }

    /// The end of the last record.
    pub(crate) fn end(&self) -> usize {
        self.records.last().map_or(0, |record| record.end)
    }

    /// Notes the number of ends of lines. `is_each` says that there is a line for each record.
    pub(crate) fn count_lines(&mut self, block: &[u8], is_each: bool) {
        let block = &block[..self.end()];
        self.lines = if is_each {
            let is_cut = !block.is_empty() && !block.ends_with(b"\n");
            self.records.len() as u64 - u64::from(is_cut)
        } else {
            memchr::memchr_iter(b'\n', block).count() as u64
        };
    }

    /// Takes the escapes out of Zeek's cells: `\xHH` is a byte, and `\\` a backslash.
    pub(crate) fn unescape(&mut self, block: &[u8]) {
        if memchr::memchr(b'\\', &block[..self.end()]).is_none() {
            return;
        }
        let Self { cells, decoded, .. } = self;
        for cell in cells.iter_mut().filter(|cell| !cell.is_decoded()) {
            let bytes = &block[cell.start..][..cell.len];
            if memchr::memchr(b'\\', bytes).is_some() {
                let start = decoded.len();
                unescape(bytes, decoded);
                *cell = Cell::decoded_from(start, decoded);
            }
        }
    }

    /// Empties the cells that are one of these marks.
    pub(crate) fn clear(&mut self, block: &[u8], marks: &[&[u8]]) {
        for cell in self.cells.iter_mut().filter(|cell| !cell.is_decoded()) {
            if marks.contains(&&block[cell.start..][..cell.len]) {
                *cell = Cell::default();
            }
        }
    }

    /// Starts a record: its cells are empty.
    pub(crate) fn open(&mut self) {
        self.cells.resize(self.cells.len() + self.wanted, Cell::default());
    }

    /// Empties the cells of the record that was opened last.
    pub(crate) fn empty(&mut self) {
        // Filling an empty list stores nothing at an address of no page, which some CPUs do slowly.
        if self.wanted > 0 {
            self.last().fill(Cell::default());
        }
    }

    /// The cells of the record that was opened last.
    pub(crate) fn last(&mut self) -> &mut [Cell] {
        let from = self.cells.len() - self.wanted;
        &mut self.cells[from..]
    }

    /// Ends the record that was opened last.
    pub(crate) fn close(&mut self, record: Record) {
        if !matches!(record.content, Content::Whole { .. }) {
            self.has_others = true;
            self.empty();
        }
        self.records.push(record);
    }
}

/// Writes a cell of Zeek without its escapes. Other backslashes stay.
fn unescape(cell: &[u8], into: &mut Vec<u8>) {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut rest = cell;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        let byte = match &rest[at + 1..] {
            [b'x', high, low, ..] => digit(high).zip(digit(low)).map(|(high, low)| (high << 4 | low, 4)),
            [b'\\', ..] => Some((b'\\', 2)),
            _ => None,
        };
        let (byte, len) = byte.unwrap_or((b'\\', 1));
        into.push(byte);
        rest = &rest[at + len..];
    }
    into.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_zeek() {
        for (cell, right) in [
            ("b\\xc3\\xbccher.de", "bücher.de"),
            ("a\\\\x41", "a\\x41"),
            ("\\x4", "\\x4"),
            ("\\xzz\\", "\\xzz\\"),
            ("\\X41", "\\X41"),
        ] {
            let mut text = Vec::new();
            unescape(cell.as_bytes(), &mut text);
            assert_eq!(String::from_utf8_lossy(&text), right, "{cell}");
        }
    }
}
