//! MaxMind DB files of tables.
//!
//! ```text
//! prefixes in order ──► tree of bits ──► nodes │ 16 zeros │ records │ metadata
//! ```
//!
//! A route inside another cuts the other's network to pieces, because networks of such a tree don't overlap:
//! lookups get the same answers, and the prefixes read back are the pieces. A table of both families has IPv4
//! in `::/96`, so routes of IPv6 count outside of it only. No aliases are written.
//!
//! A label `asn=13335,country.iso_code=US` becomes the record
//! `{"asn": 13335, "country": {"iso_code": "US"}}`, any other the record `{"value": …}`. The reader makes the
//! same labels of them.

use std::collections::HashMap;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Routes, WriteError, refuse};
use crate::read::any_prefix::AnyPrefix;
use crate::read::{label_fields, label_text, label_value};

/// The name of a record that is one value.
const VALUE: &str = "value";
/// Bytes between the tree and the records.
const GAP: usize = 16;

pub(super) fn table(routes: &mut Routes<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    let bytes = encode(routes, None)?;
    Ok(out.write_all(&bytes)?)
}

/// The file of a table, with records of so many bits, or of as few as hold it.
pub(super) fn encode(routes: &mut Routes<'_>, bits: Option<u16>) -> Result<Vec<u8>, WriteError> {
    let is_v6 = !routes.fib.v6.is_empty();
    let mut tree = Tree::default();
    let (mut data, mut places) = (Vec::new(), HashMap::new());
    let mut v4 = Vec::new();
    routes.each(|prefix, text| {
        let place = match places.get(text) {
            Some(&place) => place,
            None => {
                let place = u32::try_from(data.len()).map_err(|_| WriteError::TooLarge)?;
                let fields = fields(text).ok_or_else(|| refuse(super::Format::Mmdb, prefix, text))?;
                Value::of(&fields).encode(&mut data);
                places.insert(text.to_owned(), place);
                place
            }
        };
        match prefix {
            // After the routes of IPv6 around them.
            AnyPrefix::V4(prefix) => {
                v4.push((
                    u128::from(prefix.address().0) << 96 >> if is_v6 { 96 } else { 0 },
                    prefix.len(),
                    place,
                ));
            }
            AnyPrefix::V6(prefix) => tree.set(prefix.address().0, prefix.len(), Some(place))?,
        }
        Ok(())
    })?;
    if is_v6 {
        tree.set(0, 96, None)?;
    }
    for (address, len, place) in v4 {
        tree.set(address, if is_v6 { 96 + len } else { len }, Some(place))?;
    }
    let count = tree.nodes.len();
    let most = count + GAP + data.len();
    let bits = match bits {
        Some(bits) => bits,
        None => [24, 28, 32].into_iter().find(|bits| most >> bits == 0).ok_or(WriteError::TooLarge)?,
    };
    let mut file = Vec::new();
    let count = u32::try_from(count).map_err(|_| WriteError::TooLarge)?;
    for node in &tree.nodes {
        write_node(node.map(|record| record.number(count)), bits, &mut file);
    }
    file.extend([0; GAP]);
    file.extend(data);
    file.extend(b"\xab\xcd\xefMaxMind.com");
    metadata(count, bits, is_v6).encode(&mut file);
    Ok(file)
}

/// A record of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Record {
    Nothing,
    Node(u32),
    /// The offset of a record among the data.
    Data(u32),
}

impl Record {
    fn number(self, count: u32) -> u32 {
        match self {
            Self::Nothing => count,
            Self::Node(node) => node,
            // The sum was checked against the bits of a record.
            Self::Data(place) => count.saturating_add(16).saturating_add(place),
        }
    }
}

struct Tree {
    nodes: Vec<[Record; 2]>,
}

impl Default for Tree {
    fn default() -> Self {
        Self { nodes: vec![[Record::Nothing; 2]] }
    }
}

impl Tree {
    /// Gives a network its record. The bits of the address are the high ones. Networks around it come before
    /// it.
    fn set(&mut self, address: u128, len: u8, place: Option<u32>) -> Result<(), WriteError> {
        let record = place.map_or(Record::Nothing, Record::Data);
        if len == 0 {
            self.nodes[0] = [record; 2];
            return Ok(());
        }
        let mut at = 0;
        for bit in 0..len - 1 {
            let side = side(address, bit);
            at = match self.nodes[at][side] {
                Record::Node(node) => node as usize,
                around => {
                    let node = u32::try_from(self.nodes.len()).map_err(|_| WriteError::TooLarge)?;
                    self.nodes.push([around; 2]);
                    self.nodes[at][side] = Record::Node(node);
                    node as usize
                }
            };
        }
        self.nodes[at][side(address, len - 1)] = record;
        Ok(())
    }
}

fn side(address: u128, bit: u8) -> usize {
    usize::from(address >> (127 - bit) & 1 == 1)
}

fn write_node([left, right]: [u32; 2], bits: u16, file: &mut Vec<u8>) {
    let ([a, left @ ..], [b, right @ ..]) = (left.to_be_bytes(), right.to_be_bytes());
    match bits {
        24 => file.extend([left, right].concat()),
        28 => file.extend([&left[..], &[a << 4 | b], &right].concat()),
        _ => file.extend([&[a], &left[..], &[b], &right].concat()),
    }
}

/// The fields that a label stands for. `None` if they would not make the same label.
fn fields(text: &str) -> Option<Vec<(String, String)>> {
    let pairs = label_fields(text).filter(|pairs| !matches!(&pairs[..], [(name, _)] if name == VALUE));
    let fields = match pairs {
        Some(pairs) => pairs,
        None => vec![(VALUE.to_owned(), label_value(text)?)],
    };
    let is_value = matches!(&fields[..], [(name, _)] if name == VALUE);
    (label_text(is_value, &fields) == text).then_some(fields)
}

/// A value of the data section.
#[derive(Debug, PartialEq, Eq)]
enum Value {
    Text(String),
    U16(u16),
    U32(u32),
    U64(u64),
    Map(Vec<(String, Self)>),
    Array(Vec<Self>),
}

impl Value {
    /// The record of fields: maps within maps where the names' dots allow that without another order.
    fn of(fields: &[(String, String)]) -> Self {
        let mut nested = Vec::new();
        let fits = fields.iter().all(|(name, text)| insert(&mut nested, name, text));
        let mut names = Vec::new();
        flatten("", &nested, &mut names);
        if fits && names.iter().eq(fields.iter().map(|(name, _)| name)) {
            return Self::Map(nested).with_arrays();
        }
        Self::Map(fields.iter().map(|(name, text)| (name.clone(), Self::scalar(text))).collect())
    }

    /// A number if its text is one as it is written here, otherwise a text.
    fn scalar(text: &str) -> Self {
        let number = text.parse::<u32>().ok().filter(|number| number.to_string() == text);
        number.map_or_else(|| Self::Text(text.to_owned()), Self::U32)
    }

    /// Arrays in place of maps whose keys are positions.
    fn with_arrays(self) -> Self {
        let Self::Map(map) = self else { return self };
        let is_array = map.iter().enumerate().all(|(at, (key, _))| *key == at.to_string());
        let values = map.into_iter().map(|(key, value)| (key, value.with_arrays()));
        match is_array {
            true => Self::Array(values.map(|(_, value)| value).collect()),
            false => Self::Map(values.collect()),
        }
    }

    fn encode(&self, file: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                control(2, text.len(), file);
                file.extend(text.as_bytes());
            }
            Self::U16(number) => number_of(5, &number.to_be_bytes(), file),
            Self::U32(number) => number_of(6, &number.to_be_bytes(), file),
            Self::U64(number) => number_of(9, &number.to_be_bytes(), file),
            Self::Map(map) => {
                control(7, map.len(), file);
                for (key, value) in map {
                    Self::Text(key.clone()).encode(file);
                    value.encode(file);
                }
            }
            Self::Array(array) => {
                control(11, array.len(), file);
                array.iter().for_each(|value| value.encode(file));
            }
        }
    }
}

/// Puts a value under a path. Returns whether there is a place for it.
fn insert(map: &mut Vec<(String, Value)>, path: &str, text: &str) -> bool {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if key.is_empty() {
        return false;
    }
    match (map.iter_mut().find(|(known, _)| known == key), rest) {
        (Some((_, Value::Map(inner))), Some(rest)) => insert(inner, rest, text),
        (Some(_), _) => false,
        (None, None) => {
            map.push((key.to_owned(), Value::scalar(text)));
            true
        }
        (None, Some(rest)) => {
            let mut inner = Vec::new();
            let fits = insert(&mut inner, rest, text);
            map.push((key.to_owned(), Value::Map(inner)));
            fits
        }
    }
}

/// The paths of all values.
fn flatten(path: &str, map: &[(String, Value)], names: &mut Vec<String>) {
    for (key, value) in map {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Map(inner) => flatten(&path, inner, names),
            _ => names.push(path),
        }
    }
}

/// Writes the type and the size before a value. A label has far fewer bytes than a size can tell.
fn control(kind: u8, size: usize, file: &mut Vec<u8>) {
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let (low, more) = match size {
        0..29 => (size, 0..0),
        29..285 => (29, 3..4),
        285..65_821 => (30, 2..4),
        _ => (31, 1..4),
    };
    let rest = size.saturating_sub([0, 29, 285, 65_821][more.len()]).to_be_bytes();
    let low = low.to_be_bytes()[3];
    // Types from 8 on stand in a byte of their own.
    if kind < 8 {
        file.push(kind << 5 | low);
    } else {
        file.extend([low, kind - 7]);
    }
    file.extend(&rest[more]);
}

/// Writes a number without the zeros before it.
fn number_of(kind: u8, bytes: &[u8], file: &mut Vec<u8>) {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    control(kind, bytes.len() - zeros, file);
    file.extend(&bytes[zeros..]);
}

fn metadata(count: u32, bits: u16, is_v6: bool) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let text = |text: &str| Value::Text(text.to_owned());
    let members = [
        ("binary_format_major_version", Value::U16(2)),
        ("binary_format_minor_version", Value::U16(0)),
        ("build_epoch", Value::U64(now)),
        ("database_type", text("Wirespeed")),
        ("description", Value::Map(vec![("en".to_owned(), text("routes with labels"))])),
        ("ip_version", Value::U16(if is_v6 { 6 } else { 4 })),
        ("languages", Value::Array(Vec::new())),
        ("node_count", Value::U32(count)),
        ("record_size", Value::U16(bits)),
    ];
    Value::Map(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_records_and_back() {
        let map = |pairs: Vec<(&str, Value)>| {
            Value::Map(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let text = |text: &str| Value::Text(text.to_owned());
        for (label, record) in [
            ("13335", map(vec![("value", Value::U32(13335))])),
            ("007", map(vec![("value", text("007"))])),
            ("United%20States", map(vec![("value", text("United States"))])),
            ("asn=1,c.n=A%2CB,c.m=x", {
                map(vec![("asn", Value::U32(1)), ("c", map(vec![("n", text("A,B")), ("m", text("x"))]))])
            }),
            ("c.n=a,d=b,c.m=e", map(vec![("c.n", text("a")), ("d", text("b")), ("c.m", text("e"))])),
            ("t.0=a,t.1=b", map(vec![("t", Value::Array(vec![text("a"), text("b")]))])),
            ("value=3", map(vec![("value", text("value=3"))])),
            ("a,b=c", map(vec![("value", text("a,b=c"))])),
        ] {
            let fields = fields(label).unwrap();
            assert_eq!(Value::of(&fields), record, "{label}");
        }
        assert_eq!(fields("%41"), None); // read back as A
    }

    #[test]
    fn sizes_are_written_in_as_few_bytes_as_they_need() {
        for (size, bytes) in [
            (28, &[2 << 5 | 28][..]),
            (29, &[2 << 5 | 29, 0]),
            (284, &[2 << 5 | 29, 255]),
            (285, &[2 << 5 | 30, 0, 0]),
            (65_820, &[2 << 5 | 30, 255, 255]),
            (65_821, &[2 << 5 | 31, 0, 0, 0]),
        ] {
            let mut file = Vec::new();
            control(2, size, &mut file);
            assert_eq!(file, bytes, "{size}");
        }
    }
}
