//! [`Value`]: what an element of the arrays and an entry of the hash tables say.

use wirespeed_fib::NextHop;

/// 32 bits of two kinds, and a third in the first array.
///
/// ```text
/// 0 nnn…             the next hop is n: nothing longer is beneath
/// 1 llllll rrr…      try length l next; where that is in vain, record r says what then
/// 1 111111 rrr…      try a length that no word holds: record r's rope has it
/// 1 000000 ccc…      go on in chunk c
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value(pub(crate) u32);

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    NextHop(NextHop),
    /// Try a length, `None` where it is the rope that has it; then the record.
    Try(Option<u8>, u32),
    Chunk(u32),
}

/// Prefixes from this length on don't fit in a word.
pub(crate) const WIDE_FROM: u8 = 49;
/// The first value that is no next hop.
pub const OPEN: u32 = 1 << 31;
/// Bits of the number of a record or a chunk.
pub const NUMBER_BITS: u32 = 25;
/// The length of those that no word holds.
pub const WIDE: u32 = 0x3f;
/// The largest next hop that a value can be.
pub(crate) const MAX_NEXT_HOP: u32 = OPEN - 1;
/// Most records and chunks that values can tell apart.
pub(crate) const MOST: u32 = 1 << NUMBER_BITS;

impl Value {
    pub(crate) fn of_next_hop(next_hop: NextHop) -> Self {
        debug_assert!(next_hop.0 <= MAX_NEXT_HOP);
        Self(next_hop.0)
    }

    pub(crate) fn of_try(len: u8, record: u32) -> Self {
        debug_assert!(record < MOST && len > 0);
        let len = if len < WIDE_FROM { len.into() } else { WIDE };
        Self(OPEN | len << NUMBER_BITS | record)
    }

    pub(crate) fn of_chunk(chunk: u32) -> Self {
        debug_assert!(chunk < MOST);
        Self(OPEN | chunk)
    }

    #[inline]
    pub(crate) fn says(self) -> Says {
        if self.0 < OPEN {
            return Says::NextHop(NextHop(self.0));
        }
        let number = self.0 % MOST;
        match (self.0 - OPEN) >> NUMBER_BITS {
            0 => Says::Chunk(number),
            WIDE => Says::Try(None, number),
            len => Says::Try(Some(len.to_le_bytes()[0]), number),
        }
    }

    /// The record, where there is one.
    #[inline]
    pub(crate) fn record(self) -> Option<u32> {
        match self.says() {
            Says::Try(_, record) => Some(record),
            _ => None,
        }
    }
}

/// The lower half of a word.
#[inline]
#[allow(clippy::cast_possible_truncation)] // meant
pub(crate) fn low(word: u64) -> u32 {
    word as u32
}
