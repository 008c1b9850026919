//! A lookup in a list that is so simple that it is right: every entry is tried.

use std::cmp::Reverse;

use super::entry::{Answer, Precedence, Scope, Verdict};
use crate::name::{Name, NameBuf};

/// The entries of a list in order of insertion. O(entries) a lookup.
#[derive(Clone, Debug, Default)]
pub struct Oracle(pub Vec<(NameBuf, Scope, Precedence, Verdict)>);

impl Oracle {
    /// The winning entry for a name.
    pub fn lookup(&self, name: &Name) -> Option<Answer> {
        let covers = |entry: &Name, scope: Scope| {
            let labels = name.components().count().checked_sub(entry.components().count());
            entry.is_prefix_of(name) && labels.is_some_and(|labels| scope.covers(labels))
        };
        let (entry, scope, _, verdict) =
            self.0.iter().filter(|(entry, scope, ..)| covers(entry, *scope)).max_by_key(
                // Of equal ones `max_by_key` gives the last.
                |(entry, scope, precedence, _)| {
                    (precedence.level, entry.len(), precedence.weight, Reverse(*scope))
                },
            )?;
        let length = u32::try_from(entry.len()).expect("a name's length");
        Some(Answer { verdict: *verdict, scope: *scope, length })
    }
}
