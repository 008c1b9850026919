//! [`Aggregated`]: a table of names, and a smaller table with the same results (the paper's section 2.1).
//!
//! ```text
//! full              reduced
//! /com        1     /com        1
//! /com/a      1                       the nearest entry above it has its result: dropped
//! /com/a/b    2     /com/a/b    2
//! /com/a/b/c  1     /com/a/b/c  1     the nearest one is /com/a/b
//! ```
//!
//! The paper has two rules: an entry may be removed if its longest proper prefix in the table has the same
//! result. The paper says "shortest prefix" and means the nearest, as its example shows: with the shortest,
//! `/com/a/b/c` above would be removed, which would be wrong.
//!
//! The tables have equal *results* of lookups. Match lengths differ (`/com/a` matches 4 bytes in the reduced
//! table), and so do the entries. Keep the full table if you need these.
//!
//! An update changes the entries of the reduced table that depend on it, in both directions: entries beneath
//! it that were dropped come back, others are dropped. Nothing is lost, because the full table is kept: after
//! any updates the reduced table is equal to one that is made from scratch.

use crate::name::Name;
use crate::table::{NameTable, NodeId};
use crate::update::NameUpdate;

/// The number of changes whose data is prefetched together.
const TOGETHER: usize = 32;

/// A table of names and its reduced table, kept in step. Memory: that of both.
#[derive(Clone, Debug)]
pub struct Aggregated {
    /// All names, with the children of each node, which updates walk down.
    full: NameTable,
    reduced: NameTable,
}

impl Default for Aggregated {
    fn default() -> Self {
        Self::new(NameTable::new())
    }
}

impl Aggregated {
    /// Reduces a table. O(bytes of all names).
    pub fn new(mut full: NameTable) -> Self {
        full.keep_children();
        let children = full.children();
        let mut reduced = NameTable::new();
        let mut stack = vec![(NodeId::ROOT, 0)];
        while let Some((id, above)) = stack.pop() {
            let node = full.node(id);
            let covers = match node.result() {
                0 => above,
                result => {
                    if result != above {
                        reduced.insert(&node.name(), result);
                    }
                    result
                }
            };
            stack.extend(children.of_node(node).map(|child| (child.id(), covers)));
        }
        drop(children);
        Self { full, reduced }
    }

    /// All entries.
    pub const fn full(&self) -> &NameTable {
        &self.full
    }

    /// The entries that lookups need.
    pub const fn reduced(&self) -> &NameTable {
        &self.reduced
    }

    /// Both tables, for following their changes. Changing an entry of one alone breaks the relation.
    pub(crate) const fn both_mut(&mut self) -> [&mut NameTable; 2] {
        [&mut self.full, &mut self.reduced]
    }

    /// Makes a change in both. Returns whether it changed the full table.
    ///
    /// O(length) expected. If names beneath the entry get another result, the nodes from it down to the next
    /// entries on each path are visited, too: an entry that covers much, such as the root, costs as much as
    /// it covers directly.
    pub fn apply(&mut self, update: &NameUpdate) -> bool {
        let name = update.name();
        let (before, now) = match update {
            NameUpdate::Insert(_, result) => (self.full.insert(name, *result), *result),
            NameUpdate::Remove(_) => (self.full.remove(name), 0),
        };
        if before == now {
            return false;
        }
        let above = self.nearest_above(name);
        match now {
            0 => self.reduced.remove(name),
            now if now == above => self.reduced.remove(name),
            now => self.reduced.insert(name, now),
        };
        let or_above = |result| if result == 0 { above } else { result };
        self.cover(name, or_above(before), or_above(now));
        true
    }

    /// Makes changes in order. Returns how many changed the full table. Faster than single changes, like
    /// [`NameTable::apply_all`].
    pub fn apply_all<'u>(&mut self, updates: impl IntoIterator<Item = &'u NameUpdate>) -> usize {
        let mut updates = updates.into_iter();
        let mut group = Vec::with_capacity(TOGETHER);
        let mut changes = 0;
        loop {
            group.extend(updates.by_ref().take(TOGETHER));
            if group.is_empty() {
                return changes;
            }
            self.full.fetch(&group);
            self.reduced.fetch(&group);
            changes += group.drain(..).filter(|update| self.apply(update)).count();
        }
    }

    /// Bytes held by both.
    pub fn memory_usage(&self) -> u64 {
        self.full.memory_usage() + self.reduced.memory_usage()
    }

    /// The result of the longest proper prefix that is an entry, 0 for none.
    fn nearest_above(&self, name: &Name) -> u32 {
        name.parent().map_or(0, |parent| self.full.lookup(parent).result)
    }

    /// Handles a change of the result that covers the names directly beneath a name: entries with the old
    /// result are needed again, and entries with the new result are not needed any more.
    fn cover(&mut self, name: &Name, before: u32, now: u32) {
        if before == now {
            return;
        }
        let Some(at) = self.full.find(name) else { return };
        let children = self.full.children();
        let mut stack: Vec<NodeId> = children.of_node(self.full.node(at)).map(|child| child.id()).collect();
        while let Some(id) = stack.pop() {
            let node = self.full.node(id);
            match node.result() {
                0 => stack.extend(children.of_node(node).map(|child| child.id())),
                result if result == before => {
                    self.reduced.insert(&node.name(), result);
                }
                result if result == now => {
                    self.reduced.remove(&node.name());
                }
                _ => {}
            }
        }
    }
}

/// The effect of the paper's two rules on a table. An entry is removed if both apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Entries of the table.
    pub entries: usize,
    /// Rule 1: entries that have another entry as a proper prefix.
    pub beneath: usize,
    /// Rule 2: those of them whose nearest such prefix has the same result. This number of entries is saved.
    pub saved: usize,
}

impl Savings {
    /// Counts the savings in a table. O(entries and the nodes between them).
    pub fn of(names: &NameTable) -> Self {
        let children = names.children();
        let mut savings = Self::default();
        let mut stack = vec![(NodeId::ROOT, 0)];
        while let Some((id, above)) = stack.pop() {
            let node = names.node(id);
            let result = node.result();
            if result != 0 {
                savings.entries += 1;
                savings.beneath += usize::from(above != 0);
                savings.saved += usize::from(above == result);
            }
            let covers = if result == 0 { above } else { result };
            stack.extend(children.of_node(node).map(|child| (child.id(), covers)));
        }
        savings
    }

    /// Entries that are left.
    pub const fn left(self) -> usize {
        self.entries - self.saved
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::name::NameBuf;
    use crate::oracle::Oracle;

    fn name(text: &str) -> NameBuf {
        NameBuf::new(text).unwrap()
    }

    fn entries(table: &NameTable) -> BTreeMap<NameBuf, u32> {
        table.iter().collect()
    }

    #[test]
    fn the_picture_above() {
        let texts = [("/com", 1), ("/com/a", 1), ("/com/a/b", 2), ("/com/a/b/c", 1)];
        let full: NameTable = texts.map(|(text, result)| (name(text), result)).into_iter().collect();
        assert_eq!(Savings::of(&full), Savings { entries: 4, beneath: 3, saved: 1 });
        let mut both = Aggregated::new(full);
        let left =
            |both: &Aggregated| entries(&both.reduced).keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(left(&both), ["/com", "/com/a/b", "/com/a/b/c"]);
        // The entry that covered a dropped one goes, and the dropped one is back.
        assert!(both.apply(&NameUpdate::Remove(name("/com"))));
        assert_eq!(left(&both), ["/com/a", "/com/a/b", "/com/a/b/c"]);
        // A dropped entry goes, and nothing changes.
        assert!(both.apply(&NameUpdate::Insert(name("/com"), 1)));
        assert!(both.apply(&NameUpdate::Remove(name("/com/a"))));
        assert_eq!(left(&both), ["/com", "/com/a/b", "/com/a/b/c"]);
        // The one between goes: what is beneath it is covered by the same result.
        assert!(both.apply(&NameUpdate::Remove(name("/com/a/b"))));
        assert_eq!(left(&both), ["/com"]);
        assert!(!both.apply(&NameUpdate::Remove(name("/com/a/b"))));
    }

    fn names() -> impl Strategy<Value = NameBuf> {
        let component = prop::sample::select(vec![&b"a"[..], b"ab", b"b"]);
        proptest::collection::vec(component, 0..6)
            .prop_map(|components| NameBuf::from_components(components).expect("components are names"))
    }

    /// The full table is what it should be, the reduced one agrees in results, and no entry of it is one that
    /// the rules drop.
    fn held(both: &Aggregated, oracle: &Oracle, probes: &[NameBuf]) -> Result<(), TestCaseError> {
        prop_assert_eq!(&entries(both.full()), &oracle.0);
        let reduced = entries(both.reduced());
        for probe in oracle.0.keys().chain(probes) {
            prop_assert_eq!(both.reduced().lookup(probe).result, oracle.lookup(probe).result);
        }
        for (entry, &result) in &reduced {
            let above = entry.parent().map_or(0, |parent| both.reduced().lookup(parent).result);
            prop_assert_ne!(above, result, "{} could go", entry);
        }
        prop_assert_eq!(Savings::of(both.full()).left(), both.reduced().len());
        prop_assert_eq!(&entries(Aggregated::new(both.full().clone()).reduced()), &reduced);
        Ok(())
    }

    proptest! {
        /// After every update the tables agree in results, and no entry is left that the rules drop.
        #[test]
        fn equivalent_and_minimal_after_every_update(
            start in proptest::collection::vec((names(), 1..4u32), 0..40),
            updates in proptest::collection::vec((names(), 0..4u32), 0..60),
            probes in proptest::collection::vec(names(), 30),
        ) {
            let mut oracle: Oracle = start.iter().cloned().collect();
            let mut both = Aggregated::new(start.into_iter().collect());
            held(&both, &oracle, &probes)?;
            for (name, result) in updates {
                let (update, had) = match result {
                    0 => (NameUpdate::Remove(name.clone()), oracle.0.remove(&name)),
                    result => {
                        (NameUpdate::Insert(name.clone(), result), oracle.0.insert(name.clone(), result))
                    }
                };
                let changed = match result % 2 {
                    0 => usize::from(both.apply(&update)),
                    _ => both.apply_all([&update, &update]),
                };
                prop_assert_eq!(changed, usize::from(had.unwrap_or(0) != result));
                held(&both, &oracle, &probes)?;
            }
        }
    }
}
