//! [`Rope`]: the lengths to try, one after another, as long as nothing is found (section 5.3 of the paper:
//! the leftmost path of a search tree).
//!
//! What is found has a rope of its own, for the lengths between its own and the one tried before it: the
//! search mutates into one that fits what is there, and most often nothing is.

/// Most lengths in a rope: the bytes of a word.
pub(crate) const MOST: usize = 8;

/// Up to eight lengths, the longest first, in the bytes of a word from the lowest; 0 is the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rope(pub(crate) u64);

impl Rope {
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Its lengths.
    pub(crate) fn lengths(self) -> impl Iterator<Item = u8> {
        self.0.to_le_bytes().into_iter().take_while(|&len| len != 0)
    }

    /// The rope with a length at its end; `None` where there is no room.
    pub(crate) fn with(self, len: u8) -> Option<Self> {
        let count = self.lengths().count();
        (count < MOST).then(|| Self(self.0 | u64::from(len) << (8 * count)))
    }

    /// The rope without the length at a place.
    pub(crate) fn without(self, at: usize) -> Self {
        let below = (1 << (8 * at)) - 1;
        Self(self.0 & below | (self.0 >> 8) & !below)
    }

    /// Whether it is one that a search can follow: lengths that descend, up to `longest`, and nothing after
    /// the end.
    pub(crate) fn is_valid(self, longest: u8) -> bool {
        let bytes = self.0.to_le_bytes();
        bytes[0] <= longest && bytes.windows(2).all(|pair| pair[0] > pair[1] || pair == [0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_go_in_at_the_end_and_out_anywhere() {
        let rope = [48, 44, 40, 36, 32, 29, 28, 24]
            .into_iter()
            .fold(Rope::default(), |rope, len| rope.with(len).unwrap());
        assert!(rope.is_valid(48) && !rope.is_valid(47));
        assert_eq!(rope.with(20), None);
        assert_eq!(rope.without(0).lengths().collect::<Vec<_>>(), [44, 40, 36, 32, 29, 28, 24]);
        assert_eq!(rope.without(2).lengths().collect::<Vec<_>>(), [48, 44, 36, 32, 29, 28, 24]);
        assert_eq!(rope.without(7).lengths().collect::<Vec<_>>(), [48, 44, 40, 36, 32, 29, 28]);
        assert!(!Rope(0x2830).is_valid(30) && !Rope(0x3028).is_valid(128) && !Rope(0x28_0030).is_valid(128));
        assert!(Rope::default().is_valid(32) && Rope::default().is_empty());
    }
}
