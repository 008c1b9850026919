//! [`Long`]: level 32, for the slots that have prefixes longer than 24 bits: which block a slot has, and
//! which chunk each of its elements.

use rustc_hash::FxHashMap;
use wirespeed_fib::rib::Cursor;
use wirespeed_fib::{BuildError, NextHop, Outgrown, V4};
use wirespeed_image::{Changes, Image, Pool, SharedPool, WORD};

use super::content::{Content, fill_front, put_all};
use super::layout::{B18, C24, LONG, N32};

/// Words that hold the widest elements of a chunk.
const LONG_WORDS: usize = LONG * 4 / WORD;

/// Blocks and chunks of level 32.
#[derive(Clone, Debug)]
pub(crate) struct Long {
    /// Bytes of an element of a chunk.
    width: usize,
    /// Elements of a slot.
    short: usize,
    /// The block of each slot that has one.
    blocks: FxHashMap<u32, Block>,
    pool: Pool,
    chunks: SharedPool<u8>,
}

/// The chunks beneath one slot, 0 for an element that has none.
#[derive(Clone, Debug)]
struct Block {
    number: u32,
    chunks: Box<[u32]>,
}

impl Long {
    /// Nothing yet, for slots of so many elements of so many bytes.
    pub(crate) fn new(width: usize, short: usize) -> Self {
        let chunks = SharedPool::new(N32, LONG * width, u32::MAX);
        Self { width, short, blocks: FxHashMap::default(), pool: Pool::new(u32::MAX), chunks }
    }

    /// Blocks in use.
    pub(crate) fn blocks_in_use(&self) -> u32 {
        self.pool.in_use()
    }

    /// Chunks in use.
    pub(crate) fn chunks_in_use(&self) -> u32 {
        self.chunks.in_use()
    }

    /// Sets how many there is room for.
    pub(crate) fn set_capacity(&mut self, blocks: u32, chunks: u32) {
        self.pool.set_capacity(blocks);
        self.chunks.set_capacity(chunks);
    }

    /// Fills the sections of level 32.
    pub(crate) fn compile(&self, image: &mut Image) -> Result<(), BuildError> {
        fill_front(image.section_mut::<u64>(N32)?, self.chunks.built());
        let blocks = self.blocks.iter();
        put_all(image, B18, blocks.clone().map(|(&slot, block)| (slot as usize, block.number)))?;
        let c24 = image.section_mut::<u32>(C24)?;
        for (_, block) in blocks {
            c24[block.number as usize * self.short..][..self.short].copy_from_slice(&block.chunks);
        }
        Ok(())
    }

    /// Says that the table has all chunks: at the end of a build, and at the start of an update.
    pub(crate) fn settle(&mut self) {
        self.chunks.settle();
    }

    /// Bytes held.
    pub(crate) fn memory_usage(&self) -> u64 {
        let block = size_of::<(u32, Block)>() + 1;
        let chunks = self.short * size_of::<u32>();
        let blocks = self.blocks.capacity() * block + self.blocks.len() * chunks;
        blocks as u64 + self.chunks.memory_usage() + self.pool.memory_usage()
    }

    /// Makes an element of a slot lead on to the prefixes beneath it.
    pub(crate) fn lead_on(
        &mut self,
        slot: u32,
        at: usize,
        cursor: Cursor<'_, V4>,
        inherited: NextHop,
        changes: &mut Changes<'_>,
    ) -> Result<(), Outgrown> {
        let mut next_hops = [NextHop::NONE; LONG];
        cursor.expand(inherited, &mut next_hops);
        let mut content = Content::<LONG_WORDS>::new(self.width);
        for (at, next_hop) in next_hops.iter().enumerate() {
            content.set(at, next_hop.0);
        }
        let bytes = content.bytes();
        let short = self.short;
        let block = match self.blocks.get_mut(&slot) {
            Some(block) => block,
            None => {
                let number = self.pool.take().ok_or(Outgrown("room for blocks of level 24"))?;
                changes.set(B18, u64::from(slot), number.into());
                for at in 0..short {
                    changes.set(C24, u64::from(number) * short as u64 + at as u64, 0);
                }
                self.blocks.entry(slot).or_insert(Block { number, chunks: vec![0; short].into() })
            }
        };
        let chunk = &mut block.chunks[at];
        let placed = match *chunk {
            0 => self.chunks.link(bytes, changes),
            now => self.chunks.relink(now, bytes, changes),
        }
        .ok_or(Outgrown("room for chunks of level 32"))?;
        self.chunks.write(placed, changes);
        if placed.piece() != *chunk {
            *chunk = placed.piece();
            changes.set(C24, u64::from(block.number) * short as u64 + at as u64, placed.piece().into());
        }
        Ok(())
    }

    /// Gives back what was beneath an element of a slot, if anything was.
    pub(crate) fn end_here(&mut self, slot: u32, at: usize, changes: &mut Changes<'_>) {
        let Some(block) = self.blocks.get_mut(&slot) else { return };
        let chunk = std::mem::take(&mut block.chunks[at]);
        if chunk == 0 {
            return;
        }
        self.chunks.unlink(chunk);
        if block.chunks.iter().all(|&chunk| chunk == 0) {
            self.pool.give_back(block.number);
            self.blocks.remove(&slot);
            changes.set(B18, u64::from(slot), 0);
        }
    }

    /// Gives back all that was beneath a slot.
    pub(crate) fn clear(&mut self, slot: u32, changes: &mut Changes<'_>) {
        let Some(block) = self.blocks.remove(&slot) else { return };
        for &chunk in block.chunks.iter().filter(|&&chunk| chunk != 0) {
            self.chunks.unlink(chunk);
        }
        self.pool.give_back(block.number);
        changes.set(B18, u64::from(slot), 0);
    }
}
