//! [`Patch`]: an update to an image as a set of writes.
//!
//! A patch is GAMT's write-bubble table (section 3.4), for every engine: locations are unique, grouped by
//! section and ascending, and each carries its value after the whole update. So order within a patch does not
//! matter, and applying a patch twice changes nothing.

use crate::section::SectionId;

/// One write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Section in the high bits, index in the low [`INDEX_BITS`], so that locations compare as integers.
    location: u64,
    /// The value, as wide as the section's elements.
    pub value: u64,
}

const INDEX_BITS: u32 = 48;

impl Write {
    /// The section.
    #[inline]
    pub fn section(&self) -> SectionId {
        #[allow(clippy::cast_possible_truncation)] // 16 bits are left
        SectionId((self.location >> INDEX_BITS) as u16)
    }

    /// The index of the element.
    #[inline]
    pub fn index(&self) -> u64 {
        self.location & ((1 << INDEX_BITS) - 1)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // for an index that was checked against a section in memory
    pub(crate) fn index_in_memory(&self) -> usize {
        self.index() as usize
    }
}

/// A set of writes that takes a table from one consistent state to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    writes: Vec<Write>,
    counts: Option<(u64, u64)>,
}

impl Patch {
    /// The writes, ascending by section and index, each location once.
    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The writes to one section, ascending by index. O(log n).
    pub fn of(&self, section: SectionId) -> &[Write] {
        let from = self.writes.partition_point(|write| write.section() < section);
        let count = self.writes[from..].partition_point(|write| write.section() == section);
        &self.writes[from..from + count]
    }

    /// The writes section by section.
    pub(crate) fn sections(&self) -> impl Iterator<Item = &[Write]> {
        let mut rest = &self.writes[..];
        std::iter::from_fn(move || {
            let section = rest.first()?.section();
            let (writes, others) = rest.split_at(rest.partition_point(|write| write.section() == section));
            rest = others;
            Some(writes)
        })
    }

    /// The table's counts after the update, if they are stated: entries and largest result.
    pub fn counts(&self) -> Option<(u64, u64)> {
        self.counts
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Joins this patch and a later one. For a location that both write, the later value stays. O(n log n).
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let mut builder = PatchBuilder { writes: self.writes };
        builder.writes.extend(next.writes);
        builder.finish(next.counts.or(self.counts))
    }
}

/// Collects writes in any order.
#[derive(Clone, Debug, Default)]
pub struct PatchBuilder {
    writes: Vec<Write>,
}

impl PatchBuilder {
    /// Makes an empty builder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty builder with this capacity.
    pub fn with_capacity(writes: usize) -> Self {
        Self { writes: Vec::with_capacity(writes) }
    }

    /// Sets a location. If a location is set several times, the last value stays. Panics if the index is 2^48
    /// or more.
    #[inline]
    pub fn set(&mut self, section: SectionId, index: u64, value: u64) {
        assert!(index < 1 << INDEX_BITS, "index {index} of a patch is over 48 bits");
        self.writes.push(Write { location: u64::from(section.0) << INDEX_BITS | index, value });
    }

    /// Number of writes so far. Repeated locations count each time.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether nothing was set.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Makes the patch. O(n log n), or O(n) if writes came in order. `counts` are the table's counts after
    /// it.
    pub fn finish(mut self, counts: Option<(u64, u64)>) -> Patch {
        if !self.writes.is_sorted_by(|a, b| a.location < b.location) {
            // The sort is stable, so the last write to a location is the last of its run.
            self.writes.sort_by_key(|write| write.location);
            self.writes.dedup_by(|later, kept| {
                let same = later.location == kept.location;
                if same {
                    kept.value = later.value;
                }
                same
            });
        }
        Patch { writes: self.writes, counts }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_location_once_with_its_last_value(sets in proptest::collection::vec((0..3u16, 0..5u64, any::<u64>()), 0..60)) {
            let mut builder = PatchBuilder::new();
            let mut map = BTreeMap::new();
            for &(section, index, value) in &sets {
                builder.set(SectionId(section), index, value);
                map.insert((section, index), value);
            }
            let patch = builder.finish(None);
            let got: Vec<_> = patch.writes().iter().map(|w| ((w.section().0, w.index()), w.value)).collect();
            for id in (0..4).map(SectionId) {
                prop_assert!(patch.of(id).iter().eq(patch.writes().iter().filter(|write| write.section() == id)));
            }
            prop_assert_eq!(got, map.into_iter().collect::<Vec<_>>());
        }

        /// Two patches as one are the patch of all their writes in order, with the counts that were stated
        /// last.
        #[test]
        fn one_after_the_other_is_as_written_in_order(
            first in proptest::collection::vec((0..3u16, 0..5u64, any::<u64>()), 0..30),
            second in proptest::collection::vec((0..3u16, 0..5u64, any::<u64>()), 0..30),
            counts in any::<[Option<(u64, u64)>; 2]>(),
        ) {
            let of = |sets: &[(u16, u64, u64)], counts| {
                let mut builder = PatchBuilder::new();
                sets.iter().for_each(|&(section, index, value)| builder.set(SectionId(section), index, value));
                builder.finish(counts)
            };
            let both = of(&[first.clone(), second.clone()].concat(), counts[1].or(counts[0]));
            prop_assert_eq!(of(&first, counts[0]).then(of(&second, counts[1])), both);
        }
    }
}
