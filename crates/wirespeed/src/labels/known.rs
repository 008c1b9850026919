//! [`Known`]: finds the index of a value. It holds no values: the caller compares.

use std::collections::{BTreeSet, HashMap};

use hashbrown::HashTable;
use wirespeed_fib::NextHop;

/// The indexes that have values, by the hash of the value. Several indexes may have equal values; the first
/// of them is found.
#[derive(Default)]
pub(super) struct Known {
    /// The first index of each value.
    first: HashTable<NextHop>,
    /// The hash of each index's value, at the index. Values may change, so it is not taken again.
    hashes: Vec<u64>,
    /// The indexes whose values equal another index's, each with the number of its group.
    group: HashMap<NextHop, u64>,
    members: BTreeSet<(u64, NextHop)>,
    groups: u64,
}

impl Known {
    /// The first index with this value.
    pub(super) fn find(&self, hash: u64, mut is_equal: impl FnMut(NextHop) -> bool) -> Option<NextHop> {
        self.first.find(hash, |&known| is_equal(known)).copied()
    }

    /// Adds an index that is not there.
    pub(super) fn add(&mut self, hash: u64, next_hop: NextHop, mut is_equal: impl FnMut(NextHop) -> bool) {
        let at = next_hop.0 as usize;
        if self.hashes.len() <= at {
            self.hashes.resize(at + 1, 0);
        }
        self.hashes[at] = hash;
        let hashes = &self.hashes;
        let Some(first) = self.first.find_mut(hash, |&known| is_equal(known)) else {
            self.first.insert_unique(hash, next_hop, |known| hashes[known.0 as usize]);
            return;
        };
        let group = *self.group.entry(*first).or_insert_with(|| {
            self.groups += 1;
            self.members.insert((self.groups, *first));
            self.groups
        });
        self.group.insert(next_hop, group);
        self.members.insert((group, next_hop));
        *first = next_hop.min(*first);
    }

    /// Removes an index that is there. The next one with an equal value is found from now on.
    pub(super) fn remove(&mut self, next_hop: NextHop) {
        let heir = self.group.remove(&next_hop).and_then(|group| {
            self.members.remove(&(group, next_hop));
            let mut left = self.members.range((group, NextHop::NONE)..=(group, NextHop(u32::MAX)));
            let (heir, is_alone) = (left.next()?.1, left.next().is_none());
            if is_alone {
                self.members.remove(&(group, heir));
                self.group.remove(&heir);
            }
            Some(heir)
        });
        let hash = self.hashes[next_hop.0 as usize];
        if let Ok(mut first) = self.first.find_entry(hash, |&known| known == next_hop) {
            match heir {
                Some(heir) => *first.get_mut() = heir,
                None => _ = first.remove(),
            }
        }
    }

    /// Whether an index has the value of an index before it.
    pub(super) fn is_twin(&self, next_hop: NextHop) -> bool {
        self.group.get(&next_hop).is_some_and(|&group| {
            let first = self.members.range((group, NextHop::NONE)..).next();
            first != Some(&(group, next_hop))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Values 0 to 3 under few indexes, with hashes that collide.
        #[test]
        fn the_first_of_equal_values_is_found(steps in vec((1u32..12, 0u64..4), 1..200)) {
            let (mut known, mut model) = (Known::default(), [None; 12]);
            for (n, value) in steps {
                let at = n as usize;
                if model[at].is_some() {
                    known.remove(NextHop(n));
                    model[at] = None;
                } else {
                    known.add(value / 2, NextHop(n), |other| model[other.0 as usize] == Some(value));
                    model[at] = Some(value);
                }
                for value in 0..4 {
                    let found = known.find(value / 2, |n| model[n.0 as usize] == Some(value));
                    let first = (1..).map(NextHop).zip(&model[1..]).find(|&(_, &v)| v == Some(value));
                    prop_assert_eq!(found, first.map(|(n, _)| n));
                }
                for n in 1..12 {
                    let is_twin = model[n].is_some() && model[1..n].contains(&model[n]);
                    prop_assert_eq!(known.is_twin(NextHop(u32::try_from(n).unwrap())), is_twin);
                }
                prop_assert_eq!(known.members.len(), known.group.len());
            }
        }
    }
}
