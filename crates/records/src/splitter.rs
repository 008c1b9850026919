//! [`Splitter`]: a stream of bytes cut into blocks of whole records.

use std::sync::Arc;

use memchr::memmem;

use crate::cut::{Cutter, first_end};
use crate::delimited::Delimited;
use crate::encode::{Encoder, Kind};
use crate::format::{Format, MARK, without_mark};
use crate::json::{self, Members};
use crate::layout::{Form, Layout, Plan, cells};
use crate::listed::listed;

/// The longest record, in bytes, its line ending included.
pub const LONGEST: usize = 1 << 20;

/// Cuts a stream into blocks of whole records, in order, and adds the names of new columns to its header.
///
/// The header's names, or those of the first JSON object, go to a function that plans: it says which columns
/// are wanted and which are added, or why it can't.
///
/// ```
/// use wirespeed_records::{Plan, Records, Splitter};
///
/// let mut splitter = Splitter::new(None, |_, names| {
///     assert_eq!(names, ["time", "ip"]);
///     Ok(Plan { wanted: vec!["ip".into()], added: vec!["ip_as".into()], ..Plan::default() })
/// });
/// splitter.push(b"time,ip\n1,192.0.2.1\n2,2001:");
/// let header = splitter.next(false)?.unwrap();
/// assert_eq!(header.bytes, b"time,ip,ip_as\n");
/// let block = splitter.next(false)?.unwrap();
/// assert_eq!(block.bytes, b"1,192.0.2.1\n");
/// let mut records = Records::default();
/// block.layout.unwrap().scan(&block.bytes, &mut records);
/// assert_eq!(records.cell(&block.bytes, 0, 0), b"192.0.2.1");
/// assert!(splitter.next(false)?.is_none());
/// # Ok::<(), wirespeed_records::Error>(())
/// ```
pub struct Splitter<P> {
    format: Option<Format>,
    plan: P,
    lenient: bool,
    bytes: Vec<u8>,
    spare: Vec<Vec<u8>>,
    cutter: Cutter,
    layout: Option<Arc<Layout>>,
    zeek: Zeek,
    /// Whether what is left is nfdump's summary.
    is_summary: bool,
    /// Whether the first bytes were looked at.
    is_begun: bool,
}

/// Bytes of the stream: whole records, or lines that are none.
#[derive(Clone, Debug)]
pub struct Block {
    /// The bytes; of a header, with the names of the new columns.
    pub bytes: Vec<u8>,
    /// The form of the records. `None` if there are none: the bytes pass as they are.
    pub layout: Option<Arc<Layout>>,
}

/// The reason why a stream can't be cut. The place is that of the first byte that no block has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record is too long: the error states the limit.
    #[error("no end of a record within {LONGEST} bytes")]
    TooLong,
    /// The header is wrong.
    #[error("{0}")]
    Header(String),
    /// The stream has no record that columns could be found in.
    #[error("no JSON object in the first lines: {0}")]
    NoObject(String),
    /// The input fails: the error of whatever reads it.
    #[error("{0}")]
    Read(String),
    /// The columns that are asked for can't be had.
    #[error("{0}")]
    Plan(String),
}

/// What the header lines of Zeek say.
struct Zeek {
    separator: u8,
    unset: Vec<u8>,
    empty: Vec<u8>,
    added: Vec<String>,
}

impl<P: FnMut(Format, &[String]) -> Result<Plan, String>> Splitter<P> {
    /// Starts a stream. Without a format, the stream's first line tells it.
    pub fn new(format: Option<Format>, plan: P) -> Self {
        Self {
            format,
            plan,
            lenient: false,
            bytes: Vec::new(),
            spare: Vec::new(),
            cutter: Cutter::new(None),
            layout: None,
            zeek: Zeek {
                separator: b'\t',
                unset: b"-".to_vec(),
                empty: b"(empty)".to_vec(),
                added: Vec::new(),
            },
            is_summary: false,
            is_begun: false,
        }
    }

    /// Makes the splitter look for the names of members in later lines, too, if the first one is no object.
    #[must_use]
    pub fn lenient(self, lenient: bool) -> Self {
        Self { lenient, ..self }
    }

    /// The format. `None` until the first line tells it.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of bytes that no block has yet.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Gives back the memory of a block.
    pub fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        self.spare.push(bytes);
    }

    /// The next block, as long as it can be. `None` if it needs more bytes. `ends` says that there are no
    /// more.
    pub fn next(&mut self, ends: bool) -> Result<Option<Block>, Error> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let block = match self.format {
            None => {
                let Some(format) = self.recognised(ends)? else { return self.unless_long(None) };
                self.format = Some(format);
                return self.next(ends);
            }
            Some(Format::Zeek | Format::NdJson) if !self.is_begun => {
                if self.bytes.len() < MARK.len() && !ends {
                    return Ok(None);
                }
                // No part of a record, and of JSON not even allowed. A header of CSV keeps it.
                if self.bytes.starts_with(MARK) {
                    self.bytes.drain(..MARK.len());
                }
                self.is_begun = true;
                return self.next(ends);
            }
            Some(Format::Zeek) => self.next_zeek(ends)?,
            Some(_) if self.is_summary => Some(self.take(self.bytes.len(), None)),
            Some(format) if self.layout.is_none() => return self.header(format, ends),
            Some(format) => {
                let cut = self.cut(ends)?;
                let summary = (format == Format::Nfdump).then(|| summary(&self.bytes[..cut])).flatten();
                match summary {
                    Some(0) => {
                        self.is_summary = true;
                        Some(self.take(cut, None))
                    }
                    summary => {
                        let layout = self.layout.clone();
                        let until = summary.unwrap_or(cut);
                        (until > 0).then(|| self.take(until, layout))
                    }
                }
            }
        };
        self.unless_long(block)
    }

    /// Fails if a record is longer than it may be.
    fn unless_long(&self, block: Option<Block>) -> Result<Option<Block>, Error> {
        match block {
            None if self.bytes.len() > LONGEST => Err(Error::TooLong),
            block => Ok(block),
        }
    }

    /// The format by the first line that is not blank. Fails if that begins a list of JSON, whose objects are
    /// no lines: a header of CSV does not begin so.
    fn recognised(&self, ends: bool) -> Result<Option<Format>, Error> {
        let mut rest = &*self.bytes;
        loop {
            let end = memchr::memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            match end {
                Some(end) if without_mark(line).trim_ascii().is_empty() => rest = &rest[end + 1..],
                None if !ends => return Ok(None),
                _ if is_list(line) => {
                    let what = "a list of JSON, and not an object on each line: jq -c '.[]' makes them of it";
                    return Err(Error::Header(what.to_owned()));
                }
                _ => return Ok(Some(Format::recognise(line))),
            }
        }
    }

    /// The end of the whole records before the first that is too long. Fails if that is the first of all,
    /// whatever pieces the bytes came in.
    fn cut(&mut self, ends: bool) -> Result<usize, Error> {
        let cut = self.cutter.cut(&self.bytes);
        let cut = if ends { self.bytes.len() } else { cut };
        match self.cutter.short(&self.bytes[..cut], LONGEST) {
            0 if cut > 0 => Err(Error::TooLong),
            short => Ok(short),
        }
    }

    /// Takes bytes from the start.
    fn take(&mut self, len: usize, layout: Option<Arc<Layout>>) -> Block {
        let mut rest = self.spare.pop().unwrap_or_default();
        rest.extend_from_slice(&self.bytes[len..]);
        self.bytes.truncate(len);
        self.cutter.took(len);
        Block { bytes: std::mem::replace(&mut self.bytes, rest), layout }
    }

    /// Plans, and checks the plan against the names.
    fn planned(&mut self, format: Format, names: &[String]) -> Result<Plan, Error> {
        let plan = (self.plan)(format, names).map_err(Error::Plan)?;
        if let Some(taken) = plan.added.iter().find(|&added| names.contains(added)) {
            return Err(Error::Plan(format!("there is a column {taken:?} already")));
        }
        if format == Format::NdJson {
            if plan.wanted.len() > Members::MOST {
                let (found, most) = (plan.wanted.len(), Members::MOST);
                return Err(Error::Plan(format!("{found} members are wanted, at most {most} can be")));
            }
        } else if let Some(twice) = names
            .iter()
            .enumerate()
            .find_map(|(at, name)| (plan.wanted.contains(name) && names[..at].contains(name)).then_some(name))
        {
            return Err(Error::Plan(format!("there are two columns {twice:?}")));
        } else if let Some(lacking) = plan.wanted.iter().find(|wanted| !names.contains(wanted)) {
            let names = listed(names);
            return Err(Error::Plan(format!("there is no column {lacking:?}; the columns are {names}")));
        }
        Ok(plan)
    }

    /// Reads the header of cells, or the first object.
    fn header(&mut self, format: Format, ends: bool) -> Result<Option<Block>, Error> {
        if format == Format::NdJson {
            let Some(names) = self.first_names(ends)? else { return self.unless_long(None) };
            let Plan { wanted, numbers, added } = self.planned(format, &names)?;
            let is_number = |&(_, name): &(usize, &String)| numbers.contains(name);
            let numbers = wanted.iter().enumerate().filter(is_number).fold(0, |all, (at, _)| all | 1 << at);
            let form = Form::Json(Members::new(wanted, numbers, added.clone()));
            self.layout = Some(Arc::new(Layout::new(form, Encoder(Kind::Json), &added)));
            return self.next(ends);
        }
        let blank = blank(&self.bytes, ends);
        if blank > 0 {
            return Ok(Some(self.take(blank, None)));
        }
        let quotes = format != Format::Nfdump;
        let separator = match format {
            Format::Tsv => b'\t',
            Format::Csv => separator(&self.bytes),
            _ => b',',
        };
        let end = first_end(&self.bytes, quotes.then_some(separator)).or(ends.then_some(self.bytes.len()));
        let Some(end) = end else { return self.unless_long(None) };
        if end > LONGEST {
            return Err(Error::TooLong);
        }
        let record = &self.bytes[..end];
        let ending = record.len() - record.trim_ascii_end().len();
        let ending = record[record.len() - ending..].iter().rev().take_while(|b| matches!(b, b'\n' | b'\r'));
        let insert = record.len() - ending.count();
        let names = cells(without_mark(&record[..insert]), separator, quotes)
            .ok_or_else(|| Error::Header("the quotes of the header are wrong".to_owned()))?;
        let plan = self.planned(format, &names)?;
        self.cutter = Cutter::new(quotes.then_some(separator));
        let encoder = Encoder(Kind::Cells { separator, quotes });
        let mut block = self.take(end, None);
        let tail = block.bytes.split_off(insert);
        for added in &plan.added {
            block.bytes.push(separator);
            encoder.write(Some(added), &mut block.bytes);
        }
        block.bytes.extend_from_slice(&tail);
        self.layout = Some(delimited(separator, quotes, &names, &plan, encoder));
        Ok(Some(block))
    }

    /// The names of the first object. `None` if it needs more bytes.
    fn first_names(&self, ends: bool) -> Result<Option<Vec<String>>, Error> {
        let mut rest = &*self.bytes;
        let mut wrong = None;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest);
            if end.is_none() && !ends {
                break;
            }
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = &rest[end.map_or(rest.len(), |end| end + 1)..];
            if line.trim_ascii().is_empty() {
                continue;
            }
            match json::names(line) {
                Ok(names) => return Ok(Some(names)),
                Err(flaw) => wrong = Some(wrong.unwrap_or(flaw)),
            }
            if !self.lenient {
                break;
            }
        }
        match wrong {
            Some(flaw) if !self.lenient || ends || self.bytes.len() > LONGEST => {
                Err(Error::NoObject(flaw.to_string()))
            }
            _ if ends => Ok(Some(Vec::new())),
            _ => Ok(None),
        }
    }

    /// The next block of a log of Zeek: lines of a header, or records.
    fn next_zeek(&mut self, ends: bool) -> Result<Option<Block>, Error> {
        let cut = self.cut(ends)?;
        if self.bytes[..cut].starts_with(b"#") {
            let (mut out, mut at) = (self.spare.pop().unwrap_or_default(), 0);
            while self.bytes[at..cut].starts_with(b"#") {
                let end = memchr::memchr(b'\n', &self.bytes[at..cut]).map_or(cut, |end| at + end + 1);
                let (line, before) = (self.bytes[at..end].to_vec(), out.len());
                match self.zeek_line(&line, &mut out) {
                    Ok(()) => at = end,
                    Err(error) if at == 0 => return Err(error),
                    // The lines before it are a block; the next call finds the error again.
                    Err(_) => {
                        out.truncate(before);
                        break;
                    }
                }
            }
            let taken = self.take(at, None).bytes;
            self.give_back(taken);
            return Ok(Some(Block { bytes: out, layout: None }));
        }
        let until = memmem::find(&self.bytes[..cut], b"\n#").map_or(cut, |at| at + 1);
        if until == 0 {
            return Ok(None);
        }
        let layout = self.layout.clone();
        let layout = layout.ok_or_else(|| Error::Header("records before a line #fields".to_owned()))?;
        Ok(Some(self.take(until, Some(layout))))
    }

    /// Takes a line of the header, and writes it with the new columns.
    fn zeek_line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let ending = line.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let (text, ending) = line.split_at(line.len() - ending);
        out.extend_from_slice(text);
        let wrong = |what: &str| Error::Header(format!("{what} {:?}", String::from_utf8_lossy(text)));
        if let Some(separator) = text.strip_prefix(b"#separator ") {
            self.zeek.separator = match separator {
                [b'\\', b'x', high, low] => {
                    let digits = [*high, *low];
                    let digits = std::str::from_utf8(&digits).ok();
                    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    byte.ok_or_else(|| wrong("no separator:"))?
                }
                [one] => *one,
                _ => return Err(wrong("a separator of one byte is wanted, not")),
            };
        } else {
            let separator = self.zeek.separator;
            let mut cells = text.split(|&byte| byte == separator);
            let word = cells.next().unwrap_or_default();
            match word {
                b"#unset_field" => self.zeek.unset = cells.next().unwrap_or_default().to_vec(),
                b"#empty_field" => self.zeek.empty = cells.next().unwrap_or_default().to_vec(),
                b"#fields" => {
                    let names: Vec<_> =
                        cells.map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
                    let plan = self.planned(Format::Zeek, &names)?;
                    let Zeek { unset, empty, .. } = &self.zeek;
                    let (unset, empty) = (unset.clone(), empty.clone());
                    let encoder = Encoder(Kind::Zeek { separator, unset, empty });
                    if self.layout.as_ref().is_some_and(|layout| *layout.encoder() != encoder) {
                        return Err(Error::Header(
                            "a second header has other marks than the first".to_owned(),
                        ));
                    }
                    for added in &plan.added {
                        out.push(separator);
                        out.extend_from_slice(added.as_bytes());
                    }
                    self.layout = Some(delimited(separator, false, &names, &plan, encoder));
                    self.zeek.added = plan.added;
                }
                b"#types" => {
                    for _ in &self.zeek.added {
                        out.push(separator);
                        out.extend_from_slice(b"string");
                    }
                }
                _ => {}
            }
        }
        out.extend_from_slice(ending);
        Ok(())
    }
}

/// Whether a line begins a list of objects of JSON.
fn is_list(line: &[u8]) -> bool {
    let inner = without_mark(line).trim_ascii().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inner.is_some_and(|inner| inner.is_empty() || inner.starts_with(b"{"))
}

fn delimited(separator: u8, quotes: bool, names: &[String], plan: &Plan, encoder: Encoder) -> Arc<Layout> {
    let place = |wanted: &String| names.iter().position(|name| name == wanted);
    let places = plan.wanted.iter().enumerate().filter_map(|(at, wanted)| Some((place(wanted)?, at)));
    let mut order: Vec<_> = places.collect();
    order.sort_unstable();
    let form = Form::Delimited(Delimited { separator, quotes, columns: names.len(), order });
    Arc::new(Layout::new(form, encoder, &plan.added))
}

/// The separator of CSV: that of comma, semicolon and bar which the first line has most of, outside of
/// quotes.
fn separator(bytes: &[u8]) -> u8 {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut is_quoted = false;
    let mut counts = [(0, b','), (0, b';'), (0, b'|')];
    for &byte in line {
        is_quoted ^= byte == b'"';
        for (count, separator) in &mut counts {
            *count += usize::from(!is_quoted && byte == *separator);
        }
    }
    // The first of those that are equal.
    counts.into_iter().rev().max_by_key(|&(count, _)| count).map_or(b',', |(_, separator)| separator)
}

/// The length of the blank lines at the start.
fn blank(bytes: &[u8], ends: bool) -> usize {
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty() && (ends || line.ends_with(b"\n"));
    lines.take_while(is_blank).map(<[u8]>::len).sum()
}

/// The start of nfdump's summary.
fn summary(records: &[u8]) -> Option<usize> {
    let is_line = |at: usize| matches!(records.get(at + 7), None | Some(b'\n' | b'\r'));
    if records.starts_with(b"Summary") && is_line(0) {
        return Some(0);
    }
    memmem::find_iter(records, b"\nSummary").map(|at| at + 1).find(|&at| is_line(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Content, Records};

    /// Adds the value of the first wanted column, in angle brackets, to each record.
    fn doubled(input: &[u8], piece: usize, wanted: &str) -> Result<String, Error> {
        let plan = |_: Format, _: &[String]| {
            let (wanted, added) = (vec![wanted.to_owned()], vec!["new".to_owned()]);
            Ok(Plan { wanted, added, ..Plan::default() })
        };
        let mut splitter = Splitter::new(None, plan);
        let (mut out, mut records) = (Vec::new(), Records::default());
        let mut take = |block: Block| {
            let Some(layout) = &block.layout else { return out.extend(&block.bytes) };
            layout.scan(&block.bytes, &mut records);
            for (at, record) in records.records().iter().enumerate() {
                out.extend(&block.bytes[record.start..record.insert]);
                if let Content::Whole { is_bare } = record.content {
                    out.extend(layout.lead(0, is_bare));
                    let cell = String::from_utf8_lossy(records.cell(&block.bytes, at, 0)).into_owned();
                    layout.encoder().write(Some(&format!("<{cell}>")), &mut out);
                }
                out.extend(&block.bytes[record.insert..record.end]);
            }
        };
        for piece in input.chunks(piece) {
            splitter.push(piece);
            while let Some(block) = splitter.next(false)? {
                take(block);
            }
        }
        while let Some(block) = splitter.next(true)? {
            take(block);
        }
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn every_format_in_pieces_of_every_size() {
        for (input, wanted, right) in [
            (
                "a,ip\r\n1,x\r\n\r\n\"2\n\",\"y\"\"z\"\r\n3,",
                "ip",
                "a,ip,new\r\n1,x,<x>\r\n\r\n\"2\n\",\"y\"\"z\",\"<y\"\"z>\"\r\n3,,<>",
            ),
            ("\u{feff}ip;b\n1;5\" disk\n2;3\n", "ip", "\u{feff}ip;b;new\n1;5\" disk;<1>\n2;3;<2>\n"),
            ("ip\n1\n\n2\n", "ip", "ip,new\n1,<1>\n,<>\n2,<2>\n"),
            ("\n \r\n", "ip", "\n \r\n"),
            ("\na\tip\n1\tx\n", "ip", "\na\tip\tnew\n1\tx\t<x>\n"),
            (
                "ts,te,td,sa,da,\n1,2,3,4,5,\n\nSummary\nflows,bytes\n1,2\n",
                "sa",
                "ts,te,td,sa,da,,new\n1,2,3,4,5,,<4>\n\nSummary\nflows,bytes\n1,2\n",
            ),
            (
                "#separator \\x09\n#unset_field\t-\n#path\tconn\n#fields\tts\tid.orig_h\n#types\ttime\taddr\n1\tx\n\
              #close\tnow\n#fields\tid.orig_h\n#types\taddr\ny\n",
                "id.orig_h",
                "#separator \\x09\n#unset_field\t-\n#path\tconn\n#fields\tts\tid.orig_h\tnew\n\
              #types\ttime\taddr\tstring\n1\tx\t<x>\n#close\tnow\n#fields\tid.orig_h\tnew\n#types\taddr\tstring\ny\t<y>\n",
            ),
            (
                "#separator \\x09\n#unset_field\tnone\n#empty_field\t(no)\n#fields\tip\nnone\n(no)\n-\nnone1\n",
                "ip",
                "#separator \\x09\n#unset_field\tnone\n#empty_field\t(no)\n#fields\tip\tnew\n\
              none\t<>\n(no)\t<>\n-\t<->\nnone1\t<none1>\n",
            ),
            (
                "\n{\"id\":{\"o\":\"x\"} }\r\n{}\n\n{\"id.o\":\"y\"}",
                "id.o",
                "\n{\"id\":{\"o\":\"x\"},\"new\":\"<x>\" }\r\n{\"new\":\"<>\"}\n\n{\"id.o\":\"y\",\"new\":\"<y>\"}",
            ),
        ] {
            for piece in 1..=input.len() {
                assert_eq!(
                    doubled(input.as_bytes(), piece, wanted).as_deref(),
                    Ok(right),
                    "pieces of {piece}"
                );
            }
        }
        assert_eq!(doubled(b"", 1, "a").as_deref(), Ok(""));
    }

    #[test]
    fn what_can_not_be_cut() {
        let is = |input: &str, wanted: &str, says: &str| {
            let error = doubled(input.as_bytes(), 1 << 16, wanted).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        is("a,b\n", "c", "there is no column \"c\"; the columns are a, b");
        is("\u{feff}\n [ {\"ip\":\"x\"}]", "ip", "a list of JSON, and not an object on each line");
        is("[\n{\"ip\":\"x\"}\n]\n", "ip", "a list of JSON");
        is("[a],b\n", "c", "the columns are [a], b");
        is("a,b,a\n", "a", "there are two columns \"a\"");
        is("a,new\n", "a", "there is a column \"new\" already");
        is("\"a\"b,c\n", "a", "quotes of the header");
        is("#separator \\x09\n1\t2\n", "a", "records before a line #fields");
        is("#separator \\x0\n", "a", "a separator of one byte");
        is("{\"a\":1\n", "a", "no JSON object in the first lines: not JSON");
        let long = format!("a,b\n1,\"{}", "x\n".repeat(LONGEST));
        is(&long, "a", "no end of a record within 1048576 bytes");
        is(&"a".repeat(2 * LONGEST), "a", "no end of a record");
    }

    #[test]
    fn a_record_is_as_long_in_pieces_of_every_size() {
        let csv = |len: usize| format!("a,b\n1,2\n\"{}\",4\n5,6\n", "x\n".repeat((len - 5) / 2));
        let json = |len: usize| format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}\n{{}}\n", "x".repeat(len - 9));
        let zeek = |len: usize| format!("#fields\ta\tb\n1\t2\n{}\t4\n5\t6\n", "x".repeat(len - 3));
        let header = |len: usize| format!("a,{}\n1,2\n", "b".repeat(len - 3));
        for made in [&csv as &dyn Fn(usize) -> String, &json, &zeek, &header] {
            // Of odd length, as each pair of bytes in the quotes is two.
            for (len, right) in [(LONGEST - 1, None), (LONGEST + 1, Some(Error::TooLong))] {
                for piece in [1 << 12, 1 << 18, LONGEST, LONGEST + 7, 4 * LONGEST] {
                    let error = doubled(made(len).as_bytes(), piece, "a").err();
                    assert_eq!(error, right, "{len} bytes in pieces of {piece}");
                }
            }
        }
    }
}
