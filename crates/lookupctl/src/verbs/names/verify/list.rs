//! The right answers of a list of domains, beside those of the table that it becomes.
//!
//! Engines look names up in a table, and the list's answers say what a match stands for. When the list
//! becomes a table, the winning entries are found once for each name of the list. Here they are found for
//! each name that is asked for: the entries that cover it are taken at the name and above it, and compared. A
//! public suffix is found as publicsuffix.org says it, by the number of labels of each rule that matches.
//!
//! ```text
//! asked /com/ads/good/x      entries of /com/ads/good/x, /com/ads/good, /com/ads, /com, /
//!                            └─ those that cover it ─ the highest level, the longest name, the weight, the scope
//! ```

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;
use wirespeed::engine::NameKeys;
use wirespeed::names::lists::{Answer, Answers, Precedence, Scope, Suffix, Verdict};
use wirespeed::names::read::{Label, Labels};
use wirespeed::names::{Match, Name, NameBatch, NameBuf};
use wirespeed_namelookup::NameDomain;

use super::mismatch::{Mismatch, Nothing, hold};
use super::truth::Truth;
use crate::check::subject::{OfNames, Subject};
use crate::check::{self, verdict};

/// An entry of a list without its name.
type Rule = (Scope, Precedence, Verdict);

/// The entries of a list.
#[derive(Default)]
pub(super) struct Entries {
    /// The names, in order. A name comes as often as it has entries.
    names: NameBatch,
    rules: Vec<Rule>,
}

/// The truth about a list: its entries, and the names of its table.
pub(super) struct ListTruth {
    entries: Entries,
    table: Truth,
    /// What the results of the table stand for. They are checked, too.
    answers: Answers,
    labels: Labels,
}

/// A wrong answer: of the table, or of the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub(super) enum Wrong {
    Table(Mismatch),
    List { name: String, right: String, found: String },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(wrong) => wrong.fmt(f),
            Self::List { name, right, found } => {
                write!(f, "{name}: the list says {found}, right is {right}")
            }
        }
    }
}

impl Entries {
    /// Sorts the entries of a list.
    pub(super) fn new(entries: impl Iterator<Item = (NameBuf, Scope, Precedence, Verdict)>) -> Self {
        let mut all: Vec<_> = entries.collect();
        all.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        let names = all.iter().map(|(name, ..)| &**name).collect();
        let rules = all.into_iter().map(|(_, scope, precedence, verdict)| (scope, precedence, verdict));
        Self { names, rules: rules.collect() }
    }

    /// The entries of a name itself.
    fn of(&self, name: &Name) -> &[Rule] {
        let at = |entry: usize| self.names.names().name(entry);
        let (mut from, mut to) = (0, self.rules.len());
        while from < to {
            let middle = from.midpoint(to);
            if at(middle) < name { from = middle + 1 } else { to = middle }
        }
        let len = (from..self.rules.len()).take_while(|&entry| at(entry) == name).count();
        &self.rules[from..from + len]
    }

    /// The entries that cover a name, each with its own name. O(components · log entries).
    fn covering<'n>(&self, name: &'n Name) -> impl Iterator<Item = (&'n Name, Rule)> {
        let above = std::iter::successors(Some(name), |name| name.parent()).enumerate();
        above.flat_map(move |(labels, of)| {
            let rules = self.of(of).iter().filter(move |(scope, ..)| scope.covers(labels));
            rules.map(move |rule| (of, *rule))
        })
    }

    /// The entry that wins for a name.
    fn answer(&self, name: &Name) -> Option<Answer> {
        let rank = |(of, (scope, precedence, _)): &(&Name, Rule)| {
            (precedence.level, of.len(), precedence.weight, Reverse(*scope))
        };
        let (of, (scope, _, verdict)) = self.covering(name).max_by_key(rank)?;
        Some(Answer { verdict, scope, length: u32::try_from(of.len()).ok()? })
    }

    /// The labels of a name's public suffix, by the rules of a list of public suffixes. Those of a rule count
    /// its `*`; an exception has one less and wins over all others; where no rule matches, `*` does.
    fn suffix_labels(&self, name: &Name) -> usize {
        let of = |(of, (scope, _, verdict)): (&Name, Rule)| {
            let labels = of.components().count();
            match (verdict, scope) {
                (Verdict::Exception, _) => (true, labels.saturating_sub(1)),
                (_, Scope::OneLabel | Scope::Beneath) => (false, labels + 1),
                (_, Scope::Exact | Scope::Subtree) => (false, labels),
            }
        };
        self.covering(name).map(of).max().map_or(1, |(_, labels)| labels)
    }
}

impl ListTruth {
    pub(super) fn new(entries: Entries, table: Truth, answers: Answers, labels: Labels) -> Self {
        Self { entries, table, answers, labels }
    }

    /// The answer of the list for a name that its table has this match for, if the answer is wrong.
    fn wrong(&self, name: &Name, found: Match) -> Option<Wrong> {
        let wrong = |right, found| Wrong::List { name: name.to_string(), right, found };
        let (right, found_answer) = (self.entries.answer(name), self.answers.answer(name, found));
        if right != found_answer {
            return Some(wrong(self.shown(name, right), self.shown(name, found_answer)));
        }
        if !self.answers.is_of_suffixes() || name.is_empty() {
            return None;
        }
        let labels = self.entries.suffix_labels(name);
        let of = |labels: usize| {
            let all: Vec<_> = name.components().collect();
            all.get(..labels).and_then(|first| NameBuf::from_components(first.iter().copied()).ok())
        };
        let (suffix, registrable) = (of(labels), of(labels + 1));
        let found = self.answers.suffix(name, found);
        let is_right = found.is_some_and(|found: Suffix<'_>| {
            (Some(found.suffix), found.registrable) == (suffix.as_deref(), registrable.as_deref())
        });
        (!is_right).then(|| {
            let shown = |suffix: Option<&Name>, registrable: Option<&Name>| {
                let [suffix, registrable] =
                    [suffix, registrable].map(|name| name.map_or_else(|| "-".to_owned(), Name::to_string));
                format!("suffix {suffix}, registrable {registrable}")
            };
            let found = shown(found.map(|found| found.suffix), found.and_then(|found| found.registrable));
            wrong(shown(suffix.as_deref(), registrable.as_deref()), found)
        })
    }

    /// An answer as text.
    fn shown(&self, name: &Name, answer: Option<Answer>) -> String {
        let Some(answer) = answer else { return "no match".to_owned() };
        let value = match answer.verdict {
            Verdict::Exception => "exception".to_owned(),
            Verdict::Value(value) => match self.labels.label(value.get()) {
                Some(Label::Word(word)) => word.to_owned(),
                _ => value.to_string(),
            },
        };
        format!("{} {} {value}", answer.entry(name), answer.scope)
    }
}

impl check::Truth<NameDomain> for ListTruth {
    type Lookups = OfNames;
    type Mismatch = Wrong;
    type Scratch = Vec<Match>;
    type Aside = Nothing;

    const ENTRIES: [&'static str; 2] = Truth::ENTRIES;
    const KEYS: &'static str = Truth::KEYS;

    fn entries(&self) -> usize {
        self.entries.rules.len()
    }

    fn parts(&self) -> usize {
        self.table.parts()
    }

    fn check(
        &self,
        part: usize,
        table: &Subject<'_, NameDomain>,
        found: &mut Vec<Match>,
        verdict: &mut verdict::Verdict<Wrong>,
    ) {
        let (batch, right) = self.table.part(part);
        let names = batch.names();
        hold(table, names, &right, found, verdict, Wrong::Table);
        for (name, &found) in names.iter().zip(&right) {
            if let Some(wrong) = self.wrong(name, found) {
                verdict.wrong(|| wrong);
            }
        }
    }

    fn sample(&self) -> NameKeys {
        self.table.sample()
    }

    fn aside(&self) -> Nothing {
        Nothing {}
    }
}

#[cfg(test)]
mod tests {
    use wirespeed::names::lists::oracle::Oracle;
    use wirespeed::names::lists::{Entries as List, Resolved};
    use wirespeed::names::read::lists::{ListOptions, read_list_from};

    use super::*;

    const HOSTS: &str = "0.0.0.0 ads.example.com pixel.example\n192.0.2.7 www.example\n";
    const FILTER: &str = "||ads.example^\n@@||good.ads.example^\n||x.good.ads.example^\n\
        ||worse.good.ads.example^$important\nbanner.example\n||*.wild.example^\n";
    const SUFFIXES: &str = "// ===BEGIN ICANN DOMAINS===\ncom\nuk\nco.uk\n*.ck\n!www.ck\n*.k.jp\n!c.k.jp\njp\n\
        // ===END ICANN DOMAINS===\n";

    fn list(text: &str) -> List {
        read_list_from(text.as_bytes(), "list", &ListOptions::default()).unwrap().0.list
    }

    /// The truth about a list, with the table and the answers that a list becomes: this one or another.
    fn truth(list: &List, becomes: Resolved) -> ListTruth {
        let Resolved { names, answers } = becomes;
        ListTruth::new(Entries::new(list.iter()), Truth::of(&names, false), answers, Labels::default())
    }

    /// The wrong answers of the list at names of a part.
    fn wrong(truth: &ListTruth, part: usize) -> Vec<Wrong> {
        let (names, right) = truth.table.part(part);
        let all = names.names().iter().zip(&right);
        all.filter_map(|(name, &found)| truth.wrong(name, found)).collect()
    }

    #[test]
    fn lists_are_right_and_the_truth_is_that_of_the_walk_over_all_entries() {
        for text in [HOSTS, FILTER, SUFFIXES] {
            let list = list(text);
            let truth = truth(&list, list.clone().resolve());
            assert_eq!((wrong(&truth, 0), wrong(&truth, 1)), (vec![], vec![]));
            let oracle = Oracle(list.iter().collect());
            let (names, _) = truth.table.part(0);
            assert!(names.len() > 15);
            for name in names.names().iter() {
                assert_eq!(truth.entries.answer(name), oracle.lookup(name), "{name}");
            }
        }
    }

    #[test]
    fn answers_of_other_lists_are_found_out() {
        for (text, from, to, says) in [
            (HOSTS, "192.0.2.7", "0.0.0.0", "/example/www: the list says"),
            (FILTER, "@@", "", "/example/ads/good: the list says"),
            (FILTER, "$important", "", "/example/ads/good/worse: the list says"),
            (
                FILTER,
                "||*.wild",
                "||wild",
                "/example/wild: the list says /example/wild subtree 1, right is no match",
            ),
            (
                SUFFIXES,
                "!www.ck",
                "www.ck",
                "/ck/www: the list says /ck/www subtree 1, right is /ck/www subtree exception",
            ),
            (SUFFIXES, "*.k.jp", "k.jp", "/jp/k/x: the list says"),
        ] {
            let (right, other) = (list(text), list(&text.replace(from, to)));
            let found = wrong(&truth(&right, other.resolve()), 0);
            assert!(found.iter().any(|wrong| wrong.to_string().starts_with(says)), "{from}: {found:?}");
        }
    }

    #[test]
    fn suffixes_by_the_number_of_labels() {
        let entries = Entries::new(list(SUFFIXES).iter());
        for (domain, labels) in [
            ("example.com", 1),
            ("a.b.co.uk", 2),
            ("a.uk", 1),
            ("a.b.ck", 2),
            ("ck", 1),
            ("a.www.ck", 1),
            ("a.b.k.jp", 3),
            ("a.c.k.jp", 2),
            ("k.jp", 1),
            ("a.test", 1),
        ] {
            let name = NameBuf::from_domain(domain.as_bytes()).unwrap();
            assert_eq!(entries.suffix_labels(&name), labels, "{domain}");
        }
    }
}
