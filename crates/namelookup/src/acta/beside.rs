//! [`Beside`]: what the control plane knows of a bucket beside its content, in 4 bytes.
//!
//! ```text
//! bits 0–6   bytes of the bucket that are taken, without its head
//! bit 7      whether the current update touched it
//! bits 8–31  two for each bit of its filter that is set: entries behind it, less 1; 3 stands for 4 and more
//! ```
//!
//! A bit of a filter with more than 4 entries behind it stays set until the table is rebuilt: then it is not
//! known any more when the last one leaves. A bucket has 12 bits for a handful of entries, so this is rare.

use super::hash::{FILTER_BITS, Hash};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside(u32);

const TOUCHED: u32 = 1 << 7;
const TAKEN: u32 = TOUCHED - 1;
/// Bits of a count.
const BITS: u32 = 2;
/// The count of entries that are too many to be counted.
const MANY: u32 = (1 << BITS) - 1;

const _: () = assert!(8 + BITS * FILTER_BITS <= u32::BITS);

impl Beside {
    /// Bytes that are taken.
    #[inline]
    pub(super) const fn taken(self) -> usize {
        (self.0 & TAKEN) as usize
    }

    #[inline]
    pub(super) fn set_taken(&mut self, bytes: usize) {
        self.0 = self.0 & !TAKEN | u32::try_from(bytes).expect("at most 62");
    }

    #[inline]
    pub(super) const fn is_touched(self) -> bool {
        self.0 & TOUCHED != 0
    }

    #[inline]
    pub(super) const fn touch(&mut self) {
        self.0 |= TOUCHED;
    }

    #[inline]
    pub(super) const fn settle(&mut self) {
        self.0 &= !TOUCHED;
    }

    /// Counts one more entry behind a bit of the filter that is set.
    #[inline]
    pub(super) fn add(&mut self, hash: Hash) {
        if self.count(hash) < MANY {
            self.0 += 1 << shift(hash);
        }
    }

    /// Uncounts an entry behind a bit of the filter. Returns whether it was the last one.
    #[inline]
    pub(super) fn remove(&mut self, hash: Hash) -> bool {
        match self.count(hash) {
            0 => return true,
            MANY => {}
            _ => self.0 -= 1 << shift(hash),
        }
        false
    }

    #[inline]
    fn count(self, hash: Hash) -> u32 {
        self.0 >> shift(hash) & MANY
    }
}

#[inline]
const fn shift(hash: Hash) -> u32 {
    8 + BITS * hash.filter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_up_to_four_and_keeps_the_rest() {
        let hashes: Vec<_> =
            (0..u64::from(FILTER_BITS)).map(|bit| Hash((bit * 65536).div_ceil(12))).collect();
        for (at, &hash) in hashes.iter().enumerate() {
            assert_eq!(hash.filter() as usize, at);
            let mut beside = Beside::default();
            beside.set_taken(62);
            beside.touch();
            let others = hashes.iter().filter(|&&other| other != hash);
            others.clone().for_each(|&other| beside.add(other));
            for more in 0..3 {
                // One entry is what the filter's bit says.
                (0..more).for_each(|_| beside.add(hash));
                (0..more).for_each(|_| assert!(!beside.remove(hash)));
                assert!(beside.remove(hash));
            }
            (0..5).for_each(|_| beside.add(hash));
            (0..9).for_each(|_| assert!(!beside.remove(hash), "it stays"));
            others.for_each(|&other| assert!(!beside.remove(other) && beside.remove(other)));
            assert!(beside.is_touched());
            beside.settle();
            beside.set_taken(beside.taken() - 1);
            assert!(beside.taken() == 61 && !beside.is_touched());
        }
    }
}
