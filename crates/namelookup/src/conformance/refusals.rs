//! Calls that fail: [what is promised of them](wirespeed_image::live#when-an-update-fails), with failures at
//! every step.
//!
//! An engine in a wrapper is made to fail at chosen operations of a history: a build, an update, several in
//! turn. After every call, Ok or Err, the names are held against an oracle that took the calls that succeeded
//! and no other, and so are readers; plain and aggregated.

use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::live::Reader;
use wirespeed_image::{Image, ImageError, Table, rounds};
use wirespeed_table::conformance::{self as suite, Failing, with_failures};
use wirespeed_table::{BuildError, BuildOptions, Engine, Lookup};

use super::{options, probes, tables};
use crate::domain::{LiveNames, NameDomain, NameModel};
use crate::name::NameBuf;
use crate::oracle::Oracle;
use crate::table::{NameTable, NodeId};
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
}

impl<E: Engine<NameDomain>> suite::Watched<NameDomain> for Watched<E> {
    fn call(&mut self, updates: &[NameUpdate], what: &str) -> Result<(), BuildError> {
        let (rebuilds, bound) = (self.live.rebuilds(), self.live.model().names().results());
        let ids = ids(&self.model, self.live.model());
        let applied = self.live.apply(updates);
        match &applied {
            Ok(applied) => {
                let changes = updates.iter().filter(|update| take(&mut self.model, update)).count();
                assert_eq!(applied.changes, changes, "{what}");
                assert_eq!(u64::from(applied.rebuilt), self.live.rebuilds() - rebuilds, "{what}");
            }
            Err(_) => {
                let now = (self.live.rebuilds(), self.live.model().names().results());
                assert_eq!(now, (rebuilds, bound), "{what}");
                let now = self::ids(&self.model, self.live.model());
                assert_eq!(now, ids, "{what}: a node that was there is another one");
            }
        }
        let table = self.reader.enter();
        check(&*table, table.image(), (self.live.model(), &self.model), updates, what);
        applied.map(drop)
    }

    fn removals(&self) -> Vec<NameUpdate> {
        self.model.0.keys().cloned().map(NameUpdate::Remove).collect()
    }

    fn rebuilds(&self) -> u64 {
        self.live.rebuilds()
    }

    fn bytes(&self) -> u64 {
        self.reader.enter().image().bytes()
    }

    fn is_over_cap(&self, error: &BuildError) -> bool {
        matches!(error, BuildError::Image(ImageError::OverCap { .. }))
    }
}

/// The nodes of the names that there are to be.
fn ids(model: &Oracle, names: &NameModel) -> Vec<Option<NodeId>> {
    model.0.keys().map(|name| names.names().find(name)).collect()
}

/// A table and its names are what they are to be.
fn check(
    table: &dyn Lookup<NameDomain>,
    image: &Image,
    (live, model): (&NameModel, &Oracle),
    updates: &[NameUpdate],
    what: &str,
) {
    let names = live.names();
    assert_eq!(names.len(), model.0.len(), "{what}");
    assert!(names.iter().all(|(name, result)| model.0.get(&name) == Some(&result)), "{what}: the names");
    assert!(names.nodes().all(|node| node.result() != 0 || node.has_children() || node.parent().is_none()));
    assert_eq!(names.nodes().count(), names.node_count(), "{what}: nodes that lead nowhere");
    let some = model.0.keys().step_by(1 + model.0.len() / 30);
    let batch = probes::around(some.map(|name| &**name).chain(updates.iter().map(NameUpdate::name)));
    let mut results = vec![u32::MAX; batch.len()];
    table.lookup_batch(batch.names(), &mut results);
    for (name, result) in batch.names().iter().zip(results) {
        let right = model.lookup(name);
        assert_eq!(result, right.result, "{what}: {name}");
        assert_eq!(names.lookup(name), right, "{what}: {name} in the names themselves");
    }
    assert_eq!(image.entries(), live.compiled().len() as u64, "{what}: entries");
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
    let draw = |rng: &mut Rng| {
        let name = pool[rng.index(pool.len())].clone();
        match rng.index(8) {
            0..=3 => NameUpdate::Remove(name),
            result => NameUpdate::Insert(name, u32::try_from(result).expect("small")),
        }
    };
    suite::calls(rng, 15, draw, pool.iter().cloned().map(NameUpdate::Remove))
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
        with_failures(&mut rng, seed, (1 + seed / 2, plays), |rng, what| {
            let live = LiveNames::<Failing<E>>::new(start.clone(), options());
            let mut table = Watched::new(live.expect("operation 0 doesn't fail"));
            suite::play(&mut table, &calls, rng, what);
        });
    }
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
    let cap = 2 * larger.image().bytes();
    let options = BuildOptions { memory_cap: Some(cap), ..options() };
    let live = LiveNames::<E>::new(table(4 * STEP).into(), options).expect("there is half as much");
    let insert = |name: &NameBuf| NameUpdate::Insert(name.clone(), 8);
    let growth = pool[4 * STEP..].chunks(STEP).map(|names| names.iter().map(insert).collect());
    suite::at_the_cap(&mut Watched::new(live), cap, growth);
}
