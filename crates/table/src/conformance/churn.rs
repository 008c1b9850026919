//! Random updates and then everything removed, twice: [`churn`].

use super::patched::Patched;
use super::suite::Suite;
use super::tally::Tally;
use crate::domain::{Domain, Model};
use crate::engine::Engine;
use crate::lookup::Lookup;

/// Makes so many calls in each of two rounds, and takes everything out at the end of each: answers are right
/// on the way, and what the first round took in storage serves the second. `updates` gives the updates of a
/// call, `check` holds a table against its model after it, `check_empty` at the end of a round, `removals`
/// take everything out.
pub fn churn<D: Domain, S: Suite<D>, E: Engine<D>>(
    empty: D::Model,
    calls: [u32; 2],
    mut updates: impl FnMut(u32) -> Vec<D::Update>,
    check: impl Fn(&dyn Lookup<D>, &D::Model, u32),
    check_empty: impl Fn(&dyn Lookup<D>, &D::Model),
    removals: impl Fn(&D::Model) -> Vec<D::Update>,
) {
    let tally = Tally::<D, S, E>::new("churn");
    let mut patched = Patched::new(&tally, empty, "churn").expect("an empty table is built");
    for (round, calls) in calls.into_iter().enumerate() {
        let before = patched.rebuilds;
        for call in 1..=calls {
            if patched.apply(&updates(call), "churn").is_none() {
                return tally.finish();
            }
            if call % (calls / 5).max(1) == 0 {
                check(&patched.table, &patched.model, call);
            }
        }
        if patched.apply(&removals(&patched.model), "churn").is_none() {
            return tally.finish();
        }
        assert!(patched.model.is_empty());
        assert!(
            round == 0 || patched.rebuilds == before,
            "storage is not reclaimed: {} rebuilds more in the second round",
            patched.rebuilds - before
        );
        check_empty(&patched.table, &patched.model);
    }
    tally.finish();
}
