//! Columns of Arrow as keys of lookups: what a function reads out of an array, without a copy where the
//! layout is that of a lookup.
//!
//! ```text
//! UInt32                          IPv4, host order    as it lies
//! other integers                  IPv4, host order    cast; a number out of range is wrong
//! FixedSizeBinary(4)              IPv4, network order one pass
//! FixedSizeBinary(16)             IPv6 and ::ffff:0:0/96, network order; one pass to tell the families, one to
//!                                 copy the keys of one family
//! Binary, LargeBinary, BinaryView 4 or 16 octets a row
//! Utf8, LargeUtf8, Utf8View       text, parsed
//! Dictionary(_, one of these)     each value once
//! ```

use std::borrow::Cow;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, UInt32Array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::compute::{CastOptions, cast, cast_with_options, nullif, take};
use arrow::datatypes::{DataType, UInt32Type};
use arrow::util::display::array_value_to_string;

/// The reason why a column can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that is not understood.
    #[error("{what}")]
    Invalid {
        /// The value, and what is wrong with it.
        what: String,
    },
    /// The column has a type that is not understood.
    #[error("{0}")]
    Type(String),
    /// An error of Arrow.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
}

/// The treatment of a value that is not understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Invalid {
    /// Fail with an error that tells the value.
    #[default]
    Error,
    /// The result of the row is null.
    Null,
}

impl Invalid {
    /// The name in options: `error` or `null`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Null => "null",
        }
    }
}

/// The rows of a batch whose values are not understood. Their results become null, if the work goes on.
#[derive(Debug)]
pub struct Refused {
    on: Invalid,
    rows: Vec<usize>,
}

impl Refused {
    /// Notes rows, or fails at the first.
    #[must_use]
    pub fn new(on: Invalid) -> Self {
        Self { on, rows: Vec::new() }
    }

    /// Notes a row, or fails.
    pub fn note(&mut self, row: usize, what: impl Display) -> Result<(), Error> {
        match self.on {
            Invalid::Error => Err(Error::Invalid { what: what.to_string() }),
            Invalid::Null => {
                self.rows.push(row);
                Ok(())
            }
        }
    }

    /// The rows that are null: those that were, and those that were noted.
    #[must_use]
    pub fn nulls(&self, len: usize, nulls: Option<NullBuffer>) -> Option<NullBuffer> {
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
pub struct Addresses<'a> {
    /// An address for each row.
    pub keys: Keys<'a>,
    /// The rows that are null.
    pub nulls: Option<NullBuffer>,
}

/// Addresses of one family, or of both.
#[derive(Debug)]
pub enum Keys<'a> {
    /// IPv4, in host order.
    V4(Cow<'a, [u32]>),
    /// IPv6 that is not IPv4-mapped, in host order.
    V6(Vec<u128>),
    /// Addresses of both families, or as they were written.
    Any(Vec<IpAddr>),
}

impl Keys<'_> {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::V4(keys) => keys.len(),
            Self::V6(keys) => keys.len(),
            Self::Any(keys) => keys.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address of a row. An IPv4-mapped address is one of IPv4.
    ///
    /// Panics if there is no such row.
    #[must_use]
    pub fn get(&self, row: usize) -> IpAddr {
        match self {
            Self::V4(keys) => IpAddr::V4(keys[row].into()),
            Self::V6(keys) => IpAddr::V6(keys[row].into()),
            Self::Any(keys) => keys[row].to_canonical(),
        }
    }
}

/// An address for rows that are null.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Whether a column of this type may hold addresses: [`addresses`] reads it, or the values of the dictionary.
#[must_use]
pub fn may_hold_addresses(of: &DataType) -> bool {
    match of {
        DataType::Dictionary(_, values) => {
            !matches!(**values, DataType::Dictionary(..)) && may_hold_addresses(values)
        }
        DataType::FixedSizeBinary(4 | 16)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View => true,
        _ => of.is_integer(),
    }
}

/// Reads a column of addresses that is no dictionary.
pub fn addresses(array: &dyn Array, invalid: Invalid) -> Result<Addresses<'_>, Error> {
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
            of_16(octets, nulls.as_ref())
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
        of if of.is_integer() => Keys::V4(numbers(array, &mut refused)?.into()),
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

/// IPv4 addresses of a column of integers.
fn numbers(array: &dyn Array, refused: &mut Refused) -> Result<Vec<u32>, Error> {
    let out_of_range_is_null = CastOptions { safe: true, ..CastOptions::default() };
    let numbers = cast_with_options(array, &DataType::UInt32, &out_of_range_is_null)?;
    if numbers.null_count() > array.null_count() {
        for row in (0..array.len()).filter(|&row| numbers.is_null(row) && array.is_valid(row)) {
            let number = array_value_to_string(array, row)?;
            refused.note(row, format_args!("{number} is no address: a number from 0 to {} is", u32::MAX))?;
        }
    }
    Ok(numbers.as_primitive::<UInt32Type>().values().to_vec())
}

/// The keys of a column of 16 octets. Most columns are of one family, and then no lookup has to split them.
fn of_16(octets: &[[u8; 16]], nulls: Option<&NullBuffer>) -> Keys<'static> {
    let is_mapped = |octets: &[u8; 16]| u128::from_be_bytes(*octets) >> 32 == 0xffff;
    // Null rows go with either family.
    let (mapped, rows) = match nulls {
        None => (octets.iter().filter(|octets| is_mapped(octets)).count(), octets.len()),
        Some(nulls) => {
            let mapped = nulls.valid_indices().filter(|&row| is_mapped(&octets[row])).count();
            (mapped, octets.len() - nulls.null_count())
        }
    };
    if mapped == rows {
        Keys::V4(octets.iter().map(|&[.., a, b, c, d]| u32::from_be_bytes([a, b, c, d])).collect())
    } else if mapped == 0 {
        Keys::V6(octets.iter().map(|&octets| u128::from_be_bytes(octets)).collect())
    } else {
        Keys::Any(octets.iter().map(|&octets| IpAddr::V6(octets.into())).collect())
    }
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
pub fn each_text(
    array: &dyn Array,
    mut take: impl FnMut(usize, Option<&str>) -> Result<(), Error>,
) -> Result<(), Error> {
    match array.data_type() {
        DataType::Utf8 => each(array.as_string::<i32>().iter(), &mut take),
        DataType::LargeUtf8 => each(array.as_string::<i64>().iter(), &mut take),
        DataType::Utf8View => each(array.as_string_view().iter(), &mut take),
        other => Err(Error::Type(format!("a column of {other} is no text"))),
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
pub fn over_values<E: From<Error>>(
    array: &ArrayRef,
    answer: impl FnOnce(&ArrayRef) -> Result<ArrayRef, E>,
) -> Result<ArrayRef, E> {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return answer(array) };
    let (keys, values) = (dictionary.keys(), dictionary.values());
    if values.len() >= array.len() {
        // A part of a batch with the values of all: its rows are fewer.
        return answer(&flat(array)?);
    }
    let keys = cast(keys, &DataType::UInt32).map_err(Error::from)?;
    let mut unused = vec![true; values.len()];
    for key in keys.as_primitive::<UInt32Type>().iter().flatten() {
        // u32 fits in usize on all targets, and a dictionary's keys are positions of its values.
        unused[key as usize] = false;
    }
    let used = nullif(values, &BooleanArray::from(unused)).map_err(Error::from)?;
    Ok(take(&answer(&used)?, &keys, None).map_err(Error::from)?)
}

/// The rows of a dictionary, or the column itself.
pub fn flat(array: &ArrayRef) -> Result<ArrayRef, Error> {
    match array.data_type() {
        DataType::Dictionary(_, values) => Ok(cast(array, values)?),
        _ => Ok(array.clone()),
    }
}

/// The results of lookups as a column: 0, which is no result, and rows without a key are null.
#[must_use]
pub fn found(found: Vec<u32>, nulls: Option<NullBuffer>) -> UInt32Array {
    let nulls = match is_found(&found) {
        None => nulls.filter(|nulls| nulls.null_count() > 0),
        Some(is_found) => NullBuffer::union(nulls.as_ref(), Some(&NullBuffer::new(is_found))),
    };
    UInt32Array::new(found.into(), nulls)
}

/// A bit for each row, set where there is a result. `None` if all rows have one: with a default route no
/// bitmap is made.
fn is_found(found: &[u32]) -> Option<BooleanBuffer> {
    // Both loops over rows have no early end, so that they are compiled to vector instructions.
    let has_none = |rows: &[u32]| rows.iter().fold(false, |none, &row| none | (row == 0));
    let first = found.chunks(64).position(has_none)?;
    let mut words = Vec::with_capacity(found.len().div_ceil(64));
    words.resize(first, u64::MAX);
    words.extend(found[first * 64..].chunks(64).map(|rows| {
        let mut is_found = [0; 64];
        for (is_found, &row) in is_found.iter_mut().zip(rows) {
            *is_found = u8::from(row != 0);
        }
        let octets = is_found.as_chunks::<8>().0.iter().map(|&eight| octet(eight));
        (0..).step_by(8).zip(octets).fold(0_u64, |word, (bit, octet)| word | (octet << bit)).to_le()
    }));
    Some(BooleanBuffer::new(Buffer::from_vec(words), 0, found.len()))
}

/// Eight bytes, each 0 or 1, as bits: the first is the lowest.
fn octet(bytes: [u8; 8]) -> u64 {
    // Byte i is bit 8i. The factor has the bits 7, 14, … 56, of which 56 - 7i moves it to bit 56 + i. All
    // other sums are below bit 56 or beyond the word, and no two are equal, so nothing is carried.
    u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{FixedSizeBinaryArray, Int64Array};

    #[test]
    fn rows_without_a_result_are_null_at_any_place() {
        for len in [0, 1, 63, 64, 65, 200] {
            // No gap, a gap at each place, and gaps everywhere.
            for gap in 0..=len {
                let results: Vec<u32> = (0..len).map(|row| u32::from(row != gap) * 7).collect();
                let expected: UInt32Array =
                    results.iter().map(|&found| (found != 0).then_some(found)).collect();
                let column = found(results, None);
                assert_eq!(column, expected, "{len} rows, a gap at {gap}");
                assert_eq!(column.nulls().is_some(), gap < len, "{len} rows, a gap at {gap}");
            }
            assert_eq!(found(vec![0; len], None).null_count(), len);
            // Runs of different lengths.
            let runs: Vec<u32> = (0..len).map(|row| u32::from(row * row % 7 % 2 == 0)).collect();
            let expected: UInt32Array = runs.iter().map(|&found| (found != 0).then_some(found)).collect();
            assert_eq!(found(runs, None), expected, "{len} rows");
        }
        let nulls = NullBuffer::from(vec![true, false, true]);
        let both: Vec<_> = found(vec![3, 4, 0], Some(nulls.clone())).iter().collect();
        assert_eq!(both, [Some(3), None, None]);
        let one: Vec<_> = found(vec![3, 4, 5], Some(nulls)).iter().collect();
        assert_eq!(one, [Some(3), None, Some(5)]);
        assert!(found(vec![3], Some(NullBuffer::new_valid(1))).nulls().is_none());
    }

    #[test]
    fn integers_of_every_type_are_ipv4() {
        let [low, high] = ["10.0.0.1", "203.0.113.9"].map(|address| address.parse::<Ipv4Addr>().unwrap());
        let numbers: Int64Array =
            [Some(i64::from(low.to_bits())), None, Some(i64::from(high.to_bits()))].into_iter().collect();
        for (of, rows) in [
            (DataType::Int64, 3),
            (DataType::UInt64, 3),
            (DataType::UInt32, 3),
            // The last number is over the largest one.
            (DataType::Int32, 2),
        ] {
            assert!(may_hold_addresses(&of));
            let column = cast(&numbers.slice(0, rows), &of).unwrap();
            let Addresses { keys, nulls } = super::addresses(&column, Invalid::Error).unwrap();
            assert_eq!((keys.len(), nulls.unwrap().null_count()), (rows, 1));
            assert!(matches!(keys, Keys::V4(_)));
            assert_eq!(keys.get(0), IpAddr::V4(low));
            assert!(rows < 3 || keys.get(2) == IpAddr::V4(high));
        }
        let wrong: ArrayRef =
            std::sync::Arc::new(Int64Array::from(vec![Some(7), Some(-1), None, Some(1 << 32)]));
        let error = super::addresses(&wrong, Invalid::Error).unwrap_err().to_string();
        assert_eq!(error, "-1 is no address: a number from 0 to 4294967295 is");
        let nulls = super::addresses(&wrong, Invalid::Null).unwrap().nulls.unwrap();
        assert_eq!(nulls.iter().collect::<Vec<_>>(), [true, false, false, false]);
        let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int8), Box::new(values));
        assert!(may_hold_addresses(&dictionary(DataType::Int64)));
        for of in
            [DataType::Float64, DataType::FixedSizeBinary(6), DataType::Null, dictionary(DataType::Boolean)]
        {
            assert!(!may_hold_addresses(&of), "{of}");
        }
    }

    #[test]
    fn columns_of_16_octets_are_of_one_family_if_their_rows_are() {
        let (four, six) = ("::ffff:192.0.2.1", "2001:db8::1");
        for (rows, is) in [
            (vec![Some(four), Some(four)], "V4"),
            (vec![Some(four), None, Some(four)], "V4"),
            (vec![None, None], "V4"),
            (vec![], "V4"),
            (vec![Some(six), None], "V6"),
            // Not mapped: the 16 bits before the IPv4 address are not all set, or others are.
            (vec![Some("::192.0.2.1"), Some("::fffe:192.0.2.1"), Some("1::ffff:192.0.2.1")], "V6"),
            (vec![Some(six), Some(four), None], "Any"),
        ] {
            let addresses: Vec<Option<Ipv6Addr>> =
                rows.iter().map(|row| row.map(|row| row.parse().unwrap())).collect();
            let octets = addresses.iter().map(|row| row.map(|row| row.octets()));
            let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(octets, 16).unwrap();
            let Addresses { keys, nulls } = super::addresses(&array, Invalid::Error).unwrap();
            let found = match keys {
                Keys::V4(_) => "V4",
                Keys::V6(_) => "V6",
                Keys::Any(_) => "Any",
            };
            assert_eq!((found, keys.len()), (is, rows.len()), "{rows:?}");
            for (row, address) in addresses.iter().enumerate() {
                assert_eq!(nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)), address.is_none());
                if let Some(address) = address {
                    assert_eq!(keys.get(row), IpAddr::V6(*address).to_canonical());
                }
            }
            // A part of the column begins at its own first row.
            if rows.len() > 2 {
                let part = array.slice(1, 2);
                let keys = super::addresses(&part, Invalid::Error).unwrap().keys;
                for (row, address) in addresses[1..3].iter().enumerate() {
                    if let Some(address) = address {
                        assert_eq!(keys.get(row), IpAddr::V6(*address).to_canonical());
                    }
                }
            }
        }
    }
}
