//! Rules of regions, certain and uncertain: a rule for each combination of what boxes want of fields.

use super::{Excess, Walk, within};
use crate::error::RuleError;
use crate::expand::prefixes;
use crate::read::RuleFile;
use crate::read::assume::Assumption;
use crate::read::chains::region::{Cell, Region};
use crate::read::report::{LeftOut, Place};
use crate::read::uncertain::{Effect, Uncertain};
use crate::rule::Rule;
use crate::tuple::{Field, FieldMatch, Tuple, Wanted};

/// A file that rules are written out to. Chains are read by code that is compiled once for all tuples.
pub(in crate::read) trait Out {
    /// The number of an action.
    fn action(&mut self, name: &str) -> u32;

    /// The number that the next rule will have.
    fn next(&self) -> u32;

    /// The number of uncertain rules.
    fn uncertain_len(&self) -> usize;

    /// Adds a rule, and returns the number of its patterns. An error if there are more than a rule may have.
    fn add(&mut self, wanted: &Wanted, action: u32, kind: &Kind<'_>) -> Result<u64, RuleError>;

    /// Makes packets that an uncertain rule matches skip a number of those after it.
    fn skip(&mut self, at: usize, skips: u32);

    /// Notes the assumptions that decided something.
    fn assume(&mut self, assumed: Vec<Assumption>);
}

/// The kind of a rule that is added.
pub(in crate::read) enum Kind<'k> {
    /// One that lookups use, by a line of the file or by what else says so.
    Certain { place: Option<Place>, text: &'k str },
    /// An uncertain one, before a rule of a number.
    Uncertain { effect: Effect, before: u32, why: &'k LeftOut },
}

impl<T: Tuple> Out for RuleFile<T> {
    fn action(&mut self, name: &str) -> u32 {
        self.intern(name)
    }

    fn next(&self) -> u32 {
        self.rules.last_number().saturating_add(1)
    }

    fn uncertain_len(&self) -> usize {
        self.doubts.uncertain.len()
    }

    fn add(&mut self, wanted: &Wanted, action: u32, kind: &Kind<'_>) -> Result<u64, RuleError> {
        let rule = Rule::wanting(wanted, 0, action)?;
        let patterns = rule.patterns_len() as u64;
        match *kind {
            // There are numbers for more rules than the bound.
            Kind::Certain { place, text } => {
                if let Ok(number) = self.rules.insert(rule) {
                    self.lines.add(number.get(), place, text);
                }
            }
            Kind::Uncertain { effect, before, why } => {
                let why = why.clone();
                self.doubts.uncertain.push(Uncertain { rule, effect, before, skips: 0, why });
            }
        }
        Ok(patterns)
    }

    fn skip(&mut self, at: usize, skips: u32) {
        self.doubts.uncertain[at].skips = skips;
    }

    fn assume(&mut self, assumed: Vec<Assumption>) {
        self.doubts.assumed = assumed;
    }
}

impl Walk<'_> {
    /// Adds rules of a verdict for the packets of a region, by a line of the file, or by what else says so.
    pub(super) fn rules(
        &mut self,
        region: &Region,
        verdict: &str,
        place: Option<Place>,
        text: &str,
    ) -> Result<(), Excess> {
        let action = self.file.action(verdict);
        self.each_rule(region, action, &Kind::Certain { place, text })
    }

    /// Adds uncertain rules for the packets of a region: which they are.
    pub(super) fn uncertain(
        &mut self,
        region: &Region,
        effect: Effect,
        verdict: &str,
        why: &LeftOut,
    ) -> Result<Vec<usize>, Excess> {
        let action = if effect == Effect::Action { self.file.action(verdict) } else { 0 };
        let (before, from) = (self.file.next(), self.file.uncertain_len());
        self.each_rule(region, action, &Kind::Uncertain { effect, before, why })?;
        if effect != Effect::Skip {
            self.left_out.entry(why.place).or_insert_with(|| why.clone());
        }
        Ok((from..self.file.uncertain_len()).collect())
    }

    /// Makes the rules that a region takes.
    fn each_rule(&mut self, region: &Region, action: u32, kind: &Kind<'_>) -> Result<(), Excess> {
        for cell in region.cells() {
            for wanted in combinations(cell) {
                self.one_rule(&wanted, action, kind)?;
            }
        }
        Ok(())
    }

    /// Makes a rule, or several where its ranges make more patterns than one may have.
    fn one_rule(&mut self, wanted: &Wanted, action: u32, kind: &Kind<'_>) -> Result<(), Excess> {
        within("rules", self.rules + 1, self.most_rules)?;
        let Ok(patterns) = self.file.add(wanted, action, kind) else {
            let range = wanted.iter().find_map(|&(field, wanted)| match wanted {
                FieldMatch::Range(from, to) => Some((field, from, to)),
                FieldMatch::Masked { .. } => None,
            });
            let (field, from, to) = range.expect("only ranges make many");
            for (value, mask) in prefixes(field.all(), from, to) {
                let mut part = wanted.to_vec();
                part.retain(|one| one.0 != field);
                part.push((field, FieldMatch::Masked { value, mask }));
                self.one_rule(&part, action, kind)?;
            }
            return Ok(());
        };
        self.rules += 1;
        self.patterns += patterns;
        within("patterns", self.patterns, self.most_patterns)
    }
}

/// The fields of the rules that make up a box, with their matches.
fn combinations(cell: &Cell) -> impl Iterator<Item = Vec<(&'static Field, FieldMatch)>> {
    let choices: Vec<(&Field, Vec<FieldMatch>)> =
        cell.fields().map(|(field, set)| (field, set.matches().collect())).collect();
    let mut next = Some(vec![0; choices.len()]);
    std::iter::from_fn(move || {
        let at = next.take()?;
        let all = choices.iter().zip(&at).map(|((field, wanted), &at)| (*field, wanted[at])).collect();
        let mut after = at;
        for (digit, (_, wanted)) in after.iter_mut().zip(&choices) {
            *digit += 1;
            if *digit < wanted.len() {
                next = Some(after);
                break;
            }
            *digit = 0;
        }
        Some(all)
    })
}
