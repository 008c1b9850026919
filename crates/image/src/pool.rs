//! [`Pool`]: keeps track of which equally long pieces of a section are in use.

/// Hands out the pieces of a section that an engine fills and frees as its table changes, freed pieces first.
/// Piece 0 is never handed out: engines keep it for elements that lead nowhere.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Pieces from here on have never been used.
    fresh: u32,
    capacity: u32,
    free: Vec<u32>,
}

impl Pool {
    /// Makes a pool of `capacity` pieces, piece 0 included.
    pub fn new(capacity: u32) -> Self {
        Self { fresh: 1, capacity, free: Vec::new() }
    }

    /// Takes a free piece. `None` if there are none. The piece holds what its last user wrote.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            (self.fresh < self.capacity).then(|| {
                self.fresh += 1;
                self.fresh - 1
            })
        })
    }

    /// Gives back a piece. The next [`take`](Self::take) may hand it out.
    pub fn give_back(&mut self, piece: u32) {
        debug_assert!(0 < piece && piece < self.fresh, "piece {piece} was not handed out");
        self.free.push(piece);
    }

    /// Sets the number of pieces. Panics if higher pieces were handed out.
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
