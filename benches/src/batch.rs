//! [`Batch`]: the keys of a call.

use std::ops::Range;

/// Keys in the order in which they are looked up.
pub trait Batch: Copy {
    /// One key.
    type Key: Copy;

    /// Number of keys.
    fn len(self) -> usize;

    /// Whether there are none.
    fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The keys of a range.
    #[must_use]
    fn part(self, range: Range<usize>) -> Self;

    /// The keys one by one.
    fn each(self) -> impl Iterator<Item = Self::Key>;
}
