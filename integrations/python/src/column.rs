//! [`Column`]: keys of a batch as Python gives them, turned into keys of a table a block at a time, without
//! the interpreter's lock.
//!
//! ```text
//! numpy ─┐
//! Arrow ─┼─► Given ──► columns ──► blocks of keys ──► lookups ──► one number for each key ──► answers of the kind
//! list  ─┤    (interpreter's lock)  └───────── without it ──────────────────────────────┘
//! one   ─┘
//! ```

use std::fmt::Display;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, downcast_dictionary_array};
use arrow_schema::DataType;
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::failure::Failure;

/// What Python gave: the answers are of this kind, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An array of numpy.
    Numpy,
    /// Arrow, by its C data interface.
    Arrow,
    /// A list or a tuple.
    List,
    /// One key.
    One,
}

/// What to do with a value that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The call fails.
    Raise,
    /// The value counts as null.
    Null,
}

impl Wrong {
    /// The choice of an argument `errors`.
    pub(crate) fn of(errors: &str) -> Result<Self, Failure> {
        match errors {
            "raise" => Ok(Self::Raise),
            "null" => Ok(Self::Null),
            other => Err(Failure::input(format!("errors is {other:?}, not \"raise\" or \"null\""))),
        }
    }

    /// A key, or null for a value that is none if that is wanted.
    pub(crate) fn or_null<T>(self, key: Result<Option<T>, String>) -> Result<Option<T>, String> {
        match (self, key) {
            (Self::Null, Err(_)) => Ok(None),
            (_, key) => key,
        }
    }
}

/// Keys that are read a block at a time. Threads share a column.
pub(crate) trait Column<T>: Send + Sync {
    /// The number of keys.
    fn len(&self) -> usize;

    /// Reads the keys from `from` on, `None` for null. Fails at a value that is no key, with its place in the
    /// column and the reason.
    fn read(&self, from: usize, keys: &mut [Option<T>]) -> Result<(), (usize, String)>;

    /// All keys as IPv4 addresses in host order, if they lie so in memory; whatever lies at a null.
    fn as_v4(&self) -> Option<&[u32]> {
        None
    }

    /// Gives the keys that are null the result 0, after [`as_v4`](Self::as_v4) was looked up from `from` on.
    fn clear_nulls(&self, _from: usize, _numbers: &mut [u32]) {}
}

/// A column by a function from a place to a key.
pub(crate) struct By<F> {
    pub(crate) len: usize,
    pub(crate) wrong: Wrong,
    pub(crate) key: F,
}

impl<T, F: Fn(usize) -> Result<Option<T>, String> + Send + Sync> Column<T> for By<F> {
    fn len(&self) -> usize {
        self.len
    }

    fn read(&self, from: usize, keys: &mut [Option<T>]) -> Result<(), (usize, String)> {
        for (at, key) in (from..).zip(keys) {
            *key = self.wrong.or_null((self.key)(at)).map_err(|why| (at, why))?;
        }
        Ok(())
    }
}

/// Keys that were read before.
pub(crate) struct Read<T>(pub(crate) Vec<Option<T>>);

impl<T: Clone + Send + Sync> Column<T> for Read<T> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn read(&self, from: usize, keys: &mut [Option<T>]) -> Result<(), (usize, String)> {
        keys.clone_from_slice(&self.0[from..from + keys.len()]);
        Ok(())
    }
}

/// The column of an Arrow array whose values are texts, `None` if they are not.
pub(crate) fn of_texts<'a, T: 'a>(
    array: &'a dyn Array,
    wrong: Wrong,
    parse: impl Fn(&str) -> Result<T, String> + Send + Sync + Copy + 'a,
) -> Option<Box<dyn Column<T> + 'a>> {
    macro_rules! texts {
        ($texts:expr) => {{
            let texts = $texts;
            let key = move |at| if texts.is_null(at) { Ok(None) } else { parse(texts.value(at)).map(Some) };
            Some(Box::new(By { len: texts.len(), wrong, key }))
        }};
    }
    match array.data_type() {
        DataType::Utf8 => texts!(array.as_string::<i32>()),
        DataType::LargeUtf8 => texts!(array.as_string::<i64>()),
        DataType::Utf8View => texts!(array.as_string_view()),
        _ => None,
    }
}

/// The keys of a dictionary's values, each read once; and for each element the place of its value, `None` for
/// null.
pub(crate) struct Dictionary<T> {
    places: Vec<Option<usize>>,
    values: Vec<Result<Option<T>, String>>,
}

/// The column of an Arrow array that is a dictionary; `None` if it is none. `values` makes the column of its
/// values. A value that nothing points at may be no key.
pub(crate) fn of_dictionary<T: Clone + Send + Sync + 'static>(
    array: &dyn Array,
    wrong: Wrong,
    values: impl Fn(&dyn Array) -> Result<Vec<Result<Option<T>, String>>, Failure>,
) -> Result<Option<Box<dyn Column<T>>>, Failure> {
    fn places<K: ArrowDictionaryKeyType>(array: &arrow_array::DictionaryArray<K>) -> Vec<Option<usize>> {
        array.keys_iter().collect()
    }
    let (places, of_values) = downcast_dictionary_array!(
        array => (places(array), array.values().clone()),
        _ => return Ok(None),
    );
    let dictionary = Dictionary { places, values: values(&*of_values)? };
    let len = dictionary.places.len();
    let key = move |at: usize| match dictionary.places[at] {
        None => Ok(None),
        Some(place) => {
            dictionary.values.get(place).cloned().unwrap_or_else(|| Err("no value of the dictionary".into()))
        }
    };
    Ok(Some(Box::new(By { len, wrong, key })))
}

/// All keys of a column, each with the reason if it is none.
pub(crate) fn each<T>(column: &dyn Column<T>) -> Vec<Result<Option<T>, String>> {
    let mut key = [None];
    (0..column.len())
        .map(|at| column.read(at, &mut key).map(|()| key[0].take()).map_err(|(_, why)| why))
        .collect()
}

/// Refuses a masked array of numpy. An answer of numpy has no null, so what is masked would be looked up or
/// taken for no match.
pub(crate) fn not_masked(array: &Bound<'_, PyUntypedArray>) -> Result<(), Failure> {
    match array.getattr_opt("mask")? {
        None => Ok(()),
        Some(_) => Err(Failure::Type(
            "a masked array of numpy: give pyarrow.array(array), where masked elements are null, or array.filled(...)".into(),
        )),
    }
}

/// The failure for a type of Arrow that holds no such keys.
pub(crate) fn no_keys(what: &str, found: &dyn Display, wanted: &str) -> Failure {
    Failure::Type(format!("no {what} in an Arrow array of {found}: {wanted}"))
}
