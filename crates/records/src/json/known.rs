//! Records like those before them: names of members that are known are compared, and not scanned.
//!
//! ```text
//! {"ts":1796005000,"src":"192.0.2.1","bytes":892}\n
//! ------          -------           ---------   ---    leads, each with what is known of it
//!       ^^^^^^^^^^       ^^^^^^^^^^^         ^^^       values
//! ```
//!
//! A lead is all that stands before a value: comma, name, colon and blanks, and braces of objects that end or
//! begin there; the last one is the end of the record. Programs write records with the same members in the
//! same order, so the leads that followed a lead before most often follow it again. Then 32 bytes are
//! compared at once, or 64, and no byte of the name is looked at alone. A lead that is none of the expected
//! ones is scanned once, and is known from then on.
//!
//! Whatever is unusual is left to the scanner of whole lines, which says what is wrong.

use super::stops::Stops;
use super::{DEEPEST, Members, Scanner, Within};
use crate::records::{Cell, Records};

use memchr::memchr;

/// The leads of the records so far, by a hash of their bytes.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The bytes of the block that end values.
    stops: Stops,
    /// The members that they are known for.
    of: u64,
    leads: Vec<Lead>,
    count: usize,
    /// The objects that leads are in. The first one is the record.
    objects: Vec<Object>,
}

/// An object in a record, and those around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    /// The place of the object around it.
    around: u16,
    depth: usize,
    within: Within,
}

/// The most bytes of a lead that is kept.
const WINDOW: usize = 64;
type Window = [u64; WINDOW / 8];
/// The leads that there is space for, a power of two.
const SLOTS: usize = 256;
/// The number at which all are forgotten at the start of a record: most names are not seen again.
const MOST: usize = SLOTS / 2;
/// The number at which no more are kept in a record.
const FULL: usize = SLOTS / 4 * 3;
/// The leads after a lead that are tried: members may be missing.
const NEXT: usize = 4;
/// The most objects that are known. Others are values.
const MOST_OBJECTS: usize = 64;
/// The place of the object that is the record.
const RECORD: u16 = 0;
/// Stands for the end of the record before, and for no lead.
const START: u16 = 256;
/// A lead that is too long to be kept.
const PASSING: u16 = START + 1;
const _: () = assert!(START as usize == SLOTS);

#[derive(Clone, Copy, Debug)]
struct Lead {
    /// The bytes, and zeros.
    words: Window,
    /// All ones for each of the bytes.
    masks: Window,
    /// The number of bytes. 0 if there is no lead here.
    len: usize,
    /// The leads that followed it last.
    next: [u16; NEXT],
    /// The object before it, and that of the value after it.
    objects: [u16; 2],
    role: Role,
}

/// What follows a lead.
#[derive(Clone, Copy, Debug)]
enum Role {
    /// The next record. New members come after so many bytes of the lead.
    End { insert: usize },
    /// The value of a member, with the bits of the wanted names that are its own, and those that are paths
    /// into it.
    Member { hits: u64, inside: Within },
}

impl Lead {
    const NONE: Self = Self {
        words: [0; WINDOW / 8],
        masks: [0; WINDOW / 8],
        len: 0,
        next: [START; NEXT],
        objects: [RECORD; 2],
        role: Role::End { insert: 0 },
    };

    fn of(bytes: &[u8], objects: [u16; 2], role: Role) -> Self {
        let (mut text, mut mask) = ([0; WINDOW], [0; WINDOW]);
        for ((text, mask), &byte) in text.iter_mut().zip(&mut mask).zip(bytes) {
            (*text, *mask) = (byte, u8::MAX);
        }
        Self { words: words(&text), masks: words(&mask), len: bytes.len(), objects, role, ..Self::NONE }
    }

    /// Whether a window starts with it.
    #[inline]
    fn is_at(&self, window: &Window) -> bool {
        let differs = |at: usize| (window[at] ^ self.words[at]) & self.masks[at];
        let half = |at: usize| differs(at) | differs(at + 1) | differs(at + 2) | differs(at + 3) == 0;
        // Most are short.
        self.len != 0 && half(0) && (self.len <= WINDOW / 2 || half(4))
    }
}

impl Known {
    /// Prepares for bytes of a block whose members are these. Others are forgotten.
    /// Returns whether the bytes are ASCII.
    pub(super) fn prepare(&mut self, members: &Members, bytes: &[u8]) -> bool {
        if self.leads.is_empty() || self.of != members.id {
            self.of = members.id;
            self.objects = vec![Object { around: RECORD, depth: 1, within: members.all() }];
            self.forget();
        }
        self.stops.read(bytes)
    }

    fn forget(&mut self) {
        self.leads.clear();
        self.leads.resize(usize::from(PASSING) + 1, Lead::NONE);
        self.objects.truncate(1);
        self.count = 0;
    }

    fn lead(&self, place: u16) -> &Lead {
        &self.leads[usize::from(place)]
    }

    /// The lead that a window starts with, if it followed the last one before.
    #[inline]
    fn next(&self, last: u16, window: &[u8; WINDOW]) -> Option<u16> {
        let window = words(window);
        self.lead(last).next.into_iter().find(|&next| self.lead(next).is_at(&window))
    }

    /// Keeps a lead that follows the last one. Returns its place.
    fn keep(&mut self, last: u16, lead: Lead) -> u16 {
        if lead.len > WINDOW || self.count == FULL {
            self.leads[usize::from(PASSING)] = lead;
            return PASSING;
        }
        let mix = |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let [mut slot, ..] = lead.words.iter().fold(u64::from(lead.objects[0]), mix).to_be_bytes();
        // Not all slots are taken.
        let place = loop {
            let there = &mut self.leads[usize::from(slot)];
            if there.len == 0 {
                *there = lead;
                self.count += 1;
                break slot.into();
            }
            if (there.words, there.len, there.objects[0]) == (lead.words, lead.len, lead.objects[0]) {
                break slot.into();
            }
            slot = slot.wrapping_add(1);
        };
        let next = &mut self.leads[usize::from(last)].next;
        next.rotate_right(1);
        next[0] = place;
        place
    }

    /// The place of an object, if it can be known.
    fn enter(&mut self, object: Object) -> Option<u16> {
        let place = self.objects.iter().position(|known| *known == object).or_else(|| {
            let can = object.depth <= DEEPEST && self.objects.len() < MOST_OBJECTS;
            can.then(|| self.objects.push(object))?;
            Some(self.objects.len() - 1)
        });
        place.and_then(|place| u16::try_from(place).ok())
    }
}

impl<'l> Scanner<'l> {
    /// Scans the record at a place of a block, if nothing of it is unusual. Returns the end of its last
    /// member, and that of the record. `None` leaves the record's cells and what was seen as they come.
    #[inline]
    pub(super) fn usual(
        &mut self,
        block: &'l [u8],
        start: usize,
        known: &mut Known,
        records: &mut Records,
    ) -> Option<(usize, usize)> {
        if known.count >= MOST {
            known.forget();
        }
        self.seen = 0;
        let (mut at, mut last) = (start, START);
        loop {
            let place = match known.next(last, block.get(at..)?.first_chunk()?) {
                Some(place) => place,
                None => self.learn(block, start, at, last, known)?,
            };
            let lead = known.lead(place);
            match lead.role {
                Role::End { insert } => return Some((at + insert, at + lead.len)),
                Role::Member { hits, inside } => {
                    at += lead.len;
                    at = match self.usual_value(block, at, hits, &known.stops, records) {
                        Some(end) => end,
                        None => {
                            let depth = known.objects[usize::from(lead.objects[1])].depth;
                            self.unusual_value(block, start, at, (hits, inside, depth), records)?
                        }
                    };
                }
            }
            last = place;
        }
    }

    /// The end of a value without escapes, exponents and other values in it. `None` leaves all as it was.
    #[inline]
    fn usual_value(
        &mut self,
        block: &[u8],
        at: usize,
        hits: u64,
        stops: &Stops,
        records: &mut Records,
    ) -> Option<usize> {
        let bytes = &block[at..];
        let (inner, end) = match bytes.first()? {
            b'"' => {
                let quote = stops.after_plain(at + 1)?;
                (block.get(quote) == Some(&b'"')).then_some((at + 1..quote, quote + 1))?
            }
            b'-' | b'0'..=b'9' if hits & !self.members.numbers == 0 => {
                let end = at + number(bytes, stops.not_digits(at)?)?;
                (at..end, end)
            }
            b't' if bytes.starts_with(b"true") && hits == 0 => return Some(at + 4),
            b'f' if bytes.starts_with(b"false") && hits == 0 => return Some(at + 5),
            b'n' if bytes.starts_with(b"null") && hits == 0 => return Some(at + 4),
            _ => return None,
        };
        if hits != 0 {
            if self.seen & hits != 0 {
                return None;
            }
            self.seen |= hits;
            let cell = Cell::of_block(inner);
            super::bits(hits).for_each(|wanted| records.last()[wanted] = cell);
        }
        Some(end)
    }

    /// The end of any other value.
    #[cold]
    fn unusual_value(
        &mut self,
        block: &'l [u8],
        start: usize,
        at: usize,
        (hits, inside, depth): (u64, Within, usize),
        records: &mut Records,
    ) -> Option<usize> {
        self.go_to(block, start, at);
        // A lead may be known with fewer blanks.
        self.blanks();
        self.wanted_value(hits, inside, depth, records).ok()?;
        Some(start + self.at)
    }

    /// Scans a lead, and keeps it.
    #[cold]
    fn learn(
        &mut self,
        block: &'l [u8],
        start: usize,
        at: usize,
        last: u16,
        known: &mut Known,
    ) -> Option<u16> {
        self.go_to(block, start, at);
        let before = known.lead(last).objects[1];
        let (mut object, mut insert) = (before, 0);
        self.blanks();
        loop {
            match self.take()? {
                b'{' if last == START => break,
                b',' if last != START => break,
                b'}' if last != START && object == RECORD => {
                    self.end().ok()?;
                    let end = start + self.at;
                    // Only with the end of line it is certain to be all.
                    let lead = block.get(at..=end)?;
                    return Some(known.keep(last, Lead::of(lead, [before, RECORD], Role::End { insert })));
                }
                b'}' if last != START => {
                    object = known.objects[usize::from(object)].around;
                    insert = start + self.at - at;
                    self.blanks();
                }
                _ => return None,
            }
        }
        loop {
            self.blanks();
            (self.peek()? == b'"').then_some(())?;
            let text = self.string().ok().filter(|text| !text.is_escaped)?;
            self.blanks();
            (self.take()? == b':').then_some(())?;
            self.blanks();
            let name = &self.line[text.inner];
            if object == RECORD && self.members.taken(name).is_some() {
                return None;
            }
            let Object { depth, within, .. } = known.objects[usize::from(object)];
            let (hits, inside) = self.wanted(name, within);
            let value = self.at;
            if hits == 0 && self.peek() == Some(b'{') {
                self.at += 1;
                self.blanks();
                let inner = Object { around: object, depth: depth + 1, within: inside };
                // An object without members is a value.
                if self.peek() == Some(b'"')
                    && let Some(place) = known.enter(inner)
                {
                    object = place;
                    continue;
                }
            }
            let lead = &block[at..start + value];
            let role = Role::Member { hits, inside };
            return Some(known.keep(last, Lead::of(lead, [before, object], role)));
        }
    }

    /// Goes to a place of the line that starts at another.
    fn go_to(&mut self, block: &'l [u8], start: usize, at: usize) {
        let end = memchr(b'\n', &block[at..]).map_or(block.len(), |line| at + line);
        (self.line, self.base, self.at) = (&block[start..end], start, at - start);
    }
}

/// The length of a number without an exponent, of which 64 bytes are looked at. `None` for others, and for
/// what is none.
#[inline]
fn number(bytes: &[u8], not_digits: u64) -> Option<usize> {
    let sign = u32::from(bytes.first() == Some(&b'-'));
    // The first bit is that of the sign.
    let ends = not_digits & !u64::from(sign);
    let whole = ends.trailing_zeros();
    let byte = |at: u32| bytes.get(at as usize).copied();
    let has_zeros = byte(sign) == Some(b'0') && whole != sign + 1;
    let (mut end, mut is_wrong) = (whole, ends == 0 || whole == sign || has_zeros);
    if byte(whole) == Some(b'.') {
        let after = ends & ends.wrapping_sub(1);
        end = after.trailing_zeros();
        is_wrong |= after == 0 || end == whole + 1;
    }
    is_wrong |= matches!(byte(end), Some(b'e' | b'E'));
    (!is_wrong).then_some(end as usize)
}

/// The bytes as words, the first one lowest.
#[inline]
fn words(bytes: &[u8; WINDOW]) -> Window {
    let words = bytes.as_chunks().0;
    std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> Members {
        Members::new(vec!["a".into()], 0, Vec::new())
    }

    /// The ways that lines go: whether each is scanned without the scanner of whole lines.
    fn is_usual(members: &Members, lines: &[&str]) -> Vec<bool> {
        let block = [lines.concat().as_bytes(), &[b' '; WINDOW]].concat();
        let (mut known, mut records, mut start) = (Known::default(), Records::default(), 0);
        records.begin(1);
        records.open();
        known.prepare(members, &block);
        let usual = lines.iter().map(|line| {
            let mut scanner = Scanner::new(&block, members);
            let found = scanner.usual(&block, start, &mut known, &mut records);
            start += line.len();
            assert!(found.is_none_or(|(_, end)| end == start), "{line}");
            found.is_some()
        });
        usual.collect()
    }

    #[test]
    fn usual_lines_need_no_scanner() {
        let lines = [
            "{\"a\":\"x\",\"b\":-1.5}\n",
            "{\"a\": \"x\", \"b\": true}\r\n",
            "{\"c\":{\"a\":[],\"d\":{\"e\":1}},\"c\":{}}\n",
        ];
        assert_eq!(is_usual(&members(), &lines), [true; 3]);
        let lines =
            ["{}\n", "{\"a\":1}\n", "{\"a\":\"\",\"a\":\"\"}\n", "{\"b\":01}\n", "\n", "{\"b\":1}x\n"];
        assert_eq!(is_usual(&members(), &lines), [false; 6]);
    }

    #[test]
    fn more_names_than_are_kept() {
        let line =
            |at: usize| format!("{{\"a\":\"{at}\",\"name{at}\":1,\"name{}\":{{\"{at}\":2}}}}\n", at / 2);
        let mut lines: Vec<String> = (0..3 * SLOTS).map(line).collect();
        let many: Vec<String> = (0..3 * SLOTS).map(|at| format!("\"{at}\":null")).collect();
        lines.push(format!("{{{}}}\n", many.join(",")));
        let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
        assert!(is_usual(&members(), &lines).into_iter().all(|is| is));
    }

    #[test]
    fn others_members_are_forgotten() {
        let (block, mut records) =
            (b"{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"3\",\"b\":\"4\"}\n", Records::default());
        for (wanted, right) in [("a", [b"1", b"3"]), ("b", [b"2", b"4"]), ("a", [b"1", b"3"])] {
            records.begin(1);
            Members::new(vec![wanted.into()], 0, Vec::new()).scan(block, block.len(), &mut records);
            assert_eq!([0, 1].map(|at| records.cell(block, at, 0)), right.map(|cell| &cell[..]));
        }
    }
}
