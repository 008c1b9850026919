//! The suite that every engine of rules passes. An engine joins it in a line of its `tests/conformance`,
//! for each tuple:
//!
//! ```text
//! conformance!(linear_ipv4, Ipv4Tuple, Linear<Ipv4Tuple>);
//! conformance_on_real_sets!(linear_on_real_sets, Linear<Ipv4Tuple>, Linear<OpenFlowTuple>);
//! ```
//!
//! The oracle judges hand-picked sets: empty, one rule that matches all, exact ones only, 1,024 classes, all
//! classes matching, equal priorities, masks with holes, ranges. It judges random sets, and each state of
//! random histories of updates, patched and built anew. Further large classes, images saved, opened, mapped
//! and damaged, and live tables under concurrent readers; rules chosen to do harm, few rules that make much
//! work, and real sets where they are at hand. In each state tuples are made of the rules: some that match,
//! some that miss by a bit, some that are half of one rule and half of another. They are looked up single, in
//! batches of odd sizes, on all cores, and step by step.
//!
//! An engine that ends somewhere may refuse a large set by a typed error; see [`Tally`].

mod history;
mod hostile;
mod live;
pub mod probes;
pub mod real;
mod refusals;
pub mod sets;
pub mod wide;

pub use history::{Patched, churn, random_updates};
pub use hostile::hostile_rules;
pub use live::{live_readers, live_readers_of};
pub use refusals::{refusals, refusals_at_the_cap};
pub use wide::wide_ranges;
pub use wirespeed_table::conformance::options;
pub use wirespeed_table::suite_tests;

use wirespeed_image::{Table, rounds};
use wirespeed_rng::Rng;
use wirespeed_table::{Engine, Lookup, conformance as suite};

use crate::oracle::{Expected, Oracle, Right};
use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// The sets that an engine held, and those that it refused by a typed error.
pub type Tally<T, E> = suite::Tally<T, OfRules, E>;

/// The facts of rules that the shared tests need.
#[derive(Debug)]
pub enum OfRules {}

/// Sets of so many entries are held by every engine.
const SMALL: u64 = 4_096;

impl<T: Tuple> suite::Suite<T> for OfRules {
    const TABLES: &'static str = "sets";
    const DAMAGED: (u64, u64) = (64 << 20, 1_500);
    const UNWRITTEN: u32 = u32::MAX;
    const EXPLAINED: usize = 50;

    type Batch = Vec<T>;

    fn keys(batch: &Vec<T>) -> &[T] {
        batch
    }

    fn key<'k>(keys: T::Keys<'k>, at: usize) -> T::Key<'k> {
        &keys[at]
    }

    fn show(tuple: &T) -> String {
        tuple.to_string()
    }

    fn result(found: u32) -> u32 {
        found
    }

    fn number(result: u32) -> u64 {
        result.into()
    }

    fn hand_picked() -> Vec<(&'static str, RuleSet<T>)> {
        sets::hand_picked()
    }

    fn few() -> RuleSet<T> {
        let mut rng = Rng::new(5);
        sets::World::<T>::new(&mut rng).rules(&mut rng, 60)
    }

    fn around(rules: &RuleSet<T>) -> Vec<T> {
        probes::around(rules, 6)
    }

    /// Copies of what takes a class or more for each rule would cost more than they show.
    fn is_damaged(_: usize, rules: &RuleSet<T>) -> bool {
        rules.len() <= 300
    }

    fn check_all(table: &dyn Lookup<T>, rules: &RuleSet<T>, what: &str) {
        check_all(table, rules, &[], what);
    }

    fn small(rules: &RuleSet<T>) -> Option<String> {
        let entries = rules.entries_len();
        (entries <= SMALL).then(|| format!("a set of {entries} entries"))
    }
}

/// Saved, opened and mapped images answer as the table did; a damaged element is refused, or every lookup
/// still answers.
pub fn images<T: Tuple, E: Engine<T>>() {
    suite::images::<T, OfRules, E>();
}

/// A cap below what the table takes is an error; at what it takes, none.
pub fn memory_cap<T: Tuple, E: Engine<T>>() {
    suite::memory_cap::<T, OfRules, E>();
}

/// One test module that holds an engine against the whole suite, with one tuple.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $tuple:ty, $engine:ty) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;

            use $crate::conformance as suite;

            $crate::conformance::suite_tests! {
                $tuple, $engine;
                hand_picked_sets random_sets wide_ranges random_updates large_sets images live_readers churn
                memory_cap refusals refusals_at_the_cap hostile_rules
            }
        }
    };
}

/// Makes test modules that hold an engine of 5-tuples and 12-tuples against real sets. Sets of 1 K and 10 K
/// rules are tried in each run, those of 100 K on request, as they take minutes.
#[macro_export]
macro_rules! conformance_on_real_sets {
    ($module:ident, $ipv4:ty, $openflow:ty) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn classbench() {
                $crate::conformance::real::real_classbench::<$ipv4>(&["1k", "10k"]);
            }
            #[test]
            #[ignore = "minutes for engines that look at every rule"]
            fn classbench_of_100k() {
                $crate::conformance::real::real_classbench::<$ipv4>(&["100k"]);
            }
            #[test]
            fn openflow() {
                $crate::conformance::real::real_openflow::<$openflow>();
            }
        }
    };
}

/// Holds a table against the right answers for every tuple given.
pub fn check<T: Tuple>(table: &dyn Lookup<T>, right: &dyn Right<T>, tuples: &[T], what: &str) {
    suite::check_answers::<T, OfRules>(table, tuples, &answers(right, tuples), what);
}

/// Holds one batch against its right answers.
fn check_batch<T: Tuple>(table: &dyn Lookup<T>, right: &[u32], tuples: &[T], what: &str) {
    suite::check_batch::<T, OfRules>(table, tuples, right, what);
}

/// The right answers for tuples.
fn answers<T>(right: &dyn Right<T>, tuples: &[T]) -> Vec<u32> {
    tuples.iter().map(|tuple| right.right(tuple)).collect()
}

/// Holds a table against the rules it was made of: tuples around them, random ones and those given.
pub fn check_all<T: Tuple>(table: &dyn Lookup<T>, rules: &RuleSet<T>, also: &[T], what: &str) {
    let mut tuples = probes::around(rules, 600);
    tuples.extend_from_slice(also);
    let expected = Expected::of(rules);
    let right = answers(&expected, &tuples);
    suite::check_answers::<T, OfRules>(table, &tuples, &right, what);
    // Long enough for several parts.
    let many: Vec<T> = tuples.iter().cycle().take(1_500).copied().collect();
    suite::check_on_all_cores::<T, OfRules>(table, &many, &right, what);
    // The fast answers by the slow oracle, of some.
    let oracle = Oracle::of(rules);
    for tuple in tuples.iter().step_by(1 + tuples.len() * rules.len() / 200_000) {
        let (fast, slow) = (expected.right(tuple), oracle.right(tuple));
        assert!(fast == slow, "{what}: {tuple}: the fast oracle says {fast}, the slow one {slow}");
    }
}

/// What must be true of a table's image beside its answers.
fn check_counts<T: Tuple, E: Engine<T>>(table: &E::Table, rules: &RuleSet<T>, what: &str) {
    let image = table.image();
    assert_eq!(image.entries(), rules.len() as u64, "{what}: entries");
    let (most, last) = (rules.iter().map(|(number, _)| number.get()).max().unwrap_or(0), rules.last_number());
    let stated = image.results();
    assert!(
        (most.into()..=last.into()).contains(&stated),
        "{what}: {most} to {last} is right, {stated} stated"
    );
}

/// The sets of [`sets::hand_picked`], built whole; each also grows from nothing and shrinks to nothing.
pub fn hand_picked_sets<T: Tuple, E: Engine<T>>() {
    let tally = Tally::<T, E>::new("hand_picked_sets");
    for (what, rules) in sets::hand_picked::<T>().into_iter().step_by(suite::table_step::<_, E>()) {
        if let Some((_, table)) = tally.build(&rules, what) {
            check_all(&table, &rules, &[], what);
            check_counts::<T, E>(&table, &rules, what);
        }
        history::grown_and_shrunk(&tally, &rules, what);
    }
    tally.finish();
}

/// Random sets, built whole.
pub fn random_sets<T: Tuple, E: Engine<T>>() {
    let tally = Tally::<T, E>::new("random_sets");
    for seed in (0..60).step_by(rounds::stride()) {
        let mut rng = Rng::new(seed);
        let world = sets::World::<T>::new(&mut rng);
        let size = [3, 30, 300][rng.index(3)];
        let rules = world.rules(&mut rng, size);
        let what = format!("random set {seed}");
        if let Some((_, table)) = tally.build(&rules, &what) {
            check_all(&table, &rules, &world.tuples(&mut rng, 200), &what);
            check_counts::<T, E>(&table, &rules, &what);
        }
    }
    tally.finish();
}

/// One class of 128 K rules, 1,024 classes of a few each and of one large, and what the paper has: 16 K rules
/// in 64 classes.
pub fn large_sets<T: Tuple, E: Engine<T>>() {
    if rounds::leaves_to_ci() {
        return;
    }
    let tally = Tally::<T, E>::new("large_sets");
    for (what, rules) in sets::large::<T>().into_iter().step_by(suite::table_step::<_, E>()) {
        let Some((_, table)) = tally.build(&rules, what) else { continue };
        let expected = Expected::of(&rules);
        let tuples = probes::around(&rules, 150);
        let right = answers(&expected, &tuples);
        check_batch(&table, &right, &tuples, what);
        for (tuple, right) in tuples.iter().zip(right).step_by(5) {
            assert!(table.lookup(tuple) == right, "{what}: {tuple} alone, right is {right}");
        }
        check_counts::<T, E>(&table, &rules, what);
    }
    tally.finish();
}
