//! A chain as `nft -j list ruleset` writes it, with all that it jumps to (libnftables-json(5)).
//!
//! ```text
//! {"nftables": [{"chain": {"family": "inet", "table": "filter", "name": "input", "type": "filter", "hook": "input", "policy": "drop"}},
//!               {"rule": {"chain": "input", "expr": [{"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}},
//!                                                               "right": {"set": [22, {"range": [80, 90]}]}}}, {"accept": null}]}}]}
//! ```
//!
//! A chain is of a family, a table and a name. An IPv4 tuple is of the families `ip` and `inet`, an IPv6
//! tuple of `ip6` and `inet`; what is of others is elsewhere, or of the other family. Where no chain is asked
//! for, it is the only one of type `filter` at a hook, else one by its name, by `TABLE NAME`, by
//! `FAMILY TABLE NAME`, or by its hook. Several that could be meant are an error that names them.
//!
//! A policy, a member of a rule or a flag of a table that is not known is refused, or leaves doubts in a
//! lenient reading. So is a table that is dormant: its chains see no packet.
//!
//! What nft leaves out of its lists holds all the same: `tcp dport 22` wants TCP, and `ip saddr` in a table
//! of `inet` wants IPv4.

mod choose;
mod key;
mod matches;
mod names;
mod rule;
mod sets;

use serde_json::Value;
use wirespeed_input::Input;

use super::ReadOptions;
use super::chains::{Chains, End, Out, Region, flatten};
use super::list::{Shape, each_element};
use super::report::{Fault, Place, ReadError, Reading};
use crate::tuple::Fields;
use choose::{Base, choose};
use key::{Family, Packets, is_of_other_family, other_family, single, text};
use rule::Reader;
use sets::Sets;

/// The list, with nothing beside it.
const LIST: Shape = Shape { list: "nftables", beside: &[], alone: &[], rules: &[] };

/// Elements that say nothing about packets by themselves.
const OTHERS: [&str; 11] = [
    "metainfo",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "secmark",
    "synproxy",
    "ct helper",
    "ct timeout",
    "ct expectation",
    "ct count",
];

/// Members of a rule.
const RULE: [&str; 7] = ["family", "table", "chain", "handle", "index", "comment", "expr"];

/// Flags of a table that say nothing about packets.
const TABLE_FLAGS: [&str; 2] = ["owner", "persist"];

/// A rule, a set or a map as it came.
struct Element {
    at: Place,
    /// Family and table.
    of: (String, String),
    /// The chain of a rule, or the name of a set.
    name: String,
    /// The element in JSON, which takes less memory than what it says.
    json: String,
    /// The reason why a rule is not understood.
    wrong: Option<String>,
}

pub(super) fn read(
    input: &mut Input<'_>,
    reading: &mut Reading,
    (file, fields): (&mut dyn Out, Fields),
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let (mut bases, mut rules, mut sets, mut tables) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // A file that has no list is told from one whose list is empty.
    each_element(input, LIST, &mut |element| {
        let (at, element) = (element.place("", element.number), element.value);
        let bad = |reading: &mut Reading, why: &str| reading.fault(Fault::bad(why), at, &element.to_string());
        let Some((kind, value)) = single(&element) else {
            return bad(reading, "an element that is none");
        };
        let of = || Some((text(value, "family")?.to_owned(), text(value, "table")?.to_owned()));
        match kind {
            "table" => tables.push((at, value.clone())),
            "chain" => match Base::of(value) {
                Some(base) => {
                    let is_wrong =
                        !matches!(value.get("policy"), None | Some(Value::Null)) && !base.has_policy();
                    bases.push(base);
                    if is_wrong {
                        bad(reading, "a policy that is neither accept nor drop")?;
                    }
                }
                None => bad(reading, "a chain without a family, a table or a name")?,
            },
            "rule" => {
                reading.report.records += 1;
                match of().zip(text(value, "chain")) {
                    Some((of, chain)) => {
                        let wrong = wrong(value);
                        let json = if wrong.is_some() { value } else { &value["expr"] }.to_string();
                        rules.push(Element { at, of, name: chain.to_owned(), json, wrong });
                    }
                    None => bad(reading, "a rule without a family, a table or a chain")?,
                }
            }
            "set" | "map" | "meter" => match of().zip(text(value, "name")) {
                Some((of, name)) => {
                    let json = if kind == "meter" { "{\"meter\":0}".to_owned() } else { value.to_string() };
                    sets.push(Element { at, of, name: name.to_owned(), json, wrong: None });
                }
                None => bad(reading, "a set without a family, a table or a name")?,
            },
            kind if OTHERS.contains(&kind) => {}
            _ => bad(reading, "an element that no list of rules has")?,
        }
        Ok(())
    })?;
    let base = choose(&bases, fields.are_v6(), options, &reading.report.name)?;
    for (at, table) in &tables {
        if text(table, "family") == Some(&base.family)
            && text(table, "name") == Some(&base.table)
            && let Some(why) = flaw(table)
        {
            reading.fault(Fault::bad(why), *at, &table.to_string())?;
        }
    }
    let nothing_known = !reading.report.left_out.is_empty();
    let table = (base.family.clone(), base.table.clone());
    let (own, others): (Vec<_>, Vec<_>) = rules.into_iter().partition(|rule| rule.of == table);
    let other_family = others.iter().filter(|rule| rule.of.0 == other_family(fields)).count() as u64;
    reading.report.other_family += other_family;
    reading.report.elsewhere += others.len() as u64 - other_family;
    let mut named = Sets::default();
    for set in sets.iter().filter(|set| set.of == table) {
        named.add(&set.name, &again(&set.json));
    }
    own.iter().for_each(|rule| named.changed_by(&again(&rule.json)));
    let mut chains = Chains::new();
    for chain in bases.iter().filter(|chain| (&chain.family, &chain.table) == (&table.0, &table.1)) {
        if chains.by_name.contains_key(&chain.name) {
            let name = reading.report.name.clone();
            return Err(ReadError::Choice { name, why: format!("two chains are called {chain}") });
        }
        chains.chain(&chain.name, End::Verdict(chain.end()));
    }
    let reader = Reader { packets: Packets { family: base.of_family(), fields }, sets: &named };
    for rule in own {
        let Some(chain) = chains.by_name.get_mut(&rule.name) else {
            reading.fault(
                Fault::bad(format!("a rule of a chain that isn't there ({})", rule.name)),
                rule.at,
                &rule.json,
            )?;
            continue;
        };
        let shown: String = rule.json.chars().take(200).collect();
        match (rule.wrong, again(&rule.json)) {
            (None, Value::Array(expressions)) => {
                let is_other = expressions.iter().any(|part| is_of_other_family(part, fields));
                reading.report.other_family += u64::from(is_other && reader.packets.family == Family::Inet);
                chain.lines.extend(reader.lines(rule.at, &shown, &expressions));
            }
            (why, _) => {
                let why = why.unwrap_or_default();
                reading.fault(Fault::bad(&why), rule.at, &shown)?;
                chain.lines.push(rule::unknown(rule.at, &shown, why));
            }
        }
    }
    if nothing_known {
        // It could have been a rule at any place.
        let lost = reading.report.left_out.first().map_or_else(Place::default, |one| one.place);
        for chain in chains.by_name.values_mut() {
            chain.lines.insert(0, rule::unknown(lost, "", "an element that isn't understood".to_owned()));
        }
    }
    flatten(&chains, &base.name, &within(fields, base.of_family()), options, reading, file)
}

/// The reason why a rule is not understood, whatever its expressions are.
fn wrong(rule: &Value) -> Option<String> {
    let unknown = rule.as_object()?.keys().find(|key| !RULE.contains(&key.as_str()));
    match unknown {
        Some(key) => Some(format!("a member of a rule that is not known ({key})")),
        None if !rule["expr"].is_array() => Some("a rule without expressions".to_owned()),
        None => None,
    }
}

/// The reason why nobody knows what the chains of a table do.
fn flaw(table: &Value) -> Option<String> {
    let flags = match table.get("flags") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(flags)) => flags,
        Some(flag) => std::slice::from_ref(flag),
    };
    let flag = flags.iter().find(|flag| !flag.as_str().is_some_and(|flag| TABLE_FLAGS.contains(&flag)))?;
    Some(match flag.as_str() {
        Some("dormant") => "a table that is dormant: its chains see no packet".to_owned(),
        _ => format!("a flag of a table that is not known ({flag})"),
    })
}

/// What this once was written from is JSON.
fn again(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or(Value::Null)
}

/// The packets that a table of a family sees, of those that have such a tuple.
fn within(fields: Fields, family: Family) -> Region {
    // In a table of both families those of IPv6 have nothing that rules could look at.
    Region::of_type(fields, if family == Family::Ip6 { 0x86dd } else { 0x0800 })
}
