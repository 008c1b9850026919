//! [`Space`]: which parts of the section of runs are in use.
//!
//! Pieces of 1 to 32 elements, with a list of free ones for each length: what is freed is handed out again at
//! exactly its length. Elements never used come first, then a longer free piece is split. Free neighbours are
//! not put together again: when nothing is long enough the table is built anew, which does that for all of
//! them.

use crate::layout::WORD;

/// Hands out pieces of a section.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Elements from here on have never been used.
    fresh: u32,
    capacity: u32,
    /// Free pieces by length.
    free: [Vec<u32>; WORD + 1],
}

impl Space {
    /// Room for so many elements, of which the first `taken` are never handed out.
    pub(crate) fn new(taken: u32, capacity: u32) -> Self {
        Self { fresh: taken, capacity, free: std::array::from_fn(|_| Vec::new()) }
    }

    /// A piece of `len` elements, 1 to 32: its first. `None` when no free piece is that long.
    pub(crate) fn take(&mut self, len: u32) -> Option<u32> {
        if let Some(at) = self.free[len as usize].pop() {
            return Some(at);
        }
        if len <= self.capacity - self.fresh {
            self.fresh += len;
            return Some(self.fresh - len);
        }
        let longer = (len as usize + 1..=WORD).find(|&longer| !self.free[longer].is_empty())?;
        let at = self.free[longer].pop()?;
        self.free[longer - len as usize].push(at + len);
        Some(at)
    }

    /// Takes a piece back.
    pub(crate) fn give_back(&mut self, at: u32, len: u32) {
        debug_assert!(at + len <= self.fresh);
        self.free[len as usize].push(at);
    }

    /// Elements up to the last ever used.
    pub(crate) fn used(&self) -> u32 {
        self.fresh
    }

    /// Sets the number of elements that there is room for, at least those [`used`](Self::used).
    pub(crate) fn set_capacity(&mut self, capacity: u32) {
        self.capacity = capacity.max(self.fresh);
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        self.free.iter().map(|free| (free.capacity() * size_of::<u32>()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Pieces in use never overlap, stay inside, and a refusal means that nothing free is that long.
        #[test]
        fn pieces_do_not_overlap(steps in proptest::collection::vec((1..=32u32, any::<prop::sample::Index>(), any::<bool>()), 0..300)) {
            let mut space = Space::new(1, 200);
            let mut held: Vec<(u32, u32)> = Vec::new();
            for (len, which, give_back) in steps {
                if give_back && !held.is_empty() {
                    let (at, len) = held.swap_remove(which.index(held.len()));
                    space.give_back(at, len);
                } else if let Some(at) = space.take(len) {
                    held.push((at, len));
                } else {
                    prop_assert!(space.used() + len > 200 && space.free[len as usize..].iter().all(Vec::is_empty));
                }
                let mut owner = [false; 200];
                owner[0] = true;
                let free = (1..=32u32).flat_map(|len| space.free[len as usize].iter().map(move |&at| (at, len)));
                for (at, len) in held.iter().copied().chain(free) {
                    for element in &mut owner[at as usize..][..len as usize] {
                        prop_assert!(!std::mem::replace(element, true));
                    }
                }
                // Nothing is lost either.
                prop_assert!(owner[..space.used() as usize].iter().all(|&taken| taken));
            }
        }
    }
}
