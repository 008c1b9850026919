//! [`Fact`]: a condition on a fact outside tuples.

use crate::read::assume::{Assumption, AssumptionKey, Assumptions};

/// A condition on a fact outside tuples: true or false under assumptions, else unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) struct Fact {
    /// The condition as text for people: `a match of conntrack`.
    pub(in crate::read) what: String,
    /// The assumption that decides it; `None` if no assumption can.
    pub(in crate::read) of: Option<(AssumptionKey, Wanted)>,
    pub(in crate::read) is_negated: bool,
}

/// The condition on an assumption's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::read) enum Wanted {
    /// One of some words.
    OneOf(Vec<String>),
    /// An interface of this name.
    Interface(String),
    /// An interface whose name starts like this.
    InterfacePrefix(String),
    /// A number whose bits under the mask are those of the value.
    Masked { value: u32, mask: u32 },
    /// A number from one to another.
    #[allow(dead_code)] // rules of nft want it
    Range(u32, u32),
    /// TCP flags: those under the mask are set as here, and no others of them.
    Flags { mask: u8, set: u8 },
}

/// The truth of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Truth {
    True,
    False,
    Unknown,
}

impl Fact {
    /// A fact that no assumption decides.
    pub(in crate::read) fn unknown(what: impl Into<String>) -> Self {
        Self { what: what.into(), of: None, is_negated: false }
    }

    /// A fact that an assumption decides.
    pub(in crate::read) fn wanted(key: AssumptionKey, wanted: Wanted, what: impl Into<String>) -> Self {
        Self { what: what.into(), of: Some((key, wanted)), is_negated: false }
    }

    /// A fact that holds if the value is one of some words.
    pub(in crate::read) fn one_of(key: AssumptionKey, words: &[&str], what: impl Into<String>) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self::wanted(key, Wanted::OneOf(words), what)
    }

    /// The opposite fact, if `is_negated`.
    pub(in crate::read) fn negated_if(mut self, is_negated: bool) -> Self {
        self.is_negated ^= is_negated;
        self
    }

    /// The truth, and the assumption that decided it.
    pub(in crate::read) fn under<'a>(&self, assume: &'a Assumptions) -> (Truth, Option<&'a Assumption>) {
        let unknown = (Truth::Unknown, None);
        let Some((key, wanted)) = &self.of else { return unknown };
        // Without a connection a match of its mark or zone doesn't hold, be it negated or not.
        let without = assume.get(AssumptionKey::Ct).filter(|state| {
            matches!(key, AssumptionKey::CtMark | AssumptionKey::CtZone)
                && matches!(state.value(), "untracked" | "invalid")
        });
        if without.is_some() {
            return (Truth::False, without);
        }
        // Connection tracking puts fragments together before any chain sees them.
        let tracked = assume.get(AssumptionKey::Ct).filter(|state| !state.value().starts_with("untracked"));
        let implied = tracked.filter(|_| *key == AssumptionKey::Fragment);
        let (by, value) = match (assume.get(*key), implied) {
            (Some(by), _) => (by, by.value()),
            (None, Some(by)) => (by, "no"),
            (None, None) => return unknown,
        };
        let holds = match wanted {
            // A connection may be several things at once: `new+dnat`.
            Wanted::OneOf(words) => value.split('+').any(|value| words.iter().any(|word| word == value)),
            Wanted::Interface(name) => name == value,
            Wanted::InterfacePrefix(prefix) => value.starts_with(&**prefix),
            Wanted::Masked { value, mask } => match by.number() {
                Some(number) => number & mask == *value,
                None => return unknown,
            },
            Wanted::Range(from, to) => match by.number() {
                Some(number) => (from..=to).contains(&&number),
                None => return unknown,
            },
            Wanted::Flags { mask, set } => match by.flags() {
                Some(flags) => flags & mask == *set,
                None => return unknown,
            },
        };
        (if holds != self.is_negated { Truth::True } else { Truth::False }, Some(by))
    }
}
