//! [`SharedPool`]: equally long pieces of a section; equal pieces are stored once.
//!
//! The control plane of folding. It knows the content of each piece and the number of links to it, and finds
//! the piece of a content. The engine writes the changes to the table.

use bytemuck::Pod;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::pool::Pool;

/// Pieces of `len` elements each, found by content. Memory: the content of every piece, and about 20 bytes
/// for each.
#[derive(Clone, Debug)]
pub struct SharedPool<T> {
    len: usize,
    pool: Pool,
    /// The content of each piece, in order of the pieces' numbers.
    contents: Vec<T>,
    /// The number of links to each piece.
    links: Vec<u32>,
    /// The hash of each piece's content.
    hashes: Vec<u64>,
    by_content: HashTable<u32>,
    /// The old content of the piece that was filled last.
    previous: Vec<T>,
    /// A secret seed: someone who chooses the contents must not be able to choose their hashes.
    seed: u64,
}

/// The piece of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// A piece that had this content before.
    Shared(u32),
    /// A piece that must be written now. [`SharedPool::previous`] is its old content.
    Fresh(u32),
}

impl Placed {
    /// The number of the piece.
    pub const fn piece(self) -> u32 {
        match self {
            Self::Shared(piece) | Self::Fresh(piece) => piece,
        }
    }
}

impl<T: Pod + Eq> SharedPool<T> {
    /// Makes an empty pool with capacity for `capacity` pieces of `len` elements each. Piece 0, which is
    /// never handed out, is one of them.
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

    /// Adds a link to the piece of a content. `None` if this needs a new piece and none is free. O(length)
    /// expected.
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

    /// Removes a link from a piece. Returns whether it was the last link, which frees the piece.
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

    /// Moves a link from a piece to the piece of another content. If the piece has no other link and the
    /// content is new, the piece stays and gets the new content. `None` like [`link`](Self::link); then
    /// nothing has changed.
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

    /// Adds a link to a piece that is in use. O(1).
    pub fn add_link(&mut self, piece: u32) {
        debug_assert!(self.links[piece as usize] > 0, "piece {piece} is not in use");
        self.links[piece as usize] += 1;
    }

    /// Moves a link from a piece to another piece that is in use. Returns whether this frees the first piece.
    /// O(1).
    pub fn move_link(&mut self, from: u32, to: u32) -> bool {
        self.add_link(to);
        self.unlink(from)
    }

    /// The content of a piece.
    #[inline]
    pub fn content(&self, piece: u32) -> &[T] {
        &self.contents[piece as usize * self.len..][..self.len]
    }

    /// The old content of the piece that was last [`Fresh`](Placed::Fresh). All zero if the piece was never
    /// used before.
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

    /// The content of every piece up to the highest that was ever used, free pieces and piece 0 included, in
    /// order.
    pub fn contents(&self) -> &[T] {
        &self.contents
    }

    /// Sets the number of pieces. Panics if higher pieces were used.
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

    /// Writes a content into a piece with one link.
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

    /// Removes a piece from the index by content.
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
