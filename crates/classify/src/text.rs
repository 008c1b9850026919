//! Rules as text: `src=10.0.0.0/8 dport=1024-65535 proto=tcp priority=10 action=3`.

use std::fmt;
use std::str::FromStr;

use crate::error::RuleError;
use crate::rule::Rule;
use crate::tuple::{Field, FieldMatch, Fields, Tuple, TupleError, decimal};

/// Text that is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleTextError {
    /// Text without a field, a priority or an action, as in a line that was cut off.
    #[error("nothing is said: a rule of all packets is written priority=0")]
    Empty,
    /// A word that is not a field, or not a value of its field.
    #[error(transparent)]
    Tuple(#[from] TupleError),
    /// Ranges that a rule can't have.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A priority or an action that is not a decimal number of 32 bits without leading zeros.
    #[error("{0:?} is no {1}")]
    Number(String, &'static str),
}

impl<T: Tuple> FromStr for Rule<T> {
    type Err = RuleTextError;

    /// Reads fields in any order, as `V`, `V/LENGTH`, `V/MASK`, `FROM-TO` or `*`. A field that is not given
    /// may be anything. A priority or an action that is not given is 0.
    fn from_str(text: &str) -> Result<Self, RuleTextError> {
        Parts::parse(Fields::of::<T>(), text)?.rule()
    }
}

fn whole(number: &str, what: &'static str) -> Result<u32, RuleTextError> {
    let parsed = decimal(number).and_then(|number| u32::try_from(number).ok());
    parsed.ok_or_else(|| RuleTextError::Number(number.to_owned(), what))
}

/// The parts of a rule, as text is read. Readers of other formats add theirs.
#[derive(Debug)]
pub(crate) struct Parts {
    fields: Fields,
    wanted: Vec<(&'static Field, FieldMatch)>,
    priority: u32,
    action: u32,
}

impl Parts {
    /// The parts of a rule of all packets.
    pub(crate) const fn new(fields: Fields) -> Self {
        Self { fields, wanted: Vec::new(), priority: 0, action: 0 }
    }

    fn parse(fields: Fields, text: &str) -> Result<Self, RuleTextError> {
        let mut parts = Self::new(fields);
        let (mut has_priority, mut has_action, mut is_empty) = (false, false, true);
        for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
            is_empty = false;
            match word.split_once('=') {
                Some(("priority", _)) if std::mem::replace(&mut has_priority, true) => {
                    return Err(TupleError::Twice("priority").into());
                }
                Some(("action", _)) if std::mem::replace(&mut has_action, true) => {
                    return Err(TupleError::Twice("action").into());
                }
                Some(("priority", number)) => parts.priority = whole(number, "priority")?,
                Some(("action", number)) => parts.action = whole(number, "action")?,
                Some((name, value)) => parts.field(name, value)?,
                None => parts.add(fields.of_protocol(word)?, word)?,
            }
        }
        if is_empty { Err(RuleTextError::Empty) } else { Ok(parts) }
    }

    /// Adds the condition on a field, by its name.
    pub(crate) fn field(&mut self, name: &str, value: &str) -> Result<(), RuleTextError> {
        self.add(self.fields.get(name)?, value)
    }

    fn add(&mut self, field: &'static Field, value: &str) -> Result<(), RuleTextError> {
        let wanted = field.parse_match(value).map_err(TupleError::from)?;
        if self.wanted.iter().any(|(given, _)| *given == field) {
            return Err(TupleError::Twice(field.name).into());
        }
        self.wanted.push((field, wanted));
        Ok(())
    }

    /// The rule.
    #[inline(never)] // one copy for all crates
    pub(crate) fn rule<T: Tuple>(self) -> Result<Rule<T>, RuleTextError> {
        Ok(Rule::wanting(&self.wanted, self.priority, self.action)?)
    }
}

impl<T: Tuple> fmt::Display for Rule<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in T::FIELDS {
            match self.field(field) {
                FieldMatch::Masked { mask: 0, .. } => {}
                wanted => write!(f, "{}={} ", field.name, field.show_match(wanted))?,
            }
        }
        write!(f, "priority={} action={}", self.priority(), self.action())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ipv4Tuple, OpenFlowTuple};

    #[test]
    fn rules_in_words() {
        for text in [
            "src=10.0.0.0/8 dport=1024-65535 proto=tcp priority=10 action=3",
            "src=10.0.0.1/255.0.0.255 sport=0x10/0xfff0 priority=0 action=0",
            "priority=4294967295 action=4294967295",
        ] {
            let rule: Rule<Ipv4Tuple> = text.parse().expect("a rule");
            assert_eq!(rule.to_string(), text);
        }
        let flow: Rule<OpenFlowTuple> =
            "dl_dst=fa:16:3e:b0:80:d0, dl_vlan=7 tcp,action=1".parse().expect("a rule");
        assert_eq!(flow.to_string(), "dl_dst=fa:16:3e:b0:80:d0 dl_vlan=7 nw_proto=tcp priority=0 action=1");
        for wrong in [
            "",
            " ,\t",
            "src=",
            "src=1",
            "src=1.2.3.4/33",
            "src=10.0.0.1/8",
            "sport=010",
            "sport = 10",
            "proto=06",
            "proto=",
            "proto",
            "dport=1-",
            "dport=1 - 5",
            "dport=+1",
            "dport=1,2",
            "dport=16/16",
            "dport=*/8",
            "dport=* dport=1",
            "DPORT=1",
            "priority=-1",
            "priority=+1",
            "priority=007",
            "priority=0x7",
            "priority=",
            "priority=4294967296",
            "action=",
            "action=01",
            "number=1",
            "action=x",
            "dport=5-3",
            "dport=1 dport=2",
            "dport=1 tp_dst=1",
            "tcp proto=6",
            "priority=1 priority=1",
            "action=1 tcp action=2",
            "quic",
            "ttl=1",
            "src!=1.2.3.4",
        ] {
            assert!(wrong.parse::<Rule<Ipv4Tuple>>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_that_is_a_prefix_is_no_range() {
        let rule: Rule<Ipv4Tuple> = "sport=0-65535 dport=1024-2047".parse().expect("a rule");
        assert!(rule.ranges().is_empty() && rule.patterns_len() == 1);
        assert_eq!(rule.to_string(), "dport=0x400/0xfc00 priority=0 action=0");
    }
}
