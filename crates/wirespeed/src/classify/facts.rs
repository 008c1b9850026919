//! [`RuleFacts`]: the actions and priorities of rules and their doubts, stored beside a live table.
//!
//! A rule that was left out could change an answer only if it ranks before the answer's rule. So the priority
//! of the answer's rule is needed, in the state of the lookup. If no answer can be in doubt, only actions are
//! stored. The doubts are part of the state, so a verdict is about rules and doubts of one moment.

use std::collections::HashMap;
use std::sync::Arc;

use wirespeed_classify::read::Doubts;
use wirespeed_classify::{Actions, ActionsChange, Changed, Companion, Rule, RuleSet, Tuple};
use wirespeed_image::live::Beside;

/// The facts about rules that are stored beside a live table.
#[derive(Clone, Debug)]
pub enum Facts<T> {
    /// Nothing: lookups give numbers of rules.
    None,
    /// Their actions.
    Actions,
    /// Their actions and doubts; and their priorities, if an answer can be in doubt.
    Verdicts(Arc<Doubts<T>>),
}

impl<T: Tuple> Facts<T> {
    const fn has_actions(&self) -> bool {
        !matches!(self, Self::None)
    }

    fn has_priorities(&self) -> bool {
        matches!(self, Self::Verdicts(doubts) if !doubts.is_empty())
    }

    fn into_doubts(self) -> Arc<Doubts<T>> {
        match self {
            Self::Verdicts(doubts) => doubts,
            Self::None | Self::Actions => Arc::default(),
        }
    }
}

/// The actions and priorities of rules by number, and their doubts, as far as they are [wanted](Facts).
#[derive(Clone, Debug)]
pub struct RuleFacts<T> {
    actions: Actions,
    priorities: HashMap<u32, u32>,
    doubts: Arc<Doubts<T>>,
}

impl<T> RuleFacts<T> {
    /// The actions of the rules.
    pub(crate) const fn actions(&self) -> &Actions {
        &self.actions
    }

    /// The priority of a rule. `None` if no rule has that number, or if no answer can be in doubt.
    pub(crate) fn priority(&self, number: u32) -> Option<u32> {
        self.priorities.get(&number).copied()
    }

    /// The doubts about the rules.
    pub(crate) const fn doubts(&self) -> &Arc<Doubts<T>> {
        &self.doubts
    }

    /// Bytes that actions and priorities take.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.actions.memory_usage() + (self.priorities.capacity() * size_of::<(u32, u32)>()) as u64
    }
}

/// A change of [`RuleFacts`].
#[derive(Debug)]
pub struct RuleFactsChange<T> {
    actions: ActionsChange,
    priorities: Priorities,
    /// Other doubts.
    doubts: Option<Arc<Doubts<T>>>,
}

impl<T> Default for RuleFactsChange<T> {
    /// No change.
    fn default() -> Self {
        Self { actions: ActionsChange::default(), priorities: Priorities::default(), doubts: None }
    }
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

impl<T: Tuple> Beside for RuleFacts<T> {
    type Change = RuleFactsChange<T>;

    fn apply(&mut self, change: &RuleFactsChange<T>) {
        self.actions.apply(&change.actions);
        match &change.priorities {
            Priorities::All(all) => self.priorities.clone_from(all),
            Priorities::Some(some) => {
                some.iter().for_each(|&(number, now)| set(&mut self.priorities, number, now));
            }
        }
        if let Some(doubts) = &change.doubts {
            self.doubts = Arc::clone(doubts);
        }
    }
}

impl<T: Tuple> Companion<T> for RuleFacts<T> {
    type Wanted = Facts<T>;

    fn of(rules: &RuleSet<T>, wanted: Facts<T>) -> Self {
        let has_actions = wanted.has_actions();
        let actions = if has_actions { <Actions as Companion<T>>::of(rules, ()) } else { Actions::default() };
        let priorities = if wanted.has_priorities() { all(rules) } else { HashMap::new() };
        Self { actions, priorities, doubts: wanted.into_doubts() }
    }

    fn changed(
        rules: &RuleSet<T>,
        wanted: Facts<T>,
        changed: &[Changed<T>],
        change: &mut RuleFactsChange<T>,
    ) {
        if wanted.has_actions() {
            <Actions as Companion<T>>::changed(rules, (), changed, &mut change.actions);
        }
        if !wanted.has_priorities() {
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

    fn replaced(rules: &RuleSet<T>, wanted: Facts<T>) -> RuleFactsChange<T> {
        let Self { actions, priorities, doubts } = <Self as Companion<T>>::of(rules, wanted);
        RuleFactsChange {
            actions: ActionsChange::All(actions),
            priorities: Priorities::All(priorities),
            doubts: Some(doubts),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_classify::linear::Linear;
    use wirespeed_classify::{BuildOptions, EditRules, Ipv4Tuple, LiveRules};

    use super::*;

    fn doubts() -> Facts<Ipv4Tuple> {
        let line = "before=3 effect=any skips=0 line=7 proto=udp priority=0 action=1\ta match\ta rule";
        Facts::Verdicts(Arc::new(Doubts::from_text(line).unwrap()))
    }

    fn facts_are_those_of_the_rules_after_every_update(
        mut wanted: Facts<Ipv4Tuple>,
        later: [Facts<Ipv4Tuple>; 2],
    ) {
        let rule = |n: u32| {
            let rule: Rule<Ipv4Tuple> = format!("dport={} proto=tcp", n % 60_000).parse().unwrap();
            rule.with_action(n).with_priority(n % 5)
        };
        let rules = (0..20).map(rule).collect();
        let mut live: LiveRules<Ipv4Tuple, Linear<_>, RuleFacts<_>> =
            LiveRules::with(rules, BuildOptions::default(), wanted.clone()).unwrap();
        let (reader, mut later) = (live.reader(), later.into_iter());
        for round in 0..200u32 {
            match round % 4 {
                // Other facts, with a change and without one.
                1 if round % 80 == 41 => {
                    wanted = later.next().unwrap();
                    let updates = [wirespeed_classify::RuleUpdate::Insert(rule(round))];
                    let updates = &updates[..usize::from(round > 100)];
                    live.apply_wanting(updates, Some(wanted.clone()), || true).unwrap();
                }
                0 => drop(live.remove(round / 4 + 1).unwrap()),
                1 => drop(live.set(round / 8 + 1, rule(round)).unwrap()),
                _ => drop(live.insert(rule(round)).unwrap()),
            }
            let state = reader.enter_state();
            let right = <RuleFacts<_> as Companion<Ipv4Tuple>>::of(live.model(), wanted.clone());
            assert_eq!(state.beside.priorities, right.priorities, "round {round}");
            assert_eq!(state.beside.actions, right.actions, "round {round}");
            assert_eq!(state.beside.doubts, right.doubts, "round {round}");
            assert_eq!(right.priorities.is_empty(), !wanted.has_priorities());
            assert_eq!(right.actions == Actions::default(), !wanted.has_actions());
        }
        assert!(live.rebuilds() > 0 && live.rebuilds() < 150, "both kinds of change");
        assert_eq!(later.count(), 0);
    }

    #[test]
    fn facts_follow_the_rules_and_what_is_wanted() {
        let whole = || Facts::Verdicts(Arc::default());
        facts_are_those_of_the_rules_after_every_update(doubts(), [whole(), Facts::Actions]);
        facts_are_those_of_the_rules_after_every_update(Facts::Actions, [doubts(), Facts::None]);
        facts_are_those_of_the_rules_after_every_update(Facts::None, [Facts::Actions, doubts()]);
    }
}
