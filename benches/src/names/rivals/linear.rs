//! [`LinearHash`]: from the longest prefix down, a probe for each number of components.

use anyhow::Result;
use wirespeed_namelookup::{Name, NameTable, NameUpdate};

use super::by_depth::{ByDepth, MOST, Prefixes};
use crate::names::OfNames;
use crate::table::{Contestant, one_by_one};

/// Hash tables by number of components, probed from the longest prefix on down that any entry is as long as.
pub struct LinearHash(ByDepth);

impl LinearHash {
    /// Inserts all names.
    pub fn build(names: &NameTable) -> Result<Self> {
        ByDepth::build(names).map(Self)
    }
}

impl Contestant<OfNames> for LinearHash {
    one_by_one!(OfNames);

    #[inline]
    fn one(&self, name: &Name) -> u32 {
        let prefixes = Prefixes::new(name, self.0.depth().min(MOST));
        let found = (1..=prefixes.count()).rev().find_map(|count| self.0.find(name, &prefixes, count));
        found.map_or(self.0.root, |entry| entry.result)
    }

    fn update(&mut self, updates: &[NameUpdate]) -> bool {
        updates.iter().all(|update| match update {
            NameUpdate::Insert(name, result) => self.0.insert(name, *result).is_ok(),
            NameUpdate::Remove(name) => {
                self.0.remove(name);
                true
            }
        })
    }
}
