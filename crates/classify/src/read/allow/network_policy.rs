//! Policies of Kubernetes as `kubectl get networkpolicy` writes them with `-o json` or `-o yaml`, several or
//! one.
//!
//! ```text
//! {"apiVersion": "v1", "kind": "List", "items": [
//!   {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"namespace": "shop", "name": "web"},
//!    "spec": {"podSelector": {…}, "policyTypes": ["Ingress"],
//!      "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
//!                   "ports": [{"protocol": "TCP", "port": 443}]}]}}]}
//! ```
//!
//! YAML has the same objects, in any number of documents. Rules are named by their lines, and those of JSON
//! also by their numbers. What a policy implies has the line of the policy in YAML.
//!
//! Objects of other kinds beside policies are refused, or left out in a lenient reading. One whose kind is
//! called a policy could have been for the same pods, so that answers are in doubt.
//!
//! The rules are for the pods that one policy selects. It is chosen as a chain, by `NAME` or
//! `NAMESPACE/NAME`, and the direction as a table. What the policy doesn't allow is denied, unless another
//! policy of the namespace allows it: one that selects the same pods or all pods is taken with it, and of
//! another one nobody knows whether it selects them, so that its rules stay as doubts. Blocks of addresses
//! and ports with numbers are exact. Pods and namespaces that a rule selects, and ports by name, are not in
//! the file: such rules are left out, and stay as doubts. Traffic of the pod's own node is always allowed,
//! and not in the rules.

use std::mem;

use serde_json::Value;
use wirespeed_input::Input;

use super::super::ReadOptions;
use super::super::chains::{Out, Region};
use super::super::list::{Shape, each_element, each_element_of};
use super::super::recognise::LOOK_AHEAD;
use super::super::report::{Fault, Place, ReadError, Reading};
use super::super::yaml::each_document;
use super::{Condition, Direction, Elements, Lines, array, block, number, object, text, too_many};
use crate::tuple::{Field, Fields};

const LIST: Shape = Shape {
    list: "items",
    beside: &["apiVersion", "kind", "metadata"],
    alone: &["spec", "status"],
    rules: &["ingress", "egress"],
};
const VERSION: &str = "networking.k8s.io/v1";

/// A policy as it came, of those that are for the direction.
struct Policy {
    namespace: String,
    name: String,
    /// The place where it begins, in a file of YAML.
    at: Option<Place>,
    /// Which pods it selects.
    selector: Value,
    /// Whether it is for the direction: what it doesn't allow is denied.
    is_for: bool,
    /// Its rules, each with its place.
    rules: Vec<(Place, Value)>,
}

pub(in crate::read) fn read(
    input: &mut Input<'_>,
    reading: &mut Reading,
    (file, fields): (&mut dyn Out, Fields),
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let direction = Direction::of(options, reading)?;
    let mut elements = Elements::new();
    match is_json(input) {
        true => each_element(input, LIST, &mut |element| {
            let at = element.place("", reading.report.records + 1);
            take(&mut elements, &element.value, at, reading, |value, reading| {
                policy(value, direction, None, |part, number| element.place(part, number), reading)
            })
        })?,
        false => in_yaml(input, direction, reading, &mut elements)?,
    }
    let Elements { taken: policies, lost } = elements;
    let name = reading.report.name.clone();
    let chosen = choose(&policies, options.chain.as_deref(), direction)
        .map_err(|why| ReadError::Choice { name: name.clone(), why })?;
    let mut lines = Lines::new(fields, chosen.at);
    if let Some((at, why)) = lost {
        // It could have been for the same pods.
        lines.unknown(at, "", &why);
    }
    let selects_all = |selector: &Value| selector.as_object().is_none_or(serde_json::Map::is_empty);
    for policy in &policies {
        let is_own = policy.namespace == chosen.namespace && policy.is_for;
        if !is_own {
            reading.report.elsewhere += policy.rules.len() as u64;
            continue;
        }
        let is_same = policy.selector == chosen.selector || selects_all(&policy.selector);
        let pods = match is_same {
            true => Condition::always(),
            false => Condition::unknown(Region::all(), format!("pods that {} selects", policy.name)),
        };
        for &(at, ref rule) in &policy.rules {
            let mut other_family = 0;
            lines.rule(at, rule, reading, |lines, text| {
                allow(lines, direction, &pods, rule, at, text, &mut other_family)
            })?;
            reading.report.other_family += other_family;
        }
    }
    lines.finish(options, reading, file)
}

/// Whether a file is an object of JSON.
fn is_json(input: &mut Input<'_>) -> bool {
    let (start, _) = input.look_ahead(LOOK_AHEAD);
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    start.trim_ascii_start().first() == Some(&b'{')
}

/// The policies of all documents.
fn in_yaml(
    input: &mut Input<'_>,
    direction: Direction,
    reading: &mut Reading,
    elements: &mut Elements<Policy>,
) -> Result<(), ReadError> {
    let name = input.name().to_owned();
    each_document(input, |mut document| {
        let (own, lines) = (document.line, mem::take(&mut document.lines));
        let faults = mem::take(&mut document.faults);
        if let Some((line, why)) = faults.get("").filter(|_| document.value.get(LIST.list).is_some()) {
            let (name, place, why) = (name.clone(), (*line).into(), why.clone());
            return Err(ReadError::Bad { name, place, why, text: String::new() });
        }
        each_element_of(document, &name, LIST, &mut |at, element| {
            let place = at.map_or_else(String::new, |at| format!("/items/{at}"));
            let line = at.and_then(|_| lines.get(&place).copied()).unwrap_or(own);
            let place_of =
                |part: &str, _| lines.get(&format!("{place}{part}")).copied().unwrap_or(line).into();
            let fault = faults.get(&place);
            let at = fault.map(|(line, _)| *line).filter(|_| !is_other_kind(&element)).unwrap_or(line);
            take(elements, &element, at.into(), reading, |element, reading| match fault {
                Some((_, why)) => Err(why.clone()),
                None => policy(element, direction, Some(line.into()), place_of, reading),
            })
        })
    })
}

/// Takes an element by `by`, if it may be a policy.
fn take(
    elements: &mut Elements<Policy>,
    element: &Value,
    at: Place,
    reading: &mut Reading,
    by: impl FnOnce(&Value, &mut Reading) -> Result<Policy, String>,
) -> Result<(), ReadError> {
    if is_other_kind(element) {
        return reading.fault(Fault::bad(no_policy(element)), at, &element.to_string());
    }
    elements.take(element, at, reading, by)
}

/// Whether an element has a kind that is none of policies.
fn is_other_kind(element: &Value) -> bool {
    text(element, "kind").ok().flatten().is_some_and(|kind| kind != "List" && !kind.contains("Policy"))
}

fn no_policy(element: &Value) -> String {
    let of = |key| text(element, key).ok().flatten().unwrap_or("none");
    format!("kind {} of {} is no NetworkPolicy of {VERSION}", of("kind"), of("apiVersion"))
}

/// Reads a policy, which has its place in YAML. `place_of` tells the place of a rule by its number and that
/// in the policy.
fn policy(
    element: &Value,
    direction: Direction,
    at: Option<Place>,
    place_of: impl Fn(&str, u64) -> Place,
    reading: &mut Reading,
) -> Result<Policy, String> {
    if text(element, "kind")? != Some("NetworkPolicy") || text(element, "apiVersion")? != Some(VERSION) {
        return Err(no_policy(element));
    }
    object(element, &["apiVersion", "kind", "metadata", "spec", "status"])?;
    let metadata = element.get("metadata").ok_or("a policy without metadata")?;
    let name = text(metadata, "name")?.ok_or("a policy without a name")?.to_owned();
    let namespace = text(metadata, "namespace")?.unwrap_or("default").to_owned();
    let spec = element.get("spec").ok_or("a policy without a spec")?;
    object(spec, &["podSelector", "policyTypes", "ingress", "egress"])?;
    let (own, key) = match direction {
        Direction::In => ("Ingress", "ingress"),
        Direction::Out => ("Egress", "egress"),
    };
    let rules = array(spec, key)?;
    let types = array(spec, "policyTypes")?;
    if let Some(other) = types.iter().find(|one| !matches!(one.as_str(), Some("Ingress" | "Egress"))) {
        return Err(format!("a type that is not known ({other})"));
    }
    let is_for = match types {
        [] => direction == Direction::In || !rules.is_empty(),
        types => types.iter().any(|one| one == own),
    };
    let selector = spec.get("podSelector").cloned().unwrap_or(Value::Null);
    let before = reading.report.records;
    reading.report.records += rules.len() as u64;
    let of = |(number, rule): (u64, &Value)| {
        (place_of(&format!("/spec/{key}/{number}"), before + number + 1), rule.clone())
    };
    let rules = (0..).zip(rules).map(of).collect();
    Ok(Policy { namespace, name, at, selector, is_for, rules })
}

/// The policy that is asked for, or the only one for the direction.
fn choose<'p>(
    policies: &'p [Policy],
    wanted: Option<&str>,
    direction: Direction,
) -> Result<&'p Policy, String> {
    let way = if direction == Direction::In { "ingress" } else { "egress" };
    let for_it = || policies.iter().filter(|policy| policy.is_for);
    let there = || {
        let all: Vec<_> = for_it().map(|policy| format!("{}/{}", policy.namespace, policy.name)).collect();
        all.join(", ")
    };
    let fits = |policy: &&Policy| match wanted {
        None => true,
        Some(wanted) => match wanted.split_once('/') {
            Some((namespace, name)) => (&*policy.namespace, &*policy.name) == (namespace, name),
            None => policy.name == wanted,
        },
    };
    let found: Vec<_> = for_it().filter(fits).collect();
    match (&found[..], wanted) {
        ([one], _) => Ok(one),
        ([], None) => Err(format!("no policy is for {way}")),
        ([], Some(wanted)) => Err(format!("no policy {wanted} for {way}; there are: {}", there())),
        _ => Err(format!("several policies, choose one by lookupctl classify build --chain: {}", there())),
    }
}

/// Reads a rule of a policy whose pods are those in question if `pods` holds.
fn allow(
    lines: &mut Lines,
    direction: Direction,
    pods: &Condition,
    rule: &Value,
    at: Place,
    shown: &str,
    other_family: &mut u64,
) -> Result<(), String> {
    let key = if direction == Direction::In { "from" } else { "to" };
    object(rule, &[key, "ports"])?;
    let one_or_all = |conditions: Vec<Condition>| match conditions.is_empty() {
        true => vec![Condition::always()],
        false => conditions,
    };
    let ports =
        array(rule, "ports")?.iter().map(|one| port(one, lines.fields)).collect::<Result<Vec<_>, _>>()?;
    let peers = array(rule, key)?;
    let mut ends = Vec::new();
    for one in peers {
        match peer(one, direction.far(lines.fields))? {
            Some(condition) => ends.push(condition),
            None => *other_family += 1,
        }
    }
    // Peers of the other family alone are not all peers.
    let ends = if peers.is_empty() { one_or_all(ends) } else { ends };
    for port in one_or_all(ports) {
        for end in &ends {
            lines.allow(at, shown, &[pods, &port, end]).map_err(too_many)?;
        }
    }
    Ok(())
}

/// The addresses of a peer. `None` of the other family.
fn peer(peer: &Value, far: &'static Field) -> Result<Option<Condition>, String> {
    object(peer, &["ipBlock", "podSelector", "namespaceSelector"])?;
    let given = |key: &str| peer.get(key).filter(|value| !value.is_null());
    let Some(ip_block) = given("ipBlock") else {
        return match (given("podSelector"), given("namespaceSelector")) {
            (None, None) => Err("a peer that is none".to_owned()),
            (_, None) => Ok(Some(Condition::unknown(Region::all(), "pods that a rule selects"))),
            _ => Ok(Some(Condition::unknown(Region::all(), "namespaces that a rule selects"))),
        };
    };
    if given("podSelector").is_some() || given("namespaceSelector").is_some() {
        return Err("a block of addresses beside a selector".to_owned());
    }
    object(ip_block, &["cidr", "except"])?;
    let cidr = text(ip_block, "cidr")?.ok_or("a block without a cidr")?;
    let whole = block(far, cidr)?;
    let mut set = whole.clone();
    for except in array(ip_block, "except")? {
        let except = except.as_str().ok_or("an exception that is no text")?;
        match (&whole, set, block(far, except)?) {
            (None, _, None) => set = None,
            (Some(whole), Some(left), Some(hole)) if whole.and(&hole).map_err(too_many)? == hole => {
                let others = hole.not().map_err(too_many)?;
                set = Some(left.and(&others).map_err(too_many)?);
            }
            _ => return Err(format!("the exception {except} is not within {cidr}")),
        }
    }
    Ok(set.map(|set| Condition { region: Region::of(far, set), fact: None, is_transport: false }))
}

/// The protocol and the ports of a rule's port.
fn port(port: &Value, fields: Fields) -> Result<Condition, String> {
    object(port, &["protocol", "port", "endPort"])?;
    let protocol = match text(port, "protocol")? {
        None | Some("TCP") => 6,
        Some("UDP") => 17,
        Some("SCTP") => 132,
        Some(other) => return Err(format!("{other:?} is no protocol")),
    };
    let end = number(port, "endPort")?;
    let first = match port.get("port") {
        None | Some(Value::Null) if end.is_none() => return Ok(Condition::of_protocol(fields, protocol)),
        Some(Value::String(name)) if end.is_none() => {
            let of_protocol = Condition::of_protocol(fields, protocol);
            return Ok(Condition::unknown(of_protocol.region, format!("the port that pods call {name}")));
        }
        Some(Value::Number(number)) => number.as_i64(),
        _ => return Err("an endPort without a number before it".to_owned()),
    };
    let number = |number: Option<i64>| number.and_then(|number| u16::try_from(number).ok());
    match (number(first), number(end.or(first))) {
        (Some(first), Some(last)) if 0 < first && first <= last => {
            Condition::of_ports(fields, protocol, first, last).map_err(too_many)
        }
        _ => Err("not a range of ports".to_owned()),
    }
}
