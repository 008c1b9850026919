//! Wrong answers of tables of names: [`hold`] finds them, and [`Mismatch`] is one.

use std::fmt;

use serde::Serialize;
use wirespeed::names::{Match, Names};
use wirespeed_namelookup::NameDomain;

use crate::check::subject::{Asks, OfNames, Subject};
use crate::check::verdict::Verdict;

/// A wrong answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Mismatch {
    pub(super) name: String,
    pub(super) right: u32,
    pub(super) found: u32,
    /// Bytes that matched, if the lookup gives them.
    pub(super) right_length: Option<u32>,
    pub(super) found_length: Option<u32>,
    /// The kind of lookup: in a batch, or single.
    pub(super) lookup: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, right, found, right_length, found_length, lookup } = self;
        let bytes =
            |length: &Option<u32>| length.map_or_else(String::new, |length| format!(" by {length} bytes"));
        write!(
            f,
            "{name}: result {found}{}, right is {right}{} ({lookup})",
            bytes(found_length),
            bytes(right_length)
        )
    }
}

/// No further facts.
#[derive(Debug, Serialize)]
pub(super) struct Nothing {}

impl fmt::Display for Nothing {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Holds a table against the right matches of names, in each way of looking up. `of` makes a wrong answer of
/// a mismatch.
pub(super) fn hold<M: Ord>(
    table: &Subject<'_, NameDomain>,
    names: Names<'_>,
    right: &[Match],
    found: &mut Vec<Match>,
    verdict: &mut Verdict<M>,
    of: impl Fn(Mismatch) -> M,
) {
    found.resize(names.len(), Match::NONE);
    verdict.checked += names.len() as u64;
    for pass in table.passes::<OfNames>() {
        table.look_up::<OfNames>(pass, names, found);
        let length = |of: &Match| (pass.asks != Asks::Results).then_some(of.length);
        for ((name, right), found) in names.iter().zip(right).zip(&*found) {
            if (right.result, length(right)) != (found.result, length(found)) {
                let mismatch = || Mismatch {
                    name: name.to_string(),
                    right: right.result,
                    found: found.result,
                    right_length: length(right),
                    found_length: length(found),
                    lookup: pass.name,
                };
                verdict.wrong(|| of(mismatch()));
            }
        }
    }
}
