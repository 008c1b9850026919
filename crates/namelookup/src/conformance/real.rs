//! Millions of real domains, where they are at hand.

use wirespeed_fib::read::{Line, Source, open};
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::real_data;
use wirespeed_table::Engine;

use super::{Expected, Right, Tally, check, check_batch, check_counts, probes};
use crate::domain::NameDomain;
use crate::name::NameBuf;
use crate::names::NameBatch;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// How many results the tables have: as many as the IPv4 table of the paper's kind has next hops.
const RESULTS: usize = 62;

/// The names of real domains with results by a seeded stand-in for resolving them, and as many made ones as
/// are wanted in all.
pub fn read_domains(at_least: usize) -> Option<NameTable> {
    let mut input =
        open(&Source::Path(real_data("names/domains-3.6m.txt.zst")?)).expect("the file is opened");
    let mut rng = Rng::new(62);
    let mut result = || 1 + u32::try_from(rng.index(RESULTS)).expect("few");
    let mut names = NameTable::new();
    while let Some(line) = input.next_line().expect("the file is read") {
        let Line::Whole(domain) = line else { continue };
        if let Ok(name) = NameBuf::from_domain(domain) {
            names.insert(&name, result());
        }
    }
    let real = names.len();
    for n in 0.. {
        if names.len() >= at_least.max(real) {
            break;
        }
        names.insert(&made(n), result());
    }
    Some(names)
}

/// A made domain: beneath a few top levels, some with a host of their own.
fn made(n: u64) -> NameBuf {
    let mut rng = Rng::stream(5, n);
    let top = ["com", "net", "org", "de", "co/uk", "xyz"][rng.index(6)];
    let site = rng.bits() % 40_000_000;
    let host = ["", "/www", "/mail", "/cdn", "/shop/eu"][rng.index(5)];
    NameBuf::new(&format!("/{top}/made-{site:x}{host}")).expect("a name")
}

/// The real domains, built whole, every one probed; then changed.
pub fn real_names<E: Engine<NameDomain>>() {
    million_names::<E>("real_names", 0);
}

/// Ten million names, made ones after the real.
pub fn ten_million_names<E: Engine<NameDomain>>() {
    million_names::<E>("ten_million_names", 10_000_000);
}

fn million_names<E: Engine<NameDomain>>(test: &'static str, at_least: usize) {
    let Some(names) = read_domains(at_least) else { return };
    let tally = Tally::<E>::new("the smallest names");
    let sample: NameTable = names.iter().take(50).collect();
    tally.build(&sample, test);
    let what = format!("{} names", names.len());
    if let Some(mut patched) = super::history::Patched::new(&tally, names.into(), &what) {
        let expected = Expected::of_table(patched.model.names());
        check_counts::<E>(&patched.table, patched.model.names(), &what);
        every_entry::<E>(&patched.table, patched.model.names(), &expected, &what);
        around_some::<E>(&patched.table, patched.model.names(), &expected, &what);
        drop(expected);
        changed(&mut patched);
    }
    tally.finish();
}

/// Every entry, in long batches.
fn every_entry<E: Engine<NameDomain>>(table: &E::Table, names: &NameTable, expected: &Expected, what: &str) {
    let mut batch = NameBatch::new();
    let mut all = names.iter();
    loop {
        batch.clear();
        all.by_ref().take(100_000).for_each(|(name, _)| probes::add(&mut batch, &name));
        if batch.is_empty() {
            return;
        }
        let right: Vec<_> = batch.names().iter().map(|name| expected.right(name)).collect();
        check_batch(table, &right, batch.names(), what);
    }
}

/// Around some of the entries, spread over all.
fn around_some<E: Engine<NameDomain>>(table: &E::Table, names: &NameTable, expected: &Expected, what: &str) {
    let some: Vec<_> =
        names.nodes().step_by(1 + names.node_count() / 10_000).map(|node| node.name()).collect();
    check(table, expected, probes::around(&some).names(), what);
    check(table, expected, probes::scattered(&some, 50_000).names(), what);
}

/// Names go and come a thousand at a time, then very many at once.
fn changed<E: Engine<NameDomain>>(patched: &mut super::history::Patched<'_, E>) {
    let mut rng = Rng::new(8);
    let goes = patched.model.names().len() / 60_000;
    let going: Vec<_> =
        patched.model.names().iter().filter(|_| rng.index(1_000) < 20).map(|(name, _)| name).collect();
    let update = |(at, name): (usize, NameBuf)| match at % 3 {
        0 => NameUpdate::Insert(name, 63),
        _ => NameUpdate::Remove(name),
    };
    let mut updates: Vec<_> = going.into_iter().enumerate().map(update).collect();
    updates.extend((0..updates.len() as u64).map(|n| NameUpdate::Insert(made(1 << 40 | n), 64)));
    rng.shuffle(&mut updates);
    let (few, many) = updates.split_at(updates.len().min(1_000 * goes.min(20)));
    let before = patched.rebuilds;
    let mut steps: Vec<_> = few.chunks(1_000).chain(many.chunks(many.len().div_ceil(2).max(1))).collect();
    while !steps.is_empty() {
        // What is built anew at each step has shown what it does after some: the rest is one step.
        let rest = if patched.rebuilds - before < 3 { 1 } else { steps.len() };
        let updates: Vec<_> = steps.drain(..rest).flatten().cloned().collect();
        if patched.apply(&updates, "real names changed").is_none() {
            return;
        }
    }
    eprintln!("{}: {} rebuilds for {} changes", E::NAME, patched.rebuilds - before, updates.len());
    let expected = Expected::of_table(patched.model.names());
    let names: NameBatch = updates.iter().map(NameUpdate::name).collect();
    let right: Vec<_> = names.names().iter().map(|name| expected.right(name)).collect();
    check_batch(&patched.table, &right, names.names(), "real names changed");
    check_counts::<E>(&patched.table, patched.model.names(), "real names changed");
    around_some::<E>(&patched.table, patched.model.names(), &expected, "real names changed");
}
