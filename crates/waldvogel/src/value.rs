//! [`Value`]: what an element of the arrays and an entry of the hash tables say.

use wirespeed_fib::NextHop;

/// 32 bits of two kinds, and a third in the first array.
///
/// ```text
/// 0 nnn…    the next hop is n: nothing longer is beneath
/// 10 rrr…   record r has the next hop so far and the lengths to try
/// 11 ccc…   go on in chunk c
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Value(pub(crate) u32);

/// What a value says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    NextHop(NextHop),
    Record(u32),
    Chunk(u32),
}

/// From here on values are of records.
pub(crate) const RECORD: u32 = 1 << 31;
/// From here on values are of chunks.
pub(crate) const CHUNK: u32 = 3 << 30;
/// The largest next hop that a value can be.
pub(crate) const MAX_NEXT_HOP: u32 = RECORD - 1;
/// Most records and chunks that values can tell apart.
pub(crate) const MOST: u32 = 1 << 30;

impl Value {
    pub(crate) fn of_next_hop(next_hop: NextHop) -> Self {
        debug_assert!(next_hop.0 <= MAX_NEXT_HOP);
        Self(next_hop.0)
    }

    pub(crate) fn of_record(record: u32) -> Self {
        debug_assert!(record < MOST);
        Self(RECORD | record)
    }

    pub(crate) fn of_chunk(chunk: u32) -> Self {
        debug_assert!(chunk < MOST);
        Self(CHUNK | chunk)
    }

    #[inline]
    pub(crate) fn says(self) -> Says {
        match self.0 {
            n if n < RECORD => Says::NextHop(NextHop(n)),
            r if r < CHUNK => Says::Record(r - RECORD),
            c => Says::Chunk(c - CHUNK),
        }
    }

    /// The record, where it is one.
    #[inline]
    pub(crate) fn record(self) -> Option<u32> {
        match self.says() {
            Says::Record(record) => Some(record),
            _ => None,
        }
    }
}
