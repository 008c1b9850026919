//! The most entries of a set, for an engine that makes entries of ranges.

use wirespeed_table::{BuildError, Outgrown};

use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// The most entries of a set, plus [`ENTRIES_A_RULE`] for each rule. A few rules may have millions, which
/// take seconds and hundreds of megabytes.
pub const MOST_ENTRIES: u64 = 1 << 20;
/// The further entries for each rule; see [`MOST_ENTRIES`]. Rules in use have two or three on average.
pub const ENTRIES_A_RULE: u64 = 16;

/// The number of entries of the set, and the largest number allowed.
pub(crate) fn entries_of<T: Tuple>(rules: &RuleSet<T>) -> (u64, u64) {
    (rules.entries_len(), MOST_ENTRIES + ENTRIES_A_RULE * rules.len() as u64)
}

/// Refuses a set of too many entries before it makes an entry.
pub(crate) fn check_entries<T: Tuple>(engine: &'static str, rules: &RuleSet<T>) -> Result<(), BuildError> {
    match entries_of(rules) {
        (found, limit) if found > limit => Err(BuildError::Limit { engine, what: "entries", limit, found }),
        _ => Ok(()),
    }
}

/// Refuses to keep a table up to date when its set has too many entries.
pub(crate) fn take_entries<T: Tuple>(rules: &RuleSet<T>) -> Result<(), Outgrown> {
    let (found, limit) = entries_of(rules);
    if found > limit { Err(Outgrown("entries")) } else { Ok(()) }
}
