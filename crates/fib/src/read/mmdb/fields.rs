//! [`Fields`]: the values of a record, each by its path.

use std::fmt::{self, Display, Write};

use crate::read::field_type::FieldType;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// The most bytes of a record's paths and values. Records of cities in eight languages take 3,000.
const LARGEST: usize = 256 << 10;
/// The most levels of maps and arrays.
const DEEPEST: u8 = 32;

/// The name of a record that is one value, without a map.
pub(super) const VALUE: &str = "value";

/// The values of a record, in its order. The path of a value has a dot between keys, and positions in arrays
/// from 0.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(String, FieldType, String)>);

impl Fields {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, _, text)| (&**path, &**text))
    }

    pub(super) fn types(&self) -> impl Iterator<Item = (&str, FieldType)> {
        self.0.iter().map(|(path, of, _)| (&**path, *of))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == path).map(|(_, text)| text)
    }

    /// Whether the record is one value without a name of its own.
    pub(super) fn is_value(&self) -> bool {
        matches!(&self.0[..], [(path, ..)] if path == VALUE)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        let mut taken = Taken { fields: Vec::new(), path: String::new(), bytes: 0, depth: 0 };
        Into(&mut taken).deserialize(decoder)?;
        Ok(Self(taken.fields))
    }
}

/// The values so far, and the path to the next one.
struct Taken {
    fields: Vec<(String, FieldType, String)>,
    path: String,
    bytes: usize,
    depth: u8,
}

struct Into<'t>(&'t mut Taken);

impl Into<'_> {
    fn value<E: Error>(self, of: FieldType, value: impl Display) -> Result<(), E> {
        let Taken { fields, path, bytes, .. } = self.0;
        let (path, text) = (if path.is_empty() { VALUE } else { path }, value.to_string());
        *bytes += path.len() + text.len();
        if *bytes > LARGEST {
            return Err(E::custom(format_args!("a record of over {LARGEST} bytes")));
        }
        fields.push((path.to_owned(), of, text));
        Ok(())
    }

    /// Takes what lies beneath a key or a position.
    fn within<E: Error>(
        &mut self,
        key: impl Display,
        take: impl FnOnce(Into<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let whole = self.0.path.len();
        let dot = if whole == 0 { "" } else { "." };
        // Writing to a string can't fail.
        _ = write!(self.0.path, "{dot}{key}");
        self.0.depth += 1;
        if self.0.depth > DEEPEST || self.0.path.len() > LARGEST {
            return Err(E::custom(format_args!("a record of over {DEEPEST} levels")));
        }
        take(Into(self.0))?;
        self.0.depth -= 1;
        self.0.path.truncate(whole);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, decoder: D) -> Result<(), D::Error> {
        decoder.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a MaxMind DB")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.within(key, |within| map.next_value_seed(within))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut array: A) -> Result<(), A::Error> {
        for at in 0_u32.. {
            let mut is_end = false;
            self.within(at, |within| {
                is_end = array.next_element_seed(within)?.is_none();
                Ok(())
            })?;
            if is_end {
                break;
            }
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.value(FieldType::Boolean, value)
    }

    fn visit_i32<E: Error>(self, value: i32) -> Result<(), E> {
        self.value(FieldType::Int32, value)
    }

    fn visit_u16<E: Error>(self, value: u16) -> Result<(), E> {
        self.value(FieldType::Uint16, value)
    }

    fn visit_u32<E: Error>(self, value: u32) -> Result<(), E> {
        self.value(FieldType::Uint32, value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.value(FieldType::Uint64, value)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.value(FieldType::Uint128, value)
    }

    fn visit_f32<E: Error>(self, value: f32) -> Result<(), E> {
        self.value(FieldType::Float, value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.value(FieldType::Double, value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.value(FieldType::Text, value)
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<(), E> {
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        self.value(FieldType::Bytes, hex)
    }
}
