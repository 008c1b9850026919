//! [`SailM`]: the form of SAIL_M, and its compilation from the routes of all FIBs.
//!
//! The overlay is walked one octet a step, which is one level a step: at each position the prefixes of every
//! FIB are pushed to the 256 elements of the octet, and where any FIB has longer prefixes the element links
//! to a chunk. The form is the place of each chunk, the distinct next-hop arrays, and which of them each
//! element has, so that an array can go when its last element lets go of it.

use rustc_hash::FxHashMap;
use wirespeed_fib::{Address, BuildError, BuildOptions, Engine, NextHop, Outgrown, Prefix, Rib, Standing};
use wirespeed_image::{Element, Image, ImageError, Patch, Pool, SectionId, width_for};

use super::arrays::Arrays;
use super::fibs::{FibId, Fibs};
use super::layout::{
    FIRST, LEAF, MAX_ARRAYS, SailMTable, allocate, elements, id_width, leaf, next_hops, slots_for,
};
use super::log::Log;
use super::overlay::{Octets, Overlay, Position};
use crate::sail_l::{CHUNK, element, levels};

/// SAIL_M's control plane: build, and keep up to date, a [`SailMTable`].
///
/// Used as an [`Engine`] it has one FIB, whose id is 0.
#[derive(Clone, Debug)]
pub struct SailM {
    /// The chunk beneath an element, by level and element.
    pub(super) beneath: Vec<FxHashMap<u64, u32>>,
    /// The chunks of each level; of level 0, which is one array, none.
    pub(super) pools: Vec<Pool>,
    /// The array of each element by level; 0 where it leads on, and in chunks that are not in use.
    pub(super) held: Vec<Vec<u32>>,
    pub(super) arrays: Arrays,
    /// Slots for FIBs: the length of an array.
    pub(super) slots: usize,
    /// The bit of an element past level 16 that says that lookups end there.
    pub(super) leaf: u32,
    /// The largest next-hop index that an array can hold.
    pub(super) widest: u32,
    /// The largest that has been in the table.
    pub(super) results: u32,
}

impl SailM {
    /// Compiles the table of several FIBs, and makes what keeps it up to date. There is room for a few more
    /// FIBs.
    ///
    /// Takes time by the elements of the overlay (256 for each prefix of whole octets that has a longer one
    /// in any FIB) times the FIBs.
    pub fn overlay<A: Address>(
        fibs: &Fibs<A>,
        options: &BuildOptions,
    ) -> Result<(Self, SailMTable<A>), BuildError> {
        Self::compiled(&Overlay::of(fibs), slots_for(fibs.slots()), options)
    }

    /// The patch that takes a table from before the changes to `fibs`: `changed` lists the prefixes that were
    /// inserted, replaced or removed since the last patch, each with its FIB, in any order, repeated or not.
    /// For a FIB that was added or removed these are all its prefixes.
    ///
    /// After an error the engine is spent: build a new one from the same `fibs`.
    #[inline(never)] // one copy for all crates
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
    const STANDING: Standing = Standing::Niche("many FIBs that are alike, in one table");
    type Table = SailMTable<A>;

    fn build(rib: &Rib<A>, options: &BuildOptions) -> Result<(Self, SailMTable<A>), BuildError> {
        Self::compiled(&Overlay::single(rib), 1, options)
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<A>, changed: &[Prefix<A>]) -> Result<Patch, Outgrown> {
        self.patch_overlay(&Overlay::single(rib), changed.iter().map(|&prefix| (0, prefix)))
    }

    fn memory_usage(&self) -> u64 {
        self.bytes()
    }
}

/// Chunks to make room for in each level from 1 on: chunk 0, those in use, and an eighth more for updates.
fn capacities<A: Address>(overlay: &Overlay<'_, A>, options: &BuildOptions) -> Result<Vec<u64>, BuildError> {
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
        *used += options.head_room_for(*used, 8, 9);
        if *used > u64::from(LEAF) {
            return Err(limit("chunks a level", LEAF, *used));
        }
    }
    Ok(chunks)
}

/// Arrays to make room for where there are so many: an eighth more for updates, and more than that while ids
/// get no wider by it and it takes under a sixteenth of what the elements take. (FIBs that drift apart need
/// far more than an eighth.)
fn room_for_arrays(arrays: u64, capacities: &[u64], slots: usize, width: usize) -> u64 {
    let enough = arrays + arrays / 8 + 16 * slots.min(64) as u64;
    let id_width = id_width(capacities, enough);
    let as_wide = 1 << (8 * id_width - 1);
    let elements = capacities.iter().sum::<u64>() * CHUNK as u64;
    let cheap = arrays + elements * id_width as u64 / 16 / (slots * width) as u64;
    enough.max(cheap.min(as_wide)).min(MAX_ARRAYS.into())
}

/// Number of distinct arrays of an overlay, array 0 included: as many as the form comes to, without the rest
/// of it.
fn count_arrays<A: Address>(overlay: &Overlay<'_, A>, slots: usize) -> Result<u64, BuildError> {
    fn count<A: Address>(
        position: &Position<'_, A>,
        inherited: &[NextHop],
        level: usize,
        arrays: &mut Arrays,
    ) -> Option<()> {
        let slots = inherited.len();
        let rows = position.expand(inherited);
        let octets = if level + 1 < levels::<A>() { position.octets() } else { Octets::default() };
        for octet in (0..=u8::MAX).filter(|&octet| !octets.contains(octet)) {
            arrays.take(&rows[usize::from(octet) * slots..][..slots])?;
        }
        for octet in octets.iter() {
            let row = &rows[usize::from(octet) * slots..][..slots];
            count(&position.child(octet), row, level + 1, arrays)?;
        }
        Some(())
    }
    let mut arrays = Arrays::new(slots, MAX_ARRAYS as usize);
    let root = overlay.root();
    let rows = root.expand(&vec![NextHop::NONE; slots]);
    for (octet, row) in (0..=u8::MAX).zip(rows.chunks_exact(slots)) {
        count(&root.child(octet), row, 0, &mut arrays).ok_or_else(too_many_arrays)?;
    }
    Ok(arrays.len() as u64)
}

fn too_many_arrays() -> BuildError {
    limit("next-hop arrays", MAX_ARRAYS, u64::from(MAX_ARRAYS) + 1)
}

fn limit(what: &'static str, limit: u32, found: u64) -> BuildError {
    BuildError::Limit { engine: "sail-m", what, limit: limit.into(), found }
}

impl SailM {
    #[inline(never)] // one copy for all crates
    fn compiled<A: Address>(
        overlay: &Overlay<'_, A>,
        slots: usize,
        options: &BuildOptions,
    ) -> Result<(Self, SailMTable<A>), BuildError> {
        let results = overlay.max_next_hop().0;
        let width = width_for(u64::from(results.max(options.results)));
        let capacities = capacities(overlay, options)?;
        let room_for = |arrays: u64| match options.tight {
            true => (arrays + 2).min(MAX_ARRAYS.into()),
            false => room_for_arrays(arrays.max(options.results.into()), &capacities, slots, width),
        };
        let allocate = |arrays| allocate::<A>(&capacities, arrays, slots, width, options.memory_cap);
        // The arrays are only counted as they are found: first see that what is known of the size is under
        // the cap. Where it is not, the error says what all of it would be.
        match allocate(1).map(drop) {
            Err(ImageError::OverCap { .. }) => drop(allocate(room_for(count_arrays(overlay, slots)?))?),
            first => first?,
        }
        let mut engine = Self::form(overlay, slots, &capacities)?;
        engine.widest = u32::MAX >> (32 - 8 * width);
        engine.results = results;
        let capacity = room_for(engine.arrays.len() as u64);
        engine.arrays.set_capacity(usize::try_from(capacity).unwrap_or(usize::MAX));
        let image = allocate(capacity)?;
        engine.leaf = leaf(image.width(elements(1)).unwrap_or(0));
        let mut compiler = Compiler { engine: &engine, image };
        compiler.compile::<A>(width);
        let mut image = compiler.image;
        image.set_counts(overlay.routes(), u64::from(results));
        Ok((engine, SailMTable::new(image)))
    }

    /// The form of an overlay, with room for that many chunks in each level from 1 on.
    fn form<A: Address>(
        overlay: &Overlay<'_, A>,
        slots: usize,
        capacities: &[u64],
    ) -> Result<Self, BuildError> {
        let pool = |&chunks: &u64| Pool::new(u32::try_from(chunks).unwrap_or(u32::MAX));
        let elements = |&chunks: &u64| vec![0; usize::try_from(chunks).unwrap_or(usize::MAX) * CHUNK];
        let mut engine = Self {
            beneath: vec![FxHashMap::default(); levels::<A>()],
            pools: std::iter::once(Pool::new(1)).chain(capacities.iter().map(pool)).collect(),
            held: std::iter::once(vec![0; FIRST]).chain(capacities.iter().map(elements)).collect(),
            arrays: Arrays::new(slots, MAX_ARRAYS as usize),
            slots,
            leaf: 0,
            widest: 0,
            results: 0,
        };
        let root = overlay.root();
        let rows = root.expand(&vec![NextHop::NONE; slots]);
        for (octet, row) in (0..=u8::MAX).zip(rows.chunks_exact(slots)) {
            // The chunks were counted on this very overlay.
            engine
                .fill(0, u32::from(octet), &root.child(octet), row, &mut Log::off())
                .map_err(|_| too_many_arrays())?;
        }
        Ok(engine)
    }

    /// Fills a chunk and all beneath it. In level 0 the 256 elements under one first octet count as a chunk.
    pub(super) fn fill<A: Address>(
        &mut self,
        level: usize,
        chunk: u32,
        position: &Position<'_, A>,
        inherited: &[NextHop],
        log: &mut Log,
    ) -> Result<(), Outgrown> {
        let rows = position.expand(inherited);
        // As plain integers, which compare as one piece of memory.
        let plain: &[u32] = bytemuck::cast_slice(&rows);
        let slots = self.slots;
        let is_same = |a: u8, b: u8| {
            plain[usize::from(a) * slots..][..slots] == plain[usize::from(b) * slots..][..slots]
        };
        let octets = if level + 1 < levels::<A>() { position.octets() } else { Octets::default() };
        let mut leaves = Vec::with_capacity(CHUNK);
        // Mostly an element has the array of the one before it, and finding that out takes no hash.
        let mut last: Option<(u8, u32)> = None;
        for octet in (0..=u8::MAX).filter(|&octet| !octets.contains(octet)) {
            let id = match last {
                Some((before, id)) if is_same(before, octet) => {
                    self.arrays.take_again(id);
                    id
                }
                _ => take(&mut self.arrays, &rows[usize::from(octet) * slots..][..slots], log)?,
            };
            last = Some((octet, id));
            leaves.push((element(chunk, octet), id));
        }
        for (element, id) in leaves {
            self.set_held(level, element, id);
            log.leaf(level, element, id);
        }
        for octet in octets.iter() {
            let id = self.link(level, element(chunk, octet), log)?;
            let row = &rows[usize::from(octet) * slots..][..slots];
            self.fill(level + 1, id, &position.child(octet), row, log)?;
        }
        Ok(())
    }

    /// Takes a chunk for what is beneath an element, and links it.
    pub(super) fn link(&mut self, level: usize, element: u64, log: &mut Log) -> Result<u32, Outgrown> {
        let id = self.pools[level + 1].take().ok_or(Outgrown("room for chunks"))?;
        self.set_held(level, element, 0);
        self.beneath[level].insert(element, id);
        log.link(level, element, id);
        Ok(id)
    }

    /// Gives an element its next hops.
    pub(super) fn hold(
        &mut self,
        level: usize,
        element: u64,
        row: &[NextHop],
        log: &mut Log,
    ) -> Result<(), Outgrown> {
        let id = take(&mut self.arrays, row, log)?;
        self.set_held(level, element, id);
        log.leaf(level, element, id);
        Ok(())
    }

    /// Puts an array that was taken in the place of the one that an element has.
    pub(super) fn set_held(&mut self, level: usize, element: u64, id: u32) {
        let held = &mut self.held[level][index(element)];
        let before = std::mem::replace(held, id);
        if before != 0 {
            self.arrays.give_back(before);
        }
    }

    /// The array that an element has.
    pub(super) fn held(&self, level: usize, element: u64) -> u32 {
        self.held[level][index(element)]
    }

    /// Bytes held beside the table and the Ribs.
    pub(super) fn bytes(&self) -> u64 {
        let entry = (size_of::<u64>() + size_of::<u32>() + 1) as u64;
        let maps: u64 = self.beneath.iter().map(|map| map.capacity() as u64 * entry).sum();
        let held: u64 = self.held.iter().map(|held| (held.capacity() * size_of::<u32>()) as u64).sum();
        maps + held + self.arrays.memory_usage() + self.pools.iter().map(Pool::memory_usage).sum::<u64>()
    }
}

/// The array of these next hops; logged where it is new.
fn take(arrays: &mut Arrays, row: &[NextHop], log: &mut Log) -> Result<u32, Outgrown> {
    let taken = arrays.take(row).ok_or(Outgrown("room for next-hop arrays"))?;
    if taken.is_new {
        log.array(taken.id, row);
    }
    Ok(taken.id)
}

fn index(element: u64) -> usize {
    usize::try_from(element).expect("an element of a form in memory")
}

/// Writes the form into a zeroed image.
struct Compiler<'a> {
    engine: &'a SailM,
    image: Image,
}

impl Compiler<'_> {
    fn compile<A: Address>(&mut self, width: usize) {
        self.level::<u32>(0, LEAF);
        let last = levels::<A>() - 1;
        for level in 1..=last {
            let leaf = if level < last { self.engine.leaf } else { 0 };
            match self.image.width(elements(level)) {
                Some(1) => self.level::<u8>(level, leaf),
                Some(2) => self.level::<u16>(level, leaf),
                _ => self.level::<u32>(level, leaf),
            }
        }
        match width {
            1 => self.next_hops::<A, u8>(),
            2 => self.next_hops::<A, u16>(),
            _ => self.next_hops::<A, u32>(),
        }
    }

    /// The arrays, side by side.
    fn next_hops<A: Address, T: Element>(&mut self) {
        let arrays = &self.engine.arrays;
        let (slots, capacity) = (self.engine.slots, arrays.capacity());
        let elements = self.elements::<T>(next_hops::<A>());
        for (slot, column) in elements.chunks_exact_mut(capacity).enumerate() {
            let next_hops = arrays.next_hops().iter().skip(slot).step_by(slots);
            for (element, next_hop) in column.iter_mut().zip(next_hops) {
                *element = narrow(next_hop.0);
            }
        }
    }

    fn elements<T: Element>(&mut self, section: SectionId) -> &mut [T] {
        self.image.section_mut::<T>(section).expect("an image that is compiled is in memory")
    }

    /// The elements of a level, of which those that end lookups have the bit `leaf`.
    fn level<T: Element>(&mut self, level: usize, leaf: u32) {
        let engine = self.engine;
        let elements = self.elements::<T>(elements(level));
        for (element, &id) in elements.iter_mut().zip(&engine.held[level]) {
            *element = narrow(if id == 0 { 0 } else { leaf | id });
        }
        for (&element, &chunk) in &engine.beneath[level] {
            elements[index(element)] = narrow(chunk);
        }
    }
}

fn narrow<T: Element>(value: u32) -> T {
    T::try_from(u64::from(value)).ok().expect("the widths were chosen for the largest values")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_arrays_widens_no_id_for_nothing() {
        // The real table alone, four like it, twelve unlike.
        let chunks = [30_000, 100];
        assert_eq!(room_for_arrays(64, &chunks, 1, 1), 128);
        assert_eq!(room_for_arrays(13_382, &chunks, 4, 1), 1 << 15);
        let room = room_for_arrays(763_802, &chunks, 12, 1);
        assert!((859_000..925_000).contains(&room), "{room}");
        // What is needed is there, however wide.
        assert!(room_for_arrays(120, &chunks, 1, 4) > 128);
        assert_eq!(room_for_arrays(u64::from(MAX_ARRAYS), &chunks, 1, 4), u64::from(MAX_ARRAYS));
    }
}
