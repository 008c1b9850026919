//! The keys of a column, and which rows have one.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use arrow::array::Array;
use arrow::datatypes::DataType;
use wirespeed::names::NameBatch;
use wirespeed::names::read::Former;
use wirespeed_columns::{self as columns, Invalid, each_text, may_hold_addresses};
use wirespeed_commands::enrich::{Kind, push_name};
use wirespeed_commands::rules::Flow;
use wirespeed_records::{Role, address, is_unset};

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
    /// All states, each at its number.
    pub(crate) const ALL: [Self; 6] =
        [Self::Unset, Self::Key, Self::Matched, Self::Wrong, Self::OtherV4, Self::OtherV6];
}

/// The keys of a column.
pub(crate) enum Keys<'a> {
    /// An address for each row; of a row without a key, any.
    Addresses(columns::Keys<'a>),
    /// The names of those rows that have one.
    Names(NameBatch),
    /// The flows of those rows that have one.
    Flows(Vec<Flow>),
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

fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Reads a column of addresses or of names that is no dictionary. Returns its keys, and the state of each
/// row.
pub(crate) fn read(kind: Kind, array: &dyn Array) -> Result<(Keys<'_>, Vec<State>)> {
    match kind {
        Kind::Names | Kind::Domains => names(kind, array),
        _ => addresses(array).map(|(keys, states)| (Keys::Addresses(keys), states)),
    }
}

/// Reads a column of addresses that is no dictionary: an address for each row, and its state.
pub(crate) fn addresses(array: &dyn Array) -> Result<(columns::Keys<'_>, Vec<State>)> {
    if is_text(array.data_type()) {
        return addresses_of_texts(array);
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

fn addresses_of_texts(array: &dyn Array) -> Result<(columns::Keys<'static>, Vec<State>)> {
    let (mut keys, mut states) = (Vec::with_capacity(array.len()), Vec::with_capacity(array.len()));
    each_text(array, |_, text| {
        let text = text.unwrap_or_default().trim_ascii().as_bytes();
        let (key, state) = match address(text) {
            Some(address) => (address, State::Key),
            None if is_unset(text) => (ANY, State::Unset),
            None => (ANY, State::Wrong),
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
    let (mut names, mut former) = (NameBatch::new(), Former::default());
    let mut states = Vec::with_capacity(array.len());
    each_text(array, |_, text| {
        let text = text.unwrap_or_default().trim_ascii().as_bytes();
        states.push(push(&mut names, kind, text, &mut former));
        Ok(())
    })?;
    Ok((Keys::Names(names), states))
}

/// Adds the name of a value, if it has one.
fn push(names: &mut NameBatch, kind: Kind, text: &[u8], former: &mut Former) -> State {
    if text.len() > LONGEST_NAME {
        return State::Wrong;
    }
    match push_name(names, kind, text, former) {
        Ok(Some(_)) => State::Key,
        Ok(None) => State::Unset,
        Err(()) => State::Wrong,
    }
}
