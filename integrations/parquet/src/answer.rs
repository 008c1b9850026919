//! The answers for a column: new columns, and the state of each row.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, AsArray, StringArray, StringBuilder, StructArray, UInt8Array, UInt32Array};
use arrow::datatypes::{DataType, Field, UInt8Type};
use wirespeed::fib::NextHop;
use wirespeed_columns::over_values;
use wirespeed_commands::enrich::{Addresses as _, Found, Kind, Lookup, Part, Version, Versions};

use crate::columns::{Added, Key};
use crate::flows::{self, Flows};
use crate::keys::{self, Keys, State};
use crate::values::Values;

/// The answers for some rows.
pub(crate) struct Answers {
    /// The new columns of a key.
    pub(crate) columns: Vec<ArrayRef>,
    states: ArrayRef,
    /// The rows whose flow is wrong, each with the place of the column that is.
    wrong: Vec<(usize, usize)>,
}

impl Answers {
    /// Looks the columns of a key up in all tables of its kind. The values of a dictionary are looked up once
    /// each.
    pub(crate) fn new(key: &Key, tables: &Versions<Values>, arrays: &[ArrayRef]) -> Result<Self> {
        let (both, wrong) = match arrays {
            [column] if key.of.kind != Kind::Rules => {
                let of_values = |values: &ArrayRef| {
                    let (keys, states) = keys::read(&key.of, values.as_ref())?;
                    answer(key, tables, keys, states)
                };
                (over_values(column, of_values)?, Vec::new())
            }
            columns => {
                let Flows { flows, states, wrong } = flows::read(&key.of, columns)?;
                (answer(key, tables, Keys::Flows(flows), states)?, wrong)
            }
        };
        let (_, mut columns, _) = both.as_struct().clone().into_parts();
        let states = columns.remove(0);
        Ok(Self { columns, states, wrong })
    }

    /// The place of the column that makes a row wrong.
    pub(crate) fn wrong_column(&self, row: usize) -> usize {
        let of_row = self.wrong.binary_search_by_key(&row, |&(row, _)| row);
        of_row.map_or(0, |at| self.wrong[at].1)
    }

    /// The state of each row. Rows of a dictionary that are null have no state of their own.
    pub(crate) fn states(&self) -> impl Iterator<Item = State> {
        let states = self.states.as_primitive::<UInt8Type>().iter();
        states.map(|state| state.map_or(State::Unset, |state| State::ALL[usize::from(state)]))
    }
}

/// The states and the new columns as one array.
fn answer(key: &Key, tables: &Versions<Values>, keys: Keys<'_>, mut states: Vec<State>) -> Result<ArrayRef> {
    let (mut arrays, mut at, mut families) = (Vec::new(), 0, [false; 2]);
    // The parts of a table lie together.
    while let Some(Added { table, .. }) = key.added.get(at) {
        let parts = key.added[at..].iter().take_while(|added| added.table == *table);
        let parts: Vec<_> = parts.map(|added| added.part).collect();
        at += parts.len();
        let Version { lookup, values, .. } = &*tables[*table];
        families.iter_mut().zip(lookup.families()).for_each(|(has, of)| *has |= of);
        let mut found = Found::default();
        found.look_up(&keys, lookup, parts.contains(&Part::Prefix));
        for (state, &index) in states.iter_mut().zip(&found.indexes) {
            if index != NextHop::NONE {
                *state = State::Matched;
            }
        }
        let indexes = UInt32Array::from_iter_values(found.indexes.iter().map(|index| index.0));
        for part in parts {
            arrays.push(match part {
                Part::Field(field) => values.of(&indexes, field)?,
                part => Arc::new(texts(&found, part, &keys, lookup)),
            });
        }
    }
    set_others(&keys, families, &mut states);
    let fields = key.added.iter().map(|added| Field::new(&added.name, DataType::Utf8, true));
    let fields: Vec<_> = [Field::new("", DataType::UInt8, true)].into_iter().chain(fields).collect();
    let states = states.into_iter().map(|state| state as u8).collect::<UInt8Array>();
    let arrays = [Arc::new(states) as ArrayRef].into_iter().chain(arrays).collect();
    Ok(Arc::new(StructArray::try_new(fields.into(), arrays, None)?))
}

/// Marks the addresses of a family that no table has.
fn set_others(keys: &Keys<'_>, [has_v4, has_v6]: [bool; 2], states: &mut [State]) {
    if has_v4 && has_v6 {
        return;
    }
    for (row, state) in states.iter_mut().enumerate().filter(|(_, state)| **state == State::Key) {
        let address = match keys {
            Keys::Addresses(addresses) => addresses.of(row),
            Keys::Flows(flows) => match flows.place(row) {
                Some(place) => flows.keys[place].src,
                None => continue,
            },
            Keys::Names(_) => return,
        };
        match address {
            IpAddr::V4(_) if !has_v4 => *state = State::OtherV4,
            IpAddr::V6(_) if !has_v6 => *state = State::OtherV6,
            _ => {}
        }
    }
}

/// The parts of answers that are no values, as texts.
fn texts(found: &Found, part: Part, keys: &Keys<'_>, lookup: &Lookup) -> StringArray {
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for row in 0..found.indexes.len() {
        text.clear();
        let is_there = found.write(part, row, keys, lookup, &mut text);
        texts.append_option(is_there.then_some(&text));
    }
    texts.finish()
}
