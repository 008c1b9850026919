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
//! `{"asn": 13335, "country": {"iso_code": "US"}}`, any other the record `{"value": …}`. All values of a
//! field have one type: that which is stated, or which the file had that the table was read from, or one that
//! fits all of them. The reader makes the same labels of them, but for zeros at the end of a fraction.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Routes, WriteError, refuse};
use crate::read::any_prefix::AnyPrefix;
use crate::read::{FieldType, FieldTypes, Format, label_fields, label_text, label_value};

/// The name of a record that is one value.
const VALUE: &str = "value";
/// Bytes between the tree and the records.
const GAP: usize = 16;

/// The words of a database about itself, and the types of its fields.
#[derive(Clone, Debug)]
pub struct MmdbOptions {
    /// The types of fields that are stated. Each has to be a field of the table.
    pub stated: FieldTypes,
    /// The types of fields in the file that was read: see
    /// [`ReadReport::field_types`](crate::read::ReadReport::field_types). Others are found: numbers, `true`
    /// and `false` where all values of a field are such, else texts.
    pub read: FieldTypes,
    /// The type of the database, for programs that look which one they have.
    pub database_type: String,
    /// The description in English.
    pub description: String,
}

impl Default for MmdbOptions {
    fn default() -> Self {
        Self {
            stated: FieldTypes::default(),
            read: FieldTypes::default(),
            database_type: "Wirespeed".to_owned(),
            description: "routes with labels".to_owned(),
        }
    }
}

pub(super) fn table(
    routes: &mut Routes<'_>,
    options: &MmdbOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let bytes = encode(routes, options, None)?;
    Ok(out.write_all(&bytes)?)
}

/// The file of a table, with records of so many bits, or of as few as hold it.
pub(super) fn encode(
    routes: &mut Routes<'_>,
    options: &MmdbOptions,
    bits: Option<u16>,
) -> Result<Vec<u8>, WriteError> {
    let mut labels = HashMap::new();
    routes.each(|prefix, text| {
        if !labels.contains_key(text) {
            let fields = fields(text).ok_or_else(|| refuse(Format::Mmdb, prefix, text))?;
            labels.insert(text.to_owned(), fields);
        }
        Ok(())
    })?;
    let types = types(labels.values().flatten(), options)?;
    let is_v6 = !routes.fib.v6.is_empty();
    let mut tree = Tree::default();
    let (mut data, mut places) = (Vec::new(), HashMap::new());
    let mut v4 = Vec::new();
    routes.each(|prefix, text| {
        let place = match places.get(text) {
            Some(&place) => place,
            None => {
                let place = u32::try_from(data.len()).map_err(|_| WriteError::TooLarge)?;
                Value::of(&labels[text], &types, prefix)?.encode(&mut data);
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
    metadata(count, bits, is_v6, options).encode(&mut file);
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

/// The type of each field: as it is stated, as it was read, or as all values allow.
fn types<'l>(
    fields: impl Iterator<Item = &'l (String, String)>,
    options: &MmdbOptions,
) -> Result<BTreeMap<&'l str, FieldType>, WriteError> {
    let mut columns = BTreeMap::<&str, Vec<&str>>::new();
    fields.for_each(|(name, text)| columns.entry(name).or_default().push(text));
    if let Some(field) = options.stated.fields().find(|field| !columns.contains_key(field)) {
        return Err(WriteError::NoField {
            field: field.to_owned(),
            known: columns.keys().take(40).copied().collect::<Vec<_>>().join(", "),
        });
    }
    let of = |(name, texts): (&'l str, Vec<&str>)| {
        let several = |_| WriteError::SeveralTypes { field: name.to_owned() };
        let known = match options.stated.of(name).map_err(several)? {
            Some(stated) => Some(stated),
            None => options.read.of(name).map_err(several)?,
        };
        Ok((name, known.unwrap_or_else(|| found(&texts))))
    };
    columns.into_iter().map(of).collect()
}

/// The type that all of these values have. Numbers with another text than they are written with are texts.
fn found(texts: &[&str]) -> FieldType {
    use FieldType::{Boolean, Double, Int32, Text, Uint32, Uint64, Uint128};
    let has_all = |of: &FieldType| texts.iter().all(|text| Value::scalar(text, *of).is_some());
    let whole = [Boolean, Uint32, Uint64, Uint128, Int32].into_iter().find(has_all);
    whole.unwrap_or_else(|| if are_doubles(texts) { Double } else { Text })
}

/// Whether texts are numbers with a point that a double holds to the last digit: with as many decimals each,
/// or without zeros at their end. 1.9 and 1.10 are none, but versions.
fn are_doubles(texts: &[&str]) -> bool {
    /// The digits that every double holds.
    const DIGITS: usize = 15;
    let decimals = |text: &str| {
        let plain = text.strip_prefix('-').unwrap_or(text);
        let (whole, decimals) = plain.split_once('.').unwrap_or((plain, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole = whole == "0" || !whole.starts_with('0') && !whole.is_empty();
        let fits = is_whole && is_number(whole) && is_number(decimals) && !text.ends_with('.');
        (fits && whole.len() + decimals.len() <= DIGITS).then_some(decimals.len())
    };
    let Some(lens) = texts.iter().map(|text| decimals(text)).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let is_shortest = |text: &&str| text.parse::<f64>().is_ok_and(|number| number.to_string() == **text);
    lens.iter().any(|len| *len > 0)
        && (lens.iter().all(|len| *len == lens[0]) || texts.iter().all(is_shortest))
}

/// A value of the data section.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Text(String),
    Bytes(Vec<u8>),
    Boolean(bool),
    I32(i32),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(u128),
    Float(f32),
    Double(f64),
    Map(Vec<(String, Self)>),
    Array(Vec<Self>),
}

impl Value {
    /// The record of fields: maps within maps where the names' dots allow that without another order. Fails
    /// if a field is not of its type.
    fn of(
        fields: &[(String, String)],
        types: &BTreeMap<&str, FieldType>,
        prefix: AnyPrefix,
    ) -> Result<Self, WriteError> {
        let value = |(name, text): &(String, String)| {
            let of = types[&**name];
            let value = Self::scalar(text, of).ok_or_else(|| WriteError::FieldType {
                prefix: prefix.to_string(),
                field: name.clone(),
                value: text.clone(),
                of,
            })?;
            Ok((name.clone(), value))
        };
        let flat: Vec<_> = fields.iter().map(value).collect::<Result<_, WriteError>>()?;
        let mut nested = Vec::new();
        let fits = flat.iter().all(|(name, value)| insert(&mut nested, name, value));
        let mut names = Vec::new();
        flatten("", &nested, &mut names);
        if fits && names.iter().eq(fields.iter().map(|(name, _)| name)) {
            return Ok(Self::Map(nested).with_arrays());
        }
        Ok(Self::Map(flat))
    }

    /// The value of a type that a text stands for. `None` if the reader would not make the same text of it,
    /// but for zeros at the end of a fraction.
    fn scalar(text: &str, of: FieldType) -> Option<Self> {
        fn exact<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
            text.parse::<T>().ok().filter(|value| value.to_string() == text)
        }
        let is_number = || text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'.'));
        Some(match of {
            FieldType::Text => Self::Text(text.to_owned()),
            FieldType::Bytes => Self::Bytes(bytes(text)?),
            FieldType::Boolean => Self::Boolean(exact(text)?),
            FieldType::Int32 => Self::I32(exact(text)?),
            FieldType::Uint16 => Self::U16(exact(text)?),
            FieldType::Uint32 => Self::U32(exact(text)?),
            FieldType::Uint64 => Self::U64(exact(text)?),
            FieldType::Uint128 => Self::U128(exact(text)?),
            FieldType::Float => {
                Self::Float(exact(text).or_else(|| text.parse().ok().filter(|_| is_number()))?)
            }
            FieldType::Double => {
                Self::Double(exact(text).or_else(|| text.parse().ok().filter(|_| is_number()))?)
            }
        })
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
            Self::Bytes(bytes) => {
                control(4, bytes.len(), file);
                file.extend(bytes);
            }
            // The size is the value.
            Self::Boolean(is_so) => control(14, usize::from(*is_so), file),
            Self::Double(number) => {
                control(3, 8, file);
                file.extend(number.to_be_bytes());
            }
            Self::Float(number) => {
                control(15, 4, file);
                file.extend(number.to_be_bytes());
            }
            Self::I32(number) => number_of(8, &number.to_be_bytes(), file),
            Self::U128(number) => number_of(10, &number.to_be_bytes(), file),
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

/// The bytes of hex digits in lower case.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let is_hex =
        hex.len().is_multiple_of(2) && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let byte = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map(byte).collect::<Option<Vec<_>>>().filter(|_| is_hex)
}

/// Puts a value under a path. Returns whether there is a place for it.
fn insert(map: &mut Vec<(String, Value)>, path: &str, value: &Value) -> bool {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    if key.is_empty() {
        return false;
    }
    match (map.iter_mut().find(|(known, _)| known == key), rest) {
        (Some((_, Value::Map(inner))), Some(rest)) => insert(inner, rest, value),
        (Some(_), _) => false,
        (None, None) => {
            map.push((key.to_owned(), value.clone()));
            true
        }
        (None, Some(rest)) => {
            let mut inner = Vec::new();
            let fits = insert(&mut inner, rest, value);
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

fn metadata(count: u32, bits: u16, is_v6: bool, options: &MmdbOptions) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let text = |text: &str| Value::Text(text.to_owned());
    let members = [
        ("binary_format_major_version", Value::U16(2)),
        ("binary_format_minor_version", Value::U16(0)),
        ("build_epoch", Value::U64(now)),
        ("database_type", text(&options.database_type)),
        ("description", Value::Map(vec![("en".to_owned(), text(&options.description))])),
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
            let types = types(fields.iter(), &MmdbOptions::default()).unwrap();
            let prefix = AnyPrefix::default_of(crate::Family::V4);
            assert_eq!(Value::of(&fields, &types, prefix).unwrap(), record, "{label}");
        }
        assert_eq!(fields("%41"), None); // read back as A
    }

    #[test]
    fn a_type_fits_all_values_of_a_field() {
        use FieldType::{Boolean, Double, Int32, Text, Uint32, Uint64, Uint128};
        for (texts, of) in [
            (&["10115", "01067"][..], Text),
            (&["10115", "1067"], Uint32),
            (&["4294967295", "4294967296"], Uint64),
            (&["0", "18446744073709551616"], Uint128),
            (&["-5", "5"], Int32),
            (&["-5", "4294967295"], Text),
            (&["true", "false"], Boolean),
            (&["true", "1"], Text),
            (&["52.5", "13", "-0.25"], Double),
            (&["52.50", "13.00", "-0.25"], Double),
            (&["1.9", "1.10"], Text),
            (&["1.9", "01.1"], Text),
            (&["1.9", "1."], Text),
            (&["1.9", ".5"], Text),
            (&["1.2.3"], Text),
            (&["1e5", "1.5"], Text),
            (&["0.1234567890123456"], Text),
            (&["52.5", "x"], Text),
            (&["NaN", "1.5"], Text),
        ] {
            assert_eq!(found(texts), of, "{texts:?}");
        }
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
