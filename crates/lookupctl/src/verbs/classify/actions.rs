//! The names of rules' actions, in files and in images.

use anyhow::{Context, Result};
use wirespeed::Error;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::{Doubts, Lines, RuleFile};
use wirespeed_classify::{Rule, RuleSet};
use wirespeed_fib::NextHops;

/// Names of actions: those of the format, or numbers if the format has no names.
pub(super) struct Actions(pub(super) Vec<String>);

impl Actions {
    /// The name of a rule's action.
    pub(super) fn of<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        let name = usize::try_from(rule.action()).ok().and_then(|at| self.0.get(at));
        name.cloned().unwrap_or_else(|| rule.action().to_string())
    }

    /// The name of a rule's action, as text of its own.
    pub(super) fn said<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        if self.0.is_empty() { format!("action {}", rule.action()) } else { self.of(rule) }
    }

    /// A rule as text, with the name of its action.
    pub(super) fn text<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        let text = rule.to_string();
        match text.rsplit_once("action=") {
            Some((fields, _)) => format!("{fields}action={}", self.of(rule)),
            None => text,
        }
    }
}

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

/// The data beside a compiled table.
pub(super) struct Known<T: RuleTuple> {
    /// The rules, if they are known.
    pub(super) rules: Option<RuleSet<T>>,
    pub(super) actions: Actions,
    pub(super) doubts: Doubts<T>,
    /// The source lines of the rules.
    pub(super) lines: Lines,
}

/// The rules of an image, the names of their actions, and the doubts about them.
pub(super) fn of_image<T: RuleTuple>(image: &RuleImageFile) -> Result<Known<T>> {
    let labels = image.labels()?;
    // If there are labels, no action is 0.
    let none = (!labels.is_empty()).then(|| "0".to_owned());
    let actions = Actions(none.into_iter().chain(labels.iter().map(|(_, text)| text.to_owned())).collect());
    let rules = match image.rules() {
        Ok(rules) => Some(rules),
        Err(Error::ImageWithout { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Known { rules, actions, doubts: image.doubts()?, lines: image.lines()? })
}
