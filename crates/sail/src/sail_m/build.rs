//! [`SailM`]: the form of SAIL_M, and its compilation from the routes of all FIBs.
//!
//! The overlay is walked one octet a step, which is one level a step: at each position the prefixes of every FIB are
//! pushed to the 256 elements of the octet, and where any FIB has longer prefixes the element links to a chunk. The
//! form that stays is the place of each chunk; what the elements hold is in the Ribs.

use rustc_hash::FxHashMap;
use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, NextHop, Outgrown, Prefix, Rib};
use wirespeed_image::{Element, Image, Patch, Pool, SectionId, width_for};

use super::fibs::{FibId, Fibs};
use super::layout::{BC16, SailMTable, WORDS, allocate, bits, chunk_ids, next_hops, slots_for};
use super::overlay::{Octets, Overlay, Position};
use crate::sail_l::{element, levels};

/// SAIL_M's control plane: build, and keep up to date, a [`SailMTable`].
///
/// As an [`Engine`] it has one FIB, of id 0.
#[derive(Clone, Debug)]
pub struct SailM {
    /// The chunk beneath an element, by level and element.
    pub(super) beneath: Vec<FxHashMap<u64, u32>>,
    /// The chunks of each level; of level 0, which is one array, none.
    pub(super) pools: Vec<Pool>,
    /// Slots for FIBs: the stride of an element.
    pub(super) slots: usize,
    /// The largest next-hop index that an element can hold.
    pub(super) widest: u32,
    /// The largest that has been in the table.
    pub(super) results: u32,
}

/// Where elements go while a chunk is filled: into an image that is compiled, or into a patch.
pub(super) trait Sink {
    /// These elements of a level, from `first` on, have these next hops, slot by slot.
    fn rows(&mut self, level: usize, first: u64, rows: &[NextHop]);
    /// The element leads to a chunk of the next level; in level 0 to chunk 0 where it ends here.
    fn link(&mut self, level: usize, element: u64, chunk: u32);
    /// Words of the bit map of a level from 1 on.
    fn bits(&mut self, level: usize, first: u64, words: &[u32]);
}

impl SailM {
    /// Compiles the table of several FIBs, and makes what keeps it up to date. There is room for a few more FIBs.
    ///
    /// Takes time and memory by the elements of the overlay (256 for each prefix of whole octets that has a longer
    /// one in any FIB) times the FIBs.
    pub fn overlay<A: Address>(
        fibs: &Fibs<A>,
        options: &BuildOptions,
    ) -> Result<(Self, SailMTable<A>), BuildError> {
        Self::compiled(&Overlay::of(fibs), slots_for(fibs.slots()), options)
    }

    /// The patch that takes a table from before the changes to `fibs`: `changed` lists the prefixes that were inserted,
    /// replaced or removed since the last patch, each with its FIB, in any order, repeated or not. For a FIB that was
    /// added or removed these are all its prefixes.
    ///
    /// After an error the engine is spent: build a new one from the same `fibs`.
    pub fn patch<A: Address>(
        &mut self,
        fibs: &Fibs<A>,
        changed: &[(FibId, Prefix<A>)],
    ) -> Result<Patch, Outgrown> {
        let changed = changed.iter().map(|&(id, prefix)| (id.index(), prefix));
        self.patch_overlay(&Overlay::of(fibs), changed)
    }
}

impl<A: Address> Engine<A> for SailM {
    const NAME: &'static str = "sail-m";
    type Table = SailMTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, SailMTable<A>), BuildError> {
        Self::compiled(&Overlay::single(rib), 1, options)
    }

    fn update(&mut self, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.patch_overlay(&Overlay::single(rib), changed.iter().map(|&prefix| (0, prefix)))
    }

    fn memory_usage(&self) -> u64 {
        self.bytes()
    }
}

/// Chunks to make room for in each level from 1 on: chunk 0, those in use, and an eighth more for updates.
fn capacities<A: Address>(overlay: &Overlay<'_, A>) -> Result<Vec<u64>, BuildError> {
    fn count<A: Address>(position: &Position<'_, A>, depth: usize, chunks: &mut [u64]) {
        for octet in position.octets().iter() {
            if let Some(level) = depth.checked_sub(1) {
                chunks[level] += 1;
            }
            count(&position.child(octet), depth + 1, chunks);
        }
    }
    let mut chunks = vec![0; levels::<A>() - 1];
    count(&overlay.root(), 0, &mut chunks);
    for used in &mut chunks {
        *used += *used / 8 + 9;
        if *used > u64::from(u32::MAX) {
            let limit = u64::from(u32::MAX);
            return Err(BuildError::Limit { engine: "sail-m", what: "chunks a level", limit, found: *used });
        }
    }
    Ok(chunks)
}

impl SailM {
    fn compiled<A: Address>(
        overlay: &Overlay<'_, A>,
        slots: usize,
        options: &BuildOptions,
    ) -> Result<(Self, SailMTable<A>), BuildError> {
        let results = overlay.max_next_hop().0;
        let width = width_for(u64::from(results.max(options.next_hops)));
        let capacities = capacities(overlay)?;
        let image = allocate::<A>(&capacities, slots, width, options.memory_cap)?;
        let pool = |&capacity: &u64| Pool::new(u32::try_from(capacity).unwrap_or(u32::MAX));
        let mut engine = Self {
            beneath: vec![FxHashMap::default(); levels::<A>()],
            pools: std::iter::once(Pool::new(1)).chain(capacities.iter().map(pool)).collect(),
            slots,
            widest: u32::MAX >> (32 - 8 * width),
            results,
        };
        let image = match width {
            1 => engine.compile::<A, u8>(overlay, image),
            2 => engine.compile::<A, u16>(overlay, image),
            _ => engine.compile::<A, u32>(overlay, image),
        };
        Ok((engine, SailMTable::new(image)))
    }

    /// Fills a fresh image.
    fn compile<A: Address, W: Element>(&mut self, overlay: &Overlay<'_, A>, image: Image) -> Image {
        let next_hops = (0..levels::<A>()).map(next_hops::<A>).collect();
        let mut sink = Compiler::<W> { image, next_hops, slots: self.slots, width: std::marker::PhantomData };
        let root = overlay.root();
        let rows = root.expand(&vec![NextHop::NONE; self.slots]);
        for (octet, row) in (0..=u8::MAX).zip(rows.chunks_exact(self.slots)) {
            // The capacities were counted on this very overlay.
            self.fill(0, u32::from(octet), &root.child(octet), row, &mut sink)
                .expect("there is room for every chunk");
        }
        sink.image.set_counts(overlay.routes(), u64::from(self.results));
        sink.image
    }

    /// Fills a chunk and all beneath it. In level 0 the 256 elements under one first octet count as a chunk.
    pub(super) fn fill<A: Address, S: Sink>(
        &mut self,
        level: usize,
        chunk: u32,
        position: &Position<'_, A>,
        inherited: &[NextHop],
        sink: &mut S,
    ) -> Result<(), Outgrown> {
        let rows = position.expand(inherited);
        sink.rows(level, element(chunk, 0), &rows);
        if level + 1 == levels::<A>() {
            return Ok(());
        }
        let octets = position.octets();
        if level > 0 {
            let Octets(words) = octets;
            sink.bits(level, u64::from(chunk) * WORDS as u64, &words);
        }
        for octet in octets.iter() {
            let id = self.link(level, element(chunk, octet), sink)?;
            let row = &rows[usize::from(octet) * self.slots..][..self.slots];
            self.fill(level + 1, id, &position.child(octet), row, sink)?;
        }
        Ok(())
    }

    /// Takes a chunk for what is beneath an element, and links it.
    pub(super) fn link(&mut self, level: usize, element: u64, sink: &mut impl Sink) -> Result<u32, Outgrown> {
        let id = self.pools[level + 1].take().ok_or(Outgrown("room for chunks"))?;
        self.beneath[level].insert(element, id);
        sink.link(level, element, id);
        Ok(id)
    }

    /// Bytes held beside the table and the Ribs.
    pub(super) fn bytes(&self) -> u64 {
        let entry = (size_of::<u64>() + size_of::<u32>() + 1) as u64;
        let maps: u64 = self.beneath.iter().map(|map| map.capacity() as u64 * entry).sum();
        maps + self.pools.iter().map(Pool::memory_usage).sum::<u64>()
    }
}

/// Writes straight into a zeroed image.
struct Compiler<W> {
    image: Image,
    /// The next-hop arrays, by level.
    next_hops: Vec<SectionId>,
    slots: usize,
    width: std::marker::PhantomData<W>,
}

impl<W> Compiler<W> {
    /// Elements of a section from `first` on.
    fn elements<T: Element>(&mut self, section: SectionId, first: u64) -> &mut [T] {
        let elements = self.image.section_mut::<T>(section).expect("an image that is compiled is in memory");
        &mut elements[usize::try_from(first).expect("an index in memory")..]
    }

    fn put<T: Element>(&mut self, section: SectionId, at: u64, value: u32) {
        self.elements::<T>(section, at)[0] = narrow(value);
    }
}

fn narrow<T: Element>(value: u32) -> T {
    T::try_from(u64::from(value)).ok().expect("the widths were chosen for the largest values")
}

impl<W: Element> Sink for Compiler<W> {
    fn rows(&mut self, level: usize, first: u64, rows: &[NextHop]) {
        let (section, first) = (self.next_hops[level], first * self.slots as u64);
        for (element, next_hop) in self.elements::<W>(section, first).iter_mut().zip(rows) {
            *element = narrow(next_hop.0);
        }
    }

    fn link(&mut self, level: usize, element: u64, chunk: u32) {
        match level {
            0 => self.put::<u32>(BC16, element, chunk),
            _ => match self.image.width(chunk_ids(level)) {
                Some(1) => self.put::<u8>(chunk_ids(level), element, chunk),
                Some(2) => self.put::<u16>(chunk_ids(level), element, chunk),
                _ => self.put::<u32>(chunk_ids(level), element, chunk),
            },
        }
    }

    fn bits(&mut self, level: usize, first: u64, words: &[u32]) {
        self.elements::<u32>(bits(level), first)[..words.len()].copy_from_slice(words);
    }
}
