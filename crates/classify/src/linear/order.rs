//! [`Order`]: the entries of a table in order, with room between them.
//!
//! ```text
//! group 0            group 1            group 2 …
//! a b c d . . . .    e f g . . . . .    h i j k l . . .       in order; room at the end of each group
//! lowest: first      e                  h                     keys below a group's lowest are before it
//! ```

use super::layout::LANES;
use crate::pattern::Pattern;
use crate::rank::Rank;

/// An entry's place among all: its rule's rank, best first, then its place among the rule's patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// Inverted, so that keys ascend.
    rank: u64,
    pattern: u32,
}

impl Key {
    const FIRST: Self = Self { rank: 0, pattern: 0 };
    const LAST: Self = Self { rank: u64::MAX, pattern: u32::MAX };

    pub(super) const fn new(rank: Rank, pattern: u32) -> Self {
        Self { rank: !rank.bits(), pattern }
    }

    pub(super) const fn rank(self) -> Rank {
        Rank::from_bits(!self.rank)
    }
}

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held<T> {
    pub(super) key: Key,
    pub(super) pattern: Pattern<T>,
}

/// Entries in groups.
#[derive(Clone, Debug)]
pub(super) struct Order<T> {
    groups: Vec<Vec<Held<T>>>,
    lowest: Vec<Key>,
    /// The lanes of each group that changed, and which groups have some.
    dirty: Vec<u16>,
    dirty_groups: Vec<usize>,
}

/// No room where an entry is to go, and none near.
#[derive(Clone, Copy, Debug)]
pub(super) struct Full;

impl<T: Copy> Order<T> {
    /// Entries that are in order, spread over the first `used` of so many groups.
    pub(super) fn new(entries: &[Held<T>], used: usize, groups: usize) -> Self {
        let mut order = Self {
            groups: (0..groups).map(|_| Vec::with_capacity(LANES)).collect(),
            lowest: vec![Key::LAST; groups],
            dirty: vec![0; groups],
            dirty_groups: Vec::new(),
        };
        order.lowest[0] = Key::FIRST;
        if !entries.is_empty() {
            order.spread(entries, 0, used);
        }
        order
    }

    /// The entries by group.
    pub(super) fn groups(&self) -> &[Vec<Held<T>>] {
        &self.groups
    }

    /// Groups up to the last that has an entry. O(groups that are empty at the end).
    pub(super) fn used(&self) -> usize {
        self.groups.iter().rposition(|group| !group.is_empty()).map_or(0, |last| last + 1)
    }

    /// Puts an entry in its place, or in that of the one with its key. O(log n), amortised O(log² n) where it
    /// is tight.
    pub(super) fn put(&mut self, held: Held<T>) -> Result<(), Full> {
        let group = self.group_of(held.key);
        let entries = &mut self.groups[group];
        match entries.binary_search_by_key(&held.key, |entry| entry.key) {
            Ok(lane) => {
                entries[lane] = held;
                self.touch(group, lane, lane + 1);
            }
            Err(lane) if entries.len() < LANES => {
                entries.insert(lane, held);
                let to = entries.len();
                self.touch(group, lane, to);
            }
            Err(_) => self.share(group, held)?,
        }
        Ok(())
    }

    /// Takes an entry out; whether it was there. O(log n).
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let group = self.group_of(key);
        let entries = &mut self.groups[group];
        let Ok(lane) = entries.binary_search_by_key(&key, |entry| entry.key) else { return false };
        entries.remove(lane);
        let to = entries.len() + 1;
        self.touch(group, lane, to);
        true
    }

    /// The lanes that changed since this was asked last, by group; each group once.
    pub(super) fn take_dirty(&mut self) -> Vec<(usize, u16)> {
        let groups = std::mem::take(&mut self.dirty_groups);
        groups.into_iter().map(|group| (group, std::mem::take(&mut self.dirty[group]))).collect()
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let group = size_of::<Vec<Held<T>>>() + LANES * size_of::<Held<T>>() + size_of::<Key>() + 2;
        (self.groups.len() * group) as u64
    }

    /// The group that a key is in, or would be.
    fn group_of(&self, key: Key) -> usize {
        self.lowest.partition_point(|&lowest| lowest <= key) - 1
    }

    fn touch(&mut self, group: usize, from: usize, to: usize) {
        if self.dirty[group] == 0 {
            self.dirty_groups.push(group);
        }
        for lane in from..to {
            self.dirty[group] |= 1 << lane;
        }
    }

    /// Puts an entry into a full group: the smallest neighbourhood that has room, of a power of two groups,
    /// is spread evenly.
    fn share(&mut self, group: usize, held: Held<T>) -> Result<(), Full> {
        let mut size = 2;
        loop {
            let from = group / size * size;
            let to = (from + size).min(self.groups.len());
            let len: usize = self.groups[from..to].iter().map(Vec::len).sum();
            if len < (to - from) * (LANES - 1) {
                let mut entries: Vec<_> = self.groups[from..to].iter().flatten().copied().collect();
                entries.insert(entries.partition_point(|entry| entry.key < held.key), held);
                self.spread(&entries, from, to);
                return Ok(());
            }
            if to - from == self.groups.len() {
                return Err(Full);
            }
            size *= 2;
        }
    }

    /// Spreads entries, one at least, evenly over groups.
    fn spread(&mut self, entries: &[Held<T>], from: usize, to: usize) {
        let groups = to - from;
        for at in 0..groups {
            let part = &entries[at * entries.len() / groups..(at + 1) * entries.len() / groups];
            let group = from + at;
            let before = self.groups[group].len();
            self.groups[group].clear();
            self.groups[group].extend_from_slice(part);
            self.touch(group, 0, before.max(part.len()));
            // The first keeps its own, below which is what comes before all of these.
            if at > 0 {
                self.lowest[group] = entries[at * entries.len() / groups].key;
            }
        }
    }
}
