//! [`choose`]: the chain that is asked for.

use std::fmt;

use serde_json::Value;

use super::key::{Family, text};
use crate::read::ReadOptions;
use crate::read::report::ReadError;

/// A chain, without its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) family: String,
    pub(super) table: String,
    pub(super) name: String,
    /// The hook of a chain that is at one, and the chain's type.
    pub(super) hook: Option<(String, String)>,
    policy: Option<String>,
}

/// What may become of packets at the end of a chain that is at a hook.
const POLICIES: [&str; 2] = ["accept", "drop"];

impl Base {
    /// Reads a chain, without a policy that is none.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let owned = |key| text(value, key).map(str::to_owned);
        let hook = match value.get("hook") {
            Some(_) => Some((owned("hook")?, owned("type").unwrap_or_default())),
            None => None,
        };
        let (family, table, name) = (owned("family")?, owned("table")?, owned("name")?);
        let policy = owned("policy").filter(|policy| POLICIES.contains(&policy.as_str()));
        Some(Self { family, table, name, hook, policy })
    }

    /// Whether it says what becomes of packets at its end.
    pub(super) const fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// What becomes of packets at its end.
    pub(super) fn end(&self) -> String {
        match (&self.policy, &self.hook) {
            (Some(policy), _) => policy.clone(),
            (None, Some(_)) => "accept".to_owned(),
            (None, None) => "return".to_owned(),
        }
    }

    /// The family, of those that a chain is chosen of.
    pub(super) fn of_family(&self) -> Family {
        match self.family.as_str() {
            "ip" => Family::Ip,
            "ip6" => Family::Ip6,
            _ => Family::Inet,
        }
    }

    fn is_filter(&self) -> bool {
        self.hook.as_ref().is_some_and(|(_, kind)| kind == "filter")
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.family, self.table, self.name)
    }
}

/// The chain that is asked for.
pub(super) fn choose<'c>(
    chains: &'c [Base],
    is_v6: bool,
    options: &ReadOptions,
    file: &str,
) -> Result<&'c Base, ReadError> {
    let families: &[&str] = if is_v6 { &["ip6", "inet"] } else { &["ip", "inet"] };
    let error = |why: String| ReadError::Choice { name: file.to_owned(), why };
    let words = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    };
    let (mut chain, mut table) = (words(&options.chain), words(&options.table_name));
    if chain.len() > 1 {
        if !table.is_empty() {
            return Err(error("the chain and the table both name a table".to_owned()));
        }
        table = chain[..chain.len() - 1].to_vec();
        chain.drain(..chain.len() - 1);
    }
    if table.len() > 2 {
        return Err(error(format!("{:?} is no table: it is NAME or FAMILY NAME", table.join(" "))));
    }
    let is_in = |base: &&Base| match &table[..] {
        [] => true,
        [table] => base.table == *table,
        [family, table, ..] => base.family == *family && base.table == *table,
    };
    let own: Vec<&Base> =
        chains.iter().filter(|base| families.contains(&base.family.as_str())).filter(is_in).collect();
    let found: Vec<&Base> = match chain.first() {
        None => own.iter().copied().filter(|base| base.is_filter()).collect(),
        Some(name) => {
            let named: Vec<&Base> = own.iter().copied().filter(|base| base.name == *name).collect();
            let hook = name.to_ascii_lowercase();
            let at_hook =
                |base: &&Base| base.is_filter() && base.hook.as_ref().is_some_and(|at| at.0 == hook);
            if named.is_empty() { own.iter().copied().filter(at_hook).collect() } else { named }
        }
    };
    let filters: Vec<&Base> = found.iter().copied().filter(|base| base.is_filter()).collect();
    let found = if found.len() > 1 && !filters.is_empty() { filters } else { found };
    let list = |of: &[&Base]| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match found[..] {
        [one] => Ok(one),
        [] if own.is_empty() => {
            Err(error(format!("no such chain: there is none of {}", families.join(" or "))))
        }
        [] => Err(error(format!("no such chain: there are {}", list(&own)))),
        _ => Err(error(format!("several chains could be meant: {}", list(&found)))),
    }
}
