//! [`Patterns`]: a rule with ranges, for engines that know only values and masks: a pattern for each
//! combination of the ranges' prefixes.
//!
//! Three wide ranges make fifty thousand patterns, so no rule holds them: the iterator makes them
//! one by one. The last range's prefixes change fastest.

use std::iter::FusedIterator;

use crate::error::RuleError;
use crate::expand::{FieldRange, MOST_PATTERNS};
use crate::pattern::Pattern;
use crate::tuple::{Field, Tuple};

/// The patterns of a rule, one or more; no two match the same tuple. See
/// [`Rule::patterns`](crate::Rule::patterns).
#[derive(Clone, Debug)]
pub struct Patterns<T> {
    /// The pattern of the rule without its ranges.
    base: Pattern<T>,
    /// A digit for each range, the one that changes fastest last.
    digits: Vec<Digit<T>>,
    left: usize,
}

/// The prefixes of a range. The next pattern has one of them.
#[derive(Clone, Debug)]
struct Digit<T> {
    field: Field,
    prefixes: Vec<(u128, u128)>,
    at: usize,
    /// The base with the prefixes of this range and of those before it.
    pattern: Pattern<T>,
}

/// The number of patterns that ranges make, if a rule may have so many.
pub(crate) fn count(ranges: &[FieldRange]) -> Result<u32, RuleError> {
    let found = ranges.iter().map(|range| range.prefixes().count() as u128).fold(1, u128::saturating_mul);
    match u32::try_from(found) {
        Ok(count) if count as usize <= MOST_PATTERNS => Ok(count),
        _ => Err(RuleError::Patterns { found, limit: MOST_PATTERNS }),
    }
}

impl<T: Tuple> Patterns<T> {
    /// The patterns of a pattern with ranges, and their number.
    pub(crate) fn new(base: Pattern<T>, ranges: &[FieldRange], count: usize) -> Self {
        let digit = |range: &FieldRange| Digit {
            field: range.field(),
            prefixes: range.prefixes().collect(),
            at: 0,
            pattern: base,
        };
        let mut patterns = Self { base, digits: ranges.iter().map(digit).collect(), left: count };
        patterns.fill(0);
        patterns
    }

    /// The pattern at an index. Panics if the index is too large.
    pub(crate) fn nth_of(base: &Pattern<T>, ranges: &[FieldRange], nth: usize) -> Pattern<T> {
        let mut left = nth;
        let pattern = ranges.iter().rev().fold(*base, |pattern, range| {
            let count = range.prefixes().count();
            let (value, mask) = range.prefixes().nth(left % count).expect("fewer than there are");
            left /= count;
            pattern.with(&range.field(), value, mask)
        });
        assert_eq!(left, 0, "a pattern that the rule has");
        pattern
    }

    /// Makes the patterns of the digits from one on.
    fn fill(&mut self, from: usize) {
        let mut pattern = if from == 0 { self.base } else { self.digits[from - 1].pattern };
        for digit in &mut self.digits[from..] {
            let (value, mask) = digit.prefixes[digit.at];
            pattern = pattern.with(&digit.field, value, mask);
            digit.pattern = pattern;
        }
    }
}

impl<T: Tuple> Iterator for Patterns<T> {
    type Item = Pattern<T>;

    fn next(&mut self) -> Option<Pattern<T>> {
        self.left = self.left.checked_sub(1)?;
        let pattern = self.digits.last().map_or(self.base, |digit| digit.pattern);
        let mut changed = self.digits.len();
        while changed > 0 {
            changed -= 1;
            let digit = &mut self.digits[changed];
            digit.at = (digit.at + 1) % digit.prefixes.len();
            if digit.at != 0 {
                break;
            }
        }
        self.fill(changed);
        Some(pattern)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Tuple> ExactSizeIterator for Patterns<T> {}
impl<T: Tuple> FusedIterator for Patterns<T> {}

#[cfg(test)]
mod tests {
    use crate::{FieldRange, Ipv4Tuple, Pattern, Rule, Tuple};

    #[test]
    fn each_combination_comes_once_and_in_order() {
        let range = |field, from, to| FieldRange::new(field, from, to).expect("a range");
        let ranges = [
            range(Ipv4Tuple::SPORT, 1, 6), // 1 2-3 4-5 6
            range(Ipv4Tuple::PROTO, 5, 6), // 5 6
            range(Ipv4Tuple::DPORT, 0, 2), // 0-1 2
        ];
        let rule = Rule::with_ranges(Pattern::<Ipv4Tuple>::all(), ranges, 0, 0).expect("16 patterns");
        let all: Vec<_> = rule.patterns().collect();
        assert_eq!((all.len(), rule.patterns().len(), rule.patterns_len()), (16, 16, 16));
        let ports: Vec<_> = all.iter().map(|pattern| pattern.value().field(&Ipv4Tuple::DPORT)).collect();
        assert_eq!(ports[..4], [0, 2, 0, 2]);
        assert_eq!(all[0].value().field(&Ipv4Tuple::SPORT), 1);
        assert_eq!(all[15].value().field(&Ipv4Tuple::SPORT), 6);
        let mut sorted = all.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 16, "each once");
        assert!((0..16).all(|nth| rule.pattern(nth) == all[nth]));
        let mut patterns = rule.patterns();
        assert_eq!((patterns.by_ref().count(), patterns.next(), patterns.len()), (16, None, 0));
    }

    #[test]
    fn a_rule_without_ranges_is_its_pattern() {
        let rule: Rule<Ipv4Tuple> = "src=10.0.0.0/8".parse().expect("a rule");
        assert_eq!(rule.patterns().collect::<Vec<_>>(), [*rule.base()]);
        assert_eq!((rule.patterns_len(), rule.pattern(0)), (1, *rule.base()));
    }
}
