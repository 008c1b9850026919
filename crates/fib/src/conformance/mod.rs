//! The suite that every IP engine passes. An engine joins it in a line of its `tests/conformance.rs`:
//!
//! ```text
//! wirespeed_fib::conformance!(sail_l_v4, wirespeed_fib::V4, wirespeed_sail::SailL);
//! ```
//!
//! The oracle judges hand-picked tables, random tables, random histories of updates (each
//! state of the patched table, and a table built anew from the same Rib), images saved, opened and mapped,
//! live tables under concurrent readers, calls that fail at every step, and full real tables where
//! `../shared/data` has them. In each state every prefix is probed at its first and last address, one before
//! and one after, along with random addresses; single, in batches of odd sizes, and step by step.
//!
//! An engine whose images are of megabytes however few the routes goes through the same tests in fewer
//! rounds, as [`rounds`] says; those that count the routes through all of them.

mod real;
mod refusals;
pub mod tables;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use wirespeed_image::live::Reader;
use wirespeed_image::{Image, ImageError, Table};

pub use real::real_tables;
pub use refusals::{refusals, refusals_at_the_cap};
pub use wirespeed_image::rounds;

use wirespeed_table::{BuildOptions, Engine, Lookup};

use crate::address::Address;
use crate::domain::LiveTable;
use crate::next_hop::NextHop;
use crate::oracle::{self, boundaries};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::synth::rng::Rng;
use crate::update::Update;

/// One test module that holds an engine against the whole suite.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $address:ty, $engine:ty) => {
        mod $module {
            #[test]
            fn hand_picked_tables() {
                $crate::conformance::hand_picked_tables::<$address, $engine>();
            }
            #[test]
            fn random_tables() {
                $crate::conformance::random_tables::<$address, $engine>();
            }
            #[test]
            fn random_updates() {
                $crate::conformance::random_updates::<$address, $engine>();
            }
            #[test]
            fn images() {
                $crate::conformance::images::<$address, $engine>();
            }
            #[test]
            fn live_readers() {
                $crate::conformance::live_readers::<$address, $engine>();
            }
            #[test]
            fn churn() {
                $crate::conformance::churn::<$address, $engine>();
            }
            #[test]
            fn memory_cap() {
                $crate::conformance::memory_cap::<$address, $engine>();
            }
            #[test]
            fn refusals() {
                $crate::conformance::refusals::<$address, $engine>();
            }
            #[test]
            fn refusals_at_the_cap() {
                $crate::conformance::refusals_at_the_cap::<$address, $engine>();
            }
            #[test]
            fn real_tables() {
                $crate::conformance::real_tables::<$address, $engine>();
            }
        }
    };
}

/// The right answers of one table, by an independent method fast enough for a table of millions.
#[derive(Debug)]
pub struct Expected<A>(Vec<(A, NextHop)>);

impl<A: Address> Expected<A> {
    /// The right answers of the routes of a Rib.
    pub fn of(rib: &Rib<A>) -> Self {
        Self(oracle::ranges(rib))
    }

    /// The right answer.
    pub fn lookup(&self, address: A) -> NextHop {
        self.0[self.0.partition_point(|range| range.0 <= address) - 1].1
    }
}

/// Addresses spread over the space, the same in every run.
pub fn scattered<A: Address>(count: usize) -> Vec<A> {
    let mut rng = Rng::new(1);
    (0..count).map(|_| A::from_u128_low(rng.bits128())).collect()
}

/// Holds a table against the right answers at every address given: batch against the oracle, then single and
/// explained lookups against the batch.
pub fn check<A: Address, T: Lookup<A>>(table: &T, expected: &Expected<A>, addresses: &[A], what: &str) {
    // In one batch, and in batches too short for wide vectors, which then go another way.
    let mut found = vec![NextHop(u32::MAX); addresses.len()];
    let mut in_short = found.clone();
    table.lookup_batch(addresses, &mut found);
    for (addresses, found) in addresses.chunks(15).zip(in_short.chunks_mut(15)) {
        table.lookup_batch(addresses, found);
    }
    for (&address, (&found, &in_short)) in addresses.iter().zip(found.iter().zip(&in_short)) {
        let right = expected.lookup(address);
        assert_eq!(found, right, "{what}: {address} in a batch of {}", addresses.len());
        assert_eq!(in_short, right, "{what}: {address} in a batch of 15");
        assert_eq!(table.lookup(address), right, "{what}: {address} alone");
    }
    for &address in addresses.iter().take(200) {
        let steps = table.explain(address);
        let last = steps.last().expect("a lookup reads something");
        let right = expected.lookup(address);
        assert!(
            last.meaning.contains(&format!("next hop {right}"))
                || (!right.is_some() && last.meaning.contains("no route")),
            "{what}: {address} explained as {steps:?}, right is {right}"
        );
    }
    // Sizes around whatever an engine does at a time, and the remainder after it.
    for size in [0, 1, 2, 15, 16, 17, 63, 65, 127] {
        for batch in addresses.chunks(size.max(1)).take(20) {
            let batch = &batch[..size.min(batch.len())];
            let mut found = vec![NextHop(u32::MAX); batch.len()];
            table.lookup_batch(batch, &mut found);
            for (&address, &found) in batch.iter().zip(&found) {
                assert_eq!(
                    found,
                    expected.lookup(address),
                    "{what}: {address} in a batch of {}",
                    batch.len()
                );
            }
        }
    }
}

fn check_all<A: Address, T: Lookup<A>>(table: &T, rib: &Rib<A>, also: &[A], what: &str) {
    let mut addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
    addresses.extend(scattered::<A>(100));
    addresses.extend(also);
    let expected = Expected::of(rib);
    check(table, &expected, &addresses, what);
    // Long enough for several parts.
    let many: Vec<A> = addresses.iter().copied().cycle().take(5_000).collect();
    let mut found = vec![NextHop(u32::MAX); many.len()];
    table.par_lookup_batch(&many, &mut found);
    for (&address, &found) in many.iter().zip(&found).take(2 * addresses.len()) {
        assert_eq!(found, expected.lookup(address), "{what}: {address} on all cores");
    }
}

fn build<A: Address, E: Engine<A>>(rib: &Rib<A>) -> (E, E::Table) {
    E::build(rib, &BuildOptions::default()).expect("a valid table is built")
}

/// So many rounds of a test, or fewer, by the size of the image of no routes at all.
fn affordable<A: Address, E: Engine<A>>(rounds: u32) -> u32 {
    rounds::affordable(rounds, build::<A, E>(&Rib::new()).1.image().bytes())
}

/// The tables of [`tables::hand_picked`].
pub fn hand_picked_tables<A: Address, E: Engine<A>>() {
    let states = affordable::<A, E>(2_000) as usize;
    for (name, rib) in tables::hand_picked::<A>() {
        let (_, table) = build::<A, E>(&rib);
        check_all(&table, &rib, &[], name);
        assert_eq!(table.image().entries(), rib.len() as u64, "{name}");
        // Each table grows from nothing and shrinks to nothing, too.
        let updates: Vec<_> = rib
            .iter()
            .map(|(prefix, n)| Update::Announce { prefix, next_hop: Some(n) })
            .chain(rib.iter().map(|(prefix, _)| Update::Withdraw { prefix }))
            .collect();
        for step in [1, 7, updates.len().max(1)] {
            if updates.len() / step <= states {
                history::<A, E>(Rib::new(), &updates, step, name);
            }
        }
    }
}

/// Random tables, built whole.
pub fn random_tables<A: Address, E: Engine<A>>() {
    run(affordable::<A, E>(64), &tables::random::<A>(0..300), |rib| {
        let (_, table) = build::<A, E>(&rib);
        check_all(&table, &rib, &[], "a random table");
    });
}

/// Random histories: every state of a patched table is right, and so is a table built from the same routes.
pub fn random_updates<A: Address, E: Engine<A>>() {
    let strategy = (tables::random::<A>(0..150), tables::random_updates::<A>(0..120), 1..20usize);
    run(affordable::<A, E>(64), &strategy, |(rib, updates, step)| {
        history::<A, E>(rib, &updates, step, "a random history");
    });
}

/// A table that is kept up to date by patches alone, and built anew only when the engine asks.
struct Patched<A: Address, E: Engine<A>> {
    rib: Rib<A>,
    engine: E,
    table: E::Table,
    rebuilds: usize,
}

impl<A: Address, E: Engine<A>> Patched<A, E> {
    fn new(rib: Rib<A>) -> Self {
        let (engine, table) = build::<A, E>(&rib);
        Self { rib, engine, table, rebuilds: 0 }
    }

    /// Applies updates; the prefixes that changed.
    fn apply(&mut self, updates: &[Update<A>]) -> Vec<Prefix<A>> {
        let changed: Vec<_> = updates.iter().filter(|u| self.rib.apply(u)).map(Update::prefix).collect();
        match self.engine.update(&self.table, &self.rib, &changed) {
            Ok(patch) => self.table.apply(&patch).expect("an engine's patch fits its table"),
            Err(_) => {
                (self.engine, self.table) = build::<A, E>(&self.rib);
                self.rebuilds += 1;
            }
        }
        changed
    }
}

/// Applies updates `step` at a time to a table and holds each state against the oracle.
fn history<A: Address, E: Engine<A>>(rib: Rib<A>, updates: &[Update<A>], step: usize, what: &str) {
    let mut patched = Patched::<A, E>::new(rib);
    for chunk in updates.chunks(step) {
        let changed = patched.apply(chunk);
        let addresses = boundaries(changed.iter().copied());
        check(&patched.table, &Expected::of(&patched.rib), &addresses, what);
        assert_eq!(patched.table.image().entries(), patched.rib.len() as u64, "{what}");
    }
    let Patched { rib, table, .. } = patched;
    check_all(&table, &rib, &[], what);
    let mut image = Vec::new();
    table.image().write(&mut image).expect("a Vec takes what is written");
    let again = Image::from_bytes(&image).and_then(E::Table::from_image).expect("a patched image is valid");
    check_all(&again, &rib, &[], what);
    check_all(&build::<A, E>(&rib).1, &rib, &[], what);
}

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, not followed.
pub fn images<A: Address, E: Engine<A>>() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for (at, (name, rib)) in tables::hand_picked::<A>().into_iter().enumerate() {
        let (_, table) = build::<A, E>(&rib);
        let path = dir.path().join("table.img");
        table.image().save(&path).expect("the image is saved");
        let opened = Image::open(&path).and_then(E::Table::from_image).expect("it is opened");
        check_all(&opened, &rib, &[], name);
        #[allow(unsafe_code)]
        // SAFETY: nobody else knows of the temporary file.
        let mapped = unsafe { Image::map(&path) }.and_then(E::Table::from_image).expect("it is mapped");
        check_all(&mapped, &rib, &[], name);
        if at % 5 == 0 {
            hostile::<A, E>(&rib, &table, name);
        }
    }
    let other = wirespeed_image::ImageBuilder::new("other", 1).build(None).expect("an empty image");
    assert!(matches!(E::Table::from_image(other), Err(ImageError::Kind { .. })));
    let later =
        wirespeed_image::ImageBuilder::new(E::Table::KIND, u32::MAX).build(None).expect("an empty image");
    assert!(matches!(E::Table::from_image(later), Err(ImageError::Layout { .. })));
    let bare = wirespeed_image::ImageBuilder::new(E::Table::KIND, E::Table::LAYOUT).build(None);
    assert!(E::Table::from_image(bare.expect("an empty image")).is_err(), "sections are missing");
}

/// Elements that no engine wrote: an image either refuses them or still answers every lookup with something.
/// Each value is tried in a copy of the image; where these would be too many bytes in all, some values are,
/// the same in every run.
fn hostile<A: Address, E: Engine<A>>(rib: &Rib<A>, table: &E::Table, what: &str) {
    /// Bytes of copies.
    const BUDGET: u64 = 2 << 30;
    let image = table.image();
    let mut addresses = boundaries(rib.iter().take(50).map(|(prefix, _)| prefix));
    addresses.extend(scattered::<A>(64));
    // Elements that lookups read.
    let read: BTreeSet<_> = addresses
        .iter()
        .take(30)
        .flat_map(|&address| table.explain(address))
        .map(|step| (step.section, step.index))
        .collect();
    let read: Vec<_> = read.into_iter().take(40).collect();
    // Of so many values one is tried. Drawn, so that each kind of value and of element has its turn.
    let values = read.len() as u64 * 27;
    let one_in = rounds::tried((values * image.bytes() / BUDGET).clamp(1, (values / 32).max(1)));
    let mut rng = Rng::new(11);
    for (section, index) in read {
        let id = image.find(section).expect("an explained step names its section");
        let bits = 8 * image.width(id).expect("a section found is there");
        let top = u64::MAX >> (64 - bits);
        // Just inside and just outside of small tables, and far outside.
        for value in (0..24).chain([top / 3, top >> 1, top]) {
            if !rng.bits().is_multiple_of(one_in) {
                continue;
            }
            let mut patch = wirespeed_image::PatchBuilder::new();
            patch.set(id, index, value);
            let patch = patch.finish(None);
            let mut raw = image.clone();
            raw.apply(&patch).expect("the element is there");
            let taken = E::Table::from_image(raw);
            // All that `apply` does before it writes; a copy for each value would cost more than the rest of
            // the suite.
            let patched = table.check(&patch);
            assert_eq!(taken.is_ok(), patched.is_ok(), "{what}: {section}[{index}] = {value}");
            if let Ok(taken) = taken {
                let mut found = vec![NextHop::NONE; addresses.len()];
                taken.lookup_batch(&addresses, &mut found);
                assert!(addresses.iter().zip(&found).all(|(&a, &n)| taken.lookup(a) == n), "{what}");
            }
        }
    }
}

/// Readers on other threads see a set of updates whole or not at all, in place and across rebuilds.
pub fn live_readers<A: Address, E: Engine<A>>() {
    // Each update moves all of these to one next hop, so that in every state the answers are alike.
    let routes: Vec<Prefix<A>> = [3, 8, 13, 16, 17, 20, 24, 25, 30, A::BITS]
        .into_iter()
        .zip(1u8..)
        .map(|(len, at)| Prefix::around(A::MAX.with_octet(0, 16 * at), len))
        .collect();
    let at = |next_hop: u32| {
        let next_hop = Some(NextHop(next_hop));
        routes.iter().map(move |&prefix| Update::Announce { prefix, next_hop })
    };
    let mut rib = Rib::new();
    for update in at(1) {
        rib.apply(&update);
    }
    let mut live = LiveTable::<A, E>::new(rib, BuildOptions::default()).expect("a valid table is built");
    let probes: Vec<A> = routes.iter().flat_map(|p| [p.address(), p.last()]).collect();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let reader: Reader<E::Table> = live.reader();
            let (probes, stop) = (&probes, &stop);
            scope.spawn(move || {
                let mut found = vec![NextHop::NONE; probes.len()];
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let table = reader.enter();
                    table.lookup_batch(probes, &mut found);
                    assert!(found[0].is_some() && found.iter().all(|&n| n == found[0]), "mixed: {found:?}");
                    assert!(probes.iter().all(|&a| table.lookup(a) == found[0]), "the state changed");
                    drop(table);
                    // The writer is to have its share of two cores, too.
                    std::thread::yield_now();
                }
            });
        }
        let mut rebuilt = 0;
        let rounds = affordable::<A, E>(600);
        for round in 2..rounds {
            // Now and then a next hop that no narrow entry holds.
            let next_hop = if round % (rounds / 3) == 0 { round << 14 } else { round };
            let updates: Vec<_> = at(next_hop).collect();
            let applied = live.apply(&updates).expect("the table takes the update");
            assert_eq!(applied.changes, routes.len());
            rebuilt += u32::from(applied.rebuilt);
        }
        assert_eq!(u64::from(rebuilt), live.rebuilds());
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    // One route at a time, in turn: what one copy was given, the other was too.
    let reader = live.reader();
    let mut next_hops = [NextHop(1); 10];
    live.apply(&at(1).collect::<Vec<_>>()).expect("the table takes the update");
    for round in 2..40u32 {
        let which = round as usize % routes.len();
        next_hops[which] = NextHop(round);
        let update = Update::Announce { prefix: routes[which], next_hop: Some(NextHop(round)) };
        live.apply([&update]).expect("the table takes the update");
        let found: Vec<_> = routes.iter().map(|p| reader.enter().lookup(p.address())).collect();
        assert_eq!(found, next_hops);
    }
    let withdrawn: Vec<_> = routes.iter().map(|&prefix| Update::Withdraw { prefix }).collect();
    live.apply(&withdrawn).expect("the table takes the update");
    assert!(probes.iter().all(|&a| !live.reader().enter().lookup(a).is_some()));
}

/// A hundred and fifty thousand random updates and then everything withdrawn, and the same again: answers are
/// right on the way, and what the first round took in storage serves the second. A live table that is emptied
/// is that of an empty Rib to the last byte.
pub fn churn<A: Address, E: Engine<A>>() {
    let calls = affordable::<A, E>(150);
    let pool = tables::scattered_routes::<A>(4_000);
    let mut patched = Patched::<A, E>::new(Rib::new());
    for round in 0..2 {
        let (before, mut rng) = (patched.rebuilds, Rng::new(7));
        for call in 1..=calls {
            let update = |_| {
                let prefix = pool[rng.index(pool.len())];
                match rng.index(10) {
                    0..=2 => Update::Withdraw { prefix },
                    _ => Update::Announce { prefix, next_hop: Some(NextHop(1 + (rng.bits() % 40) as u32)) },
                }
            };
            let updates: Vec<_> = (0..1_000).map(update).collect();
            patched.apply(&updates);
            if call % (calls / 5).max(1) == 0 {
                let addresses = boundaries(pool.iter().copied().skip(call as usize % 7).step_by(7));
                check(&patched.table, &Expected::of(&patched.rib), &addresses, "churn");
            }
        }
        let all: Vec<_> = patched.rib.iter().map(|(prefix, _)| Update::Withdraw { prefix }).collect();
        patched.apply(&all);
        check_all(&patched.table, &patched.rib, &boundaries(pool.iter().copied()), "all withdrawn");
        assert!(round == 0 || patched.rebuilds == before, "storage is not reclaimed");
    }

    let mut live =
        LiveTable::<A, E>::new(Rib::new(), BuildOptions::default()).expect("an empty table is built");
    let routes: Rib<A> = pool.iter().map(|&prefix| (prefix, NextHop(9))).collect();
    let announced: Vec<_> =
        routes.iter().map(|(prefix, next_hop)| Update::announce(prefix, next_hop)).collect();
    live.apply(&announced).expect("the table takes the update");
    let withdrawn: Vec<_> = pool.iter().map(|&prefix| Update::Withdraw { prefix }).collect();
    live.apply(&withdrawn).expect("the table takes the update");
    let bytes = |table: &E::Table| {
        let mut bytes = Vec::new();
        table.image().write(&mut bytes).expect("a Vec takes what is written");
        bytes
    };
    assert!(
        bytes(&live.reader().enter()) == bytes(&build::<A, E>(&Rib::new()).1),
        "emptied, and not as if new"
    );
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<A: Address, E: Engine<A>>() {
    for (name, rib) in tables::hand_picked::<A>() {
        let needed = build::<A, E>(&rib).1.image().bytes();
        let cap = |bytes| BuildOptions { memory_cap: Some(bytes), ..BuildOptions::default() };
        assert!(E::build(&rib, &cap(needed)).is_ok(), "{name}");
        assert!(E::build(&rib, &cap(needed - 1)).is_err(), "{name}");
    }
}

fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let done = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = done {
        panic!("{failure}");
    }
}
