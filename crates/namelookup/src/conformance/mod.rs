//! The suite that every engine of names passes. An engine joins it in a line of its `tests/conformance`:
//!
//! ```text
//! wirespeed_namelookup::conformance!(acta, wirespeed_namelookup::Acta);
//! ```
//!
//! The oracle judges hand-picked tables, random tables, and each state of random histories of updates,
//! patched and built anew from the same names. It judges images saved, opened, mapped and damaged, live
//! tables under concurrent readers, names chosen to do harm, and real ones where they are at hand. In each
//! state every entry is probed, with its parents, its siblings, and names of a byte or a component more or
//! less, along with random names; single, in batches of odd sizes, with and without lengths, on all cores,
//! and step by step.
//!
//! An engine that ends somewhere may refuse a table by a typed error; see [`Tally`].

mod expected;
mod history;
mod hostile;
mod live;
pub mod probes;
mod real;
mod refusals;
pub mod tables;

pub use expected::{Expected, Right};
pub use history::{churn, hand_picked_tables, random_updates};
pub use hostile::hostile_names;
pub use live::live_readers;
pub use real::{read_domains, real_names, ten_million_names};
pub use refusals::{refusals, refusals_at_the_cap};
pub use wirespeed_table::conformance::options;
pub use wirespeed_table::suite_tests;

use wirespeed_fib::conformance::{rounds, run};
use wirespeed_image::Table;
use wirespeed_table::{Domain, Engine, Lookup, conformance as suite};

use crate::domain::NameDomain;
use crate::found::Match;
use crate::name::{Name, NameBuf};
use crate::names::{NameBatch, Names};
use crate::table::NameTable;

/// The tables that an engine held, and those that it refused by a typed error.
pub type Tally<E> = suite::Tally<NameDomain, OfNames, E>;

/// The facts of names that the shared tests need.
#[derive(Debug)]
pub enum OfNames {}

/// Tables of so many bytes of components, slashes included, are held by every engine.
const SMALL: usize = 4_096;

impl suite::Suite<NameDomain> for OfNames {
    const TABLES: &'static str = "tables";
    const DAMAGED: (u64, u64) = (64 << 20, 700);
    const FINDS_MORE: bool = true;
    const UNWRITTEN: Match = Match { result: u32::MAX, length: u32::MAX };

    type Batch = NameBatch;

    fn keys(batch: &NameBatch) -> Names<'_> {
        batch.names()
    }

    fn key<'k>(keys: <NameDomain as Domain>::Keys<'k>, at: usize) -> <NameDomain as Domain>::Key<'k> {
        keys.name(at)
    }

    fn show(name: &Name) -> String {
        short(name)
    }

    fn result(found: Match) -> u32 {
        found.result
    }

    fn number(result: u32) -> u64 {
        result.into()
    }

    fn is_possible(name: &Name, found: Match) -> bool {
        found.length as usize <= name.len()
    }

    fn hand_picked() -> Vec<(&'static str, NameTable)> {
        tables::hand_picked()
    }

    fn few() -> NameTable {
        tables::scattered_names(60).into_iter().zip(1..).collect()
    }

    fn around(names: &NameTable) -> NameBatch {
        let mut entries: Vec<_> = names.iter().map(|(name, _)| name).collect();
        // The shortest, and a long one if it isn't so long that little else gets its turn.
        entries.sort_unstable_by_key(|name| (name.len() > 500, name.components().count() % 3, name.len()));
        entries.truncate(6);
        let mut batch = probes::around(&entries);
        probes::scattered(&entries, 20).names().iter().for_each(|name| probes::add(&mut batch, name));
        batch
    }

    fn check_all(table: &dyn Lookup<NameDomain>, names: &NameTable, what: &str) {
        check_all(table, names, &[], what);
    }

    fn small(names: &NameTable) -> Option<String> {
        let bytes: usize = names.nodes().map(|node| node.component().len() + 1).sum();
        (bytes <= SMALL).then(|| format!("a table of {bytes} bytes of components"))
    }
}

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<E: Engine<NameDomain>>() {
    suite::images::<NameDomain, OfNames, E>();
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<E: Engine<NameDomain>>() {
    suite::memory_cap::<NameDomain, OfNames, E>();
}

/// One test module that holds an engine against the whole suite.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $engine:ty) => {
        mod $module {
            use $crate::conformance as suite;

            $crate::conformance::suite_tests! {
                $engine;
                hand_picked_tables random_tables random_updates images live_readers churn memory_cap
                refusals refusals_at_the_cap hostile_names real_names
                #[ignore = "minutes, and gigabytes of memory"] ten_million_names
            }
        }
    };
}

/// Holds a table against the right answers for every name given.
pub fn check(table: &dyn Lookup<NameDomain>, right: &dyn Right, names: Names<'_>, what: &str) {
    suite::check_answers::<NameDomain, OfNames>(table, names, &answers(right, names), what);
}

/// Holds one batch against its right answers.
fn check_batch(table: &dyn Lookup<NameDomain>, right: &[Match], names: Names<'_>, what: &str) {
    suite::check_batch::<NameDomain, OfNames>(table, names, right, what);
}

/// The right answers for names.
fn answers(right: &dyn Right, names: Names<'_>) -> Vec<Match> {
    names.iter().map(|name| right.right(name)).collect()
}

/// Enough of a name to know it by.
fn short(name: &Name) -> String {
    const SHOWN: usize = 120;
    let shown = name.as_bytes().get(..SHOWN).unwrap_or(name.as_bytes()).escape_ascii();
    let more = if name.len() > SHOWN { "…" } else { "" };
    format!("{shown}{more} ({} bytes)", name.len())
}

/// Holds a table against the names it was made of: every entry, names around them, random names and those
/// given.
pub fn check_all(table: &dyn Lookup<NameDomain>, names: &NameTable, also: &[NameBuf], what: &str) {
    /// Entries of which all that is around is probed.
    const PROBED: usize = 4_000;
    let expected = Expected::of_table(names);
    let entries: Vec<NameBuf> = names.iter().map(|(name, _)| name).collect();
    let every = entries.len().div_ceil(PROBED).max(1);
    let mut batch = probes::around(entries.iter().step_by(every).chain(also));
    probes::scattered(&entries, 200).names().iter().for_each(|name| probes::add(&mut batch, name));
    check(table, &expected, batch.names(), what);
    check_on_all_cores(table, &expected, batch.names(), what);
    if every > 1 {
        let all: NameBatch = entries.iter().map(|name| &**name).collect();
        check_batch(table, &answers(&expected, all.names()), all.names(), what);
    }
}

fn check_on_all_cores(table: &dyn Lookup<NameDomain>, right: &dyn Right, names: Names<'_>, what: &str) {
    /// Bytes of names that are looked up in a run of all rounds.
    const BYTES: u64 = 64 << 20;
    let bytes = BYTES / rounds::tried(1);
    // Long enough for several parts.
    let mut many = NameBatch::new();
    for at in 0..names.len().clamp(5_000, 20_000) {
        probes::add(&mut many, names.name(at % names.len()));
        if many.names().bytes().len() as u64 > bytes {
            break;
        }
    }
    suite::check_on_all_cores::<NameDomain, OfNames>(table, many.names(), &answers(right, names), what);
}

/// What must be true of a table's image beside its answers.
fn check_counts<E: Engine<NameDomain>>(table: &E::Table, names: &NameTable, what: &str) {
    let image = table.image();
    assert_eq!(image.entries(), names.len() as u64, "{what}: entries");
    let most = names.nodes().map(|node| node.result()).max().unwrap_or(0);
    assert!(
        image.results() >= u64::from(most),
        "{what}: results up to {most}, {} is stated",
        image.results()
    );
}

/// Random tables, built whole.
pub fn random_tables<E: Engine<NameDomain>>() {
    let tally = Tally::<E>::new("random_tables");
    // Some are so small that no engine may refuse them.
    for (rounds, size) in [(64, 0..300), (16, 2..12)] {
        run(affordable::<E>(rounds), &tables::random(size), |names| {
            if let Some((_, table)) = tally.build(&names, "a random table") {
                check_all(&table, &names, &[], "a random table");
                check_counts::<E>(&table, &names, "a random table");
            }
        });
    }
    tally.finish();
}

/// So many rounds of a test, or fewer, by the size of the image of no names at all and by what the engine is
/// there for.
fn affordable<E: Engine<NameDomain>>(rounds: u32) -> u32 {
    let (_, table) = E::build(&NameTable::new(), &options()).expect("an empty table is built");
    suite::affordable::<_, E>(rounds, table.image().bytes())
}
