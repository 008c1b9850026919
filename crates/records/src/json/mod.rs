//! JSON objects, one on each line.
//!
//! A strict scanner (RFC 8259) that builds no tree: it goes once over an object, checks its form, and notes
//! the wanted members. A wanted name is a member's name, with dots or without, or a path of names with dots
//! between them: `id.orig_h` is the member `id.orig_h` or the member `orig_h` of the object `id`.

use std::ops::Range;

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
    pub(crate) numbers: u64,
    pub(crate) added: Vec<String>,
}

impl Members {
    /// The most wanted members: one bit each.
    pub(crate) const MOST: usize = 64;

    /// Scans whole lines of about so many bytes.
    pub(crate) fn scan(&self, block: &[u8], bytes: usize, records: &mut Records) {
        let last = bytes.min(block.len()).saturating_sub(1);
        let block = &block[..memchr(b'\n', &block[last..]).map_or(block.len(), |at| last + at + 1)];
        // Once for all lines, or for each if there is a wrong one.
        let is_text = std::str::from_utf8(block).is_ok();
        let mut scanner = Scanner {
            line: block,
            base: 0,
            at: 0,
            members: self,
            matched: vec![0; self.wanted.len()],
            seen: 0,
            key: Vec::new(),
            names: None,
        };
        let mut start = 0;
        while start < block.len() {
            let to = memchr(b'\n', &block[start..]).map_or(block.len(), |at| start + at);
            let end = (to + 1).min(block.len());
            let line = &block[start..to];
            records.open();
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
        records.count_lines(block, true);
    }
}

/// The names of an object's members, and those of the objects in it with dots between them.
pub(crate) fn names(line: &[u8]) -> Result<Vec<String>, Flaw> {
    if let Err(error) = std::str::from_utf8(line) {
        return Err(Flaw::NotJson { what: "not UTF-8", byte: error.valid_up_to() + 1 });
    }
    let members = Members { wanted: Vec::new(), numbers: 0, added: Vec::new() };
    let names = Some((String::new(), Vec::new()));
    let mut scanner = Scanner {
        line,
        base: 0,
        at: 0,
        members: &members,
        matched: Vec::new(),
        seen: 0,
        key: Vec::new(),
        names,
    };
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

struct Scanner<'l> {
    line: &'l [u8],
    /// The place of the line in its block.
    base: usize,
    at: usize,
    members: &'l Members,
    /// The bytes of each wanted name that the objects around match.
    matched: Vec<usize>,
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

impl Scanner<'_> {
    /// Scans the line. Returns the place of new members, and whether there are no others.
    fn record(&mut self, records: &mut Records) -> Result<(usize, bool), Flaw> {
        self.blanks();
        if self.peek() != Some(b'{') {
            self.value(0, 0, records)?;
            self.end()?;
            return Err(Flaw::NotObject);
        }
        let all = match self.members.wanted.len() {
            Self::ALL_BITS => u64::MAX,
            some => (1 << some) - 1,
        };
        // Filling an empty list stores nothing at an address of no page, which some CPUs do slowly.
        if !self.matched.is_empty() {
            self.matched.fill(0);
        }
        let place = self.object(all, 1, records)?;
        self.end()?;
        Ok(place)
    }

    const ALL_BITS: usize = Members::MOST;

    fn end(&mut self) -> Result<(), Flaw> {
        self.blanks();
        if self.at < self.line.len() { Err(self.wrong("more after the end")) } else { Ok(()) }
    }

    fn value(&mut self, within: u64, depth: usize, records: &mut Records) -> Result<(), Flaw> {
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

    /// Scans an object in which these wanted names, as far as they are not matched yet, may be. Returns the
    /// end of its last member, or of its opening brace, and whether it has none.
    fn object(&mut self, within: u64, depth: usize, records: &mut Records) -> Result<(usize, bool), Flaw> {
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
    fn member(&mut self, name: &Text, within: u64, depth: usize, records: &mut Records) -> Result<(), Flaw> {
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

    fn named(&mut self, name: &[u8], within: u64, depth: usize, records: &mut Records) -> Result<(), Flaw> {
        if depth == 1
            && let Some(taken) = self.members.added.iter().position(|added| added.as_bytes() == name)
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
            let done = self.value(0, depth, records);
            if let Some((path, _)) = &mut self.names {
                path.truncate(before);
            }
            return done;
        }
        let (mut hits, mut inside) = (0u64, 0u64);
        for wanted in bits(within) {
            let rest = &self.members.wanted[wanted].as_bytes()[self.matched[wanted]..];
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
        if hits != 0 {
            self.hit(hits, records)?;
        } else if inside != 0 && self.peek() == Some(b'{') {
            bits(inside).for_each(|wanted| self.matched[wanted] += name.len() + 1);
            self.value(inside, depth, records)?;
            bits(inside).for_each(|wanted| self.matched[wanted] -= name.len() + 1);
        } else {
            self.value(0, depth, records)?;
        }
        Ok(())
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
                    Cell { start, len: records.decoded.len() - start, is_decoded: true }
                } else {
                    Cell { start: self.base + inner.start, len: inner.len(), is_decoded: false }
                }
            }
            Some(b'-' | b'0'..=b'9') if hits & self.members.numbers == hits => {
                let start = self.at;
                self.number()?;
                Cell { start: self.base + start, len: self.at - start, is_decoded: false }
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
            self.value(0, depth, records)?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;

    use super::*;

    fn scanned(line: &[u8], wanted: &[&str]) -> (Records, Content) {
        scanned_with(line, wanted, 0)
    }

    fn scanned_with(line: &[u8], wanted: &[&str], numbers: u64) -> (Records, Content) {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let members = Members { wanted: own(wanted), numbers, added: own(&["src_asn"]) };
        let mut records = Records::default();
        records.begin(wanted.len());
        members.scan(line, line.len(), &mut records);
        let content = records.records()[0].content;
        (records, content)
    }

    #[test]
    fn members_by_name_and_by_path() {
        for line in [
            r#"{"id.orig_h":"10.0.0.1","id.resp_h":null}"#,
            r#"{"id":{"orig_h":"10.0.0.1","x":{"orig_h":1}}}"#,
            r#" { "id" : { "\u006frig_h" : "10.0.0\u002e1" } , "ids":[{"id":{"orig_h":2}}]} "#,
        ] {
            let (records, content) = scanned(line.as_bytes(), &["id.orig_h", "id.resp_h"]);
            assert_eq!(content, Content::Whole { is_bare: false }, "{line}");
            assert_eq!(records.cell(line.as_bytes(), 0, 0), b"10.0.0.1", "{line}");
            assert_eq!(records.cell(line.as_bytes(), 0, 1), b"", "{line}");
        }
        assert_eq!(names(br#"{"a":{"b":1,"c":[{"d":1}]},"e.f":2}"#).unwrap(), ["a", "a.b", "a.c", "e.f"]);
    }

    #[test]
    fn members_that_may_be_numbers() {
        let line = br#"{"port":443,"src":"10.0.0.1","proto":"tcp"}"#;
        let wanted = ["src", "port", "proto"];
        let (records, content) = scanned_with(line, &wanted, 0b110);
        assert_eq!(content, Content::Whole { is_bare: false });
        assert_eq!([0, 1, 2].map(|at| records.cell(line, 0, at)), [&b"10.0.0.1"[..], b"443", b"tcp"]);
        assert_eq!(scanned_with(line, &wanted, 0b100).1, Content::Flawed(Flaw::NotText(1)));
        assert_eq!(scanned_with(line, &["port", "port"], 0b01).1, Content::Flawed(Flaw::NotText(1)));
        assert_eq!(scanned_with(br#"{"port":[443]}"#, &["port"], 1).1, Content::Flawed(Flaw::NotText(0)));
    }

    #[test]
    fn the_first_byte_of_a_kind_at_every_place() {
        for byte in 0..=255u8 {
            for len in 0..20 {
                for at in 0..len {
                    let mut bytes = vec![b'5'; len];
                    bytes[at] = byte;
                    let is_plain = byte >= b' ' && !matches!(byte, b'"' | b'\\');
                    assert_eq!(plain(&bytes), if is_plain { len } else { at });
                    assert_eq!(digits(&bytes), if byte.is_ascii_digit() { len } else { at });
                }
            }
        }
    }

    #[test]
    fn wrong_records() {
        for (line, flaw) in [
            (r#"{"a":"1","a":"2"}"#, Flaw::Twice(0)),
            (r#"{"b.c":"1","b":{"c":"2"}}"#, Flaw::Twice(1)),
            (r#"{"a":1}"#, Flaw::NotText(0)),
            (r#"{"src_asn":1}"#, Flaw::Taken(0)),
            ("[1]", Flaw::NotObject),
            (r#"{"x":01}"#, Flaw::NotJson { what: "no comma", byte: 7 }),
            (r#"{"x":1}}"#, Flaw::NotJson { what: "more after the end", byte: 8 }),
            ("{\"x\":\"\u{1}\"}", Flaw::NotJson { what: "a control character in a string", byte: 7 }),
        ] {
            assert_eq!(scanned(line.as_bytes(), &["a", "b.c"]).1, Content::Flawed(flaw), "{line}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(matches!(scanned(deep.as_bytes(), &[]).1, Content::Flawed(Flaw::NotJson { .. })));
        assert!(matches!(scanned(b"{\"x\":\"\xff\"}", &[]).1, Content::Flawed(Flaw::NotJson { .. })));
    }

    proptest! {
        #[test]
        fn takes_what_serde_json_takes(line in r#"[{}\[\]",:\\a0-1.eEu tnrlf\-]{1,24}"#) {
            let right = serde_json::from_str::<IgnoredAny>(&line).is_ok();
            prop_assume!(!line.trim().is_empty());
            let found = scanned(line.as_bytes(), &[]).1;
            let is_ours = matches!(found, Content::Whole { .. } | Content::Flawed(Flaw::NotObject));
            prop_assert_eq!(is_ours, right, "{:?}", found);
        }

        #[test]
        fn strings_are_those_of_serde_json(text in "\\PC{0,12}|[\"\\\\/\u{8}\n\t\u{1f600}]{0,6}", nest: bool) {
            let value = if nest {
                serde_json::json!({"b": 1, "a": {"c": text}})
            } else {
                serde_json::json!({"a.c": text, "z": [text]})
            };
            let line = value.to_string();
            let (records, content) = scanned(line.as_bytes(), &["a.c"]);
            prop_assert_eq!(content, Content::Whole { is_bare: false });
            prop_assert_eq!(records.cell(line.as_bytes(), 0, 0), text.as_bytes());
            let insert = records.records()[0].insert;
            let longer = format!("{},\"n\":1{}", &line[..insert], &line[insert..]);
            prop_assert_eq!(&serde_json::from_str::<Value>(&longer).unwrap()["n"], 1);
        }
    }
}
