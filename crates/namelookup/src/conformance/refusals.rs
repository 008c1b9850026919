//! Calls that fail: [what is promised of them](wirespeed_image::live#when-an-update-fails), with failures at
//! every step.
//!
//! An engine in a wrapper is made to fail at chosen operations of a history: a build, an update, several in
//! turn. After every call, Ok or Err, the names are held against an oracle that took the calls that succeeded
//! and no other, and so are readers; plain and aggregated.

use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::live::Reader;
use wirespeed_image::{ImageError, Table, rounds};
use wirespeed_table::conformance::{Failing, fail_at, with_failures};
use wirespeed_table::{BuildError, BuildOptions, Engine, Lookup};

use super::{options, probes, tables};
use crate::domain::NameDomain;
use crate::domain::{LiveNames, NameModel};
use crate::name::NameBuf;
use crate::oracle::Oracle;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// Live names, what they are to be, and who looks on.
struct Watched<E: Engine<NameDomain>> {
    live: LiveNames<E>,
    /// Took what the table took.
    model: Oracle,
    reader: Reader<E::Table>,
}

impl<E: Engine<NameDomain>> Watched<E> {
    fn new(live: LiveNames<E>) -> Self {
        let model = live.model().names().iter().collect();
        let reader = live.reader();
        Self { live, model, reader }
    }

    /// Makes a call, and sees that it happened or not.
    fn call(&mut self, updates: &[NameUpdate], what: &str) -> Result<(), BuildError> {
        let (rebuilds, bound) = (self.live.rebuilds(), self.live.model().names().results());
        let ids: Vec<_> = self.model.0.keys().map(|name| self.live.model().names().find(name)).collect();
        let applied = self.live.apply(updates);
        match &applied {
            Ok(applied) => {
                let changes = updates.iter().filter(|update| take(&mut self.model, update)).count();
                assert_eq!(applied.changes, changes, "{what}");
                assert_eq!(u64::from(applied.rebuilt), self.live.rebuilds() - rebuilds, "{what}");
            }
            Err(_) => {
                assert_eq!(
                    (self.live.rebuilds(), self.live.model().names().results()),
                    (rebuilds, bound),
                    "{what}"
                );
                let now: Vec<_> =
                    self.model.0.keys().map(|name| self.live.model().names().find(name)).collect();
                assert_eq!(now, ids, "{what}: a node that was there is another one");
            }
        }
        self.check(updates, what);
        applied.map(drop)
    }

    /// All that can be seen is as it is to be.
    fn check(&self, updates: &[NameUpdate], what: &str) {
        let names = self.live.model().names();
        let model = &self.model;
        assert_eq!(names.len(), model.0.len(), "{what}");
        assert!(names.iter().all(|(name, result)| model.0.get(&name) == Some(&result)), "{what}: the names");
        assert!(
            names.nodes().all(|node| node.result() != 0 || node.has_children() || node.parent().is_none())
        );
        assert_eq!(names.nodes().count(), names.node_count(), "{what}: nodes that lead nowhere");
        let some = model.0.keys().step_by(1 + model.0.len() / 30);
        let batch = probes::around(some.map(|name| &**name).chain(updates.iter().map(NameUpdate::name)));
        let table = self.reader.enter();
        let mut results = vec![u32::MAX; batch.len()];
        table.lookup_batch(batch.names(), &mut results);
        for (name, result) in batch.names().iter().zip(results) {
            let right = model.lookup(name);
            assert_eq!(result, right.result, "{what}: {name}");
            assert_eq!(names.lookup(name), right, "{what}: {name} in the names themselves");
        }
        assert_eq!(table.image().entries(), self.live.model().compiled().len() as u64, "{what}: entries");
    }
}

/// Makes a change in the oracle; whether it changed anything.
fn take(oracle: &mut Oracle, update: &NameUpdate) -> bool {
    match update {
        NameUpdate::Insert(name, result) => oracle.0.insert(name.clone(), *result) != Some(*result),
        NameUpdate::Remove(name) => oracle.0.remove(name).is_some(),
    }
}

/// Names that have to do with each other, long components and the root among them.
fn pool(rng: &mut Rng) -> Vec<NameBuf> {
    let long = "l".repeat(40);
    let components = ["a", "b", "ab", "com", &long];
    let mut pool: Vec<_> = (0..40)
        .map(|_| {
            let depth = rng.index(5);
            let text: String =
                (0..depth).map(|_| format!("/{}", components[rng.index(components.len())])).collect();
            if depth == 0 { NameBuf::root() } else { tables::name(&text) }
        })
        .collect();
    pool.sort();
    pool.dedup();
    pool
}

/// Some calls: names come, go, come and go in one call, go and come back; once all go.
fn history(pool: &[NameBuf], rng: &mut Rng) -> Vec<Vec<NameUpdate>> {
    let mut calls: Vec<Vec<NameUpdate>> = Vec::new();
    for call in 0..10 {
        let some = (0..1 + rng.index(15)).map(|_| {
            let name = pool[rng.index(pool.len())].clone();
            match rng.index(8) {
                0..=3 => NameUpdate::Remove(name),
                result => NameUpdate::Insert(name, u32::try_from(result).expect("small")),
            }
        });
        calls.push(some.collect());
        if call == 6 {
            calls.push(pool.iter().cloned().map(NameUpdate::Remove).collect());
        }
    }
    calls
}

/// Calls of which some fail, at every operation of a history that can: what failed did not happen, and the
/// rest did.
pub fn refusals<E: Engine<NameDomain>>() {
    let plays = super::affordable::<E>(24).clamp(2, 24);
    for seed in 0..4 {
        let mut rng = Rng::new(u64::from(seed));
        let pool = pool(&mut rng);
        let calls = history(&pool, &mut rng);
        let start: NameTable = pool.iter().filter(|_| rng.index(2) == 0).map(|name| (name, 3)).collect();
        let start = NameModel::new(start, seed % 2 == 1);
        let play = |rng: &mut Rng, what: &str| play::<E>(&start, &calls, rng, what);
        with_failures(&mut rng, seed, (1 + seed / 2, plays), play);
    }
}

/// Makes the calls; those that fail once or twice more.
fn play<E: Engine<NameDomain>>(start: &NameModel, calls: &[Vec<NameUpdate>], rng: &mut Rng, what: &str) {
    let live = LiveNames::<Failing<E>>::new(start.clone(), options());
    let mut table = Watched::new(live.expect("operation 0 doesn't fail"));
    for (at, updates) in calls.iter().enumerate() {
        for again in 0..1 + rng.index(3) {
            let what = format!("{what}, call {at}, time {again}");
            table.call(&[], &what).expect("nothing to do");
            if table.call(updates, &what).is_ok() {
                break;
            }
        }
    }
    // No failure is left over: what there is goes, and not with a build each.
    fail_at([]);
    let names: Vec<_> = table.model.0.keys().cloned().map(NameUpdate::Remove).collect();
    let before = table.live.rebuilds();
    for update in &names {
        table.call(std::slice::from_ref(update), what).expect("a name goes");
    }
    assert!(table.live.rebuilds() - before <= 2, "{what}: {} builds", table.live.rebuilds() - before);
}

/// A table that grows until it is refused by its cap: what it has is there, and can be taken out one by one.
pub fn refusals_at_the_cap<E: Engine<NameDomain>>() {
    if rounds::leaves_to_ci() {
        return;
    }
    const STEP: usize = 200;
    let pool = tables::scattered_names(20_000);
    let table = |names: usize| -> NameTable { pool[..names].iter().map(|name| (name, 7)).collect() };
    let (_, larger) = E::build(&table(8 * STEP), &options()).expect("a small table is built");
    let options = BuildOptions { memory_cap: Some(2 * larger.image().bytes()), ..options() };
    let live = LiveNames::<E>::new(table(4 * STEP).into(), options).expect("there is half as much");
    let mut table = Watched::new(live);
    let refused = pool[4 * STEP..].chunks(STEP).enumerate().find_map(|(call, names)| {
        let updates: Vec<_> = names.iter().map(|name| NameUpdate::Insert(name.clone(), 8)).collect();
        let refused = table.call(&updates, &format!("call {call}")).is_err();
        refused.then_some(updates)
    });
    let updates = refused.expect("ten times the cap is not held");
    for again in 0..2 {
        let what = format!("refused, time {again}");
        table.call(&[], &what).expect("nothing to do");
        assert!(matches!(table.call(&updates, &what), Err(BuildError::Image(ImageError::OverCap { .. }))));
    }
    // One name goes though no other can come, and after that they go without a build each.
    let names: Vec<_> = table.model.0.keys().cloned().map(NameUpdate::Remove).collect();
    table.call(&names[..1], "one name goes").expect("it takes no memory");
    let before = table.live.rebuilds();
    for update in names[1..].iter().take(60) {
        table.call(std::slice::from_ref(update), "a name goes").expect("it takes no memory");
    }
    assert!(table.live.rebuilds() - before <= 3, "{} builds", table.live.rebuilds() - before);
    table.call(&names, "all go").expect("nothing takes no memory");
    table.call(&updates, "what was refused").expect("there is room now");
}
