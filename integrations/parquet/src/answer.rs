//! The answers for a column: new columns, and the state of each row.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Result;
use arrow::array::{ArrayRef, AsArray, StringArray, StringBuilder, StructArray, UInt8Array, UInt32Array};
use arrow::datatypes::{DataType, Field, UInt8Type};
use ipnet::IpNet;
use wirespeed::fib::NextHop;
use wirespeed::names::lists::{Answer, Verdict};
use wirespeed::names::{Match, NameBatch, NameList};
use wirespeed::prelude::{IpReader, NameReader};
use wirespeed_columns::{self as columns, over_values};
use wirespeed_commands::enrich::{Kind, Lookup, Part, Version, Versions};
use wirespeed_commands::rules::{Flow, Judge, Judged};

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
                    let (keys, states) = keys::read(key.of.kind, values.as_ref())?;
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
        let found = Found::new(&keys, &states, lookup, parts.contains(&Part::Prefix))?;
        for (state, &index) in states.iter_mut().zip(&found.indexes) {
            if index != 0 {
                *state = State::Matched;
            }
        }
        let indexes = UInt32Array::from(found.indexes.clone());
        for part in parts {
            arrays.push(match part {
                Part::Field(field) => values.of(&indexes, field)?,
                part => Arc::new(found.texts(part, &keys, lookup)),
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
    let places = places(states);
    for (row, state) in states.iter_mut().enumerate().filter(|(_, state)| **state == State::Key) {
        let address = match keys {
            Keys::Addresses(keys) => keys.get(row).to_canonical(),
            Keys::Flows(flows) => match places[row] {
                Some(place) => flows[place].src,
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

/// The answers of a table.
struct Found {
    /// The index of each row's answer. 0 if nothing matches; of a list, also for an exception.
    indexes: Vec<u32>,
    of: OfKeys,
}

/// What else the answers say.
enum OfKeys {
    /// The lengths of prefixes that matched, if they are asked for.
    Addresses(Vec<u8>),
    /// Matches, and the place of each row's name.
    Names(Vec<Match>, Vec<Option<usize>>),
    /// Answers of a list, and the place of each row's name.
    Domains(Vec<Option<Answer>>, Vec<Option<usize>>),
    /// Answers of rules, and the place of each row's flow.
    Flows(Vec<Judged>, Vec<Option<usize>>),
}

impl Found {
    fn new(keys: &Keys<'_>, states: &[State], lookup: &Lookup, prefix: bool) -> Result<Self> {
        match (keys, lookup) {
            (Keys::Addresses(keys), Lookup::Addresses(table)) => {
                Self::addresses(keys, states, &table.reader, prefix)
            }
            (Keys::Names(names), Lookup::Names(reader)) => Ok(Self::names(names, states, reader)),
            (Keys::Names(names), Lookup::Domains(list)) => Ok(Self::domains(names, states, list)),
            (Keys::Flows(flows), Lookup::Rules(rules)) => Ok(Self::flows(flows, states, &**rules)),
            _ => unreachable!("the plan pairs columns with tables of their kind"),
        }
    }

    fn addresses(
        keys: &columns::Keys<'_>,
        states: &[State],
        reader: &IpReader,
        prefix: bool,
    ) -> Result<Self> {
        let (mut found, mut lengths) = (vec![NextHop::NONE; keys.len()], vec![0; keys.len()]);
        match (keys, prefix) {
            (columns::Keys::V4(keys), false) => reader.v4().lookup_batch(keys, &mut found),
            (columns::Keys::V6(keys), false) => reader.v6().lookup_batch(keys, &mut found),
            (columns::Keys::Any(keys), false) => reader.lookup_batch(keys, &mut found),
            (columns::Keys::V4(keys), true) => {
                reader.v4().lookup_prefixes(keys, &mut found, &mut lengths)?;
            }
            (columns::Keys::V6(keys), true) => {
                reader.v6().lookup_prefixes(keys, &mut found, &mut lengths)?;
            }
            (columns::Keys::Any(keys), true) => reader.lookup_prefixes(keys, &mut found, &mut lengths)?,
        }
        let of_row = |(next_hop, state): (NextHop, &State)| if is_key(*state) { next_hop.0 } else { 0 };
        let indexes = found.into_iter().zip(states).map(of_row).collect();
        Ok(Self { indexes, of: OfKeys::Addresses(lengths) })
    }

    fn names(names: &NameBatch, states: &[State], reader: &NameReader) -> Self {
        let mut matches = vec![Match::NONE; names.len()];
        reader.match_batch(names, &mut matches);
        let places = places(states);
        let indexes = places.iter().map(|place| place.map_or(0, |place| matches[place].result)).collect();
        Self { indexes, of: OfKeys::Names(matches, places) }
    }

    fn domains(names: &NameBatch, states: &[State], list: &NameList) -> Self {
        let mut listed = vec![None; names.len()];
        list.lookup_batch(names, &mut listed);
        let places = places(states);
        let index = |place: usize| match listed[place] {
            Some(Answer { verdict: Verdict::Exception, .. }) | None => 0,
            Some(answer) => answer.verdict.result(),
        };
        let indexes = places.iter().map(|place| place.map_or(0, index)).collect();
        Self { indexes, of: OfKeys::Domains(listed, places) }
    }

    fn flows(flows: &[Flow], states: &[State], rules: &dyn Judge) -> Self {
        let mut judged = Vec::new();
        rules.judge(flows, &mut judged);
        let places = places(states);
        let indexes = places.iter().map(|place| place.map_or(0, |place| judged[place].number)).collect();
        Self { indexes, of: OfKeys::Flows(judged, places) }
    }

    /// A part that is no value, as text.
    fn texts(&self, part: Part, keys: &Keys<'_>, lookup: &Lookup) -> StringArray {
        let (mut texts, mut text) = (StringBuilder::new(), String::new());
        for row in 0..self.indexes.len() {
            text.clear();
            let is_there = match part {
                Part::Suffix | Part::Registrable => self.suffix(part, row, keys, lookup, &mut text),
                Part::Because => self.because(row, &mut text),
                Part::Rule => self.indexes[row] != 0 && write!(text, "{}", self.indexes[row]).is_ok(),
                _ => self.indexes[row] != 0 && self.prefix(row, keys, &mut text),
            };
            texts.append_option(is_there.then_some(&text));
        }
        texts.finish()
    }

    /// Writes the reasons why the answer for a row's flow is uncertain.
    fn because(&self, row: usize, into: &mut String) -> bool {
        let OfKeys::Flows(judged, places) = &self.of else { return false };
        let because = places[row].and_then(|place| judged[place].because.as_deref());
        because.inspect(|because| into.push_str(because)).is_some()
    }

    /// Writes the prefix that matched a row's key.
    fn prefix(&self, row: usize, keys: &Keys<'_>, into: &mut String) -> bool {
        // Writing to a string does not fail.
        match (&self.of, keys) {
            (OfKeys::Addresses(lengths), Keys::Addresses(keys)) => {
                let net = IpNet::new(keys.get(row), lengths[row]).map(|net| net.trunc());
                net.is_ok_and(|net| write!(into, "{net}").is_ok())
            }
            (OfKeys::Names(matches, places), Keys::Names(names)) => {
                let prefix = places[row].and_then(|place| matches[place].prefix(names.names().name(place)));
                prefix.is_some_and(|prefix| write!(into, "{prefix}").is_ok())
            }
            (OfKeys::Domains(listed, places), Keys::Names(names)) => {
                let answer = places[row].and_then(|place| Some((listed[place]?, place)));
                answer.is_some_and(|(answer, place)| {
                    write!(into, "{}", answer.entry(names.names().name(place))).is_ok()
                })
            }
            _ => false,
        }
    }

    /// Writes the public suffix or the registrable domain of a row's domain.
    fn suffix(&self, part: Part, row: usize, keys: &Keys<'_>, lookup: &Lookup, into: &mut String) -> bool {
        let (OfKeys::Domains(_, places), Keys::Names(names), Lookup::Domains(list)) =
            (&self.of, keys, lookup)
        else {
            return false;
        };
        let found = places[row].and_then(|place| list.suffix(names.names().name(place)));
        let name = found.and_then(|found| match part {
            Part::Suffix => Some(found.suffix),
            _ => found.registrable,
        });
        name.inspect(|name| name.append_domain(into)).is_some()
    }
}

fn is_key(state: State) -> bool {
    matches!(state, State::Key | State::Matched)
}

/// The place of each row's key among those of rows that have one.
fn places(states: &[State]) -> Vec<Option<usize>> {
    let mut next = 0..;
    states.iter().map(|&state| if is_key(state) { next.next() } else { None }).collect()
}
