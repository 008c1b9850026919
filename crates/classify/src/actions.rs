//! [`Actions`]: the actions of rules by their numbers, for readers of a live table.

use wirespeed_image::live::Beside;
use wirespeed_table::Companion;

use crate::numbers::Numbers;
use crate::rule::Rule;
use crate::rules::{Changed, RuleSet};
use crate::tuple::Tuple;

/// The action of each rule, by number. Readers of a live table see the actions of the table's state: the
/// action of a number is the action that the rule had when the lookup found it.
///
/// ```
/// use wirespeed_classify::linear::Linear;
/// use wirespeed_classify::{Actions, BuildOptions, EditRules, Ipv4Tuple, LiveRules, Lookup, RuleSet};
///
/// let rules: RuleSet<Ipv4Tuple> = ["proto=tcp action=7".parse()?].into_iter().collect();
/// let mut live: LiveRules<Ipv4Tuple, Linear<_>, Actions> = LiveRules::with(rules, BuildOptions::default(), ())?;
/// let reader = live.reader();
/// let state = reader.enter_state();
/// let number = state.table.lookup(&"tcp".parse()?);
/// live.remove(number)?;
/// assert_eq!(state.beside.action(number), Some(7)); // in the state that was entered it is there
/// drop(state);
/// assert_eq!(reader.enter_state().beside.action(number), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions(Numbers);

/// Changes between a prefetch and its use.
const AHEAD: usize = 32;

impl Actions {
    /// The action of a rule; `None` if no rule has the number.
    #[inline]
    pub fn action(&self, number: u32) -> Option<u32> {
        self.0.get(number)
    }

    /// The size in bytes.
    pub fn memory_usage(&self) -> u64 {
        self.0.memory_usage() as u64
    }

    fn set(&mut self, number: u32, now: Option<u32>) {
        match now {
            Some(action) => self.0.set(number, action),
            None => self.0.remove(number),
        };
    }
}

/// A change of [`Actions`].
#[derive(Debug)]
pub enum ActionsChange {
    /// The actions of some numbers, in order; `None` for a rule that was removed.
    Some(Vec<(u32, Option<u32>)>),
    /// All actions.
    All(Actions),
}

impl Default for ActionsChange {
    /// No change.
    fn default() -> Self {
        Self::Some(Vec::new())
    }
}

impl Beside for Actions {
    type Change = ActionsChange;

    fn apply(&mut self, change: &ActionsChange) {
        match change {
            ActionsChange::All(all) => self.clone_from(all),
            ActionsChange::Some(some) => {
                some.iter().take(AHEAD).for_each(|&(number, _)| self.0.fetch(number));
                for (at, &(number, action)) in some.iter().enumerate() {
                    some.get(at + AHEAD).into_iter().for_each(|&(number, _)| self.0.fetch(number));
                    self.set(number, action);
                }
            }
        }
    }
}

impl<T: Tuple> Companion<T> for Actions {
    type Wanted = ();

    fn of(rules: &RuleSet<T>, (): ()) -> Self {
        let mut all = Self::default();
        rules.iter().for_each(|(number, rule)| all.set(number.get(), Some(rule.action())));
        all
    }

    fn changed(rules: &RuleSet<T>, (): (), changed: &[Changed<T>], change: &mut ActionsChange) {
        let now = |changed: &Changed<T>| (changed.number.get(), rules.now(changed).map(Rule::action));
        match change {
            ActionsChange::Some(some) => some.extend(changed.iter().map(now)),
            ActionsChange::All(all) => changed.iter().map(now).for_each(|(number, now)| all.set(number, now)),
        }
    }

    fn replaced(rules: &RuleSet<T>, (): ()) -> ActionsChange {
        ActionsChange::All(<Self as Companion<T>>::of(rules, ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::EditRules;
    use crate::linear::Linear;
    use crate::{BuildOptions, Ipv4Tuple, LiveRules, Rule};

    #[test]
    fn actions_are_those_of_the_rules_after_every_update() {
        let rule = |n: u32| {
            let rule: Rule<Ipv4Tuple> = format!("dport={} proto=tcp", n % 60_000).parse().expect("a rule");
            rule.with_action(n)
        };
        let mut live: LiveRules<Ipv4Tuple, Linear<_>, Actions> =
            LiveRules::with((0..20).map(rule).collect(), BuildOptions::default(), ()).expect("a table");
        let reader = live.reader();
        for round in 0..200u32 {
            match round % 4 {
                0 => drop(live.remove(round / 4 + 1).expect("removed")),
                1 => drop(live.set(round / 8 + 1, rule(round)).expect("set")),
                _ => drop(live.insert(rule(round)).expect("inserted")),
            }
            assert_eq!(
                reader.enter_state().beside,
                <Actions as Companion<Ipv4Tuple>>::of(live.model(), ()),
                "round {round}"
            );
        }
        assert!(live.rebuilds() > 0 && live.rebuilds() < 150, "both kinds of change");
    }
}
