//! Columns as keys: what a function reads out of an Arrow array, without a copy where the layout is that of a
//! lookup.
//!
//! ```text
//! UInt32                          IPv4, host order    as it lies
//! FixedSizeBinary(4)              IPv4, network order one pass
//! FixedSizeBinary(16)             IPv6 and ::ffff:0:0/96, network order; one pass
//! Binary, LargeBinary, BinaryView 4 or 16 octets a row
//! Utf8, LargeUtf8, Utf8View       text, parsed
//! Dictionary(_, one of these)     each value once
//! ```

use std::borrow::Cow;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, UInt32Type};

use crate::error::Error;

/// What a function does with a value that it does not understand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invalid {
    /// The query ends with an error that tells the value.
    #[default]
    Error,
    /// The result of the row is null.
    Null,
}

/// The rows of a batch whose values are not understood. Their results become null, if the query goes on.
#[derive(Debug)]
pub(crate) struct Refused {
    on: Invalid,
    rows: Vec<usize>,
}

impl Refused {
    pub(crate) fn new(on: Invalid) -> Self {
        Self { on, rows: Vec::new() }
    }

    /// Notes a row, or fails.
    pub(crate) fn note(&mut self, row: usize, what: impl Display) -> Result<(), Error> {
        match self.on {
            Invalid::Error => Err(Error::Invalid { what: what.to_string() }),
            Invalid::Null => {
                self.rows.push(row);
                Ok(())
            }
        }
    }

    /// The rows that are null: those that were, and those that were noted.
    pub(crate) fn nulls(&self, len: usize, nulls: Option<NullBuffer>) -> Option<NullBuffer> {
        if self.rows.is_empty() {
            return nulls;
        }
        let mut valid = BooleanBufferBuilder::new(len);
        valid.append_n(len, true);
        for &row in &self.rows {
            valid.set_bit(row, false);
        }
        NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(valid.finish())))
    }
}

/// The addresses of a column. Rows that are null have any address.
#[derive(Debug)]
pub(crate) struct Addresses<'a> {
    pub(crate) keys: Keys<'a>,
    pub(crate) nulls: Option<NullBuffer>,
}

/// Addresses of one family, or of both.
#[derive(Debug)]
pub(crate) enum Keys<'a> {
    /// IPv4, in host order.
    V4(Cow<'a, [u32]>),
    Any(Vec<IpAddr>),
}

impl Keys<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::V4(keys) => keys.len(),
            Self::Any(keys) => keys.len(),
        }
    }

    /// The address of a row. An IPv4-mapped address is one of IPv4.
    pub(crate) fn get(&self, row: usize) -> IpAddr {
        match self {
            Self::V4(keys) => IpAddr::V4(keys[row].into()),
            Self::Any(keys) => keys[row].to_canonical(),
        }
    }
}

/// An address for rows that are null.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Reads a column of addresses that is no dictionary.
pub(crate) fn addresses(array: &dyn Array, invalid: Invalid) -> Result<Addresses<'_>, Error> {
    let mut refused = Refused::new(invalid);
    let nulls = array.logical_nulls();
    let keys = match array.data_type() {
        DataType::UInt32 => Keys::V4(Cow::Borrowed(array.as_primitive::<UInt32Type>().values())),
        DataType::FixedSizeBinary(4) => {
            let octets = array.as_fixed_size_binary().value_data().as_chunks::<4>().0;
            Keys::V4(octets.iter().map(|&octets| u32::from_be_bytes(octets)).collect())
        }
        DataType::FixedSizeBinary(16) => {
            let octets = array.as_fixed_size_binary().value_data().as_chunks::<16>().0;
            Keys::Any(octets.iter().map(|&octets| IpAddr::V6(octets.into())).collect())
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let mut keys = Vec::with_capacity(array.len());
            each_binary(array, |row, octets| {
                keys.push(match octets.map(of_octets) {
                    None => ANY,
                    Some(Some(address)) => address,
                    Some(None) => {
                        let found = octets.map_or(0, <[u8]>::len);
                        refused.note(row, format_args!("{found} octets are no address: 4 or 16 are"))?;
                        ANY
                    }
                });
                Ok(())
            })?;
            Keys::Any(keys)
        }
        DataType::Null => Keys::V4(vec![0; array.len()].into()),
        _ => {
            let mut keys = Vec::with_capacity(array.len());
            each_text(array, |row, text| {
                let parsed = text.map(|text| text.parse::<IpAddr>().map_err(|_| text));
                keys.push(match parsed {
                    None => ANY,
                    Some(Ok(address)) => address,
                    Some(Err(text)) => {
                        refused.note(row, format_args!("{text:?} is no address"))?;
                        ANY
                    }
                });
                Ok(())
            })?;
            Keys::Any(keys)
        }
    };
    let nulls = refused.nulls(array.len(), nulls);
    Ok(Addresses { keys, nulls })
}

fn of_octets(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(IpAddr::V4(Ipv4Addr::from(octets)));
    }
    <[u8; 16]>::try_from(octets).ok().map(|octets| IpAddr::V6(Ipv6Addr::from(octets)))
}

fn each_binary(
    array: &dyn Array,
    mut take: impl FnMut(usize, Option<&[u8]>) -> Result<(), Error>,
) -> Result<(), Error> {
    match array.data_type() {
        DataType::Binary => each(array.as_binary::<i32>().iter(), &mut take),
        DataType::LargeBinary => each(array.as_binary::<i64>().iter(), &mut take),
        _ => each(array.as_binary_view().iter(), &mut take),
    }
}

/// Calls `take` with each row of a column of text.
pub(crate) fn each_text(
    array: &dyn Array,
    mut take: impl FnMut(usize, Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    match array.data_type() {
        DataType::Utf8 => each(array.as_string::<i32>().iter(), &mut take),
        DataType::LargeUtf8 => each(array.as_string::<i64>().iter(), &mut take),
        DataType::Utf8View => each(array.as_string_view().iter(), &mut take),
        other => Err(Error::Arguments(format!("a column of {other} is no text"))),
    }
}

fn each<T>(
    rows: impl Iterator<Item = Option<T>>,
    take: &mut impl FnMut(usize, Option<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    rows.enumerate().try_for_each(|(row, value)| take(row, value))
}

/// Answers a column by `answer`, which takes no dictionaries: a dictionary's values are answered once each,
/// and values that no row has are not looked at.
pub(crate) fn over_values(
    array: &ArrayRef,
    answer: impl FnOnce(&ArrayRef) -> Result<ArrayRef, Error>,
) -> Result<ArrayRef, Error> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return answer(array) };
    let (keys, values) = (dictionary.keys(), dictionary.values());
    if values.len() >= array.len() {
        // A part of a batch with the values of all: its rows are fewer.
        return answer(&flat(array)?);
    }
    let keys = cast(keys, &DataType::UInt32)?;
    let mut unused = vec![true; values.len()];
    for key in keys.as_primitive::<UInt32Type>().iter().flatten() {
        // u32 fits in usize on all targets, and a dictionary's keys are positions of its values.
        unused[key as usize] = false;
    }
    let used = nullif(values, &BooleanArray::from(unused))?;
    Ok(take(&answer(&used)?, &keys, None)?)
}

/// The rows of a dictionary, or the column itself.
pub(crate) fn flat(array: &ArrayRef) -> Result<ArrayRef, Error> {
    match array.data_type() {
        DataType::Dictionary(_, values) => Ok(cast(array, values)?),
        _ => Ok(array.clone()),
    }
}

/// The results of lookups as a column: 0, which is no result, and rows without a key are null.
pub(crate) fn found(found: Vec<u32>, nulls: Option<NullBuffer>) -> UInt32Array {
    let is_found = BooleanBuffer::collect_bool(found.len(), |row| found[row] != 0);
    let nulls = NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(is_found)));
    UInt32Array::new(found.into(), nulls.filter(|nulls| nulls.null_count() > 0))
}
