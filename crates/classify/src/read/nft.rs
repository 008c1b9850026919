//! One chain as `nft -j list ruleset` writes it (libnftables-json(5)).
//!
//! ```text
//! {"nftables": [{"chain": {"family": "inet", "table": "filter", "name": "input", "hook": "input", "policy": "drop"}},
//!               {"rule": {"chain": "input", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}},
//!                                                               "right": {"set": [22, {"range": [80, 90]}]}}}, {"accept": null}]}}]}
//! ```
//!
//! A set becomes a rule for each of its elements; the chain's policy is a last rule that matches all.

use std::io::Read as _;

use serde_json::Value;
use wirespeed_input::Input;

use super::RuleFile;
use super::report::{Fault, ReadError, Reading};
use crate::rule::{Pattern, Rule, RuleError};
use crate::text::{Parts, RuleTextError};
use crate::tuple::{Tuple, TupleError, ValueError};

pub(super) fn read<T: Tuple>(
    input: &mut Input<'_>,
    reading: &mut Reading,
    file: &mut RuleFile<T>,
    chain: Option<&str>,
) -> Result<(), ReadError> {
    let mut text = Vec::new();
    let name = reading.report.name.clone();
    input.read_to_end(&mut text).map_err(|source| ReadError::Io { name, source })?;
    let bad =
        |why: String| ReadError::Bad { name: input.name().to_owned(), line: 1, why, text: String::new() };
    let json: Value = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
    let all = json["nftables"].as_array().ok_or_else(|| bad("no list \"nftables\"".to_owned()))?;
    let chains = || all.iter().map(|element| &element["chain"]);
    let wanted = match chain {
        Some(name) => chains().find(|chain| chain["name"] == name),
        None => chains().find(|chain| chain["hook"].is_string()),
    };
    let Some(wanted) = wanted else { return Err(bad("no such chain".to_owned())) };
    for (at, element) in (1..).zip(all) {
        let one = &element["rule"];
        if !one.is_object() {
            continue;
        }
        reading.report.records += 1;
        let is_in = |key: &str, of: &str| one[key] == wanted[of];
        if !(is_in("chain", "name") && is_in("table", "table") && is_in("family", "family")) {
            reading.report.elsewhere += 1;
            continue;
        }
        let taken = rules(&one["expr"], file)
            .and_then(|rules| rules.into_iter().try_for_each(|rule| file.add(rule)).map_err(Fault::Bad));
        if let Err(fault) = taken {
            reading.fault(fault, at, &one["expr"].to_string())?;
        }
    }
    if let Some(policy) = wanted["policy"].as_str() {
        let action = file.intern(policy);
        // As many numbers as rules.
        let _ = file.rules.insert(Rule::new(Pattern::all(), 0, action));
    }
    Ok(())
}

/// What fields have to be: each of several combinations.
type Fields = Vec<(&'static str, String)>;

/// The rules of a list of expressions.
fn rules<T: Tuple>(expressions: &Value, file: &mut RuleFile<T>) -> Result<Vec<Rule<T>>, Fault> {
    let expressions = expressions.as_array().ok_or_else(|| Fault::bad("a rule without expressions"))?;
    let mut all: Vec<Fields> = vec![Vec::new()];
    let mut action = None;
    for expression in expressions {
        let (kind, value) = expression
            .as_object()
            .and_then(|object| object.iter().next())
            .ok_or_else(|| Fault::bad("an expression that is none"))?;
        match kind.as_str() {
            "match" => {
                let choices = choices::<T>(value)?;
                let with = |fields: &Fields| {
                    choices
                        .iter()
                        .map(|more| fields.iter().chain(more).cloned().collect())
                        .collect::<Vec<Fields>>()
                };
                all = all.iter().flat_map(with).collect();
            }
            "counter" | "comment" => {}
            "accept" | "drop" | "reject" | "return" | "queue" => action = Some(file.intern(kind)),
            "jump" | "goto" => return Err(Fault::left_out("a jump to another chain")),
            other => return Err(Fault::left_out(format!("an expression that isn't stateless ({other})"))),
        }
    }
    let action = action.ok_or_else(|| Fault::left_out("no verdict: it only counts"))?;
    all.iter().map(|fields| rule(fields, action)).collect()
}

/// What a match wants, one for each element of a set.
fn choices<T: Tuple>(wanted: &Value) -> Result<Vec<Fields>, Fault> {
    if !matches!(wanted["op"].as_str(), Some("==" | "in")) {
        return Err(Fault::left_out(format!("a comparison by {}", wanted["op"])));
    }
    let (left, right) = (&wanted["left"], &wanted["right"]);
    let is_v6 = T::field_of("src").is_some_and(|field| field.width == 128);
    let texts = match &right["set"] {
        Value::Array(elements) => elements.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        _ => vec![text(right)?],
    };
    let payload = (left["payload"]["protocol"].as_str(), left["payload"]["field"].as_str());
    let (fields, proto): (&'static str, Option<&str>) = match payload {
        (Some(family @ ("ip" | "ip6")), Some(field)) => {
            if (family == "ip6") != is_v6 {
                return Err(Fault::left_out(format!("a match of {family}, which this tuple isn't of")));
            }
            let name = match field {
                "saddr" => "src",
                "daddr" => "dst",
                "protocol" | "nexthdr" => "proto",
                other => return Err(Fault::left_out(format!("no field of a tuple ({family} {other})"))),
            };
            (name, None)
        }
        (Some(proto @ ("tcp" | "udp" | "sctp" | "dccp" | "udplite")), Some(field @ ("sport" | "dport"))) => {
            (if field == "sport" { "sport" } else { "dport" }, Some(proto))
        }
        (Some("th"), Some("sport")) => ("sport", None),
        (Some("th"), Some("dport")) => ("dport", None),
        (Some(proto @ ("icmp" | "icmpv6")), Some(field @ ("type" | "code"))) => {
            (if field == "type" { "sport" } else { "dport" }, Some(proto))
        }
        (Some(other), field) => {
            return Err(Fault::left_out(format!(
                "no field of a tuple ({other} {})",
                field.unwrap_or_default()
            )));
        }
        _ => match left["meta"]["key"].as_str() {
            Some("l4proto" | "protocol") => ("proto", None),
            Some("nfproto") => {
                let own = if is_v6 { "ipv6" } else { "ipv4" };
                return match texts.iter().any(|text| text == own) {
                    true => Ok(vec![Vec::new()]),
                    false => Err(Fault::left_out("of another family than this tuple")),
                };
            }
            Some(key) => return Err(Fault::left_out(format!("a match by {key}"))),
            None => return Err(Fault::left_out(format!("a match by {left}"))),
        },
    };
    let value = |text: String| icmp_type(proto, &text).map_or(text, str::to_owned);
    Ok(texts.into_iter().map(|text| with_protocol(fields, value(text), proto)).collect())
}

/// A field's value, and the protocol that has such a field.
fn with_protocol(field: &'static str, text: String, proto: Option<&str>) -> Fields {
    let proto = proto.map(|proto| ("proto", proto.to_owned()));
    [(field, text)].into_iter().chain(proto).collect()
}

/// The number of an ICMP type that has a name.
fn icmp_type(proto: Option<&str>, name: &str) -> Option<&'static str> {
    Some(match (proto?, name) {
        ("icmp", "echo-reply") => "0",
        ("icmp", "destination-unreachable") => "3",
        ("icmp", "echo-request") => "8",
        ("icmp", "time-exceeded") => "11",
        ("icmpv6", "destination-unreachable") => "1",
        ("icmpv6", "packet-too-big") => "2",
        ("icmpv6", "time-exceeded") => "3",
        ("icmpv6", "echo-request") => "128",
        ("icmpv6", "echo-reply") => "129",
        ("icmpv6", "nd-router-solicit") => "133",
        ("icmpv6", "nd-router-advert") => "134",
        ("icmpv6", "nd-neighbor-solicit") => "135",
        ("icmpv6", "nd-neighbor-advert") => "136",
        _ => return None,
    })
}

/// A value as a field reads it.
fn text(value: &Value) -> Result<String, Fault> {
    let unknown = || Fault::left_out(format!("a value that isn't plain ({value})"));
    match value {
        Value::String(text) if text.starts_with('@') => Err(Fault::left_out(format!("a named set ({text})"))),
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Object(object) => match object.iter().next() {
            Some((kind, prefix)) if kind == "prefix" => {
                let (address, len) = (prefix["addr"].as_str(), prefix["len"].as_u64());
                Ok(format!("{}/{}", address.ok_or_else(unknown)?, len.ok_or_else(unknown)?))
            }
            Some((kind, Value::Array(ends))) if kind == "range" && ends.len() == 2 => {
                Ok(format!("{}-{}", text(&ends[0])?, text(&ends[1])?))
            }
            _ => Err(unknown()),
        },
        _ => Err(unknown()),
    }
}

/// The rule of fields and their values.
fn rule<T: Tuple>(fields: &[(&str, String)], action: u32) -> Result<Rule<T>, Fault> {
    let mut parts = Parts::<T>::default();
    parts.action = action;
    for (at, (name, value)) in fields.iter().enumerate() {
        match fields[..at].iter().find(|(before, _)| before == name) {
            Some((_, before)) if before == value => continue,
            Some(_) => return Err(Fault::left_out(format!("two demands of {name}"))),
            None => {}
        }
        parts.field(name, value).map_err(|error| match error {
            RuleTextError::Tuple(TupleError::Field { field, .. }) => {
                Fault::left_out(format!("no field of a tuple ({field})"))
            }
            // A name of a port or a protocol of the system, and an address of the other family.
            RuleTextError::Tuple(TupleError::Value(ValueError::Form { field, text })) => {
                Fault::left_out(format!("{text} as {field}"))
            }
            error => Fault::bad(error),
        })?;
    }
    parts.rule().map_err(|error| match error {
        RuleTextError::Rule(RuleError::Patterns { .. }) => Fault::left_out(error.to_string()),
        error => Fault::bad(error),
    })
}
