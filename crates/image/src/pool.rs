//! [`Pool`]: which of a section's equally long pieces are in use.

/// Hands out the pieces of a section that an engine fills and frees as its table changes, freed ones first.
/// Piece 0 is never handed out: engines keep it for what leads nowhere.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Pieces from here on have never been used.
    fresh: u32,
    capacity: u32,
    free: Vec<u32>,
}

impl Pool {
    /// A pool of `capacity` pieces, the one that is never handed out included.
    pub fn new(capacity: u32) -> Self {
        Self { fresh: 1, capacity, free: Vec::new() }
    }

    /// A piece that is not in use, `None` when there is no more. Its content is what its last user left.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            (self.fresh < self.capacity).then(|| {
                self.fresh += 1;
                self.fresh - 1
            })
        })
    }

    /// Takes back a piece, which the next [`take`](Self::take) may hand out.
    pub fn give_back(&mut self, piece: u32) {
        debug_assert!(0 < piece && piece < self.fresh, "piece {piece} was not handed out");
        self.free.push(piece);
    }

    /// Sets the number of pieces that there is room for. Panics where pieces above it were handed out.
    pub fn set_capacity(&mut self, capacity: u32) {
        assert!(self.fresh <= capacity.max(1), "{} pieces are in use, room for {capacity}", self.fresh);
        self.capacity = capacity;
    }

    /// Number of pieces in use.
    pub fn in_use(&self) -> u32 {
        self.fresh - 1 - u32::try_from(self.free.len()).unwrap_or(u32::MAX)
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        (self.free.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_handed_out_once_and_again_when_they_come_back() {
        let mut pool = Pool::new(4);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(1), Some(2), Some(3), None]);
        assert_eq!(pool.in_use(), 3);
        pool.give_back(2);
        assert_eq!(pool.in_use(), 2);
        assert_eq!([pool.take(), pool.take()], [Some(2), None]);
        assert_eq!(Pool::new(0).take(), None);
    }
}
