//! The suite that every IP engine passes. An engine joins it in a line of its `tests/conformance`:
//!
//! ```text
//! wirespeed_fib::conformance!(sail_l_v4, wirespeed_fib::V4, wirespeed_sail::SailL);
//! ```
//!
//! The oracle judges hand-picked tables, random tables, and each state of random histories of updates,
//! patched and built anew from the same Rib. It judges images saved, opened and mapped, live tables under
//! concurrent readers, calls that fail at every step, and full real tables where they are at hand. In each
//! state every prefix is probed at its first and last address, one before and one after, along with random
//! addresses; single, in batches of odd sizes, and step by step.
//!
//! An engine whose images are of megabytes however few the routes goes through the same tests in fewer
//! rounds, as [`rounds`] says; those that count the routes through all of them.

mod real;
mod refusals;
mod speeds;
pub mod tables;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use wirespeed_image::{Image, Table};
use wirespeed_table::conformance as suite;

pub use real::real_tables;
pub use refusals::{refusals, refusals_at_the_cap};
pub use speeds::compare_levels;
pub use wirespeed_image::rounds;
pub use wirespeed_table::suite_tests;

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
            use $crate::conformance as suite;

            $crate::conformance::suite_tests! {
                $address, $engine;
                hand_picked_tables random_tables random_updates images live_readers churn memory_cap
                refusals refusals_at_the_cap real_tables
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

    /// The largest right answer. A route that longer ones hide whole is no answer.
    fn most(&self) -> NextHop {
        self.0.iter().map(|&(_, next_hop)| next_hop).max().unwrap_or_default()
    }
}

/// Addresses spread over the space, the same in every run.
pub fn scattered<A: Address>(count: usize) -> Vec<A> {
    let mut rng = Rng::new(1);
    (0..count).map(|_| A::from_u128_low(rng.bits128())).collect()
}

/// Holds a table against the right answers at every address given.
pub fn check<A: Address>(table: &dyn Lookup<A>, expected: &Expected<A>, addresses: &[A], what: &str) {
    let right: Vec<_> = addresses.iter().map(|&address| expected.lookup(address)).collect();
    suite::check_answers::<A, OfRoutes>(table, addresses, &right, what);
}

fn check_all<A: Address>(table: &dyn Lookup<A>, rib: &Rib<A>, also: &[A], what: &str) {
    let mut addresses = boundaries(rib.iter().map(|(prefix, _)| prefix));
    addresses.extend(scattered::<A>(100));
    addresses.extend(also);
    let expected = Expected::of(rib);
    let right: Vec<_> = addresses.iter().map(|&address| expected.lookup(address)).collect();
    suite::check_answers::<A, OfRoutes>(table, &addresses, &right, what);
    // Long enough for several parts.
    let many: Vec<A> = addresses.iter().copied().cycle().take(5_000).collect();
    suite::check_on_all_cores::<A, OfRoutes>(table, &many, &right, what);
}

/// What must be true of a table's image beside its answers.
fn check_counts<A: Address>(image: &Image, rib: &Rib<A>, expected: &Expected<A>, what: &str) {
    assert_eq!(image.entries(), rib.len() as u64, "{what}: entries");
    let (most, stated) = (u64::from(expected.most().0), image.results());
    assert!(stated >= most, "{what}: next hops up to {most}, {stated} is stated");
}

fn build<A: Address, E: Engine<A>>(rib: &Rib<A>) -> (E, E::Table) {
    E::build(rib, &BuildOptions::default()).expect("a valid table is built")
}

/// So many rounds of a test, or fewer, by the size of the image of no routes at all and by what the engine is
/// there for.
fn affordable<A: Address, E: Engine<A>>(rounds: u32) -> u32 {
    suite::affordable::<_, E>(rounds, build::<A, E>(&Rib::new()).1.image().bytes())
}

/// The tables of [`tables::hand_picked`].
pub fn hand_picked_tables<A: Address, E: Engine<A>>() {
    let states = affordable::<A, E>(if rounds::is_plain() { 500 } else { 1_500 }) as usize;
    for (name, rib) in tables::hand_picked::<A>().into_iter().step_by(suite::table_step::<_, E>()) {
        let (_, table) = build::<A, E>(&rib);
        check_all(&table, &rib, &[], name);
        check_counts(table.image(), &rib, &Expected::of(&rib), name);
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
        check_counts(table.image(), &rib, &Expected::of(&rib), "a random table");
    });
}

/// Random histories: every state of a patched table is right, and so is a table built from the same routes.
pub fn random_updates<A: Address, E: Engine<A>>() {
    // Each state is checked, so a plain run has fewer.
    let most = if rounds::is_plain() { 40 } else { 120 };
    let strategy = (tables::random::<A>(0..150), tables::random_updates::<A>(0..most), 1..20usize);
    run(affordable::<A, E>(64), &strategy, |(rib, updates, step)| {
        history::<A, E>(rib, &updates, step, "a random history");
    });
}

/// A table of routes that is kept up to date by patches alone.
type Patched<'t, A, E> = suite::Patched<'t, A, OfRoutes, E>;

/// Applies updates `step` at a time to a table and holds each state against the oracle.
fn history<A: Address, E: Engine<A>>(rib: Rib<A>, updates: &[Update<A>], step: usize, what: &str) {
    let tally = Tally::<A, E>::new("history");
    let mut patched = Patched::new(&tally, rib, what).expect("a valid table is built");
    for chunk in updates.chunks(step) {
        let changed = patched.apply(chunk, what).expect("a valid table is built");
        let (addresses, expected) = (boundaries(changed), Expected::of(&patched.model));
        check(&patched.table, &expected, &addresses, what);
        check_counts(patched.table.image(), &patched.model, &expected, what);
    }
    patched.check_at_the_end(what);
}

/// Counts the tables of one test, all of which every engine holds.
type Tally<A, E> = suite::Tally<A, OfRoutes, E>;

/// The facts of routes that the shared tests need.
#[derive(Debug)]
pub enum OfRoutes {}

impl<A: Address> suite::Suite<A> for OfRoutes {
    const TABLES: &'static str = "tables";
    const DAMAGED: (u64, u64) = (1 << 30, 1_500);
    const IS_EXACT: bool = true;
    const WIDTHS_VARY: bool = true;
    const SHAPES_VARY: bool = true;
    const UNWRITTEN: NextHop = NextHop(u32::MAX);
    const SAYS: (&str, &str) = ("next hop ", "no route");

    type Batch = Vec<A>;

    fn keys(batch: &Vec<A>) -> &[A] {
        batch
    }

    fn key<'k>(keys: A::Keys<'k>, at: usize) -> A::Key<'k> {
        keys[at]
    }

    fn show(address: A) -> String {
        address.to_string()
    }

    fn result(found: NextHop) -> NextHop {
        found
    }

    fn number(result: NextHop) -> u64 {
        result.0.into()
    }

    fn hand_picked() -> Vec<(&'static str, Rib<A>)> {
        tables::hand_picked()
    }

    fn few() -> Rib<A> {
        tables::scattered_routes::<A>(60).into_iter().zip((1..).map(NextHop)).collect()
    }

    fn around(rib: &Rib<A>) -> Vec<A> {
        let mut addresses = boundaries(rib.iter().take(50).map(|(prefix, _)| prefix));
        addresses.extend(scattered::<A>(64));
        addresses
    }

    fn is_damaged(at: usize, _: &Rib<A>) -> bool {
        at.is_multiple_of(5)
    }

    fn check_all(table: &dyn Lookup<A>, rib: &Rib<A>, what: &str) {
        check_all(table, rib, &[], what);
    }

    fn small(rib: &Rib<A>) -> Option<String> {
        Some(format!("a table of {} routes", rib.len()))
    }

    fn options() -> BuildOptions {
        BuildOptions::default()
    }
}

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<A: Address, E: Engine<A>>() {
    suite::images::<A, OfRoutes, E>();
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<A: Address, E: Engine<A>>() {
    suite::memory_cap::<A, OfRoutes, E>();
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
    let rounds = affordable::<A, E>(600);
    let updates = (2..rounds).map(|round| {
        // Now and then a next hop that no narrow entry holds.
        let next_hop = if round % (rounds / 3) == 0 { round << 14 } else { round };
        (routes.len(), at(next_hop).collect())
    });
    let is_whole = |found: &[NextHop]| found[0].is_some() && found.iter().all(|&n| n == found[0]);
    suite::beside_readers::<A, OfRoutes, E>(&mut live, &probes, is_whole, updates);
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
    let mut rng = Rng::new(7);
    let updates = |call: u32| {
        if call == 1 {
            // Both rounds make the same updates.
            rng = Rng::new(7);
        }
        let update = |_| {
            let prefix = pool[rng.index(pool.len())];
            match rng.index(10) {
                0..=2 => Update::Withdraw { prefix },
                _ => Update::Announce { prefix, next_hop: Some(NextHop(1 + (rng.bits() % 40) as u32)) },
            }
        };
        (0..1_000).map(update).collect()
    };
    let check = |table: &dyn Lookup<A>, rib: &Rib<A>, call: u32| {
        let addresses = boundaries(pool.iter().copied().skip(call as usize % 7).step_by(7));
        check(table, &Expected::of(rib), &addresses, "churn");
    };
    let check_empty = |table: &dyn Lookup<A>, rib: &Rib<A>| {
        check_all(table, rib, &boundaries(pool.iter().copied()), "all withdrawn");
    };
    let calls = [calls; 2];
    suite::churn::<A, OfRoutes, E>(Rib::new(), calls, updates, check, check_empty, withdrawals);

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

/// The updates that take all routes out.
fn withdrawals<A: Address>(rib: &Rib<A>) -> Vec<Update<A>> {
    rib.iter().map(|(prefix, _)| Update::Withdraw { prefix }).collect()
}

/// Runs a test on so many values.
pub fn run<S: Strategy>(cases: u32, strategy: &S, test: impl Fn(S::Value)) {
    let usual = Config::default();
    // A failure is to be known soon rather than in its smallest form.
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: if rounds::is_long() { 60 } else { 6 },
        // Whether a fault is seen is no matter of luck.
        rng_seed: if rounds::is_broken() { RngSeed::Fixed(1) } else { usual.rng_seed },
        ..usual
    };
    let done = TestRunner::new(config).run(strategy, |value| {
        test(value);
        Ok(())
    });
    if let Err(failure) = done {
        panic!("{failure}");
    }
}
