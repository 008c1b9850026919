//! Rules chosen to do harm: alike in all but a bit or a word, words in another order, pairs that cancel,
//! arithmetic progressions; all that collides in a hash that is weak and can be had without the seed. Answers
//! stay right, images stay in proportion, and building and patching take no longer than for random rules, or
//! little.

use std::time::{Duration, Instant};

use wirespeed_image::Table;
use wirespeed_rng::Rng;
use wirespeed_table::Engine;
use wirespeed_table::conformance::table_step;

use super::history::Patched;
use super::probes::random;
use super::{Tally, check_all, check_counts};
use crate::pattern::Pattern;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Sets of hostile rules, built and patched together.
pub fn hostile_rules<T: Tuple, E: Engine<T>>() {
    /// What is quadratic would take hours.
    const SOON: Duration = Duration::from_secs(30);
    let tally = Tally::<T, E>::new("hostile_rules");
    for (what, values) in hostile_values::<T>().into_iter().step_by(table_step::<_, E>()) {
        let rules: RuleSet<T> = values.iter().map(|&value| Rule::new(Pattern::exact(value), 1, 0)).collect();
        let start = Instant::now();
        let Some((_, table)) = tally.build(&rules, what) else { continue };
        patched_together(&tally, &rules, what);
        assert!(start.elapsed() < SOON, "{what}: building and patching take {:?}", start.elapsed());
        check_all(&table, &rules, &[], what);
        check_counts::<T, E>(&table, &rules, what);
        in_proportion(&tally, &table, &rules, what);
    }
    tally.finish();
}

/// Values of whole tuples, each once.
fn hostile_values<T: Tuple>() -> Vec<(&'static str, Vec<T>)> {
    const COUNT: u32 = 5_000;
    let mut rng = Rng::new(41);
    let base: T = random(&mut rng);
    let words = |make: &mut dyn FnMut(u32) -> Vec<u32>| {
        let mut values: Vec<T> = (0..COUNT).map(|n| T::from_words(&make(n))).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let with = |changes: &[(usize, u32)]| {
        let mut words = base.words().to_vec();
        changes.iter().for_each(|&(word, bits)| words[word] ^= bits);
        words
    };
    vec![
        (
            "few bits set",
            words(&mut |n| {
                let mut words = vec![0; T::WORDS];
                for k in 0..3 {
                    let bit = (n >> (4 * k)) as usize * 7 % (T::WORDS * 32);
                    words[bit / 32] |= 1 << (bit % 32);
                }
                words
            }),
        ),
        ("one word counts", words(&mut |n| with(&[(0, n)]))),
        ("one word counts in its high half", words(&mut |n| with(&[(1, n << 16)]))),
        ("multiples of a power of two", words(&mut |n| with(&[(0, n.rotate_left(19)), (1, n << 24)]))),
        ("two words that cancel in an exclusive or", words(&mut |n| with(&[(0, n), (1, n)]))),
        ("two words that cancel in a sum", {
            words(&mut |n| {
                let mut words = base.words().to_vec();
                (words[0], words[1]) = (words[0].wrapping_add(n), words[1].wrapping_sub(n));
                words
            })
        }),
        ("two words changed about", {
            words(&mut |n| {
                let mut words = with(&[(0, n / 2), (1, n / 2)]);
                if n % 2 == 1 {
                    words.swap(0, 1);
                }
                words
            })
        }),
    ]
}

/// An image of hostile rules takes at most so many times that of as many random ones.
fn in_proportion<T: Tuple, E: Engine<T>>(
    tally: &Tally<T, E>,
    table: &E::Table,
    rules: &RuleSet<T>,
    what: &str,
) {
    const TIMES: u64 = 3;
    let mut rng = Rng::new(9);
    let others: RuleSet<T> =
        (0..rules.len()).map(|_| Rule::new(Pattern::exact(random(&mut rng)), 1, 0)).collect();
    let Some((_, ordinary)) = tally.build(&others, "random rules") else { return };
    let (bytes, ordinary) = (table.image().bytes(), ordinary.image().bytes());
    assert!(bytes <= TIMES * ordinary, "{what}: {bytes} bytes, {ordinary} for random rules");
}

/// All rules one after the other from nothing, some at a time, then every other one out.
fn patched_together<T: Tuple, E: Engine<T>>(tally: &Tally<T, E>, rules: &RuleSet<T>, what: &str) {
    let Some(mut patched) = Patched::new(tally, RuleSet::new(), what) else { return };
    let sets: Vec<_> = rules
        .sorted()
        .into_iter()
        .map(|(number, rule)| RuleUpdate::Set(number.get(), rule.clone()))
        .collect();
    let removes: Vec<_> = (1..=rules.last_number()).step_by(2).map(RuleUpdate::Remove).collect();
    for updates in sets.chunks(200).chain(removes.chunks(1_000)) {
        if patched.apply(updates, what).is_none() {
            return;
        }
        check_counts::<T, E>(&patched.table, &patched.model, what);
    }
    check_all(&patched.table, &patched.model, &[], what);
}
