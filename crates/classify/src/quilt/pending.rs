//! [`Pending`]: what the update at hand changes of an array that lies in the table alone.

use rustc_hash::FxHashMap;

use super::dirty::sort;

/// Elements by their places, as they are after the changes so far.
#[derive(Clone, Debug)]
pub(super) struct Pending<V> {
    /// Which of the elements a place has.
    at: FxHashMap<u32, u32>,
    all: Vec<V>,
    /// Places in the high halves, which of the elements in the low ones.
    order: Vec<u64>,
    /// Memory for sorting.
    other: Vec<u64>,
}

impl<V: Copy> Pending<V> {
    pub(super) fn new() -> Self {
        Self { at: FxHashMap::default(), all: Vec::new(), order: Vec::new(), other: Vec::new() }
    }

    /// How many places.
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// The element of a place, if that has changed.
    #[inline(always)]
    pub(super) fn get(&self, place: u32) -> Option<&V> {
        // Outside of updates, and in those that change nothing yet, there is no hash to make.
        if self.all.is_empty() {
            return None;
        }
        self.at.get(&place).map(|&nth| &self.all[nth as usize])
    }

    /// The element of a place for a change; `before` makes it if there was none.
    #[inline(always)]
    pub(super) fn change(&mut self, place: u32, before: impl FnOnce() -> V) -> &mut V {
        let nth = *self.at.entry(place).or_insert_with(|| {
            let nth = u32::try_from(self.all.len()).expect("fewer than places");
            self.all.push(before());
            self.order.push(u64::from(place) << 32 | u64::from(nth));
            nth
        });
        &mut self.all[nth as usize]
    }

    /// Puts places in order.
    pub(super) fn sort(&mut self) {
        sort(&mut self.order, &mut self.other, |key| halves(key).0);
    }

    /// All places with their elements, ascending once they were [sorted](Self::sort).
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &V)> + Clone {
        self.order.iter().map(move |&key| (halves(key).0, &self.all[halves(key).1 as usize]))
    }

    /// Forgets all, and keeps memory for so many.
    pub(super) fn clear(&mut self, kept: usize) {
        self.at.clear();
        self.at.shrink_to(kept);
        self.all.clear();
        self.all.shrink_to(kept);
        for keys in [&mut self.order, &mut self.other] {
            keys.clear();
            keys.shrink_to(kept);
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        // A byte beside each entry of the map, an eighth of which are free at least.
        let of_map = self.at.capacity() * (size_of::<(u32, u32)>() + 1) * 8 / 7;
        let keys = (self.order.capacity() + self.other.capacity()) * size_of::<u64>();
        (of_map + keys + self.all.capacity() * size_of::<V>()) as u64
    }
}

#[allow(clippy::cast_possible_truncation)] // the halves
const fn halves(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_what_they_were_given_last() {
        let mut pending = Pending::new();
        for place in [9, 3, 1 << 31, 3, 9, 4] {
            *pending.change(place, || 100) += place;
        }
        assert_eq!((pending.get(3), pending.get(5), pending.len()), (Some(&106), None, 4));
        pending.sort();
        let all: Vec<_> = pending.iter().map(|(place, &value)| (place, value)).collect();
        assert_eq!(all, [(3, 106), (4, 104), (9, 118), (1 << 31, (1 << 31) + 100)]);
        pending.clear(0);
        assert_eq!((pending.get(3), pending.len(), pending.memory_usage()), (None, 0, 0));
    }
}
