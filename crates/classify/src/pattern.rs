//! [`Pattern`]: a value under a mask.

use crate::tuple::{Field, Tuple};

/// A value under a mask. It matches a tuple if the tuple and the value have the same bits under the mask.
///
/// The value has no bits outside the mask, and the mask no bits outside the tuple's fields. So two patterns
/// that match the same tuples are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern<T> {
    value: T,
    mask: T,
}

impl<T: Tuple> Pattern<T> {
    /// A pattern. It drops bits of the value outside the mask.
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

    /// The pattern with another value and mask for a field.
    #[must_use]
    pub fn with(self, field: &Field, value: u128, mask: u128) -> Self {
        Self::new(self.value.with(field, value & mask), self.mask.with(field, mask))
    }

    /// The value.
    #[inline]
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// The mask.
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
