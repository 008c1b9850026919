//! Rules with the names of their actions in the form of images.

use anyhow::{Context, Result};
use wirespeed::engine::RuleTuple;
use wirespeed_classify::RuleSet;
use wirespeed_classify::read::{Doubts, Lines, RuleFile};
use wirespeed_fib::NextHops;

/// The attachments of an image.
pub(super) struct Beside<T: RuleTuple> {
    pub(super) rules: RuleSet<T>,
    /// The names of the actions.
    pub(super) labels: NextHops,
    pub(super) doubts: Doubts<T>,
    /// The source lines of the rules.
    pub(super) lines: Lines,
}

/// Converts rules to the form of images: named actions become labels, numbered from 1; actions without names
/// stay unchanged.
pub(super) fn labelled<T: RuleTuple>(file: RuleFile<T>) -> Result<Beside<T>> {
    let (mut labels, mut rules, mut doubts) = (NextHops::new(), file.rules, file.doubts);
    for action in &file.actions {
        labels.intern(action)?;
    }
    if !labels.is_empty() {
        let named: Vec<_> = rules
            .iter()
            .map(|(number, rule)| (number.get(), rule.clone().with_action(rule.action() + 1)))
            .collect();
        for (number, rule) in named {
            rules.set(number, rule)?;
        }
        doubts = doubts.map_actions(|action| action.checked_add(1).context("an action without a label"))?;
    }
    Ok(Beside { rules, labels, doubts, lines: file.lines })
}
