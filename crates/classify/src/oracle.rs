//! Lookups that are simple enough to be right: they look at every rule and take the best that matches.

use std::collections::HashMap;

use wirespeed_table::sort_by_number;

use crate::rank::Rank;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// A source of right answers.
pub trait Right<T> {
    /// The number of the best rule that matches; 0 if no rule matches.
    fn right(&self, tuple: &T) -> u32;
}

/// A set of rules with a linear scan, which compares ranges as ranges. A lookup is O(rules).
#[derive(Clone, Debug)]
pub struct Oracle<T>(pub Vec<(u32, Rule<T>)>);

impl<T: Tuple> Oracle<T> {
    /// An oracle of the rules as they are now.
    pub fn of(rules: &RuleSet<T>) -> Self {
        Self(rules.sorted().into_iter().map(|(number, rule)| (number.get(), rule.clone())).collect())
    }

    /// The number of the best rule that matches; 0 if no rule matches.
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

/// Right answers in O(masks), for sets too large to be scanned for each of many tuples: a map for each mask.
/// Shares nothing with engines; the suite holds it against the scan. Rules of very many patterns are scanned
/// here, too.
#[derive(Clone, Debug)]
pub struct Expected<T> {
    /// Each mask, the best rank in its map, and the map.
    classes: Vec<(T, Rank, HashMap<T, Rank>)>,
    /// Rules that are in no map, the best first.
    scanned: Vec<(Rank, Rule<T>)>,
}

/// The most patterns of a rule that are put into maps: two ranges of ports make 900 at most.
const MAPPED: usize = 1_000;

impl<T: Tuple> Expected<T> {
    /// The right answers of the rules as they are now. O(n).
    pub fn of(rules: &RuleSet<T>) -> Self {
        let mut by_mask: HashMap<T, HashMap<T, Rank>> = HashMap::new();
        let (mapped, mut scanned) = rules
            .iter()
            .map(|(number, rule)| (Rank::new(rule.priority(), number), rule))
            .partition::<Vec<_>, _>(|(_, rule)| rule.patterns_len() <= MAPPED);
        let entries = mapped.into_iter().flat_map(|(rank, rule)| rule.patterns().map(move |p| (p, rank)));
        for (pattern, rank) in entries {
            let best = by_mask.entry(*pattern.mask()).or_default().entry(*pattern.value()).or_default();
            *best = rank.max(*best);
        }
        let mut classes: Vec<_> = by_mask
            .into_iter()
            .map(|(mask, values)| (mask, values.values().copied().max().unwrap_or(Rank::NONE), values))
            .collect();
        sort_by_number(&mut classes, |class| !class.1.bits());
        sort_by_number(&mut scanned, |(rank, _)| !rank.bits());
        let scanned = scanned.into_iter().map(|(rank, rule)| (rank, rule.clone())).collect();
        Self { classes, scanned }
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
        let better = self.scanned.iter().take_while(|&&(rank, _)| rank > best);
        best = better.clone().find(|(_, rule)| rule.matches(tuple)).map_or(best, |&(rank, _)| rank);
        best.result()
    }
}
