//! The members of one set of a file that has several, as a list of prefixes.
//!
//! The longest element that holds an address decides. An exception takes its addresses out of the elements
//! around it, so these become the prefixes that are left.

use std::collections::BTreeMap;

use super::error::{End, ReadError};
use super::report::Ledger;
use super::table::{AnyPrefix, Table};
use super::{Fault, MEMBER};
use crate::address::{Address, V4, V6};
use crate::next_hop::NextHop;
use crate::prefix::Prefix;
use crate::range::prefix_without;

/// The most sets that an error names.
const SHOWN: usize = 20;

/// The chosen set of a file so far.
pub(super) struct Members<'w> {
    wanted: Option<&'w str>,
    /// The sets of addresses of the file.
    names: Vec<String>,
    /// Elements, and whether each is an exception.
    v4: BTreeMap<Prefix<V4>, bool>,
    v6: BTreeMap<Prefix<V6>, bool>,
}

impl<'w> Members<'w> {
    /// Takes the set of this name, or the only one.
    pub(super) fn new(wanted: Option<&'w str>) -> Self {
        Self { wanted, names: Vec::new(), v4: BTreeMap::new(), v6: BTreeMap::new() }
    }

    /// Notes a set of addresses.
    pub(super) fn set(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    /// Whether the set's elements are to be added. Without a name that is the first set: if there are more,
    /// the end is an error.
    pub(super) fn is_chosen(&self, name: &str) -> bool {
        match self.wanted {
            Some(wanted) => wanted == name,
            None => self.names.first().is_some_and(|first| first == name),
        }
    }

    /// Adds an element of the chosen set.
    pub(super) fn add(&mut self, prefix: AnyPrefix, is_exception: bool, ledger: &mut Ledger) {
        let before = match prefix {
            AnyPrefix::V4(prefix) => self.v4.insert(prefix, is_exception),
            AnyPrefix::V6(prefix) => self.v6.insert(prefix, is_exception),
        };
        ledger.report.repeated += u64::from(before.is_some());
    }

    /// Puts the members into the table.
    pub(super) fn finish(self, table: &mut Table, ledger: &mut Ledger) -> Result<(), End> {
        let name = ledger.report.name.clone();
        let known = || {
            let shown = self.names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            if self.names.len() > SHOWN { shown + ", …" } else { shown }
        };
        match self.wanted {
            Some(wanted) if !self.names.iter().any(|name| name == wanted) => {
                return Err(ReadError::NoSuchSet { name, set: wanted.to_owned(), known: known() }.into());
            }
            None if self.names.len() > 1 => {
                return Err(ReadError::SeveralSets { name, known: known() }.into());
            }
            _ => {}
        }
        ledger.report.is_list = true;
        let repeated = std::mem::take(&mut ledger.report.repeated);
        let member = match table.hop(MEMBER.as_bytes()) {
            Ok(member) => member,
            Err(Fault::Full(source)) => {
                let place = super::Place::Line(0);
                return Err(ReadError::TooManyNextHops { name, place, source }.into());
            }
            Err(_) => unreachable!("the word is fit"),
        };
        put(&self.v4, AnyPrefix::V4, member, table, ledger);
        put(&self.v6, AnyPrefix::V6, member, table, ledger);
        ledger.report.routes += repeated;
        ledger.report.repeated += repeated;
        Ok(())
    }
}

fn put<A: Address>(
    elements: &BTreeMap<Prefix<A>, bool>,
    any: fn(Prefix<A>) -> AnyPrefix,
    member: NextHop,
    table: &mut Table,
    ledger: &mut Ledger,
) {
    let holes: Vec<Prefix<A>> =
        elements.iter().filter(|(_, is_exception)| **is_exception).map(|(prefix, _)| *prefix).collect();
    for (&prefix, _) in elements.iter().filter(|(_, is_exception)| !**is_exception) {
        prefix_without(prefix, &holes, &mut |part| {
            // A part may also be an element of its own.
            if !table.has(any(part)) {
                table.insert(any(part), member, ledger);
            }
        });
    }
}
