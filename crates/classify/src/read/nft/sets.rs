//! [`Sets`]: the named sets and maps of a table, by content.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::key::single;

/// The named sets and maps of a table.
#[derive(Debug, Default)]
pub(super) struct Sets {
    by_name: BTreeMap<String, Result<Vec<Value>, String>>,
    /// Sets and maps that rules add to or take from.
    changed: BTreeSet<String>,
}

impl Sets {
    /// Takes a set, or a map.
    pub(super) fn add(&mut self, name: &str, set: &Value) {
        let content =
            content(set).ok_or_else(|| format!("what is in {name} may change, or isn't understood"));
        let content =
            if self.by_name.contains_key(name) { Err(format!("two of the name {name}")) } else { content };
        self.by_name.insert(name.to_owned(), content);
    }

    /// Notes the sets that a rule changes.
    pub(super) fn changed_by(&mut self, expressions: &Value) {
        for expression in expressions.as_array().into_iter().flatten() {
            // A dynamic set is the map or the meter of some statements.
            for (_, statement) in expression.as_object().into_iter().flatten() {
                let named = ["set", "map"].iter().filter_map(|key| statement.get(*key)?.as_str());
                self.changed.extend(named.filter_map(|name| name.strip_prefix('@')).map(str::to_owned));
            }
        }
    }

    /// The elements of a set; none of what isn't a set. An error says why they are not known.
    pub(super) fn elements<'v>(&'v self, value: &'v Value) -> Result<Option<Vec<&'v Value>>, String> {
        if let Value::String(text) = value
            && let Some(name) = text.strip_prefix('@')
        {
            return match self.by_name.get(name) {
                _ if self.changed.contains(name) => Err(format!("a set that rules change (@{name})")),
                Some(Ok(elements)) => Ok(Some(elements.iter().collect())),
                Some(Err(why)) => Err(why.clone()),
                None => Err(format!("a set that isn't in the file (@{name})")),
            };
        }
        match single(value) {
            Some(("set", Value::Array(elements))) => {
                let elements: Option<Vec<&Value>> = elements.iter().map(plain).collect();
                elements.map(Some).ok_or_else(|| "a set with more than values".to_owned())
            }
            // nft writes a set of one element as that.
            Some(("set", one)) => {
                plain(one).map(|one| Some(vec![one])).ok_or_else(|| "a set with more than values".to_owned())
            }
            _ => Ok(None),
        }
    }
}

/// The elements of a set that stays as it is.
fn content(set: &Value) -> Option<Vec<Value>> {
    const KNOWN: [&str; 12] = [
        "family",
        "table",
        "name",
        "handle",
        "type",
        "map",
        "flags",
        "elem",
        "policy",
        "size",
        "comment",
        "auto-merge",
    ];
    let is_known = |(key, value): (&String, &Value)| match key.as_str() {
        "flags" => {
            let flags = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
            flags.iter().all(|flag| matches!(flag.as_str(), Some("constant" | "interval")))
        }
        // Elements of their own counters.
        "stmt" => {
            let all = value.as_array().map_or(&[][..], Vec::as_slice);
            all.iter().all(|one| matches!(single(one), Some(("counter", _))))
        }
        key => KNOWN.contains(&key),
    };
    if !set.as_object()?.iter().all(is_known) {
        return None;
    }
    match &set["elem"] {
        Value::Null => Some(Vec::new()),
        Value::Array(elements) if set.get("map").is_some() => {
            let pair = |pair: &Value| {
                let [key, data] = pair.as_array()?.as_slice() else { return None };
                Some(Value::Array(vec![plain(key)?.clone(), data.clone()]))
            };
            elements.iter().map(pair).collect()
        }
        Value::Array(elements) => elements.iter().map(|element| plain(element).cloned()).collect(),
        _ => None,
    }
}

/// An element without what says nothing about packets; `None` of one that doesn't stay.
pub(super) fn plain(element: &Value) -> Option<&Value> {
    let Some(("elem", inner)) = single(element) else { return Some(element) };
    let is_known = |key: &String| matches!(key.as_str(), "val" | "comment" | "counter");
    if inner.as_object()?.keys().all(is_known) { inner.get("val") } else { None }
}
