//! The elements of a list in an object, `{"nftables": [...]}`, one by one, however many there are: one is
//! held at a time, and none that is too long. Each has the line where it begins, and those of the elements of
//! lists in it that hold rules.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Read};
use std::num::NonZeroU64;

use serde::de::{self, DeserializeSeed, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value};
use wirespeed_input::Input;

use super::report::{Place, ReadError};
use super::yaml::{Document, Lines};

/// The longest element, in bytes: a set of some 300,000 prefixes.
pub(super) const LONGEST_ELEMENT: u64 = if cfg!(fuzzing) { 64 << 10 } else { 16 << 20 };

/// The members of the object.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The list.
    pub(super) list: &'static str,
    /// Members beside it that say nothing about its elements. Any other is an error.
    pub(super) beside: &'static [&'static str],
    /// Members of an object that is one element itself, without a list.
    pub(super) alone: &'static [&'static str],
    /// Members of elements that are lists of rules.
    pub(super) rules: &'static [&'static str],
}

/// An element.
pub(super) struct Element {
    /// Its number, from 1.
    pub(super) number: u64,
    pub(super) value: Value,
    /// The lines of the elements of lists of rules in it, by their places in it: `/IpPermissions/0`. Its own
    /// is that of the empty place. Not those of YAML.
    lines: Lines,
}

impl Element {
    /// The place of a part of an element of JSON, which is a rule or has a rule of this number.
    pub(super) fn place(&self, part: &str, entry: u64) -> Place {
        let line = self.lines.get(part).or(self.lines.get("")).copied().unwrap_or_default();
        Place { line, entry: NonZeroU64::new(entry) }
    }
}

/// Gives every element to `take`.
pub(super) fn each_element(
    input: &mut Input<'_>,
    shape: Shape,
    take: &mut dyn FnMut(Element) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let name = input.name().to_owned();
    let (at, mut end) = (Position::default(), None);
    let mut list = List { shape, take, at: &at, end: &mut end };
    let mut json = Deserializer::from_reader(Bytes { input, at: &at });
    let read = json.deserialize_map(&mut list).and_then(|()| json.end());
    match (end, read) {
        (Some(end), _) => Err(end),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => {
            let place = Place { line: at.line(), entry: NonZeroU64::new(at.count.get() + 1) };
            Err(broken(name, place, error))
        }
    }
}

/// Gives every element of a document of YAML to `take`, with its place in the list from 0. `None` of one that
/// is the document itself, which a document without a list is whatever else it has.
pub(super) fn each_element_of(
    Document { value, line, .. }: Document,
    name: &str,
    shape: Shape,
    take: &mut dyn FnMut(Option<u64>, Value) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let bad = |why| ReadError::Bad { name: name.to_owned(), place: line.into(), why, text: String::new() };
    let is_list = value.get(shape.list).is_some();
    if value.is_object() && !is_list {
        return take(None, value);
    }
    let is_odd = |key: &&String| **key != shape.list && !shape.beside.contains(&key.as_str());
    if let Some(key) = value.as_object().filter(|_| is_list).and_then(|all| all.keys().find(is_odd)) {
        return Err(bad(format!("{key:?} beside {:?}", shape.list)));
    }
    let mut take = |element: Element| take(Some(element.number - 1), element.value);
    let (at, mut end) = (Position::default(), None);
    let mut list = List { shape, take: &mut take, at: &at, end: &mut end };
    let read = value.deserialize_map(&mut list);
    match (end, read) {
        (Some(end), _) => Err(end),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(bad(error.to_string())),
    }
}

fn broken(name: String, place: Place, error: serde_json::Error) -> ReadError {
    if error.io_error_kind().is_some_and(|kind| kind != io::ErrorKind::FileTooLarge) {
        return ReadError::Io { name, cause: error.into() };
    }
    let why = match error.io_error_kind() {
        Some(_) => io::Error::from(error).to_string(),
        None => error.to_string(),
    };
    ReadError::Bad { name, place, why, text: String::new() }
}

/// Counts of what has been read.
#[derive(Default)]
struct Position {
    /// Bytes since the last element.
    bytes: Cell<u64>,
    /// Ends of lines.
    ends: Cell<u64>,
    /// Elements.
    count: Cell<u64>,
}

impl Position {
    /// The current line, from 1.
    fn line(&self) -> u64 {
        self.ends.get() + 1
    }
}

/// The input, counted.
struct Bytes<'b, 'i> {
    input: &'b mut Input<'i>,
    at: &'b Position,
}

impl Read for Bytes<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Byte by byte, as the parser takes them: what it has read ahead would count for the element before.
        let Some(first) = into.first_mut() else { return Ok(0) };
        let Some(&byte) = self.input.fill_buf()?.first() else { return Ok(0) };
        self.input.consume(1);
        *first = byte;
        self.at.ends.set(self.at.ends.get() + u64::from(byte == b'\n'));
        self.at.bytes.set(self.at.bytes.get() + 1);
        if self.at.bytes.get() > LONGEST_ELEMENT {
            let message = format!("an element of over {LONGEST_ELEMENT} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(1)
    }
}

/// Visits the object, and the list in it.
struct List<'l> {
    shape: Shape,
    take: &'l mut dyn FnMut(Element) -> Result<(), ReadError>,
    at: &'l Position,
    end: &'l mut Option<ReadError>,
}

impl List<'_> {
    fn take<E: de::Error>(&mut self, value: Value, lines: Lines) -> Result<(), E> {
        self.at.bytes.set(0);
        let number = self.at.count.get() + 1;
        self.at.count.set(number);
        (self.take)(Element { number, value, lines }).map_err(|end| {
            *self.end = Some(end);
            E::custom("ended")
        })
    }
}

impl<'de> Visitor<'de> for &mut List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{:?}: [...]}}", self.shape.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Shape { list, beside, alone, rules } = self.shape;
        let mut is_found = false;
        let (mut element, mut lines) = (Map::new(), Lines::from([(String::new(), self.at.line())]));
        while let Some(key) = object.next_key::<String>()? {
            if key == list && !is_found {
                object.next_value_seed(&mut *self)?;
                is_found = true;
            } else if beside.contains(&key.as_str()) || alone.contains(&key.as_str()) && !is_found {
                let mut place = format!("/{key}");
                let value = Located {
                    at: self.at,
                    rules,
                    place: &mut place,
                    lines: &mut lines,
                    is: Is::of(&key, rules),
                };
                element.insert(key, object.next_value_seed(value)?);
            } else if is_found {
                return Err(de::Error::custom(format!("{key:?} beside {list:?}")));
            } else {
                return Err(de::Error::custom(format!("no list {list:?}")));
            }
        }
        let is_alone = alone.iter().any(|key| element.contains_key(*key));
        match (is_found, is_alone) {
            (true, false) => Ok(()),
            (true, true) => Err(de::Error::custom(format!("members of an element beside {list:?}"))),
            (false, true) => self.take::<A::Error>(Value::Object(element), lines),
            (false, false) => Err(de::Error::custom(format!("no list {list:?}"))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        loop {
            let (mut place, mut lines) = (String::new(), Lines::new());
            let (at, rules) = (self.at, self.shape.rules);
            let element = Located { at, rules, place: &mut place, lines: &mut lines, is: Is::Element };
            let Some(element) = elements.next_element_seed(element)? else { return Ok(()) };
            self.take::<A::Error>(element, lines)?;
        }
    }
}

/// A value whose elements that are rules are noted with their lines.
struct Located<'l> {
    at: &'l Position,
    rules: &'static [&'static str],
    /// Its place in the element.
    place: &'l mut String,
    lines: &'l mut Lines,
    is: Is,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    /// The element, or a rule in it.
    Element,
    /// A list of rules.
    Rules,
    Other,
}

impl Is {
    fn of(key: &str, rules: &[&str]) -> Self {
        if rules.contains(&key) { Self::Rules } else { Self::Other }
    }
}

impl Located<'_> {
    /// A part of the value, whose place goes on so.
    fn part(&mut self, is: Is) -> Located<'_> {
        Located { at: self.at, rules: self.rules, place: self.place, lines: self.lines, is }
    }
}

impl<'de> DeserializeSeed<'de> for Located<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        // The parser stands at the first byte.
        if self.is == Is::Element {
            self.lines.insert(self.place.clone(), self.at.line());
        }
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Located<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let (before, is) = (self.place.len(), Is::of(&key, self.rules));
            let _ = write!(self.place, "/{key}"); // a String takes all
            let value = object.next_value_seed(self.part(is))?;
            self.place.truncate(before);
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        let (mut elements, before) = (Vec::new(), self.place.len());
        let is = if self.is == Is::Rules { Is::Element } else { Is::Other };
        loop {
            if is == Is::Element {
                let _ = write!(self.place, "/{}", elements.len()); // a String takes all
            }
            let element = list.next_element_seed(self.part(is))?;
            self.place.truncate(before);
            match element {
                Some(element) => elements.push(element),
                None => return Ok(Value::Array(elements)),
            }
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for &mut List<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}
