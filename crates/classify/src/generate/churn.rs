//! Updates of a set: rules are added, removed, added again and replaced.

use wirespeed_rng::Rng;

use super::random;
use crate::pattern::Pattern;
use crate::rank::RuleNumber;
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::tuple::Tuple;
use crate::update::RuleUpdate;

/// Updates of a set, `count` of them, a quarter each: remove a rule; add a removed rule again; give a rule
/// the priority of another and the next action; add a new rule after all others, with the mask of another
/// rule (now and then with the common bits of two masks, which may be a class of its own).
///
/// Each update has its number, so that applying all of them a second time gives the same set. Without rules
/// there are no updates.
pub fn churn<T: Tuple>(rules: &RuleSet<T>, count: usize, seed: u64) -> Vec<RuleUpdate<T>> {
    let known: Vec<_> =
        rules.sorted().into_iter().map(|(number, rule)| (number.get(), rule.clone())).collect();
    if known.is_empty() {
        return Vec::new();
    }
    let (there, last) = ((0..known.len()).collect(), rules.last_number());
    let mut world = World { known, there, gone: Vec::new(), last, rng: Rng::new(seed) };
    (0..count).map(|_| world.update()).collect()
}

struct World<T> {
    /// All rules so far, under their numbers.
    known: Vec<(u32, Rule<T>)>,
    /// The indices of the rules that are in the set.
    there: Vec<usize>,
    gone: Vec<usize>,
    last: u32,
    rng: Rng,
}

impl<T: Tuple> World<T> {
    fn update(&mut self) -> RuleUpdate<T> {
        match self.rng.index(4) {
            0 if self.there.len() > 1 => self.remove(),
            1 if !self.gone.is_empty() => self.bring_back(),
            2 if self.last < RuleNumber::MOST => self.add(),
            _ => self.change(),
        }
    }

    fn remove(&mut self) -> RuleUpdate<T> {
        let at = self.rng.index(self.there.len());
        let known = self.there.swap_remove(at);
        self.gone.push(known);
        RuleUpdate::Remove(self.known[known].0)
    }

    fn bring_back(&mut self) -> RuleUpdate<T> {
        let at = self.rng.index(self.gone.len());
        let known = self.gone.swap_remove(at);
        self.there.push(known);
        let (number, rule) = &self.known[known];
        RuleUpdate::Set(*number, rule.clone())
    }

    fn change(&mut self) -> RuleUpdate<T> {
        let priority = self.any().priority();
        let at = self.there[self.rng.index(self.there.len())];
        let (number, rule) = &mut self.known[at];
        *rule = rule.clone().with_priority(priority).with_action(rule.action().wrapping_add(1));
        RuleUpdate::Set(*number, rule.clone())
    }

    fn add(&mut self) -> RuleUpdate<T> {
        let mut mask = *self.any().base().mask();
        if self.rng.chance(0.05) {
            mask = mask.and(self.any().base().mask());
        }
        let (priority, action) = (self.any().priority(), self.any().action());
        let pattern = Pattern::new(random(&mut self.rng), mask);
        self.last += 1;
        self.there.push(self.known.len());
        let rule = Rule::new(pattern, priority, action);
        self.known.push((self.last, rule.clone()));
        RuleUpdate::Set(self.last, rule)
    }

    /// A known rule, in the set or not.
    fn any(&mut self) -> &Rule<T> {
        &self.known[self.rng.index(self.known.len())].1
    }
}
