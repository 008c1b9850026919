//! [`Pattern`]: a value under a mask.

use crate::tuple::{Field, Tuple};

/// A value under a mask: matches the tuples whose bits are those of the value wherever the mask has one.
///
/// The value has no bit beside the mask, and the mask none beside the tuple's fields, so that two patterns
/// that match the same tuples are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern<T> {
    value: T,
    mask: T,
}

impl<T: Tuple> Pattern<T> {
    /// A pattern; bits of the value beside the mask are dropped.
    pub fn new(value: T, mask: T) -> Self {
        let mask = mask.and(&T::USED);
        Self { value: value.and(&mask), mask }
    }

    /// The pattern that matches every tuple.
    pub fn all() -> Self {
        Self::new(T::default(), T::default())
    }

    /// The pattern that matches one tuple.
    pub fn exact(tuple: T) -> Self {
        Self::new(tuple, T::USED)
    }

    /// The pattern with bits of a field as wanted, whatever it wanted of that field before.
    #[must_use]
    pub fn with(self, field: &Field, value: u128, mask: u128) -> Self {
        Self::new(self.value.with(field, value & mask), self.mask.with(field, mask))
    }

    /// The bits.
    #[inline]
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Which bits are looked at.
    #[inline]
    pub const fn mask(&self) -> &T {
        &self.mask
    }

    /// Whether a tuple matches.
    #[inline]
    pub fn matches(&self, tuple: &T) -> bool {
        tuple.matches(&self.value, &self.mask)
    }
}
