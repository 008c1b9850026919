//! [`SharedPool`]: equally long pieces of a section; equal pieces are stored once.
//!
//! The control plane of folding. It knows the number of links to each piece, and finds the piece of a
//! content. The engine writes the changes to the table. The contents are in the table: the pool holds them
//! only while the table is built, and those that the update at hand has changed.

use bytemuck::Pod;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::changes::{Changes, WORD};
use crate::fetch::prefetch;
use crate::pool::Pool;
use crate::section::SectionId;

/// Pieces of `len` elements each, found by content. Memory: about 18 bytes for each piece, and until the pool
/// is first [settled](Self::settle) the contents. A pool whose contents are in no section is never settled.
#[derive(Clone, Debug)]
pub struct SharedPool<T> {
    section: SectionId,
    len: usize,
    pool: Pool,
    /// During a build the content of each piece, in order of the pieces' numbers. Afterwards the contents of
    /// pieces that the current update has changed.
    contents: Vec<T>,
    /// The position in `contents` of each piece that the current update has changed. `None` during a build.
    changed: Option<FxHashMap<u32, u32>>,
    /// The number of links to each piece.
    links: Vec<u32>,
    /// The first half of the hash of each piece's content.
    hashes: Vec<u32>,
    by_content: HashTable<u32>,
    /// The old content of the piece that was filled last.
    previous: Vec<T>,
    /// The new content of the piece that was filled last.
    latest: Vec<T>,
    /// A secret seed: someone who chooses the contents must not be able to choose their hashes.
    seed: u64,
}

/// The piece of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// A piece that had this content before.
    Shared(u32),
    /// A piece that must be written now: [`SharedPool::write`].
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

/// The most elements of changed contents whose memory is kept between updates.
const MUCH: usize = 1 << 14;

impl<T: Pod + Eq> SharedPool<T> {
    /// Makes an empty pool for a build, with capacity for `capacity` pieces of `len` elements each, which are
    /// the front of a section. Piece 0, which is never handed out, is one of them.
    pub fn new(section: SectionId, len: usize, capacity: u32) -> Self {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        Self {
            section,
            len,
            pool: Pool::new(capacity),
            contents: vec![T::zeroed(); len],
            changed: None,
            links: vec![0],
            hashes: vec![0],
            by_content: HashTable::new(),
            previous: vec![T::zeroed(); len],
            latest: vec![T::zeroed(); len],
            seed,
        }
    }

    /// Says that the table has all contents: at the end of a build, and at the start of an update. Contents
    /// are read from the table from now on.
    pub fn settle(&mut self) {
        match &mut self.changed {
            Some(changed) => {
                changed.clear();
                changed.shrink_to(MUCH / self.len);
                self.contents.clear();
                self.contents.shrink_to(MUCH);
            }
            None => {
                self.changed = Some(FxHashMap::default());
                self.contents = Vec::new();
                self.links.shrink_to_fit();
                self.hashes.shrink_to_fit();
            }
        }
    }

    /// Adds a link to the piece of a content. `None` if this needs a new piece and none is free. O(length)
    /// expected.
    pub fn link(&mut self, content: &[T], changes: &Changes<'_>) -> Option<Placed> {
        debug_assert_eq!(content.len(), self.len);
        let hash = self.hash(content);
        if let Some(piece) = self.find(hash, content, changes) {
            self.links[piece as usize] += 1;
            return Some(Placed::Shared(piece));
        }
        let piece = self.pool.take()?;
        self.store(piece, content, hash, changes);
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
    pub fn relink(&mut self, piece: u32, content: &[T], changes: &Changes<'_>) -> Option<Placed> {
        let hash = self.hash(content);
        if let Some(found) = self.find(hash, content, changes) {
            self.links[found as usize] += 1;
            self.unlink(piece);
            return Some(Placed::Shared(found));
        }
        if self.links[piece as usize] == 1 {
            self.forget(piece);
            self.store(piece, content, hash, changes);
            return Some(Placed::Fresh(piece));
        }
        let fresh = self.pool.take()?;
        self.store(fresh, content, hash, changes);
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

    /// The content of a piece, as the current update leaves it.
    #[inline]
    pub fn content<'a>(&'a self, piece: u32, changes: &Changes<'a>) -> &'a [T] {
        let in_order = piece as usize * self.len;
        let (contents, from) = match &self.changed {
            None => (&self.contents[..], in_order),
            Some(changed) => match changed.get(&piece) {
                Some(&at) => (&self.contents[..], at as usize),
                None => (bytemuck::cast_slice(changes.before(self.section)), in_order),
            },
        };
        &contents[from..][..self.len]
    }

    /// Prefetches the content that a piece had before the update.
    #[inline]
    pub fn fetch(&self, piece: u32, changes: &Changes<'_>) {
        prefetch(changes.before(self.section), piece as usize * self.len * size_of::<T>());
    }

    /// The content of the piece that was last [`Fresh`](Placed::Fresh).
    #[inline]
    pub fn latest(&self) -> &[T] {
        &self.latest
    }

    /// Number of links to a piece.
    pub fn links(&self, piece: u32) -> u32 {
        self.links[piece as usize]
    }

    /// Number of pieces in use.
    pub fn in_use(&self) -> u32 {
        self.pool.in_use()
    }

    /// During a build: the content of every piece up to the highest that was ever used, free pieces and piece
    /// 0 included, in order.
    pub fn built(&self) -> &[T] {
        debug_assert!(self.changed.is_none(), "a build has ended");
        &self.contents
    }

    /// Sets the number of pieces. Panics if higher pieces were used.
    pub fn set_capacity(&mut self, capacity: u32) {
        self.pool.set_capacity(capacity);
    }

    /// Bytes held.
    pub fn memory_usage(&self) -> u64 {
        let links = (self.links.capacity() + self.hashes.capacity()) * size_of::<u32>();
        let index = self.by_content.capacity() * (size_of::<u32>() + 1);
        let changed = self.changed.as_ref().map_or(0, FxHashMap::capacity) * (size_of::<(u32, u32)>() + 1);
        let contents = (self.contents.capacity() + 2 * self.len) * size_of::<T>();
        (contents + changed + links + index) as u64 + self.pool.memory_usage()
    }

    #[allow(clippy::cast_possible_truncation)] // of 64 bits, 32 are as good as any
    fn hash(&self, content: &[T]) -> u32 {
        xxh3_64_with_seed(bytemuck::cast_slice(content), self.seed) as u32
    }

    /// The piece of a content.
    #[inline]
    fn find(&self, hash: u32, content: &[T], changes: &Changes<'_>) -> Option<u32> {
        let is_it =
            |&piece: &u32| self.hashes[piece as usize] == hash && self.content(piece, changes) == content;
        self.by_content.find(spread(hash), is_it).copied()
    }

    /// Writes a content into a piece with one link.
    fn store(&mut self, piece: u32, content: &[T], hash: u32, changes: &Changes<'_>) {
        let at = piece as usize;
        if at == self.links.len() {
            self.links.push(0);
            self.hashes.push(0);
        }
        let from = match &mut self.changed {
            None => {
                let from = at * self.len;
                if from == self.contents.len() {
                    self.contents.resize(from + self.len, T::zeroed());
                }
                self.previous.copy_from_slice(&self.contents[from..][..self.len]);
                from
            }
            Some(changed) => {
                let end = self.contents.len();
                let new = u32::try_from(end).expect("an update changes less than memory holds");
                let from = *changed.entry(piece).or_insert(new) as usize;
                if from == end {
                    let before = bytemuck::cast_slice(changes.before(self.section));
                    self.previous.copy_from_slice(&before[at * self.len..][..self.len]);
                    self.contents.resize(end + self.len, T::zeroed());
                } else {
                    self.previous.copy_from_slice(&self.contents[from..][..self.len]);
                }
                from
            }
        };
        self.contents[from..][..self.len].copy_from_slice(content);
        self.latest.copy_from_slice(content);
        self.links[at] = 1;
        self.hashes[at] = hash;
        let hashes = &self.hashes;
        self.by_content.insert_unique(spread(hash), piece, |&piece| spread(hashes[piece as usize]));
    }

    /// Removes a piece from the index by content.
    fn forget(&mut self, piece: u32) {
        let hash = self.hashes[piece as usize];
        if let Ok(entry) = self.by_content.find_entry(spread(hash), |&known| known == piece) {
            entry.remove();
        }
    }
}

impl SharedPool<u8> {
    /// Writes the changed words of a piece that is [`Fresh`](Placed::Fresh), in a section of words.
    #[inline]
    pub fn write(&self, placed: Placed, changes: &mut Changes<'_>) {
        let Placed::Fresh(piece) = placed else { return };
        let first = u64::from(piece) * (self.len / WORD) as u64;
        let (old, new) = (self.previous.chunks_exact(WORD), self.latest.chunks_exact(WORD));
        for (index, (old, new)) in (first..).zip(old.zip(new)) {
            if old != new {
                let word = new.try_into().expect("a word");
                changes.set(self.section, index, u64::from_le_bytes(word));
            }
        }
    }
}

/// A hash for the index, which takes some bits from the front and some from the end.
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::image::{Image, ImageBuilder};

    const PIECES: SectionId = SectionId(0);

    /// A step: the operation, a content, and the piece that it is about.
    type Step = (u8, u8, prop::sample::Index);

    /// Makes steps, and checks the pool after each.
    fn run(
        pool: &mut SharedPool<u8>,
        held: &mut Vec<(u32, u8)>,
        steps: &[Step],
        changes: &mut Changes<'_>,
    ) -> Result<(), TestCaseError> {
        for &(step, content, which) in steps {
            let bytes = [content; WORD];
            let distinct = held.iter().map(|&(_, c)| c).collect::<std::collections::HashSet<_>>();
            match step {
                0 => match pool.link(&bytes, changes) {
                    Some(placed) => {
                        prop_assert_eq!(matches!(placed, Placed::Shared(_)), distinct.contains(&content));
                        pool.write(placed, changes);
                        held.push((placed.piece(), content));
                    }
                    None => prop_assert!(distinct.len() == 4 && !distinct.contains(&content)),
                },
                1 if !held.is_empty() => {
                    let at = which.index(held.len());
                    if let Some(placed) = pool.relink(held[at].0, &bytes, changes) {
                        pool.write(placed, changes);
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
            for &(piece, content) in held.iter() {
                prop_assert_eq!(pool.content(piece, changes), [content; WORD]);
                *links.entry(piece).or_insert(0) += 1;
            }
            prop_assert_eq!(pool.in_use() as usize, links.len());
            for (&piece, &count) in &links {
                prop_assert_eq!(pool.links(piece), count);
            }
        }
        Ok(())
    }

    proptest! {
        /// Random links, relinks and unlinks of few contents, in a build and in updates after it: every
        /// content is in one piece, with the right number of links, and pieces without links are free again.
        /// The table has the contents after each patch.
        #[test]
        fn contents_are_stored_once(
            rounds in proptest::collection::vec(
                proptest::collection::vec((0..3u8, 0..6u8, any::<prop::sample::Index>()), 0..50),
                1..5,
            ),
        ) {
            let mut pool = SharedPool::<u8>::new(PIECES, WORD, 5);
            let mut held: Vec<(u32, u8)> = Vec::new();
            run(&mut pool, &mut held, &rounds[0], &mut Changes::none())?;
            let mut table: Image = ImageBuilder::new("test", 1).section::<u64>("pieces", 5).build(None).unwrap();
            let words: &mut [u8] = bytemuck::cast_slice_mut(table.section_mut::<u64>(PIECES).unwrap());
            words[..pool.built().len()].copy_from_slice(pool.built());
            pool.settle();
            for steps in &rounds[1..] {
                pool.settle();
                let mut changes = Changes::to(&table);
                run(&mut pool, &mut held, steps, &mut changes)?;
                let patch = changes.finish((1, 1));
                table.apply(&patch).unwrap();
                let words: &[u64] = table.section(PIECES);
                for &(piece, content) in &held {
                    prop_assert_eq!(words[piece as usize].to_le_bytes(), [content; WORD]);
                }
            }
        }
    }
}
