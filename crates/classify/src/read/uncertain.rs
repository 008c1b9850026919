//! [`Doubts`]: the rules that could change an answer.
//!
//! A rule that depends on facts outside a tuple may be in effect or not. It is not among the rules that
//! lookups use. It is kept beside them as an [`Uncertain`] rule. An answer is in doubt if such a rule
//! matches, ranks ahead of the answer's rule, and could give another action. The packet gets the action of
//! the answer or of one of its doubts.
//!
//! A rule that lookups use may also be wider than in its file: a filter of ClassBench that looks at TCP flags
//! is. An answer is in doubt if it is such a rule.

use std::fmt::Write as _;

use wirespeed_table::sort_by_number;

use super::assume::Assumption;
use super::report::{LeftOut, Place};
use crate::rank::{Rank, RuleNumber};
use crate::rule::Rule;
use crate::rules::RuleSet;
use crate::text::RuleTextError;
use crate::tuple::Tuple;

/// A rule that may be in effect or not, with its position among the rules, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertain<T> {
    /// A rule that matches at least every packet that the uncertain rule can match; with its priority, and
    /// the action that it could give.
    pub rule: Rule<T>,
    /// The possible effect.
    pub effect: Effect,
    /// The number of the first rule of its priority that comes after it, or its own number if it is
    /// [wider](Effect::Wider) than in its file.
    pub before: u32,
    /// The number of uncertain rules after it that belong to it, and that packets which it matches do not
    /// reach: lines of a chain that packets perhaps run through, if this line has no further condition.
    pub skips: u32,
    /// The rule in the file, and the reason.
    pub why: LeftOut,
}

/// The possible effect of an [`Uncertain`] rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Could give the action of its rule.
    Action,
    /// Could give any action or none, or hide rules behind it. The action of its rule has no meaning.
    Any,
    /// Gives no action, but makes packets skip [`skips`](Uncertain::skips) uncertain rules.
    Skip,
    /// Is a rule that lookups use, and matches packets that the rule in its file doesn't match. For these
    /// packets a later rule would count.
    Wider,
}

/// The uncertain rules of a set, and the assumptions under which it was read: everything that a table needs
/// from the files of its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubts<T> {
    /// The rules that may be in effect or not, in the order of their files.
    pub uncertain: Vec<Uncertain<T>>,
    /// The rules that are wider than in their file, from the first of all rules to the last.
    widened: Vec<Uncertain<T>>,
    /// The assumptions that decided something.
    pub assumed: Vec<Assumption>,
}

/// Text that [`Doubts::to_text`] didn't write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of what is in doubt: {why}")]
pub struct DoubtsError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub why: String,
}

impl Effect {
    const ALL: [Self; 4] = [Self::Action, Self::Any, Self::Skip, Self::Wider];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Any => "any",
            Self::Skip => "skip",
            Self::Wider => "wider",
        }
    }
}

impl<T: Tuple> Uncertain<T> {
    /// The action that it could give; `None` if it could give any or gives none.
    pub fn action(&self) -> Option<u32> {
        (self.effect == Effect::Action).then(|| self.rule.action())
    }

    /// Its rank among the rules. The larger rank comes first, and among equals it comes before the rule.
    const fn rank(&self) -> Rank {
        Rank::from_bits((self.rule.priority() as u64) << 32 | !self.before as u64)
    }

    /// Whether it could give another action than a rule's action, or an action if there is no rule.
    fn differs_from(&self, action: Option<u32>) -> bool {
        match self.effect {
            Effect::Action => action != Some(self.rule.action()),
            Effect::Any | Effect::Wider => true,
            Effect::Skip => false,
        }
    }
}

impl<T> Doubts<T> {
    /// The rules that are wider than in their file, from the first of all rules to the last. An answer that
    /// is such a rule is in doubt: the rule in the file may not match the packet.
    pub fn widened(&self) -> &[Uncertain<T>] {
        &self.widened
    }
}

impl<T: Tuple> Doubts<T> {
    /// No doubts.
    pub const fn none() -> Self {
        Self { uncertain: Vec::new(), widened: Vec::new(), assumed: Vec::new() }
    }

    /// Whether no answer can be in doubt.
    pub fn is_empty(&self) -> bool {
        self.uncertain.is_empty() && self.widened.is_empty()
    }

    /// Records that a rule is wider than its line.
    pub(super) fn widen(&mut self, number: u32, rule: Rule<T>, why: LeftOut) {
        let one = Uncertain { rule, effect: Effect::Wider, before: number, skips: 0, why };
        let at = self.widened.partition_point(|other| other.rank() >= one.rank());
        self.widened.insert(at, one);
    }

    /// Gives the rules other numbers, in the same order.
    pub fn renumber(&mut self, mut number: impl FnMut(u32) -> u32) {
        for one in self.uncertain.iter_mut().chain(&mut self.widened) {
            one.before = number(one.before);
        }
    }

    /// The uncertain rules that could change an answer, in order. The answer is the number from a lookup of
    /// the tuple: 0 if no rule matches. O(n) for n uncertain rules.
    pub fn of_answer(
        &self,
        rules: &RuleSet<T>,
        tuple: &T,
        answer: u32,
    ) -> impl Iterator<Item = &Uncertain<T>> {
        let rule = rules.rule(answer);
        let rank = rule.zip(RuleNumber::new(answer)).map(|(rule, number)| Rank::new(rule.priority(), number));
        self.of_ranked(tuple, rank.unwrap_or(Rank::NONE), rule.map(Rule::action))
    }

    /// The rules of [`of_answer`](Self::of_answer), if the rank and the action of the answer's rule are
    /// known: [`Rank::NONE`] and `None` if no rule matches. The last of them is the answer's own rule, if it
    /// is wider than in its file.
    pub fn of_ranked(
        &self,
        tuple: &T,
        rank: Rank,
        action: Option<u32>,
    ) -> impl Iterator<Item = &Uncertain<T>> {
        let mut rest = self.uncertain.iter();
        let ahead = self.widened.partition_point(|one| one.rank() > rank);
        let own = self.widened[ahead..].iter().take_while(move |one| one.rank() == rank);
        let own = own.filter(move |one| one.rule.matches(tuple));
        let others = std::iter::from_fn(move || {
            loop {
                let one = rest.next()?;
                if !(one.rank() >= rank && one.rule.matches(tuple)) {
                    continue;
                }
                if let Some(last) = one.skips.checked_sub(1) {
                    rest.nth(usize::try_from(last).unwrap_or(usize::MAX));
                }
                if one.differs_from(action) {
                    return Some(one);
                }
            }
        });
        others.chain(own)
    }

    /// Adds the doubts of rules that come after others in one set, with their numbers shifted.
    #[inline(never)] // one copy for all crates
    pub fn append(&mut self, mut other: Self, shift: u32) {
        other.renumber(|number| number.saturating_add(shift));
        self.uncertain.extend(other.uncertain);
        self.widened.extend(other.widened);
        self.sort_widened();
        for assumption in other.assumed {
            if !self.assumed.contains(&assumption) {
                self.assumed.push(assumption);
            }
        }
    }

    fn sort_widened(&mut self) {
        sort_by_number(&mut self.widened, |one| !one.rank().bits());
    }

    /// Replaces the actions of the rules.
    pub fn map_actions<E>(mut self, mut action: impl FnMut(u32) -> Result<u32, E>) -> Result<Self, E> {
        for one in self.uncertain.iter_mut().filter(|one| one.effect == Effect::Action) {
            one.rule = one.rule.clone().with_action(action(one.rule.action())?);
        }
        Ok(self)
    }

    /// All doubts as lines of text, for [`from_text`](Self::from_text).
    ///
    /// ```text
    /// assume ct=new
    /// before=3 effect=action skips=0 line=7 src=10.0.0.0/8 priority=0 action=1<TAB>a match of owner<TAB>-A OUTPUT -s 10.0.0.0/8 -m owner ...
    /// ```
    #[inline(never)] // one copy for all crates
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for assumption in &self.assumed {
            let _ = writeln!(text, "assume {assumption}"); // a String takes all
        }
        for Uncertain { rule, effect, before, skips, why } in self.uncertain.iter().chain(&self.widened) {
            let (effect, line) = (effect.as_str(), why.place.word());
            let (reason, said) = (escaped(&why.why), escaped(&why.text));
            let _ = writeln!(
                text,
                "before={before} effect={effect} skips={skips} line={line} {rule}\t{reason}\t{said}"
            );
        }
        text
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    #[inline(never)] // one copy for all crates
    pub fn from_text(text: &str) -> Result<Self, DoubtsError> {
        let mut doubts = Self::none();
        for (at, line) in (1..).zip(text.lines()) {
            let wrong = |why: String| DoubtsError { line: at, why };
            match line.strip_prefix("assume ") {
                Some(assumption) => {
                    doubts.assumed.push(assumption.parse().map_err(|error| wrong(format!("{error}")))?);
                }
                None => {
                    let one = uncertain(line).map_err(wrong)?;
                    let is_wider = one.effect == Effect::Wider;
                    if is_wider { doubts.widened.push(one) } else { doubts.uncertain.push(one) }
                }
            }
        }
        doubts.sort_widened();
        Ok(doubts)
    }
}

impl<T: Tuple> Default for Doubts<T> {
    fn default() -> Self {
        Self::none()
    }
}

fn uncertain<T: Tuple>(line: &str) -> Result<Uncertain<T>, String> {
    let Head { rule, effect, before, skips, why } = Head::parse(line)?;
    let rule = rule.parse().map_err(|error: RuleTextError| error.to_string())?;
    Ok(Uncertain { rule, effect, before, skips, why })
}

/// A line of what is in doubt, with its rule as text.
struct Head<'l> {
    rule: &'l str,
    effect: Effect,
    before: u32,
    skips: u32,
    why: LeftOut,
}

impl<'l> Head<'l> {
    fn parse(line: &'l str) -> Result<Self, String> {
        let mut parts = line.split('\t');
        let (Some(head), Some(why), Some(text), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("not a rule, a reason and a text".to_owned());
        };
        let mut words = head.splitn(5, ' ');
        let mut value = |name: &str| {
            let value = words.next().and_then(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.ok_or_else(|| format!("no {name}"))
        };
        let number = |value: &str| value.parse::<u32>().map_err(|_| format!("{value} is no number"));
        let (before, effect) = (number(value("before")?)?, value("effect")?);
        let effect = Effect::ALL.into_iter().find(|known| known.as_str() == effect);
        let (skips, line) = (number(value("skips")?)?, value("line")?);
        let place = Place::parse(line).ok_or_else(|| format!("{line} is no line"))?;
        let rule = words.next().ok_or("no rule")?;
        let why = LeftOut { place, why: unescaped(why)?, text: unescaped(text)? };
        Ok(Self { rule, effect: effect.ok_or("no such effect")?, before, skips, why })
    }
}

/// Text without tabs and ends of lines.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut chars = text.chars();
    let mut plain = String::new();
    while let Some(c) = chars.next() {
        plain.push(match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('\\')) => '\\',
            ('\\', Some('t')) => '\t',
            ('\\', Some('n')) => '\n',
            ('\\', Some('r')) => '\r',
            ('\\', _) => return Err("a backslash that stands for nothing".to_owned()),
            (c, _) => c,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ipv4Tuple;

    fn one(rule: &str, before: u32, effect: Effect) -> Uncertain<Ipv4Tuple> {
        let why = LeftOut {
            place: Place { line: 7, entry: std::num::NonZeroU64::new(4) },
            why: "a\ttab \\ and\nmore".to_owned(),
            text: "-A é \"x\"".to_owned(),
        };
        Uncertain { rule: rule.parse().expect("a rule"), effect, before, skips: 0, why }
    }

    fn rules() -> RuleSet<Ipv4Tuple> {
        let rules = ["tcp dport=80 action=1", "tcp priority=5 action=2", "action=1"];
        rules.iter().map(|rule| rule.parse::<Rule<_>>().expect("a rule")).collect()
    }

    #[test]
    fn a_doubt_is_ahead_matches_and_differs() {
        let tuple = "tcp dport=80".parse().expect("a tuple");
        for (uncertain, answer, is_in_doubt) in [
            (one("tcp action=9", 1, Effect::Action), 1, true),
            (one("tcp action=1", 1, Effect::Action), 1, false),
            (one("tcp action=1", 1, Effect::Any), 1, true),
            (one("tcp action=9", 1, Effect::Skip), 1, false),
            (one("udp action=9", 1, Effect::Action), 1, false),
            (one("tcp action=9", 2, Effect::Action), 1, false),
            (one("tcp action=9", 2, Effect::Action), 3, true),
            (one("tcp action=9", 1, Effect::Action), 2, false),
            (one("tcp action=9 priority=6", 4, Effect::Action), 2, true),
            (one("tcp action=9", 4, Effect::Action), 0, true),
        ] {
            let doubts = Doubts { uncertain: vec![uncertain], ..Doubts::none() };
            let found = doubts.of_answer(&rules(), &tuple, answer).count();
            assert_eq!(found, usize::from(is_in_doubt), "{doubts:?} of {answer}");
        }
    }

    #[test]
    fn what_is_skipped_is_no_doubt() {
        let skip = |rule: &str, effect, skips| Uncertain { skips, ..one(rule, 1, effect) };
        let doubts = Doubts {
            uncertain: vec![
                skip("dport=80 action=7", Effect::Action, 2),
                skip("tcp action=8", Effect::Action, 0),
                skip("tcp action=9", Effect::Action, 0),
                skip("dport=80", Effect::Skip, 1),
                skip("tcp action=10", Effect::Action, 0),
                skip("tcp action=11", Effect::Action, 9),
            ],
            ..Doubts::none()
        };
        let actions = |tuple: &str| {
            let tuple = tuple.parse().expect("a tuple");
            doubts.of_answer(&rules(), &tuple, 1).filter_map(Uncertain::action).collect::<Vec<_>>()
        };
        assert_eq!(actions("tcp dport=80"), [7, 11]);
        assert_eq!(actions("tcp dport=81"), [8, 9, 10, 11]);
        assert_eq!(actions("udp dport=80"), [7]);
    }

    #[test]
    fn an_answer_that_is_wider_than_said_is_in_doubt() {
        let mut doubts = Doubts::none();
        let (rules, why) = (rules(), one("priority=0", 1, Effect::Any).why);
        for number in [3, 1, 2] {
            let rule = rules.rule(number).expect("a rule").clone();
            doubts.widen(number, rule, why.clone());
        }
        // Rule 2 ranks ahead of the others.
        let order: Vec<_> = doubts.widened().iter().map(|one| one.before).collect();
        assert_eq!(order, [2, 1, 3]);
        assert!(!doubts.is_empty());
        let found = |doubts: &Doubts<_>, answer| {
            let tuple = "tcp dport=80".parse().expect("a tuple");
            let found = doubts.of_answer(&rules, &tuple, answer);
            found.map(|one| (one.effect, one.before)).collect::<Vec<_>>()
        };
        for answer in 1..=3 {
            assert_eq!(found(&doubts, answer), [(Effect::Wider, answer)]);
        }
        assert_eq!(found(&doubts, 0), []);
        // What doesn't match the tuple was put in place of the rule that is meant.
        let udp = "udp".parse().expect("a tuple");
        assert_eq!(doubts.of_answer(&rules, &udp, 1).count(), 0);
        // Both kinds of doubt, after rules of another file.
        let mut both =
            Doubts { uncertain: vec![one("tcp action=9 priority=9", 1, Effect::Action)], ..Doubts::none() };
        let one_only = Doubts { widened: vec![doubts.widened[1].clone()], ..Doubts::none() };
        both.append(one_only, 2);
        assert_eq!(found(&both, 3), [(Effect::Action, 1), (Effect::Wider, 3)]);
        assert_eq!(found(&both, 1), [(Effect::Action, 1)]);
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        let doubts = Doubts {
            uncertain: vec![
                one("src=10.0.0.0/8 dport=5-77 proto=tcp priority=4 action=3", 2, Effect::Action),
                Uncertain { skips: 3, ..one("priority=4294967295", u32::MAX, Effect::Any) },
                one("tcp", 1, Effect::Skip),
            ],
            widened: vec![
                one("tcp priority=7", 3, Effect::Wider),
                one("udp", 1, Effect::Wider),
                one("udp", 2, Effect::Wider),
            ],
            assumed: vec!["ct=new".parse().expect("one"), "in=eth0".parse().expect("one")],
        };
        assert_eq!(Doubts::from_text(&doubts.to_text()), Ok(doubts));
        assert_eq!(Doubts::<Ipv4Tuple>::from_text(""), Ok(Doubts::none()));
        for wrong in [
            "x",
            "assume ct=x",
            "before=1 effect=none skips=0 line=1 action=1\ta\tb",
            "before=1 effect=any skips=0 line=1 action=1\ta",
            "before=4294967296 effect=any skips=0 line=1 tcp\ta\tb",
            "before=1 effect=any skips=0 line=1 tcp\ta\\\tb",
            "before=1 effect=any skips=0 line=1 x=1\ta\tb",
            "effect=any before=1 skips=0 line=1 tcp\ta\tb",
        ] {
            assert!(Doubts::<Ipv4Tuple>::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
