//! [`RuleFacts`]: the actions and priorities of rules, stored beside a live table.
//!
//! A rule that was left out could change an answer only if it ranks before the answer's rule. So the priority
//! of the answer's rule is needed, in the state of the lookup. If no answer can be in doubt, only actions are
//! stored.

use std::collections::HashMap;

use wirespeed_classify::read::Doubts;
use wirespeed_classify::{Actions, ActionsChange, Changed, Companion, Rule, RuleSet, Tuple};
use wirespeed_image::live::Beside;

/// The facts about rules that are stored beside a live table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Facts {
    /// Nothing: lookups give numbers of rules.
    None,
    /// Their actions.
    Actions,
    /// Their actions and priorities.
    Priorities,
}

impl Facts {
    /// The facts that readers need beside numbers, for rules with these doubts.
    pub(super) fn for_doubts<T: Tuple>(doubts: &Doubts<T>) -> Self {
        if doubts.is_empty() { Self::Actions } else { Self::Priorities }
    }
}

/// The actions and priorities of rules by number, as far as they are [wanted](Facts).
#[derive(Clone, Debug, Default)]
pub struct RuleFacts {
    actions: Actions,
    priorities: HashMap<u32, u32>,
}

impl RuleFacts {
    /// The actions of the rules.
    pub(crate) fn actions(&self) -> &Actions {
        &self.actions
    }

    /// The priority of a rule. `None` if no rule has that number, or if no answer can be in doubt.
    pub(crate) fn priority(&self, number: u32) -> Option<u32> {
        self.priorities.get(&number).copied()
    }

    /// Bytes that they take.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.actions.memory_usage() + (self.priorities.capacity() * size_of::<(u32, u32)>()) as u64
    }
}

/// A change of [`RuleFacts`].
#[derive(Debug, Default)]
pub struct RuleFactsChange {
    actions: ActionsChange,
    priorities: Priorities,
}

/// Changes of priorities.
#[derive(Debug)]
enum Priorities {
    /// Changed priorities, in order; `None` for a rule that was removed.
    Some(Vec<(u32, Option<u32>)>),
    /// The priorities of all rules.
    All(HashMap<u32, u32>),
}

impl Default for Priorities {
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

fn set(priorities: &mut HashMap<u32, u32>, number: u32, now: Option<u32>) {
    match now {
        Some(priority) => _ = priorities.insert(number, priority),
        None => _ = priorities.remove(&number),
    }
}

fn all<T: Tuple>(rules: &RuleSet<T>) -> HashMap<u32, u32> {
    rules.iter().map(|(number, rule)| (number.get(), rule.priority())).collect()
}

impl Beside for RuleFacts {
    type Change = RuleFactsChange;

    fn apply(&mut self, change: &RuleFactsChange) {
        self.actions.apply(&change.actions);
        match &change.priorities {
            Priorities::All(all) => self.priorities.clone_from(all),
            Priorities::Some(some) => {
                some.iter().for_each(|&(number, now)| set(&mut self.priorities, number, now));
            }
        }
    }
}

impl<T: Tuple> Companion<T> for RuleFacts {
    type Wanted = Facts;

    fn of(rules: &RuleSet<T>, wanted: Facts) -> Self {
        let mut facts = Self::default();
        if wanted >= Facts::Actions {
            facts.actions = <Actions as Companion<T>>::of(rules, ());
        }
        if wanted >= Facts::Priorities {
            facts.priorities = all(rules);
        }
        facts
    }

    fn changed(rules: &RuleSet<T>, wanted: Facts, changed: &[Changed<T>], change: &mut RuleFactsChange) {
        if wanted >= Facts::Actions {
            <Actions as Companion<T>>::changed(rules, (), changed, &mut change.actions);
        }
        if wanted < Facts::Priorities {
            return;
        }
        let now = |one: &Changed<T>| (one.number.get(), rules.now(one).map(Rule::priority));
        match &mut change.priorities {
            Priorities::Some(some) => some.extend(changed.iter().map(now)),
            Priorities::All(all) => {
                changed.iter().map(now).for_each(|(number, now)| set(all, number, now));
            }
        }
    }

    fn replaced(rules: &RuleSet<T>, wanted: Facts) -> RuleFactsChange {
        let mut change = RuleFactsChange::default();
        if wanted >= Facts::Actions {
            change.actions = <Actions as Companion<T>>::replaced(rules, ());
        }
        if wanted >= Facts::Priorities {
            change.priorities = Priorities::All(all(rules));
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::linear::Linear;
    use wirespeed_classify::{BuildOptions, EditRules, Ipv4Tuple, LiveRules};

    use super::*;

    fn facts_are_those_of_the_rules_after_every_update(wanted: Facts) {
        let rule = |n: u32| {
            let rule: Rule<Ipv4Tuple> = format!("dport={} proto=tcp", n % 60_000).parse().unwrap();
            rule.with_action(n).with_priority(n % 5)
        };
        let rules = (0..20).map(rule).collect();
        let mut live: LiveRules<Ipv4Tuple, Linear<_>, RuleFacts> =
            LiveRules::with(rules, BuildOptions::default(), wanted).unwrap();
        let reader = live.reader();
        for round in 0..200u32 {
            match round % 4 {
                0 => drop(live.remove(round / 4 + 1).unwrap()),
                1 => drop(live.set(round / 8 + 1, rule(round)).unwrap()),
                _ => drop(live.insert(rule(round)).unwrap()),
            }
            let state = reader.enter_state();
            let right = <RuleFacts as Companion<Ipv4Tuple>>::of(live.model(), wanted);
            assert_eq!(state.beside.priorities, right.priorities, "round {round}");
            assert_eq!(state.beside.actions, right.actions, "round {round}");
            assert_eq!(right.priorities.is_empty(), wanted < Facts::Priorities);
            assert_eq!(right.actions == Actions::default(), wanted < Facts::Actions);
        }
        assert!(live.rebuilds() > 0 && live.rebuilds() < 150, "both kinds of change");
    }

    #[test]
    fn priorities_are_those_of_the_rules_after_every_update() {
        facts_are_those_of_the_rules_after_every_update(Facts::Priorities);
    }

    #[test]
    fn actions_alone_are_those_of_the_rules_after_every_update() {
        facts_are_those_of_the_rules_after_every_update(Facts::Actions);
    }

    #[test]
    fn there_is_nothing_where_nothing_is_wanted() {
        facts_are_those_of_the_rules_after_every_update(Facts::None);
    }
}
