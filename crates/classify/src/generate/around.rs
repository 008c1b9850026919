//! Tuples from rules: at their edges, beside them, and between two of them.

use wirespeed_rng::Rng;

use super::{filled, random};
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Tuples around at most `most` rules, spread evenly over all rules, and some random tuples; the same in
/// every run.
pub fn around<T: Tuple>(rules: &RuleSet<T>, most: usize) -> Vec<T> {
    let mut rng = Rng::new(17);
    let sorted = rules.sorted();
    let every = sorted.len().div_ceil(most).max(1);
    let mut tuples = vec![T::default(), T::USED];
    tuples.extend((0..20).map(|_| random::<T>(&mut rng)));
    for (_, rule) in sorted.iter().step_by(every) {
        let other = sorted[rng.index(sorted.len())].1;
        add(&mut tuples, rule, other, &mut rng);
    }
    tuples
}

/// Tuples around one rule.
fn add<T: Tuple>(tuples: &mut Vec<T>, rule: &Rule<T>, other: &Rule<T>, rng: &mut Rng) {
    let pattern = rule.pattern(rng.index(rule.patterns_len()));
    let filled = |rest: &T| filled(pattern.value(), pattern.mask(), rest);
    let within = filled(&random(rng));
    tuples.push(filled(&T::default()));
    tuples.push(filled(&T::USED));
    tuples.push(within);
    tuples.push(flipped(within, rng));
    tuples.push(flipped(within, rng));
    // The fields of another rule where this rule has no condition.
    let others = other.pattern(0);
    tuples.push(filled(&super::filled(others.value(), others.mask(), &random(rng))));
    for range in rule.ranges() {
        let field = range.field();
        let edges = [
            range.from(),
            range.to(),
            range.from().wrapping_sub(1) & field.all(),
            (range.to() + 1) & field.all(),
        ];
        tuples.extend(edges.map(|edge| within.with(&field, edge)));
    }
}

/// A tuple with one random bit flipped.
pub fn flipped<T: Tuple>(tuple: T, rng: &mut Rng) -> T {
    let field = &T::FIELDS[rng.index(T::FIELDS.len())];
    tuple.with(field, tuple.field(field) ^ 1 << rng.below(field.width.into()))
}
