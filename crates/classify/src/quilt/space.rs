//! [`Space`]: pieces of an array, of powers of two elements each at multiples of its size, split and merged
//! as they are needed.

use crate::free::pop;

/// Which pieces are free.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Free pieces by the logarithm of their size.
    free: Vec<Vec<u32>>,
    /// The place from which on nothing was taken yet.
    end: u32,
    limit: u32,
}

/// The elements to have memory for when this many are needed, and this many may come to be: a quarter more,
/// so that growing costs little, and not twice as many, as a vector would.
pub(super) fn with_room(elements: u32, limit: u32) -> u32 {
    elements.saturating_add(elements / 4).min(limit).max(elements)
}

/// The most slots.
pub(super) const MOST_SLOTS: u32 = u32::MAX >> 1;
/// The largest piece's logarithm.
const MOST_ORDER: usize = 28;

impl Space {
    pub(super) fn new(limit: u32) -> Self {
        Self { free: vec![Vec::new(); MOST_ORDER + 1], end: 0, limit }
    }

    /// Elements that were ever taken.
    pub(super) const fn end(&self) -> u32 {
        self.end
    }

    /// How many elements there are.
    pub(super) const fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Takes a piece of `1 << order`; `None` where there is none.
    pub(super) fn take(&mut self, order: usize) -> Option<u32> {
        self.split(order).or_else(|| self.extend(order)).or_else(|| {
            self.merge();
            self.split(order)
        })
    }

    /// The piece of `1 << order` that is taken after so many others, for the most part.
    pub(super) fn next(&self, order: usize, after: usize) -> u32 {
        let free = &self.free[order];
        match free.len().checked_sub(1 + after) {
            Some(at) => free[at],
            None => self.end.saturating_add(u32::try_from(after - free.len()).unwrap_or(0) << order),
        }
    }

    /// Gives a piece back.
    pub(super) fn give(&mut self, at: u32, order: usize) {
        self.free[order].push(at);
    }

    /// Splits the smallest free piece that is large enough.
    fn split(&mut self, order: usize) -> Option<u32> {
        let from = (order..=MOST_ORDER).find(|&from| !self.free[from].is_empty())?;
        let at = pop(&mut self.free[from])?;
        (order..from).for_each(|half| self.free[half].push(at + (1 << half)));
        Some(at)
    }

    /// Takes a piece of what was never taken.
    fn extend(&mut self, order: usize) -> Option<u32> {
        let size = 1u32.checked_shl(u32::try_from(order).ok()?).filter(|_| order <= MOST_ORDER)?;
        let at = self.end.checked_next_multiple_of(size)?;
        let end = at.checked_add(size).filter(|&end| end <= self.limit)?;
        while self.end < at {
            let order = self.end.trailing_zeros();
            self.free[order as usize].push(self.end);
            self.end += 1 << order;
        }
        self.end = end;
        Some(at)
    }

    /// Makes pieces of neighbours that are free.
    fn merge(&mut self) {
        for order in 0..MOST_ORDER {
            let mut pieces = std::mem::take(&mut self.free[order]);
            pieces.sort_unstable();
            let size = 1 << order;
            let mut at = 0;
            while at < pieces.len() {
                let piece = pieces[at];
                let is_pair = piece.is_multiple_of(2 * size) && pieces.get(at + 1) == Some(&(piece + size));
                self.free[order + usize::from(is_pair)].push(piece);
                at += 1 + usize::from(is_pair);
            }
        }
    }

    pub(super) fn memory_usage(&self) -> u64 {
        self.free.iter().map(|pieces| (pieces.capacity() * size_of::<u32>()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_come_back_whole() {
        let mut space = Space::new(64);
        let mut taken: Vec<(u32, usize)> =
            [0, 2, 1, 3, 0, 4].map(|order| (space.take(order).expect("room"), order)).into();
        assert!(taken.iter().all(|&(at, order)| at % (1 << order) == 0));
        taken.sort_unstable();
        assert!(taken.windows(2).all(|pair| pair[0].0 + (1 << pair[0].1) <= pair[1].0));
        assert_eq!(space.take(6), None);
        taken.into_iter().for_each(|(at, order)| space.give(at, order));
        assert_eq!((space.take(5).is_some(), space.take(5).is_some(), space.take(0)), (true, true, None));
    }
}
