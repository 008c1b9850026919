//! [`lines`]: the statements of a rule as lines of a chain.

use serde_json::Value;

use super::key::{Family, Key, Packets, protocols, single, text};
use super::matches::{Condition, all_of, conditions, each_with_each, element_of, keys};
use super::sets::{Sets, plain};
use crate::read::assume::AssumptionKey;
use crate::read::chains::{Fact, Line, Region, Then, TooMany, When};
use crate::read::report::Place;

/// What rules of a table are read with.
pub(super) struct Reader<'s> {
    pub(super) packets: Packets,
    pub(super) sets: &'s Sets,
}

/// What a statement comes to.
enum Statement {
    /// Packets of these conditions go on to the next one.
    If(Vec<Condition>),
    /// Something is done to packets of these conditions, and they go on.
    Does(Then),
    /// The rule ends here.
    Ends(Vec<(Condition, Then)>),
    /// Says nothing about packets, and does nothing to them.
    Nothing,
}

impl Reader<'_> {
    /// The lines of a rule; `at` is its place in the file and `text` what is shown of it.
    pub(super) fn lines(&self, at: Place, text: &str, expressions: &[Value]) -> Vec<Line> {
        match self.try_lines(at, text, expressions) {
            Ok(lines) => lines,
            Err(error) => vec![unknown(at, text, error.to_string())],
        }
    }

    fn try_lines(&self, at: Place, text: &str, expressions: &[Value]) -> Result<Vec<Line>, TooMany> {
        let mut lines = Vec::new();
        let mut conditions = vec![Condition::always()];
        let mut put = |condition: &Condition, then: &Then| -> Result<(), TooMany> {
            let when = When { region: condition.region.clone(), facts: condition.facts.clone() };
            let line = Line { at, text: text.to_owned(), when, then: then.clone() };
            if condition.is_transport {
                lines.extend(line.of_transport(self.packets.fields)?);
            } else {
                lines.push(line);
            }
            Ok(())
        };
        for (place, expression) in expressions.iter().enumerate() {
            match self.statement(expression)? {
                Statement::Nothing => {}
                Statement::If(more) => conditions = each_with_each(&conditions, &more)?,
                Statement::Does(then) => {
                    conditions.iter().try_for_each(|condition| put(condition, &then))?;
                    // Whatever comes after it, it may be done or not.
                    if matches!(then, Then::Unknown(_)) {
                        return Ok(lines);
                    }
                }
                Statement::Ends(ways) => {
                    let is_last = expressions[place + 1..].iter().all(says_nothing);
                    let unlike = Then::Unknown("a statement after a verdict".to_owned());
                    for (condition, then) in &ways {
                        let both = each_with_each(&conditions, std::slice::from_ref(condition))?;
                        let then = if is_last { then } else { &unlike };
                        both.iter().try_for_each(|condition| put(condition, then))?;
                    }
                    return Ok(lines);
                }
            }
        }
        conditions.iter().try_for_each(|condition| put(condition, &Then::Continue))?;
        Ok(lines)
    }

    fn statement(&self, expression: &Value) -> Result<Statement, TooMany> {
        let unlike = |why: String| Ok(Statement::Does(Then::Unknown(why)));
        // A verdict alone may be written as its name.
        let (kind, value) = match expression {
            Value::String(kind) => (kind.as_str(), &Value::Null),
            _ => match single(expression) {
                Some(pair) => pair,
                None => return unlike("a statement that is none".to_owned()),
            },
        };
        let fact = |fact: Fact| {
            let mut condition = Condition::always();
            condition.facts.push(fact);
            Ok(Statement::If(vec![condition]))
        };
        let limit = |words: &[&str]| Fact::one_of(AssumptionKey::Limit, words, "a limit");
        match kind {
            "match" => conditions(value, self.packets, self.sets).map(Statement::If),
            "vmap" => self.map(value),
            "accept" | "drop" | "return" | "continue" | "jump" | "goto" => match verdict(kind, value) {
                Some(then) => Ok(Statement::Ends(vec![(Condition::always(), then)])),
                None => unlike(format!("a {kind} that isn't understood")),
            },
            "queue" => Ok(Statement::Ends(vec![(Condition::always(), Then::Verdict("queue".to_owned()))])),
            "reject" => self.reject(value),
            _ if says_nothing(expression) => Ok(Statement::Nothing),
            "log" | "last" | "dup" | "flow" | "ct helper" | "ct timeout" | "ct expectation" | "secmark" => {
                Ok(Statement::Does(Then::Continue))
            }
            "notrack" => Ok(Statement::Does(Then::Change(vec![
                AssumptionKey::Ct,
                AssumptionKey::CtDirection,
                AssumptionKey::CtMark,
                AssumptionKey::CtZone,
            ]))),
            "mangle" => Ok(Statement::Does(mangle(value))),
            "limit" if value.is_object() => match value.get("inv") {
                None | Some(Value::Bool(false)) => fact(limit(&["under"])),
                Some(Value::Bool(true)) => fact(limit(&["over"])),
                Some(_) => fact(Fact::unknown("a limit")),
            },
            // A full set or a rate of its own stops the rule.
            "set" | "map" | "meter" => fact(Fact::unknown(format!("whether the {kind} takes an element"))),
            "limit" | "quota" | "ct count" => fact(Fact::unknown(format!("a {kind}"))),
            "xt" if text(value, "type") == Some("match") => fact(Fact::unknown(format!(
                "a match of xtables ({})",
                text(value, "name").unwrap_or_default()
            ))),
            other => unlike(format!("a statement of unknown effect ({other})")),
        }
    }

    /// A map of verdicts.
    fn map(&self, value: &Value) -> Result<Statement, TooMany> {
        let (Some(key), Some(data), Some(2)) =
            (value.get("key"), value.get("data"), value.as_object().map(serde_json::Map::len))
        else {
            return Ok(Statement::Does(Then::Unknown("a map that isn't understood".to_owned())));
        };
        let keys = match single(key) {
            Some(("concat", parts)) => keys(parts, self.packets)?,
            _ => vec![Key::parse(key, self.packets)?],
        };
        let within = all_of(&keys)?;
        let unknown = |why: String| Ok(Statement::Ends(vec![(within.clone(), Then::Unknown(why))]));
        let pairs = match self.sets.elements(data) {
            Ok(Some(pairs)) => pairs,
            Ok(None) => return unknown("a map that isn't understood".to_owned()),
            Err(why) => return unknown(why),
        };
        let (mut ways, mut default) = (Vec::new(), None);
        for pair in pairs {
            let pair = pair.as_array().map_or(&[][..], Vec::as_slice);
            let [of, data] = pair else { return unknown("a map that isn't of pairs".to_owned()) };
            let Some(of) = plain(of) else {
                return unknown("a map with more than values".to_owned());
            };
            let Some(then) = single(data).and_then(|(kind, value)| verdict(kind, value)) else {
                return unknown("a map that isn't of verdicts".to_owned());
            };
            if of.as_str() == Some("*") {
                if default.replace(then).is_some() {
                    return unknown("a map of two defaults".to_owned());
                }
                continue;
            }
            ways.extend(element_of(&keys, of)?.into_iter().map(|one| (one, then.clone())));
        }
        if let Some(then) = default {
            let mut rest = within;
            for (one, _) in &ways {
                match &one.facts[..] {
                    [] => rest.region = rest.region.minus(&one.region)?,
                    // Not this one: known of packets that are of nothing else but the one fact.
                    [fact] if keys.len() == 1 => rest.facts.push(fact.clone().negated_if(true)),
                    _ => rest.facts.push(Fact::unknown("the default of a map")),
                }
            }
            ways.push((rest, then));
        }
        Ok(Statement::Ends(ways))
    }

    /// nft has it for those packets alone that can be answered so.
    fn reject(&self, value: &Value) -> Result<Statement, TooMany> {
        let is_inet = self.packets.family == Family::Inet;
        let region = match (value, text(value, "type")) {
            (Value::Null, _) | (_, Some("icmpx")) => Region::all(),
            (Value::Object(object), None) if object.is_empty() => Region::all(),
            (_, Some("icmp")) if is_inet && self.packets.fields.are_v6() => Region::none(),
            (_, Some("icmpv6")) if is_inet && !self.packets.fields.are_v6() => Region::none(),
            (_, Some("icmp" | "icmpv6")) => Region::all(),
            (_, Some("tcp reset")) => protocols(self.packets.fields, &[6]),
            _ => return Ok(Statement::Does(Then::Unknown("a reject that isn't understood".to_owned()))),
        };
        let mut condition = Condition::always();
        condition.region = region;
        Ok(Statement::Ends(vec![(condition, Then::Verdict("reject".to_owned()))]))
    }
}

fn says_nothing(expression: &Value) -> bool {
    matches!(single(expression), Some(("counter" | "comment", _)))
}

fn verdict(kind: &str, value: &Value) -> Option<Then> {
    let target = || match value.as_object().map(serde_json::Map::len) {
        Some(1) => text(value, "target").map(str::to_owned),
        _ => None,
    };
    match (kind, value) {
        ("accept" | "drop", Value::Null) => Some(Then::Verdict(kind.to_owned())),
        ("return", Value::Null) => Some(Then::Return),
        ("continue", Value::Null) => Some(Then::Continue),
        ("jump", _) => target().map(Then::Jump),
        ("goto", _) => target().map(Then::Goto),
        _ => None,
    }
}

/// What a change of a packet changes for the rules after it.
fn mangle(value: &Value) -> Then {
    let unlike = || Then::Unknown("a change of the packet".to_owned());
    let Some((kind, key)) = value.get("key").and_then(single) else { return unlike() };
    match (kind, text(key, "key")) {
        ("meta", Some("mark")) => Then::Change(vec![AssumptionKey::Mark]),
        ("meta", Some("pkttype")) => Then::Change(vec![AssumptionKey::PacketType]),
        ("meta", Some("nftrace" | "priority" | "secmark")) => Then::Continue,
        ("ct", Some("mark")) => Then::Change(vec![AssumptionKey::CtMark]),
        // Of a packet that is not tracked yet, which is looked up there then.
        ("ct", Some("zone")) => Then::Change(vec![
            AssumptionKey::Ct,
            AssumptionKey::CtDirection,
            AssumptionKey::CtMark,
            AssumptionKey::CtZone,
        ]),
        ("ct", Some("event" | "label" | "secmark" | "helper")) => Then::Continue,
        ("tcp option", _) => Then::Continue,
        _ => unlike(),
    }
}

/// A line of which nobody knows anything.
pub(super) fn unknown(at: Place, text: &str, why: String) -> Line {
    Line { at, text: text.to_owned(), when: When::always(), then: Then::Unknown(why) }
}
