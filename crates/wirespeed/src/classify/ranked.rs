//! [`Ranked`]: the actions and the priorities of rules, beside a live table whose answers can be in doubt.
//!
//! Whether a rule that was left out could change an answer depends on which of the two comes first, so on the
//! priority of the answer's rule in the state that was looked up in. Tables without doubts have the actions
//! alone beside them.

use std::collections::HashMap;

use wirespeed_classify::{Actions, ActionsChange, Changed, Companion, Rule, RuleSet};
use wirespeed_image::live::Beside;

use crate::engine::RuleTuple;

/// What lies beside a live table of the façade.
pub(crate) trait RuleBeside<T: RuleTuple>: Companion<T> {
    /// The actions of the rules.
    fn actions(&self) -> &Actions;

    /// The priority of a rule; `None` if there is none of that number, or if no answer can be in doubt.
    fn priority(&self, number: u32) -> Option<u32>;

    /// Bytes that it takes.
    fn memory_usage(&self) -> u64;
}

impl<T: RuleTuple> RuleBeside<T> for Actions {
    fn actions(&self) -> &Actions {
        self
    }

    fn priority(&self, _: u32) -> Option<u32> {
        None
    }

    fn memory_usage(&self) -> u64 {
        self.memory_usage()
    }
}

/// The actions and the priorities of rules, by number.
#[derive(Clone, Debug)]
pub(crate) struct Ranked {
    actions: Actions,
    priorities: HashMap<u32, u32>,
}

impl<T: RuleTuple> RuleBeside<T> for Ranked {
    fn actions(&self) -> &Actions {
        &self.actions
    }

    fn priority(&self, number: u32) -> Option<u32> {
        self.priorities.get(&number).copied()
    }

    fn memory_usage(&self) -> u64 {
        self.actions.memory_usage() + (self.priorities.capacity() * size_of::<(u32, u32)>()) as u64
    }
}

/// How both change.
#[derive(Debug, Default)]
pub(crate) struct RankedChange {
    actions: ActionsChange,
    priorities: Priorities,
}

/// How priorities change.
#[derive(Debug)]
enum Priorities {
    /// Priorities of some numbers, one after the other; `None` of a rule that went.
    Some(Vec<(u32, Option<u32>)>),
    /// All of them.
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

fn all<T: RuleTuple>(rules: &RuleSet<T>) -> HashMap<u32, u32> {
    rules.iter().map(|(number, rule)| (number.get(), rule.priority())).collect()
}

impl Beside for Ranked {
    type Change = RankedChange;

    fn apply(&mut self, change: &RankedChange) {
        self.actions.apply(&change.actions);
        match &change.priorities {
            Priorities::All(all) => self.priorities.clone_from(all),
            Priorities::Some(some) => {
                some.iter().for_each(|&(number, now)| set(&mut self.priorities, number, now));
            }
        }
    }
}

impl<T: RuleTuple> Companion<T> for Ranked {
    fn of(rules: &RuleSet<T>) -> Self {
        Self { actions: <Actions as Companion<T>>::of(rules), priorities: all(rules) }
    }

    fn changed(rules: &RuleSet<T>, changed: &[Changed<T>], change: &mut RankedChange) {
        <Actions as Companion<T>>::changed(rules, changed, &mut change.actions);
        let now = |one: &Changed<T>| (one.number.get(), rules.now(one).map(Rule::priority));
        match &mut change.priorities {
            Priorities::Some(some) => some.extend(changed.iter().map(now)),
            Priorities::All(all) => {
                changed.iter().map(now).for_each(|(number, now)| set(all, number, now));
            }
        }
    }

    fn replaced(rules: &RuleSet<T>) -> RankedChange {
        RankedChange {
            actions: <Actions as Companion<T>>::replaced(rules),
            priorities: Priorities::All(all(rules)),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::linear::Linear;
    use wirespeed_classify::{BuildOptions, EditRules, Ipv4Tuple, LiveRules};

    use super::*;

    #[test]
    fn priorities_are_those_of_the_rules_after_every_update() {
        let rule = |n: u32| {
            let rule: Rule<Ipv4Tuple> = format!("dport={} proto=tcp", n % 60_000).parse().unwrap();
            rule.with_action(n).with_priority(n % 5)
        };
        let rules = (0..20).map(rule).collect();
        let mut live: LiveRules<Ipv4Tuple, Linear<_>, Ranked> =
            LiveRules::with(rules, BuildOptions::default()).unwrap();
        let reader = live.reader();
        for round in 0..200u32 {
            match round % 4 {
                0 => drop(live.remove(round / 4 + 1).unwrap()),
                1 => drop(live.set(round / 8 + 1, rule(round)).unwrap()),
                _ => drop(live.insert(rule(round)).unwrap()),
            }
            let state = reader.enter_state();
            assert_eq!(state.beside.priorities, all(live.model()), "round {round}");
            assert_eq!(
                state.beside.actions,
                <Actions as Companion<Ipv4Tuple>>::of(live.model()),
                "round {round}"
            );
        }
        assert!(live.rebuilds() > 0 && live.rebuilds() < 150, "both kinds of change");
    }
}
