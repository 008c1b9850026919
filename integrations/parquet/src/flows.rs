//! The flows of rows, out of the columns of a 5-tuple.

use anyhow::Result;
use arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, StringViewArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use wirespeed_columns as columns;
use wirespeed_commands::enrich::{self, Placed, flow};
use wirespeed_commands::rules::Flow;

use crate::keys::{self, State, Values};

/// The flows of some rows.
pub(crate) struct Flows {
    /// The flows of rows that have one.
    pub(crate) flows: Placed<Vec<Flow>>,
    /// The state of each row.
    pub(crate) states: Vec<State>,
    /// The rows that are wrong, each with the place of the column whose value is wrong.
    pub(crate) wrong: Vec<(usize, usize)>,
}

/// A column of which several rows may share a value, so that a long text is not copied for each.
struct Column<'a> {
    values: Read<'a>,
    /// The place of each row's value. None if each row has its own.
    places: Option<Vec<usize>>,
    nulls: Option<NullBuffer>,
}

enum Read<'a> {
    Addresses(columns::Keys<'a>, Vec<State>),
    Texts(StringViewArray),
}

/// Takes the flows out of the columns of a key.
pub(crate) fn read(key: &enrich::Key, arrays: &[ArrayRef]) -> Result<Flows> {
    let values: Vec<_> = arrays.iter().map(values).collect();
    let read = key.columns.iter().zip(arrays).zip(&values);
    let read = read.map(|((column, array), values)| Column::new(key, Values::of(column.role), array, values));
    let read: Vec<_> = read.collect::<Result<_>>()?;
    let rows = arrays.first().map_or(0, Array::len);
    let (mut flows, mut states, mut wrong) =
        (Placed::<Vec<Flow>>::default(), Vec::with_capacity(rows), Vec::new());
    for row in 0..rows {
        let found = flow(&key.columns, |at| read[at].text(row), |at| read[at].address(row));
        let place = u32::try_from(flows.keys.len())?;
        let place = found.map(|flow| flow.map(|_| place));
        flows.keys.extend(found.ok().flatten());
        flows.places.push(place.unwrap_or_default());
        wrong.extend(place.err().map(|column| (row, column)));
        states.push(State::of(place));
    }
    Ok(Flows { flows, states, wrong })
}

/// The values that the rows of a column have, which those of a dictionary share.
fn values(array: &ArrayRef) -> ArrayRef {
    array.as_any_dictionary_opt().map_or_else(|| array.clone(), |of| of.values().clone())
}

impl<'a> Column<'a> {
    fn new(key: &enrich::Key, of: Values, array: &ArrayRef, values: &'a ArrayRef) -> Result<Self> {
        let dictionary = array.as_any_dictionary_opt().filter(|of| !of.values().is_empty());
        let values = match of {
            Values::Addresses => {
                let (keys, states) = keys::addresses(key, values.as_ref())?;
                Read::Addresses(keys, states)
            }
            _ => Read::Texts(cast(values, &DataType::Utf8View)?.as_string_view().clone()),
        };
        let places = dictionary.map(AnyDictionaryArray::normalized_keys);
        Ok(Self { values, places, nulls: array.logical_nulls() })
    }

    /// The place of a row's value. None if it is null.
    fn place(&self, row: usize) -> Option<usize> {
        let is_null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!is_null).then(|| self.places.as_ref().map_or(row, |places| places[row]))
    }

    fn text(&self, row: usize) -> &[u8] {
        match (&self.values, self.place(row)) {
            (Read::Texts(texts), Some(place)) => texts.value(place).as_bytes().trim_ascii(),
            _ => b"",
        }
    }

    fn address(&self, row: usize) -> Result<Option<std::net::IpAddr>, ()> {
        let (Read::Addresses(keys, states), Some(place)) = (&self.values, self.place(row)) else {
            return Ok(None);
        };
        match states[place] {
            State::Wrong => Err(()),
            State::Unset => Ok(None),
            _ => Ok(Some(keys.get(place).to_canonical())),
        }
    }
}
