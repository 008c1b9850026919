//! JSON objects, one on each line.
//!
//! A strict scanner (RFC 8259) that builds no tree: it goes once over an object, checks its form, and notes
//! the wanted members. A wanted name is a member's name, with dots or without, or a path of names with dots
//! between them: `id.orig_h` is the member `id.orig_h` or the member `orig_h` of the object `id`.
//!
//! Lines whose members are those of lines before go a shorter way ([`known`]).

mod known;
mod stops;
#[cfg(test)]
mod tests;

pub(crate) use known::Known;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memchr;

use crate::records::{Cell, Content, Flaw, Record, Records};
use crate::word::{each, equal, less};

/// The deepest nesting that is read.
const DEEPEST: usize = 128;

/// The wanted members, and the names of new ones.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    /// Names, at most [`Members::MOST`].
    pub(crate) wanted: Vec<String>,
    /// The bits of those that may be numbers.
    numbers: u64,
    added: Vec<String>,
    /// A number that only clones have in common.
    id: u64,
}

impl Members {
    /// The most wanted members: one bit each.
    pub(crate) const MOST: usize = 64;

    pub(crate) fn new(wanted: Vec<String>, numbers: u64, added: Vec<String>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { wanted, numbers, added, id: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    /// All wanted members.
    fn all(&self) -> Within {
        let names = match self.wanted.len() {
            Self::MOST => u64::MAX,
            some => (1 << some) - 1,
        };
        Within { names, matched: 0 }
    }

    /// The number of the new member with this name.
    fn taken(&self, name: &[u8]) -> Option<usize> {
        self.added.iter().position(|added| added.as_bytes() == name)
    }

    /// Scans whole lines of about so many bytes.
    pub(crate) fn scan(&self, block: &[u8], bytes: usize, records: &mut Records) {
        self.scan_lines(block, bytes, records, true);
    }

    /// Scans lines, those with known members the shorter way if it is allowed.
    fn scan_lines(&self, whole: &[u8], bytes: usize, records: &mut Records, by_known: bool) {
        let last = bytes.min(whole.len()).saturating_sub(1);
        let block = &whole[..memchr(b'\n', &whole[last..]).map_or(whole.len(), |at| last + at + 1)];
        let mut known = std::mem::take(&mut records.known);
        let is_ascii = known.prepare(self, block);
        // Once for all lines, or for each if there is a wrong one.
        let is_text = is_ascii || std::str::from_utf8(block).is_ok();
        let mut scanner = Scanner::new(block, self);
        let mut start = 0;
        while start < block.len() {
            records.open();
            let decoded = records.decoded.len();
            if by_known
                && is_text
                && let Some((insert, end)) = scanner.usual(whole, start, &mut known, records)
            {
                records.close(Record { start, insert, end, content: Content::Whole { is_bare: false } });
                start = end;
                continue;
            }
            records.decoded.truncate(decoded);
            records.empty();
            let to = memchr(b'\n', &block[start..]).map_or(block.len(), |at| start + at);
            let end = (to + 1).min(block.len());
            let line = &block[start..to];
            let (insert, content) = if line.trim_ascii().is_empty() {
                (to, Content::Blank)
            } else if !is_text && let Err(error) = std::str::from_utf8(line) {
                let byte = error.valid_up_to() + 1;
                (to, Content::Flawed(Flaw::NotJson { what: "not UTF-8", byte }))
            } else {
                (scanner.line, scanner.base, scanner.at, scanner.seen) = (line, start, 0, 0);
                match scanner.record(records) {
                    Ok((insert, is_bare)) => (start + insert, Content::Whole { is_bare }),
                    Err(flaw) => (to, Content::Flawed(flaw)),
                }
            };
            records.close(Record { start, insert, end, content });
            start = end;
        }
        records.known = known;
        records.count_lines(block, true);
    }
}

/// The names of an object's members, and those of the objects in it with dots between them.
pub(crate) fn names(line: &[u8]) -> Result<Vec<String>, Flaw> {
    if let Err(error) = std::str::from_utf8(line) {
        return Err(Flaw::NotJson { what: "not UTF-8", byte: error.valid_up_to() + 1 });
    }
    let members = Members::new(Vec::new(), 0, Vec::new());
    let mut scanner = Scanner::new(line, &members);
    scanner.names = Some((String::new(), Vec::new()));
    scanner.record(&mut Records::default())?;
    Ok(scanner.names.unwrap_or_default().1)
}

/// The number of bytes before the first one that does not stand for itself in a string.
fn plain(bytes: &[u8]) -> usize {
    before(bytes, |word| less(word, b' ') | equal(word, b'"') | equal(word, b'\\'))
}

/// The number of digits at the start.
fn digits(bytes: &[u8]) -> usize {
    before(bytes, |word| less(word ^ each(b'0'), 10) ^ each(0x80))
}

/// The number of bytes before the first one of a kind, to which quotes belong. `flags` has these among eight
/// bytes.
#[inline]
fn before(bytes: &[u8], flags: impl Fn(u64) -> u64) -> usize {
    let first = |word: [u8; 8]| flags(u64::from_le_bytes(word)).trailing_zeros() as usize / 8;
    let (words, rest) = bytes.as_chunks();
    for (number, word) in words.iter().enumerate() {
        let at = first(*word);
        if at < 8 {
            return 8 * number + at;
        }
    }
    // A quote follows the last bytes.
    let mut last = [b'"'; 8];
    last[..rest.len()].copy_from_slice(rest);
    8 * words.len() + first(last).min(rest.len())
}

/// The wanted names that an object may have members of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Within {
    /// Their bits.
    names: u64,
    /// The number of bytes of these names that the path to the object has, with the dot after it.
    matched: usize,
}

impl Within {
    const NONE: Self = Self { names: 0, matched: 0 };
}

struct Scanner<'l> {
    line: &'l [u8],
    /// The place of the line in its block.
    base: usize,
    at: usize,
    members: &'l Members,
    /// The wanted members that were seen: one bit each.
    seen: u64,
    key: Vec<u8>,
    /// The path to the object, and all names so far, if they are asked for.
    names: Option<(String, Vec<String>)>,
}

/// A string: the bytes between its quotes.
struct Text {
    inner: Range<usize>,
    is_escaped: bool,
}

impl<'l> Scanner<'l> {
    fn new(line: &'l [u8], members: &'l Members) -> Self {
        Self { line, base: 0, at: 0, members, seen: 0, key: Vec::new(), names: None }
    }
}

impl Scanner<'_> {
    /// Scans the line. Returns the place of new members, and whether there are no others.
    fn record(&mut self, records: &mut Records) -> Result<(usize, bool), Flaw> {
        self.blanks();
        if self.peek() != Some(b'{') {
            self.value(Within::NONE, 0, records)?;
            self.end()?;
            return Err(Flaw::NotObject);
        }
        let place = self.object(self.members.all(), 1, records)?;
        self.end()?;
        Ok(place)
    }

    fn end(&mut self) -> Result<(), Flaw> {
        self.blanks();
        if self.at < self.line.len() { Err(self.wrong("more after the end")) } else { Ok(()) }
    }

    fn value(&mut self, within: Within, depth: usize, records: &mut Records) -> Result<(), Flaw> {
        match self.peek() {
            Some(b'{') => self.object(within, depth + 1, records).map(drop),
            Some(b'[') => self.array(depth + 1, records),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => Err(self.wrong("no value")),
            None => Err(self.wrong("ends early")),
        }
    }

    /// Scans an object in which these wanted names may be. Returns the
    /// end of its last member, or of its opening brace, and whether it has none.
    fn object(&mut self, within: Within, depth: usize, records: &mut Records) -> Result<(usize, bool), Flaw> {
        if depth > DEEPEST {
            return Err(self.wrong("nested too deep"));
        }
        self.at += 1;
        let opened = self.at;
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok((opened, true));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("no name of a member"));
            }
            let text = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return Err(self.wrong("no colon"));
            }
            self.at += 1;
            self.blanks();
            self.member(&text, within, depth, records)?;
            let end = self.at;
            self.blanks();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.blanks();
                }
                Some(b'}') => {
                    self.at += 1;
                    return Ok((end, false));
                }
                Some(_) => return Err(self.wrong("no comma")),
                None => return Err(self.wrong("ends early")),
            }
        }
    }

    /// Scans the value of a member.
    fn member(
        &mut self,
        name: &Text,
        within: Within,
        depth: usize,
        records: &mut Records,
    ) -> Result<(), Flaw> {
        let line = self.line;
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let name = if name.is_escaped {
            unescape(&line[name.inner.clone()], &mut key);
            &*key
        } else {
            &line[name.inner.clone()]
        };
        let done = self.named(name, within, depth, records);
        self.key = key;
        done
    }

    fn named(
        &mut self,
        name: &[u8],
        within: Within,
        depth: usize,
        records: &mut Records,
    ) -> Result<(), Flaw> {
        if depth == 1
            && let Some(taken) = self.members.taken(name)
        {
            return Err(Flaw::Taken(taken));
        }
        if let Some((path, names)) = &mut self.names {
            let before = path.len();
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&String::from_utf8_lossy(name));
            names.push(path.clone());
            let done = self.value(Within::NONE, depth, records);
            if let Some((path, _)) = &mut self.names {
                path.truncate(before);
            }
            return done;
        }
        let (hits, inside) = self.wanted(name, within);
        self.wanted_value(hits, inside, depth, records)
    }

    /// The bits of the wanted names that end with this one, and the names that are paths into it.
    fn wanted(&self, name: &[u8], within: Within) -> (u64, Within) {
        let (mut hits, mut inside) = (0u64, 0u64);
        for wanted in bits(within.names) {
            let rest = &self.members.wanted[wanted].as_bytes()[within.matched..];
            // Most names differ in their first byte.
            if !name.is_empty() && rest.first() != name.first() {
                continue;
            }
            match rest.strip_prefix(name) {
                Some([]) => hits |= 1 << wanted,
                Some([b'.', ..]) => inside |= 1 << wanted,
                _ => {}
            }
        }
        let matched = within.matched + name.len() + 1;
        (hits, if inside == 0 { Within::NONE } else { Within { names: inside, matched } })
    }

    /// Scans the value of a member.
    fn wanted_value(
        &mut self,
        hits: u64,
        inside: Within,
        depth: usize,
        records: &mut Records,
    ) -> Result<(), Flaw> {
        if hits == 0 { self.value(inside, depth, records) } else { self.hit(hits, records) }
    }

    /// Scans a value that is wanted.
    fn hit(&mut self, hits: u64, records: &mut Records) -> Result<(), Flaw> {
        let first = hits.trailing_zeros() as usize;
        if self.seen & hits != 0 {
            return Err(Flaw::Twice((self.seen & hits).trailing_zeros() as usize));
        }
        self.seen |= hits;
        let cell = match self.peek() {
            Some(b'n') => {
                self.word("null")?;
                return Ok(());
            }
            Some(b'"') => {
                let Text { inner, is_escaped } = self.string()?;
                if is_escaped {
                    let start = records.decoded.len();
                    unescape(&self.line[inner], &mut records.decoded);
                    Cell::decoded_from(start, &records.decoded)
                } else {
                    Cell::of_block(self.base + inner.start..self.base + inner.end)
                }
            }
            Some(b'-' | b'0'..=b'9') if hits & self.members.numbers == hits => {
                let start = self.at;
                self.number()?;
                Cell::of_block(self.base + start..self.base + self.at)
            }
            Some(b'{' | b'[' | b't' | b'f' | b'-' | b'0'..=b'9') => {
                // Of a member that is wanted twice, the one that takes no number.
                let text_only = hits & !self.members.numbers;
                return Err(Flaw::NotText(if text_only == 0 {
                    first
                } else {
                    text_only.trailing_zeros() as usize
                }));
            }
            Some(_) => return Err(self.wrong("no value")),
            None => return Err(self.wrong("ends early")),
        };
        for wanted in bits(hits) {
            records.last()[wanted] = cell;
        }
        Ok(())
    }

    fn array(&mut self, depth: usize, records: &mut Records) -> Result<(), Flaw> {
        if depth > DEEPEST {
            return Err(self.wrong("nested too deep"));
        }
        self.at += 1;
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        // Objects in arrays have no names of their own.
        let names = self.names.take();
        loop {
            self.value(Within::NONE, depth, records)?;
            self.blanks();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.blanks();
                }
                Some(b']') => {
                    self.at += 1;
                    self.names = names;
                    return Ok(());
                }
                Some(_) => return Err(self.wrong("no comma")),
                None => return Err(self.wrong("ends early")),
            }
        }
    }

    /// Scans a string from its opening quote.
    fn string(&mut self) -> Result<Text, Flaw> {
        self.at += 1;
        let (start, mut is_escaped) = (self.at, false);
        loop {
            self.at += plain(&self.line[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text { inner: start..self.at - 1, is_escaped });
                }
                Some(b'\\') => {
                    is_escaped = true;
                    let digits = self.line.get(self.at + 2..self.at + 6);
                    match self.line.get(self.at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
                        Some(b'u') if digits.is_some_and(|all| all.iter().all(u8::is_ascii_hexdigit)) => {
                            self.at += 6;
                        }
                        _ => return Err(self.wrong("no escape")),
                    }
                }
                Some(_) => return Err(self.wrong("a control character in a string")),
                None => return Err(self.wrong("ends early")),
            }
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Flaw> {
        if !self.line[self.at..].starts_with(word.as_bytes()) {
            return Err(self.wrong("no value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), Flaw> {
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => drop(self.digits()),
            _ => return Err(self.wrong("no number")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(self.wrong("no number"));
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.wrong("no number"));
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let digits = digits(&self.line[self.at..]);
        self.at += digits;
        digits
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// Goes behind the next byte.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn wrong(&self, what: &'static str) -> Flaw {
        Flaw::NotJson { what, byte: self.at + 1 }
    }
}

/// The indexes of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}

/// Writes the inside of a string, whose escapes are valid, without them. Half of a surrogate pair becomes
/// U+FFFD.
fn unescape(inner: &[u8], into: &mut Vec<u8>) {
    let unit = |at: usize| {
        let digits = inner.get(at + 2..at + 6).filter(|_| inner[at..].starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while at < inner.len() {
        if inner[at] != b'\\' {
            into.push(inner[at]);
            at += 1;
            continue;
        }
        let Some(first) = unit(at) else {
            into.push(match inner.get(at + 1) {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                other => other.copied().unwrap_or_default(),
            });
            at += 2;
            continue;
        };
        at += 6;
        let second = unit(at).filter(|_| (0xd800..0xdc00).contains(&first));
        let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
        at += if pair.is_some() { 6 } else { 0 };
        let one = pair.or_else(|| char::from_u32(first.into())).unwrap_or(char::REPLACEMENT_CHARACTER);
        into.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
