//! Calls that fail: [what is promised of them](wirespeed_image::live#when-an-update-fails), with failures at
//! every step.
//!
//! An engine in a wrapper is made to fail at chosen operations of a history: a build, an update, several in
//! turn. After every call, Ok or Err, the Rib is held against one that took the calls that succeeded and no
//! other, and readers and a follower against its oracle.

use std::fmt;
use std::sync::{Arc, Mutex};

use wirespeed_image::live::{Follower, Reader};
use wirespeed_image::{Image, ImageError, Patch, Table, rounds};
use wirespeed_table::conformance::{self as suite, Failing, with_failures};
use wirespeed_table::{BuildError, BuildOptions, Engine, Lookup};

use super::{Expected, affordable, build, check_counts, tables, withdrawals};
use crate::address::Address;
use crate::domain::LiveTable;
use crate::next_hop::NextHop;
use crate::oracle::boundaries;
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::synth::rng::Rng;
use crate::update::Update;

/// A copy of the table that follows it, and how far it was told that lookups reach.
#[derive(Clone)]
struct Copied<T>(Arc<Mutex<(T, u8)>>);

impl<T> fmt::Debug for Copied<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Copied")
    }
}

impl<T: Table> Follower<T> for Copied<T> {
    fn reach(&mut self, bits: u8) {
        self.0.lock().expect("no panic").1 = bits;
    }

    fn patch(&mut self, patch: &Patch) {
        self.0.lock().expect("no panic").0.apply(patch).expect("it fits the table");
    }

    fn replace(&mut self, table: &T) {
        self.0.lock().expect("no panic").0 = table.clone();
    }
}

/// A live table, what it is to be, and who looks on.
struct Watched<A: Address, E: Engine<A>> {
    live: LiveTable<A, E>,
    /// Took what the table took.
    model: Rib<A>,
    reach: u8,
    reader: Reader<E::Table>,
    copied: Copied<E::Table>,
}

impl<A: Address, E: Engine<A>> Watched<A, E> {
    fn new(mut live: LiveTable<A, E>) -> Self {
        let model = live.model().clone();
        let reader = live.reader();
        let reach = live.reach();
        let copied = Copied(Arc::new(Mutex::new((reader.enter().clone(), reach))));
        live.follow(|_| Ok::<_, ()>(copied.clone())).expect("it follows");
        Self { live, model, reach, reader, copied }
    }

    /// Makes a call that all agree to or not, and sees that it happened or not.
    fn call_if(&mut self, is_agreed: bool, updates: &[Update<A>], what: &str) -> Result<(), BuildError> {
        let before = self.live.rebuilds();
        let applied = match is_agreed {
            true => self.live.apply(updates).map(Some),
            false => self.live.apply_if(updates, || false),
        };
        if let Ok(Some(applied)) = &applied {
            let changes = updates.iter().filter(|update| self.model.apply(update)).count();
            assert_eq!(applied.changes, changes, "{what}");
            assert_eq!(u64::from(applied.rebuilt), self.live.rebuilds() - before, "{what}");
            let announced = updates.iter().filter_map(|update| match update {
                Update::Announce { prefix, .. } => Some(prefix.len()),
                Update::Withdraw { .. } => None,
            });
            self.reach = self.reach.max(announced.max().unwrap_or(0));
        } else {
            assert_eq!(self.live.rebuilds(), before, "{what}");
        }
        self.check(updates, what);
        applied.map(|applied| assert_eq!(applied.is_some(), is_agreed, "{what}"))
    }

    /// All that can be seen is as it is to be.
    fn check(&self, updates: &[Update<A>], what: &str) {
        assert_eq!(self.live.reach(), self.reach, "{what}: the reach");
        let copied = self.copied.0.lock().expect("no panic");
        assert_eq!(copied.1, self.reach, "{what}: what a follower was told of the reach");
        for table in [&*self.reader.enter(), &copied.0] {
            check(table, table.image(), (self.live.model(), &self.model), updates, what);
        }
    }
}

/// A table and its routes are what they are to be.
fn check<A: Address>(
    table: &dyn Lookup<A>,
    image: &Image,
    (rib, model): (&Rib<A>, &Rib<A>),
    updates: &[Update<A>],
    what: &str,
) {
    assert!(rib.iter().eq(model.iter()), "{what}: the routes");
    assert_eq!((rib.len(), rib.by_length()), (model.len(), model.by_length()), "{what}");
    let expected = Expected::of(model);
    let touched = updates.iter().map(Update::prefix);
    let some = model.iter().step_by(1 + model.len() / 40).map(|(prefix, _)| prefix);
    let addresses = boundaries(touched.chain(some));
    let mut found = vec![NextHop(u32::MAX); addresses.len()];
    table.lookup_batch(&addresses, &mut found);
    for (&address, &found) in addresses.iter().zip(&found) {
        assert_eq!(found, expected.lookup(address), "{what}: {address}");
        let right = model.longest_match(address);
        assert_eq!(right.map_or(NextHop::NONE, |(_, next_hop)| next_hop), found);
        assert_eq!(rib.longest_match(address), right, "{what}: {address}");
    }
    check_counts(image, model, &expected, what);
}

impl<A: Address, E: Engine<A>> suite::Watched<A> for Watched<A, E> {
    fn call(&mut self, updates: &[Update<A>], what: &str) -> Result<(), BuildError> {
        self.call_if(true, updates, what)
    }

    /// Not all agree to the call.
    fn call_otherwise(&mut self, updates: &[Update<A>], rng: &mut Rng, what: &str) {
        if rng.index(4) == 0 {
            // It may fail before anybody is asked.
            let _ = self.call_if(false, updates, what);
        }
    }

    fn removals(&self) -> Vec<Update<A>> {
        withdrawals(&self.model)
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

    /// The first call may build what was refused before, and the last one a table of no routes.
    fn is_enough(&self, builds: &[u64]) -> bool {
        builds.iter().skip(1).rev().skip(1).all(|&builds| builds == 0)
    }
}

/// Some calls: routes come, go, come and go in one call, change again and again; of all lengths; once all go.
fn history<A: Address>(rng: &mut Rng) -> Vec<Vec<Update<A>>> {
    let pool: Vec<Prefix<A>> = tables::scattered_routes::<A>(60)
        .into_iter()
        .chain([0, 1, 8, 15, 16, 17, 23, 24, 25, A::BITS - 1, A::BITS].map(|len| Prefix::around(A::MAX, len)))
        .collect();
    let draw = |rng: &mut Rng| {
        let prefix = pool[rng.index(pool.len())];
        match rng.index(10) {
            0..=3 => Update::Withdraw { prefix },
            4 => Update::Announce { prefix, next_hop: None },
            _ => Update::Announce { prefix, next_hop: Some(NextHop(1 + (rng.bits() % 9) as u32)) },
        }
    };
    suite::calls(rng, 12, draw, pool.iter().map(|&prefix| Update::Withdraw { prefix }))
}

/// Calls of which some fail, at every operation of a history that can: what failed did not happen, and the
/// rest did.
pub fn refusals<A: Address, E: Engine<A>>() {
    // Of so many operations one is the first that fails.
    let most = if rounds::is_plain() { 12 } else { 24 };
    let plays = affordable::<A, E>(most).clamp(2, most);
    for seed in 0..if rounds::is_plain() { 1 } else { 2 } {
        let mut rng = Rng::new(u64::from(seed));
        let calls = history::<A>(&mut rng);
        let start: Rib<A> = tables::scattered_routes::<A>(60)
            .into_iter()
            .filter(|_| rng.index(2) == 0)
            .map(|prefix| (prefix, NextHop(3)))
            .collect();
        with_failures(&mut rng, seed, (1 + seed, plays), |rng, what| {
            let live = LiveTable::<A, Failing<E>>::new(start.clone(), BuildOptions::default());
            let mut table = Watched::new(live.expect("operation 0 doesn't fail"));
            suite::play(&mut table, &calls, rng, what);
        });
    }
}

/// A table that grows until it is refused by its cap: what it has is there, and can be taken out one by one.
pub fn refusals_at_the_cap<A: Address, E: Engine<A>>() {
    if rounds::leaves_to_ci() {
        return;
    }
    let mut rng = Rng::new(5);
    let mut route = || (Prefix::host(A::from_u128_low(rng.bits128())), NextHop(1 + (rng.bits() % 90) as u32));
    let start: Rib<A> = (0..200).map(|_| route()).collect();
    let larger: Rib<A> = start.iter().chain((0..200).map(|_| route())).collect();
    let cap = build::<A, E>(&larger).1.image().bytes();
    let options = BuildOptions { memory_cap: Some(cap), ..BuildOptions::default() };
    let live = LiveTable::<A, E>::new(start, options).expect("there is half as much");
    // More and more, as what there is for some hundreds may do for tens of thousands.
    let growth = (0..200).map(|call| {
        let routes = (0..50 << (call / 20)).map(|_| route());
        routes.map(|(prefix, next_hop)| Update::announce(prefix, next_hop)).collect()
    });
    suite::at_the_cap(&mut Watched::new(live), cap, growth);
}
