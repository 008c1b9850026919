//! The names of rules' actions, in files and in images.

use anyhow::Result;
use wirespeed::Error;
use wirespeed::classify::image_file::RuleImageFile;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::read::{Doubts, Lines};
use wirespeed_classify::{Rule, RuleSet};

/// Names of actions: those of the format, or numbers if the format has no names.
pub struct Actions(pub Vec<String>);

impl Actions {
    /// The name of a rule's action.
    pub fn of<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        let name = usize::try_from(rule.action()).ok().and_then(|at| self.0.get(at));
        name.cloned().unwrap_or_else(|| rule.action().to_string())
    }

    /// The name of a rule's action, as text of its own.
    pub fn said<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        if self.0.is_empty() { format!("action {}", rule.action()) } else { self.of(rule) }
    }

    /// A rule as text, with the name of its action.
    pub fn text<T: RuleTuple>(&self, rule: &Rule<T>) -> String {
        let text = rule.to_string();
        match text.rsplit_once("action=") {
            Some((fields, _)) => format!("{fields}action={}", self.of(rule)),
            None => text,
        }
    }
}

/// The data beside a compiled table.
pub struct Known<T: RuleTuple> {
    /// The rules, if they are known.
    pub rules: Option<RuleSet<T>>,
    /// The names of their actions.
    pub actions: Actions,
    /// The rules that were left out.
    pub doubts: Doubts<T>,
    /// The source lines of the rules.
    pub lines: Lines,
}

/// The rules of an image, the names of their actions, and the doubts about them.
#[inline(never)] // one copy for all crates
pub fn of_image<T: RuleTuple>(image: &RuleImageFile) -> Result<Known<T>> {
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
