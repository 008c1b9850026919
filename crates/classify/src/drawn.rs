//! Random tuples from the rules of a set: keys to measure lookups with. They depend on a seed only.

use wirespeed_rng::Rng;

use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Tuples, `count` of them, each from a random rule: bits that the rule doesn't look at are random. With
/// `burst` over 1 each tuple comes that many times in a row on average, like the packets of a flow. Without
/// rules the tuples are random.
#[inline(never)] // one copy for all crates
pub fn tuples<T: Tuple>(rules: &RuleSet<T>, count: usize, burst: f64, seed: u64) -> Vec<T> {
    let mut rng = Rng::new(seed);
    let sorted = rules.sorted();
    let mut tuples: Vec<T> = Vec::with_capacity(count);
    while tuples.len() < count {
        let again = tuples.last().filter(|_| burst > 1.0 && rng.chance(1.0 - 1.0 / burst)).copied();
        tuples.push(again.unwrap_or_else(|| {
            let rest = random(&mut rng);
            if sorted.is_empty() {
                return rest;
            }
            let rule = sorted[rng.index(sorted.len())].1;
            let pattern = rule.pattern(rng.index(rule.patterns_len()));
            filled(pattern.value(), pattern.mask(), &rest)
        }));
    }
    tuples
}

/// A random tuple.
pub fn random<T: Tuple>(rng: &mut Rng) -> T {
    let words: Vec<u32> = (0..T::WORDS).map(|_| u32::try_from(rng.bits() >> 32).expect("32 bits")).collect();
    T::from_words(&words)
}

/// The bits of a value under a mask, and the bits of another tuple outside it.
pub(crate) fn filled<T: Tuple>(value: &T, mask: &T, rest: &T) -> T {
    let mut tuple = *rest;
    for (at, word) in tuple.words_mut().iter_mut().enumerate() {
        *word = *word & !mask.words()[at] | value.words()[at] & mask.words()[at];
    }
    tuple
}
