//! [`Nodes`]: the records of nodes, each as long as its component needs.
//!
//! ```text
//! record    above u32 | value u32 | flags u8 | component          9 bytes and the component
//!                                            | start u64, len u32 of a long one, which is in the text
//! segment   128 records of components of one length; their ids are consecutive
//! block     segments one after the other
//! ```
//!
//! `above` is the parent's [family](super::family), so that 9 in 10 nodes, which have no children, need no
//! more than this. `value` is the result, or the node's own family if it has one, which then has the result.
//!
//! A node is found by its id in two steps, of which the first reads one of few segments. Its record is mostly
//! in one line of the cache. Blocks are never moved: a new one has an eighth of the bytes of all, so no
//! insertion waits for a copy, and no memory is kept in advance.
//!
//! Before, a node was a line of 64 bytes, with links to its siblings and room for components of 23 bytes.

use wirespeed_image::HugeVec;
use wirespeed_image::prefetch_at;

/// The number of kinds of components.
pub(super) const KINDS: usize = INLINE + 1;

/// Bytes of a record before its component.
const FIXED: usize = 9;
/// The longest component that is stored in its record.
pub(super) const INLINE: usize = 42;
/// Bytes of a record for the place of a long component.
const PLACE: usize = 12;

/// Records of a segment.
const OF_SEGMENT: u32 = 128;
const RECORDS: usize = OF_SEGMENT as usize;
/// The unit in which segments start.
const UNIT: usize = RECORDS;
/// The fewest bytes of a block.
const LEAST_BLOCK: usize = 1 << 12;
/// The bytes of a block from which on it is filled with pages at once.
const LARGE_BLOCK: usize = 1 << 20;

/// Set of a node that was removed, or is free.
pub(super) const GONE: u8 = 1;
/// Set of a node that is listed among the changes.
pub(super) const LISTED: u8 = 2;
/// Set of a node whose value is a family.
pub(super) const FAMILY: u8 = 4;
/// Set of a node whose component is in the text.
const LONG: u8 = 8;

/// Where the records of a segment are.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The start in its block, in units.
    start: u32,
    block: u16,
    /// Bytes of a record.
    size: u8,
}

/// The nodes of one size of record that are free.
#[derive(Clone, Debug, Default)]
struct Free {
    ids: Vec<u32>,
    /// Nodes of the last segment that were never used.
    fresh: std::ops::Range<u32>,
}

/// A record, to read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'n>(&'n [u8]);

impl<'n> Record<'n> {
    /// The family of the parent.
    #[inline]
    pub(super) fn above(self) -> u32 {
        number(self.0, 0)
    }

    /// The result, or the family.
    #[inline]
    pub(super) fn value(self) -> u32 {
        number(self.0, 4)
    }

    /// The family, if there is one.
    #[inline]
    pub(super) fn family(self) -> Option<u32> {
        self.is(FAMILY).then(|| self.value())
    }

    /// Whether a flag is set.
    #[inline]
    pub(super) fn is(self, flag: u8) -> bool {
        self.0[FIXED - 1] & flag != 0
    }

    /// The place of a long component in the text.
    #[inline]
    fn place(self) -> std::ops::Range<usize> {
        let bytes = self.0[FIXED..].first_chunk().expect("a long component's place");
        let start = usize::try_from(u64::from_le_bytes(*bytes)).expect("it is in memory");
        start..start + number(self.0, FIXED + 8) as usize
    }
}

#[inline]
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// All nodes. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    segments: HugeVec<Segment>,
    blocks: Vec<HugeVec<u8>>,
    /// Free nodes by the length of their component; the first ones are of long components.
    free: Vec<Free>,
    /// The long components of all nodes, and of removed nodes.
    text: HugeVec<u8>,
    /// Bytes of `text` that belong to no node.
    garbage: usize,
}

impl Nodes {
    /// The bound of ids: all are below it.
    pub(super) fn bound(&self) -> usize {
        self.segments.len() * RECORDS
    }

    /// A node's record.
    #[inline]
    pub(super) fn record(&self, id: u32) -> Record<'_> {
        let (block, at, size) = self.place(id);
        Record(&self.blocks[block][at..at + size])
    }

    /// The component of a node with this record.
    #[inline]
    pub(super) fn component<'n>(&'n self, record: Record<'n>) -> &'n [u8] {
        if record.is(LONG) { &self.text[record.place()] } else { &record.0[FIXED..] }
    }

    /// Makes a node with a flag, or with none. Its value is 0.
    #[inline]
    pub(super) fn add(&mut self, above: u32, component: &[u8], flag: u8) -> u32 {
        let kind = kind(component.len());
        let free = &mut self.free_of(kind);
        let id = match free.ids.pop().or_else(|| free.fresh.next()) {
            Some(id) => id,
            None => self.add_segment(kind),
        };
        let start = self.text.len() as u64;
        if kind == 0 {
            self.text.make_room(component.len());
            self.text.extend_from_slice(component);
        }
        let record = self.record_mut(id);
        let (fixed, rest) = record.split_at_mut(FIXED);
        fixed[..4].copy_from_slice(&above.to_le_bytes());
        fixed[4..8].fill(0);
        fixed[8] = flag | if kind == 0 { LONG } else { 0 };
        if kind == 0 {
            let len = u32::try_from(component.len()).expect("a name's length");
            rest[..8].copy_from_slice(&start.to_le_bytes());
            rest[8..].copy_from_slice(&len.to_le_bytes());
        } else {
            rest.copy_from_slice(component);
        }
        id
    }

    /// Frees a node.
    pub(super) fn free(&mut self, id: u32) {
        let record = self.record(id);
        let is_long = record.is(LONG);
        let kind = if is_long { 0 } else { record.0.len() - FIXED };
        if is_long {
            self.garbage += record.place().len();
        }
        // A free node's text is not its own any more.
        self.record_mut(id)[FIXED - 1] = GONE;
        self.free_of(kind).ids.push(id);
    }

    #[inline]
    pub(super) fn set_value(&mut self, id: u32, value: u32) {
        self.record_mut(id)[4..8].copy_from_slice(&value.to_le_bytes());
    }

    /// Clears that a node is listed. Returns whether it is gone or has a family.
    #[inline]
    pub(super) fn unlist(&mut self, id: u32) -> bool {
        let flags = &mut self.record_mut(id)[FIXED - 1];
        *flags &= !LISTED;
        *flags & (GONE | FAMILY) != 0
    }

    /// Sets flags. Returns the record, and whether the node was listed before.
    #[inline]
    pub(super) fn raise(&mut self, id: u32, flags: u8) -> (Record<'_>, bool) {
        let record = self.record_mut(id);
        let before = record[FIXED - 1];
        record[FIXED - 1] |= flags;
        (Record(record), before & LISTED != 0)
    }

    /// Sets or clears a flag.
    #[inline]
    pub(super) fn flag(&mut self, id: u32, flag: u8, to: bool) {
        let flags = &mut self.record_mut(id)[FIXED - 1];
        *flags = *flags & !flag | if to { flag } else { 0 };
    }

    /// Prefetches a node's record.
    #[inline]
    pub(super) fn fetch(&self, id: u32) {
        let (block, at, size) = self.place(id);
        let start = self.blocks[block].as_ptr().wrapping_add(at);
        prefetch_at(start);
        prefetch_at(start.wrapping_add(size - 1));
    }

    /// Prefetches a node's component, if it is not in its record, which is read.
    #[inline]
    pub(super) fn fetch_text(&self, id: u32) {
        let record = self.record(id);
        if record.is(LONG) {
            prefetch_at(self.text.as_ptr().wrapping_add(record.place().start));
        }
    }

    /// Prefetches the free node that a kind of component gets after so many others of its kind.
    #[inline]
    pub(super) fn fetch_free(&self, kind: usize, after: u8) {
        let Some(Free { ids, .. }) = self.free.get(kind) else { return };
        let at = ids.len().checked_sub(1 + usize::from(after));
        at.into_iter().for_each(|at| self.fetch(ids[at]));
    }

    /// Reserves memory for about so many more nodes.
    pub(super) fn reserve(&mut self, nodes: usize) {
        /// Bytes of a node of most lists.
        const USUAL: usize = FIXED + 12;
        self.segments.make_room(nodes / RECORDS + KINDS);
        self.make_room(nodes.saturating_mul(USUAL));
    }

    /// Moves the nodes to one block without free memory, unless they nearly have such a block.
    pub(super) fn fit(&mut self) {
        self.segments.fit(self.segments.len() / 8);
        self.text.fit(0);
        let used: usize = self.blocks.iter().map(|block| block.len()).sum();
        let held: usize = self.blocks.iter().map(HugeVec::capacity).sum();
        if held - used <= used / 16 && self.blocks.len() < 4 {
            return;
        }
        let mut all = HugeVec::with_capacity(used);
        for segment in self.segments.iter_mut() {
            let start = segment.start as usize * UNIT;
            let bytes =
                &self.blocks[usize::from(segment.block)][start..][..RECORDS * usize::from(segment.size)];
            (segment.block, segment.start) = (0, in_units(all.len()));
            all.extend_from_slice(bytes);
        }
        self.blocks = vec![all];
    }

    /// Compacts the text when most of it is garbage.
    pub(super) fn compact(&mut self) {
        if self.garbage < 1 << 16 || self.garbage < self.text.len() / 2 {
            return;
        }
        let mut text = HugeVec::with_capacity(self.text.len() - self.garbage);
        let is_long = |segment: &Segment| usize::from(segment.size) == FIXED + PLACE;
        for at in 0..self.segments.len() {
            if !is_long(&self.segments[at]) {
                continue;
            }
            for id in at * RECORDS..(at + 1) * RECORDS {
                let id = u32::try_from(id).expect("below the bound of ids");
                let record = self.record(id);
                if !record.is(LONG) {
                    continue;
                }
                let start = (text.len() as u64).to_le_bytes();
                text.extend_from_slice(self.component(record));
                self.record_mut(id)[FIXED..FIXED + 8].copy_from_slice(&start);
            }
        }
        self.text = text;
        self.garbage = 0;
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(HugeVec::capacity).sum();
        let free: usize = self.free.iter().map(|free| free.ids.capacity()).sum();
        let tables =
            self.segments.capacity() * size_of::<Segment>() + self.free.capacity() * size_of::<Free>();
        blocks + tables + free * size_of::<u32>() + self.text.capacity()
    }

    /// Bytes of long components, and of removed ones.
    #[cfg(test)]
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// A record's block, and its start and length there.
    #[inline]
    fn place(&self, id: u32) -> (usize, usize, usize) {
        let Segment { start, block, size } = self.segments[id as usize / RECORDS];
        let size = usize::from(size);
        (usize::from(block), start as usize * UNIT + id as usize % RECORDS * size, size)
    }

    #[inline]
    fn record_mut(&mut self, id: u32) -> &mut [u8] {
        let (block, at, size) = self.place(id);
        &mut self.blocks[block][at..at + size]
    }

    fn free_of(&mut self, kind: usize) -> &mut Free {
        if self.free.is_empty() {
            self.free.resize(KINDS, Free::default());
        }
        &mut self.free[kind]
    }

    /// Adds a segment for a kind of components, and takes its first node.
    #[cold]
    fn add_segment(&mut self, kind: usize) -> u32 {
        let size = FIXED + if kind == 0 { PLACE } else { kind };
        let bytes = RECORDS * size;
        self.make_room(bytes);
        let number = self.blocks.len() - 1;
        let block = &mut self.blocks[number];
        let start = in_units(block.len());
        block.resize(block.len() + bytes, 0);
        for record in block[start as usize * UNIT..].chunks_exact_mut(size) {
            record[FIXED - 1] = GONE;
        }
        // The largest id means none.
        let first = u32::try_from(self.bound()).ok().filter(|&first| first < u32::MAX - OF_SEGMENT);
        let first = first.expect("fewer than 2^32 nodes");
        self.segments.make_room(1);
        self.segments.push(Segment {
            start,
            block: u16::try_from(number).expect("each block is an eighth of all"),
            size: u8::try_from(size).expect("at most 51"),
        });
        self.free[kind].fresh = first + 1..first + OF_SEGMENT;
        first
    }

    /// Adds a block if the last one has no room for so many bytes. It takes an eighth of all at least, so
    /// that there are few blocks.
    fn make_room(&mut self, bytes: usize) {
        if self.blocks.last().is_some_and(|block| block.capacity() - block.len() >= bytes) {
            return;
        }
        let held: usize = self.blocks.iter().map(HugeVec::capacity).sum();
        let bytes = bytes.max(held / 8);
        let block = HugeVec::with_capacity(bytes.next_multiple_of(UNIT).max(LEAST_BLOCK));
        if bytes >= LARGE_BLOCK {
            block.populate();
        }
        self.blocks.push(block);
    }
}

/// The kind of components of a length: the length itself, or 0 for long ones. The root's is among these.
#[inline]
pub(super) const fn kind(len: usize) -> usize {
    if len > INLINE { 0 } else { len }
}

fn in_units(bytes: usize) -> u32 {
    u32::try_from(bytes / UNIT).expect("a block of less than 512 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(n: usize) -> Vec<u8> {
        (0..1 + n * 7 % 60).map(|at| u8::try_from((n + at) % 251).unwrap()).collect()
    }

    #[test]
    fn records_are_what_was_put_in() {
        let mut nodes = Nodes::default();
        let mut ids: Vec<_> = (0..20_000).map(|n| nodes.add(n, &component(n as usize), 0)).collect();
        let held = |nodes: &Nodes, ids: &[u32]| {
            for (n, &id) in ids.iter().enumerate() {
                let record = nodes.record(id);
                assert_eq!((record.above() as usize, nodes.component(record)), (n, &component(n)[..]));
                assert_eq!((record.value(), record.family()), (0, None));
            }
        };
        held(&nodes, &ids);
        let used =
            |nodes: &Nodes| (0u32..).take(nodes.bound()).filter(|&id| !nodes.record(id).is(GONE)).count();
        assert_eq!(used(&nodes), ids.len());
        nodes.fit();
        held(&nodes, &ids);
        let (bound, bytes) = (nodes.bound(), nodes.memory_usage());
        for round in 0..5 {
            for n in (round..ids.len()).step_by(3) {
                nodes.free(ids[n]);
            }
            for n in (round..ids.len()).step_by(3) {
                ids[n] = nodes.add(u32::try_from(n).unwrap(), &component(n), 0);
            }
            nodes.compact();
            held(&nodes, &ids);
        }
        assert_eq!(nodes.bound(), bound, "ids are used again");
        assert!(nodes.memory_usage() < bytes + bytes / 2, "{bytes}, then {}", nodes.memory_usage());
        nodes.set_value(ids[7], 70);
        nodes.flag(ids[7], FAMILY, true);
        nodes.flag(ids[7], LISTED, true);
        assert_eq!(nodes.record(ids[7]).family(), Some(70));
        nodes.flag(ids[7], FAMILY, false);
        assert!(nodes.record(ids[7]).is(LISTED) && !nodes.record(ids[7]).is(FAMILY));
        assert_eq!(nodes.component(nodes.record(ids[7])), component(7));
    }

    #[test]
    fn reserving_again_and_again_takes_memory_once() {
        let mut nodes = Nodes::default();
        nodes.reserve(100);
        let bytes = nodes.memory_usage();
        (0..100_000).for_each(|_| nodes.reserve(100));
        assert_eq!(nodes.memory_usage(), bytes);
        // Also where nodes come in between.
        for n in 0..100_000 {
            nodes.reserve(100);
            nodes.add(n, b"component", 0);
        }
        assert!(nodes.blocks.len() < 100, "{} blocks", nodes.blocks.len());
    }
}
