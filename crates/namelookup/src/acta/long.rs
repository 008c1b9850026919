//! The section of long components, in words: pieces of some sizes, each used again once it is free.

use std::collections::BTreeMap;

/// The bytes of long components, and which pieces of the section are free.
#[derive(Debug, Default)]
pub(super) struct Long {
    words: Vec<u64>,
    /// Free pieces by their words.
    free: BTreeMap<usize, Vec<u32>>,
    /// Words that the section has; `None` as long as the table is built.
    capacity: Option<usize>,
    /// Pieces that were given out since the last time, and so are to be written.
    fresh: Vec<(u32, usize)>,
}

impl Long {
    /// The words of a component's piece: one of few sizes, at most an eighth over what it takes.
    fn size(len: usize) -> usize {
        let words = len.div_ceil(8);
        let unit = 1 << words.ilog2().saturating_sub(3);
        words.next_multiple_of(unit)
    }

    /// Puts a component somewhere; its first word, or `None` where there is no room.
    pub(super) fn put(&mut self, component: &[u8]) -> Option<u32> {
        let size = Self::size(component.len());
        let at = match self.free.get_mut(&size).and_then(Vec::pop) {
            Some(at) => at,
            None => self.grow(size)?,
        };
        let piece = &mut self.words[at as usize..][..size];
        piece.fill(0);
        bytemuck::cast_slice_mut(piece)[..component.len()].copy_from_slice(component);
        if self.capacity.is_some() {
            self.fresh.push((at, size));
        }
        Some(at)
    }

    /// Gives a component's piece back.
    pub(super) fn take_back(&mut self, at: u32, len: u32) {
        self.free.entry(Self::size(len as usize)).or_default().push(at);
    }

    /// A component's bytes.
    pub(super) fn component(&self, at: u32, len: u32) -> &[u8] {
        &bytemuck::cast_slice(&self.words[at as usize..])[..len as usize]
    }

    /// All words.
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Limits it to so many words, and remembers what is put from now on.
    pub(super) const fn bound(&mut self, capacity: usize) {
        self.capacity = Some(capacity);
    }

    /// Pieces that were put since the last call, first word and number of words.
    pub(super) fn take_fresh(&mut self) -> Vec<(u32, usize)> {
        std::mem::take(&mut self.fresh)
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let free: usize = self.free.values().map(|pieces| pieces.capacity() * 4).sum();
        (self.words.capacity() * 8 + free) as u64
    }

    fn grow(&mut self, size: usize) -> Option<u32> {
        let at = self.words.len();
        let end = at + size;
        if self.capacity.is_some_and(|capacity| end > capacity) {
            return None;
        }
        self.words.resize(end, 0);
        u32::try_from(at).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_for_their_size() {
        let mut long = Long::default();
        let (a, b) = (vec![1; 100], vec![2; 8000]);
        let first = long.put(&a).unwrap();
        let second = long.put(&b).unwrap();
        assert_eq!((long.component(first, 100), long.component(second, 8000)), (&a[..], &b[..]));
        let all = long.words().len();
        assert!(all * 8 <= 8100 * 9 / 8 + 16);
        long.bound(all);
        assert_eq!(long.put(&b), None);
        long.take_back(second, 8000);
        assert_eq!(long.put(&vec![3; 7999]), Some(second));
        assert_eq!((long.component(second, 7999)[7998], long.words()[second as usize + 999] >> 56), (3, 0));
        assert_eq!(long.take_fresh(), [(second, 1024)]);
    }
}
