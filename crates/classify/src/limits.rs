//! The entries that an engine takes of a set which makes entries of ranges.

use wirespeed_table::{BuildError, Outgrown};

use crate::rules::RuleSet;
use crate::tuple::Tuple;

/// Entries of a set, and [`ENTRIES_A_RULE`] for each rule. A few rules may have millions, which take seconds
/// and hundreds of megabytes.
pub const MOST_ENTRIES: u64 = 1 << 20;
/// See [`MOST_ENTRIES`]. Rules as they are in use have two or three on average.
pub const ENTRIES_A_RULE: u64 = 16;

/// How many entries the set has, and how many it may have.
pub(crate) fn entries_of<T: Tuple>(rules: &RuleSet<T>) -> (u64, u64) {
    (rules.entries_len(), MOST_ENTRIES + ENTRIES_A_RULE * rules.len() as u64)
}

/// Refuses a set of too many entries before any is made.
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
