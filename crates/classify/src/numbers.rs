//! [`Numbers`]: what rules have, by their numbers.
//!
//! ```text
//! array    u32 a number, up to the largest one      where at least a third of all numbers have a value
//! index    values by the hash of the number         elsewhere
//! ```
//!
//! An element of all ones says nothing: a set beside the array has the numbers whose value this is.
//!
//! Most sets give numbers one after the other, and an array of these takes a third of what an index takes. It
//! becomes an index where numbers lie too far apart, and an array again where half of all are taken. Between
//! two changes of the form lie as many changes of the set as there are rules, or numbers far from all others.

use rustc_hash::FxHashSet;
use wirespeed_image::{HugeVec, Index, prefetch};

/// A value of 32 bits for some numbers of rules.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    form: Form,
    len: usize,
    /// The largest number that ever had a value.
    last: u32,
}

#[derive(Clone, Debug)]
enum Form {
    /// An element for each number.
    Array { values: HugeVec<u32>, ones: FxHashSet<u32> },
    /// An index of hashes.
    Hashed(Index),
}

/// The element of a number without a value, and of one whose value is the same.
const ONES: u32 = u32::MAX;
/// Numbers for each one that has a value, at most, in an array.
const MOST_NUMBERS: u64 = 3;
/// Numbers that an array may always have.
const FEW: u64 = 64;

impl Numbers {
    /// How many have a value.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<u32> {
        match &self.form {
            Form::Array { values, ones } => match values.get(number as usize) {
                Some(&value) if value != ONES || ones.contains(&number) => Some(value),
                _ => None,
            },
            // No two numbers have one hash.
            Form::Hashed(index) => index.find(hash(number), |_| true),
        }
    }

    /// Prefetches what [`get`](Self::get) reads.
    #[inline]
    pub(crate) fn fetch(&self, number: u32) {
        match &self.form {
            Form::Array { values, .. } => prefetch(values, number as usize),
            Form::Hashed(index) => index.fetch(hash(number)),
        }
    }

    /// Gives a number, which is not 0, a value. Returns the value that it had.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, value: u32) -> Option<u32> {
        if number > self.last {
            self.last = number;
            self.choose();
        }
        let before = self.form.set(number, value);
        self.len += usize::from(before.is_none());
        before
    }

    /// Takes the value of a number. Returns it.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) -> Option<u32> {
        let before = self.get(number)?;
        self.len -= 1;
        match &mut self.form {
            Form::Array { values, ones } => {
                values[number as usize] = ONES;
                if before == ONES {
                    ones.remove(&number);
                }
            }
            Form::Hashed(index) => index.remove(hash(number), before),
        }
        Some(before)
    }

    /// All numbers with their values, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let (values, index) = match &self.form {
            Form::Array { values, .. } => (&values[..], None),
            Form::Hashed(index) => (&[][..], Some(index)),
        };
        let of_array = (0..).zip(values).filter_map(|(number, _)| Some((number, self.get(number)?)));
        of_array.chain(index.into_iter().flat_map(Index::iter).map(|(hash, value)| (number_of(hash), value)))
    }

    pub(crate) fn memory_usage(&self) -> usize {
        match &self.form {
            Form::Array { values, ones } => (values.capacity() + ones.capacity()) * size_of::<u32>(),
            Form::Hashed(index) => index.memory_usage(),
        }
    }

    /// Takes the other form where that is the smaller one for one more number than there are.
    #[inline]
    fn choose(&mut self) {
        let (numbers, len) = (u64::from(self.last) + 1, self.len as u64 + 1);
        match self.form {
            Form::Array { .. } if numbers > (len * MOST_NUMBERS).max(FEW) => {
                let mut index = Index::new();
                index.reserve(self.len + 1);
                self.change_to(Form::Hashed(index));
            }
            Form::Hashed(_) if numbers <= len * 2 => self.change_to(Form::array(self.last as usize + 1)),
            _ => {}
        }
    }

    #[cold]
    fn change_to(&mut self, mut form: Form) {
        self.iter().for_each(|(number, value)| {
            form.set(number, value);
        });
        self.form = form;
    }
}

impl Form {
    fn array(numbers: usize) -> Self {
        Self::Array { values: HugeVec::filled(ONES, numbers), ones: FxHashSet::default() }
    }

    #[inline]
    fn set(&mut self, number: u32, value: u32) -> Option<u32> {
        match self {
            Self::Array { values, ones } => {
                let at = number as usize;
                if at >= values.len() {
                    values.make_room(at + 1 - values.len());
                    values.resize(at + 1, ONES);
                }
                let before = std::mem::replace(&mut values[at], value);
                let was_ones = before == ONES && !ones.is_empty() && ones.remove(&number);
                if value == ONES {
                    ones.insert(number);
                }
                (before != ONES || was_ones).then_some(before)
            }
            Self::Hashed(index) => match index.look(hash(number), |_, _| true) {
                Ok((at, before)) => {
                    index.replace_at(at, value);
                    Some(before)
                }
                Err(at) => {
                    index.insert_at(at, hash(number), value);
                    None
                }
            },
        }
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self { form: Form::array(0), len: 0, last: 0 }
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|(number, value)| other.get(number) == Some(value))
    }
}

impl Eq for Numbers {}

/// Odd, so that there is another hash for each number.
const FACTOR: u32 = 0x9e37_79b1;

/// All ones for 0 alone, which no rule has: an index takes any value beside other hashes.
#[inline]
const fn hash(number: u32) -> u32 {
    !number.wrapping_mul(FACTOR)
}

/// The number of a hash.
const fn number_of(hash: u32) -> u32 {
    /// Newton's method finds it: an odd number is its own inverse in its lowest three bits, and each step
    /// doubles the bits that are right.
    const INVERSE: u32 = {
        let (mut inverse, mut step) = (FACTOR, 0);
        while step < 4 {
            inverse = inverse.wrapping_mul(2u32.wrapping_sub(FACTOR.wrapping_mul(inverse)));
            step += 1;
        }
        inverse
    };
    (!hash).wrapping_mul(INVERSE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers close together, far apart, and both; some values are all ones.
        #[test]
        fn they_are_a_map(
            steps in proptest::collection::vec((1..400u32, 0..8u32, 0..4u32), 0..600),
            apart in prop_oneof![Just(1u32), Just(2), Just(3), Just(1 << 20)],
        ) {
            let (mut numbers, mut map) = (Numbers::default(), BTreeMap::new());
            for (at, (number, kind, what)) in (0..).zip(steps) {
                // One in eight far from the others.
                let number = if kind == 0 { number << 20 | 1 } else { number * apart };
                let value = if what == 0 { u32::MAX } else { at };
                if what > 1 && map.contains_key(&number) {
                    prop_assert_eq!(numbers.remove(number), map.remove(&number));
                } else {
                    prop_assert_eq!(numbers.set(number, value), map.insert(number, value));
                }
                numbers.fetch(number);
                prop_assert_eq!(numbers.len(), map.len());
                prop_assert_eq!(numbers.get(number), map.get(&number).copied());
            }
            for number in (0..1200).chain(map.keys().copied()) {
                prop_assert_eq!(numbers.get(number), map.get(&number).copied(), "{}", number);
            }
            prop_assert_eq!(&numbers.iter().collect::<BTreeMap<_, _>>(), &map);
            let mut other = Numbers::default();
            for (&number, &value) in map.iter().rev() {
                other.set(number, value);
            }
            prop_assert!(numbers == other);
            other.set(5, 1 << 31);
            prop_assert!(numbers != other);
        }
    }

    #[test]
    fn they_take_what_the_numbers_need() {
        let mut numbers = Numbers::default();
        let is_array = |numbers: &Numbers| matches!(numbers.form, Form::Array { .. });
        (1..1000).for_each(|number| assert_eq!(numbers.set(number, number), None));
        assert!(is_array(&numbers) && numbers.memory_usage() < 5000);
        numbers.set(1 << 30, 1000);
        assert!(!is_array(&numbers) && numbers.memory_usage() < 16_000);
        let mut numbers = Numbers::default();
        (1..1000).for_each(|number| assert_eq!(numbers.set(number * 10, number), None));
        assert!(!is_array(&numbers));
        // Later numbers fill the set until half of all are taken.
        (10_000..20_000).for_each(|number| assert_eq!(numbers.set(number, number), None));
        assert!(is_array(&numbers) && numbers.len() == 10_999);
        assert!((1..1000).all(|n| numbers.get(n * 10) == Some(n) && numbers.get(n * 10 + 1).is_none()));
        assert!((1..1 << 20).all(|number| number_of(hash(number)) == number));
    }
}
