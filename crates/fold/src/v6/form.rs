//! [`Form`]: the place of each chunk, and what leads to it.
//!
//! An element of a chunk is either a next hop or, from `base` on, a link to a chunk of the next step. A
//! shared chunk holds one link to each chunk that it leads to, however many lead to itself; who makes a
//! content for one holds those links until it is placed.

use wirespeed_fib::{NextHop, Outgrown, Prefix, V6};
use wirespeed_image::{Changes, Placed, Pool, SharedPool};

use super::layout::{SHARED_FROM, Width, bits, chunk_bytes, section};
use super::walk::Walk;

/// The chunks of every step.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) shape: &'static [u8],
    pub(super) width: Width,
    pub(super) base: u32,
    steps: Vec<Step>,
}

/// The chunks of one step.
#[derive(Clone, Debug)]
struct Step {
    /// Bits of the address before this step's.
    from: u8,
    stride: u8,
    chunks: Chunks,
}

#[derive(Clone, Debug)]
enum Chunks {
    /// Each its own: what they hold, by number.
    Own { pool: Pool, contents: Vec<u8> },
    /// Equal ones are one.
    Shared(SharedPool<u8>),
}

/// A part of the table in which routes may be different.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// What it reaches.
    pub(super) prefix: Prefix<V6>,
    /// An element that a route longer than this decides is as it was, and so is all beneath it.
    pub(super) decided_by: u8,
}

impl Form {
    /// No routes.
    pub(super) fn new(shape: &'static [u8], width: Width, base: u32) -> Self {
        let capacity = u32::try_from(width.values() - u64::from(base)).unwrap_or(u32::MAX);
        let mut from = 0;
        let steps = shape
            .iter()
            .map(|&stride| {
                let bytes = chunk_bytes(stride, width);
                let chunks = if from < SHARED_FROM {
                    Chunks::Own { pool: Pool::new(capacity), contents: vec![0; bytes] }
                } else {
                    Chunks::Shared(SharedPool::new(bytes, capacity))
                };
                from += stride;
                Step { from: from - stride, stride, chunks }
            })
            .collect();
        Self { shape, width, base, steps }
    }

    /// What a step holds, chunk by chunk up to the last that was ever used.
    pub(super) fn contents(&self, step: usize) -> &[u8] {
        match &self.steps[step].chunks {
            Chunks::Own { contents, .. } => contents,
            Chunks::Shared(pool) => pool.contents(),
        }
    }

    /// Number of chunks in use.
    pub(super) fn in_use(&self, step: usize) -> u32 {
        match &self.steps[step].chunks {
            Chunks::Own { pool, .. } => pool.in_use(),
            Chunks::Shared(pool) => pool.in_use(),
        }
    }

    /// Sets how many chunks a step has room for, chunk 0 included.
    pub(super) fn set_capacity(&mut self, step: usize, capacity: u32) {
        match &mut self.steps[step].chunks {
            Chunks::Own { pool, .. } => pool.set_capacity(capacity),
            Chunks::Shared(pool) => pool.set_capacity(capacity),
        }
    }

    /// Bytes held.
    pub(super) fn memory_usage(&self) -> u64 {
        let of = |step: &Step| match &step.chunks {
            Chunks::Own { pool, contents } => contents.capacity() as u64 + pool.memory_usage(),
            Chunks::Shared(pool) => pool.memory_usage(),
        };
        self.steps.iter().map(of).sum()
    }

    /// Brings the table up to date with a change.
    pub(super) fn refresh(
        &mut self,
        walk: &mut Walk<'_>,
        change: Change,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        self.refresh_own(walk, 0, 0, change.prefix.address(), change, changes)
    }

    /// Brings up to date the elements that a change reaches in a chunk of its own.
    fn refresh_own(
        &mut self,
        walk: &mut Walk<'_>,
        step: usize,
        chunk: u32,
        address: V6,
        change: Change,
        changes: &mut Changes,
    ) -> Result<(), Outgrown> {
        for at in self.reached(step, change.prefix) {
            let old = self.own_element(step, chunk, at);
            let (address, end) = self.place(step, address, at);
            let (found, longer) = walk.at(address, end);
            if found.len > change.decided_by {
                continue;
            }
            let new = if !longer {
                self.release(step + 1, old);
                found.next_hop.0
            } else if self.is_own(step + 1) {
                let child = match old.checked_sub(self.base) {
                    Some(child) => child,
                    None => self.new_own(step + 1, old, changes)?,
                };
                self.refresh_own(walk, step + 1, child, address, change, changes)?;
                self.base + child
            } else {
                self.refresh_shared(walk, step + 1, old, address, change, changes)?
            };
            if new != old {
                self.set_own_element(step, chunk, at, new, changes);
            }
        }
        Ok(())
    }

    /// The element that leads to what `old` led to, brought up to date where a change reaches. Takes the link
    /// that `old` is, and gives one.
    fn refresh_shared(
        &mut self,
        walk: &mut Walk<'_>,
        step: usize,
        old: u32,
        address: V6,
        change: Change,
        changes: &mut Changes,
    ) -> Result<u32, Outgrown> {
        let was = old.checked_sub(self.base);
        let mut content = self.content_of(step, old);
        // A chunk that nobody else leads to leaves its links to the new content, others keep theirs.
        let alone = was.is_some_and(|chunk| self.shared(step).links(chunk) == 1);
        if !alone && was.is_some() {
            self.add_links(step + 1, &content);
        }
        let mut changed = false;
        for at in self.reached(step, change.prefix) {
            let (address, end) = self.place(step, address, at);
            let (found, longer) = walk.at(address, end);
            if found.len > change.decided_by {
                continue;
            }
            let before = content.get(at);
            let after = if longer {
                self.refresh_shared(walk, step + 1, before, address, change, changes)?
            } else {
                self.release(step + 1, before);
                found.next_hop.0
            };
            content.set(at, after);
            changed |= after != before;
        }
        if !changed {
            if !alone && was.is_some() {
                self.drop_links(step + 1, &content);
            }
            return Ok(old);
        }
        if let Some(next_hop) = content.even().filter(|&value| value < self.base) {
            if let Some(chunk) = was {
                // Its links went with the content, of which none are left.
                self.shared_mut(step).unlink(chunk);
            }
            return Ok(next_hop);
        }
        let pool = self.shared_mut(step);
        let placed = match was {
            Some(chunk) => pool.relink(chunk, content.bytes()),
            None => pool.link(content.bytes()),
        }
        .ok_or(Outgrown("room for chunks"))?;
        changes.chunk(section(step), placed, self.shared(step));
        if matches!(placed, Placed::Shared(_)) {
            self.drop_links(step + 1, &content);
        }
        Ok(self.base + placed.piece())
    }

    /// The elements of a chunk of a step that a prefix covers, or the one on the way to it.
    fn reached(&self, step: usize, prefix: Prefix<V6>) -> std::ops::RangeInclusive<usize> {
        let Step { from, stride, .. } = self.steps[step];
        use wirespeed_fib::Address;
        bits(prefix.address(), from, stride)..=bits(prefix.address().fill(prefix.len()), from, stride)
    }

    /// The first address of an element, and the number of bits that all its addresses share.
    fn place(&self, step: usize, address: V6, at: usize) -> (V6, u8) {
        use wirespeed_fib::Address;
        let Step { from, stride, .. } = self.steps[step];
        let end = from + stride;
        (V6(address.keep(from).0 | (at as u128) << (128 - end)), end)
    }

    fn is_own(&self, step: usize) -> bool {
        matches!(self.steps[step].chunks, Chunks::Own { .. })
    }

    fn shared(&self, step: usize) -> &SharedPool<u8> {
        match &self.steps[step].chunks {
            Chunks::Shared(pool) => pool,
            Chunks::Own { .. } => unreachable!("asked of a step whose chunks are their own"),
        }
    }

    fn shared_mut(&mut self, step: usize) -> &mut SharedPool<u8> {
        match &mut self.steps[step].chunks {
            Chunks::Shared(pool) => pool,
            Chunks::Own { .. } => unreachable!("asked of a step whose chunks are their own"),
        }
    }

    fn own_element(&self, step: usize, chunk: u32, at: usize) -> u32 {
        let width = self.width.bytes();
        let index = ((chunk as usize) << self.steps[step].stride) + at;
        read(&self.contents(step)[index * width..][..width])
    }

    fn set_own_element(&mut self, step: usize, chunk: u32, at: usize, value: u32, changes: &mut Changes) {
        let width = self.width.bytes();
        let index = ((chunk as usize) << self.steps[step].stride) + at;
        if let Chunks::Own { contents, .. } = &mut self.steps[step].chunks {
            contents[index * width..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
            changes.bytes(section(step), contents, index * width..(index + 1) * width);
        }
    }

    /// A chunk of its own, filled with a next hop.
    fn new_own(&mut self, step: usize, next_hop: u32, changes: &mut Changes) -> Result<u32, Outgrown> {
        let (width, stride) = (self.width, self.steps[step].stride);
        let Chunks::Own { pool, contents } = &mut self.steps[step].chunks else {
            unreachable!("asked of a step whose chunks are shared")
        };
        let chunk = pool.take().ok_or(Outgrown("room for chunks"))?;
        let len = chunk_bytes(stride, width);
        let range = chunk as usize * len..(chunk as usize + 1) * len;
        if contents.len() < range.end {
            contents.resize(range.end, 0);
        }
        for element in contents[range.clone()].chunks_exact_mut(width.bytes()) {
            element.copy_from_slice(&next_hop.to_le_bytes()[..width.bytes()]);
        }
        changes.bytes(section(step), contents, range);
        Ok(chunk)
    }

    /// Gives up a link, and with the last one to a chunk what that leads to.
    fn release(&mut self, step: usize, element: u32) {
        let Some(chunk) = element.checked_sub(self.base) else { return };
        let content = self.content_of(step, element);
        let free = match &mut self.steps[step].chunks {
            Chunks::Own { pool, .. } => {
                pool.give_back(chunk);
                true
            }
            Chunks::Shared(pool) => pool.unlink(chunk),
        };
        if free {
            self.drop_links(step + 1, &content);
        }
    }

    /// Gives up the links of a content.
    fn drop_links(&mut self, step: usize, content: &Content) {
        let base = self.base;
        for element in content.iter().filter(|&element| element >= base) {
            self.release(step, element);
        }
    }

    /// Links once more to all that a content leads to.
    fn add_links(&mut self, step: usize, content: &Content) {
        let base = self.base;
        for chunk in content.iter().filter_map(|element| element.checked_sub(base)) {
            self.shared_mut(step).add_link(chunk);
        }
    }

    /// The content that an element stands for: of a next hop, a chunk of nothing else.
    fn content_of(&self, step: usize, element: u32) -> Content {
        let stride = self.steps[step].stride;
        match element.checked_sub(self.base) {
            None => Content::even_of(self.width, stride, NextHop(element)),
            Some(chunk) => {
                let len = chunk_bytes(stride, self.width);
                Content {
                    width: self.width,
                    bytes: self.contents(step)[chunk as usize * len..][..len].into(),
                }
            }
        }
    }
}

/// An element as it is stored.
fn read(bytes: &[u8]) -> u32 {
    match *bytes {
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => unreachable!("elements are of 2 or 4 bytes"),
    }
}

/// The elements of a chunk that is made.
struct Content {
    width: Width,
    bytes: Vec<u8>,
}

impl Content {
    fn even_of(width: Width, stride: u8, next_hop: NextHop) -> Self {
        let element = next_hop.0.to_le_bytes();
        Self { width, bytes: element[..width.bytes()].repeat(1 << stride) }
    }

    fn get(&self, at: usize) -> u32 {
        let width = self.width.bytes();
        read(&self.bytes[at * width..][..width])
    }

    fn set(&mut self, at: usize, value: u32) {
        let width = self.width.bytes();
        self.bytes[at * width..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.bytes.chunks_exact(self.width.bytes()).map(read)
    }

    /// The value that all elements have.
    fn even(&self) -> Option<u32> {
        let width = self.width.bytes();
        (self.bytes[width..] == self.bytes[..self.bytes.len() - width]).then(|| self.get(0))
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
