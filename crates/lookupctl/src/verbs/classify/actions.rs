//! What the actions of rules are called, in files and in images.

use anyhow::Result;
use wirespeed::Error;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed_classify::read::RuleFile;
use wirespeed_classify::{Rule, RuleSet, Tuple};
use wirespeed_fib::NextHops;

/// What actions are called: as the format has it, or by their numbers where it has no names.
pub(super) struct Actions(pub(super) Vec<String>);

impl Actions {
    /// That of a rule.
    pub(super) fn of<T: Tuple>(&self, rule: &Rule<T>) -> String {
        let name = usize::try_from(rule.action()).ok().and_then(|at| self.0.get(at));
        name.cloned().unwrap_or_else(|| rule.action().to_string())
    }

    /// That of a rule, as it stands alone.
    pub(super) fn said<T: Tuple>(&self, rule: &Rule<T>) -> String {
        if self.0.is_empty() { format!("action {}", rule.action()) } else { self.of(rule) }
    }

    /// A rule in words, with the name of its action.
    pub(super) fn text<T: Tuple>(&self, rule: &Rule<T>) -> String {
        let text = rule.to_string();
        match text.rsplit_once("action=") {
            Some((fields, _)) => format!("{fields}action={}", self.of(rule)),
            None => text,
        }
    }
}

/// Rules as images hold them, whose actions are labels, from 1 on: those that a file has names for; others stay as they are.
pub(super) fn labelled<T: Tuple>(file: RuleFile<T>) -> Result<(RuleSet<T>, NextHops)> {
    let (mut labels, mut rules) = (NextHops::new(), file.rules);
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
    }
    Ok((rules, labels))
}

/// The rules of an image, if it holds them, and what their actions are called.
pub(super) fn of_image<T: Tuple>(image: &RuleImageFile) -> Result<(Option<RuleSet<T>>, Actions)> {
    let labels = image.labels()?;
    // No action is 0 where labels are.
    let none = (!labels.is_empty()).then(|| "0".to_owned());
    let actions = none.into_iter().chain(labels.iter().map(|(_, text)| text.to_owned())).collect();
    match image.rules() {
        Ok(rules) => Ok((Some(rules), Actions(actions))),
        Err(Error::ImageWithoutRules { .. }) => Ok((None, Actions(actions))),
        Err(error) => Err(error.into()),
    }
}
