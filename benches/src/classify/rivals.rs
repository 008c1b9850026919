//! [`Scan`]: what a program has before it has an engine, a vector of rules that is gone through until one
//! matches.

use wirespeed_classify::tuple::{Field, FieldMatch};
use wirespeed_classify::{Ipv4Tuple, Rank, Rule, RuleNumber, RuleSet, RuleUpdate, Tuple};

use super::OfRules;
use super::trace::Tuples;
use crate::table::{Contestant, answers_are_results};

/// Rules, the best first.
pub struct Scan(Vec<Plain>);

/// A rule as a program of its own would have it.
struct Plain {
    rank: Rank,
    value: [u32; 4],
    mask: [u32; 4],
    sport: [u32; 2],
    dport: [u32; 2],
}

impl Plain {
    fn new(number: RuleNumber, rule: &Rule<Ipv4Tuple>) -> Self {
        let rank = Rank::new(rule.priority(), number);
        // What ranges say is masked out of the base.
        let words = |tuple: &Ipv4Tuple| [0, 1, 2, 3].map(|at| tuple.words()[at]);
        let [value, mask] = [rule.base().value(), rule.base().mask()].map(words);
        let range = |field: &Field| match rule.field(field) {
            FieldMatch::Range(from, to) => [port(from), port(to)],
            FieldMatch::Masked { .. } => [0, port(field.all())],
        };
        Self { rank, value, mask, sport: range(&Ipv4Tuple::SPORT), dport: range(&Ipv4Tuple::DPORT) }
    }

    #[inline(always)]
    fn matches(&self, words: &[u32]) -> bool {
        let is_within = |port: u32, [from, to]: [u32; 2]| from <= port && port <= to;
        (0..4).all(|at| words[at] & self.mask[at] == self.value[at])
            && is_within(words[2] >> 16, self.sport)
            && is_within(words[2] & 0xffff, self.dport)
    }
}

fn port(number: u128) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Scan {
    /// Sorts the rules.
    pub fn build(rules: &RuleSet<Ipv4Tuple>) -> Self {
        let mut scan: Vec<Plain> = rules.iter().map(|(number, rule)| Plain::new(number, rule)).collect();
        scan.sort_unstable_by_key(|plain| std::cmp::Reverse(plain.rank));
        Self(scan)
    }

    fn remove(&mut self, number: u32) {
        if let Some(at) = self.0.iter().position(|plain| plain.rank.result() == number) {
            self.0.remove(at);
        }
    }

    fn insert(&mut self, number: RuleNumber, rule: &Rule<Ipv4Tuple>) {
        let plain = Plain::new(number, rule);
        let at = self.0.partition_point(|other| other.rank > plain.rank);
        self.0.insert(at, plain);
    }
}

/// The answer for one tuple of a table that only takes batches.
pub(crate) fn alone(table: &impl Contestant<OfRules, Answer = u32>, tuple: Tuples<'_>) -> u32 {
    let mut number = [0];
    table.many(tuple, &mut number);
    number[0]
}

impl Contestant<OfRules> for Scan {
    answers_are_results!(u32);

    fn many(&self, tuples: Tuples<'_>, numbers: &mut [u32]) {
        for (tuple, number) in tuples.tuples.iter().zip(numbers) {
            let found = self.0.iter().find(|plain| plain.matches(tuple.words()));
            *number = found.map_or(0, |plain| plain.rank.result());
        }
    }

    fn one(&self, tuple: Tuples<'_>) -> u32 {
        alone(self, tuple)
    }

    /// Takes those that name their rule, as the streams here do.
    fn update(&mut self, updates: &[RuleUpdate<Ipv4Tuple>]) -> bool {
        updates.iter().all(|update| match update {
            RuleUpdate::Insert(_) => false,
            RuleUpdate::Set(number, rule) => {
                self.remove(*number);
                RuleNumber::new(*number).map(|number| self.insert(number, rule)).is_some()
            }
            RuleUpdate::Remove(number) => {
                self.remove(*number);
                true
            }
        })
    }
}
