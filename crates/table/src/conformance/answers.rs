//! A table's answers, held against the right ones: in batches of all sizes, with all vectors of the CPU and
//! without them, on all cores, singly and step by step.
//!
//! Nothing here is generic over the engine, so it is compiled once for each domain.

use std::ops::Range;

use super::suite::Suite;
use crate::domain::{Domain, Keys};
use crate::lookup::Lookup;
use crate::vector::VectorLevel;

/// Holds a table against the right answer of each key: in one batch with each vector level, in batches too
/// short for whatever an engine does at a time, singly, and explained.
pub fn check_answers<D: Domain, S: Suite<D>>(
    table: &dyn Lookup<D>,
    keys: D::Keys<'_>,
    right: &[D::Found],
    what: &str,
) {
    let check = |part: Range<usize>| check_batch::<D, S>(table, keys.part(part.clone()), &right[part], what);
    let parts =
        |size: usize| (0..keys.len()).step_by(size.max(1)).map(move |from| from..keys.len().min(from + size));
    check(0..keys.len());
    for level in VectorLevel::ALL.into_iter().filter(|&level| level != VectorLevel::best()) {
        let what = format!("{what}, with {level:?} the fastest level");
        level.as_fastest(|| check_batch::<D, S>(table, keys, right, &what));
    }
    for &size in S::SHORT {
        parts(size).for_each(check);
    }
    for (at, &right) in right.iter().enumerate() {
        let (key, found) = (S::key(keys, at), table.lookup(S::key(keys, at)));
        assert!(found == right, "{what}: {} alone: {found:?}, right is {right:?}", S::show(key));
    }
    for (at, &right) in right.iter().enumerate().step_by(1 + keys.len() / S::EXPLAINED) {
        check_explained::<D, S>(table, S::key(keys, at), right, what);
    }
    // Sizes around whatever an engine does at a time, and the remainder after it.
    for size in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127] {
        parts(size).take(20).for_each(check);
    }
}

/// Holds one batch against its right answers, where there is more to find than results with that, too.
pub fn check_batch<D: Domain, S: Suite<D>>(
    table: &dyn Lookup<D>,
    keys: D::Keys<'_>,
    right: &[D::Found],
    what: &str,
) {
    let mut results = vec![S::result(S::UNWRITTEN); keys.len()];
    table.lookup_batch(keys, &mut results);
    let mut all = right.to_vec();
    if S::FINDS_MORE {
        all.fill(S::UNWRITTEN);
        table.match_batch(keys, &mut all);
    }
    for (at, ((&result, &found), &right)) in results.iter().zip(&all).zip(right).enumerate() {
        assert!(
            result == S::result(right) && found == right,
            "{what}: {} as number {at} in a batch of {}: {result:?} and {found:?}, right is {right:?}",
            S::show(S::key(keys, at)),
            keys.len()
        );
    }
}

/// Holds a long batch, which all cores share, against right answers. `right` has those of the first keys, and
/// the keys go round.
pub fn check_on_all_cores<D: Domain, S: Suite<D>>(
    table: &dyn Lookup<D>,
    keys: D::Keys<'_>,
    right: &[D::Found],
    what: &str,
) {
    let mut results = vec![S::result(S::UNWRITTEN); keys.len()];
    table.par_lookup_batch(keys, &mut results);
    for (at, (&found, &right)) in results.iter().zip(right.iter().cycle()).enumerate() {
        let right = S::result(right);
        assert!(
            found == right,
            "{what}: {} on all cores: {found:?}, right is {right:?}",
            S::show(S::key(keys, at))
        );
    }
}

fn check_explained<D: Domain, S: Suite<D>>(
    table: &dyn Lookup<D>,
    key: D::Key<'_>,
    right: D::Found,
    what: &str,
) {
    let steps = table.explain(key);
    let last = steps.last().expect("a lookup reads something");
    assert!(
        S::is_said(&last.meaning, S::result(right)),
        "{what}: {} explained as {steps:?}, right is {right:?}",
        S::show(key)
    );
}
