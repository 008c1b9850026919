//! Lookups so simple that they are right: every rule is looked at, and the best that matches is the answer.

use std::collections::HashMap;

use crate::rank::Rank;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Where right answers come from.
pub trait Right<T> {
    /// The number of the best rule that matches; 0 where none does.
    fn right(&self, tuple: &T) -> u32;
}

/// A set of rules that is obviously right: a linear scan, ranges compared as ranges. O(rules) a lookup.
#[derive(Clone, Debug)]
pub struct Oracle<T>(pub Vec<(u32, Rule<T>)>);

impl<T: Tuple> Oracle<T> {
    /// Of the rules as they are now.
    pub fn of(rules: &RuleSet<T>) -> Self {
        Self(rules.sorted().into_iter().map(|(number, rule)| (number.get(), rule.clone())).collect())
    }

    /// The number of the best rule that matches; 0 where none does.
    pub fn lookup(&self, tuple: &T) -> u32 {
        let mut best: Option<(u32, u32)> = None;
        for (number, rule) in &self.0 {
            if !rule.matches(tuple) {
                continue;
            }
            let is_better = match best {
                None => true,
                Some((priority, first)) => {
                    rule.priority() > priority || rule.priority() == priority && *number < first
                }
            };
            if is_better {
                best = Some((rule.priority(), *number));
            }
        }
        best.map_or(0, |(_, number)| number)
    }
}

impl<T: Tuple> Right<T> for Oracle<T> {
    fn right(&self, tuple: &T) -> u32 {
        self.lookup(tuple)
    }
}

/// The same answers in O(masks), for sets too large to be scanned for each of many tuples: a map for each mask. Shares nothing with
/// engines; the suite holds it against the scan.
#[derive(Clone, Debug)]
pub struct Expected<T> {
    /// By mask, with the best rank in the map.
    classes: Vec<(T, Rank, HashMap<T, Rank>)>,
}

impl<T: Tuple> Expected<T> {
    /// Of the rules as they are now. O(n).
    pub fn of(rules: &RuleSet<T>) -> Self {
        let mut by_mask: HashMap<T, HashMap<T, Rank>> = HashMap::new();
        for entry in rules.entries() {
            let best =
                by_mask.entry(*entry.pattern.mask()).or_default().entry(*entry.pattern.value()).or_default();
            *best = entry.rank.max(*best);
        }
        let mut classes: Vec<_> = by_mask
            .into_iter()
            .map(|(mask, values)| (mask, values.values().copied().max().unwrap_or(Rank::NONE), values))
            .collect();
        classes.sort_by_key(|class| std::cmp::Reverse(class.1));
        Self { classes }
    }
}

impl<T: Tuple> Right<T> for Expected<T> {
    fn right(&self, tuple: &T) -> u32 {
        let mut best = Rank::NONE;
        for (mask, at_best, values) in &self.classes {
            if *at_best < best {
                break;
            }
            best = values.get(&tuple.and(mask)).map_or(best, |&rank| rank.max(best));
        }
        best.result()
    }
}
