//! [`SharedPool`]: equally long pieces of a section, of which equal ones are stored once.
//!
//! The control plane's side of folding: it knows what each piece holds and how many links lead to it, and
//! says which piece a content is in. What changes there is for the engine to write to the table.

use bytemuck::Pod;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pool::Pool;

/// Pieces of `len` elements each, found by their content. Memory: the content of every piece, and about 20
/// bytes more each.
#[derive(Clone, Debug)]
pub struct SharedPool<T> {
    len: usize,
    pool: Pool,
    /// What each piece holds, in order of their numbers.
    contents: Vec<T>,
    /// Links to each piece.
    links: Vec<u32>,
    /// The hash of what each piece holds.
    hashes: Vec<u64>,
    by_content: HashTable<u32>,
    /// What the piece that was filled last held before.
    previous: Vec<T>,
    /// Keeps whoever chooses the contents from choosing their hashes.
    seed: u64,
}

/// Where a content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// A piece that was there before.
    Shared(u32),
    /// A piece that now has to be written; [`SharedPool::previous`] is what it held.
    Fresh(u32),
}

impl Placed {
    /// The piece.
    pub const fn piece(self) -> u32 {
        match self {
            Self::Shared(piece) | Self::Fresh(piece) => piece,
        }
    }
}

impl<T: Pod + Eq> SharedPool<T> {
    /// No pieces yet, of `len` elements each, with room for `capacity`; piece 0, which is never handed out,
    /// is one of these.
    pub fn new(len: usize, capacity: u32) -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        Self {
            len,
            pool: Pool::new(capacity),
            contents: vec![T::zeroed(); len],
            links: vec![0],
            hashes: vec![0],
            by_content: HashTable::new(),
            previous: vec![T::zeroed(); len],
            seed,
        }
    }

    /// Links once more to the piece of a content. `None` when it needs a piece and there is none left.
    /// O(length) expected.
    pub fn link(&mut self, content: &[T]) -> Option<Placed> {
        debug_assert_eq!(content.len(), self.len);
        let hash = self.hash(content);
        let same = |&piece: &u32| self.content(piece) == content;
        if let Some(&piece) = self.by_content.find(hash, same) {
            self.links[piece as usize] += 1;
            return Some(Placed::Shared(piece));
        }
        let piece = self.pool.take()?;
        self.store(piece, content, hash);
        Some(Placed::Fresh(piece))
    }

    /// Takes one link from a piece; whether that was the last, with which the piece is free.
    pub fn unlink(&mut self, piece: u32) -> bool {
        let links = &mut self.links[piece as usize];
        debug_assert!(*links > 0, "piece {piece} has no link");
        *links -= 1;
        if *links > 0 {
            return false;
        }
        self.forget(piece);
        self.pool.give_back(piece);
        true
    }

    /// Moves one link from a piece to the piece of another content. Where nothing else links to the piece and
    /// the content is new, that is the same piece with its content changed. `None` as [`link`](Self::link),
    /// and then nothing was done.
    pub fn relink(&mut self, piece: u32, content: &[T]) -> Option<Placed> {
        let hash = self.hash(content);
        let same = |&piece: &u32| self.content(piece) == content;
        if let Some(&found) = self.by_content.find(hash, same) {
            self.links[found as usize] += 1;
            self.unlink(piece);
            return Some(Placed::Shared(found));
        }
        if self.links[piece as usize] == 1 {
            self.forget(piece);
            self.store(piece, content, hash);
            return Some(Placed::Fresh(piece));
        }
        let fresh = self.pool.take()?;
        self.store(fresh, content, hash);
        self.unlink(piece);
        Some(Placed::Fresh(fresh))
    }

    /// Links once more to a piece that is in use. O(1).
    pub fn add_link(&mut self, piece: u32) {
        debug_assert!(self.links[piece as usize] > 0, "piece {piece} is not in use");
        self.links[piece as usize] += 1;
    }

    /// Moves one link from a piece to another that is in use; whether the first one is free with that. O(1).
    pub fn move_link(&mut self, from: u32, to: u32) -> bool {
        self.add_link(to);
        self.unlink(from)
    }

    /// What a piece holds.
    #[inline]
    pub fn content(&self, piece: u32) -> &[T] {
        &self.contents[piece as usize * self.len..][..self.len]
    }

    /// The old content of the piece that was the last to be [`Fresh`](Placed::Fresh): zero if it was never
    /// used.
    #[inline]
    pub fn previous(&self) -> &[T] {
        &self.previous
    }

    /// Number of links to a piece.
    pub fn links(&self, piece: u32) -> u32 {
        self.links[piece as usize]
    }

    /// Number of pieces in use.
    pub fn in_use(&self) -> u32 {
        self.pool.in_use()
    }

    /// The content of every piece up to the highest ever used, piece 0 and those not in use included, in
    /// order.
    pub fn contents(&self) -> &[T] {
        &self.contents
    }

    /// Sets the number of pieces that there is room for. Panics where pieces above it were used.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.pool.set_capacity(capacity);
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        let links = self.links.capacity() * size_of::<u32>() + self.hashes.capacity() * size_of::<u64>();
        let index = self.by_content.capacity() * (size_of::<u32>() + 1);
        (self.contents.capacity() * size_of::<T>() + links + index) as u64 + self.pool.memory_usage()
    }

    fn hash(&self, content: &[T]) -> u64 {
        xxh3_64_with_seed(bytemuck::cast_slice(content), self.seed)
    }

    /// Puts a content into a piece of one link.
    fn store(&mut self, piece: u32, content: &[T], hash: u64) {
        let at = piece as usize;
        if at == self.links.len() {
            self.contents.resize(self.contents.len() + self.len, T::zeroed());
            self.links.push(0);
            self.hashes.push(0);
        }
        let place = &mut self.contents[at * self.len..][..self.len];
        self.previous.copy_from_slice(place);
        place.copy_from_slice(content);
        self.links[at] = 1;
        self.hashes[at] = hash;
        let hashes = &self.hashes;
        self.by_content.insert_unique(hash, piece, |&piece| hashes[piece as usize]);
    }

    /// Takes a piece out of the index.
    fn forget(&mut self, piece: u32) {
        let hash = self.hashes[piece as usize];
        if let Ok(entry) = self.by_content.find_entry(hash, |&known| known == piece) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Random links, relinks and unlinks of few contents: every content is in one piece, with the right
        /// number of links, and pieces without links are free again.
        #[test]
        fn contents_are_stored_once(steps in proptest::collection::vec((0..3u8, 0..6u8, any::<prop::sample::Index>()), 0..200)) {
            let mut pool = SharedPool::<u8>::new(3, 5);
            let mut held: Vec<(u32, u8)> = Vec::new();
            for (step, content, which) in steps {
                let bytes = [content, 1, content];
                let distinct = held.iter().map(|&(_, c)| c).collect::<std::collections::HashSet<_>>();
                match step {
                    0 => match pool.link(&bytes) {
                        Some(placed) => {
                            prop_assert_eq!(matches!(placed, Placed::Shared(_)), distinct.contains(&content));
                            held.push((placed.piece(), content));
                        }
                        None => prop_assert!(distinct.len() == 4 && !distinct.contains(&content)),
                    },
                    1 if !held.is_empty() => {
                        let at = which.index(held.len());
                        if let Some(placed) = pool.relink(held[at].0, &bytes) {
                            held[at] = (placed.piece(), content);
                        } else {
                            prop_assert!(distinct.len() == 4 && !distinct.contains(&content));
                        }
                    }
                    2 if !held.is_empty() => {
                        let (piece, content) = held.swap_remove(which.index(held.len()));
                        let last = held.iter().all(|&(_, c)| c != content);
                        prop_assert_eq!(pool.unlink(piece), last);
                    }
                    _ => {}
                }
                let mut links = HashMap::new();
                for &(piece, content) in &held {
                    prop_assert_eq!(pool.content(piece), [content, 1, content]);
                    *links.entry(piece).or_insert(0) += 1;
                }
                prop_assert_eq!(pool.in_use() as usize, links.len());
                for (&piece, &count) in &links {
                    prop_assert_eq!(pool.links(piece), count);
                }
            }
        }
    }
}
