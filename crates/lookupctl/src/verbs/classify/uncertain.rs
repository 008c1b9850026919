//! Uncertain answers, counted.

use wirespeed::engine::RuleTuple;
use wirespeed_classify::RuleSet;
use wirespeed_classify::read::Doubts;

use crate::threads::share_out;

/// Counts the uncertain answers of a pass over tuples, given the rule numbers of the answers.
pub(super) fn count<T: RuleTuple>(
    doubts: &Doubts<T>,
    rules: &RuleSet<T>,
    (tuples, found): (&[T], &[u32]),
    threads: usize,
) -> u64 {
    /// The number of tuples in a part.
    const PART: usize = 1 << 12;
    if doubts.is_empty() {
        return 0;
    }
    let counts = share_out(
        tuples.len().div_ceil(PART),
        threads,
        || 0,
        |count: &mut u64, part| {
            let part = part * PART..tuples.len().min((part + 1) * PART);
            let answers = tuples[part.clone()].iter().zip(&found[part]);
            let is_uncertain =
                |&(tuple, found): &(&T, &u32)| doubts.of_answer(rules, tuple, *found).next().is_some();
            *count += answers.filter(is_uncertain).count() as u64;
        },
    );
    counts.into_iter().sum()
}
