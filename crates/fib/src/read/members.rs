//! The members of one set of a file that has several, as a list of prefixes.
//!
//! The longest element that holds an address decides. An exception takes its addresses out of the elements
//! around it, so these become the prefixes that are left.

use std::collections::BTreeMap;

use super::any_prefix::AnyPrefix;
use super::error::{End, ReadError};
use super::report::Ledger;
use super::table::Table;
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
    /// The sets of addresses of the file: their names, short and whole.
    names: Vec<[String; 2]>,
    /// Elements, and whether each is an exception.
    v4: BTreeMap<Prefix<V4>, bool>,
    v6: BTreeMap<Prefix<V6>, bool>,
}

impl<'w> Members<'w> {
    /// Takes the set of this name, or the only one.
    pub(super) fn new(wanted: Option<&'w str>) -> Self {
        Self { wanted, names: Vec::new(), v4: BTreeMap::new(), v6: BTreeMap::new() }
    }

    /// Notes a set of addresses. Its whole name tells it from others with the same short one.
    pub(super) fn set(&mut self, short: &str, whole: &str) {
        self.names.push([short.to_owned(), whole.to_owned()]);
    }

    /// Whether the elements of the set of this whole name are to be added. Only the first set that fits is:
    /// if more do, the end is an error.
    pub(super) fn is_chosen(&self, whole: &str) -> bool {
        self.fitting().next().is_some_and(|[_, first]| first == whole)
    }

    /// The sets that are asked for: those of the name, or all.
    fn fitting(&self) -> impl Iterator<Item = &[String; 2]> {
        let fits =
            |name: &&[String; 2]| self.wanted.is_none_or(|wanted| name.iter().any(|name| name == wanted));
        self.names.iter().filter(fits)
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
        let shown: Vec<_> = self.names.iter().take(SHOWN).map(|[_, whole]| whole.as_str()).collect();
        let known = shown.join(", ") + if self.names.len() > SHOWN { ", …" } else { "" };
        match (self.fitting().count(), self.wanted) {
            (0, Some(wanted)) => {
                return Err(ReadError::NoSuchSet { name, set: wanted.to_owned(), known }.into());
            }
            (0 | 1, _) => {}
            _ => return Err(ReadError::SeveralSets { name, known }.into()),
        }
        ledger.report.is_list = true;
        let repeated = std::mem::take(&mut ledger.report.repeated);
        let member = match table.hop(MEMBER.as_bytes()) {
            Ok(member) => member,
            Err(Fault::Full(source)) => {
                let place = super::Place::Line(0);
                return Err(ReadError::TooManyNextHops { name, place, cause: source }.into());
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
