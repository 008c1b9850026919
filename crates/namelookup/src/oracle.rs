//! Lookups that are so simple that they are right: a sorted map, walked by component.

use std::collections::BTreeMap;

use crate::found::Match;
use crate::name::{Name, NameBuf};

/// A table of names that is obviously right. O(components · log n) a lookup.
#[derive(Clone, Debug, Default)]
pub struct Oracle(pub BTreeMap<NameBuf, u32>);

impl Oracle {
    /// The longest prefix of a name in the table.
    pub fn lookup(&self, name: &Name) -> Match {
        let found = name.prefixes().find_map(|prefix| Some((prefix, *self.0.get(prefix)?)));
        found.map_or(Match::NONE, |(prefix, result)| Match::new(result, prefix.len()))
    }
}

impl FromIterator<(NameBuf, u32)> for Oracle {
    fn from_iter<I: IntoIterator<Item = (NameBuf, u32)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
