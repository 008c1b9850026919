//! Lulea: Degermark, Brodnik, Carlsson, Pink, "Small forwarding tables for fast routing lookups", SIGCOMM
//! 1997. IPv4.
//!
//! The trie of prefixes, made complete (each node has two children or none), is cut at depths 16, 24 and 32.
//! At a cut stands a bit vector over all addresses of that depth: a bit is set at a *head*, where a leaf or a
//! subtree begins. A lookup counts the heads up to its address and finds the pointer of that number. The
//! counting is what is compressed: 16 bits of a vector over a complete tree are either zero or one of 677
//! masks, so that a code word of 16 bits names the mask and has room for a count.
//!
//! ```text
//! words   u16 × 4096     rrrrrrrrrroooooo   row of the maptable, heads from the base on
//! bases   u16 × 1024     heads before each four code words
//! maptable    16 × 4 bits a row: of a mask's heads, how many come before the last one at or before each bit
//! pointers    kkiiiiiiiiiiiiii   kind: next hop, sparse, dense or very dense chunk; index
//!
//!   pointers[bases[a >> 22] + offset of words[a >> 20] + maptable[row of it][a >> 16 & 15]]
//!
//! chunk of 256 addresses, levels 2 and 3     heads
//!   sparse         1–8     the heads' octets (8 × u8), their pointers
//!   dense          9–64    16 code words, one base
//!   very dense   65–256    16 code words, four bases
//! ```
//!
//! Siblings with one next hop are joined into their parent, which makes all of it smaller. A zero mask counts
//! from one head less, so that ranks are of 4 bits: its last head is in a mask before it. What no prefix
//! covers has next hop 0, so that no default route is needed. Pointers are of 16 bits, 14 of them an index,
//! as in the paper, where that is enough: the real table of 1,042,325 prefixes with 62 next hops takes 1.9 MB
//! so. Tables with more next hops or more chunks of one form than 2^14 have pointers of 32 bits, 30 of them
//! an index: with 79,563 next hops the same table takes 3.2 MB. There are no updates in place: the paper
//! builds anew.

use anyhow::{Result, ensure};
use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{NextHop, Rib, V4};

use crate::table::{Contestant, Lane, lane, one_by_one};

/// A table with pointers of a width.
pub struct Lulea<P> {
    maptable: Box<[u64; 1024]>,
    words: Box<[u16; 4096]>,
    bases: Box<[u16; 1024]>,
    pointers: Vec<P>,
    /// Levels 2 and 3.
    levels: [Level<P>; 2],
}

/// The table with the narrowest pointers that hold it, as `lulea-2B` or `lulea-4B`.
pub fn lulea(rib: &Rib<V4>) -> Result<Box<dyn Lane<V4>>> {
    lane("lulea-2B", rib, Lulea::<u16>::build).or_else(|_| lane("lulea-4B", rib, Lulea::<u32>::build))
}

impl<P: Pointer> Contestant<V4> for Lulea<P> {
    one_by_one!(V4);

    #[inline]
    fn one(&self, V4(key): V4) -> NextHop {
        let [_, _, third, fourth] = key.to_be_bytes();
        let word = self.words[(key >> 20) as usize];
        let base = usize::from(self.bases[(key >> 22) as usize]);
        let mut pointer = self.pointers[base + self.within(word, key >> 16)];
        if pointer.kind() != NEXT_HOP {
            pointer = self.step(&self.levels[0], pointer, third);
            if pointer.kind() != NEXT_HOP {
                pointer = self.step(&self.levels[1], pointer, fourth);
            }
        }
        NextHop(pointer.index())
    }

    fn memory(&self) -> Option<u64> {
        let level1 = size_of_val(&*self.words) + size_of_val(&*self.bases) + size_of_val(&*self.pointers);
        let deeper: usize = self.levels.iter().map(Level::bytes).sum();
        Some((MASKS * size_of::<u64>() + level1 + deeper) as u64)
    }
}

impl<P: Pointer> Lulea<P> {
    /// Heads from the base on, by the code word and the bit of its mask (the low four bits).
    #[inline]
    fn within(&self, word: u16, bit: u32) -> usize {
        let rank = self.maptable[usize::from(word >> OFFSET_BITS)] >> (4 * (bit & 15)) & 15;
        usize::from(word & OFFSET_MASK) + rank as usize
    }

    /// The pointer at an octet of a chunk.
    #[inline]
    fn step(&self, level: &Level<P>, chunk: P, octet: u8) -> P {
        let index = chunk.index() as usize;
        match chunk.kind() {
            SPARSE => {
                let Sparse { heads, pointers } = &level.sparse[index];
                // The first head is octet 0.
                let upto = heads.iter().filter(|&&head| head <= octet).count();
                pointers[upto.wrapping_sub(1) & 7]
            }
            DENSE => {
                let Dense { words, base } = &level.dense[index];
                let word = words[usize::from(octet >> 4)];
                level.pointers[*base as usize + self.within(word, octet.into())]
            }
            _ => {
                let VeryDense { words, bases, base } = &level.very_dense[index];
                let word = words[usize::from(octet >> 4)];
                let base = *base as usize + usize::from(bases[usize::from(octet >> 6)]);
                level.pointers[base + self.within(word, octet.into())]
            }
        }
    }

    /// Compresses all routes. An error where an index doesn't fit a pointer.
    pub fn build(rib: &Rib<V4>) -> Result<Self> {
        let mut builder = Builder { masks: masks(), levels: [Level::default(), Level::default()] };
        let elements = builder.level1(rib.cursor())?;
        let heads = heads(&elements);
        let (words, bases) = builder.encode::<4096, 1024>(&heads);
        let mut pointers = Vec::new();
        narrow(heads.iter().map(|&head| elements[head]), &mut pointers)?;
        pointers.shrink_to_fit();
        for level in &mut builder.levels {
            level.shrink();
        }
        Ok(Self {
            maptable: maptable(&builder.masks),
            words: Box::new(words),
            bases: Box::new(bases.map(|base| u16::try_from(base).expect("under 2^16 heads before the last"))),
            pointers,
            levels: builder.levels,
        })
    }
}

/// The chunks of a level by their form, and the pointers of those that have code words.
struct Level<P> {
    sparse: Vec<Sparse<P>>,
    dense: Vec<Dense>,
    very_dense: Vec<VeryDense>,
    pointers: Vec<P>,
}

/// Unused heads are 255 with the last pointer.
struct Sparse<P> {
    heads: [u8; 8],
    pointers: [P; 8],
}

struct Dense {
    words: [u16; 16],
    base: u32,
}

struct VeryDense {
    words: [u16; 16],
    bases: [u8; 4],
    base: u32,
}

impl<P> Default for Level<P> {
    fn default() -> Self {
        Self { sparse: Vec::new(), dense: Vec::new(), very_dense: Vec::new(), pointers: Vec::new() }
    }
}

impl<P> Level<P> {
    fn bytes(&self) -> usize {
        let chunks = size_of_val(&*self.sparse) + size_of_val(&*self.dense) + size_of_val(&*self.very_dense);
        chunks + size_of_val(&*self.pointers)
    }

    fn shrink(&mut self) {
        self.sparse.shrink_to_fit();
        self.dense.shrink_to_fit();
        self.very_dense.shrink_to_fit();
        self.pointers.shrink_to_fit();
    }
}

const NEXT_HOP: u32 = 0;
const SPARSE: u32 = 1;
const DENSE: u32 = 2;
const VERY_DENSE: u32 = 3;

/// Two bits of kind and an index.
pub trait Pointer: Copy + 'static {
    /// Bits of an index.
    const INDEX_BITS: u32;
    /// The kind of place that it points to.
    fn kind(self) -> u32;
    /// The index of the place.
    fn index(self) -> u32;
    /// Takes a pointer of 32 bits whose index is under 2^[`INDEX_BITS`](Self::INDEX_BITS).
    fn narrow(wide: u32) -> Self;
}

impl Pointer for u16 {
    const INDEX_BITS: u32 = 14;

    #[inline]
    fn kind(self) -> u32 {
        u32::from(self >> 14)
    }

    #[inline]
    fn index(self) -> u32 {
        u32::from(self & 0x3fff)
    }

    #[allow(clippy::cast_possible_truncation)] // kind and index are of 16 bits together
    fn narrow(wide: u32) -> Self {
        (wide.kind() << 14 | wide.index()) as u16
    }
}

impl Pointer for u32 {
    const INDEX_BITS: u32 = 30;

    #[inline]
    fn kind(self) -> u32 {
        self >> 30
    }

    #[inline]
    fn index(self) -> u32 {
        self & 0x3fff_ffff
    }

    fn narrow(wide: u32) -> Self {
        wide
    }
}

/// A pointer of 32 bits.
fn wide(kind: u32, index: usize) -> Result<u32> {
    ensure!(index < 1 << 30, "a pointer of 32 bits holds indexes below 2^30, the table has {index}");
    #[allow(clippy::cast_possible_truncation)] // checked
    Ok(kind << 30 | index as u32)
}

/// Appends pointers at their own width.
fn narrow<P: Pointer>(from: impl Iterator<Item = u32>, into: &mut Vec<P>) -> Result<()> {
    for pointer in from {
        let (index, bits) = (pointer.index(), P::INDEX_BITS);
        ensure!(index >> bits == 0, "a pointer holds indexes below 2^{bits}, the table has {index}");
        into.push(P::narrow(pointer));
    }
    Ok(())
}

/// Low bits of a code word.
const OFFSET_BITS: u32 = 6;
const OFFSET_MASK: u16 = (1 << OFFSET_BITS) - 1;
/// Zero, and the masks over complete trees of depth 4: a(0) = 1, a(n) = 1 + a(n - 1)².
const MASKS: usize = 678;

/// All masks, ascending: a row of the maptable each, zero the first. Bit i, counted from the low end, is
/// address i.
fn masks() -> Vec<u16> {
    let mut masks = vec![1u16];
    for depth in 0..4 {
        let half = 1 << depth;
        let pairs = masks.iter().flat_map(|&left| masks.iter().map(move |&right| left | right << half));
        masks = std::iter::once(1).chain(pairs).collect();
    }
    masks.push(0);
    masks.sort_unstable();
    debug_assert_eq!(masks.len(), MASKS);
    masks
}

/// The ranks of the 16 bits of each mask. Rows past the last fill the ten bits of a code word, so that none
/// needs a check.
fn maptable(masks: &[u16]) -> Box<[u64; 1024]> {
    let mut table = Box::new([0; 1024]);
    for (row, &mask) in table.iter_mut().zip(masks) {
        for bit in 0..16 {
            let heads = (mask & (u16::MAX >> (15 - bit))).count_ones();
            *row |= u64::from(heads.saturating_sub(1)) << (4 * bit);
        }
    }
    table
}

/// Where leaves and subtrees begin in a complete tree over 2^n elements: at the largest blocks of one
/// element.
fn heads(elements: &[u32]) -> Vec<usize> {
    fn mark(elements: &[u32], first: usize, heads: &mut Vec<usize>) {
        if elements.iter().all(|element| *element == elements[0]) {
            heads.push(first);
        } else {
            let (left, right) = elements.split_at(elements.len() / 2);
            mark(left, first, heads);
            mark(right, first + left.len(), heads);
        }
    }
    let mut heads_found = Vec::new();
    mark(elements, 0, &mut heads_found);
    heads_found
}

struct Builder<P> {
    masks: Vec<u16>,
    levels: [Level<P>; 2],
}

impl<P: Pointer> Builder<P> {
    /// What the addresses of level 1 point to.
    fn level1(&mut self, root: Cursor<'_, V4>) -> Result<Vec<u32>> {
        let mut elements = Vec::with_capacity(1 << 16);
        let mut covers = [NextHop::NONE; 256];
        root.expand(NextHop::NONE, &mut covers);
        for (octet, cover) in (0..=u8::MAX).zip(covers) {
            match root.child(octet) {
                Some(child) => elements.extend(self.expand(0, child, cover)?),
                None => elements.extend([wide(NEXT_HOP, cover.0 as usize)?; 256]),
            }
        }
        Ok(elements)
    }

    /// What the 256 addresses of a cursor point to, the chunks beneath them made in a level.
    fn expand(&mut self, beneath: usize, cursor: Cursor<'_, V4>, cover: NextHop) -> Result<[u32; 256]> {
        let mut next_hops = [NextHop::NONE; 256];
        cursor.expand(cover, &mut next_hops);
        let mut elements = [0; 256];
        for ((octet, next_hop), element) in (0..=u8::MAX).zip(next_hops).zip(&mut elements) {
            *element = match cursor.child(octet) {
                Some(child) => self.chunk(beneath, child, next_hop)?,
                None => wide(NEXT_HOP, next_hop.0 as usize)?,
            };
        }
        Ok(elements)
    }

    /// Makes a chunk, and those beneath it; what points to it. Where it has one next hop throughout there is
    /// none to make.
    fn chunk(&mut self, level: usize, cursor: Cursor<'_, V4>, cover: NextHop) -> Result<u32> {
        let elements = self.expand(level + 1, cursor, cover)?;
        let heads = heads(&elements);
        if heads.len() == 1 {
            return Ok(elements[0]);
        }
        let of_heads = heads.iter().map(|&head| elements[head]);
        if heads.len() <= 8 {
            let mut pointers = Vec::with_capacity(8);
            narrow(of_heads, &mut pointers)?;
            let at = |i: usize| i.min(heads.len() - 1);
            #[allow(clippy::cast_possible_truncation)] // under 256
            let octets = std::array::from_fn(|i| heads.get(i).map_or(u8::MAX, |&head| head as u8));
            let sparse = &mut self.levels[level].sparse;
            sparse.push(Sparse { heads: octets, pointers: std::array::from_fn(|i| pointers[at(i)]) });
            return wide(SPARSE, sparse.len() - 1);
        }
        let base = u32::try_from(self.levels[level].pointers.len())?;
        narrow(of_heads, &mut self.levels[level].pointers)?;
        if heads.len() <= 64 {
            let (words, _) = self.encode::<16, 1>(&heads);
            let dense = &mut self.levels[level].dense;
            dense.push(Dense { words, base });
            wide(DENSE, dense.len() - 1)
        } else {
            let (words, bases) = self.encode::<16, 4>(&heads);
            let bases = bases.map(|base| u8::try_from(base).expect("192 heads at most before the last 64"));
            let very_dense = &mut self.levels[level].very_dense;
            very_dense.push(VeryDense { words, bases, base });
            wide(VERY_DENSE, very_dense.len() - 1)
        }
    }

    /// The code words of heads, and the base of each group of them: the number of the head that the group's
    /// first mask counts from.
    fn encode<const WORDS: usize, const GROUPS: usize>(
        &self,
        heads: &[usize],
    ) -> ([u16; WORDS], [usize; GROUPS]) {
        let mut masks = [0u16; WORDS];
        for head in heads {
            masks[head / 16] |= 1 << (head % 16);
        }
        let (mut words, mut bases) = ([0; WORDS], [0; GROUPS]);
        let mut before = 0;
        for (at, (word, mask)) in words.iter_mut().zip(masks).enumerate() {
            // The first mask of all has a head, so that a zero mask has one before it.
            let from = before - usize::from(mask == 0);
            let group = at / (WORDS / GROUPS);
            if at % (WORDS / GROUPS) == 0 {
                bases[group] = from;
            }
            let row = self.masks.binary_search(&mask).expect("heads of a complete tree");
            word_set(word, row, from - bases[group]);
            before += mask.count_ones() as usize;
        }
        (words, bases)
    }
}

/// Writes a code word: a row under 678 and an offset under 64.
#[allow(clippy::cast_possible_truncation)] // checked
fn word_set(word: &mut u16, row: usize, offset: usize) {
    assert!(row < MASKS && offset <= usize::from(OFFSET_MASK));
    *word = (row << OFFSET_BITS | offset) as u16;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wirespeed_fib::Prefix;
    use wirespeed_fib::conformance::tables;
    use wirespeed_fib::synth::rng::Rng;

    use super::*;
    use crate::rivals::tests::{agrees, hand_picked};

    #[test]
    fn masks_as_the_paper_counts_them() {
        let masks = masks();
        assert_eq!(masks.len(), MASKS);
        assert!(masks.is_sorted() && masks[0] == 0);
        assert!(masks[1..].iter().all(|mask| mask & 1 == 1));
        // A full mask has ranks 0 to 15.
        assert_eq!(maptable(&masks)[MASKS - 1], 0xfedc_ba98_7654_3210);
        // A head at 0, 8 and 12.
        let row = masks.binary_search(&0b0001_0001_0000_0001).unwrap();
        assert_eq!(maptable(&masks)[row], 0x2222_1111_0000_0000);
    }

    #[test]
    fn hand_picked_tables() {
        hand_picked(Lulea::<u32>::build);
    }

    #[test]
    fn narrow_pointers_hold_14_bits_and_say_so() {
        let table = |next_hop| [(Prefix::DEFAULT, NextHop(next_hop))].into_iter().collect::<Rib<V4>>();
        agrees(&Lulea::<u16>::build(&table(16_383)).unwrap(), &table(16_383));
        let refused = Lulea::<u16>::build(&table(16_384)).err().unwrap().to_string();
        assert_eq!(refused, "a pointer holds indexes below 2^14, the table has 16384");
        assert_eq!(lulea(&table(16_383)).unwrap().costs().name, "lulea-2B");
        assert_eq!(lulea(&table(16_384)).unwrap().costs().name, "lulea-4B");
        assert!(Lulea::<u32>::build(&table(1 << 30)).is_err());
    }

    /// The leaves of a complete tree of so many beneath a prefix, at most eight bits longer.
    fn leaves(beneath: Prefix<V4>, count: usize, rng: &mut Rng) -> Vec<Prefix<V4>> {
        let mut leaves = vec![beneath];
        while leaves.len() < count {
            let at = rng.index(leaves.len());
            if leaves[at].len() < beneath.len() + 8 {
                leaves[at] = Prefix::around(leaves[at].address(), leaves[at].len() + 1);
                leaves.extend(leaves[at].sibling());
            }
        }
        leaves
    }

    /// A chunk of each number of heads in levels 2 and 3.
    #[test]
    fn chunks_of_every_size() {
        let mut rng = Rng::new(3);
        let mut rib = Rib::new();
        let mut next_hops = (1..).map(NextHop);
        for count in 2..=256 {
            let i = u32::try_from(count).unwrap() - 1;
            for (address, len) in [(i << 16, 16), (10 << 24 | i << 8, 24)] {
                let leaves = leaves(Prefix::around(V4(address), len), count, &mut rng);
                rib.extend(leaves.into_iter().zip(&mut next_hops));
            }
        }
        let table = Lulea::<u32>::build(&rib).unwrap();
        let sizes = |level: &Level<u32>| [level.sparse.len(), level.dense.len(), level.very_dense.len()];
        // 2 to 8, 9 to 64, 65 to 256; in level 2 the one above all chunks of level 3 too.
        assert_eq!(sizes(&table.levels[0]), [7, 56, 193]);
        assert_eq!(sizes(&table.levels[1]), [7, 56, 192]);
        agrees(&table, &rib);
    }

    /// A head in each of 65,536 places: the largest bases.
    #[test]
    fn a_full_first_level() {
        let all = (0..1u32 << 16).map(|i| (Prefix::around(V4(i << 16), 16), NextHop(1 + i % 251)));
        let rib: Rib<V4> = all.collect();
        let table = Lulea::<u16>::build(&rib).unwrap();
        assert_eq!(table.pointers.len(), 1 << 16);
        for i in 0..1u32 << 16 {
            assert_eq!(table.one(V4(i << 16 | 0xabcd)), NextHop(1 + i % 251));
        }
    }

    proptest! {
        #[test]
        fn random_tables(rib in tables::random::<V4>(0..200)) {
            agrees(&Lulea::<u32>::build(&rib).unwrap(), &rib);
        }
    }
}
