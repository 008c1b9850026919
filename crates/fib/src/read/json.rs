//! The common part of the JSON readers: the entries of an array or object, one after the other.
//!
//! Only one entry is in memory at a time, as a `Value`, so that a bad entry can be passed over. A file may
//! have several arrays or objects after each other, as from `ip -4 -j route; ip -6 -j route`.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wirespeed_input::Input;

use super::error::{End, Fault, Place, SkipReason};
use super::report::Ledger;

/// The most bytes of an entry; a route of a thousand next hops is smaller.
const LONGEST_ENTRY: u64 = 4 << 20;

/// An entry of an array or object. A group without a key marks the start of that group.
pub(super) struct Entry<'e> {
    /// The key of the inner object that holds the entry, if there is one.
    pub(super) group: Option<&'e str>,
    /// The entry's own key. `None` in an array.
    pub(super) key: Option<&'e str>,
    /// The first of equal keys of an object.
    pub(super) value: &'e Value,
    /// Where it ends.
    pub(super) place: Place,
}

/// The values at the top of an object that are groups of entries, and no entries themselves.
#[derive(Clone, Copy)]
pub(super) enum Groups {
    /// None.
    None,
    /// Objects with such a key. Their members are entries.
    Objects(fn(&str) -> bool),
    /// Arrays. Their elements are entries.
    Arrays,
}

/// Gives every entry to `take`, and the answer of `take` to the ledger.
pub(super) fn each_entry(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    groups: Groups,
    take: impl FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>,
) -> Result<(), End> {
    let position = Rc::new(Position::default());
    let mut bytes = Bytes { input, at: Rc::clone(&position) };
    let mut entries = Entries { ledger, groups, take, at: &position, end: None };
    loop {
        match bytes.skip_blanks() {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => return entries.ledger.broken(position.place(), error),
        }
        if let Err(error) = serde_json::Deserializer::from_reader(&mut bytes).deserialize_any(&mut entries) {
            if let Some(end) = entries.end {
                return Err(end);
            }
            return broken_off(entries.ledger, position.place(), error);
        }
    }
}

/// Ends a reading whose JSON can't be continued.
fn broken_off(ledger: &mut Ledger, place: Place, error: serde_json::Error) -> Result<(), End> {
    if error.is_eof() {
        return ledger.cut(place, "the JSON ends too soon");
    }
    if !error.is_io() {
        // The message has no place: the ledger adds it, counted from the start of the file.
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        return ledger.cut(place, format!("bad JSON ({message})"));
    }
    let error = io::Error::from(error);
    if error.kind() == io::ErrorKind::FileTooLarge {
        return ledger.cut(place, error.to_string());
    }
    ledger.broken(place, error)
}

/// The position of the parser.
#[derive(Debug, Default)]
struct Position {
    /// Ends of line so far.
    lines: Cell<u64>,
    /// Bytes since the last end of line.
    column: Cell<u64>,
    /// Bytes since the last entry.
    entry_bytes: Cell<u64>,
}

impl Position {
    fn place(&self) -> Place {
        Place::Column(self.lines.get() + 1, self.column.get())
    }
}

/// The input as bytes, as the parser takes them.
struct Bytes<'b, 'i> {
    input: &'b mut Input<'i>,
    at: Rc<Position>,
}

impl Bytes<'_, '_> {
    /// Skips blanks. Returns whether there is more input.
    fn skip_blanks(&mut self) -> io::Result<bool> {
        loop {
            match self.input.fill_buf()?.first() {
                None => return Ok(false),
                Some(b) if b.is_ascii_whitespace() => {
                    self.read_exact(&mut [0])?;
                }
                Some(_) => return Ok(true),
            }
        }
    }
}

impl Read for Bytes<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(first) = into.first_mut() else { return Ok(0) };
        let Some(&byte) = self.input.fill_buf()?.first() else { return Ok(0) };
        self.input.consume(1);
        *first = byte;
        let at = &*self.at;
        at.column.set(at.column.get() + 1);
        if byte == b'\n' {
            at.lines.set(at.lines.get() + 1);
            at.column.set(0);
        }
        at.entry_bytes.set(at.entry_bytes.get() + 1);
        if at.entry_bytes.get() > LONGEST_ENTRY {
            let message = format!("an entry of over {LONGEST_ENTRY} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(1)
    }
}

/// Visits an array or an object at the top of a file.
struct Entries<'e, F> {
    ledger: &'e mut Ledger,
    groups: Groups,
    take: F,
    at: &'e Position,
    end: Option<End>,
}

impl<F: FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>> Entries<'_, F> {
    /// Takes an entry. Returns whether to go on.
    fn entry<E: serde::de::Error>(
        &mut self,
        group: Option<&str>,
        key: Option<&str>,
        Parsed { value, has_twice }: &Parsed,
    ) -> Result<(), E> {
        self.at.entry_bytes.set(0);
        self.ledger.report.records += 1;
        let place = Place::Entry(self.at.lines.get() + 1, self.ledger.report.records);
        let entry = Entry { group, key, value, place };
        let what = entry.key.map_or_else(|| entry.value.to_string(), ToOwned::to_owned);
        // Some versions of iproute2 write a route's tunnel behind the route's own keys, with equal ones.
        let is_told_twice = *has_twice && value.get("encap").is_none();
        let taken = match is_told_twice {
            true => Err(SkipReason::KeyTwice.into()),
            false => (self.take)(entry, self.ledger),
        };
        if let Err(fault) = taken
            && let Err(end) = self.ledger.fault(fault, place, what)
        {
            self.end = Some(end);
            return Err(E::custom("ended"));
        }
        Ok(())
    }
}

impl<'de, F: FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>> Visitor<'de> for &mut Entries<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object of routes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(value) = array.next_element()? {
            self.entry(None, None, &value)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = object.next_key::<String>()? {
            let is_group = match self.groups {
                Groups::None => false,
                Groups::Objects(is_group) => is_group(&key),
                Groups::Arrays => true,
            };
            if is_group {
                object.next_value_seed(Group { name: &key, entries: self })?;
            } else {
                let value = object.next_value()?;
                self.entry(None, Some(&key), &value)?;
            }
        }
        Ok(())
    }
}

/// Visits the value of a group's key: the entries of the object or array one by one. Any other value is an
/// entry with that key.
struct Group<'g, 'e, F> {
    name: &'g str,
    entries: &'g mut Entries<'e, F>,
}

impl<'de, F: FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>> DeserializeSeed<'de> for Group<'_, '_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<F: FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>> Group<'_, '_, F> {
    fn whole<E: serde::de::Error>(self, value: Result<Parsed, E>) -> Result<(), E> {
        self.entries.entry(None, Some(self.name), &value?)
    }
}

impl<'de, F: FnMut(Entry<'_>, &mut Ledger) -> Result<(), Fault>> Visitor<'de> for Group<'_, '_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group of entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        if matches!(self.entries.groups, Groups::Arrays) {
            return self.whole(Parsed::deserialize(MapAccessDeserializer::new(object)));
        }
        let place = self.entries.at.place();
        let start = Entry { group: Some(self.name), key: None, value: &Value::Null, place };
        if (self.entries.take)(start, self.entries.ledger).is_err() {
            return Err(serde::de::Error::custom("no group of entries"));
        }
        while let Some((key, value)) = object.next_entry::<String, Parsed>()? {
            self.entries.entry(Some(self.name), Some(&key), &value)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        if matches!(self.entries.groups, Groups::Arrays) {
            while let Some(value) = array.next_element()? {
                self.entries.entry(Some(self.name), None, &value)?;
            }
            return Ok(());
        }
        self.whole(Parsed::deserialize(SeqAccessDeserializer::new(array)))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.whole(Ok(Parsed::default()))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.whole(Ok(Value::from(value).into()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.whole(Ok(Value::from(value).into()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.whole(Ok(Value::from(value).into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.whole(Ok(Value::from(value).into()))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.whole(Ok(Value::from(value).into()))
    }
}

/// A value, in which equal keys of an object are noted: the first of them holds.
#[derive(Debug, Default)]
struct Parsed {
    value: Value,
    has_twice: bool,
}

impl From<Value> for Parsed {
    fn from(value: Value) -> Self {
        Self { value, has_twice: false }
    }
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let mut has_twice = false;
        let value = Building { has_twice: &mut has_twice }.deserialize(value)?;
        Ok(Self { value, has_twice })
    }
}

/// Builds a value.
struct Building<'b> {
    has_twice: &'b mut bool,
}

impl<'de> DeserializeSeed<'de> for Building<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Building<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = serde_json::Map::new();
        while let Some(key) = object.next_key::<String>()? {
            let value = object.next_value_seed(Building { has_twice: &mut *self.has_twice })?;
            if members.contains_key(&key) {
                *self.has_twice = true;
            } else {
                members.insert(key, value);
            }
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(value) = array.next_element_seed(Building { has_twice: &mut *self.has_twice })? {
            elements.push(value);
        }
        Ok(Value::Array(elements))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
}

/// The text of an object's member, if it exists. Fails if it is not text.
pub(super) fn text<'v>(object: &'v Value, key: &str) -> Result<Option<&'v str>, SkipReason> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(SkipReason::Shape),
    }
}

/// Whether an object's member exists and is true.
pub(super) fn is_true(object: &Value, key: &str) -> bool {
    object.get(key) == Some(&Value::Bool(true))
}

/// The array of an object's member, if it exists. Fails if it is not an array.
pub(super) fn array<'v>(object: &'v Value, key: &str) -> Result<Option<&'v [Value]>, SkipReason> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(_) => Err(SkipReason::Shape),
    }
}
