//! [`Runs`]: the parts of a section that classes have, each of any length.

use std::collections::{BTreeMap, BTreeSet};

/// Hands out parts of a section; a part that comes back is joined with what is free beside it, and the
/// shortest that is long enough is handed out first. O(log of the free parts).
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Lengths of free parts by their start.
    free: BTreeMap<u32, u32>,
    /// Free parts by length, then start.
    by_length: BTreeSet<(u32, u32)>,
    capacity: u32,
}

impl Runs {
    /// All of a section free.
    pub(super) fn new(capacity: u32) -> Self {
        let mut runs = Self { free: BTreeMap::new(), by_length: BTreeSet::new(), capacity };
        runs.add(0, capacity);
        runs
    }

    /// A part of some length, none of it 0; `None` where none is long enough.
    pub(super) fn take(&mut self, length: u32) -> Option<u32> {
        let &(found, start) = self.by_length.range((length, 0)..).next()?;
        self.drop(start, found);
        self.add(start + length, found - length);
        Some(start)
    }

    /// Takes a part back.
    pub(super) fn give_back(&mut self, start: u32, length: u32) {
        let (mut from, mut to) = (start, start + length);
        if let Some((&before, &len)) = self.free.range(..start).next_back()
            && before + len == start
        {
            self.drop(before, len);
            from = before;
        }
        if let Some(&len) = self.free.get(&to) {
            self.drop(to, len);
            to += len;
        }
        self.add(from, to - from);
    }

    /// Where the part that is free at the end starts.
    pub(super) fn end(&self) -> u32 {
        match self.free.last_key_value() {
            Some((&start, &length)) if start + length == self.capacity => start,
            _ => self.capacity,
        }
    }

    /// Makes the section shorter, as far as its end is free.
    pub(super) fn shorten(&mut self, capacity: u32) {
        let end = self.end();
        assert!(end <= capacity && capacity <= self.capacity, "{end} are in use, {capacity} wanted");
        if end < self.capacity {
            self.drop(end, self.capacity - end);
            self.add(end, capacity - end);
        }
        self.capacity = capacity;
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        (self.free.len() * 2 * size_of::<(u32, u32)>()) as u64
    }

    fn add(&mut self, start: u32, length: u32) {
        if length > 0 {
            self.free.insert(start, length);
            self.by_length.insert((length, start));
        }
    }

    fn drop(&mut self, start: u32, length: u32) {
        self.free.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_rng::Rng;

    use super::*;

    #[test]
    fn parts_are_apart_and_come_together_again() {
        let mut rng = Rng::new(1);
        let mut runs = Runs::new(1_000);
        let (mut taken, mut owner) = (Vec::new(), [false; 1_000]);
        for _ in 0..20_000 {
            if rng.chance(0.5) {
                let length = u32::try_from(1 + rng.below(40)).expect("small");
                if let Some(start) = runs.take(length) {
                    let part = &mut owner[start as usize..][..length as usize];
                    assert!(part.iter().all(|&is_taken| !is_taken), "a part was handed out twice");
                    part.fill(true);
                    taken.push((start, length));
                }
            } else if !taken.is_empty() {
                let (start, length) = taken.swap_remove(rng.index(taken.len()));
                owner[start as usize..][..length as usize].fill(false);
                runs.give_back(start, length);
            }
        }
        taken.into_iter().for_each(|(start, length)| runs.give_back(start, length));
        assert_eq!((runs.end(), runs.free.len(), runs.by_length.len()), (0, 1, 1));
        runs.shorten(10);
        assert_eq!((runs.take(11), runs.take(10), runs.take(1)), (None, Some(0), None));
        runs.shorten(10);
    }
}
