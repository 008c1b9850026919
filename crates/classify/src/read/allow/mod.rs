//! Lists of what is allowed, as clouds have them: security groups and policies of Kubernetes.
//!
//! ```text
//! replies of connections            allow   a fact: the state of the connection
//! each rule of the list             allow   a region of tuples, and facts that no tuple holds
//! end                               deny
//! ```
//!
//! A list has no order and nothing in it denies, so a rule that is not understood can only allow more:
//! answers that are `allow` stay certain, and those that are `deny` are in doubt. The other end of a packet
//! is its source where it comes in (`ingress`), and its destination where it goes out (`egress`).

pub(super) mod network_policy;
pub(super) mod security_groups;

use std::net::IpAddr;

use serde_json::Value;

use super::ReadOptions;
use super::assume::AssumptionKey;
use super::chains::{Chains, End, Fact, FieldSet, Line, Out, Region, Then, TooMany, When, flatten};
use super::report::{Fault, Place, ReadError, Reading};
use crate::tuple::{Field, Fields};

const ALLOW: &str = "allow";
const DENY: &str = "deny";
/// The name of the one chain.
const CHAIN: &str = "list";

/// The way of packets that a list is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

impl Direction {
    /// The direction that is asked for as a table: `ingress`, which is the default, or `egress`.
    fn of(options: &ReadOptions, reading: &Reading) -> Result<Self, ReadError> {
        match options.table_name.as_deref() {
            None | Some("ingress") => Ok(Self::In),
            Some("egress") => Ok(Self::Out),
            Some(other) => {
                let name = reading.report.name.clone();
                Err(ReadError::Choice { name, why: format!("no table {other}; there are: ingress, egress") })
            }
        }
    }

    /// The address of the other end.
    fn far(self, fields: Fields) -> &'static Field {
        fields.named(if self == Self::In { "src" } else { "dst" })
    }
}

/// A condition of a rule that allows.
#[derive(Clone)]
struct Condition {
    region: Region,
    fact: Option<Fact>,
    /// Whether it looks at ports, which later fragments have not.
    is_transport: bool,
}

impl Condition {
    fn always() -> Self {
        Self { region: Region::all(), fact: None, is_transport: false }
    }

    /// What nobody knows, of packets of a region.
    fn unknown(region: Region, what: impl Into<String>) -> Self {
        Self { region, fact: Some(Fact::unknown(what)), is_transport: false }
    }

    fn of_protocol(fields: Fields, protocol: u8) -> Self {
        let field = fields.named("proto");
        let region = Region::of(field, FieldSet::one(field, protocol.into()));
        Self { region, fact: None, is_transport: false }
    }

    /// A protocol and its destination ports from one to another.
    fn of_ports(fields: Fields, protocol: u8, from: u16, to: u16) -> Result<Self, TooMany> {
        let own = Self::of_protocol(fields, protocol);
        if (from, to) == (0, u16::MAX) {
            return Ok(own);
        }
        let field = fields.named("dport");
        let ports = Region::of(field, FieldSet::range(field, from.into(), to.into()));
        Ok(Self { region: own.region.and(&ports)?, is_transport: true, ..own })
    }

    /// A type of ICMP, with a code or any: these are the ports of a tuple.
    fn of_message(fields: Fields, protocol: u8, kind: u8, code: Option<u8>) -> Result<Self, TooMany> {
        let mut own = Self { is_transport: true, ..Self::of_protocol(fields, protocol) };
        for (name, number) in [("sport", Some(kind)), ("dport", code)] {
            if let Some(number) = number {
                let field = fields.named(name);
                own.region = own.region.and(&Region::of(field, FieldSet::one(field, number.into())))?;
            }
        }
        Ok(own)
    }
}

/// The lines of a list.
struct Lines {
    /// The fields of the tuple that the list is read for.
    fields: Fields,
    /// The place of what the list implies, where it has one.
    implied: Option<Place>,
    lines: Vec<Line>,
}

impl Lines {
    /// Begins with the replies of connections, which are allowed wherever the first packet was.
    /// `implied` is the place of the list, where it has one.
    fn new(fields: Fields, implied: Option<Place>) -> Self {
        let replies =
            Fact::one_of(AssumptionKey::Ct, &["established", "related"], "the state of a connection");
        let when = When { region: Region::all(), facts: vec![replies] };
        let text = "replies of connections that were allowed".to_owned();
        let at = implied.unwrap_or_default();
        Self { fields, implied, lines: vec![Line { at, text, when, then: Then::Verdict(ALLOW.to_owned()) }] }
    }

    /// Allows packets of all these conditions.
    fn allow(&mut self, at: Place, text: &str, conditions: &[&Condition]) -> Result<(), TooMany> {
        let mut when = When { region: Region::all(), facts: Vec::new() };
        for condition in conditions {
            when.region = when.region.and(&condition.region)?;
            when.facts.extend(condition.fact.clone());
        }
        if when.region.is_empty() {
            return Ok(());
        }
        let line = Line { at, text: text.to_owned(), when, then: Then::Verdict(ALLOW.to_owned()) };
        match conditions.iter().any(|condition| condition.is_transport) {
            true => self.lines.extend(line.of_transport(self.fields)?),
            false => self.lines.push(line),
        }
        Ok(())
    }

    /// Takes a rule that may allow anything, if the file may have such.
    fn unknown(&mut self, at: Place, text: &str, why: &str) {
        let when = When { region: Region::all(), facts: vec![Fact::unknown(why)] };
        self.lines.push(Line { at, text: text.to_owned(), when, then: Then::Verdict(ALLOW.to_owned()) });
    }

    /// Takes a rule by `read`. One that is wrong ends a strict reading, and may allow anything in a lenient
    /// one.
    fn rule(
        &mut self,
        at: Place,
        rule: &Value,
        reading: &mut Reading,
        read: impl FnOnce(&mut Self, &str) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        let text: String = rule.to_string().chars().take(200).collect();
        let before = self.lines.len();
        if let Err(why) = read(self, &text) {
            self.lines.truncate(before);
            reading.fault(Fault::bad(&why), at, &text)?;
            self.unknown(at, &text, &why);
        }
        Ok(())
    }

    /// Writes the list out as rules.
    fn finish(
        mut self,
        options: &ReadOptions,
        reading: &mut Reading,
        file: &mut dyn Out,
    ) -> Result<(), ReadError> {
        if let Some(at) = self.implied {
            let text = "what the policy does not allow".to_owned();
            self.lines.push(Line { at, text, when: When::always(), then: Then::Verdict(DENY.to_owned()) });
        }
        let mut chains = Chains::new();
        chains.chain(CHAIN, End::Verdict(DENY.to_owned())).lines = self.lines;
        let within = Region::of_type(self.fields, 0x0800);
        flatten(&chains, CHAIN, &within, options, reading, file)
    }
}

/// An element that is not understood: its place, and the reason.
type Lost = (Place, String);

/// The elements of a list that are understood, and the first that is not.
struct Elements<E> {
    taken: Vec<E>,
    lost: Option<Lost>,
}

impl<E> Elements<E> {
    fn new() -> Self {
        Self { taken: Vec::new(), lost: None }
    }

    /// Takes an element. A strict reading ends at one that is not understood.
    fn take(
        &mut self,
        element: &Value,
        at: Place,
        reading: &mut Reading,
        by: impl FnOnce(&Value, &mut Reading) -> Result<E, String>,
    ) -> Result<(), ReadError> {
        match by(element, reading) {
            Ok(element) => self.taken.push(element),
            Err(why) => {
                reading.fault(Fault::bad(&why), at, &element.to_string())?;
                self.lost.get_or_insert((at, why));
            }
        }
        Ok(())
    }
}

/// The addresses of a block, `address/length`, without its host bits. `None` of the other family.
fn block(field: &Field, text: &str) -> Result<Option<FieldSet>, String> {
    let wrong = || format!("{text:?} is no block of addresses");
    let (address, len) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let is_number = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    let len: u16 = len.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    let (value, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    if len > width {
        return Err(wrong());
    }
    Ok((width == field.width).then(|| FieldSet::masked(field, value, field.prefix(len))))
}

/// Checks that a value is an object of these members and no others.
fn object(value: &Value, members: &[&str]) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| "not an object".to_owned())?;
    match object.keys().find(|key| !members.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("a member that is not known ({key})")),
    }
}

/// The array of a member; empty if there is none.
fn array<'v>(object: &'v Value, key: &str) -> Result<&'v [Value], String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(array)) => Ok(array),
        Some(_) => Err(format!("{key} is no list")),
    }
}

/// The text of a member, if there is one.
fn text<'v>(object: &'v Value, key: &str) -> Result<Option<&'v str>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{key} is no text")),
    }
}

/// The number of a member, if there is one.
fn number(object: &Value, key: &str) -> Result<Option<i64>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(number) => number.as_i64().map(Some).ok_or_else(|| format!("{key} is no number")),
    }
}

fn too_many(error: TooMany) -> String {
    error.to_string()
}
