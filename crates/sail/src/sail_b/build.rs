//! [`SailB`] and [`SailU`]: the form, and its compilation from a Rib.
//!
//! The form that stays holds what can't be read off the Rib one prefix at a time: the bit maps, which are
//! patched in words, and the places of the chunks. To compile is to touch every prefix, as an update touches
//! those that changed, with an image in the place of a patch.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use wirespeed_fib::{BuildError, BuildOptions, Engine, Outgrown, Prefix, Rib, Standing, V4};
use wirespeed_image::{Element, Image, Patch, Pool, SectionId, width_for};

use super::layout::{
    EveryLength, EverySixth, Levels, MAX_CHUNKS, SplitTable, allocate, next_hops, pivot, top, words,
};

/// SAIL_B's control plane: build, and keep up to date, a [`SailBTable`](crate::SailBTable).
pub type SailB = Split<EveryLength>;
/// SAIL_U's control plane: build, and keep up to date, a [`SailUTable`](crate::SailUTable).
pub type SailU = Split<EverySixth>;

/// The control plane of SAIL_B and SAIL_U.
#[derive(Clone, Debug)]
pub struct Split<L> {
    /// The bit map of each level, as the table has it.
    pub(crate) bits: Vec<Vec<u64>>,
    /// The chunk under an element of the pivot level.
    pub(crate) chunks: BTreeMap<u32, u32>,
    pub(crate) pool: Pool,
    /// The largest value of an element of the pivot level.
    pub(crate) top: u32,
    /// The largest next-hop index that every array can hold.
    pub(crate) widest: u32,
    /// The largest that has been in the table.
    pub(crate) results: u32,
    levels: PhantomData<L>,
}

/// The target of elements: an image that is compiled, or a patch.
pub(crate) trait Sink {
    fn put(&mut self, section: SectionId, index: u64, value: u64);
}

impl<L: Levels> Engine<V4> for Split<L> {
    const NAME: &'static str = L::NAME;
    const STANDING: Standing = Standing::Paper("SAIL, SIGCOMM 2014");
    type Table = SplitTable<L>;

    fn build(rib: &Rib<V4>, options: &BuildOptions) -> Result<(Self, SplitTable<L>), BuildError> {
        let results = rib.max_next_hop().0;
        let widest = results.max(options.results);
        let chunks = capacity(rib, options);
        let width = width_for(widest.into());
        let pivot_width = width_for(u64::from(widest) + chunks);
        if pivot_width > 4 {
            let (limit, found) = (u64::from(u32::MAX) - chunks, u64::from(widest));
            return Err(BuildError::Limit { engine: L::NAME, what: "next hops", limit, found });
        }
        let image = allocate::<L>(chunks, width, pivot_width, options.memory_cap)?;
        // Both fit in 32 bits, as was just seen.
        let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
        let mut engine = Self {
            bits: L::LEVELS.iter().map(|&level| vec![0; words(level)]).collect(),
            chunks: BTreeMap::new(),
            pool: Pool::new(chunks),
            top: top(pivot_width),
            // What an update may bring: all that the widths hold.
            widest: top(width).min(top(pivot_width) - chunks),
            results,
            levels: PhantomData,
        };
        let mut compiler = Compiler { image };
        for (prefix, _) in rib {
            // The capacity was counted on this very Rib.
            engine.touch(rib, prefix, &mut compiler).expect("there is room for every chunk");
        }
        let mut image = compiler.image;
        image.set_counts(rib.len() as u64, u64::from(results));
        Ok((engine, SplitTable::new(image)))
    }

    fn patch(&mut self, _: &Self::Table, rib: &Rib<V4>, changed: &[Prefix<V4>]) -> Result<Patch, Outgrown> {
        self.patch(rib, changed)
    }

    fn memory_usage(&self) -> u64 {
        let words: usize = self.bits.iter().map(Vec::len).sum();
        // A B-tree's nodes are between half full and full.
        let chunk = 3 * size_of::<(u32, u32)>() / 2;
        (words * size_of::<u64>() + self.chunks.len() * chunk) as u64 + self.pool.memory_usage()
    }
}

/// Chunks to make room for: chunk 0, those in use, and an eighth more for updates.
fn capacity(rib: &Rib<V4>, options: &BuildOptions) -> u64 {
    let root = rib.cursor();
    let second = root.octets().filter_map(|octet| root.child(octet));
    let third = second.flat_map(|cursor| cursor.octets().filter_map(move |octet| cursor.child(octet)));
    let used = third.map(|cursor| cursor.octets().count() as u64).sum::<u64>();
    (used + options.head_room_for(used, 8, 9)).min(MAX_CHUNKS)
}

impl<L: Levels> Split<L> {
    /// The section and value of an element of the pivot level that leads to a chunk.
    pub(crate) fn link(&self, chunk: u32) -> (SectionId, u64) {
        (next_hops::<L>(pivot::<L>()), u64::from(self.top - chunk))
    }
}

/// Writes straight into a zeroed image.
struct Compiler {
    image: Image,
}

impl Compiler {
    fn put_as<T: Element>(&mut self, section: SectionId, index: u64, value: u64) {
        let elements = self.image.section_mut::<T>(section).expect("an image that is compiled is in memory");
        let value = T::try_from(value).ok().expect("the widths were chosen for the largest values");
        elements[usize::try_from(index).expect("an index in memory")] = value;
    }
}

impl Sink for Compiler {
    fn put(&mut self, section: SectionId, index: u64, value: u64) {
        match self.image.width(section) {
            Some(1) => self.put_as::<u8>(section, index, value),
            Some(2) => self.put_as::<u16>(section, index, value),
            Some(4) => self.put_as::<u32>(section, index, value),
            _ => self.put_as::<u64>(section, index, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_fib::NextHop;
    use wirespeed_image::ImageError;

    use super::*;

    fn options(results: u32) -> BuildOptions {
        BuildOptions { results, ..BuildOptions::default() }
    }

    #[test]
    fn widths_are_the_narrowest() {
        fn widths<L: Levels>(widest: u32, rib: &Rib<V4>) -> (u32, u32) {
            let (_, table) = Split::<L>::build(rib, &options(widest)).unwrap();
            (table.entry_width(), table.pivot_width())
        }
        // One chunk in use: ten are made room for, of which next hops and chunks must be told apart.
        let rib: Rib<V4> = [("10.1.2.128/25".parse().unwrap(), NextHop(3))].into_iter().collect();
        assert_eq!(widths::<EverySixth>(245, &rib), (1, 1));
        assert_eq!(widths::<EverySixth>(246, &rib), (1, 2));
        assert_eq!(widths::<EverySixth>(256, &rib), (2, 2));
        assert_eq!(widths::<EverySixth>(65_525, &rib), (2, 2));
        assert_eq!(widths::<EverySixth>(65_526, &rib), (2, 4));
        assert_eq!(widths::<EveryLength>(65_536, &rib), (4, 4));
    }

    #[test]
    fn too_many_next_hops_are_refused_with_both_numbers() {
        let rib: Rib<V4> = [("10.1.2.128/25".parse().unwrap(), NextHop(3))].into_iter().collect();
        assert!(SailU::build(&rib, &options(u32::MAX - 10)).is_ok());
        let refused = SailU::build(&rib, &options(u32::MAX - 9)).unwrap_err();
        assert_eq!(refused.to_string(), "sail-u holds 4294967285 next hops, the table has 4294967286");
    }

    #[test]
    fn a_cap_is_kept() {
        let capped = BuildOptions { memory_cap: Some(1 << 20), ..BuildOptions::default() };
        let refused = SailB::build(&Rib::new(), &capped).unwrap_err();
        assert!(matches!(refused, BuildError::Image(ImageError::OverCap { cap: 0x10_0000, .. })));
    }
}
