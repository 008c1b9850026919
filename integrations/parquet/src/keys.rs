//! The keys of a column, and which rows have one.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use arrow::array::Array;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use wirespeed::IpReader;
use wirespeed::fib::{Family, NextHop};
use wirespeed::names::NameBatch;
use wirespeed::names::read::Former;
use wirespeed_columns::{self as columns, Invalid, each_text, may_hold_addresses};
use wirespeed_commands::enrich::{self, Kind, Placed, in_family, push_name};
use wirespeed_records::Role;

/// The most bytes of a name, a domain or a URL. Longer ones are wrong: rows of a small file may share one.
pub(crate) const LONGEST_NAME: usize = 64 << 10;

/// What a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// No key: the value is null, or says that there is none.
    Unset,
    /// A key.
    Key,
    /// A key that some table has an answer for.
    Matched,
    /// A value that is no key.
    Wrong,
    /// A key of IPv4, which no table has.
    OtherV4,
    /// A key of IPv6, which no table has.
    OtherV6,
}

impl State {
    /// The state of a row with the place of its key, without one, or with a wrong value.
    pub(crate) const fn of<E>(place: Result<Option<u32>, E>) -> Self
    where
        E: Copy,
    {
        match place {
            Ok(Some(_)) => Self::Key,
            Ok(None) => Self::Unset,
            Err(_) => Self::Wrong,
        }
    }

    /// All states, each at its number.
    pub(crate) const ALL: [Self; 6] =
        [Self::Unset, Self::Key, Self::Matched, Self::Wrong, Self::OtherV4, Self::OtherV6];
}

/// The keys of a column.
pub(crate) type Keys<'a> = enrich::Keys<Addresses<'a>>;

/// The addresses of a column.
pub(crate) struct Addresses<'a> {
    /// An address for each row; of a row without one, any.
    keys: columns::Keys<'a>,
    /// The rows without one.
    none: Vec<usize>,
}

impl enrich::Addresses for Addresses<'_> {
    fn look_up(&self, reader: &IpReader, prefix: bool, indexes: &mut Vec<NextHop>, lengths: &mut Vec<u8>) {
        match &self.keys {
            columns::Keys::V4(keys) => in_family(reader.v4(), keys, prefix, indexes, lengths),
            columns::Keys::V6(keys) => in_family(reader.v6(), keys, prefix, indexes, lengths),
            columns::Keys::Any(keys) => in_both(reader, keys, prefix, indexes, lengths),
        }
        self.none.iter().for_each(|&row| indexes[row] = NextHop::NONE);
    }

    fn of(&self, row: usize) -> IpAddr {
        self.keys.get(row)
    }
}

/// The meaning of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    Addresses,
    Names,
    /// Protocols, ports, and the like.
    Numbers,
}

impl Values {
    pub(crate) const fn of(role: Role) -> Self {
        match role {
            Role::Source | Role::Destination | Role::Address => Self::Addresses,
            Role::Name => Self::Names,
            _ => Self::Numbers,
        }
    }
}

/// Whether a column of this type may hold such values.
pub(crate) fn may_hold(values: Values, of: &DataType) -> bool {
    let each = match of {
        DataType::Dictionary(_, each) => each,
        of => of,
    };
    match values {
        Values::Addresses => may_hold_addresses(of),
        Values::Names => is_text(each),
        Values::Numbers => is_text(each) || each.is_integer(),
    }
}

pub(crate) fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Reads a column of addresses or of names that is no dictionary. Returns its keys, and the state of each
/// row.
pub(crate) fn read<'a>(key: &enrich::Key, array: &'a dyn Array) -> Result<(Keys<'a>, Vec<State>)> {
    if matches!(key.kind, Kind::Names | Kind::Domains) {
        return names(key.kind, array);
    }
    let (keys, states) = addresses(key, array)?;
    let none = (0..states.len()).filter(|&row| states[row] != State::Key).collect();
    Ok((Keys::Addresses(Addresses { keys, none }), states))
}

/// Reads a column of addresses that is no dictionary: an address for each row, and its state.
pub(crate) fn addresses<'a>(
    of: &enrich::Key,
    array: &'a dyn Array,
) -> Result<(columns::Keys<'a>, Vec<State>)> {
    if is_text(array.data_type()) {
        return addresses_of_texts(of, array);
    }
    // Without the option, integers are of IPv4.
    if of.numbers == Some(Family::V6) && array.data_type().is_integer() {
        return addresses_of_texts(of, &cast(array, &DataType::Utf8)?);
    }
    let nulls = array.logical_nulls();
    let read = columns::addresses(array, Invalid::Null)?;
    let states = (0..array.len()).map(|row| {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            State::Unset
        } else if read.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            State::Wrong
        } else {
            State::Key
        }
    });
    let states = states.collect();
    Ok((read.keys, states))
}

fn addresses_of_texts(of: &enrich::Key, array: &dyn Array) -> Result<(columns::Keys<'static>, Vec<State>)> {
    let (mut keys, mut states) = (Vec::with_capacity(array.len()), Vec::with_capacity(array.len()));
    each_text(array, |_, text| {
        let text = text.unwrap_or_default().trim_ascii().as_bytes();
        let (key, state) = match of.address(text) {
            Ok(Some(address)) => (address, State::Key),
            Ok(None) => (ANY, State::Unset),
            Err(()) => (ANY, State::Wrong),
        };
        keys.push(key);
        states.push(state);
        Ok(())
    })?;
    Ok((columns::Keys::Any(keys), states))
}

/// An address for rows without one.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

fn names(kind: Kind, array: &dyn Array) -> Result<(Keys<'static>, Vec<State>)> {
    let (mut names, mut former) = (Placed::<NameBatch>::default(), Former::default());
    let mut states = Vec::with_capacity(array.len());
    each_text(array, |_, text| {
        let text = text.unwrap_or_default().trim_ascii().as_bytes();
        let place = push(&mut names.keys, kind, text, &mut former);
        states.push(State::of(place));
        names.places.push(place.unwrap_or_default());
        Ok(())
    })?;
    Ok((Keys::Names(names), states))
}

/// Adds the name of a value, if it has one. Returns its place.
fn push(names: &mut NameBatch, kind: Kind, text: &[u8], former: &mut Former) -> Result<Option<u32>, ()> {
    if text.len() > LONGEST_NAME { Err(()) } else { push_name(names, kind, text, former) }
}

/// Looks addresses of both families up, all or none with their prefixes.
fn in_both(
    reader: &IpReader,
    keys: &[IpAddr],
    prefix: bool,
    indexes: &mut Vec<NextHop>,
    lengths: &mut Vec<u8>,
) {
    indexes.resize(keys.len(), NextHop::NONE);
    lengths.resize(keys.len(), 0);
    if prefix {
        let found = reader.lookup_prefixes(keys, indexes, lengths);
        found.expect("the tables are built for lookups of prefixes if these are asked for");
    } else {
        reader.lookup_batch(keys, indexes);
    }
}
