//! The elements of a list in an object, `{"nftables": [...]}`, one by one, however many there are: one is
//! held at a time, and none that is too long.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};

use serde::de::{self, DeserializeSeed, Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Map, Value};
use wirespeed_input::Input;

use super::report::ReadError;
use super::yaml::Document;

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
}

/// Gives every element to `take`, with its place from 1.
pub(super) fn each_element(
    input: &mut Input<'_>,
    shape: Shape,
    mut take: impl FnMut(u64, Value) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let name = input.name().to_owned();
    let (bytes, count) = (Cell::new(0), Cell::new(0));
    let mut end = None;
    let mut list = List { shape, take: &mut take, bytes: &bytes, count: &count, end: &mut end };
    let mut json = Deserializer::from_reader(Bytes { input, bytes: &bytes });
    let read = json.deserialize_map(&mut list).and_then(|()| json.end());
    match (end, read) {
        (Some(end), _) => Err(end),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(broken(name, count.get() + 1, error)),
    }
}

/// Gives every element of a document of YAML to `take`, with its place in the list from 0. `None` of one that
/// is the document itself, which a document without a list is whatever else it has.
pub(super) fn each_element_of(
    Document { value, line, .. }: Document,
    name: &str,
    shape: Shape,
    mut take: impl FnMut(Option<u64>, Value) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let bad = |why| ReadError::Bad { name: name.to_owned(), line, why, text: String::new() };
    let is_list = value.get(shape.list).is_some();
    if value.is_object() && !is_list {
        return take(None, value);
    }
    let is_odd = |key: &&String| **key != shape.list && !shape.beside.contains(&key.as_str());
    if let Some(key) = value.as_object().filter(|_| is_list).and_then(|all| all.keys().find(is_odd)) {
        return Err(bad(format!("{key:?} beside {:?}", shape.list)));
    }
    let mut take = |at: u64, element| take(Some(at - 1), element);
    let (bytes, count) = (Cell::new(0), Cell::new(0));
    let mut end = None;
    let mut list = List { shape, take: &mut take, bytes: &bytes, count: &count, end: &mut end };
    let read = value.deserialize_map(&mut list);
    match (end, read) {
        (Some(end), _) => Err(end),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(bad(error.to_string())),
    }
}

fn broken(name: String, line: u64, error: serde_json::Error) -> ReadError {
    if error.io_error_kind().is_some_and(|kind| kind != io::ErrorKind::FileTooLarge) {
        return ReadError::Io { name, cause: error.into() };
    }
    let why = match error.io_error_kind() {
        Some(_) => io::Error::from(error).to_string(),
        None => error.to_string(),
    };
    ReadError::Bad { name, line, why, text: String::new() }
}

/// The input, counted since the last element.
struct Bytes<'b, 'i> {
    input: &'b mut Input<'i>,
    bytes: &'b Cell<u64>,
}

impl Read for Bytes<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // Byte by byte, as the parser takes them: what it has read ahead would count for the element before.
        let Some(first) = into.first_mut() else { return Ok(0) };
        let Some(&byte) = self.input.fill_buf()?.first() else { return Ok(0) };
        self.input.consume(1);
        *first = byte;
        self.bytes.set(self.bytes.get() + 1);
        if self.bytes.get() > LONGEST_ELEMENT {
            let message = format!("an element of over {LONGEST_ELEMENT} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(1)
    }
}

/// Visits the object, and the list in it.
struct List<'l, F> {
    shape: Shape,
    take: &'l mut F,
    bytes: &'l Cell<u64>,
    count: &'l Cell<u64>,
    end: &'l mut Option<ReadError>,
}

impl<F: FnMut(u64, Value) -> Result<(), ReadError>> List<'_, F> {
    fn take<E: de::Error>(&mut self, element: Value) -> Result<(), E> {
        self.bytes.set(0);
        self.count.set(self.count.get() + 1);
        (self.take)(self.count.get(), element).map_err(|end| {
            *self.end = Some(end);
            E::custom("ended")
        })
    }
}

impl<'de, F: FnMut(u64, Value) -> Result<(), ReadError>> Visitor<'de> for &mut List<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{:?}: [...]}}", self.shape.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Shape { list, beside, alone } = self.shape;
        let mut is_found = false;
        let mut element = Map::new();
        while let Some(key) = object.next_key::<String>()? {
            if key == list && !is_found {
                object.next_value_seed(&mut *self)?;
                is_found = true;
            } else if beside.contains(&key.as_str()) || alone.contains(&key.as_str()) && !is_found {
                element.insert(key, object.next_value()?);
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
            (false, true) => self.take::<A::Error>(Value::Object(element)),
            (false, false) => Err(de::Error::custom(format!("no list {list:?}"))),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            self.take::<A::Error>(element)?;
        }
        Ok(())
    }
}

impl<'de, F: FnMut(u64, Value) -> Result<(), ReadError>> DeserializeSeed<'de> for &mut List<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}
