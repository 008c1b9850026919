//! [`FieldType`]: the types that a MaxMind DB has for the fields of its records. Labels hold texts, so the
//! types of a file that was read stand beside them, by field.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A type of values in a MaxMind DB.
///
/// ```
/// use wirespeed_fib::read::FieldType;
///
/// assert_eq!("double".parse(), Ok(FieldType::Double));
/// assert_eq!(FieldType::Uint32.to_string(), "uint32");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// UTF-8.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A number of 16 bits.
    Uint16,
    /// A number of 32 bits.
    Uint32,
    /// A number of 64 bits.
    Uint64,
    /// A number of 128 bits.
    Uint128,
    /// A number of 32 bits with a sign.
    Int32,
    /// A number of IEEE 754 in 32 bits.
    Float,
    /// A number of IEEE 754 in 64 bits.
    Double,
    /// Bytes, in labels two hex digits each.
    Bytes,
}

impl FieldType {
    /// All types.
    pub const ALL: [Self; 10] = [
        Self::Text,
        Self::Boolean,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Uint128,
        Self::Int32,
        Self::Float,
        Self::Double,
        Self::Bytes,
    ];

    /// The name, as in the format's specification, but for `text`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Uint128 => "uint128",
            Self::Int32 => "int32",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no type of fields.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no type {0:?}; there are text, boolean, uint16, uint32, uint64, uint128, int32, float, double, bytes"
)]
pub struct NoFieldType(String);

impl FromStr for FieldType {
    type Err = NoFieldType;

    fn from_str(name: &str) -> Result<Self, NoFieldType> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or_else(|| NoFieldType(name.to_owned()))
    }
}

/// The types of the fields of a table, as far as they are known. The field of labels without names is
/// `value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldTypes(BTreeMap<String, Known>);

/// The type of a field, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    One(FieldType),
    /// Its values have several types.
    Several,
}

/// A field whose values have several types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeveralTypes;

impl FieldTypes {
    /// The type of a field. `None` if it is not known.
    pub fn of(&self, field: &str) -> Result<Option<FieldType>, SeveralTypes> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Known::One(known)) => Ok(Some(*known)),
            Some(Known::Several) => Err(SeveralTypes),
        }
    }

    /// Notes the type of a value. A field with values of two types has several.
    pub fn note(&mut self, field: &str, of: FieldType) {
        match self.0.get_mut(field) {
            Some(Known::One(known)) if *known == of => {}
            Some(known) => *known = Known::Several,
            None => _ = self.0.insert(field.to_owned(), Known::One(of)),
        }
    }

    /// States the type of a field, whatever is known of it.
    pub fn state(&mut self, field: &str, of: FieldType) {
        self.0.insert(field.to_owned(), Known::One(of));
    }

    /// Adds the fields of another table. `name` gives them their names here.
    pub(crate) fn add(&mut self, other: &Self, name: impl Fn(&str) -> String) {
        for (field, known) in &other.0 {
            let field = name(field);
            match known {
                Known::One(of) => self.note(&field, *of),
                Known::Several => _ = self.0.insert(field, Known::Several),
            }
        }
    }

    /// The fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}
