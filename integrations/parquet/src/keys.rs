//! The keys of a column, and which rows have one.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use arrow::array::Array;
use arrow::datatypes::DataType;
use wirespeed::names::read::{Former, NameFormat};
use wirespeed::names::{Name, NameBatch};
use wirespeed_columns::{self as columns, Invalid, each_text, may_hold_addresses};
use wirespeed_records::{address, host, is_unset};

use crate::table::Kind;

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
}

/// Whether a column of this type may hold such keys.
pub(crate) fn may_hold(kind: Kind, of: &DataType) -> bool {
    let values = match of {
        DataType::Dictionary(_, values) => values,
        of => of,
    };
    match kind {
        Kind::Addresses => may_hold_addresses(of),
        Kind::Names | Kind::Domains => is_text(values),
    }
}

fn is_text(of: &DataType) -> bool {
    matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Reads a column that is no dictionary. Returns its keys, and the state of each row.
pub(crate) fn read(kind: Kind, array: &dyn Array) -> Result<(Keys<'_>, Vec<State>)> {
    match kind {
        Kind::Addresses if is_text(array.data_type()) => addresses_of_texts(array),
        Kind::Addresses => {
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
            Ok((Keys::Addresses(read.keys), states))
        }
        Kind::Names | Kind::Domains => names(kind, array),
    }
}

fn addresses_of_texts(array: &dyn Array) -> Result<(Keys<'static>, Vec<State>)> {
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
    Ok((Keys::Addresses(columns::Keys::Any(keys)), states))
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
    if is_unset(text) {
        return State::Unset;
    }
    if text.len() > LONGEST_NAME {
        return State::Wrong;
    }
    let text = if kind == Kind::Domains { host(text) } else { text };
    if kind == Kind::Domains && address(text).is_some() {
        return State::Unset;
    }
    match name(text, former).map(|name| names.push(name)) {
        Some(Ok(())) => State::Key,
        Some(Err(_)) | None => State::Wrong,
    }
}

/// Parses a name, a domain or a URL. An address is the host of a URL, because no domain is an address.
fn name<'f>(text: &'f [u8], former: &'f mut Former) -> Option<&'f Name> {
    let form = match address(text) {
        Some(IpAddr::V4(_)) => NameFormat::Urls,
        // Without brackets it is no host.
        Some(IpAddr::V6(_)) => return None,
        None => NameFormat::recognise([text])?,
    };
    former.form(text, form).ok()
}
