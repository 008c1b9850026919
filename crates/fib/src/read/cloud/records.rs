//! The records of prefixes until the end of a file, and their labels.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::super::any_prefix::AnyPrefix;
use super::super::error::{End, Fault, Place, SkipReason};
use super::super::fields::Labels;
use super::super::report::Ledger;
use super::super::table::Table;
use crate::next_hop::NextHop;

/// An entry without its prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Record {
    /// Whether its service is the whole of the provider, so that it gives way to others.
    pub(super) covers_all: bool,
    /// A value for each field; empty if there is none.
    pub(super) values: Vec<String>,
}

/// The records of every prefix, each record once.
#[derive(Debug, Default)]
pub(super) struct Records {
    records: Vec<Record>,
    numbers: FxHashMap<Record, usize>,
    /// Prefixes in the order of the file, with the numbers of their records and the place of the first one.
    prefixes: Vec<(AnyPrefix, Vec<usize>, Place)>,
    positions: FxHashMap<AnyPrefix, usize>,
}

impl Records {
    /// Takes a record of a prefix. `place` is that of its entry.
    pub(super) fn add(&mut self, prefix: AnyPrefix, record: Record, place: Place, ledger: &mut Ledger) {
        let number = match self.numbers.get(&record) {
            Some(&number) => number,
            None => {
                self.records.push(record.clone());
                self.numbers.insert(record, self.records.len() - 1);
                self.records.len() - 1
            }
        };
        match self.positions.get(&prefix) {
            Some(&at) => {
                ledger.report.repeated += 1;
                let known = &mut self.prefixes[at].1;
                if !known.contains(&number) {
                    known.push(number);
                }
            }
            None => {
                self.positions.insert(prefix, self.prefixes.len());
                self.prefixes.push((prefix, vec![number], place));
            }
        }
        ledger.report.routes += 1;
    }

    /// Puts a route for each prefix into the table.
    pub(super) fn finish(
        self,
        labels: &mut Labels,
        table: &mut Table,
        ledger: &mut Ledger,
    ) -> Result<(), End> {
        let Self { records, prefixes, .. } = self;
        // Counted again, as the prefixes that give a route.
        let of_prefixes = std::mem::take(&mut ledger.report.routes);
        let repeated = std::mem::take(&mut ledger.report.repeated);
        debug_assert_eq!(of_prefixes - repeated, prefixes.len() as u64);
        let mut known: FxHashMap<Vec<usize>, Result<NextHop, SkipReason>> = FxHashMap::default();
        for (prefix, mut numbers, place) in prefixes {
            numbers.sort_unstable_by_key(|&number| &records[number]);
            let next_hop = match known.get(&numbers) {
                Some(&next_hop) => next_hop,
                None => {
                    let values = joined(numbers.iter().map(|&number| &records[number]));
                    let next_hop = match labels.hop(&values, table) {
                        Ok(next_hop) => Ok(next_hop),
                        Err(Fault::Skip(reason)) => Err(reason),
                        Err(fault) => return ledger.fault(fault, place, ""),
                    };
                    known.insert(numbers.clone(), next_hop);
                    next_hop
                }
            };
            match next_hop {
                Ok(next_hop) => table.insert(prefix, next_hop, ledger),
                Err(reason) => ledger.fault(reason.into(), place, "")?,
            }
        }
        ledger.report.routes += repeated;
        ledger.report.repeated += repeated;
        Ok(())
    }
}

/// The values of several records: those of records with a service of their own, joined, and those of the
/// others where the first have none.
fn joined<'r>(records: impl Iterator<Item = &'r Record> + Clone) -> Vec<String> {
    let fields = records.clone().next().map_or(0, |record| record.values.len());
    let of = |at: usize, covers_all: bool| {
        let some = records.clone().filter(move |record| record.covers_all == covers_all);
        let values: BTreeSet<&str> =
            some.map(|record| record.values[at].as_str()).filter(|value| !value.is_empty()).collect();
        values.into_iter().collect::<Vec<_>>().join("+")
    };
    let either = |own: String, at| if own.is_empty() { of(at, true) } else { own };
    (0..fields).map(|at| either(of(at, false), at)).collect()
}
