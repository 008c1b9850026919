//! Tables that change: every state of a table that is kept up to date by patches alone.

use wirespeed_fib::conformance::run;
use wirespeed_fib::synth::rng::Rng;
use wirespeed_image::{Table, rounds};
use wirespeed_table::{Engine, Lookup, conformance as suite};

use super::{OfNames, Tally, affordable, check, check_all, check_counts, options, probes, tables};
use crate::domain::{LiveNames, NameDomain, NameModel};
use crate::name::NameBuf;
use crate::oracle::Oracle;
use crate::table::NameTable;
use crate::update::NameUpdate;

/// The tables of [`tables::hand_picked`], built whole; each also grows from nothing and shrinks to nothing.
pub fn hand_picked_tables<E: Engine<NameDomain>>() {
    let tally = Tally::<E>::new("hand_picked_tables");
    for (what, names) in tables::hand_picked().into_iter().step_by(suite::table_step::<_, E>()) {
        let Some((_, table)) = tally.build(&names, what) else { continue };
        check_all(&table, &names, &[], what);
        check_counts::<E>(&table, &names, what);
        drop(table);
        let inserts = names.iter().map(|(name, result)| NameUpdate::Insert(name, result));
        let removes = names.iter().map(|(name, _)| NameUpdate::Remove(name));
        let updates: Vec<_> = inserts.chain(removes).collect();
        let steps = [1, 7, 100, updates.len()];
        for step in steps.into_iter().filter(|&step| step > 0 && updates.len() / step <= rounds::fewer(250)) {
            history(&tally, NameTable::new(), &updates, step, what);
        }
    }
    tally.finish();
}

/// Random histories: every state of a patched table is right, and so is a table built from the same names.
pub fn random_updates<E: Engine<NameDomain>>() {
    use proptest::prelude::*;
    let tally = Tally::<E>::new("random_updates");
    let step = prop_oneof![2 => Just(1usize), 6 => 2..20usize, 1 => 20..120usize];
    let strategy = (tables::random_history(0..150, 0..120), step);
    run(affordable::<E>(64), &strategy, |((names, updates), step)| {
        history(&tally, names, &updates, step, "a random history");
    });
    tally.finish();
}

/// A table of names that is kept up to date by patches alone.
pub(super) type Patched<'t, E> = suite::Patched<'t, NameDomain, OfNames, E>;

/// Applies updates `step` at a time to a table and holds each state against the oracle.
fn history<E: Engine<NameDomain>>(
    tally: &Tally<E>,
    names: NameTable,
    updates: &[NameUpdate],
    step: usize,
    what: &str,
) {
    let mut oracle: Oracle = names.iter().collect();
    let Some(mut patched) = Patched::new(tally, names.into(), what) else { return };
    // Of very many at once some are probed after the step, and all at the end.
    let every = 1 + step / 200;
    for updates in updates.chunks(step) {
        for update in updates {
            match update {
                NameUpdate::Insert(name, result) => oracle.0.insert(name.clone(), *result),
                NameUpdate::Remove(name) => oracle.0.remove(name),
            };
        }
        if patched.apply(updates, what).is_none() {
            return;
        }
        let batch = probes::around(updates.iter().step_by(every).map(NameUpdate::name));
        check(&patched.table, &oracle, batch.names(), what);
        check_counts::<E>(&patched.table, patched.model.names(), what);
    }
    patched.check_at_the_end(what);
}

/// Half a million random updates and then everything removed, twice: answers are right on the way, and what
/// the first round took in storage serves the second. A live table that is emptied is that of no names to the
/// last byte.
pub fn churn<E: Engine<NameDomain>>() {
    if !E::STANDING.is_recommended() && rounds::leaves_to_ci() {
        return;
    }
    // Storage settles after all calls only, so fewer rounds leave calls out of the second round alone.
    let all = rounds::stride() * suite::table_step::<_, E>();
    let calls = [500 * u32::try_from(all).expect("small"), 500].map(affordable::<E>);
    // What is wrong with a broken engine shows in few.
    let calls = if rounds::is_broken() { [4; 2] } else { calls };
    let pool = tables::scattered_names(4_000);
    emptied::<E>(&pool);
    let mut rng = Rng::new(7);
    let updates = |_| {
        let update = |_| {
            let name = pool[rng.index(pool.len())].clone();
            match rng.index(10) {
                0..=2 => NameUpdate::Remove(name),
                _ => NameUpdate::Insert(name, 1 + u32::try_from(rng.index(40)).expect("small")),
            }
        };
        (0..1_000).map(update).collect()
    };
    let check = |table: &dyn Lookup<NameDomain>, model: &NameModel, call: u32| {
        let some: Vec<NameBuf> = pool.iter().skip(call as usize % 7).step_by(7).cloned().collect();
        let right = super::Expected::of_table(model.names());
        check(table, &right, probes::around(&some).names(), "churn");
    };
    let check_empty = |table: &dyn Lookup<NameDomain>, model: &NameModel| {
        check_all(table, model.names(), &pool, "all removed");
    };
    let removals = |model: &NameModel| {
        model.names().iter().map(|(name, _)| NameUpdate::Remove(name)).collect::<Vec<_>>()
    };
    let empty = NameTable::new().into();
    suite::churn::<NameDomain, OfNames, E>(empty, calls, updates, check, check_empty, removals);
}

fn emptied<E: Engine<NameDomain>>(pool: &[NameBuf]) {
    let mut live = LiveNames::<E>::new(NameTable::new().into(), options()).expect("no names are held");
    let inserts: Vec<_> = pool.iter().map(|name| NameUpdate::Insert(name.clone(), 9)).collect();
    live.apply(&inserts).expect("the table takes the update");
    let removes: Vec<_> = pool.iter().map(|name| NameUpdate::Remove(name.clone())).collect();
    live.apply(&removes).expect("the table takes the update");
    let bytes = |table: &E::Table| {
        let mut bytes = Vec::new();
        table.image().write(&mut bytes).expect("a Vec takes what is written");
        bytes
    };
    let (_, fresh) = E::build(&NameTable::new(), &options()).expect("no names are held");
    assert!(bytes(&live.reader().enter()) == bytes(&fresh), "emptied, and not as if new");
}
