//! MaxMind DB files, as GeoLite2, IPinfo, DB-IP and own tools have them.
//!
//! ```text
//! tree of bits ──► networks ──► records in the data section ──► fields: country.iso_code, tags.0 ──► label
//! ```
//!
//! The crate `maxminddb` decodes the metadata and records. The walk through the tree is our own: in a damaged
//! file many paths may lead to one node, and a walk that doesn't notice never ends.
//!
//! IPv4 lies within `::/96` of an IPv6 tree. Other places of the tree that lead there (`::ffff:0:0/96`,
//! `2002::/16`) are aliases, and no routes of their own. A record above that subtree is also the record of
//! all IPv4 addresses, as every reader of such files has it.
//!
//! Labels are made of fields like those of CSV, see `csv/label.rs`: one field that is named alone by its
//! value, all others as `name=value`. A record without the fields that are named gives no route: networks of
//! a tree don't overlap, so nothing else takes its place.

mod fields;
mod tree;

use std::collections::BTreeSet;
use std::io::Read;
use std::net::IpAddr;

use maxminddb::{MaxMindDbError, Reader};
use rustc_hash::FxHashMap;
use wirespeed_input::Input;

use self::fields::Fields;
use self::tree::{Step, Tree};
use super::any_prefix::AnyPrefix;
use super::csv::{Columns, label};
use super::error::{End, Fault, Place, ReadError, SkipReason};
use super::field_type::FieldTypes;
use super::mmdb_marker;
use super::report::Ledger;
use super::table::Table;
use crate::next_hop::NextHop;

/// The most bytes of a file, which is held in memory. The largest database that is sold has less than half.
const LARGEST: u64 = if cfg!(fuzzing) { 1 << 20 } else { 4 << 30 };

/// The names of fields, and the first bytes, that an error shows.
const SHOWN: usize = 40;

pub(super) fn read(
    input: &mut Input<'_>,
    ledger: &mut Ledger,
    table: &mut Table,
    wanted: &Columns,
) -> Result<(), End> {
    if wanted.is_of_prefixes() {
        return Err(of_columns(ledger, "columns of prefixes are for CSV: this file has its own networks"));
    }
    let mut bytes = Vec::new();
    if let Err(error) = input.take(LARGEST + 1).read_to_end(&mut bytes) {
        return ledger.broken(Place::Byte(input.offset()), error);
    }
    if bytes.len() as u64 > LARGEST {
        return ledger.cut(Place::Byte(LARGEST), format!("a database of over {LARGEST} bytes"));
    }
    let reader = match Reader::from_source(&bytes[..]) {
        Ok(reader) => reader,
        // Nothing of it can be taken, so nothing is read leniently.
        Err(_) if !mmdb_marker::is_in(&bytes) => {
            let start = format!("\"{}\"", bytes[..bytes.len().min(SHOWN)].escape_ascii());
            return Err(ReadError::UnknownFormat { name: ledger.report.name.clone(), start }.into());
        }
        Err(error) => return ledger.cut(place(&error).unwrap_or(Place::Byte(0)), said(&error)),
    };
    let tree = Tree::new(&bytes, reader.metadata());
    let mut labels = Labels::new(wanted);
    for step in tree.walk() {
        ledger.report.records += 1;
        let (address, depth, value) = match step {
            Step::Network { address, depth, value } => (address, depth, value),
            Step::Alias => {
                ledger.pass(SkipReason::Alias, Place::Byte(0));
                continue;
            }
            Step::Wrong { node, what } => {
                let place = Place::Byte(tree.place(node));
                ledger.fault(SkipReason::Record.into(), place, what)?;
                continue;
            }
        };
        let network = tree.network(address, depth);
        let data = Place::Byte(tree.place_of_record(value));
        match labels.of(&reader, table, network.0, value) {
            Ok(next_hop) => {
                if depth < 96 && address == 0 && tree.is_v6() {
                    table.insert(AnyPrefix::default_of(crate::address::Family::V4), next_hop, ledger);
                }
                match AnyPrefix::from_ip(network.0, network.1) {
                    Ok(prefix) => table.insert(prefix, next_hop, ledger),
                    Err(why) => ledger.fault(why.into(), data, "")?,
                }
            }
            Err(Wrong { fault, at, what }) => ledger.fault(fault, at.unwrap_or(data), what)?,
        }
    }
    ledger.report.names_fields = wanted.values.len() != 1 && !labels.has_values;
    ledger.report.field_types = std::mem::take(&mut labels.types);
    labels.check(ledger)
}

/// The labels of records that were decoded.
struct Labels<'w> {
    wanted: &'w [String],
    /// Whether some record has the field.
    found: Vec<bool>,
    /// Names of fields, for an error.
    names: BTreeSet<String>,
    known: FxHashMap<u32, Result<NextHop, SkipReason>>,
    /// Whether some record is one value without a name.
    has_values: bool,
    types: FieldTypes,
    text: String,
}

/// Why a record gives no label.
struct Wrong {
    fault: Fault,
    at: Option<Place>,
    what: String,
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        Self { fault, at: None, what: String::new() }
    }
}

impl<'w> Labels<'w> {
    fn new(wanted: &'w Columns) -> Self {
        Self {
            wanted: &wanted.values,
            found: vec![false; wanted.values.len()],
            names: BTreeSet::new(),
            known: FxHashMap::default(),
            has_values: false,
            types: FieldTypes::default(),
            text: String::new(),
        }
    }

    /// The label of the record that an address has. `value` tells records apart.
    fn of(
        &mut self,
        reader: &Reader<&[u8]>,
        table: &mut Table,
        address: IpAddr,
        value: u32,
    ) -> Result<NextHop, Wrong> {
        if let Some(known) = self.known.get(&value) {
            return known.map_err(|reason| Fault::from(reason).into());
        }
        let wrong = |error: MaxMindDbError| Wrong {
            fault: SkipReason::Record.into(),
            at: place(&error),
            what: said(&error),
        };
        let fields = reader.lookup(address).and_then(|found| found.decode::<Fields>());
        let made = match fields {
            Ok(fields) => self.make(&fields.unwrap_or_default(), table),
            Err(error) => {
                self.known.insert(value, Err(SkipReason::Record));
                return Err(wrong(error));
            }
        };
        match made {
            Ok(next_hop) => self.known.insert(value, Ok(next_hop)),
            Err(Fault::Skip(reason)) => self.known.insert(value, Err(reason)),
            Err(_) => None,
        };
        Ok(made?)
    }

    fn make(&mut self, fields: &Fields, table: &mut Table) -> Result<NextHop, Fault> {
        for (name, of) in fields.types() {
            if self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name) {
                let name = if self.wanted.len() == 1 { fields::VALUE } else { name };
                self.types.note(name, of);
            }
            if self.names.len() < SHOWN && !self.names.contains(name) {
                self.names.insert(name.to_owned());
            }
        }
        if self.wanted.is_empty() {
            self.has_values |= fields.is_value();
            label::write(&mut self.text, fields.is_value(), fields.iter());
        } else {
            for (found, name) in self.found.iter_mut().zip(self.wanted) {
                *found |= fields.text(name).is_some();
            }
            let chosen = self.wanted.iter().filter_map(|name| Some((&**name, fields.text(name)?)));
            label::write(&mut self.text, self.wanted.len() == 1, chosen);
        }
        if self.text.is_empty() {
            return Err(SkipReason::NoField.into());
        }
        table.hop(self.text.as_bytes())
    }

    /// Refuses the name of a field that no record has.
    fn check(&self, ledger: &Ledger) -> Result<(), End> {
        let missing = self.wanted.iter().zip(&self.found).find(|(_, found)| !**found);
        match missing {
            Some((name, _)) if !self.known.is_empty() => {
                let names: Vec<_> = self.names.iter().map(String::as_str).collect();
                Err(of_columns(ledger, &format!("no field {name}; there are {}", names.join(", "))))
            }
            _ => Ok(()),
        }
    }
}

fn of_columns(ledger: &Ledger, what: &str) -> End {
    let name = ledger.report.name.clone();
    ReadError::Columns { name, place: Place::Byte(0), what: what.into() }.into()
}

fn place(error: &MaxMindDbError) -> Option<Place> {
    match error {
        MaxMindDbError::InvalidDatabase { offset: Some(offset), .. } => Some(Place::Byte(*offset as u64)),
        _ => None,
    }
}

/// The message of an error, without its place.
fn said(error: &MaxMindDbError) -> String {
    match error {
        MaxMindDbError::InvalidDatabase { message, .. }
        | MaxMindDbError::Decoding { message, .. }
        | MaxMindDbError::ResourceLimit { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
