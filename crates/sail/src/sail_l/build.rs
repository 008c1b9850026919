//! [`SailL`]: the form of SAIL_L, and its compilation from a Rib.
//!
//! The Rib is walked one octet a step, which is one level a step: at each node its prefixes are pushed to the
//! 256 elements of the octet, and where longer prefixes follow the element links to a chunk instead. The form
//! that stays is the place of each chunk; what the elements hold is in the Rib.

use rustc_hash::FxHashMap;
use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, NextHop, Outgrown, Prefix, Rib, Standing};
use wirespeed_image::{Element, Image, Patch, Pool, width_for};

use super::layout::{BCN16, CHUNK, LEAF, MAX_NEXT_HOP, SailLTable, allocate, chunk_ids, levels, next_hops};

/// SAIL_L's control plane: build, and keep up to date, a [`SailLTable`].
#[derive(Clone, Debug)]
pub struct SailL {
    /// The chunk beneath an element, by level and element.
    pub(crate) beneath: Vec<FxHashMap<u64, u32>>,
    /// The chunks of each level; of level 0, which is one array, none.
    pub(crate) pools: Vec<Pool>,
    /// The largest next-hop index that an element can hold.
    pub(crate) widest: u32,
    /// The largest that has been in the table.
    pub(crate) results: u32,
}

/// The target of elements while a chunk is filled: an image that is compiled, or a patch.
pub(crate) trait Sink {
    /// The element holds a next hop.
    fn leaf(&mut self, level: usize, element: u64, next_hop: NextHop);
    /// The element leads to a chunk of the next level.
    fn link(&mut self, level: usize, element: u64, chunk: u32);
}

impl<A: Address> Engine<A> for SailL {
    const NAME: &'static str = "sail-l";
    const STANDING: Standing = Standing::Paper("SAIL, SIGCOMM 2014");
    type Table = SailLTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, SailLTable<A>), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        if widest > MAX_NEXT_HOP {
            let (limit, found) = (u64::from(MAX_NEXT_HOP), u64::from(widest));
            return Err(BuildError::Limit { engine: "sail-l", what: "next hops", limit, found });
        }
        let width = width_for(u64::from(widest) + 1);
        let capacities = capacities::<A>(rib, options)?;
        let image = allocate::<A>(&capacities, width, options.memory_cap)?;
        // The elements' width, less the one that is added to a next hop, bounds what an update may bring.
        let holds = [0, 0xfe, 0xfffe, 0, MAX_NEXT_HOP][width];
        let pool = |&capacity: &u64| Pool::new(u32::try_from(capacity).unwrap_or(u32::MAX));
        let mut engine = Self {
            beneath: vec![FxHashMap::default(); levels::<A>()],
            pools: std::iter::once(Pool::new(1)).chain(capacities.iter().map(pool)).collect(),
            widest: holds,
            results,
        };
        let image = match width {
            1 => engine.compile::<A, u8>(rib, image)?,
            2 => engine.compile::<A, u16>(rib, image)?,
            _ => engine.compile::<A, u32>(rib, image)?,
        };
        Ok((engine, SailLTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        let entry = (size_of::<u64>() + size_of::<u32>() + 1) as u64;
        let maps: u64 = self.beneath.iter().map(|map| map.capacity() as u64 * entry).sum();
        maps + self.pools.iter().map(Pool::memory_usage).sum::<u64>()
    }
}

/// Chunks in use in each level from 1 on.
pub(crate) fn chunks<A: Address>(rib: &Rib<A>) -> Vec<u64> {
    fn count<A: Address>(cursor: Cursor<'_, A>, chunks: &mut [u64]) {
        for child in cursor.octets().filter_map(|octet| cursor.child(octet)) {
            if let Some(level) = usize::from(child.depth()).checked_sub(2) {
                chunks[level] += 1;
            }
            count(child, chunks);
        }
    }
    let mut chunks = vec![0; levels::<A>() - 1];
    count(rib.cursor(), &mut chunks);
    chunks
}

/// Chunks to make room for in each level from 1 on: chunk 0, those in use, and an eighth more for updates.
fn capacities<A: Address>(rib: &Rib<A>, options: &BuildOptions) -> Result<Vec<u64>, BuildError> {
    let mut chunks = chunks(rib);
    for used in &mut chunks {
        *used += options.head_room_for(*used, 8, 9);
        if *used > u64::from(u32::MAX) {
            let limit = u64::from(u32::MAX);
            return Err(BuildError::Limit { engine: "sail-l", what: "chunks a level", limit, found: *used });
        }
    }
    Ok(chunks)
}

impl SailL {
    /// Fills a fresh image.
    fn compile<A: Address, W: Element>(&mut self, rib: &Rib<A>, image: Image) -> Result<Image, BuildError> {
        let mut sink = Compiler::<W> { image, last: levels::<A>() - 1, width: std::marker::PhantomData };
        let root = rib.cursor();
        let mut inherited = [NextHop::NONE; CHUNK];
        root.expand(NextHop::NONE, &mut inherited);
        for (octet, &inherited) in (0..=u8::MAX).zip(&inherited) {
            // The capacities were counted on this very Rib.
            self.fill(0, u32::from(octet), root.child(octet), inherited, &mut sink)
                .expect("there is room for every chunk");
        }
        sink.image.set_counts(rib.len() as u64, u64::from(self.results));
        Ok(sink.image)
    }

    /// Fills a chunk and all beneath it. In level 0 the 256 elements under one first octet count as a chunk.
    pub(crate) fn fill<A: Address, S: Sink>(
        &mut self,
        level: usize,
        chunk: u32,
        cursor: Option<Cursor<'_, A>>,
        inherited: NextHop,
        sink: &mut S,
    ) -> Result<(), Outgrown> {
        let mut next_hops = [inherited; CHUNK];
        if let Some(cursor) = cursor {
            cursor.expand(inherited, &mut next_hops);
        }
        for (octet, &next_hop) in (0..=u8::MAX).zip(&next_hops) {
            let element = element(chunk, octet);
            match cursor.and_then(|cursor| cursor.child(octet)) {
                None => sink.leaf(level, element, next_hop),
                Some(child) => {
                    let id = self.link(level, element, sink)?;
                    self.fill(level + 1, id, Some(child), next_hop, sink)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a chunk for what is beneath an element, and links it.
    pub(crate) fn link(&mut self, level: usize, element: u64, sink: &mut impl Sink) -> Result<u32, Outgrown> {
        let id = self.pools[level + 1].take().ok_or(Outgrown("room for chunks"))?;
        self.beneath[level].insert(element, id);
        sink.link(level, element, id);
        Ok(id)
    }
}

/// The index of an element in the arrays of its level.
pub(crate) fn element(chunk: u32, octet: u8) -> u64 {
    u64::from(chunk) * CHUNK as u64 + u64::from(octet)
}

/// Writes straight into a zeroed image.
struct Compiler<W> {
    image: Image,
    /// The last level.
    last: usize,
    width: std::marker::PhantomData<W>,
}

impl<W: Element> Compiler<W> {
    fn put<T: Element>(&mut self, section: wirespeed_image::SectionId, element: u64, value: u64) {
        let elements = self.image.section_mut::<T>(section).expect("an image that is compiled is in memory");
        let value = T::try_from(value).ok().expect("the widths were chosen for the largest values");
        elements[usize::try_from(element).expect("an index in memory")] = value;
    }
}

impl<W: Element> Sink for Compiler<W> {
    fn leaf(&mut self, level: usize, element: u64, next_hop: NextHop) {
        match level {
            0 => self.put::<u32>(BCN16, element, u64::from(LEAF | next_hop.0)),
            _ => self.put::<W>(next_hops(level), element, leaf_value(level, self.last, next_hop)),
        }
    }

    fn link(&mut self, level: usize, element: u64, chunk: u32) {
        let chunk = u64::from(chunk);
        match level {
            0 => self.put::<u32>(BCN16, element, chunk),
            _ => match self.image.width(chunk_ids(level)) {
                Some(1) => self.put::<u8>(chunk_ids(level), element, chunk),
                Some(2) => self.put::<u16>(chunk_ids(level), element, chunk),
                _ => self.put::<u32>(chunk_ids(level), element, chunk),
            },
        }
    }
}

/// What the element of a level from 1 on holds for a next hop: plus one where 0 means to go on.
pub(crate) fn leaf_value(level: usize, last: usize, next_hop: NextHop) -> u64 {
    u64::from(next_hop.0) + u64::from(level < last)
}
