//! [`Form`]: the place of each chunk, and what leads to it.
//!
//! An element of a chunk is either a next hop or, from `base` on, a link to a chunk of the next step. A
//! shared chunk holds one link to each chunk that it leads to, however many lead to itself; who makes a
//! content for one holds those links until it is placed.

use wirespeed_fib::{Address, NextHop, Outgrown, V6};
use wirespeed_image::{Changes, Elements, Image, ImageError, Placed, Pool, SharedPool, WORD};

use super::layout::{SHARED_FROM, Width, chunk_bytes, section};
use super::reached::{Changed, Reached};
use super::walk::Walk;

/// The chunks of every step.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) shape: &'static [u8],
    pub(super) width: Width,
    pub(super) base: u32,
    /// The largest next hop that has been in the table.
    pub(super) results: u32,
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
    /// Each its own: words of elements, chunk after chunk.
    Own { pool: Pool, words: Elements<u64> },
    /// Equal ones are one.
    Shared(SharedPool<u8>),
}

impl Form {
    /// No routes.
    pub(super) fn new(shape: &'static [u8], width: Width, base: u32) -> Self {
        let capacity = u32::try_from(width.values() - u64::from(base)).unwrap_or(u32::MAX);
        let mut from = 0;
        let steps = shape
            .iter()
            .enumerate()
            .map(|(step, &stride)| {
                let bytes = chunk_bytes(stride, width);
                let chunks = if from < SHARED_FROM {
                    let words = Elements::zeroed(section(step), bytes / WORD);
                    Chunks::Own { pool: Pool::new(capacity), words }
                } else {
                    Chunks::Shared(SharedPool::new(section(step), bytes, capacity))
                };
                from += stride;
                Step { from: from - stride, stride, chunks }
            })
            .collect();
        Self { shape, width, base, results: 0, steps }
    }

    /// Moves all chunks to the image, at the end of a build.
    pub(super) fn compile(&mut self, image: &mut Image) -> Result<(), ImageError> {
        for (step, of) in self.steps.iter_mut().enumerate() {
            match &mut of.chunks {
                Chunks::Own { words, .. } => words.compile(image)?,
                Chunks::Shared(pool) => {
                    let bytes = bytemuck::cast_slice_mut::<u64, u8>(image.section_mut(section(step))?);
                    bytes[..pool.built().len()].copy_from_slice(pool.built());
                }
            }
        }
        self.settle();
        Ok(())
    }

    /// Says that the table has all chunks: at the end of a build, and at the start of an update.
    pub(super) fn settle(&mut self) {
        for step in &mut self.steps {
            if let Chunks::Shared(pool) = &mut step.chunks {
                pool.settle();
            }
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
            Chunks::Own { pool, words } => words.memory_usage() + pool.memory_usage(),
            Chunks::Shared(pool) => pool.memory_usage(),
        };
        self.steps.iter().map(of).sum()
    }

    /// Brings the table up to date with changed routes.
    pub(super) fn refresh(
        &mut self,
        walk: &mut Walk<'_>,
        changed: Changed<'_>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        self.refresh_own(walk, 0, 0, V6::MIN, changed, changes)
    }

    /// Brings up to date the elements that changes reach in a chunk of its own.
    fn refresh_own(
        &mut self,
        walk: &mut Walk<'_>,
        step: usize,
        chunk: u32,
        address: V6,
        changed: Changed<'_>,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        for (at, changed) in self.reached(step, changed) {
            let (address, end) = self.place(step, address, at);
            let (found, longer) = walk.at(address, end);
            let Some(beneath) = changed.beneath(found.len) else { continue };
            let old = self.own_element(step, chunk, at, changes);
            let new = if !longer {
                self.release(step + 1, old, changes);
                self.admit(found.next_hop)?
            } else if self.is_own(step + 1) {
                let child = match old.checked_sub(self.base) {
                    Some(child) => child,
                    None => self.new_own(step + 1, old, changes)?,
                };
                self.refresh_own(walk, step + 1, child, address, beneath, changes)?;
                self.base + child
            } else {
                self.refresh_shared(walk, step + 1, old, address, beneath, changes)?
            };
            if new != old {
                self.set_own_element(step, chunk, at, new, changes);
            }
        }
        Ok(())
    }

    /// The element that leads to what `old` led to, brought up to date where changes reach. Takes the link
    /// that `old` is, and gives one.
    fn refresh_shared(
        &mut self,
        walk: &mut Walk<'_>,
        step: usize,
        old: u32,
        address: V6,
        changed: Changed<'_>,
        changes: &mut Changes<'_>,
    ) -> Result<u32, Outgrown> {
        let was = old.checked_sub(self.base);
        let mut content = self.content_of(step, old, changes);
        // A chunk that nobody else leads to leaves its links to the new content, others keep theirs.
        let alone = was.is_some_and(|chunk| self.shared(step).links(chunk) == 1);
        if !alone && was.is_some() {
            self.add_links(step + 1, &content);
        }
        let mut is_other = false;
        for (at, changed) in self.reached(step, changed) {
            let (address, end) = self.place(step, address, at);
            let (found, longer) = walk.at(address, end);
            let Some(beneath) = changed.beneath(found.len) else { continue };
            let before = content.get(at);
            let after = if longer {
                self.refresh_shared(walk, step + 1, before, address, beneath, changes)?
            } else {
                self.release(step + 1, before, changes);
                self.admit(found.next_hop)?
            };
            content.set(at, after);
            is_other |= after != before;
        }
        if !is_other {
            if !alone && was.is_some() {
                self.drop_links(step + 1, &content, changes);
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
            Some(chunk) => pool.relink(chunk, content.bytes(), changes),
            None => pool.link(content.bytes(), changes),
        }
        .ok_or(Outgrown("room for chunks"))?;
        self.shared(step).write(placed, changes);
        if matches!(placed, Placed::Shared(_)) {
            self.drop_links(step + 1, &content, changes);
        }
        Ok(self.base + placed.piece())
    }

    /// The elements of a chunk of a step that changes reach.
    fn reached<'c>(&self, step: usize, changed: Changed<'c>) -> Reached<'c> {
        let Step { from, stride, .. } = self.steps[step];
        Reached::new(from, stride, changed)
    }

    /// Counts a next hop in, and gives its element.
    fn admit(&mut self, NextHop(next_hop): NextHop) -> Result<u32, Outgrown> {
        if next_hop >= self.base {
            return Err(Outgrown("room for next hops"));
        }
        self.results = self.results.max(next_hop);
        Ok(next_hop)
    }

    /// The first address of an element, and the number of bits that all its addresses share.
    fn place(&self, step: usize, address: V6, at: usize) -> (V6, u8) {
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

    /// The word of an element of a chunk of its own, and the number of bits before the element.
    fn place_in_word(&self, step: usize, chunk: u32, at: usize) -> (usize, usize) {
        let width = self.width.bytes();
        let byte = (((chunk as usize) << self.steps[step].stride) + at) * width;
        (byte / WORD, 8 * (byte % WORD))
    }

    fn own_element(&self, step: usize, chunk: u32, at: usize, changes: &Changes<'_>) -> u32 {
        let Chunks::Own { words, .. } = &self.steps[step].chunks else {
            unreachable!("asked of a step whose chunks are shared")
        };
        let (word, before) = self.place_in_word(step, chunk, at);
        read(&(words.get(word, changes) >> before).to_le_bytes()[..self.width.bytes()])
    }

    fn set_own_element(&mut self, step: usize, chunk: u32, at: usize, value: u32, changes: &mut Changes<'_>) {
        let (word, before) = self.place_in_word(step, chunk, at);
        let all = u64::MAX >> (64 - 8 * self.width.bytes());
        if let Chunks::Own { words, .. } = &mut self.steps[step].chunks {
            let others = words.get(word, changes) & !(all << before);
            words.set(word, others | u64::from(value) << before, changes);
        }
    }

    /// A chunk of its own, filled with a next hop.
    fn new_own(&mut self, step: usize, next_hop: u32, changes: &mut Changes<'_>) -> Result<u32, Outgrown> {
        let (width, stride) = (self.width, self.steps[step].stride);
        let Chunks::Own { pool, words } = &mut self.steps[step].chunks else {
            unreachable!("asked of a step whose chunks are shared")
        };
        let chunk = pool.take().ok_or(Outgrown("room for chunks"))?;
        let len = chunk_bytes(stride, width) / WORD;
        let range = chunk as usize * len..(chunk as usize + 1) * len;
        words.extend_to(range.end);
        let element = u64::from(next_hop);
        let even = (0..WORD / width.bytes()).fold(0, |even, at| even | element << (8 * width.bytes() * at));
        for word in range {
            words.set(word, even, changes);
        }
        Ok(chunk)
    }

    /// Gives up a link, and with the last one to a chunk what that leads to.
    fn release(&mut self, step: usize, element: u32, changes: &Changes<'_>) {
        let Some(chunk) = element.checked_sub(self.base) else { return };
        let content = self.content_of(step, element, changes);
        let free = match &mut self.steps[step].chunks {
            Chunks::Own { pool, .. } => {
                pool.give_back(chunk);
                true
            }
            Chunks::Shared(pool) => pool.unlink(chunk),
        };
        if free {
            self.drop_links(step + 1, &content, changes);
        }
    }

    /// Gives up the links of a content.
    fn drop_links(&mut self, step: usize, content: &Content, changes: &Changes<'_>) {
        let base = self.base;
        for element in content.iter().filter(|&element| element >= base) {
            self.release(step, element, changes);
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
    fn content_of(&self, step: usize, element: u32, changes: &Changes<'_>) -> Content {
        let Step { stride, chunks, .. } = &self.steps[step];
        let Some(chunk) = element.checked_sub(self.base) else {
            return Content::even_of(self.width, *stride, NextHop(element));
        };
        let bytes = match chunks {
            Chunks::Own { words, .. } => {
                let len = chunk_bytes(*stride, self.width) / WORD;
                let range = chunk as usize * len..(chunk as usize + 1) * len;
                range.flat_map(|word| words.get(word, changes).to_le_bytes()).collect()
            }
            Chunks::Shared(pool) => pool.content(chunk, changes).to_vec(),
        };
        Content { width: self.width, bytes }
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
