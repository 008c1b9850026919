//! The model that readers of chains share: lines with conditions in chains that jump to each other, as
//! iptables and nft have them.
//!
//! ```text
//! chain:  line  when: region of tuples ∧ facts   then: verdict | jump | goto | return | goes on
//!         line  …                                                   │
//!         policy                                                    ▼ flatten
//!                         rules, the first that matches wins  +  uncertain rules beside them
//! ```
//!
//! A packet runs through a chain from its first line on. Conditions on a tuple's fields are a [`Region`],
//! exactly. A condition on other facts is a [`Fact`]: true or false under assumptions, else unknown.
//! [`flatten`] writes a chain, with all that it jumps to, out as rules.

mod fact;
mod flatten;
mod program;
mod region;
mod set;

pub(super) use fact::{Fact, Truth, Wanted};
pub(super) use flatten::{Out, flatten};
pub(super) use region::Region;
pub(super) use set::{FieldSet, TooMany};

use std::collections::BTreeMap;

use super::assume::AssumptionKey;
use super::report::Place;
use crate::tuple::Fields;

/// The chains of a table by name.
#[derive(Clone, Debug)]
pub(super) struct Chains {
    pub(super) by_name: BTreeMap<String, Chain>,
}

/// A chain.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) lines: Vec<Line>,
    pub(super) end: End,
}

/// The fate of a packet that comes to the end of a chain which nothing jumped to, or returns from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A verdict: the policy, or for a chain of the user that is looked at by itself, `RETURN`.
    Verdict(String),
    /// The file doesn't say.
    Unknown,
}

/// A line of a chain.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its place in the file. Several lines may be of one.
    pub(super) at: Place,
    /// The text of the line.
    pub(super) text: String,
    pub(super) when: When,
    pub(super) then: Then,
}

/// The condition of a line: it is in effect if the region and all facts hold.
#[derive(Clone, Debug)]
pub(super) struct When {
    pub(super) region: Region,
    pub(super) facts: Vec<Fact>,
}

/// The effect of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Decides.
    Verdict(String),
    /// Goes through another chain, and comes back at its end.
    Jump(String),
    /// Goes through another chain, and at its end to where this one would.
    Goto(String),
    /// Goes to the end of this chain.
    Return,
    /// Goes on with the next line: it counts or logs.
    Continue,
    /// Goes on with the next line, but what later facts of these keys look at may be another than before.
    Change(Vec<AssumptionKey>),
    /// Nobody knows: it may decide anything or skip lines, for the reason given.
    Unknown(String),
}

impl Chains {
    pub(super) const fn new() -> Self {
        Self { by_name: BTreeMap::new() }
    }

    /// The chain of a name, made where it isn't there.
    pub(super) fn chain(&mut self, name: &str, end: End) -> &mut Chain {
        self.by_name.entry(name.to_owned()).or_insert_with(|| Chain { lines: Vec::new(), end })
    }
}

impl When {
    /// Always.
    pub(super) fn always() -> Self {
        Self { region: Region::all(), facts: Vec::new() }
    }
}

impl Line {
    /// The lines of one that looks at the transport header: later fragments have none, and are tuples with
    /// ports of 0.
    pub(super) fn of_transport(self, fields: Fields) -> Result<Vec<Self>, TooMany> {
        let (zero, other) = self.when.region.split_at_ports_of_zero(fields)?;
        let with = |region: Region, facts: Vec<Fact>| Self {
            at: self.at,
            text: self.text.clone(),
            when: When { region, facts },
            then: self.then.clone(),
        };
        let mut lines = Vec::new();
        if !zero.is_empty() {
            let is_whole =
                Fact::one_of(AssumptionKey::Fragment, &["no"], "a tuple without ports may be a fragment's");
            lines.push(with(zero, self.when.facts.iter().cloned().chain([is_whole]).collect()));
        }
        if !other.is_empty() || lines.is_empty() {
            lines.push(with(other, self.when.facts.clone()));
        }
        Ok(lines)
    }
}
