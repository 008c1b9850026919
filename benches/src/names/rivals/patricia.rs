//! `patricia_tree`: a radix trie of bytes.

use patricia_tree::PatriciaMap;
use wirespeed_namelookup::{Name, NameTable, NameUpdate};

use super::ends_a_component;
use crate::names::OfNames;
use crate::table::{Contestant, one_by_one};

/// `PatriciaMap`.
pub struct Patricia(PatriciaMap<u32>);

impl Patricia {
    /// Inserts all names.
    pub fn build(names: &NameTable) -> Self {
        Self(names.iter().map(|(name, result)| (name.as_bytes().to_vec(), result)).collect())
    }
}

impl Contestant<OfNames> for Patricia {
    one_by_one!(OfNames);

    #[inline]
    fn one(&self, name: &Name) -> u32 {
        let mut bytes = name.as_bytes();
        // What matches by bytes alone ends within a component: then again with the name up to that component.
        while let Some((prefix, &result)) = self.0.get_longest_common_prefix(bytes) {
            match prefix.iter().rposition(|&b| b == b'/') {
                Some(slash) if !ends_a_component(name, prefix.len()) => bytes = &bytes[..slash],
                _ => return result,
            }
        }
        0
    }

    fn update(&mut self, updates: &[NameUpdate]) -> bool {
        for update in updates {
            match update {
                NameUpdate::Insert(name, result) => self.0.insert(name.as_bytes(), *result),
                NameUpdate::Remove(name) => self.0.remove(name.as_bytes()),
            };
        }
        true
    }
}
