//! [`Filters`]: the Bloom filters of all classes, with counts, so that a bit goes when the last entry that
//! has it goes.
//!
//! Counts have four bits. A count that reaches 15 stays, and so does its bit, until the filter is rebuilt; at
//! two bits set of 32 that takes a chance of one in 10^20.

/// Counts of bits, and the filters that follow from them.
#[derive(Clone, Debug, Default)]
pub(super) struct Filters {
    words: Vec<u32>,
    /// Two bits' in each.
    counts: Vec<u8>,
    /// Elements that may be others than before, some of them more than once.
    pub(super) dirty: Vec<u32>,
}

/// A count that stays.
const FULL: u8 = 15;

impl Filters {
    /// Grows to so many elements; new ones are zero.
    pub(super) fn resize(&mut self, elements: usize) {
        self.words.resize(elements, 0);
        self.counts.resize(elements * 16, 0);
    }

    /// The elements.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// An entry more has a bit of the filter that starts at an element.
    #[inline]
    pub(super) fn add(&mut self, first: u32, bit: u32) {
        let (count, shift) = self.count(first, bit);
        let now = *count >> shift & FULL;
        if now < FULL {
            *count += 1 << shift;
        }
        if now == 0 {
            self.set(first + bit / 32, 1 << (bit % 32), true);
        }
    }

    /// An entry less has a bit.
    #[inline]
    pub(super) fn remove(&mut self, first: u32, bit: u32) {
        let (count, shift) = self.count(first, bit);
        let now = *count >> shift & FULL;
        debug_assert!(now > 0, "what goes came before");
        if now < FULL {
            *count -= 1 << shift;
        }
        if now == 1 {
            self.set(first + bit / 32, 1 << (bit % 32), false);
        }
    }

    /// Nothing has any bit of a filter any more.
    pub(super) fn clear(&mut self, first: u32, elements: u32) {
        let range = first as usize..(first + elements) as usize;
        self.words[range.clone()].fill(0);
        self.counts[range.start * 16..range.end * 16].fill(0);
        self.dirty.extend(first..first + elements);
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        (self.counts.capacity() + 4 * (self.words.capacity() + self.dirty.capacity())) as u64
    }

    fn count(&mut self, first: u32, bit: u32) -> (&mut u8, u32) {
        (&mut self.counts[first as usize * 16 + bit as usize / 2], bit % 2 * 4)
    }

    fn set(&mut self, element: u32, bit: u32, on: bool) {
        let word = &mut self.words[element as usize];
        *word = if on { *word | bit } else { *word & !bit };
        self.dirty.push(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_goes_with_the_last_that_has_it() {
        let mut filters = Filters::default();
        filters.resize(3);
        for bit in [0, 1, 1, 33, 63] {
            filters.add(1, bit);
        }
        assert_eq!(filters.words(), [0, 0b11, 0x8000_0002]);
        filters.remove(1, 1);
        filters.remove(1, 33);
        filters.remove(1, 0);
        assert_eq!(filters.words(), [0, 0b10, 0x8000_0000]);
        (0..20).for_each(|_| filters.add(1, 5));
        (0..20).for_each(|_| filters.remove(1, 5));
        assert_eq!(filters.words()[1], 0b10_0010, "a full count stays");
        filters.clear(1, 2);
        filters.add(1, 5);
        filters.remove(1, 5);
        assert_eq!(filters.words(), [0; 3]);
    }
}
