//! Live tables under concurrent readers.

use wirespeed_table::conformance::beside_readers;
use wirespeed_table::{Engine, Lookup};

use super::{OfNames, Tally, affordable, options, tables};
use crate::domain::LiveNames;
use crate::domain::NameDomain;
use crate::name::NameBuf;
use crate::names::NameBatch;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// Readers on other threads see a set of updates whole or not at all, in place and across rebuilds.
pub fn live_readers<E: Engine<NameDomain>>() {
    let tally = Tally::<E>::new("live_readers");
    let entries = entries();
    let names: NameTable = entries.iter().map(|name| (name, 1)).collect();
    if tally.build(&names, "live names").is_none() {
        return tally.finish();
    }
    let mut live = LiveNames::<E>::new(names.into(), options()).expect("the table was built before");
    let probes: NameBatch = probes(&entries).iter().map(|name| &**name).collect();
    let rounds = affordable::<E>(600);
    let updates = (2..rounds).map(|round| {
        // Now and then a result that no narrow entry holds.
        let result = if round % (rounds / 3).max(1) == 0 { round << 14 } else { round };
        let mut updates = all_at(&entries, result);
        updates.extend(passing(&entries, round, result));
        (entries.len(), updates)
    });
    let is_whole = |found: &[u32]| found[0] != 0 && found.iter().all(|&result| result == found[0]);
    beside_readers::<NameDomain, OfNames, E>(&mut live, &probes, is_whole, updates);
    in_turn(&mut live, &entries);
    tally.finish();
}

/// Names of all depths, the root among them.
fn entries() -> Vec<NameBuf> {
    let mut names: Vec<_> = ["/", "/com", "/com/a", "/com/ab", "/com/a/b/c", "/org/x/y/z", "/\u{1}"]
        .iter()
        .map(|text| tables::name(text))
        .collect();
    names.push(tables::name(&format!("/com/{}/end", "l".repeat(300))));
    names.push(tables::name(&"/deep".repeat(40)));
    names
}

/// The entries and names beneath them, and beneath what comes and goes.
fn probes(entries: &[NameBuf]) -> Vec<NameBuf> {
    let beneath = entries.iter().flat_map(|name| {
        let name = if name.is_empty() { String::new() } else { name.to_string() };
        (0..3).map(move |n| tables::name(&format!("{name}/passing{n}/x")))
    });
    entries.iter().cloned().chain(beneath).collect()
}

/// Every entry moves to one result, so that in every state the answers are alike.
fn all_at(entries: &[NameBuf], result: u32) -> Vec<NameUpdate> {
    entries.iter().map(|name| NameUpdate::Insert(name.clone(), result)).collect()
}

/// Names that are there in some rounds, with the result of all: states move and change their kind.
fn passing(entries: &[NameBuf], round: u32, result: u32) -> Vec<NameUpdate> {
    let update = |entry: &NameBuf, n: u32| {
        let mut name = entry.clone();
        name.push(format!("passing{n}").as_bytes()).expect("a component");
        if round.is_multiple_of(n + 2) { NameUpdate::Remove(name) } else { NameUpdate::Insert(name, result) }
    };
    entries.iter().flat_map(|entry| (0..3).map(move |n| update(entry, n))).collect()
}

/// One name at a time, in turn: what one copy was given, the other was too.
fn in_turn<E: Engine<NameDomain>>(live: &mut LiveNames<E>, entries: &[NameBuf]) {
    let reader = live.reader();
    let mut results = vec![1; entries.len()];
    live.apply(&all_at(entries, 1)).expect("the table takes the update");
    for round in 2..60u32 {
        let which = round as usize % entries.len();
        results[which] = round;
        let update = NameUpdate::Insert(entries[which].clone(), round);
        live.apply([&update]).expect("the table takes the update");
        let found: Vec<_> = entries.iter().map(|name| reader.enter().lookup(name).result).collect();
        assert_eq!(found, results);
    }
    let names: Vec<_> = live.model().names().iter().map(|(name, _)| name).collect();
    let removed: Vec<_> = names.into_iter().map(NameUpdate::Remove).collect();
    live.apply(&removed).expect("the table takes the update");
    assert!(entries.iter().all(|name| !reader.enter().lookup(name).is_some()), "removed, and still found");
}
