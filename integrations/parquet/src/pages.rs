//! Memory of a column's pages: how many rows of a row group can be decoded together.
//!
//! ```text
//! header: type, sizes, values │ page as it is compressed │ header │ page │ …
//! ```
//!
//! A page of a few bytes may unpack to any size, so sizes are taken from the headers before a page is
//! decoded. They lie before each page in Thrift's compact form. What a batch of rows holds is bounded by
//! [`FREE`], or by [`RATIO`] times the bytes in the file where that is more.
//!
//! - Values of text lie in the pages they come from, and rows of a dictionary share them. So a batch holds
//!   the pages that its rows are in, each once.
//! - With `DELTA_BYTE_ARRAY` a value may be as long as a page and take no more than a byte in it. The same is
//!   true of a dictionary of Arrow where not all pages have indexes: its values are copied. So each row
//!   counts as long as the largest page.

use std::io::{self, BufReader, Read};

use anyhow::{Context, Result, bail};
use parquet::basic::Type;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

use crate::shared_file::{Place, SharedFile};

/// The bytes that any batch may unpack to.
pub(crate) const FREE: u64 = 64 << 20;
/// How many times its size in the file a batch may unpack to, beyond [`FREE`].
const RATIO: u64 = 100;

/// The numbers of encodings in a header.
const DELTA_BYTE_ARRAY: u64 = 7;
const BY_DICTIONARY: [u64; 2] = [2, 8];

/// What the header of a page says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Page {
    unpacked: u64,
    packed: u64,
    /// The number of values, and of rows where each has one. `None` for a dictionary.
    rows: Option<u64>,
    encoding: u64,
}

impl Page {
    fn is_too_large(&self) -> bool {
        self.unpacked > FREE.max(self.packed.saturating_mul(RATIO))
    }
}

/// The rows of a column in a row group that can be decoded together, at most `most`. `shares` says whether
/// rows share the values of a dictionary only while all pages have indexes.
pub(crate) fn rows_together(
    file: &SharedFile,
    chunk: &ColumnChunkMetaData,
    shares: bool,
    most: usize,
) -> Result<usize> {
    let pages = pages(file, chunk)?;
    for page in &pages {
        if page.is_too_large() {
            bail!(
                "column {:?} has a page of {} bytes that unpacks to {}: the limit is {} MiB, or {RATIO} times its size",
                chunk.column_path().string(),
                page.packed,
                page.unpacked,
                FREE >> 20
            );
        }
    }
    let is_text = chunk.column_type() == Type::BYTE_ARRAY;
    let of_data = || pages.iter().filter(|page| page.rows.is_some());
    let copies = is_text
        && (of_data().any(|page| page.encoding == DELTA_BYTE_ARRAY)
            || shares && !of_data().all(|page| BY_DICTIONARY.contains(&page.encoding)));
    let largest = pages.iter().map(|page| page.unpacked).max().unwrap_or(0);
    let mut rows = most;
    while rows > 1 && (copies && rows as u64 * largest > FREE || holds_too_much(&pages, rows as u64)) {
        rows /= 2;
    }
    Ok(rows)
}

/// Whether pages that so many rows lie in unpack to too much together with the dictionary.
fn holds_too_much(pages: &[Page], rows: u64) -> bool {
    // What is before each page of data: rows, and bytes as they are unpacked and packed.
    let (mut before, mut dictionary) = (vec![[0; 3]], [0; 3]);
    for page in pages {
        let last = before[before.len() - 1];
        let of_page = [page.rows.unwrap_or(0), page.unpacked, page.packed];
        let sum = |to: [u64; 3]| [to[0] + of_page[0], to[1] + of_page[1], to[2] + of_page[2]];
        match page.rows {
            Some(_) => before.push(sum(last)),
            None => dictionary = sum(dictionary),
        }
    }
    let count = before.len() - 1;
    let mut to = 0;
    (0..count).any(|from| {
        to = to.max(from);
        // The first row may be the last of its page, and the last row the first of its page.
        while to + 1 < count && before[to + 1][0] - before[from + 1][0] + 2 <= rows {
            to += 1;
        }
        let bytes = |of: usize| before[to + 1][of] - before[from][of] + dictionary[of];
        to > from && Page { unpacked: bytes(1), packed: bytes(2), ..Page::default() }.is_too_large()
    })
}

/// The pages of a column in a row group, by their headers.
fn pages(file: &SharedFile, chunk: &ColumnChunkMetaData) -> Result<Vec<Page>> {
    let (mut at, length) = chunk.byte_range();
    let end =
        at.checked_add(length).filter(|&end| end <= file.len()).context("a column ends after the file")?;
    let mut pages = Vec::new();
    while at < end {
        let mut header = Header { from: file.get_read(at)?, bytes: 0 };
        let page = header.page().with_context(|| format!("a damaged header of a page at byte {at}"))?;
        at += header.bytes + page.packed;
        pages.push(page);
    }
    Ok(pages)
}

/// A header that is read: structs of fields, each with its type.
struct Header {
    from: BufReader<Place>,
    bytes: u64,
}

/// Types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The structs within structs that are passed over. There are two in what is written.
const DEEPEST: u32 = 8;

impl Header {
    fn page(&mut self) -> io::Result<Page> {
        let mut page = Page::default();
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            match (field, kind) {
                (2, I32) => page.unpacked = self.size()?,
                (3, I32) => page.packed = self.size()?,
                // Data of the first and of the second form: both begin with the number of values.
                (5 | 8, STRUCT) => {
                    let encoding = if field == 5 { 2 } else { 4 };
                    let mut last = 0;
                    while let Some((field, kind)) = self.field(&mut last)? {
                        match (field, kind) {
                            (1, I32) => page.rows = Some(self.size()?),
                            (field, I32) if field == encoding => page.encoding = self.size()?,
                            (_, kind) => self.skip(kind, DEEPEST)?,
                        }
                    }
                }
                (_, kind) => self.skip(kind, DEEPEST)?,
            }
        }
        Ok(page)
    }

    /// The number and the type of the next field. `None` at the end of a struct.
    fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let byte = self.byte()?;
        let (delta, kind) = (byte >> 4, byte & 15);
        if kind == 0 {
            return Ok(None);
        }
        *last = if delta == 0 { self.number()? } else { *last + i64::from(delta) };
        Ok(Some((*last, kind)))
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        self.bytes += 1;
        Ok(byte[0])
    }

    /// A number in groups of 7 bits, the lowest first.
    fn groups(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged("a number of too many bytes"))
    }

    /// A number with its sign in the lowest bit.
    fn number(&mut self) -> io::Result<i64> {
        let groups = self.groups()?;
        // At most 62 bits.
        Ok((groups >> 1).cast_signed() ^ -(groups & 1).cast_signed())
    }

    fn size(&mut self) -> io::Result<u64> {
        let number = self.number()?;
        u64::try_from(i32::try_from(number).unwrap_or(-1)).map_err(|_| damaged("a size out of range"))
    }

    fn skip(&mut self, kind: u8, deepest: u32) -> io::Result<()> {
        let deepest = deepest.checked_sub(1).ok_or_else(|| damaged("too many structs within structs"))?;
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.groups().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.groups()?;
                self.pass(length)
            }
            LIST | SET => {
                let byte = self.byte()?;
                let count = if byte >> 4 == 15 { self.groups()? } else { u64::from(byte >> 4) };
                self.skip_all(&[byte & 15], count, deepest)
            }
            MAP => {
                let count = self.groups()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                self.skip_all(&[kinds >> 4, kinds & 15], count, deepest)
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, deepest)?;
                }
                Ok(())
            }
            _ => Err(damaged("a field of an unknown type")),
        }
    }

    /// Skips elements of a list, of which one of a truth value takes a byte.
    fn skip_all(&mut self, kinds: &[u8], count: u64, deepest: u32) -> io::Result<()> {
        for _ in 0..count {
            for &kind in kinds {
                self.skip(if matches!(kind, TRUE | FALSE) { BYTE } else { kind }, deepest)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        match io::copy(&mut (&mut self.from).take(bytes), &mut io::sink())? {
            passed if passed == bytes => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: u64, unpacked: u64) -> Page {
        Page { unpacked, packed: 10, rows: Some(rows), encoding: 0 }
    }

    #[test]
    fn a_batch_holds_the_pages_that_its_rows_lie_in() {
        let third = FREE / 3;
        let pages = [page(100, third); 9];
        // Rows 100, 101 to 200, and 201 lie in three pages; one more lies in the fourth at the earliest after
        // another hundred.
        for (rows, holds) in [(1, false), (2, false), (102, false), (201, false), (202, true), (9000, true)] {
            assert_eq!(holds_too_much(&pages, rows), holds, "{rows}");
        }
        // Pages without rows lie between any two.
        let empty = [page(1, 1), page(0, FREE), page(1, 1)];
        assert!(!holds_too_much(&empty, 1) && holds_too_much(&empty, 2));
        // A dictionary is there all the time.
        let dictionary = Page { rows: None, ..page(0, third) };
        let with = [&[dictionary], &pages[..]].concat();
        assert!(!holds_too_much(&with, 101) && holds_too_much(&with, 102));
        // What is as large in the file is no bomb.
        let honest: Vec<_> = pages.iter().map(|page| Page { packed: page.unpacked / 99, ..*page }).collect();
        assert!(!holds_too_much(&honest, 9000));
        assert!(!holds_too_much(&[], 9000) && !holds_too_much(&[dictionary], 9000));
    }

    fn header(bytes: &[u8]) -> io::Result<Page> {
        let mut file = tempfile::tempfile()?;
        io::Write::write_all(&mut file, bytes)?;
        Header { from: SharedFile::new(file).get_read(0).map_err(io::Error::other)?, bytes: 0 }.page()
    }

    #[test]
    fn headers_are_read_and_damaged_ones_refused() {
        // Field 5: 300 values, encoding 8, a statistic of 3 bytes and a list; field 9, a map.
        let whole = [
            0x15, 0, 0x15, 0xc8, 1, 0x15, 20, 0x15, 9, 0x1c, 0x15, 0xd8, 4, 0x15, 16, 0x3c, 0x18, 3, 1, 2, 3,
            0x19, 0x25, 2, 4, 0, 0, 0x4b, 1, 0x81, 0, 1, 0,
        ];
        assert_eq!(header(&whole).unwrap(), Page { unpacked: 100, packed: 10, rows: Some(300), encoding: 8 });
        for cut in 0..whole.len() {
            assert!(header(&whole[..cut]).is_err(), "{cut}");
        }
        // A negative size, a number that does not end, an unknown type, structs without an end.
        for wrong in [
            &[0x15, 0, 0x15, 1, 0][..],
            &[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1d],
        ] {
            assert!(header(wrong).is_err());
        }
        assert!(header(&[0x1c; 64]).is_err());
        assert!(header(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 2]).is_err());
    }
}
