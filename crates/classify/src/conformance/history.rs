//! Sets that change: every state of a table that is kept up to date by patches alone.

use wirespeed_image::{Table, rounds};
use wirespeed_rng::Rng;
use wirespeed_table::{Engine, Lookup, conformance as suite};

use super::{OfRules, Tally, check, check_all, check_counts, options, probes, sets};
use crate::domain::LiveRules;
use crate::oracle::{Expected, Oracle};
use crate::rules::RuleSet;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// A table of rules that is kept up to date by patches alone.
pub type Patched<'t, T, E> = suite::Patched<'t, T, OfRules, E>;

/// Applies updates `step` at a time to a table and holds each state against the oracle.
fn history<T: Tuple, E: Engine<T>>(
    tally: &Tally<T, E>,
    rules: RuleSet<T>,
    updates: &[RuleUpdate<T>],
    step: usize,
    what: &str,
) {
    let Some(mut patched) = Patched::new(tally, rules, what) else { return };
    for updates in updates.chunks(step) {
        // What went is to be missed, what came to be found.
        let mut tuples = touched(&patched.model, updates);
        if patched.apply(updates, what).is_none() {
            return;
        }
        tuples.extend(touched(&patched.model, updates));
        tuples.extend(probes::around(&patched.model, 12));
        match patched.model.len() {
            ..=400 => check(&patched.table, &Oracle::of(&patched.model), &tuples, what),
            _ => check(&patched.table, &Expected::of(&patched.model), &tuples, what),
        }
        check_counts::<T, E>(&patched.table, &patched.model, what);
    }
    patched.check_at_the_end(what);
}

/// Tuples around the rules that updates are about, as these are before or after them.
fn touched<T: Tuple>(rules: &RuleSet<T>, updates: &[RuleUpdate<T>]) -> Vec<T> {
    let mut some = RuleSet::new();
    for update in updates.iter().step_by(1 + updates.len() / 40) {
        let rule = match update {
            RuleUpdate::Insert(rule) => Some(rule),
            RuleUpdate::Set(number, _) | RuleUpdate::Remove(number) => rules.rule(*number),
        };
        if let Some(rule) = rule {
            some.insert(rule.clone()).expect("a number");
        }
    }
    probes::around(&some, 40)
}

/// A set from nothing, in random order, and to nothing, in another.
pub(super) fn grown_and_shrunk<T: Tuple, E: Engine<T>>(tally: &Tally<T, E>, rules: &RuleSet<T>, what: &str) {
    let mut rng = Rng::new(21);
    let mut sets: Vec<_> = rules
        .sorted()
        .into_iter()
        .map(|(number, rule)| RuleUpdate::Set(number.get(), rule.clone()))
        .collect();
    let mut removes: Vec<_> = rules.iter().map(|(number, _)| RuleUpdate::Remove(number.get())).collect();
    removes.sort_unstable_by_key(|update| match update {
        RuleUpdate::Remove(number) => *number,
        _ => 0,
    });
    rng.shuffle(&mut sets);
    rng.shuffle(&mut removes);
    let updates: Vec<_> = sets.into_iter().chain(removes).collect();
    for step in [1, 7, 100, updates.len()] {
        if step > 0 && updates.len() / step <= rounds::fewer(130) {
            history(tally, RuleSet::new(), &updates, step, what);
        }
    }
}

/// Random histories: every state of a patched table is right, and so is a table built from the same rules.
pub fn random_updates<T: Tuple, E: Engine<T>>() {
    let tally = Tally::<T, E>::new("random_updates");
    for seed in (100..150).step_by(rounds::stride() * suite::table_step::<_, E>()) {
        let mut rng = Rng::new(seed);
        let world = sets::World::<T>::new(&mut rng);
        let count = rng.index(150);
        let rules = world.rules(&mut rng, count);
        let step = [1, 1 + rng.index(20), 20 + rng.index(100)][rng.index(3)];
        let mut most = u64::from(rules.last_number()) + 1;
        let updates: Vec<_> = (0..120)
            .map(|_| {
                let number = u32::try_from(1 + rng.below(most)).expect("small");
                match rng.index(10) {
                    0..3 => {
                        most += 1;
                        RuleUpdate::Insert(world.rule(&mut rng))
                    }
                    3..6 => RuleUpdate::Set(number, world.rule(&mut rng)),
                    _ => RuleUpdate::Remove(number),
                }
            })
            .collect();
        history(&tally, rules, &updates, step, &format!("random history {seed}"));
    }
    tally.finish();
}

/// A hundred thousand random updates and then everything removed, twice: answers are right on the way, and
/// what the first round took in storage serves the second. A live table that is emptied is as large as one of
/// no rules.
pub fn churn<T: Tuple, E: Engine<T>>() {
    /// Numbers that rules come and go under.
    const NUMBERS: u64 = 3_000;
    const CALLS: u32 = 100;
    emptied::<T, E>();
    let mut rng = Rng::new(7);
    let pool = sets::classes::<T>(&mut rng, 40, 8_000);
    let updates = |_| {
        let update = |_| {
            let number = u32::try_from(1 + rng.below(NUMBERS)).expect("small");
            let rule = pool.rule(u32::try_from(1 + rng.index(pool.len())).expect("small"));
            match rng.index(10) {
                0..=2 => RuleUpdate::Remove(number),
                _ => RuleUpdate::Set(number, rule.expect("they are numbered").clone()),
            }
        };
        (0..1_000).map(update).collect()
    };
    let check = |table: &dyn Lookup<T>, rules: &RuleSet<T>, _: u32| {
        check(table, &Expected::of(rules), &probes::around(rules, 100), "churn");
    };
    let check_empty = |table: &dyn Lookup<T>, rules: &RuleSet<T>| {
        check_all(table, rules, &probes::around(&pool, 100), "all removed");
    };
    let removals = |rules: &RuleSet<T>| {
        rules.sorted().into_iter().map(|(number, _)| RuleUpdate::Remove(number.get())).collect::<Vec<_>>()
    };
    suite::churn::<T, OfRules, E>(RuleSet::new(), [CALLS; 2], updates, check, check_empty, removals);
}

fn emptied<T: Tuple, E: Engine<T>>() {
    let mut rng = Rng::new(8);
    let pool = sets::classes::<T>(&mut rng, 20, 1_000);
    let mut live = LiveRules::<T, E>::new(RuleSet::new(), options()).expect("no rules are held");
    let inserts: Vec<_> = pool.iter().map(|(_, rule)| RuleUpdate::Insert(rule.clone())).collect();
    live.apply(&inserts).expect("the table takes the update");
    assert_eq!(live.model().len(), pool.len());
    let removes: Vec<_> = (1..=1_000).map(RuleUpdate::Remove).collect();
    live.apply(&removes).expect("the table takes the update");
    let (_, fresh) = E::build(&RuleSet::new(), &options()).expect("no rules are held");
    let bytes = live.reader().enter().image().bytes();
    assert!(bytes <= 2 * fresh.image().bytes(), "emptied, and of {bytes} bytes");
}
