//! Doubts about answers as text: the assumptions about packets, the rules that were left out and could change
//! an answer, and the rules that are wider than their file says.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroU64;

use serde::Serialize;
use wirespeed::engine::RuleTuple;
use wirespeed_classify::RuleSet;
use wirespeed_classify::read::{Doubts, Effect, LeftOut, Place, Uncertain};

use super::actions::Actions;
use crate::number::{counted, grouped};

/// The most rules that a line of text names.
const SHOWN: usize = 3;

/// A rule that was left out and could change an answer, or an answer's own rule that is wider than its file
/// says, in the form of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Because {
    line: u64,
    /// The number of the rule or element in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<NonZeroU64>,
    reason: String,
    text: String,
    /// Its possible action. Null if the action could be anything.
    action: Option<String>,
    /// Whether it is the answer's own rule, which is wider than its file says.
    #[serde(skip)]
    is_wider: bool,
}

impl Because {
    /// The doubts about the answer to a tuple. `found` is the number of the rule, 0 for no rule.
    pub fn of<T: RuleTuple>(
        doubts: &Doubts<T>,
        rules: &RuleSet<T>,
        actions: &Actions,
        (tuple, found): (&T, u32),
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        // A line may stand for many rules.
        for one in doubts.of_answer(rules, tuple, found).map(|one| Self::one(one, actions)) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    fn one<T: RuleTuple>(one: &Uncertain<T>, actions: &Actions) -> Self {
        let LeftOut { place: Place { line, entry }, why, text } = &one.why;
        let action = (one.effect == Effect::Action).then(|| actions.of(&one.rule));
        let is_wider = one.effect == Effect::Wider;
        Self { line: *line, entry: *entry, reason: why.clone(), text: text.clone(), action, is_wider }
    }

    /// A text such as `line 7 (a connection's state) could ACCEPT it`
    fn said(&self) -> String {
        let &Self { line, entry, ref reason, ref action, is_wider, .. } = self;
        let could = match action.as_deref() {
            None if is_wider => "need not match it".to_owned(),
            None => "could do anything".to_owned(),
            Some(verdict) if VERDICTS.iter().any(|known| verdict.eq_ignore_ascii_case(known)) => {
                format!("could {verdict} it")
            }
            Some(action) => format!("could lead to {action}"),
        };
        format!("{} ({reason}) {could}", Place { line, entry })
    }
}

/// Actions that are verbs for a packet.
const VERDICTS: [&str; 5] = ["ACCEPT", "DROP", "REJECT", "QUEUE", "NFQUEUE"];

/// The reason why an answer is uncertain, as text. `None` if it is certain.
pub fn said(because: &[Because]) -> Option<String> {
    let all: Vec<_> = because.iter().map(Because::said).collect();
    (!all.is_empty()).then(|| listed(&all, SHOWN))
}

/// Lists the first texts, and counts the others.
pub fn listed(all: &[String], most: usize) -> String {
    let mut text = all.iter().take(most).map(String::as_str).collect::<Vec<_>>().join("; ");
    if all.len() > most {
        let _ = write!(text, "; and {} more", grouped(all.len() - most)); // a String takes all
    }
    text
}

/// The assumptions that decided a rule, in the form of JSON, in the order of their keys.
pub fn assuming<T>(doubts: &Doubts<T>) -> Vec<String> {
    let assumed: BTreeSet<_> = doubts.assumed.iter().collect();
    assumed.into_iter().map(ToString::to_string).collect()
}

/// The assumptions as text. `None` if there are none.
pub fn assumed(assuming: &[String]) -> Option<String> {
    (!assuming.is_empty()).then(|| format!("assuming {}", assuming.join(", ")))
}

/// The rules that were left out, each once, by line: `line 7 (a connection's state)`.
pub fn lines<T>(doubts: &Doubts<T>) -> BTreeSet<(Place, String)> {
    let why = doubts.uncertain.iter().map(|one| &one.why);
    why.map(|why| (why.place, format!("{} ({})", why.place, why.why))).collect()
}

/// A message that a set is not whole, with the reason. `None` if no rule was left out.
pub fn not_whole<T>(doubts: &Doubts<T>) -> Option<String> {
    let why = || format!("not whole: rules were left out that could change answers: {}", left_out(doubts));
    (!doubts.uncertain.is_empty()).then(why)
}

/// The rules that were left out, as text.
pub fn left_out<T>(doubts: &Doubts<T>) -> String {
    let all: Vec<_> = lines(doubts).into_iter().map(|(_, left_out)| left_out).collect();
    listed(&all, SHOWN)
}

/// The rules that are wider than their file says, as text. `None` if there are none.
pub fn widened<T: RuleTuple>(doubts: &Doubts<T>) -> Option<String> {
    let all = doubts.widened();
    let first = all.iter().map(|one| &one.why).min_by_key(|why| why.place)?;
    let (are, whole) = if all.len() == 1 { ("is", "its") } else { ("are", "their") };
    Some(format!(
        "{} {are} wider than {whole} file says, from {} on ({}): an answer by such a rule is uncertain",
        counted(all.len(), "rule"),
        first.place,
        first.why
    ))
}

/// Prints the doubts of an image on stderr.
#[inline(never)] // one copy for all crates
pub fn say<T: RuleTuple>(doubts: &Doubts<T>) {
    if let Some(assumed) = assumed(&assuming(doubts)) {
        tell!("  {assumed}");
    }
    if let Some(left_out) = not_whole(doubts) {
        tell!("  {left_out}");
    }
    if let Some(widened) = widened(doubts) {
        tell!("  {widened}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn because(line: u64, action: Option<&str>) -> Because {
        let (reason, text) = ("a mark".to_owned(), "-A".to_owned());
        Because { line, entry: None, reason, text, action: action.map(str::to_owned), is_wider: false }
    }

    #[test]
    fn reasons_in_a_few_words() {
        assert_eq!(said(&[]), None);
        let one = said(&[because(7, Some("ACCEPT"))]);
        assert_eq!(one.as_deref(), Some("line 7 (a mark) could ACCEPT it"));
        let wider = said(&[Because { is_wider: true, ..because(7, None) }]);
        assert_eq!(wider.as_deref(), Some("line 7 (a mark) need not match it"));
        let actions = [Some("output:2"), None, Some("drop"), Some("1"), Some("2")];
        let many: Vec<_> = (1..).zip(actions).map(|(line, action)| because(line, action)).collect();
        assert_eq!(
            said(&many).unwrap(),
            "line 1 (a mark) could lead to output:2; line 2 (a mark) could do anything; line 3 (a mark) could drop it; and 2 more"
        );
    }
}
