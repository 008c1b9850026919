//! Rules of regions, certain and uncertain: a rule for each combination of what boxes want of fields.

use super::{Excess, Walk, within};
use crate::error::RuleError;
use crate::expand::{FieldRange, prefixes};
use crate::pattern::Pattern;
use crate::read::chains::region::{Cell, Region};
use crate::read::report::{LeftOut, Place};
use crate::read::uncertain::{Effect, Uncertain};
use crate::rule::Rule;
use crate::tuple::{FieldMatch, Tuple};

impl<T: Tuple> Walk<'_, T> {
    /// Adds rules of a verdict for the packets of a region, by a line of the file, or by what else says so.
    pub(super) fn rules(
        &mut self,
        region: &Region<T>,
        verdict: &str,
        place: Option<Place>,
        text: &str,
    ) -> Result<(), Excess> {
        let action = self.file.intern(verdict);
        self.each_rule(region, action, |walk, rule| {
            // There are numbers for more rules than the bound.
            if let Ok(number) = walk.file.rules.insert(rule) {
                walk.file.lines.add(number.get(), place, text);
            }
        })
    }

    /// Adds uncertain rules for the packets of a region: which they are.
    pub(super) fn uncertain(
        &mut self,
        region: &Region<T>,
        effect: Effect,
        verdict: &str,
        why: &LeftOut,
    ) -> Result<Vec<usize>, Excess> {
        let action = if effect == Effect::Action { self.file.intern(verdict) } else { 0 };
        let before = self.file.rules.last_number().saturating_add(1);
        let from = self.file.doubts.uncertain.len();
        self.each_rule(region, action, |walk, rule| {
            let why = why.clone();
            walk.file.doubts.uncertain.push(Uncertain { rule, effect, before, skips: 0, why });
        })?;
        if effect != Effect::Skip {
            self.left_out.entry(why.place).or_insert_with(|| why.clone());
        }
        Ok((from..self.file.doubts.uncertain.len()).collect())
    }

    /// Makes the rules that a region takes.
    fn each_rule(
        &mut self,
        region: &Region<T>,
        action: u32,
        mut put: impl FnMut(&mut Self, Rule<T>),
    ) -> Result<(), Excess> {
        for cell in region.cells() {
            for wanted in combinations(cell) {
                self.one_rule(&wanted, action, &mut put)?;
            }
        }
        Ok(())
    }

    /// Makes a rule, or several where its ranges make more patterns than one may have.
    fn one_rule(
        &mut self,
        wanted: &[(usize, FieldMatch)],
        action: u32,
        put: &mut impl FnMut(&mut Self, Rule<T>),
    ) -> Result<(), Excess> {
        match rule(wanted, action) {
            Ok(rule) => {
                self.rules += 1;
                self.patterns += rule.patterns().len() as u64;
                within("rules", self.rules, self.most_rules)?;
                within("patterns", self.patterns, self.most_patterns)?;
                put(self, rule);
                Ok(())
            }
            Err(_) => {
                let is_range = |one: &&(usize, FieldMatch)| matches!(one.1, FieldMatch::Range(..));
                let &(at, FieldMatch::Range(from, to)) =
                    wanted.iter().find(is_range).expect("only ranges make many")
                else {
                    unreachable!("a range was looked for")
                };
                for (value, mask) in prefixes(T::FIELDS[at].all(), from, to) {
                    let mut part = wanted.to_vec();
                    part.retain(|one| one.0 != at);
                    part.push((at, FieldMatch::Masked { value, mask }));
                    self.one_rule(&part, action, put)?;
                }
                Ok(())
            }
        }
    }
}

/// What rules want of fields, by their places, to have a box.
fn combinations<T: Tuple>(cell: &Cell<T>) -> impl Iterator<Item = Vec<(usize, FieldMatch)>> {
    let place = |field| T::FIELDS.iter().position(|own| own == field).expect("a field of the tuple");
    let choices: Vec<(usize, Vec<FieldMatch>)> =
        cell.fields().map(|(field, set)| (place(field), set.matches().collect())).collect();
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

fn rule<T: Tuple>(wanted: &[(usize, FieldMatch)], action: u32) -> Result<Rule<T>, RuleError> {
    let (mut pattern, mut ranges) = (Pattern::all(), Vec::new());
    for &(at, wanted) in wanted {
        let field = &T::FIELDS[at];
        match wanted {
            FieldMatch::Masked { value, mask } => pattern = pattern.with(field, value, mask),
            FieldMatch::Range(from, to) => ranges.push(FieldRange::new(*field, from, to)?),
        }
    }
    Rule::with_ranges(pattern, ranges, 0, action)
}
