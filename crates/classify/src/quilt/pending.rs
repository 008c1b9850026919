//! [`Pending`]: what the update at hand changes of an array that lies in the table alone.
//!
//! ```text
//! at      u16   by place: which of the elements it has, from 1 on; 0: as in the table
//! all           elements
//! order   u64   the elements' places
//! ```
//!
//! A number for each place, and not a hash table: with one, updates of 10 K rules ran at 0.8 times the rate.
//! Numbers come again after 65,535 elements: in a large update several elements share one, and their places
//! tell them apart. `at` stays for the next update. The lists grow anew in each large one.

use super::dirty::sort;

/// Elements by their places, as they are after the changes so far.
#[derive(Clone, Debug)]
pub(super) struct Pending<V> {
    at: Vec<u16>,
    all: Vec<V>,
    /// Places in the high halves, which of the elements in the low ones.
    order: Vec<u64>,
    /// Memory for sorting.
    other: Vec<u64>,
}

impl<V: Copy> Pending<V> {
    pub(super) const fn new() -> Self {
        Self { at: Vec::new(), all: Vec::new(), order: Vec::new(), other: Vec::new() }
    }

    /// How many places.
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }

    /// The element of a place, if that has changed.
    #[inline(always)]
    pub(super) fn get(&self, place: usize) -> Option<&V> {
        let nth = *self.at.get(place)?;
        if nth == 0 { None } else { self.all.get(self.find(place, nth)) }
    }

    /// The index of the element of a place by its number.
    #[inline(always)]
    fn find(&self, place: usize, nth: u16) -> usize {
        let first = usize::from(nth) - 1;
        if self.all.len() <= NUMBERS { first } else { self.find_of_many(place, first) }
    }

    #[cold]
    fn find_of_many(&self, place: usize, first: usize) -> usize {
        let is = |&nth: &usize| halves(self.order[nth]).0 as usize == place;
        (first..self.all.len()).step_by(NUMBERS).find(is).expect("a place that has a number has an element")
    }

    /// The element of a place for a change; `before` makes it if there was none.
    #[inline(always)]
    pub(super) fn change(&mut self, place: usize, before: impl FnOnce() -> V) -> &mut V {
        if self.at.len() <= place {
            self.extend(place);
        }
        if self.at[place] == 0 {
            self.at[place] = number_of(self.all.len());
            self.order.push((place as u64) << 32 | self.all.len() as u64);
            self.all.push(before());
        }
        let nth = self.find(place, self.at[place]);
        &mut self.all[nth]
    }

    #[cold]
    fn extend(&mut self, place: usize) {
        self.at.reserve_exact(place + place / 16 + 1 - self.at.len());
        self.at.resize(self.at.capacity(), 0);
    }

    /// Puts places in order, before they are gone through. What a place has can't be asked for any more.
    pub(super) fn sort(&mut self) {
        sort(&mut self.order, &mut self.other, |key| halves(key).0);
    }

    /// All places with their elements, ascending once they were [sorted](Self::sort).
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &V)> + Clone {
        self.order.iter().map(move |&key| (halves(key).0 as usize, &self.all[halves(key).1 as usize]))
    }

    /// Forgets all, and keeps memory for a small update.
    pub(super) fn clear(&mut self) {
        for &key in &self.order {
            self.at[halves(key).0 as usize] = 0;
        }
        release(&mut self.all);
        release(&mut self.order);
        release(&mut self.other);
    }

    pub(super) fn memory_usage(&self) -> u64 {
        let keys = (self.order.capacity() + self.other.capacity()) * size_of::<u64>();
        (self.at.capacity() * size_of::<u16>() + keys + self.all.capacity() * size_of::<V>()) as u64
    }
}

/// Elements that a list keeps memory for.
const SMALL: usize = 16;

/// Empties a list, and keeps memory for a small update.
pub(super) fn release<V>(list: &mut Vec<V>) {
    list.clear();
    list.shrink_to(SMALL);
}

/// The numbers that elements have in turns.
const NUMBERS: usize = u16::MAX as usize;

#[allow(clippy::cast_possible_truncation)] // at most NUMBERS
const fn number_of(nth: usize) -> u16 {
    (nth % NUMBERS) as u16 + 1
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
        for place in [9, 3, 1 << 20, 3, 9, 4] {
            *pending.change(place, || 100) += place;
        }
        assert_eq!((pending.get(3), pending.get(5), pending.len()), (Some(&106), None, 4));
        pending.sort();
        let all: Vec<_> = pending.iter().map(|(place, &value)| (place, value)).collect();
        assert_eq!(all, [(3, 106), (4, 104), (9, 118), (1 << 20, (1 << 20) + 100)]);
        pending.clear();
        assert_eq!((pending.get(3), pending.len()), (None, 0));
    }

    #[test]
    fn elements_of_one_number_are_told_apart() {
        let mut pending = Pending::new();
        let places = || (0..150_000).map(|nth| nth * 7 % 200_003);
        for place in places().chain(places().step_by(3)) {
            *pending.change(place, || place) += 1;
        }
        for (nth, place) in places().enumerate() {
            assert_eq!(pending.get(place), Some(&(place + 1 + usize::from(nth % 3 == 0))), "{place}");
        }
        assert_eq!((pending.get(200_002), pending.get(1 << 20), pending.len()), (None, None, 150_000));
        pending.sort();
        assert!(pending.iter().map(|(place, _)| place).is_sorted());
    }
}
